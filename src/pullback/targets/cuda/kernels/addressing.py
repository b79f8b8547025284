"""From numbers to places in memory: what the kernels of whole operations share.

A walk is a shape and strides, with as few axes as can be: a constant of a kernel. Divisions are by constants then, and
neighbours in memory are seen as such by the compiler.
"""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

import torch
import triton
import triton.language as tl

from ...axes import Shape, by_stride, merged

Walk = tuple[Shape, Shape]

#: How kernels are compiled; without them Triton warns that its own choice will change.
OPTIONS: dict[str, Any] = {"num_warps": 4, "enable_fp_fusion": True}

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NARROW = frozenset(("bool", "int8", "int16", "uint8", "uint16", "uint32"))


@triton.jit
def offset_of(number, walk: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where element `number` of a walk lies, counted with the last axis fastest."""
    at = number * 0
    for axis in tl.static_range(len(walk[0]) - 1, -1, -1):
        if axis == 0:
            at += number * walk[1][axis]
        else:
            at += number % walk[0][axis] * walk[1][axis]
            number = number // walk[0][axis]
    return at


@triton.jit
def offset_along(number, walks: tl.constexpr, which: tl.constexpr, axes: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same of one of several walks, from the numbers that `in_one_row` makes of them."""
    at = number * 0
    for axis in tl.static_range(axes - 1, -1, -1):
        size = walks[2 * axes * which + axis]
        step = walks[2 * axes * which + axes + axis]
        at += number % size * step
        number = number // size
    return at


def in_one_row(walks: Sequence[Walk]) -> tuple[tuple[int, ...], int]:
    """The sizes and strides of several walks, one after the other, and how many axes each has then.

    Triton takes tuples of numbers as constants; not all of its versions take tuples of tuples of tuples.
    """
    axes = max([len(sizes) for sizes, _ in walks], default=0)
    numbers: list[int] = []
    for sizes, strides in walks:
        missing = axes - len(sizes)
        numbers += [*(1,) * missing, *sizes, *(0,) * missing, *strides]
    return tuple(numbers), axes


@triton.jit
def below(number, count: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which numbers are below `count`: all, where blocks end with it."""
    if count % block == 0:
        return tl.full(number.shape, 1, tl.int1)
    else:
        return number < count


@triton.jit
def position(pointer, at, is_there, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """An index, counted from the start of an axis and brought into bounds."""
    index = tl.load(pointer + at, mask=is_there, other=0).to(tl.int64)
    index = tl.where(index < 0, index + size, index)
    return tl.where((index >= 0) & (index < size), index, 0)


def power(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def block_of(count: int, most: int, least: int = 64) -> int:
    """A power of two up to `most` for blocks of `count` elements, with little left over in the last of them."""
    block = min(most, power(count))
    while block > least and -(-count // block) * block > count + count // 8:
        block //= 2
    return block


def programs(count: int, block: int) -> int:
    """How many blocks there are."""
    return -(-count // block)


def walk_of(shape: Shape, strides: Shape) -> Walk:
    """A walk over all elements of an array, in the order of its axes."""
    axes, (steps,) = merged(shape, strides)
    return axes, steps


def walks_in_order(shape: Shape, *strides: Shape) -> tuple[Walk, ...]:
    """The same walk over several arrays, in the order in which the last one lies in memory."""
    axes, steps = by_stride(shape, *strides)
    return tuple([walk_of(axes, one) for one in steps])


def number_type(*walks: Walk) -> Any:
    """The integers that name every element of arrays, of (shape, strides) each: of 32 bits where these are enough."""
    reach = [sum((n - 1) * abs(step) for n, step in zip(shape, strides)) for shape, strides in walks if prod(shape)]
    most = max([prod(shape) for shape, _ in walks] + reach, default=0)
    return tl.int64 if most >= 2**31 - 2**16 else tl.int32  # the last block may reach beyond the end


def as_bits(tensor: Any) -> Any:
    """The same memory as signed integers: what is only moved needs no kernels of its own for every dtype."""
    return tensor.view(_BITS[tensor.element_size()])


def without_bool(tensor: Any) -> Any:
    """The same memory, truths as bytes."""
    return tensor.view(torch.int8) if tensor.dtype == torch.bool else tensor


def itemsize_of(dtype: str) -> int:
    """Bytes of an element."""
    return language_type(dtype).primitive_bitwidth // 8


def summed_in(dtype: str) -> str:
    """The dtype in which numbers are added up: sums of small integers wrap round when they are written."""
    return "float32" if dtype in ("float16", "bfloat16") else "int32" if dtype in _NARROW else dtype


def language_type(dtype: str) -> Any:
    """Triton's dtype of a name."""
    return tl.int8 if dtype == "bool" else getattr(tl, dtype)
