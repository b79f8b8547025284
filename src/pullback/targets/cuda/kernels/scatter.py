"""Adding at places named by integers, in the order of these, without atomics: the same bits in every run."""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

import triton
import triton.language as tl

from ...axes import Shape
from ...custom_kernels import Scatter, ScatterAlong
from .addressing import (
    OPTIONS,
    Walk,
    below,
    in_one_row,
    language_type,
    number_type,
    offset_along,
    offset_of,
    position,
    power,
    programs,
    summed_in,
    walk_of,
    walks_in_order,
    without_bool,
)
from .segments import SegmentSums

_BLOCK = 1024
_ZEROS = 4096  # elements that a program sets to zero
_FEW = 16  # indices of a row that every element of the row is compared with
_LITTLE = 2**26  # comparisons that take less time than sorting


@triton.jit
def _begin(  # type: ignore[no-untyped-def]
    onto, out, count: tl.constexpr, walk: tl.constexpr, block: tl.constexpr, number: tl.constexpr,
    has_onto: tl.constexpr,
):  # fmt: skip
    """Set all elements of an array to zero, or to those of another one."""
    element = tl.program_id(0).to(number) * block + tl.arange(0, block)
    at = offset_of(element, walk)
    is_there = below(element, count, block)
    if has_onto:
        tl.store(out + at, tl.load(onto + at, mask=is_there), mask=is_there)
    else:
        tl.store(out + at, tl.zeros((block,), out.dtype.element_ty), mask=is_there)


@triton.jit
def _keys(  # type: ignore[no-untyped-def]
    indices, keys, count: tl.constexpr, walks: tl.constexpr, axes: tl.constexpr, sizes: tl.constexpr,
    block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    """The number of the row that is named at each place."""
    place = tl.program_id(0).to(number) * block + tl.arange(0, block)
    is_there = below(place, count, block)
    key = tl.zeros((block,), tl.int64)
    for axis in tl.static_range(len(sizes)):
        at = offset_along(place, walks, axis, axes)
        key = key * sizes[axis] + position(indices[axis], at, is_there, sizes[axis])
    tl.store(keys + place, key.to(keys.dtype.element_ty), mask=is_there)


@triton.jit
def _keys_along(  # type: ignore[no-untyped-def]
    index, keys, count: tl.constexpr, length: tl.constexpr, size: tl.constexpr, walk: tl.constexpr,
    block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    """The number of the element that is named at each place, of rows of `length` places and `size` elements."""
    place = tl.program_id(0).to(number) * block + tl.arange(0, block)
    is_there = below(place, count, block)
    key = (place // length).to(tl.int64) * size
    key += position(index, offset_of(place, walk), is_there, size)
    tl.store(keys + place, key.to(keys.dtype.element_ty), mask=is_there)


@triton.jit
def _add_few(  # type: ignore[no-untyped-def]
    value, index, out, count: tl.constexpr, length: tl.constexpr, size: tl.constexpr, value_step: tl.constexpr,
    index_step: tl.constexpr, value_walk: tl.constexpr, index_walk: tl.constexpr, own_walk: tl.constexpr,
    out_walk: tl.constexpr, block: tl.constexpr, kind: tl.constexpr, is_truth: tl.constexpr,
    number: tl.constexpr,
):  # fmt: skip
    """Each element of the result is compared with all indices of its row."""
    element = tl.program_id(0).to(number) * block + tl.arange(0, block)
    is_there = below(element, count, block)
    value_at = offset_of(element, value_walk)
    index_at = offset_of(element, index_walk)
    own = offset_of(element, own_walk)
    total = tl.zeros((block,), kind)
    for step in range(length):
        named = position(index, index_at + step * index_step, is_there, size)
        given = tl.load(value + value_at + step * value_step, mask=is_there & (named == own), other=0).to(kind)
        total += given
    if is_truth:
        total = (total != 0).to(kind)
    tl.store(out + offset_of(element, out_walk), total.to(out.dtype.element_ty), mask=is_there)


class _Beginning:
    """Sets an array to what is added to: zeros, or another array with the same strides."""

    def __init__(self, shape: Shape, strides: Shape, number: Any) -> None:
        count = prod(shape)
        block = min(_ZEROS, power(count))
        self._grid = (programs(count, block),)
        self._constants = (count, *walks_in_order(shape, strides), block, number)

    def launch(self, out: Any, onto: Any = None) -> None:
        if onto is None:
            _begin[self._grid](out, out, *self._constants, False, **OPTIONS)
        elif onto.data_ptr() != out.data_ptr():
            _begin[self._grid](onto, out, *self._constants, True, **OPTIONS)


class ScatterKernel:
    """Rows added to rows: sums by key, where the number of the row that is added to is the key."""

    def __init__(self, kernel: Scatter) -> None:
        self.scratch: list[tuple[str, int]] = []
        before, axes, count = len(kernel.outer), len(kernel.sizes), len(kernel.places)
        shape = (*kernel.outer, *kernel.sizes, *kernel.inner)
        given = (*kernel.outer, *kernel.places, *kernel.inner)
        walks, walked = in_one_row([walk_of(kernel.places, strides) for _, strides in kernel.indices])
        number = number_type(
            (shape, kernel.out), (given, kernel.value), *((kernel.places, strides) for _, strides in kernel.indices)
        )
        places = prod(kernel.places)
        self._is_empty, self._has_places = 0 in shape, places > 0
        self._beginning = _Beginning(shape, kernel.out, number)
        beside = (*kernel.outer, *kernel.inner)
        value_beside, out_beside = walks_in_order(
            beside, (*kernel.value[:before], *kernel.value[before + count :]),
            (*kernel.out[:before], *kernel.out[before + axes :]),
        )  # fmt: skip
        self._sums = SegmentSums(
            kernel.dtype, places, prod(beside), prod(kernel.sizes),
            walk_of(kernel.sizes, kernel.out[before : before + axes]),
            walk_of(kernel.places, kernel.value[before : before + count]), value_beside, out_beside, number,
            kernel.onto,
        )  # fmt: skip
        self._has_onto = kernel.onto
        block = min(_BLOCK, power(places))
        self._grid = (programs(places, block),)
        self._constants = (places, walks, walked, kernel.sizes, block, number)
        if self._has_places and not self._is_empty:
            self.scratch = self._sums.scratch

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on what is added to (if that is not zeros), value, the indices and out."""
        onto = without_bool(arrays[0]) if self._has_onto else None
        value, *indices, out = arrays[self._has_onto :]
        if self._is_empty:
            return
        value, out = without_bool(value), without_bool(out)
        self._beginning.launch(out, onto)
        if self._has_places:
            _keys[self._grid](tuple(indices), scratch[0], *self._constants, **OPTIONS)
            self._sums.launch(value, out, scratch)


class ScatterAlongKernel:
    """Elements added along an axis: each compared with the few indices of its row, or sums by key."""

    def __init__(self, kernel: ScatterAlong) -> None:
        self.scratch: list[tuple[str, int]] = []
        self._sums: SegmentSums | None = None
        shape, given = (*kernel.rows, kernel.size), (*kernel.rows, kernel.count)
        number = number_type((shape, kernel.out), (given, kernel.value), (given, kernel.index))
        self._is_empty = 0 in shape
        self._constants: tuple[Any, ...]
        if kernel.count > _FEW and prod(shape) * kernel.count > _LITTLE:
            places = prod(given)
            self._beginning = _Beginning(shape, kernel.out, number)
            nothing: Walk = ((), ())
            self._sums = SegmentSums(
                kernel.dtype, places, 1, prod(shape), walk_of(shape, kernel.out), walk_of(given, kernel.value),
                nothing, nothing, number,
            )  # fmt: skip
            self.scratch = self._sums.scratch
            block = min(_BLOCK, power(places))
            self._grid = (programs(places, block),)
            self._constants = (places, kernel.count, kernel.size, walk_of(given, kernel.index), block, number)
        else:
            own = (*(0 for _ in kernel.rows), 1)  # the position along the axis
            walks = walks_in_order(shape, (*kernel.value[:-1], 0), (*kernel.index[:-1], 0), own, kernel.out)
            block = min(_BLOCK, power(prod(shape)))
            self._grid = (programs(prod(shape), block),)
            self._constants = (
                prod(shape), kernel.count, kernel.size, kernel.value[-1], kernel.index[-1], *walks, block,
                language_type(summed_in(kernel.dtype)), kernel.dtype == "bool", number,
            )  # fmt: skip

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on value, index and out."""
        value, index, out = arrays
        value, out = without_bool(value), without_bool(out)
        if self._is_empty:
            return
        if self._sums is None:
            _add_few[self._grid](value, index, out, *self._constants, **OPTIONS)
        else:
            self._beginning.launch(out)
            _keys_along[self._grid](index, scratch[0], *self._constants, **OPTIONS)
            self._sums.launch(value, out, scratch)
