"""Small products of full precision: a library's take as long to begin as to compute.

A program has a tile of the result and a part of the sums. What it has added up it puts beside those of the others; who
comes last adds the parts of the tile up, in their order: the same bits each time.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, Sequence

import torch
import triton
import triton.language as tl

from ...kernels import Product
from ..launch import Launch
from .addressing import below, language_type, power, programs

_STAGES = tl.constexpr(3)  # tiles that are on their way at once
_MOST = 1 << 26  # multiplications of a product
_DEEPEST = 1024
_THIN = 16


@triton.jit
def _small_product(  # type: ignore[no-untyped-def]
    x, y, bias, out, parts, counters,
    m: tl.constexpr, n: tl.constexpr, k: tl.constexpr, x_steps: tl.constexpr, y_steps: tl.constexpr,
    out_steps: tl.constexpr, has_bias: tl.constexpr, accumulate: tl.constexpr, splits: tl.constexpr,
    high: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = (n + wide - 1) // wide
    tiles: tl.constexpr = (m + high - 1) // high * across
    tile, split = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    span: tl.constexpr = ((k + splits - 1) // splits + deep - 1) // deep * deep
    row = tile // across * high + tl.arange(0, high)[:, None]
    column = tile % across * wide + tl.arange(0, wide)[None, :]
    is_row, is_column = below(row, m, high), below(column, n, wide)
    total = tl.zeros((high, wide), kind)
    for step in tl.range(0, span, deep, num_stages=_STAGES):
        at = split * span + step + tl.arange(0, deep)
        is_there = below(at, k, span * splits)
        left = tl.load(x + row * x_steps[0] + at[None, :] * x_steps[1], mask=is_row & is_there[None, :], other=0)
        right = tl.load(y + at[:, None] * y_steps[0] + column * y_steps[1], mask=is_there[:, None] & is_column, other=0)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=kind)
    is_inside = is_row & is_column
    is_last = 1
    if splits > 1:
        own = parts + row * n + column
        tl.store(own + split * (m * n), total, mask=is_inside)
        tl.debug_barrier()  # of all threads, before one of them says so
        is_last = (tl.atomic_add(counters + tile, 1) == splits - 1).to(tl.int32)
    if is_last:
        if splits > 1:
            total = tl.zeros((high, wide), kind)
            for number in tl.static_range(splits):
                total += tl.load(own + number * (m * n), mask=is_inside, other=0, cache_modifier=".cg")
            tl.store(counters + tile, 0)  # for the next launch
        to = out + row * out_steps[0] + column * out_steps[1]
        if has_bias:
            total += tl.load(bias + column, mask=is_column, other=0)
        if accumulate:
            total += tl.load(to, mask=is_inside, other=0)
        tl.store(to, total, mask=is_inside)


class Tiles(NamedTuple):
    """How a product is cut."""

    high: int
    wide: int
    deep: int
    splits: int
    warps: int


def suits(kernel: Product) -> bool:
    """Whether a product is small enough, in a form that was measured to be faster than the library's.

    Tiles of `y` that are neighbours along the sum are read slowly; that pays for thin results only.
    """
    m, n, k = kernel.m, kernel.n, kernel.k
    strides = (*kernel.x, *kernel.y, *kernel.out)
    if kernel.dtype != "float32" or kernel.wide or prod(kernel.batch) != 1 or min(strides) < 0:
        return False
    is_small = 0 < k <= _DEEPEST and m * n * k <= _MOST
    return is_small and min(m, n) > 1 and (kernel.y[-1] == 1 or min(m, n) <= _THIN)


def tiles_of(kernel: Product) -> Tiles:
    """Tiles of such a size, in so many parts, that every processor of the GPU has some."""
    high, wide = (max(16, min(32, power(count))) for count in (kernel.m, kernel.n))
    if wide == 16:
        high = 16
    tiles, splits = programs(kernel.m, high) * programs(kernel.n, wide), 1
    while splits < 8 and 2 * splits * tiles <= 256 and kernel.k >= 2 * splits * 32:
        splits *= 2
    return Tiles(high, wide, 16 if splits == 1 else 32, splits, 4 if splits > 1 and high * wide > 256 else 2)


class SmallProductKernel:
    """One product, in a single launch. Its counters are its own: nobody else may run it at the same time."""

    def __init__(self, kernel: Product, device: Any) -> None:
        high, wide, deep, splits, warps = tiles_of(kernel)
        tiles = programs(kernel.m, high) * programs(kernel.n, wide)
        self.scratch = [(kernel.dtype, splits * kernel.m * kernel.n)] if splits > 1 else []
        self._counters = torch.zeros(tiles, dtype=torch.int32, device=device)
        self._programs, self._options = tiles * splits, {"num_warps": warps}
        self._constants = (
            kernel.m, kernel.n, kernel.k, kernel.x[-2:], kernel.y[-2:], kernel.out[-2:], kernel.bias,
            kernel.accumulate, splits, high, wide, deep, language_type(kernel.dtype),
        )  # fmt: skip

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x, y, the bias if there is one, and the result."""
        for launch in self.launches(arrays, scratch):
            launch.run()

    def launches(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> list[Launch]:
        """What has to be launched."""
        x, y, *bias, out = arrays
        arguments = (x, y, *(bias or [x]), out, *(scratch or [out]), self._counters, *self._constants)
        return [Launch(_small_product, self._programs, arguments, self._options)]
