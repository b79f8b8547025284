"""The scalar operations of loops as LLVM code: one element, or one vector of them.

Operations have the names and the meaning of NumPy's elementwise kernels. Operands are in computation types: bool is i1,
other dtypes are as in memory; float16 and bfloat16 are float32 here, converted before and after. Long functions become
functions of their module, written once and called; float32 ones that are rarely used are computed in float64.
"""

from __future__ import annotations

from typing import Callable, Sequence

from llvmlite import ir

from ..code import F32, F64, I1
from . import arithmetic, error_function, exponentials, inverse_trigonometry, logarithms, power, trigonometry
from .conversion import convert, is_float, is_signed
from .lanes import Lanes, copysign, outlined, select, sqrt

__all__ = ["SUPPORTED", "convert", "scalar_operation", "supports"]

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_FLOATS = frozenset({"float32", "float64"})
_NUMBERS = _INTEGERS | _FLOATS
_ALL = _NUMBERS | {"bool"}

_Unary = Callable[[Lanes], Lanes]

#: Written where they are used, in the precision of the operand.
_INLINE: dict[str, _Unary] = {
    "exp": exponentials.exp,
    "expm1": exponentials.expm1,
    "sigmoid": exponentials.sigmoid,
    "tanh": exponentials.tanh,
    "log": logarithms.log,
    "log1p": logarithms.log1p,
    "erf": error_function.erf,
    "ndtr": error_function.ndtr,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "sqrt": sqrt,
    "floor": lambda x: x.call("floor"),
    "ceil": lambda x: x.call("ceil"),
    "trunc": lambda x: x.call("trunc"),
    "round": lambda x: x.call("roundeven"),
}

#: Of those, what is not short in float64 and so is a function of the module there.
_LONG_IN_DOUBLE = frozenset({"erf", "ndtr", "tanh", "log1p"})

#: Computed in float64, each a function of the module.
_OUTLINED: dict[str, Callable[..., Lanes]] = {
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "logaddexp": logarithms.logaddexp,
    "tan": trigonometry.tan,
    "asin": inverse_trigonometry.asin,
    "acos": inverse_trigonometry.acos,
    "atan": inverse_trigonometry.atan,
    "atan2": inverse_trigonometry.atan2,
    "hypot": inverse_trigonometry.hypot,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "asinh": logarithms.asinh,
    "acosh": logarithms.acosh,
    "atanh": logarithms.atanh,
    "erfc": error_function.erfc,
}

_RELATIONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_ROUNDING = ("floor", "ceil", "trunc", "round")

#: The dtypes that an operation's operands may have (`where`: other than its condition).
SUPPORTED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_INLINE, _FLOATS),
    **dict.fromkeys(_OUTLINED, _FLOATS),
    **dict.fromkeys(("add", "multiply", "maximum", "minimum", "abs", "where", *_RELATIONS), _ALL),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not", *_ROUNDING), _ALL),
    **dict.fromkeys(("isfinite", "isnan", "isinf"), _ALL),
    **dict.fromkeys(("subtract", "negative", "positive", "square", "reciprocal", "sign"), _NUMBERS),
    **dict.fromkeys(("remainder", "floor_divide", "pow"), _NUMBERS),
    **dict.fromkeys(("divide", "signbit", "copysign", "nextafter"), _FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), _INTEGERS | {"bool"}),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _INTEGERS),
}


def supports(op: str, operand_dtypes: Sequence[str], dtype: str, exponent: int | None = None) -> bool:
    """Whether `scalar_operation` writes this.

    A signed integer raised to a signed integer is an error in NumPy if the exponent is negative, which no loop can
    raise: it is supported for an `exponent` known to be one that is not.
    """
    if op == "where":
        return tuple(operand_dtypes) == ("bool", dtype, dtype) and dtype in _ALL
    if op not in SUPPORTED or (len(set(operand_dtypes)) != 1 and not op.startswith("logical_")):
        return False
    if op == "pow" and is_signed(operand_dtypes[0]) and (exponent is None or exponent < 0):
        return False
    return all(operand in SUPPORTED[op] for operand in operand_dtypes) and dtype in _ALL


def scalar_operation(
    b: ir.IRBuilder, op: str, operands: list[ir.Value], dtype: str, operand_dtypes: list[str]
) -> ir.Value:
    """An operation's result, of type `dtype`, for operands that all are scalars or vectors of the same width.

    Operands have been converted to their common dtype (`where`'s condition is a bool; logical operations take any).
    """
    x, *others = (Lanes(b, operand) for operand in operands)
    kind = operand_dtypes[-1]
    if is_float(kind):
        result = _on_floats(op, x, others)
    else:
        result = _on_integers(op, kind, x, others)
    return result.value


def _on_any(op: str, signed: bool, x: Lanes, others: list[Lanes]) -> Lanes | None:
    """What integers and floating-point numbers have in common."""
    if op in _RELATIONS:
        return x.compare(_RELATIONS[op], others[0], signed)
    if op.startswith("logical_"):
        x, *others = (arithmetic.truth(operand) for operand in (x, *others))
    match op:
        case "logical_not":
            return ~x
        case "logical_and":
            return x & others[0]
        case "logical_or":
            return x | others[0]
        case "logical_xor":
            return x ^ others[0]
        case "where":
            return select(x, *others)
        case "add":
            return x + others[0]
        case "subtract":
            return x - others[0]
        case "multiply":
            return x * others[0]
        case "square":
            return x * x
        case "negative":
            return -x
        case "positive":
            return x
        case "abs":
            return arithmetic.absolute(x, signed)
        case "sign":
            return arithmetic.sign(x, signed)
        case "maximum":
            return arithmetic.maximum(x, others[0], signed)
        case "minimum":
            return arithmetic.minimum(x, others[0], signed)
    return None


def _on_floats(op: str, x: Lanes, others: list[Lanes]) -> Lanes:
    common = _on_any(op, True, x, others)
    if common is not None:
        return common
    if op in _INLINE:
        return outlined(op, _INLINE[op], x) if op in _LONG_IN_DOUBLE and x.lane == F64 else _INLINE[op](x)
    if op in _OUTLINED:
        if x.lane == F32:
            return _outlined(op, x.widen(), *(other.widen() for other in others)).narrow()
        return _outlined(op, x, *others)
    match op:
        case "reciprocal":
            return 1.0 / x
        case "divide":
            return x / others[0]
        case "pow":
            return power.power(x, others[0])
        case "remainder":
            return arithmetic.float_remainder(x, others[0])
        case "floor_divide":
            return arithmetic.float_floor_divide(x, others[0])
        case "copysign":
            return copysign(x, others[0])
        case "nextafter":
            return arithmetic.nextafter(x, others[0])
        case "signbit":
            return arithmetic.sign_bit(x)
        case "isnan":
            return x.is_nan()
        case "isinf":
            return abs(x) == float("inf")
        case "isfinite":
            return abs(x) < float("inf")
    raise NotImplementedError(f"{op} of floating-point numbers has no native form")


def _outlined(op: str, *operands: Lanes) -> Lanes:
    function = _OUTLINED[op]
    return function(*operands) if op == "tan" else outlined(op, function, *operands)


def _on_integers(op: str, dtype: str, x: Lanes, others: list[Lanes]) -> Lanes:
    if dtype == "bool" and op in _OF_BOOLS:
        op = _OF_BOOLS[op]
    signed = is_signed(dtype)
    common = _on_any(op, signed, x, others)
    if common is not None:
        return common
    match op:
        case "reciprocal":  # as NumPy: of zero it is what infinity becomes
            inverse = 1.0 / Lanes(x.b, convert(x.b, x.value, dtype, "float64"))
            return Lanes(x.b, convert(x.b, inverse.value, "float64", dtype))
        case "floor_divide":
            return arithmetic.integer_divide(x, others[0], signed)[0]
        case "remainder":
            return arithmetic.integer_divide(x, others[0], signed)[1]
        case "pow":
            return power.integer_power(x, others[0], signed)
        case "bitwise_and":
            return x & others[0]
        case "bitwise_or":
            return x | others[0]
        case "bitwise_xor":
            return x ^ others[0]
        case "bitwise_invert":
            return ~x
        case "bitwise_left_shift":
            return arithmetic.left_shift(x, others[0])
        case "bitwise_right_shift":
            return arithmetic.right_shift(x, others[0], signed)
        case "floor" | "ceil" | "trunc" | "round":
            return x
        case "isfinite" | "isnan" | "isinf":
            kind = x.like(I1)
            return Lanes(x.b, ir.Constant(kind, [op == "isfinite"] * x.width if x.width > 1 else op == "isfinite"))
    raise NotImplementedError(f"{op} of {dtype} has no native form")


#: NumPy's arithmetic of truth values.
_OF_BOOLS = {
    "add": "bitwise_or", "multiply": "bitwise_and", "abs": "positive",
    "maximum": "bitwise_or", "minimum": "bitwise_and",
}  # fmt: skip
