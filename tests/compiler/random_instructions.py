"""Instructions chosen at random, of several kinds, for `programs.random_program`.

Numbers stay moderate, and what jumps (comparisons, rounding, integers made of floats, ...) is only applied to numbers
that are known exactly, so that two ways to run a program agree to a few digits wherever they round alike.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from pullback.compiler.program import Value
from pullback.dtypes import get, numpy_dtype

from .building import Builder
from .random_movement import LARGEST, gathering, indexing, movement

_SMOOTH = (
    "tanh", "sin", "cos", "sigmoid", "erf", "ndtr", "negative", "square", "abs", "atan", "asinh", "expm1", "exp",
    "positive",
)  # fmt: skip
_ONE_OF_POSITIVE = ("sqrt", "log", "log1p", "log2", "log10", "reciprocal")
_JUMPING = ("sign", "floor", "ceil", "round", "trunc", "isfinite", "isnan", "isinf", "signbit")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_SIZES = (1, 2, 3, 4, 5, 7, 8, 17, 33)


class RandomProgram(Builder):
    """Instructions chosen at random, of the kinds that are wanted."""

    def __init__(self, seed: int, depth: int, dtypes: tuple[str, ...], kinds: tuple[str, ...], special: bool) -> None:
        super().__init__(seed)
        self.dtypes = tuple(numpy_dtype(get(dtype)) for dtype in dtypes)
        self.pool: list[Value] = []
        axes = tuple(int(n) for n in self.random.choice(_SIZES, 3))
        if self.one_in(12):
            axes = (0, *axes[1:])
        for shape in (axes, axes[1:], axes[2:], (axes[0], 1, axes[2]), (), axes):
            self.pool.append(self.input(self.numbers(shape, self.any_of(self.dtypes), special), self.one_in(5)))
        self.pool.append(self.input(self.random.random(axes) < 0.5))
        choices = [KINDS[kind] for kind in kinds]
        while len(self.instructions) < depth:
            value = self.any_of(choices)(self)
            if value is not None:
                self.pool.append(self.moderate(value))

    def any_of(self, things: Any) -> Any:
        return things[int(self.random.integers(len(things)))]

    def one_in(self, n: int) -> bool:
        return bool(self.random.integers(n) == 0)

    def numbers(self, shape: tuple[int, ...], dtype: Any, special: bool = False) -> Any:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.random.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
        array = np.asarray(self.random.standard_normal(shape)).astype(dtype)
        if special and array.size:
            where = self.random.random(shape) < 0.15
            values = self.random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape).astype(dtype)
            array = np.where(where, values, array)
        return array

    def some(self, kinds: str = "fiubV", test: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the values so far of a kind of dtype, more likely one of the last."""
        fitting = [value for value in self.pool if value.dtype.kind in kinds and test(value)]
        return fitting[-1 - min(int(self.random.exponential(5)), len(fitting) - 1)] if fitting else None

    def floating(self, test: Callable[[Value], bool] = lambda value: True) -> Value | None:
        return self.some("fV", test)

    def partner(self, x: Value, kinds: str) -> Any:
        """An operand that fits `x`: another value, or a number."""
        if self.one_in(4) and x.dtype.kind in "fiu":
            return self.any_of([0.5, -1.5, 2.0, 1, 3, 1.0, 0.0]) if x.dtype.kind == "f" else self.any_of([0, 1, 2, 3])
        return self.some(kinds, lambda y: _fits(x, y)) or x

    def moderate(self, value: Value) -> Value:
        """`value`, scaled down where it has grown too large to be compared after more operations."""
        if value.dtype.kind not in "fV" or not value.size:
            return value
        array = np.abs(self.arrays[value].astype(np.float64))
        finite = array[np.isfinite(array)]
        if finite.size and finite.max() > 16:
            factor = 2.0 ** -math.ceil(math.log2(finite.max() / 8))
            return self.make(
                "multiply", value, factor if value.dtype.kind == "f" else self.input(np.asarray(factor, value.dtype))
            )
        return value


def _fits(x: Value, y: Value) -> bool:
    try:
        return math.prod(np.broadcast_shapes(x.shape, y.shape)) <= LARGEST
    except ValueError:
        return False


# -- one instruction of each kind (or a few): a value, or None where nothing fits -------------------


def _elementwise(b: RandomProgram) -> Value | None:
    x = b.floating()
    if x is None:
        return None
    which = b.random.integers(10)
    if which < 3:
        return b.make(b.any_of(_SMOOTH), x)
    if which == 3:
        return b.make(b.any_of(_ONE_OF_POSITIVE), b.make("add", b.make("square", x), _number(b, x, 0.5)))
    y = b.partner(x, "fV")
    if which < 8:
        op = b.any_of(["add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "hypot"])
        if x.dtype.kind == "V" and type(y) in (int, float):
            y = x
        return b.make(op, y, x) if type(y) is Value and b.one_in(2) else b.make(op, x, y)
    if which == 8:
        bottom = b.make("add", b.make("square", y if type(y) is Value else x), _number(b, x, 0.5))
        return b.make("divide", x, bottom) if b.one_in(2) else b.make("atan2", x, bottom)
    return b.make("pow", x, b.any_of([0, 1, 2, 3, 2.0])) if x.dtype.kind == "f" else None


def _number(b: RandomProgram, x: Value, number: float) -> Any:
    """A number next to `x`; bfloat16 needs an array of its own dtype."""
    return number if x.dtype.kind == "f" else b.input(np.asarray(number, x.dtype), True)


def _choice(b: RandomProgram) -> Value | None:
    """Comparisons, logic, `where`, rounding."""
    known = b.some("fiub", lambda v: v in b.exact)
    if known is None:
        return None
    which = b.random.integers(5)
    if which == 0 and known.dtype.kind == "f":
        return b.make(b.any_of(_JUMPING), known)
    if which < 3:
        other = b.some("fiu", lambda v: v in b.exact and _fits(known, v)) or known
        if known.dtype.kind == "b":
            return b.make("logical_not", known)
        return b.make(b.any_of(_COMPARISONS), known, other if b.one_in(2) else b.any_of([0, 1, 0.5]))
    condition = b.some("b")
    if condition is None:
        return None
    if which == 3:
        other = b.some("b", lambda v: _fits(condition, v)) or condition
        return b.make(
            b.any_of(["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_xor"]), condition, other
        )
    x = b.some("fV", lambda v: _fits(condition, v))
    if x is None:
        return None
    y = b.any_of([x, 0.0, 1.5]) if x.dtype.kind == "f" else x
    if b.one_in(2):
        y = b.some(x.dtype.kind, lambda v: _fits(_together(condition, x), v)) or y
    return b.make("where", condition, y, x) if b.one_in(2) else b.make("where", condition, x, y)


def _together(x: Value, y: Value) -> Value:
    return Value(np.broadcast_shapes(x.shape, y.shape), y.dtype)


def _integer(b: RandomProgram) -> Value | None:
    x = b.some("iu")
    if x is None:
        x = b.input(b.numbers(b.any_of(b.pool).shape, b.any_of(["int32", "int64", "uint8"])))
        b.pool.append(x)
    which = b.random.integers(4)
    if which == 0:
        return b.make(b.any_of(["negative", "abs", "square", "bitwise_invert", "floor", "isfinite"]), x)
    y = b.some("iu", lambda v: _fits(x, v) and v.dtype == x.dtype) or x
    if which == 1:
        return b.make(b.any_of(["remainder", "floor_divide"]), x, b.any_of([1, 2, 3, 5]))
    if which == 2:
        return b.make(b.any_of(["bitwise_left_shift", "bitwise_right_shift"]), x, b.any_of([0, 1, 2]))
    op = b.any_of(["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"])
    return b.make(op, x, y if b.one_in(2) else b.any_of([0, 1, 2]))


def _cast(b: RandomProgram) -> Value | None:
    dtype = b.any_of(b.dtypes)
    if dtype.kind in "iub":
        x = (
            b.some("iub")
            if b.one_in(2)
            else b.some("f", lambda v: v in b.exact and bool(np.isfinite(b.arrays[v]).all()))
        )
        if x is not None and dtype.kind == "u" and x.dtype.kind == "f":
            return None  # negative floats are converted as the machine likes
    else:
        x = b.some()
    return None if x is None else b.make("astype", x, dtype)


def _axis(b: RandomProgram, x: Value) -> Any:
    if x.ndim == 0 or b.one_in(3):
        return None
    count = int(b.random.integers(1, x.ndim + 1))
    return tuple(sorted(int(axis) - x.ndim for axis in b.random.choice(x.ndim, count, replace=False)))


def _reduction(b: RandomProgram) -> Value | None:
    x = b.some()
    if x is None or not x.size:
        return None if x is None else b.make("sum", x, _axis(b, x), b.one_in(2))
    keep = b.one_in(2)
    which = b.random.integers(6)
    if which < 3:
        total = b.make("sum", x, _axis(b, x), keep)
        return (
            b.make("divide", total, max(x.size // max(total.size, 1), 1))
            if b.one_in(2) and x.dtype.kind == "f"
            else total
        )
    if which == 3:
        return b.make(b.any_of(["max", "min"]), x, _axis(b, x), keep)
    if which == 4 and x in b.exact:
        return b.make(b.any_of(["any", "all", "count_nonzero"]), x, _axis(b, x), keep)
    if which == 5 and x in b.exact and x.ndim:
        return b.make(b.any_of(["argmax", "argmin"]), x, (-int(b.random.integers(1, x.ndim + 1)),), keep)
    return b.make("prod", b.make("tanh", x), _axis(b, x), keep) if x.dtype.kind == "f" else None


def _running(b: RandomProgram) -> Value | None:
    x = b.floating(lambda v: v.ndim > 0)
    if x is None:
        return None
    axis = (-int(b.random.integers(1, x.ndim + 1)),)
    if b.one_in(3):
        return b.make("shift", x, axis, b.any_of([-1, 1]))
    return b.make("cumulative_sum", x, axis, b.one_in(2))


def _matmul(b: RandomProgram) -> Value | None:
    x = b.floating(lambda v: v.ndim >= 1)
    if x is None:
        return None
    fitting = [
        y for y in b.pool
        if y.dtype == x.dtype and y.ndim and y.shape[-2 if y.ndim > 1 else -1] == x.shape[-1] and _product_fits(x, y)
    ]  # fmt: skip
    if fitting and b.one_in(2):
        product = b.make("matmul", x, b.any_of(fitting))
    elif x.ndim > 1:
        turned = b.make("matrix_transpose", x)
        product = b.make("matmul", turned, x) if b.one_in(2) else b.make("matmul", x, turned)
    else:
        product = b.make("matmul", x, x)
    product = b.make("matrix_transpose", product) if product.ndim > 1 and b.one_in(2) else product
    return b.make("multiply", product, 0.125) if x.dtype.kind == "f" else product


def _product_fits(x: Value, y: Value) -> bool:
    try:
        return np.matmul(np.empty(x.shape, bool), np.empty(y.shape, bool)).size <= LARGEST
    except ValueError:
        return False


def _creation(b: RandomProgram) -> Value | None:
    x = b.some()
    if x is None:
        return None
    dtype = b.any_of(b.dtypes)
    which = b.random.integers(5)
    if which == 0:
        return b.make("zeros", x.shape, dtype, x)
    if which == 1:
        return b.make(
            "full", x.shape, b.any_of([0, 1, 2, 3]) if dtype.kind != "f" else b.any_of([0.1, 1.0, -1.5]), dtype, x
        )
    if which == 2 and x.ndim and dtype.kind != "b":
        return b.make("arange", 0, x.shape[-1], 1, dtype, x)
    return b.make(b.any_of(["zeros_like", "ones_like"]), x)


def _noise(b: RandomProgram) -> Value | None:
    """What differentiation leaves behind: sums with zeros, products with ones, movements there and back."""
    x = b.some("f")
    if x is None:
        return None
    which = b.random.integers(10)
    if which == 0:
        return b.make("add", b.make("zeros_like", x), x)
    if which == 1:
        return b.make("multiply", b.make("ones_like", x), x)
    if which == 2:
        return b.make("negative", b.make("negative", x))
    if which == 3 and x.ndim > 1:
        return b.make("matrix_transpose", b.make("matrix_transpose", x))
    if which == 4 and x.size < LARGEST // 3:
        spread = b.make("broadcast_to", x, (3, *x.shape))
        return b.make(
            "sum", b.make("multiply", spread, b.any_of([0.5, 1.0])), tuple(range(-x.ndim - 1, -x.ndim)), False
        )
    if which == 5:
        return b.make("divide", x, b.any_of([1, 1.0, 2.0, 4, -1.0]))
    if which == 6:
        return b.make("add", x, b.make("negative", b.make("sin", x)))
    if which == 7:
        return b.make("astype", b.make("astype", x, np.dtype(np.float64)), x.dtype)
    if which == 8:
        total = b.make("sum", x, None, False)
        return b.make("broadcast_to", b.make("divide", total, max(x.size, 1)), x.shape)
    return b.make("reshape", b.make("reshape", x, (x.size,)), x.shape)


#: What a program may be made of.
KINDS: dict[str, Callable[[RandomProgram], Value | None]] = {
    "elementwise": _elementwise,
    "choice": _choice,
    "integer": _integer,
    "cast": _cast,
    "reduction": _reduction,
    "running": _running,
    "matmul": _matmul,
    "movement": movement,
    "indexing": indexing,
    "gathering": gathering,
    "creation": _creation,
    "noise": _noise,
}
