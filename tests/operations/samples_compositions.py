"""Samples: functions that are made of other operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample
from .samples_shape import SAMPLES as _SHAPE_SAMPLES, _jax, _torch, add as _add

SAMPLES: list[Sample] = []


def add(*args: Any, **options: Any) -> None:
    _add(*args, **options)
    SAMPLES.append(_SHAPE_SAMPLES.pop())


def functional() -> Any:
    return _torch().nn.functional


def indices(values: Any) -> Any:
    return pb.asarray(np.asarray(values, np.int64))


# -- diagonals, joining and splitting --------------------------------------------------------------

add(
    "diag", "vector", lambda x: pb.diag(x, k=-1), (3,),
    torch=lambda x: _torch().diag(x, -1), jax=lambda x: _jax().diag(x, -1),
)  # fmt: skip
add("diag", "matrix", lambda x: pb.diag(x, 1), (2, 3), torch=lambda x: _torch().diag(x, 1))
add(
    "diag_embed", "axes", lambda x: pb.diag_embed(x, 1, 0, -2), (2, 3),
    torch=lambda x: _torch().diag_embed(x, 1, 0, -2),
)  # fmt: skip
add("diag_embed", "complex", lambda x: pb.diag_embed(x, -1), (1j, 2, 2), torch=lambda x: x.diag_embed(-1))
add(
    "trace", "axes", lambda x: pb.trace(x, offset=-1, axis1=0, axis2=1), (3, 2, 2),
    jax=lambda x: _jax().trace(x, -1),
)  # fmt: skip
add(
    "vstack", "vectors-and-matrices", lambda x, y: pb.vstack([x, y, x]), (3,), (2, 3),
    torch=lambda x, y: _torch().vstack([x, y, x]), jax=lambda x, y: _jax().vstack([x, y, x]),
)  # fmt: skip
add("hstack", "matrices", lambda x, y: pb.hstack([x, y]), (2, 3), (2, 1), torch=lambda x, y: _torch().hstack([x, y]))
add("hstack", "vectors", lambda x, y: pb.hstack([x, y]), (), (2,), jax=lambda x, y: _jax().hstack([x, y]))
add(
    "split", "sizes", lambda x: tuple(pb.split(x, sizes=[1, 0, 3], axis=1)), (2, 4),
    torch=lambda x: tuple(x.split([1, 0, 3], 1)),
)  # fmt: skip
add(
    "flatten", "from-the-second-axis", lambda x: x.flatten(1) ** 2, (2, 3, 2),
    torch=lambda x: x.flatten(1) ** 2,
)  # fmt: skip

# -- statistics and integrals ----------------------------------------------------------------------

OFTEN, IMPORTANT = np.array([1, 3, 0, 2]), np.array([0.5, 1.0, 2.0, 0.25])
add("cov", "rows", lambda x: pb.cov(x), (2, 4), torch=lambda x: _torch().cov(x), jax=lambda x: _jax().cov(x))
add("cov", "complex", lambda x: pb.cov(x), (1j, 2, 4), torch=lambda x: _torch().cov(x))
add(
    "cov", "vector-ddof", lambda x: pb.cov(x, ddof=0), (4,),
    torch=lambda x: _torch().cov(x, correction=0), jax=lambda x: _jax().cov(x, ddof=0),
)  # fmt: skip
add(
    "cov",
    "columns",
    lambda x: pb.cov(x, rowvar=False, bias=True),
    (4, 2),
    jax=lambda x: _jax().cov(x, rowvar=False, bias=True),
)
add("cov", "two", lambda x, y: pb.cov(x, y), (4,), (2, 4), jax=lambda x, y: _jax().cov(x, y))
add(
    "cov", "weights", lambda x: pb.cov(x, fweights=OFTEN, aweights=IMPORTANT), (2, 4),
    torch=lambda x: _torch().cov(x, fweights=_torch().tensor(OFTEN), aweights=_torch().tensor(IMPORTANT)),
)  # fmt: skip
add(
    "cov", "weights-that-need-gradients", lambda x, w: pb.cov(x, aweights=w**2, ddof=0), (2, 4), (4,),
    jax=lambda x, w: _jax().cov(x, aweights=w**2, ddof=0),
)  # fmt: skip

add(
    "trapezoid", "steps", lambda y: pb.trapezoid(y, dx=0.5, axis=0), (3, 2),
    torch=lambda y: _torch().trapezoid(y, dx=0.5, dim=0), jax=lambda y: _jax().trapezoid(y, dx=0.5, axis=0),
)  # fmt: skip
add(
    "trapezoid", "places", lambda y, x: pb.trapezoid(y, x, axis=0), (3, 2), (3,),
    jax=lambda y, x: _jax().trapezoid(y, x, axis=0),
)  # fmt: skip
add(
    "trapezoid", "many-places", lambda y, x: pb.trapezoid(y, x), (2, 3), (2, 3),
    torch=lambda y, x: _torch().trapezoid(y, x), jax=lambda y, x: _jax().trapezoid(y, x),
)  # fmt: skip

# -- distances -------------------------------------------------------------------------------------

for _p in (2.0, 1.0, math.inf, 3.0, 1.5):
    add(
        "cdist", f"p={_p}", lambda x, y, p=_p: pb.cdist(x, y, p), (2, 3, 2), (4, 2),
        torch=lambda x, y, p=_p: _torch().cdist(x, y, p),
    )  # fmt: skip
for _p in (2, 3):  # the points of a set lie on themselves
    add(
        "cdist", f"of-itself-p={_p}", lambda x, p=_p: pb.cdist(x, x, p) ** 2, (3, 2), orders=1,
        tolerance={1: 1e-6},
    )  # fmt: skip

# -- scattering ------------------------------------------------------------------------------------

WHERE = np.array([[2, 0, 2, 2], [1, 1, -1, 0]])
_FULL = np.where(WHERE < 0, 3, WHERE)
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _self in (True, False):
        add(
            "scatter_extremum" if _reduce in ("amax", "amin") else "scatter_reduce", f"{_reduce}-self{_self}",
            lambda x, v, r=_reduce, s=_self: pb.scatter_reduce(x, indices(WHERE), v, r, axis=1, include_self=s),
            (2, 4), (2, 4),
            torch=lambda x, v, r=_reduce, s=_self: x.scatter_reduce(1, _torch().tensor(_FULL), v, r, include_self=s),
        )  # fmt: skip
add(
    "scatter_extremum", "first-axis-broadcast",
    lambda x, v: pb.scatter_reduce(x, indices([[2], [0], [2]]), v, "amax", axis=0), (3, 2), (3, 1),
)  # fmt: skip
add(
    "scatter_extremum", "ties",
    lambda x, v: pb.scatter_reduce(pb.stack([x, x + 9]), indices([[0], [0], [1]]), pb.stack([v, v, v]), "amax", axis=0)
    + pb.scatter_reduce(pb.stack([x, v - 9]), indices([[0], [1], [1]]), pb.stack([x, v, v]), "amin", axis=0,
                        include_self=False),
    (2,), (2,),
)  # fmt: skip
add(
    "scatter_reduce", "prod-with-zeros",
    lambda x, v: pb.scatter_reduce(x, indices([0, 0, 1, 1, 1]), v * np.array([0.0, 1, 1, 1, 0]) + v[0] * 0, "prod"),
    (2,), (5,),
)  # fmt: skip
add(
    "scatter", "written", lambda x, v: pb.scatter(x, indices([2, 0]), v), (3,), (2,),
    torch=lambda x, v: x.scatter(0, _torch().tensor([2, 0]), v),
)  # fmt: skip
add("scatter", "multiply", lambda x, v: pb.scatter(x, indices([2, 2]), v, reduce="multiply"), (3,), (2,))
add("scatter", "add", lambda x, v: pb.scatter(x, indices([2, 2]), v, reduce="add"), (3,), (2,))

# -- patches, pixels, bags -------------------------------------------------------------------------

_GEOMETRY = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 2), "stride": (1, 2)}
add(
    "unfold",
    "geometry",
    lambda x: pb.unfold(x, **_GEOMETRY),
    (2, 2, 3, 4),
    torch=lambda x: functional().unfold(x, **_GEOMETRY),
)
add("unfold", "one-image", lambda x: pb.unfold(x, 2), (2, 3, 3), torch=lambda x: functional().unfold(x, 2))
add(
    "fold", "geometry", lambda x: pb.fold(x, (3, 4), **_GEOMETRY), (2, 12, 9),
    torch=lambda x: functional().fold(x, (3, 4), **_GEOMETRY),
)  # fmt: skip
add(
    "fold", "one-image", lambda x: pb.fold(x, 3, 2), (8, 4),
    torch=lambda x: functional().fold(x, (3, 3), (2, 2)),
)  # fmt: skip
add(
    "pixel_shuffle", "images", lambda x: pb.pixel_shuffle(x, 2), (2, 8, 2, 1),
    torch=lambda x: functional().pixel_shuffle(x, 2),
)  # fmt: skip
add(
    "pixel_unshuffle", "one-image", lambda x: pb.pixel_unshuffle(x, 3), (2, 3, 6),
    torch=lambda x: functional().pixel_unshuffle(x, 3),
)  # fmt: skip
BAGS, STARTS = np.array([1, 3, 3, 0, 2, 1]), np.array([0, 2, 2, 5])
ROWS = BAGS.reshape(2, 3)


def bags(w: Any, rows: Any, starts: Any = None, **options: Any) -> Any:
    """`embedding_bag` in the library that `w` belongs to."""
    if isinstance(w, pb.Tensor):
        return pb.embedding_bag(indices(rows), w, None if starts is None else indices(starts), **options)
    made = _torch().tensor
    return functional().embedding_bag(made(rows), w, None if starts is None else made(starts), **options)


for _mode in ("sum", "mean", "max"):
    _function = lambda w, m=_mode: bags(w, BAGS, STARTS, mode=m)
    add("embedding_bag", f"{_mode}-offsets", _function, (4, 2), torch=_function)
    _function = lambda w, m=_mode: bags(w, ROWS, mode=m, padding_idx=3)
    add("embedding_bag", f"{_mode}-padding", _function, (4, 2), torch=_function)
_function = lambda w, s: bags(w, BAGS, [0, 2, 6], mode="sum", per_sample_weights=s, include_last_offset=True)
add("embedding_bag", "weights", _function, (4, 2), (6,), torch=_function)
