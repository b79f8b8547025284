"""Runs a schedule with NumPy, and notices mistakes of lowering: memory that was never written, arrays that overlap.

Kernels run on views of real bytes. The arena starts as NaN (every byte 0xff), and after each call what no later call
may read is made NaN again, so that planning that gives memory away too early shows in the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.backends import NUMPY
from pullback.compiler.program import Program
from pullback.targets.kernels import Call, Hole, Host, Location, Loop, Product, Schedule
from pullback.targets.repeats import expanded
from tests.compiler.meaning import kernel as host_kernel

from ...backends.installed import optional

ml_dtypes = optional("ml_dtypes")

_REDUCTIONS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "any": np.logical_or, "all": np.logical_and,
}  # fmt: skip


class ScheduleError(AssertionError):
    """A schedule breaks the rules of its kernels."""


def run(program: Program, schedule: Schedule, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs and the new values of updated inputs."""
    machine = Machine(program, schedule, inputs)
    with np.errstate(all="ignore"):
        for call in machine.calls:
            machine.call(call)
    outputs = [machine.array(Location(buffer), value) for buffer, value in zip(schedule.outputs, program.outputs)]
    by_position = {buffer.index: buffer for buffer in schedule.inputs}
    updates = [
        machine.array(Location(by_position[program.inputs.index(target)]), target) for target, _ in program.updates
    ]
    return outputs, updates


class Machine:
    """Bytes for every buffer."""

    def __init__(self, program: Program, schedule: Schedule, inputs: list[Any]) -> None:
        self.arena = np.full(schedule.arena_bytes, 0xFF, np.uint8)
        self.memory: dict[int, Any] = {}
        for buffer in schedule.inputs:
            array = np.ascontiguousarray(inputs[buffer.index])
            assert array.nbytes == buffer.nbytes
            # One byte further than any alignment: inputs may lie anywhere.
            self.memory[id(buffer)] = np.frombuffer(bytearray(array.tobytes()), np.uint8)
        for buffer in schedule.outputs:
            self.memory[id(buffer)] = np.full(buffer.nbytes, 0xFF, np.uint8)
        for buffer, contents in schedule.constants:
            memory = np.ascontiguousarray(contents).reshape(-1).view(np.uint8)
            memory = np.frombuffer(bytes(memory.tobytes()), np.uint8)  # cannot be written
            assert memory.nbytes == buffer.nbytes
            self.memory[id(buffer)] = memory
        self.schedule = schedule
        self.last: dict[int, int] = {}
        self.buffers = {}
        self.calls = list(expanded(schedule.calls))
        for number, call in enumerate(self.calls):
            for location in (*call.reads, *call.writes):
                self.last[id(location.buffer)] = number
                self.buffers[id(location.buffer)] = location.buffer
        self.number = 0

    def bytes_of(self, buffer: Any) -> Any:
        if buffer.kind == "temporary":
            if not (
                0 <= buffer.offset and buffer.offset + buffer.nbytes <= len(self.arena) and buffer.offset % 64 == 0
            ):
                raise ScheduleError(f"a temporary of {buffer.nbytes} bytes lies at {buffer.offset} of the arena")
            return self.arena[buffer.offset : buffer.offset + buffer.nbytes]
        return self.memory[id(buffer)]

    def array(self, location: Location, value: Any) -> Any:
        raw = self.bytes_of(location.buffer)[location.offset :][: value.nbytes]
        return raw.copy().view(value.dtype).reshape(value.shape)

    def strided(self, location: Location, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An array of the given strides in a buffer; it must lie inside it."""
        kind = _dtype(dtype)
        if len(shape) != len(strides):
            raise ScheduleError(f"strides {strides} for the axes {shape}")
        low = high = location.offset
        for n, s in zip(shape, strides):
            if n == 0:
                return np.zeros(shape, kind)
            low += min(0, (n - 1) * s) * kind.itemsize
            high += max(0, (n - 1) * s) * kind.itemsize
        if low < 0 or high + kind.itemsize > location.buffer.nbytes:
            raise ScheduleError(f"[{low}, {high + kind.itemsize}) of a buffer of {location.buffer.nbytes} bytes")
        raw = self.bytes_of(location.buffer)
        first = raw[location.offset : location.offset + kind.itemsize].view(kind)
        return as_strided(first, shape, [s * kind.itemsize for s in strides])

    def call(self, call: Call) -> None:
        kernel = call.kernel
        hash(kernel) if not isinstance(kernel, Host) else None
        if isinstance(kernel, Loop):
            self.loop(kernel, call)
        elif isinstance(kernel, Product):
            self.product(kernel, call)
        elif isinstance(kernel, Host):
            self.host(kernel, call)
        else:
            from . import custom_reference

            custom_reference.run(self, kernel, call)
        for location in call.reads:
            self.poison(location)
        for location in call.writes:
            self.poison(location)
        self.number += 1

    def poison(self, location: Location) -> None:
        buffer = location.buffer
        if buffer.kind == "temporary" and self.last[id(buffer)] == self.number:
            live = np.zeros(len(self.arena), bool)
            for key, last in self.last.items():
                other = self.buffers[key]
                if other.kind == "temporary" and last > self.number:
                    live[other.offset : other.offset + other.nbytes] = True
            own = slice(buffer.offset, buffer.offset + buffer.nbytes)
            if not live[own].any():
                self.arena[own] = 0xFF

    # -- kernels -----------------------------------------------------------------------------------

    def loop(self, loop: Loop, call: Call) -> None:
        shape = (*loop.outer, *loop.inner)
        rows = len(loop.outer)
        reads = [self.strided(at, a.dtype, shape, a.strides) for at, a in zip(call.reads, loop.reads)]
        writes = []
        for at, write in zip(call.writes, loop.writes):
            strides = write.access.strides
            where = tuple(1 if s == 0 else n for n, s in zip(shape, strides))
            writes.append(self.strided(at, write.access.dtype, where, strides))
        _check_overlaps(loop, reads, writes, call)
        values: list[Any] = []
        for step in loop.steps:
            values.append(_step(step, values, reads, shape, rows))
            assert values[-1].dtype == _dtype(step.dtype), (step, values[-1].dtype)
        for write, array in zip(loop.writes, writes):
            step = loop.steps[write.step]
            assert step.dtype == write.access.dtype, (step, write)
            value = values[write.step]
            if array.shape != shape:
                _check_level(step, value, array, shape, rows)
            array[...] = np.broadcast_to(value, array.shape) if value.size <= array.size else value[:0]

    def product(self, product: Product, call: Call) -> None:
        m, n, k = product.m, product.n, product.k
        x = self.strided(call.reads[0], product.dtype, (*product.batch, m, k), product.x)
        y = self.strided(call.reads[1], product.dtype, (*product.batch, k, n), product.y)
        out = self.strided(call.writes[0], product.dtype, (*product.batch, m, n), product.out)
        for rows, columns, (row, column) in ((m, k, product.x[-2:]), (k, n, product.y[-2:]), (m, n, product.out[-2:])):
            assert (column == 1 and row >= columns) or (row == 1 and column >= rows), product
        if np.shares_memory(out, x) or np.shares_memory(out, y):
            raise ScheduleError("a product writes over its operands")
        made = np.matmul(x, y)
        out[...] = out + made if product.accumulate else made

    def host(self, host: Host, call: Call) -> None:
        reads = [self.strided(at, *array) for at, array in zip(call.reads, host.reads)]
        for array in reads:
            array.flags.writeable = False
        made = host_kernel(host.op)(*_filled(host.args, reads))
        made = [m for m in made if m is not None] if isinstance(made, (tuple, list)) else [made]
        assert len(made) == len(call.writes)
        made = [np.array(m) for m in made]
        for at, array, value in zip(call.writes, host.writes, made):
            out = self.strided(at, *array)
            assert value.dtype == out.dtype and value.shape == out.shape
            out[...] = value


def _filled(args: Any, reads: list[Any]) -> Any:
    return tuple(reads[a.index] if isinstance(a, Hole) else _filled(a, reads) if type(a) is tuple else a for a in args)


def _dtype(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _step(step: Any, values: list[Any], reads: list[Any], shape: tuple[int, ...], rows: int) -> Any:
    ndim = len(shape)
    dtype = _dtype(step.dtype)
    operands = [values[i] for i in step.operands]
    if step.op == "read":
        value = reads[step.index].copy()
        # Steps that do not move along an axis have one value there, as natively.
        strides = reads[step.index].strides
        return value[tuple(slice(0, 1) if s == 0 and n else slice(None) for n, s in zip(shape, strides))]
    if step.op == "number":
        return np.full((1,) * ndim, step.number, dtype)
    if step.op == "position":
        at = [1] * ndim
        at[step.index] = shape[step.index]
        return np.arange(shape[step.index]).reshape(at)
    if step.op == "convert":
        return operands[0].astype(dtype)
    kind, _, op = step.op.partition("_")
    if kind in ("row", "column", "total") and op in _REDUCTIONS:
        assert operands[0].dtype == dtype
        full = np.broadcast_to(operands[0], shape)
        axes = {"row": range(rows, ndim), "column": range(rows), "total": range(ndim)}[kind]
        return _REDUCTIONS[op].reduce(full, axis=tuple(axes), keepdims=True, dtype=dtype)
    if step.op != "where" and len({operand.dtype for operand in operands}) > 1:
        raise ScheduleError(f"{step} has operands of dtypes {[operand.dtype for operand in operands]}")
    if step.op == "where" and (operands[0].dtype != bool or operands[1].dtype != operands[2].dtype):
        raise ScheduleError(f"{step} has operands of dtypes {[operand.dtype for operand in operands]}")
    return np.asarray(getattr(NUMPY.xp, step.op)(*operands))


def _check_level(step: Any, value: Any, array: Any, shape: tuple[int, ...], rows: int) -> None:
    """What is written once for several elements must be the same for all of them."""
    for axis, (n, m) in enumerate(zip(value.shape, array.shape)):
        if m == 1 and n != 1:
            raise ScheduleError(f"{step} differs along axis {axis} of {shape}, and is written there only once")
    if step.op.startswith(("column", "total")):
        return
    if any(m == 1 and n != 1 for n, m in zip(shape[:rows], array.shape)):
        raise ScheduleError(f"{step} is written again for every row")
    if array.shape[rows:] != shape[rows:] and any(m != 1 for m in array.shape[rows:]):
        raise ScheduleError(f"{step} is neither written for rows nor for elements")


def _check_overlaps(loop: Loop, reads: list[Any], writes: list[Any], call: Call) -> None:
    for number, out in enumerate(writes):
        for at, other in zip(loop.reads, reads):
            if not np.shares_memory(out, other):
                continue
            same = (
                at == loop.writes[number].access
                and out.__array_interface__["data"][0] == other.__array_interface__["data"][0]
                and out.shape == other.shape
            )
            if not same:
                raise ScheduleError(f"a loop writes over what it reads at other places: {call}")
        for other in writes[:number]:
            if np.shares_memory(out, other):
                raise ScheduleError(f"a loop writes the same memory twice: {call}")
