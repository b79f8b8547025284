"""Samples: reading and writing parts."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample
from .samples_shape import SAMPLES as _SHAPE_SAMPLES, _jax, _torch, add as _add

SAMPLES: list[Sample] = []


def add(*args: Any, **options: Any) -> None:
    _add(*args, **options)
    SAMPLES.append(_SHAPE_SAMPLES.pop())


MASK = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([[2, 0], [-1, 2]])


def index(case: str, part: Any, *shape: Any, torch: bool = True) -> None:
    """x[part] in all libraries (PyTorch has no negative steps)."""
    references: dict[str, Any] = {"jax": lambda x: x[part]}
    if torch:
        references["torch"] = lambda x: x[_for_torch(part)]
    add("getitem", case, lambda x: x[part], shape, **references)


def _for_torch(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_for_torch(p) for p in part)
    return _torch().tensor(part) if isinstance(part, np.ndarray) else part


index("integer", 1, 3, 2)
index("integers", (1, -1), 3, 2)
index("slice", (slice(None), slice(1, None, 2)), 3, 4)
index("negative-step", (slice(None, None, -2), slice(2, 0, -1)), 3, 4, torch=False)
index("none-and-ellipsis", (None, ..., 0, None), 2, 3, 2)
index(
    "scalar",
    (),
)
index("empty", slice(2, 2), 3, 2)
index("mask", MASK, 2, 3)
index("mask-rows", np.array([True, False, True]), 3, 2)
index("mask-and-slice", (slice(None), np.array([True, False, True])), 2, 3)
index("repeated-rows", np.array([0, 2, 0, -1]), 3, 2)
index("matrix-of-rows", ROWS, 3, 2)
index("points", (np.array([0, 2, 2]), np.array([1, 1, 1])), 3, 2)
index("arrays-and-integer", (np.array([0, 2, 2]), 1), 3, 2)
index("apart", (np.array([0, 1, 1]), slice(None), np.array([1, 0, 0])), 2, 2, 2)
index("array-and-slice", (slice(1, None), np.array([0, 0, 1])), 3, 2)
index("broadcast-arrays", (np.array([[0], [1]]), np.array([0, 0, 1])), 2, 2)
index("no-rows", np.array([], dtype=np.int64), 3, 2)
add("getitem", "tensor-index", lambda x: x[pb.asarray(np.array([1, 1], np.int32))], (3, 2))
add("getitem", "complex", lambda x: x[1:, ::-1], (1j, 3, 2), jax=lambda x: x[1:, ::-1])

add("place", "slice", lambda x: TENSORS.place(x, (3, 4), (slice(None), slice(0, 4, 2))), (3, 2))
add("place", "rows", lambda x: TENSORS.place(x, (3, 2), np.array([1, 1, 0])), (3, 2))
add("place", "mixed", lambda x: TENSORS.place(x, (2, 3), (slice(None), np.array([1, 1]))), (2, 2))

add(
    "setitem", "slice", lambda x, v: TENSORS.setitem(x, v, (slice(None), slice(1, 3))), (2, 4), (2, 2),
    jax=lambda x, v: x.at[:, 1:3].set(v),
)  # fmt: skip
add(
    "setitem",
    "broadcast-value",
    lambda x, v: TENSORS.setitem(x, v, slice(1, 3)),
    (4, 2),
    (1, 2),
    jax=lambda x, v: x.at[1:3].set(v),
)
add(
    "setitem",
    "scalar-value",
    lambda x, v: TENSORS.setitem(x, v, (0, 1)),
    (2, 3),
    (),
    jax=lambda x, v: x.at[0, 1].set(v),
)
add("setitem", "leading-ones", lambda x, v: TENSORS.setitem(x, v, 1), (2, 3), (1, 3))
add("setitem", "mask", lambda x, v: TENSORS.setitem(x, v, MASK), (2, 3), (3,))
add("setitem", "repeated", lambda x, v: TENSORS.setitem(x, v, np.array([0, 2, 0])), (3, 2), (3, 2))
add("setitem", "repeated-broadcast", lambda x, v: TENSORS.setitem(x, v, np.array([0, 2, 0])), (3, 2), (3, 1))
add("setitem", "constant", lambda x: TENSORS.setitem(x, 2.0, slice(1, 3)), (4,), jax=lambda x: x.at[1:3].set(2.0))
add(
    "index_add", "repeated", lambda x, v: pb.index_add(x, pb.asarray(np.array([0, 2, 0])), v), (3, 2), (3, 2),
    jax=lambda x, v: x.at[np.array([0, 2, 0])].add(v),
    torch=lambda x, v: x.index_add(0, _torch().tensor([0, 2, 0]), v),
)  # fmt: skip
add(
    "index_add",
    "slice",
    lambda x, v: pb.index_add(x, slice(1, None), v),
    (3, 2),
    (2,),
    jax=lambda x, v: x.at[1:].add(v),
)

add(
    "take", "axis", lambda x: pb.take(x, pb.asarray(np.array([2, 0, 2, -1])), axis=1), (2, 3),
    jax=lambda x: _jax().take(x, np.array([2, 0, 2, -1]), 1),
)  # fmt: skip
add(
    "take",
    "matrix-of-indices",
    lambda x: pb.take(x, pb.asarray(ROWS), axis=0),
    (3, 2),
    jax=lambda x: _jax().take(x, ROWS, 0),
)
add("take", "none", lambda x: pb.take(x, pb.asarray(np.zeros(0, np.int64)), axis=0), (3, 2))
add("take_transposed", "rows", lambda v: TENSORS.take_transposed(v, pb.asarray(np.array([2, 0, 2])), 4, -2), (3, 2))
ALONG = np.array([[2, 0], [1, 1]])
add(
    "take_along_axis", "last", lambda x: pb.take_along_axis(x, pb.asarray(ALONG)), (2, 3),
    torch=lambda x: x.gather(1, _torch().tensor(ALONG)), jax=lambda x: _jax().take_along_axis(x, ALONG, -1),
)  # fmt: skip
add(
    "take_along_axis", "first", lambda x: pb.take_along_axis(x, pb.asarray(ALONG), axis=0), (3, 2),
    torch=lambda x: x.gather(0, _torch().tensor(ALONG)), jax=lambda x: _jax().take_along_axis(x, ALONG, 0),
)  # fmt: skip
add("take_along_axis", "broadcast-x", lambda x: pb.take_along_axis(x, pb.asarray(ALONG)), (1, 3))
add("take_along_axis", "broadcast-indices", lambda x: pb.take_along_axis(x, pb.asarray(ALONG[:1])), (2, 3))
add(
    "take_along_axis_transposed", "scatter-add",
    lambda x, v: pb.scatter_add(x, pb.asarray(ALONG), v, axis=1), (2, 3), (2, 2),
    torch=lambda x, v: x.scatter_add(1, _torch().tensor(ALONG), v),
)  # fmt: skip
add(
    "take_along_axis_transposed",
    "broadcast-value",
    lambda x, v: pb.scatter_add(x, pb.asarray(ALONG), v, axis=0),
    (3, 2),
    (2, 1),
)
add(
    "put_along_axis",
    "axis",
    lambda x, v: pb.put_along_axis(x, pb.asarray(np.array([[2, 0], [1, 0]])), v, axis=1),
    (2, 3),
    (2, 2),
    torch=lambda x, v: x.scatter(1, _torch().tensor([[2, 0], [1, 0]]), v),
)
add("put_along_axis", "repeated", lambda x, v: pb.put_along_axis(x, pb.asarray(ALONG), v, axis=1), (2, 3), (2, 2))
add(
    "put_along_axis", "broadcast-value", lambda x, v: pb.put_along_axis(x, pb.asarray(ALONG), v, axis=0), (3, 2), (1, 2)
)
