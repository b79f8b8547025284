"""Values in registers: of what type each dtype is computed, and how it comes from memory and goes back.

Booleans are one bit in registers and a byte in memory; float16 and bfloat16 are float32 in registers.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from .code import F32, I1, I8, I16, I32, STORED, constant, splat, vector
from .mathematics.operations import convert

#: Bytes of a vector register of this processor.
REGISTER_BYTES = 64 if llvm.get_host_cpu_features().get("avx512f") else 32
#: Types in registers by NumPy's dtype name.
REGISTER: dict[str, Any] = {**STORED, "bool": I1, "float16": F32, "bfloat16": F32}
HALVES = ("float16", "bfloat16")
FLOATS = ("float16", "bfloat16", "float32", "float64")


def register_type(dtype: str, width: int) -> Any:
    return vector(REGISTER[dtype], width)


def number(dtype: str, value: Any, width: int = 1) -> Any:
    """A number of a dtype, in every lane."""
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            value = float(np.float64(value) if dtype == "float64" else np.float32(value))
    else:
        value = int(value)
    return constant(register_type(dtype, width), value)


def lowest(dtype: str) -> Any:
    """The number below or equal to all others."""
    if dtype in FLOATS:
        return -np.inf
    return 0 if dtype == "bool" else np.iinfo(dtype).min


def highest(dtype: str) -> Any:
    """The number above or equal to all others."""
    if dtype in FLOATS:
        return np.inf
    return 1 if dtype == "bool" else np.iinfo(dtype).max


def spread(b: Any, value: Any, width: int) -> Any:
    """The value in `width` lanes, if it is not yet."""
    if width == 1 or isinstance(value.type, ir.VectorType):
        return value
    if isinstance(value, ir.Constant):
        return constant(ir.VectorType(value.type, width), value.constant)
    return splat(b, value, width)


def from_memory(b: Any, value: Any, dtype: str) -> Any:
    """What was loaded, as it is computed with."""
    kind = _like(value, REGISTER[dtype])
    if dtype == "bool":
        return b.icmp_unsigned("!=", value, constant(value.type, 0))
    if dtype == "float16":
        return b.fpext(value, kind)
    if dtype == "bfloat16":
        wide = b.zext(value, _like(value, I32))
        return b.bitcast(b.shl(wide, constant(wide.type, 16)), kind)
    return value


def to_memory(b: Any, value: Any, dtype: str) -> Any:
    """A computed value as it is stored, rounded to the nearest, halves to even."""
    if dtype == "bool":
        return b.zext(value, _like(value, I8))
    if dtype == "float16":
        return b.fptrunc(value, _like(value, STORED["float16"]))
    if dtype == "bfloat16":
        bits = b.bitcast(value, _like(value, I32))
        upper = b.lshr(bits, constant(bits.type, 16))
        odd = b.and_(upper, constant(bits.type, 1))
        rounded = b.lshr(b.add(bits, b.add(odd, constant(bits.type, 0x7FFF))), constant(bits.type, 16))
        quiet = b.or_(upper, constant(bits.type, 0x40))  # rounding could make an infinity of a NaN
        return b.trunc(b.select(b.fcmp_unordered("uno", value, value), quiet, rounded), _like(value, I16))
    return value


def converted(b: Any, value: Any, source: str, target: str) -> Any:
    """A value of one dtype as another; to half precision it is rounded, though it stays in a float32."""
    if source == target:
        return value
    value = convert(b, value, computed(source), computed(target))
    return from_memory(b, to_memory(b, value, target), target) if target in HALVES else value


def computed(dtype: str) -> str:
    """The dtype in which one is computed."""
    return "float32" if dtype in HALVES else dtype


def _like(value: Any, kind: Any) -> Any:
    return vector(kind, value.type.count) if isinstance(value.type, ir.VectorType) else kind
