"""Walking along one axis, the axis of time, with vectors across it.

The lanes of a vector are different sequences, so that each takes its own steps: a unit of work is a block of lanes,
whose states stay in registers from the first step to the last. Where neighbours in memory are steps of one sequence,
and not lanes, arrays are turned on the way through scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from llvmlite import ir

from ...axes import Shape, ordered
from ..code import I64, ITEMSIZE, STORED, Code, Emitted, load, store
from ..positions import offsets
from ..strided import itemsize, lanes, load_lanes, pieces, store_lanes
from .tile_routines import transposition

#: Vectors whose states are in registers.
BLOCK = 16
#: Sequences that are walked number by number.
FEW = 2
_SCRATCH = 1 << 20  # bytes that turned arrays may take
_NANOSECONDS = 0.015  # for each byte


@dataclass
class _Array:
    """An array for one block of lanes: its first element at the first step, and strides along time and lanes."""

    pointer: Any
    time: int
    step: int


class Columns:
    """A block of lanes of several arrays: `read` and `write` vectors of the array of a given number at a step."""

    def __init__(self, code: Code, arrays: list[_Array | None], count: int, width: int) -> None:
        self.b = code.b
        self.code = code
        self.arrays = arrays
        self.width = width
        self.masks = [mask for _, mask in pieces(count, width)]
        self.vectors = range(len(self.masks))

    def has(self, array: int) -> bool:
        return self.arrays[array] is not None

    def read(self, array: int, t: Any, v: int) -> Any:
        """Vector number `v` of an array at a step."""
        pointer, place, step = self._at(array, t, v)
        return load_lanes(self.b, pointer, place, step, self.width, self.masks[v])

    def write(self, array: int, t: Any, v: int, value: Any) -> None:
        pointer, place, step = self._at(array, t, v)
        store_lanes(self.b, value, pointer, place, step, self.masks[v])

    def _at(self, array: int, t: Any, v: int) -> tuple[Any, Any, int]:
        which = self.arrays[array]
        assert which is not None
        place = self.b.add(self.b.mul(t, I64(which.time)), I64(v * self.width * which.step))
        return which.pointer, place, which.step


def across_time(
    module: ir.Module, name: str, kernel: Any, arrays: tuple[Shape | None, ...], reads: int, body: Any,
    block: int = BLOCK,
) -> Emitted:  # fmt: skip
    """A function that calls `body(block of lanes, kernel, number of steps)` for every block.

    `arrays` are strides over `kernel.shape`, or None; the first `reads` of them are read, the others written. All have
    the kernel's dtype. Steps are counted in the order in which they are taken, from the end if `kernel.reverse`.
    """
    length = kernel.shape[kernel.axis]
    across = tuple(i for i in range(len(kernel.shape)) if i != kernel.axis)
    numbers = [i for i, strides in enumerate(arrays) if strides is not None]
    given = [strides for strides in arrays if strides is not None]
    # The order of lanes is free: that of the last array, which is written.
    shape, merged = ordered(tuple(kernel.shape[i] for i in across), *(tuple(s[i] for i in across) for s in given))
    batch, count = shape[:-1], shape[-1] if shape else 1
    steps = [strides[-1] if strides else 0 for strides in merged]
    times = [strides[kernel.axis] for strides in given]
    size = ITEMSIZE[kernel.dtype]
    width = lanes(size) if count > FEW else 1  # a vector of which most lanes are empty costs more than its numbers
    turned = [time == 1 and step not in (0, 1) and width > 1 for time, step in zip(times, steps)]
    chunk = -(-length // width) * width * width  # elements of a turned array
    if sum(turned) * chunk * size > _SCRATCH:
        turned = [False] * len(given)
    most = width if any(turned) else block * width
    blocks = -(-count // most)
    code = Code(module, name)
    pointers = [code.pointer(i, kernel.dtype) for i in range(len(given))]
    scratch = code.b.bitcast(code.scratch, STORED[kernel.dtype].as_pointer())
    with code.loop(code.begin, code.end) as (unit,):
        b = code.b
        number = b.udiv(unit, I64(blocks)) if blocks > 1 else unit
        part = b.urem(unit, I64(blocks)) if blocks > 1 else I64(0)
        places = offsets(b, number, batch, [strides[:-1] for strides in merged])

        def run(lane_count: int) -> None:
            placed: list[_Array | None] = [None] * len(arrays)
            write_back = []
            for i, array in enumerate(numbers):
                start = b.add(places[i], b.mul(part, I64(most * steps[i])))
                here = _Array(b.gep(pointers[i], [start]), times[i], steps[i])
                if turned[i]:
                    held = _Array(b.gep(scratch, [I64(sum(turned[:i]) * chunk)]), width, 1)
                    if array < reads:
                        _turn(code, kernel.dtype, here, held, lane_count, length)
                    else:
                        write_back.append((held, here))
                    here = held
                placed[array] = _from_end(b, here, length) if kernel.reverse else here
            body(Columns(code, placed, lane_count, width), kernel, length)
            for held, target in write_back:
                _turn_back(code, kernel.dtype, held, target, lane_count, length)

        rest = count % most
        if blocks <= 1:
            run(count)
        elif not rest:
            run(most)
        else:
            with b.if_else(b.icmp_signed("==", part, I64(blocks - 1))) as (last, others):
                with last:
                    run(rest)
                with others:
                    run(most)
    code.end_function()
    cost = prod(kernel.shape) * len(given) * size * _NANOSECONDS * (4.0 if any(turned) or width == 1 else 1.0)
    return Emitted(name, prod(batch) * blocks, cost, scratch=sum(turned) * chunk * size)


def _from_end(b: Any, array: _Array, length: int) -> _Array:
    """The same array with steps counted from the last to the first."""
    return _Array(b.gep(array.pointer, [I64((length - 1) * array.time)]), -array.time, array.step)


def _turn(code: Code, dtype: str, source: _Array, target: _Array, count: int, length: int) -> None:
    """Copy sequences to scratch memory, step by step."""
    routine = transposition(code.module, dtype)
    sizes = (target.time, count // target.time * target.time, length // target.time * target.time)
    code.b.call(routine, [source.pointer, I64(source.step), target.pointer, *map(I64, sizes)])
    _copy_rest(code, source, target, sizes[1], sizes[2], count, length)


def _turn_back(code: Code, dtype: str, source: _Array, target: _Array, count: int, length: int) -> None:
    """Copy sequences from scratch memory back."""
    routine = transposition(code.module, dtype)
    sizes = (target.step, length // source.time * source.time, count // source.time * source.time)
    code.b.call(routine, [source.pointer, I64(source.time), target.pointer, *map(I64, sizes)])
    _copy_rest(code, source, target, sizes[2], sizes[1], count, length)


def _copy_rest(code: Code, source: _Array, target: _Array, done: int, steps_done: int, count: int, length: int) -> None:
    """Copy what whole tiles leave over: the last steps of the first `done` lanes, and all steps of the other lanes."""
    b = code.b
    align = itemsize(source.pointer.type.pointee)
    for first_lane, last_lane, start in ((0, done, steps_done), (done, count, 0)):
        if first_lane == last_lane or start == length:
            continue
        with code.loop(I64(first_lane), I64(last_lane)) as (lane,), code.loop(I64(start), I64(length)) as (t,):
            places = [b.add(b.mul(t, I64(x.time)), b.mul(lane, I64(x.step))) for x in (source, target)]
            store(b, load(b, source.pointer, places[0], 1, align), target.pointer, places[1], align)
