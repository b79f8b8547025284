"""Reductions while a loop runs: running values in registers, and what is made of them at the end.

Sums of floating-point numbers are kept in two levels, for errors that hardly grow with the number of elements: lanes
add up blocks of some hundred elements, and blocks are added in float64. A block ends with `fold`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..code import F64, I1, constant, vector
from ..registers import FLOATS, highest, lowest, number, register_type

#: Additions in a row to one lane before the sum goes to the second level.
BLOCK = 128


def kind_of(op: str) -> str:
    """ "sum", "max", ... of "row_sum", "total_max", ..."""
    return op.split("_")[1]


def effective(kind: str, dtype: str) -> str:
    """The same reduction under one name: of booleans all are "any" or "all"."""
    if dtype != "bool":
        return kind
    return {"sum": "any", "max": "any", "prod": "all", "min": "all"}.get(kind, kind)


def identity(kind: str, dtype: str) -> Any:
    """What a reduction of nothing gives."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    return lowest(dtype) if kind == "max" else highest(dtype)


class Reduction:
    """A running reduction of `width` lanes; `two_level` where more than a block is added up."""

    def __init__(self, b: Any, kind: str, dtype: str, width: int, two_level: bool) -> None:
        self.kind = effective(kind, dtype)
        self.dtype = dtype
        self.width = width
        self.two_level = two_level and self.kind == "sum" and dtype in FLOATS
        self.start = number(dtype, identity(self.kind, dtype), width)
        self.value = slot(b, register_type(dtype, width))
        self.total = slot(b, vector(F64, width)) if self.two_level else None
        # A comparison with NaN is false, so that maxima pass over NaN: whether there was one is kept beside them.
        watches = self.kind in ("max", "min") and dtype in FLOATS
        self.unordered = slot(b, vector(I1, width)) if watches else None

    def begin(self, b: Any) -> None:
        b.store(self.start, self.value)
        if self.total is not None:
            b.store(constant(vector(F64, self.width), 0.0), self.total)
        if self.unordered is not None:
            b.store(constant(vector(I1, self.width), 0), self.unordered)

    def take(self, b: Any, value: Any, mask: Any) -> None:
        """Take in one value per lane; where `mask` is false, none."""
        if mask is not None:
            value = b.select(mask, value, self.start)
        if self.unordered is not None:
            b.store(b.or_(b.load(self.unordered), b.fcmp_unordered("uno", value, value)), self.unordered)
        b.store(self._combined(b, b.load(self.value), value), self.value)

    def fold(self, b: Any) -> None:
        """End a block."""
        if self.total is not None:
            block = b.load(self.value)
            wide = b.fpext(block, vector(F64, self.width)) if self.dtype != "float64" else block
            b.store(b.fadd(b.load(self.total), wide), self.total)
            b.store(self.start, self.value)

    def lanes(self, b: Any) -> Any:
        """The result in each lane."""
        self.fold(b)
        if self.total is not None:
            value = b.load(self.total)
            return value if self.dtype == "float64" else b.fptrunc(value, self.start.type)
        value = b.load(self.value)
        if self.unordered is not None:
            value = b.select(b.load(self.unordered), number(self.dtype, np.nan, self.width), value)
        return value

    def result(self, b: Any) -> Any:
        """The result over all lanes."""
        if self.width == 1:
            return self.lanes(b)
        self.fold(b)
        if self.total is not None:
            value = across(b, "fadd", b.load(self.total))
            return value if self.dtype == "float64" else b.fptrunc(value, register_type(self.dtype, 1))
        value = across(b, self._across(), b.load(self.value))
        if self.unordered is not None:
            value = b.select(across(b, "or", b.load(self.unordered)), number(self.dtype, np.nan), value)
        return value

    def _combined(self, b: Any, x: Any, y: Any) -> Any:
        if self.kind == "any":
            return b.or_(x, y)
        if self.kind == "all":
            return b.and_(x, y)
        real = self.dtype in FLOATS
        if self.kind == "sum":
            return b.fadd(x, y) if real else b.add(x, y)
        if self.kind == "prod":
            return b.fmul(x, y) if real else b.mul(x, y)
        sign = ">" if self.kind == "max" else "<"
        if real:
            better = b.fcmp_ordered(sign, y, x)
        else:
            compare = b.icmp_unsigned if self.dtype.startswith("u") else b.icmp_signed
            better = compare(sign, y, x)
        return b.select(better, y, x)

    def _across(self) -> str:
        if self.kind in ("any", "all"):
            return "or" if self.kind == "any" else "and"
        if self.kind in ("sum", "prod"):
            name = {"sum": "add", "prod": "mul"}[self.kind]
            return "f" + name if self.dtype in FLOATS else name
        letter = "f" if self.dtype in FLOATS else "u" if self.dtype.startswith("u") else "s"
        return letter + self.kind


def slot(b: Any, kind: Any) -> Any:
    """A variable: memory of the function's own, which the optimiser turns into a register."""
    with b.goto_entry_block():
        return b.alloca(kind)


def across(b: Any, name: str, value: Any) -> Any:
    """A vector's lanes reduced to one value by LLVM's `llvm.vector.reduce.<name>`."""
    kind = value.type
    element = {"float": "f32", "double": "f64"}.get(str(kind.element), str(kind.element))
    full = f"llvm.vector.reduce.{name}.v{kind.count}{element}"
    arguments = [value]
    flags: tuple[str, ...] = ()
    if name in ("fadd", "fmul"):
        arguments = [ir.Constant(kind.element, 0.0 if name == "fadd" else 1.0), value]
        flags = ("reassoc",)  # in pairs, rather than lane after lane
    elif name in ("fmax", "fmin"):
        flags = ("nnan",)  # running maxima are never NaN: see `Reduction.unordered`
    function = b.module.globals.get(full)
    if function is None:
        signature = ir.FunctionType(kind.element, [argument.type for argument in arguments])
        function = ir.Function(b.module, signature, full)
    return b.call(function, arguments, fastmath=flags)
