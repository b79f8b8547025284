"""Sums over rows, for every element of a row: in registers for short rows, else in memory of the thread's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..code import F64, I64, Code, constant, vector
from ..registers import FLOATS, from_memory, register_type, to_memory
from ..strided import load_lanes, store_lanes
from .accumulators import Reduction


@dataclass
class Place:
    """Where in a row: the index along its last axis, the linear one, and which lanes count."""

    index: Any
    linear: Any
    mask: Any
    vector: int = 0  # the vector's number, in a row written out vector by vector


class ColumnsInRegisters:
    """Sums over rows of a row's few vectors."""

    def __init__(self, sums: list[Reduction], dtype: str) -> None:
        self.sums = sums
        self.dtype = dtype
        self.two_level = any([one.two_level for one in sums])

    def begin(self, b: Any) -> None:
        for one in self.sums:
            one.begin(b)

    def take(self, b: Any, value: Any, place: Place) -> None:
        self.sums[place.vector].take(b, value, None)

    def fold(self, b: Any) -> None:
        for one in self.sums:
            one.fold(b)

    def lanes(self, b: Any, place: Place) -> Any:
        return self.sums[place.vector].lanes(b)


class ColumnsInMemory:
    """Sums over rows, one for each element of a row, in memory of the thread's own."""

    def __init__(self, code: Code, columns: int, width: int, dtype: str, first: Any, second: Any) -> None:
        self.code = code
        self.columns = columns
        self.width = width
        self.dtype = dtype
        self.first = first
        self.second = second
        self.two_level = second is not None

    def begin(self, b: Any) -> None:
        with self.code.loop(I64(0), I64(self.columns)) as (index,):
            b.store(constant(self.first.type.pointee, 0), b.gep(self.first, [index]))
            if self.second is not None:
                b.store(constant(F64, 0.0), b.gep(self.second, [index]))

    def take(self, b: Any, value: Any, place: Place) -> None:
        width = self.width
        if self.dtype == "bool":
            value = to_memory(b, value, "bool")
        before = load_lanes(b, self.first, place.linear, 1, width, place.mask)
        if self.dtype == "bool":
            after = b.or_(before, value)
        else:
            after = b.fadd(before, value) if self.dtype in FLOATS else b.add(before, value)
        store_lanes(b, after, self.first, place.linear, 1, place.mask)

    def fold(self, b: Any) -> None:
        columns, width = self.columns, self.width
        full = columns - columns % width

        def add(index: Any, lanes: int) -> None:
            block = load_lanes(b, self.first, index, 1, lanes)
            wide = block if self.dtype == "float64" else b.fpext(block, vector(F64, lanes))
            sums = b.fadd(load_lanes(b, self.second, index, 1, lanes), wide)
            store_lanes(b, sums, self.second, index, 1)
            store_lanes(b, constant(block.type, 0.0), self.first, index, 1)

        with self.code.loop(I64(0), I64(full), width) as (index,):
            add(index, width)
        with self.code.loop(I64(full), I64(columns)) as (index,):
            add(index, 1)

    def lanes(self, b: Any, place: Place) -> Any:
        width = self.width
        if self.second is None:
            value = load_lanes(b, self.first, place.linear, 1, width, place.mask)
            return from_memory(b, value, "bool") if self.dtype == "bool" else value
        value = load_lanes(b, self.second, place.linear, 1, width, place.mask)
        return value if self.dtype == "float64" else b.fptrunc(value, register_type(self.dtype, width))
