"""Samples of the reductions and running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng


def numbers(case: str, shape: tuple[int, ...]) -> np.ndarray:
    """Different numbers of either sign, none near zero or near another one."""
    generator = rng(case)
    size = int(np.prod(shape))
    spaced = (np.arange(size) + 1.0 + generator.uniform(-0.2, 0.2, size)) * 0.37
    return np.asarray(generator.permutation(spaced * generator.choice([-1.0, 1.0], size))).reshape(shape)


def plane(case: str, shape: tuple[int, ...]) -> np.ndarray:
    return numbers(case, shape) + 1j * numbers(case + "i", shape)


SAMPLES: list[Sample] = []


def _references(name: str, axis: Any, keepdims: bool, **options: Any) -> dict[str, Any]:
    def torch(x: Any) -> Any:
        import torch

        named = dict(options)
        if name in ("max", "min"):
            function = torch.amax if name == "max" else torch.amin
            return function(x, dim=() if axis is None else axis, keepdim=keepdims)
        if axis is None and not keepdims:
            return getattr(torch, name)(x, **named)
        dims = tuple(range(x.ndim)) if axis is None else axis
        if name == "prod":
            for dim in sorted((dims,) if isinstance(dims, int) else dims, key=lambda d: d % x.ndim, reverse=True):
                x = torch.prod(x, dim, keepdim=keepdims)
            return x
        return getattr(torch, name)(x, dim=dims, keepdim=keepdims, **named)

    def jax(x: Any) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, name)(x, axis=axis, keepdims=keepdims, **options)

    return {"torch": torch, "jax": jax}


CASES: dict[str, tuple[tuple[int, ...], Any, bool]] = {
    "all": ((2, 3), None, False),
    "all, keepdims": ((2, 3), None, True),
    "axis=0": ((2, 3), 0, False),
    "axis=-1, keepdims": ((2, 3), -1, True),
    "two axes": ((2, 3, 2), (0, 2), False),
    "two axes, keepdims": ((2, 3, 2), (2, 1), True),
    "vector": ((4,), None, False),
    "one element": ((1, 1), 0, False),
}
for _name in ("sum", "mean", "max", "min", "prod"):
    _function = getattr(pb, _name)
    for _case, (_shape, _axis, _keepdims) in CASES.items():
        SAMPLES.append(
            Sample(
                _name,
                _case,
                lambda x, f=_function, a=_axis, k=_keepdims: f(x, axis=a, keepdims=k),
                (numbers(_name + _case, _shape),),
                **_references(_name, _axis, _keepdims),
            )
        )
    SAMPLES.append(Sample(_name, "scalar", getattr(pb, _name), (np.asarray(1.3),)))
    SAMPLES.append(Sample(_name, "no axes", lambda x, f=_function: f(x, axis=()), (numbers(_name, (2, 2)),)))
    if _name not in ("max", "min"):
        SAMPLES.append(
            Sample(
                _name,
                "complex",
                lambda x, f=_function: f(x, axis=0),
                (plane(_name, (3, 2)),),
                **_references(_name, 0, False),
            )
        )

for _name in ("var", "std"):
    _function = getattr(pb, _name)
    for _case, (_shape, _axis, _keepdims) in CASES.items():
        if _case == "one element":
            continue
        for _correction in (0, 1):
            SAMPLES.append(
                Sample(
                    _name,
                    f"{_case}, correction={_correction}",
                    lambda x, f=_function, a=_axis, k=_keepdims, c=_correction: f(x, axis=a, keepdims=k, correction=c),
                    (numbers(_name + _case, _shape),),
                    **_references(_name, _axis, _keepdims, correction=_correction),
                )
            )
    SAMPLES.append(Sample(_name, "complex", lambda x, f=_function: f(x, axis=0), (plane(_name, (3, 2)),)))


def _with_zeros(*places: int) -> np.ndarray:
    x = numbers("zeros", (6,)).reshape(3, 2)
    x.reshape(-1)[list(places)] = 0.0
    return x


def _jax_running(name: str, axis: int | None) -> Any:
    def function(x: Any) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, name)(x, axis=axis)

    return function


def _jax_logcumsumexp(axis: int) -> Any:
    def function(x: Any) -> Any:
        import jax.lax

        return jax.lax.cumlogsumexp(x, axis)

    return function


def _cumprod(x: Any) -> Any:
    return x.cumprod(0)


for _places in ((2,), (0, 3), (0, 2), (0, 2, 4), (0, 1, 2, 3, 4, 5)):
    SAMPLES.append(Sample("prod", f"zeros at {_places}", pb.prod, (_with_zeros(*_places),), torch=lambda x: x.prod()))
    SAMPLES.append(
        Sample(
            "prod",
            f"zeros at {_places}, axis",
            lambda x: pb.prod(x, axis=0),
            (_with_zeros(*_places),),
            torch=lambda x: x.prod(0),
        )
    )
    SAMPLES.append(
        Sample(
            "cumulative_prod",
            f"zeros at {_places}",
            lambda x: pb.cumulative_prod(x, axis=0),
            (_with_zeros(*_places),),
            torch=_cumprod,
        )
    )

SAMPLES += [
    Sample("cumulative_sum", "vector", pb.cumulative_sum, (numbers("cs", (4,)),), torch=lambda x: x.cumsum(0)),
    Sample(
        "cumulative_sum",
        "axis=0",
        lambda x: pb.cumulative_sum(x, axis=0),
        (numbers("cs0", (3, 2)),),
        torch=lambda x: x.cumsum(0),
    ),
    Sample(
        "cumulative_sum",
        "axis=1",
        lambda x: pb.cumulative_sum(x, axis=1),
        (numbers("cs1", (2, 3, 2)),),
        torch=lambda x: x.cumsum(1),
    ),
    Sample(
        "cumulative_sum",
        "include_initial",
        lambda x: pb.cumulative_sum(x, axis=-1, include_initial=True),
        (numbers("csi", (2, 3)),),
    ),
    Sample("cumulative_sum", "complex", pb.cumulative_sum, (plane("csc", (4,)),), torch=lambda x: x.cumsum(0)),
    Sample("cumulative_sum", "reverse", lambda x: TENSORS.cumulative_sum(x, (-1,), True), (numbers("csr", (2, 3)),)),
    *[
        Sample(
            name,
            case,
            lambda x, name=name, axis=axis: getattr(pb, name)(x, axis=axis),
            (numbers(name + case, (2, 3)),),
            torch=lambda x, name=name, axis=axis: getattr(x.ravel() if axis is None else x, name)(axis or 0),
            jax=_jax_running(name, axis),
        )
        for name in ("cumsum", "cumprod")
        for case, axis in (("flattened", None), ("axis=1", 1))
    ],
    *[
        Sample(
            name,
            "two axes",
            lambda x, name=name: getattr(pb, name)(x, axis=(0, 2), keepdims=True),
            (numbers(name, (2, 3, 2)),),
            torch=lambda x, name=name: getattr(x, name)((0, 2), keepdim=True),
        )
        for name in ("amax", "amin")
    ],
    *[
        Sample(
            "logcumsumexp",
            case,
            lambda x, axis=axis: pb.logcumsumexp(x, axis=axis),
            (numbers("lcse" + case, shape) * 2 + offset,),
            torch=lambda x, axis=axis: x.logcumsumexp(axis),
            jax=_jax_logcumsumexp(axis),
        )
        for case, shape, axis, offset in (
            ("vector", (6,), 0, 0.0),
            ("axis=0", (3, 2), 0, 0.0),
            ("axis=1, far", (2, 4, 2), 1, 800.0),
        )
    ],
    Sample("cumulative_prod", "vector", pb.cumulative_prod, (numbers("cp", (4,)),), torch=lambda x: x.cumprod(0)),
    Sample(
        "cumulative_prod",
        "axis=0",
        lambda x: pb.cumulative_prod(x, axis=0),
        (numbers("cp0", (3, 2)),),
        torch=lambda x: x.cumprod(0),
    ),
    Sample(
        "cumulative_prod",
        "axis=1",
        lambda x: pb.cumulative_prod(x, axis=1),
        (numbers("cp1", (2, 3, 2)),),
        torch=lambda x: x.cumprod(1),
    ),
    Sample(
        "cumulative_prod",
        "include_initial",
        lambda x: pb.cumulative_prod(x, axis=-1, include_initial=True),
        (numbers("cpi", (2, 3)),),
    ),
    Sample("cumulative_prod", "complex", pb.cumulative_prod, (plane("cpc", (4,)),), torch=lambda x: x.cumprod(0)),
    Sample("cumulative_prod", "reverse", lambda x: TENSORS.cumulative_prod(x, (-1,), True), (numbers("cpr", (2, 3)),)),
    Sample(
        "cumulative_prod",
        "exclusive",
        lambda x: TENSORS.cumulative_prod(x, (-2,), False, True),
        (numbers("cpe", (3, 2)),),
    ),
    Sample(
        "cumulative_prod",
        "reverse, exclusive",
        lambda x: TENSORS.cumulative_prod(x, (-2,), True, True),
        (numbers("cpre", (3, 2)),),
    ),
    Sample("cumulative_prod", "one element", pb.cumulative_prod, (numbers("cp one", (1,)),)),
    Sample(
        "recurrence",
        "forward",
        lambda x, a: TENSORS.recurrence(x, a, (-2,)),
        (numbers("rf1", (4, 2)), numbers("rf2", (4, 2))),
    ),
    Sample(
        "recurrence",
        "reverse",
        lambda x, a: TENSORS.recurrence(x, a, (-1,), True),
        (numbers("rr1", (2, 4)), numbers("rr2", (2, 4))),
    ),
    Sample(
        "recurrence",
        "zero factors",
        lambda x, a: TENSORS.recurrence(x, a, (-1,)),
        (numbers("rz", (3,)), np.asarray([1.0, 0.0, 2.0])),
    ),
    Sample("shift", "right", lambda x: TENSORS.shift(x, (-1,), 1), (numbers("sr", (2, 3)),)),
    Sample("shift", "left", lambda x: TENSORS.shift(x, (-2,), -2), (numbers("sl", (3, 2)),)),
    Sample("getitem", "diff", pb.diff, (numbers("diff", (2, 4)),), torch=lambda x: x.diff()),
    Sample(
        "getitem",
        "diff twice",
        lambda x: pb.diff(x, axis=0, n=2),
        (numbers("diff2", (4, 2)),),
        torch=lambda x: x.diff(n=2, dim=0),
    ),
    Sample(
        "concat",
        "diff, prepend and append",
        lambda x, a, b: pb.diff(x, prepend=a, append=b),
        (numbers("diff3", (3,)), numbers("pre", (1,)), numbers("app", (2,))),
    ),
    Sample("sort", "median of four", pb.median, (numbers("median", (4,)),)),
    Sample(
        "sort",
        "median, axis",
        lambda x: pb.median(x, axis=0, keepdims=True),
        (numbers("median0", (3, 2)),),
        torch=lambda x: x.median(0, keepdim=True).values,
    ),
    Sample(
        "astype", "sum in another dtype", lambda x: pb.sum(x, axis=0, dtype=pb.complex128), (numbers("dtype", (3, 2)),)
    ),
]
