"""Elementwise functions. Inputs broadcast; one of two may be a Python number."""

from __future__ import annotations

from typing import Any, Callable

from ..autodiff.apply import PYTHON_SCALARS, apply
from ..autodiff.fast import function_for
from ..errors import DtypeError
from ..operations import OPERATIONS
from ..tensor.core import Tensor
from .creation import asarray

__all__ = [
    "abs", "acos", "acosh", "add", "angle", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj",
    "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
    "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit", "sin",
    "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

Unary = Callable[[Any], Tensor]
Binary = Callable[[Any, Any], Tensor]


def _public(function: Any, name: str, sentence: str, example: str) -> Any:
    call, _, result = example.partition(" -> ")
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{sentence}\n\n>>> import pullback as pb\n>>> pb.{name}({call})\n{result}\n"
    return function


def _smooth(name: str, sentence: str, example: str) -> Any:
    """The function for an operation that has a gradient."""
    return _public(function_for(name), name, sentence, example)


def _unary(name: str, sentence: str, example: str) -> Unary:
    """The function for an operation without a gradient."""
    operation = OPERATIONS[name]
    return _public(lambda x, /: apply(operation, (x,)), name, sentence, example)


def _binary(name: str, sentence: str, example: str) -> Binary:
    operation = OPERATIONS[name]
    return _public(lambda x1, x2, /: apply(operation, (x1, x2)), name, sentence, example)


# arithmetic
add: Binary = _smooth("add", "x1 + x2.", "pb.asarray([1.0, 2.0]), 1.0 -> tensor([2., 3.])")
subtract: Binary = _smooth("subtract", "x1 - x2.", "pb.asarray([1.0, 2.0]), 1.0 -> tensor([0., 1.])")
multiply: Binary = _smooth("multiply", "x1 * x2.", "pb.asarray([1.0, 2.0]), 3.0 -> tensor([3., 6.])")
divide: Binary = _smooth("divide", "x1 / x2.", "pb.asarray([1.0, 2.0]), 2.0 -> tensor([0.5, 1. ])")
floor_divide: Binary = _smooth(
    "floor_divide",
    "The largest integer not above x1 / x2; its gradient is zero.",
    "pb.asarray([7, -7]), 2 -> tensor([ 3, -4])",
)
remainder: Binary = _smooth(
    "remainder", "x1 - x2 * floor_divide(x1, x2): it has the sign of x2.", "pb.asarray([7, -7]), 3 -> tensor([1, 2])"
)
pow: Binary = _smooth(
    "pow",
    "x1 ** x2; the gradient in x2 is zero where x1 is not positive.",
    "pb.asarray([2.0, 3.0]), 2.0 -> tensor([4., 9.])",
)
negative: Unary = _smooth("negative", "-x.", "pb.asarray([1.0, -2.0]) -> tensor([-1.,  2.])")
positive: Unary = _smooth("positive", "+x.", "pb.asarray([1.0, -2.0]) -> tensor([ 1., -2.])")
square: Unary = _smooth("square", "x * x.", "pb.asarray([1.0, -2.0]) -> tensor([1., 4.])")
sqrt: Unary = _smooth("sqrt", "The square root.", "pb.asarray([4.0, 9.0]) -> tensor([2., 3.])")
reciprocal: Unary = _smooth("reciprocal", "1 / x.", "pb.asarray([2.0, 4.0]) -> tensor([0.5 , 0.25])")

# exponentials and logarithms
exp: Unary = _smooth("exp", "e to the power x.", "pb.asarray([0.0]) -> tensor([1.])")
expm1: Unary = _smooth("expm1", "exp(x) - 1, exact for small x.", "pb.asarray([0.0]) -> tensor([0.])")
log: Unary = _smooth("log", "The natural logarithm.", "pb.asarray([1.0]) -> tensor([0.])")
log1p: Unary = _smooth("log1p", "log(1 + x), exact for small x.", "pb.asarray([0.0]) -> tensor([0.])")
log2: Unary = _smooth("log2", "The logarithm to base 2.", "pb.asarray([8.0]) -> tensor([3.])")
log10: Unary = _smooth("log10", "The logarithm to base 10.", "pb.asarray([10.0]) -> tensor([1.])")
logaddexp: Binary = _smooth(
    "logaddexp", "log(exp(x1) + exp(x2)), without overflow.", "pb.asarray([-pb.inf]), 2.0 -> tensor([2.])"
)

# trigonometry, in radians
sin: Unary = _smooth("sin", "The sine.", "pb.asarray([0.0]) -> tensor([0.])")
cos: Unary = _smooth("cos", "The cosine.", "pb.asarray([0.0]) -> tensor([1.])")
tan: Unary = _smooth("tan", "The tangent.", "pb.asarray([0.0]) -> tensor([0.])")
asin: Unary = _smooth("asin", "The inverse of the sine.", "pb.asarray([0.0]) -> tensor([0.])")
acos: Unary = _smooth("acos", "The inverse of the cosine.", "pb.asarray([1.0]) -> tensor([0.])")
atan: Unary = _smooth("atan", "The inverse of the tangent.", "pb.asarray([0.0]) -> tensor([0.])")
sinh: Unary = _smooth("sinh", "The hyperbolic sine.", "pb.asarray([0.0]) -> tensor([0.])")
cosh: Unary = _smooth("cosh", "The hyperbolic cosine.", "pb.asarray([0.0]) -> tensor([1.])")
tanh: Unary = _smooth("tanh", "The hyperbolic tangent.", "pb.asarray([0.0]) -> tensor([0.])")
asinh: Unary = _smooth("asinh", "The inverse of the hyperbolic sine.", "pb.asarray([0.0]) -> tensor([0.])")
acosh: Unary = _smooth("acosh", "The inverse of the hyperbolic cosine.", "pb.asarray([1.0]) -> tensor([0.])")
atanh: Unary = _smooth("atanh", "The inverse of the hyperbolic tangent.", "pb.asarray([0.0]) -> tensor([0.])")
atan2: Binary = _smooth(
    "atan2",
    "The angle of the point (x2, x1); its gradient at the origin is zero.",
    "pb.asarray([0.0]), 1.0 -> tensor([0.])",
)
hypot: Binary = _smooth(
    "hypot", "The length of (x1, x2); its gradient at the origin is zero.", "pb.asarray([3.0]), 4.0 -> tensor([5.])"
)

# absolute values, signs, rounding
abs: Unary = _smooth(
    "abs", "The absolute value; its gradient at zero is zero.", "pb.asarray([-1.0, 2.0]) -> tensor([1., 2.])"
)
sign: Unary = _smooth("sign", "-1, 0 or 1; x / abs(x) for complex x.", "pb.asarray([-3.0, 0.0]) -> tensor([-1.,  0.])")
copysign: Binary = _smooth(
    "copysign", "abs(x1) with the sign of x2.", "pb.asarray([1.0, 2.0]), -1.0 -> tensor([-1., -2.])"
)
floor: Unary = _smooth(
    "floor", "The largest integer not above x; its gradient is zero.", "pb.asarray([1.5]) -> tensor([1.])"
)
ceil: Unary = _smooth(
    "ceil", "The smallest integer not below x; its gradient is zero.", "pb.asarray([1.5]) -> tensor([2.])"
)
trunc: Unary = _smooth("trunc", "The integer part of x; its gradient is zero.", "pb.asarray([-1.5]) -> tensor([-1.])")
round: Unary = _smooth(
    "round",
    "The nearest integer, of two the even one; its gradient is zero.",
    "pb.asarray([0.5, 1.5]) -> tensor([0., 2.])",
)
nextafter: Binary = _smooth(
    "nextafter", "The number that follows x1 in the direction of x2.", "pb.asarray([0.0]), 0.0 -> tensor([0.])"
)
signbit: Unary = _unary(
    "signbit", "Whether the sign is negative, -0 included.", "pb.asarray([-0.0, 1.0]) -> tensor([ True, False])"
)

# complex numbers
conj: Unary = _smooth("conj", "The complex conjugate.", "pb.asarray([1.0 + 2.0j]) -> tensor([1.-2.j], dtype=complex64)")
real: Unary = _smooth("real", "The real part.", "pb.asarray([1.0 + 2.0j]) -> tensor([1.])")
imag: Unary = _smooth("imag", "The imaginary part.", "pb.asarray([1.0 + 2.0j]) -> tensor([2.])")


def angle(x: Any, /) -> Tensor:
    """The angle of a complex number in the plane, in radians; its gradient at zero is zero.

    >>> import pullback as pb
    >>> pb.angle(pb.asarray([1.0 + 0.0j]))
    tensor([0.])
    """
    x = asarray(x)
    return atan2(imag(x), real(x))


# the larger, the smaller, the nearest inside
maximum: Binary = _smooth(
    "maximum",
    "The larger one; where both are equal each has half the gradient.",
    "pb.asarray([1.0, 3.0]), 2.0 -> tensor([2., 3.])",
)
minimum: Binary = _smooth(
    "minimum",
    "The smaller one; where both are equal each has half the gradient.",
    "pb.asarray([1.0, 3.0]), 2.0 -> tensor([1., 2.])",
)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """The nearest value that is not below `min` and not above `max`; at a bound the gradient is that of `x`.

    >>> import pullback as pb
    >>> pb.clip(pb.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    x = asarray(x)
    if x.dtype.kind in ("complex", "bool"):
        raise DtypeError(f"clip: {x.dtype.name} has no order; expected a real tensor.")
    if min is None and max is None:
        return positive(x)
    if x.dtype.kind in ("int", "uint"):
        for bound in (min, max):
            if type(bound) in PYTHON_SCALARS and type(bound) is not int:
                raise DtypeError(f"clip: the bound {bound!r} is not an integer, the tensor is {x.dtype.name}.")
    return apply(OPERATIONS["clip"], (x, min, max))


# comparisons and tests
equal: Binary = _binary("equal", "x1 == x2.", "pb.asarray([1, 2]), 2 -> tensor([False,  True])")
not_equal: Binary = _binary("not_equal", "x1 != x2.", "pb.asarray([1, 2]), 2 -> tensor([ True, False])")
less: Binary = _binary("less", "x1 < x2.", "pb.asarray([1, 2]), 2 -> tensor([ True, False])")
less_equal: Binary = _binary("less_equal", "x1 <= x2.", "pb.asarray([1, 2]), 1 -> tensor([ True, False])")
greater: Binary = _binary("greater", "x1 > x2.", "pb.asarray([1, 2]), 1 -> tensor([False,  True])")
greater_equal: Binary = _binary("greater_equal", "x1 >= x2.", "pb.asarray([1, 2]), 2 -> tensor([False,  True])")
isfinite: Unary = _unary(
    "isfinite", "Whether neither infinite nor NaN.", "pb.asarray([1.0, pb.inf]) -> tensor([ True, False])"
)
isinf: Unary = _unary("isinf", "Whether infinite.", "pb.asarray([1.0, -pb.inf]) -> tensor([False,  True])")
isnan: Unary = _unary("isnan", "Whether NaN.", "pb.asarray([1.0, pb.nan]) -> tensor([False,  True])")

# logic and bits
logical_and: Binary = _binary(
    "logical_and", "Whether both are true.", "pb.asarray([True, False]), True -> tensor([ True, False])"
)
logical_or: Binary = _binary(
    "logical_or", "Whether one is true.", "pb.asarray([True, False]), False -> tensor([ True, False])"
)
logical_xor: Binary = _binary(
    "logical_xor", "Whether exactly one is true.", "pb.asarray([True, False]), True -> tensor([False,  True])"
)
logical_not: Unary = _unary("logical_not", "Whether false.", "pb.asarray([True, False]) -> tensor([False,  True])")
bitwise_and: Binary = _binary("bitwise_and", "The bits set in both.", "pb.asarray([6]), 3 -> tensor([2])")
bitwise_or: Binary = _binary("bitwise_or", "The bits set in one or both.", "pb.asarray([6]), 3 -> tensor([7])")
bitwise_xor: Binary = _binary("bitwise_xor", "The bits set in exactly one.", "pb.asarray([6]), 3 -> tensor([5])")
bitwise_invert: Unary = _unary("bitwise_invert", "All bits flipped.", "pb.asarray([0, 1]) -> tensor([-1, -2])")
bitwise_left_shift: Binary = _binary("bitwise_left_shift", "x1 * 2**x2.", "pb.asarray([1]), 3 -> tensor([8])")
bitwise_right_shift: Binary = _binary("bitwise_right_shift", "x1 // 2**x2.", "pb.asarray([8]), 3 -> tensor([1])")
