"""The scalar operations of loops as expressions of Triton's language, with NumPy's meaning.

Numbers of half precision are computed in float32 and stay so from step to step. They are rounded where they are
written or become numbers of another dtype, and where rounding decides what comes out: before comparisons and steps
like `floor`.
"""

from __future__ import annotations

from math import isinf, isnan
from typing import Any

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_HALF = frozenset(("float16", "bfloat16"))
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}

#: Functions of one number or two in CUDA's mathematics library, under its names.
_LIBRARY = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "sin": "sin",
    "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "hypot": "hypot",
    "erf": "erf", "erfc": "erfc", "trunc": "trunc", "round": "rint", "floor": "floor", "ceil": "ceil", "pow": "pow",
    "copysign": "copysign", "nextafter": "nextafter", "ndtr": "normcdf",
}  # fmt: skip
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "logical_and": "&", "logical_or": "|", "logical_xor": "^",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
_OF_FLOATS = frozenset(("sign", "sigmoid", "logaddexp", "remainder", "floor_divide"))
#: What jumps: operands that differ by less than they are rounded by can have different results.
STEPS = frozenset(
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "floor", "ceil", "trunc", "round", "sign")
) | frozenset(("floor_divide", "remainder", "isfinite", "isinf", "nextafter"))
_SHIFTS = frozenset(("bitwise_left_shift", "bitwise_right_shift"))


def computed_in(dtype: str) -> str:
    """The dtype in which numbers of a dtype are computed."""
    return "float32" if dtype in _HALF else dtype


def type_name(dtype: str) -> str:
    """Triton's name of a dtype."""
    return "tl.int1" if dtype == "bool" else f"tl.{dtype}"


def number(value: Any, dtype: str) -> str:
    """A number as a block of one element."""
    text = repr(value)
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        text = f'float("{value}")'
    elif dtype == "bool":
        text = str(int(value))
    return f"tl.full((1, 1), {text}, {type_name(computed_in(dtype))})"


def rounded(x: str, dtype: str) -> str:
    """A value of half precision, still in float32, as it would be read from memory."""
    return f"{x}.to({type_name(dtype)}).to(tl.float32)" if dtype in _HALF else x


def converted(x: str, source: str, target: str) -> str:
    """A value of one dtype, rounded to it, as another. One of half precision is not rounded yet."""
    if source == target or computed_in(source) == computed_in(target):
        return x
    if target == "bool":
        return f"({x} != 0)"
    if target in _HALF:
        return f"{x}.to(tl.float32)"
    if source in _FLOATS and target not in _FLOATS and target != "int64":
        wide = "tl.uint64" if target == "uint64" else "tl.int64"
        x = f"{x}.to({wide})"
    return f"{x}.to({type_name(target)})"


def stored(x: str, source: str, target: str) -> str:
    """A value as it is written to memory of a dtype."""
    if target in _HALF or source != target:
        return f"{x}.to({type_name(target)})"
    return x


def expression(op: str, operands: list[str], dtype: str, exponent: Any = None) -> str:
    """An operation on operands of `dtype` (`where`: its condition is a bool)."""
    x, *others = operands
    y = others[0] if others else ""
    is_float = dtype in _FLOATS
    match op:
        case "where":
            return f"tl.where({x}, {others[0]}, {others[1]})"
        case "logical_not":
            return f"({x} == 0)"
        case "bitwise_invert":
            return f"(~{x})"
        case "square":
            return f"({x} * {x})"
        case "positive":
            return x
        case "negative":
            return f"(0 - {x})" if dtype.startswith("uint") else f"(-{x})"
        case "abs":
            return x if dtype == "bool" or dtype.startswith("uint") else f"tl.abs({x})"
        case "maximum" | "minimum":
            combined = "larger" if op == "maximum" else "smaller"
            return f"f.{combined}({x}, {y})" if is_float else f"tl.{op}({x}, {y})"
        case "isnan":
            return f"({x} != {x})"
        case "isinf":
            return f'(tl.abs({x}) == float("inf"))'
        case "isfinite":
            return f'(tl.abs({x}) < float("inf"))'
        case "signbit":
            return f"(libdevice.signbit({x}) != 0)"
        case "divide":
            return f"({x} / {y})" if dtype == "float64" else f"tl.div_rn({x}, {y})"
        case "reciprocal":
            return f"(1.0 / {x})" if dtype == "float64" else f"tl.div_rn(tl.full({x}.shape, 1.0, tl.float32), {x})"
        case "sqrt":
            return f"tl.sqrt({x})" if dtype == "float64" else f"tl.sqrt_rn({x})"
    if op in _INFIX:
        return f"({x} {_INFIX[op]} {y})"
    if is_float:
        if op in _OF_FLOATS:
            return f"f.{op}({', '.join(operands)})"
        return f"libdevice.{_LIBRARY[op]}({', '.join(operands)})"
    if op in ("floor", "ceil", "trunc", "round"):
        return x
    if op == "sign":
        return f"({x} > 0).to({type_name(dtype)})" if dtype.startswith("uint") else f"f.sign({x})"
    if op == "floor_divide":
        return f"f.integer_quotient({x}, {y})"
    if op == "remainder":
        return f"f.integer_remainder({x}, {y})"
    if op == "pow":
        bits = exponent.bit_length() if type(exponent) is int else _BITS[dtype]
        return f"f.integer_power({x}, {y}, {max(bits, 1)})"
    if op in _SHIFTS:
        name = op.removeprefix("bitwise_")
        unsigned = "unsigned_" if name == "right_shift" and dtype.startswith("uint") else ""
        return f"f.{unsigned}{name}({x}, {y}, {_BITS[dtype]})"
    raise NotImplementedError(f"{op} of {dtype} has no form in Triton")
