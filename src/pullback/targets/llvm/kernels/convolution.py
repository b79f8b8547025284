"""Convolutions straight from the images: what windows see is never unfolded.

A unit of work is a sample's group of channels with a block of features, if images are large for a few rows of the
result alone. The images are copied to scratch memory with zeros around them (see `images.py`); then sums for a few
features at a few vectors of places are in registers, while all channels and taps go by. One core of a Zen 3 does 93 of
its 98 GFLOP/s so in float32 (32 to 64 channels, 16 x 16, windows of 3 x 3).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...custom_kernels import DirectConvolution, DirectConvolutionGradient
from ..code import I64, ITEMSIZE, Code, Emitted, constant, intrinsic, load, splat
from ..strided import first_or_all, store_lanes
from .images import Images

_NANOSECONDS = 0.03  # for each multiplication and addition in float32
#: Vectors of places whose sums are in registers, by the features of a tile.
_VECTORS = {6: 2, 5: 2, 4: 2, 3: 4, 2: 4, 1: 4}
#: Units of work there are at least, if there are features enough.
_UNITS = 32
#: Taps of a window that are written one after the other.
_UNROLLED = 12
#: Bytes of the images of a unit, which are to stay in the second level of cache.
_IMAGES = 1 << 18


def emit(module: ir.Module, name: str, kernel: DirectConvolution) -> Emitted:
    return _Convolution(module, name, kernel).emit()


def cost(kernel: DirectConvolution | DirectConvolutionGradient) -> float:
    """About how many nanoseconds a convolution or its gradient takes on one thread."""
    window = kernel.window
    taps = window.kernel[0] * window.kernel[1] * kernel.channels * kernel.features
    work = kernel.samples * kernel.groups * window.out[0] * window.out[1] * (taps + 2 * kernel.channels)
    return work * _NANOSECONDS * ITEMSIZE[kernel.dtype] / 4


def _tiles(features: int) -> list[tuple[int, int]]:
    """Features as tiles: (features of a tile, how many such tiles), sixes and fours as far as possible."""
    if features < 4:
        return [(features, 1)]
    if features == 7:
        return [(4, 1), (3, 1)]
    odd = features % 2
    even = features - 5 * odd
    fours = {0: 0, 2: 2, 4: 1}[even % 6]
    sizes = ((6, (even - 4 * fours) // 6), (5, odd), (4, fours))
    return [(size, count) for size, count in sizes if count > 0]


def _band(kernel: DirectConvolution) -> int:
    """Rows of the result that a unit computes: as many as images fit into cache for."""
    window = kernel.window
    high = window.out[0]
    while high > 2 and Images.elements(kernel.dtype, kernel.channels, window, high) * ITEMSIZE[kernel.dtype] > _IMAGES:
        high = -(-high // 2)
    return high


class _Convolution:
    def __init__(self, module: ir.Module, name: str, kernel: DirectConvolution) -> None:
        self.kernel, self.name = kernel, name
        self.code = Code(module, name)
        self.b = self.code.b
        self.size = ITEMSIZE[kernel.dtype]
        self.images = Images(self.code, kernel.dtype, kernel.channels, kernel.window, _band(kernel))
        self.bands = -(-kernel.window.out[0] // self.images.rows)
        self.tiles = _tiles(kernel.features)
        count = sum(count for _, count in self.tiles)
        whole = max(1, kernel.samples * kernel.groups * self.bands)
        self.each = -(-count // max(1, min(_UNITS // whole, count // 2)))  # tiles of a unit
        self.blocks = -(-count // self.each)

    def emit(self) -> Emitted:
        b, code, kernel = self.b, self.code, self.kernel
        x, w, out = (code.pointer(i, kernel.dtype) for i in range(3))
        taps = kernel.channels * kernel.window.kernel[0] * kernel.window.kernel[1]
        self.images.clear()
        with code.loop(code.begin, code.end) as (unit,):
            rest, block = self._divided(unit, self.blocks)
            rest, band = self._divided(rest, self.bands)
            sample, group = self._divided(rest, kernel.groups)
            channel, feature = b.mul(group, I64(kernel.channels)), b.mul(group, I64(kernel.features))
            x_at = b.add(b.mul(sample, I64(kernel.x[0])), b.mul(channel, I64(kernel.x[1])))
            out_at = b.add(b.mul(sample, I64(kernel.out[0])), b.mul(feature, I64(kernel.out[1])))
            first = b.mul(band, I64(self.images.rows))
            self.images.fill(b.gep(x, [x_at]), kernel.x[1:], first, (I64(0), I64(kernel.channels)), I64(0))
            last = self._smaller(b.add(first, I64(self.images.rows)), I64(kernel.window.out[0]))
            of_w, to = b.gep(w, [b.mul(feature, I64(taps))]), b.gep(out, [out_at])
            begin = b.mul(block, I64(self.each))
            end = b.add(begin, I64(self.each))
            passed = done = 0
            for features, count in self.tiles:
                start = b.sub(self._larger(begin, I64(passed)), I64(passed))
                stop = self._smaller(b.sub(end, I64(passed)), I64(count))
                with code.loop(start, stop) as (number,):
                    f = b.add(b.mul(number, I64(features)), I64(done))
                    self._features(b.gep(of_w, [b.mul(f, I64(taps))]), to, f, features, first, last)
                passed, done = passed + count, done + features * count
        code.end_function()
        units = kernel.samples * kernel.groups * self.bands * self.blocks
        return Emitted(self.name, units, cost(kernel), scratch=self.images.size * self.size)

    def _divided(self, number: Any, by: int) -> tuple[Any, Any]:
        """Quotient and rest."""
        if by == 1:
            return number, I64(0)
        return self.b.udiv(number, I64(by)), self.b.urem(number, I64(by))

    def _smaller(self, one: Any, other: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", one, other), one, other)

    def _larger(self, one: Any, other: Any) -> Any:
        return self.b.select(self.b.icmp_signed(">", one, other), one, other)

    def _features(self, w: Any, out: Any, f: Any, features: int, first: Any, last: Any) -> None:
        """All places of a few features in the rows from `first` to `last`."""
        b, code, images = self.b, self.code, self.images
        vectors = images.vectors
        most = _VECTORS[features]
        if vectors == 1 and images.rows > 1:
            tall = min(most, images.rows)
            whole = b.add(first, b.mul(b.udiv(b.sub(last, first), I64(tall)), I64(tall)))
            with code.loop(first, whole, tall) as (y,):
                self._row(w, out, f, y, b.sub(y, first), features, tall, 1)
            first_left = whole
        else:
            first_left = first
        with code.loop(first_left, last) as (y,):
            self._row(w, out, f, y, b.sub(y, first), features, 1, vectors if vectors <= 3 and features <= 4 else most)

    def _row(self, w: Any, out: Any, f: Any, y: Any, row: Any, features: int, tall: int, wide: int) -> None:
        """All places of a few features in `tall` rows from `y` on, which is row number `row` of the images."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        full = kernel.window.out[1] // images.width  # vectors
        whole = full // wide * wide
        with code.loop(I64(0), I64(whole), wide) as (block,):
            self._tile(w, out, f, y, row, b.mul(block, I64(images.width)), features, (tall, wide), None)
        if images.vectors > whole:
            mask = first_or_all(images.width, kernel.window.out[1] - (images.vectors - 1) * images.width)
            left = (tall, images.vectors - whole)
            self._tile(w, out, f, y, row, I64(whole * images.width), features, left, mask)

    def _tile(
        self, w: Any, out: Any, f: Any, y: Any, row: Any, column: Any, features: int, extent: tuple[int, int], mask: Any
    ) -> None:
        """The sums of a few features at a few rows of a few vectors of places, written; a row's last one by a mask."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        window, width = kernel.window, images.width
        high, wide = window.kernel
        places = [(i, j) for i in range(extent[0]) for j in range(extent[1])]
        start = b.gep(images.memory, [b.add(b.mul(row, I64(window.stride[0] * images.step)), column)])
        offsets = [i * window.stride[0] * images.step + j * width for i, j in places]
        sums = [constant(images.vector, 0.0)] * (features * len(places))

        def taps(image: Any, weights: Any, rows: range, flat: list[Any]) -> list[Any]:
            """The sums with what some rows of the window give."""
            after = list(flat)
            for number, (t, tap) in enumerate((t, tap) for t in rows for tap in range(wide)):
                at = t * window.dilation[0] * images.step + images.column(tap)
                seen = [load(b, image, I64(at + offset), width, self.size) for offset in offsets]
                for i in range(features):
                    weight = load(b, weights, I64(i * kernel.channels * high * wide + number), 1, self.size)
                    weight = splat(b, weight, width)
                    for v, value in enumerate(seen):
                        n = i * len(seen) + v
                        after[n] = intrinsic(b, "fma", weight, value, after[n])
            return after

        with code.loop(I64(0), I64(kernel.channels), 1, *sums) as (channel, *flat):
            image = b.gep(start, [b.mul(channel, I64(images.image))])
            weights = b.gep(w, [b.mul(channel, I64(high * wide))])
            if high * wide <= _UNROLLED:
                code.again(*taps(image, weights, range(high), flat))
            else:
                with code.loop(I64(0), I64(high), 1, *flat) as (t, *inner):
                    of_image = b.gep(image, [b.mul(t, I64(window.dilation[0] * images.step))])
                    code.again(*taps(of_image, b.gep(weights, [b.mul(t, I64(wide))]), range(1), inner))
                code.again(*code.results)
        results = code.results
        rows = [
            b.add(b.mul(b.add(f, I64(i)), I64(kernel.out[1])), b.mul(y, I64(kernel.out[2]))) for i in range(features)
        ]
        for i in range(features):
            for v, (down, j) in enumerate(places):
                place = b.add(rows[i], b.mul(b.add(column, I64(j * width)), I64(kernel.out[3])))
                place = b.add(place, I64(down * kernel.out[2]))
                used = mask if j == extent[1] - 1 else None
                store_lanes(b, results[i * len(places) + v], out, place, kernel.out[3], used)
