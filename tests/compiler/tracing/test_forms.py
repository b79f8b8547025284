"""The rules for shapes and dtypes say what examples of the kernels say."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.windows import Window
from pullback.compiler.program import Value
from pullback.compiler.tracing.forms import FORMS
from pullback.compiler.tracing.shapes import _by_example

#: bfloat16 is ml_dtypes's on NumPy.
_DTYPES: list[Any] = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)]
if find_spec("ml_dtypes") is not None:
    _DTYPES.append(pb.dtypes.numpy_dtype(pb.bfloat16))


def _attention(dtype: Any, needs: Any = None, mask: bool = False, heads: int = 2) -> tuple[Any, ...]:
    q, k, v = Value((3, 4, 5, 8), dtype), Value((3, heads, 7, 8), dtype), Value((3, heads, 7, 6), dtype)
    seen = Value((5, 7), np.bool_) if mask else None
    if needs is None:
        return q, k, v, seen, False, 0.5, 0.0, None, None
    out, lse = FORMS["attention"](q, k, v, None)
    return Value(*out), q, k, v, seen, Value(*out), Value(*lse), needs, False, 0.5, 0.0, None, None


CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("astype", (Value((3, 0, 2), np.float32), np.dtype(np.int8))),
    ("astype", (Value((), np.bool_), np.dtype(np.float64))),
    ("zeros_like", (Value((3, 1), np.complex64),)),
    ("ones_like", (Value((), np.int16),)),
    ("concat", ((Value((2, 3), np.float32), Value((2, 0), np.float32), Value((2, 4), np.float32)), -1)),
    ("concat", ((Value((2, 3), _DTYPES[-1]), Value((5, 3), _DTYPES[-1])), 0)),
    ("take", (Value((4, 5, 6), np.float32), Value((2, 3), np.int64), -2)),
    ("take", (Value((4, 5), np.float16), Value((), np.int32), 0)),
    ("take", (Value((4, 5), np.float16), Value((0,), np.int32), 1)),
    *[("attention", _attention(dtype, mask=mask)) for dtype in _DTYPES for mask in (False, True)],
    *[
        ("cross_entropy", (Value((6, 5), dtype), Value((6,), np.int64), None, -100, reduction, 0.0))
        for dtype in _DTYPES
        for reduction in ("mean", "sum", "none")
    ],
    *[
        ("attention_gradient", _attention(dtype, needs, heads=heads))
        for dtype in _DTYPES
        for needs in ((True, True, True, False), (False, True, False, False))
        for heads in (1, 4)
    ],
]


_WINDOWS = (
    Window(size=7, out=3, kernel=3, stride=2, padding=0, dilation=1),
    Window(size=6, out=6, kernel=3, stride=1, padding=1, dilation=1),
)
_GEOMETRY = ((2, 1), ((1, 0), (2, 2)), (1, 2), 2)  # stride, padding, dilation, groups


def _convolved(dtype: Any) -> list[tuple[str, tuple[Any, ...]]]:
    x, weight, bias = Value((2, 4, 9, 8), dtype), Value((6, 2, 3, 2), dtype), Value((6,), dtype)
    y = Value(*FORMS["convolution"](x, weight, *_GEOMETRY))
    return [
        ("convolution", (x, weight, *_GEOMETRY)),
        ("biased_convolution", (x, weight, bias, *_GEOMETRY)),
        ("convolution_input_gradient", (y, weight, (9, 8), *_GEOMETRY)),
        ("convolution_weight_gradient", (y, x, (3, 2), *_GEOMETRY)),
    ]


def _wide_ones(dtype: Any) -> list[tuple[str, tuple[Any, ...]]]:
    x, image = Value((3, 4, 5), dtype), Value((2, 3, 7, 6), dtype)
    return [
        ("sort", (x, (-1,), True)),
        ("argsort", (x, (0,))),
        ("cumulative_sum", (x, (-2,), True)),
        ("cumulative_prod", (x, (-3,), False, True)),
        ("recurrence", (x, Value((4, 5), dtype), (-2,), True)),
        ("ssm_scan", (x, Value((3, 1, 5), dtype), Value((3, 5), dtype), 1, False)),
        ("ssm_scan", (x, x, None, 1, True)),
        ("max_pool", (image, _WINDOWS)),
        ("pool_scatter", (Value((2, 3, 3, 6), dtype), Value((2, 3, 3, 6), np.int64), (7, 6))),
        ("take_transposed", (x, Value((4,), np.int64), 9, -2)),
        ("take_along_axis", (x, Value((3, 7, 5), np.int32), -2)),
        ("take_along_axis_transposed", (x, Value((3, 4, 5), np.int32), 7, -2)),
        ("put_along_axis", (x, Value((3, 2, 5), dtype), Value((3, 2, 5), np.int64), 1)),
        ("place", (Value((2, 5), dtype), (3, 4, 5), (1, slice(None, None, 2)))),
        ("roll", (x, (2,), (1,))),
        ("shift", (x, (-1,), 2)),
        ("tril", (x, 1)),
        ("triu", (x, -1)),
        *_convolved(dtype),
    ]


CASES += [case for dtype in _DTYPES for case in _wide_ones(dtype)]
CASES += [
    (op, (Value(shape, dtype),))
    for op in ("inv", "cholesky", "det")
    for shape in ((3, 3), (2, 4, 4))
    for dtype in (np.dtype(np.float32), np.dtype(np.complex128))
]
CASES += [
    ("solve", (Value((*batch, 3, 3), np.dtype(np.float64)), Value((*batch, 3, 5), np.dtype(np.float64))))
    for batch in ((), (2,))
]
CASES += [("sort", (Value((3,), np.dtype(np.int8)), (-1,))), ("argsort", (Value((3,), np.bool_), (-1,)))]


@pytest.mark.parametrize(("op", "args"), CASES)
def test_a_rule_says_what_an_example_says(op: str, args: tuple[Any, ...]) -> None:
    known = FORMS[op](*args)
    assert known is not None
    shown = _by_example(op, args)
    if op == "attention_gradient":  # the kernel may make what nobody needs
        shown = [part if needed else None for part, needed in zip(shown, args[7])]
    if op == "cross_entropy":  # NumPy's kernel keeps the logarithms of denominators wider than those of GPUs do
        shown[1] = (shown[1][0], known[1][1])
    assert _listed(known) == _listed(shown)


def _listed(form: Any) -> Any:
    return [_listed(part) for part in form] if isinstance(form, list) else form


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("concat", ((Value((2, 3), np.float32), Value((2, 3), np.float64)), 0)),
        ("concat", ((Value((2, 3), np.float32), Value((3, 4), np.float32)), 0)),
        ("cumulative_sum", (Value((3,), np.dtype(np.int8)), (-1,))),
        ("take_along_axis", (Value((3, 4), np.float32), Value((1, 4), np.int64), 1)),
        ("take_along_axis_transposed", (Value((3, 1), np.float32), Value((3, 4), np.int64), 9, 1)),
        ("inv", (Value((3, 4), np.dtype(np.float32)),)),
        ("recurrence", (Value((3,), np.dtype(np.float32)), Value((3,), np.dtype(np.float64)), (-1,))),
        ("convolution", (Value((0, 4, 9, 8), np.float32), Value((6, 2, 3, 2), np.float32), *_GEOMETRY)),
        ("take", (Value((0, 5), np.float32), Value((2,), np.int64), 0)),
        ("attention", (Value((2, 3, 4), np.float32), Value((3, 4), np.float32), Value((3, 4), np.float32), None)),
    ],
)
def test_what_is_not_simple_is_left_to_the_kernel(op: str, args: tuple[Any, ...]) -> None:
    assert FORMS[op](*args) is None


def test_tracing_what_is_far_too_large_takes_no_memory() -> None:
    weight = pb.tensor(np.ones(1), requires_grad=True)

    @pb.compile
    def step(x: Any) -> Any:
        grown = pb.cumulative_sum(pb.sort(x[:, None] * weight + x, axis=-1), axis=0)
        return pb.backward(pb.sum(pb.linalg.cholesky(grown) * grown))[weight]

    assert step.plan_on("torch:cuda", pb.asarray(np.ones(1 << 17)))["arena"] > 1 << 37
