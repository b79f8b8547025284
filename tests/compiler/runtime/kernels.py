"""Small kernels to test the runtime with, and schedules made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from pullback.targets.kernels import Buffer, Call, Location, Schedule
from pullback.targets.llvm.code import F64, I64, Code, Emitted, load, store
from pullback.targets.llvm.runtime.executable import Executable


@dataclass(frozen=True)
class Affine:
    """y = x * factor + shift over n float64; the cost is whatever the test says."""

    n: int
    factor: float
    shift: float
    cost: float = 1.0
    grain: int = 1


@dataclass(frozen=True)
class Twice:
    """y[i] = 2 * x[i], by way of scratch memory."""

    n: int
    cost: float = 1.0


@dataclass(frozen=True)
class ScratchPlaces:
    """Writes the address of its scratch memory, as an int64, to each of n words."""

    n: int
    scratch: int
    cost: float = 1.0


@dataclass(frozen=True)
class Total:
    """The sum of n float64."""

    n: int
    cost: float = 1.0
    dtype: str = "float64"


@dataclass(frozen=True)
class Columns:
    """The sums of the columns of a matrix of float64."""

    rows: int
    columns: int
    cost: float = 1.0
    dtype: str = "float64"


@dataclass(frozen=True)
class Moments:
    """The sum of n float64, and that of their squares."""

    n: int
    cost: float = 1.0
    dtype: str = "float64"


@dataclass(frozen=True)
class Parts:
    """Writes the number of the part that does it to each of n float64."""

    n: int
    cost: float = 1.0
    grain: int = 1


@dataclass(frozen=True)
class Reversed:
    """y[i] = x[n - 1 - i]: what a part reads was written by another."""

    n: int
    cost: float = 1.0


def emit(module: ir.Module, name: str, kernel: Any) -> Emitted:
    code = Code(module, name)
    b = code.b
    partials: tuple[tuple[int, int, str], ...] = ()
    units, scratch = getattr(kernel, "n", 0), 0
    if isinstance(kernel, Affine):
        x, y = code.pointer(0, "float64"), code.pointer(1, "float64")
        with code.loop(code.begin, code.end) as (i,):
            store(b, b.fadd(b.fmul(load(b, x, i, 1, 8), F64(kernel.factor)), F64(kernel.shift)), y, i, 8)
    elif isinstance(kernel, Twice):
        x, y = code.pointer(0, "float64"), code.pointer(1, "float64")
        scratch = 8 * kernel.n
        own = b.bitcast(code.scratch, F64.as_pointer())
        with code.loop(code.begin, code.end) as (i,):
            store(b, load(b, x, i, 1, 8), own, b.sub(i, code.begin), 8)
        with code.loop(code.begin, code.end) as (i,):
            value = load(b, own, b.sub(i, code.begin), 1, 8)
            store(b, b.fadd(value, value), y, i, 8)
    elif isinstance(kernel, ScratchPlaces):
        y = code.pointer(0, "int64")
        scratch = kernel.scratch
        with code.loop(code.begin, code.end) as (i,):
            store(b, b.ptrtoint(code.scratch, I64), y, i, 8)
    elif isinstance(kernel, Total):
        x, y = code.pointer(0, "float64"), code.pointer(1, "float64")
        with code.loop(code.begin, code.end, 1, F64(0.0)) as (i, total):
            code.again(b.fadd(total, load(b, x, i, 1, 8)))
        store(b, code.results[0], y, code.part, 8)
        partials = ((1, 8, "sum"),)
    elif isinstance(kernel, Moments):
        x, y, z = (code.pointer(number, "float64") for number in range(3))
        with code.loop(code.begin, code.end, 1, F64(0.0), F64(0.0)) as (i, total, squares):
            value = load(b, x, i, 1, 8)
            code.again(b.fadd(total, value), b.fadd(squares, b.fmul(value, value)))
        store(b, code.results[0], y, code.part, 8)
        store(b, code.results[1], z, code.part, 8)
        partials = ((1, 8, "sum"), (2, 8, "sum"))
    elif isinstance(kernel, Columns):
        x, y = code.pointer(0, "float64"), code.pointer(1, "float64")
        own = b.gep(y, [b.mul(code.part, I64(kernel.columns))])
        with code.loop(I64(0), I64(kernel.columns)) as (j,):
            store(b, F64(0.0), own, j, 8)
        with code.loop(code.begin, code.end) as (i,):
            row = b.mul(i, I64(kernel.columns))
            with code.loop(I64(0), I64(kernel.columns)) as (j,):
                store(b, b.fadd(load(b, own, j, 1, 8), load(b, x, b.add(row, j), 1, 8)), own, j, 8)
        partials, units = ((1, 8 * kernel.columns, "sum"),), kernel.rows
    elif isinstance(kernel, Parts):
        y = code.pointer(0, "float64")
        with code.loop(code.begin, code.end) as (i,):
            store(b, b.sitofp(code.part, F64), y, i, 8)
    elif isinstance(kernel, Reversed):
        x, y = code.pointer(0, "float64"), code.pointer(1, "float64")
        with code.loop(code.begin, code.end) as (i,):
            store(b, load(b, x, b.sub(I64(kernel.n - 1), i), 1, 8), y, i, 8)
    code.end_function()
    return Emitted(name, units, kernel.cost, getattr(kernel, "grain", 1), scratch, partials)


class Builder:
    """A schedule of float64 arrays, each by its number of elements."""

    def __init__(self) -> None:
        self.schedule = Schedule([], [], [], [], 0)

    def input(self, n: int) -> Buffer:
        self.schedule.inputs.append(Buffer("input", len(self.schedule.inputs), 8 * n))
        return self.schedule.inputs[-1]

    def output(self, n: int) -> Buffer:
        self.schedule.outputs.append(Buffer("output", len(self.schedule.outputs), 8 * n))
        return self.schedule.outputs[-1]

    def constant(self, array: np.ndarray) -> Buffer:
        buffer = Buffer("constant", len(self.schedule.constants), array.nbytes)
        self.schedule.constants.append((buffer, array))
        return buffer

    def temporary(self, n: int) -> Buffer:
        buffer = Buffer("temporary", -1, 8 * n)
        buffer.offset = self.schedule.arena_bytes
        self.schedule.arena_bytes += -(-8 * n // 64) * 64
        return buffer

    def call(self, kernel: Any, reads: list[Any], writes: list[Any], site: str = "") -> None:
        self.schedule.calls.append(Call(kernel, [_place(x) for x in reads], [_place(x) for x in writes], site))


def _place(at: Any) -> Location:
    return Location(at) if isinstance(at, Buffer) else Location(*at)


def run(executable: Executable, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    executable.run([x.ctypes.data for x in inputs], [x.ctypes.data for x in outputs])


def chain(n: int, length: int, cost: float) -> Schedule:
    """y = x[::-1] * 2 + 1, reversed and doubled `length` times: every call needs what other threads did before."""
    builder = Builder()
    value = builder.input(n)
    for _ in range(length):
        turned, following = builder.temporary(n), builder.temporary(n)
        builder.call(Reversed(n, cost), [value], [turned])
        builder.call(Affine(n, 0.5, 1.0, cost), [turned], [following])
        value = following
    total, out = builder.output(1), builder.output(n)
    builder.call(Total(n, cost), [value], [total])
    builder.call(Affine(n, 1.0, 0.0, cost), [value], [out])
    return builder.schedule


def chain_expected(x: np.ndarray, length: int) -> np.ndarray:
    for _ in range(length):
        x = x[::-1] * 0.5 + 1.0
    return x
