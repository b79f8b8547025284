"""Conversion between dtypes, with NumPy's meaning.

Floating-point numbers lose their fraction on the way to integers. What does not fit (NaN and infinities too) gives what
x86's conversion gives and NumPy there: the least 32-bit number on the way to 32 bits and less, the least 64-bit
number on the way to uint32 and 64 bits, cut to the width of the result. LLVM itself leaves those open (poison).
"""

from __future__ import annotations

from llvmlite import ir

from ..code import I1, I32, I64, STORED
from .lanes import Lanes, select


def computation_type(dtype: str) -> ir.Type:
    """The type in which values of a dtype are computed: as stored, but bool has one bit."""
    return I1 if dtype == "bool" else STORED[dtype]


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def convert(b: ir.IRBuilder, value: ir.Value, source_dtype: str, target_dtype: str) -> ir.Value:
    """A value of one dtype as another: bool, integers, float32 and float64."""
    if source_dtype == target_dtype:
        return value
    x = Lanes(b, value)
    target = x.like(computation_type(target_dtype))
    if target_dtype == "bool":
        return (x != 0).value
    if is_float(source_dtype):
        if is_float(target_dtype):
            return b.fpext(value, target) if target_dtype == "float64" else b.fptrunc(value, target)
        return _to_integer(x, target_dtype).value
    if is_float(target_dtype):
        write = b.sitofp if is_signed(source_dtype) else b.uitofp
        return write(value, target)
    source_bits, target_bits = x.lane.width, computation_type(target_dtype).width
    if source_bits == target_bits:
        return value
    if source_bits > target_bits:
        return b.trunc(value, target)
    return b.sext(value, target) if is_signed(source_dtype) else b.zext(value, target)


def _to_integer(x: Lanes, dtype: str) -> Lanes:
    target = x.like(computation_type(dtype))
    if dtype == "uint64":
        beyond = x >= 2.0**63
        low = _truncate(select(beyond, x - 2.0**63, x), 64)
        return select(beyond, low ^ (-1 << 63), low)
    wide = _truncate(x, 64 if dtype in ("int64", "uint32") else 32)
    return wide if wide.type == target else Lanes(x.b, x.b.trunc(wide.value, target))


def _truncate(x: Lanes, bits: int) -> Lanes:
    """A signed integer of 32 or 64 bits; the least one for what does not fit."""
    limit = 2.0 ** (bits - 1)
    fits = (x >= -limit) & (x < limit)
    return Lanes(x.b, x.b.fptosi(select(fits, x, -limit).value, x.like(I32 if bits == 32 else I64)))
