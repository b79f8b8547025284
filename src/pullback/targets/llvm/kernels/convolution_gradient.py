"""Gradients of a convolution's weights, straight from the images and the cotangents of the result.

A unit of work is a channel with a block of features. For a few samples at a time (or a few rows of one, if images are
large) the images are copied to scratch memory with zeros around them (see `images.py`), and after them, if many
channels need them, the cotangents of a few features. Products of these with what a few taps see are summed in
registers, a lane for each of neighbouring places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ...custom_kernels import DirectConvolutionGradient
from ..code import I32, I64, ITEMSIZE, Code, Emitted, constant, intrinsic, load, store
from ..strided import first_or_all, load_lanes, store_lanes, summed
from .convolution import cost
from .images import Images

#: Sums that are in registers, and features of a tile at most.
_SUMS, _FEATURES = 12, 4
#: Bytes of a tile's cotangents, which are used with one channel after the other: they are to stay in cache.
_TILE_BYTES = 1 << 14
#: Bytes of images of several samples.
_IMAGES_BYTES = 1 << 19
#: Channels from which on cotangents are copied: from where they are, they may push each other out of the cache.
_MANY_CHANNELS = 4
#: Units of work there are at least, if there are features enough.
_UNITS = 32
#: Vectors of a row that are written one after the other.
_UNROLLED = 4


def emit(module: ir.Module, name: str, kernel: DirectConvolutionGradient) -> Emitted:
    return _Gradient(module, name, kernel).emit()


class _Cotangents(NamedTuple):
    """Where cotangents of a few features are: the first, and the elements from one to the next along each axis.

    `column` is for elements that are a vector apart.
    """

    first: Any
    sample: Any
    feature: Any
    row: Any
    column: Any


class _Gradient:
    def __init__(self, module: ir.Module, name: str, kernel: DirectConvolutionGradient) -> None:
        self.kernel, self.name = kernel, name
        self.code = Code(module, name)
        self.b = self.code.b
        self.size = ITEMSIZE[kernel.dtype]
        self.high, self.wide = kernel.window.kernel
        rows, columns = kernel.window.out
        #: Rows of a sample that are done together, and samples if those are all.
        self.rows = max(1, min(rows, _TILE_BYTES // (_FEATURES * columns * self.size)))
        self.images = Images(self.code, kernel.dtype, kernel.channels, kernel.window, self.rows)
        together = 1
        if self.rows == rows:
            tile, images = _FEATURES * rows * columns * self.size, self.images.size * self.size
            together = max(1, min(kernel.samples, _TILE_BYTES // tile, _IMAGES_BYTES // images))
        self.samples = together
        #: Vectors of a tile's cotangents that belong to one feature.
        self.vectors = self.samples * self.rows * self.images.vectors
        tiles = -(-kernel.features // _FEATURES)
        blocks = max(1, min(_UNITS // (kernel.groups * kernel.channels), tiles))
        #: Features of a block.
        self.features = -(-tiles // blocks) * _FEATURES
        self.blocks = -(-kernel.features // self.features)

    def emit(self) -> Emitted:
        b, code, kernel = self.b, self.code, self.kernel
        self.g, self.x, self.grad = (code.pointer(i, kernel.dtype) for i in range(3))
        channels = I64(kernel.channels)
        self.images.clear(self.samples)
        last = b.udiv(b.add(code.end, I64(kernel.channels - 1)), channels)
        with code.loop(b.udiv(code.begin, channels), last) as (number,):
            passed = b.mul(number, channels)
            own = (
                self._larger(b.sub(code.begin, passed), I64(0)),
                self._smaller(b.sub(code.end, passed), channels),
            )
            self._block(b.udiv(number, I64(self.blocks)), b.urem(number, I64(self.blocks)), own)
        code.end_function()
        units = kernel.groups * self.blocks * kernel.channels
        elements = self.samples * self.images.size + _FEATURES * self.vectors * self.images.width
        return Emitted(self.name, units, cost(kernel), scratch=elements * self.size)

    def _smaller(self, one: Any, other: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", one, other), one, other)

    def _larger(self, one: Any, other: Any) -> Any:
        return self.b.select(self.b.icmp_signed(">", one, other), one, other)

    def _block(self, group: Any, block: Any, own: tuple[Any, Any]) -> None:
        """The gradients of a block of features of a group, for the channels from `own[0]` to `own[1]`."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        taps = self.high * self.wide
        begin = b.mul(block, I64(self.features))
        end = self._smaller(b.add(begin, I64(self.features)), I64(kernel.features))
        to = b.gep(self.grad, [b.mul(group, I64(kernel.features * kernel.channels * taps))])
        with code.loop(begin, end) as (f,):
            row = b.mul(f, I64(kernel.channels * taps))
            start, stop = (b.add(row, b.mul(channel, I64(taps))) for channel in own)
            with code.loop(start, stop) as (at,):
                store(b, constant(images.kind, 0.0), to, at, self.size)
        of_g = b.gep(self.g, [b.mul(b.mul(group, I64(kernel.features)), I64(kernel.g[1]))])
        of_x = b.gep(self.x, [b.mul(b.mul(group, I64(kernel.channels)), I64(kernel.x[1]))])
        with (
            code.loop(I64(0), I64(kernel.samples), self.samples) as (sample,),
            code.loop(I64(0), I64(kernel.window.out[0]), self.rows) as (row,),
        ):
            count = self._smaller(b.sub(I64(kernel.samples), sample), I64(self.samples))
            rows = self._smaller(b.sub(I64(kernel.window.out[0]), row), I64(self.rows))
            with code.loop(I64(0), count) as (at,):
                source = b.gep(of_x, [b.mul(b.add(sample, at), I64(kernel.x[0]))])
                images.fill(source, kernel.x[1:], row, own, b.mul(at, I64(images.size)))
            seen = b.gep(of_g, [b.add(b.mul(sample, I64(kernel.g[0])), b.mul(row, I64(kernel.g[2])))])
            whole = b.sub(end, b.srem(b.sub(end, begin), I64(_FEATURES)))
            with code.loop(begin, whole, _FEATURES) as (f,):
                self._features(seen, to, f, _FEATURES, own, count, rows)
            left = kernel.features % _FEATURES
            if left:
                with code.loop(whole, end, left) as (f,):
                    self._features(seen, to, f, left, own, count, rows)

    def _features(self, g: Any, to: Any, f: Any, features: int, own: tuple[Any, Any], samples: Any, rows: Any) -> None:
        """Add what the images in scratch memory give to the gradients of a few features."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        seen = _Cotangents(b.gep(g, [b.mul(f, I64(kernel.g[1]))]), *map(I64, kernel.g))
        if kernel.channels >= _MANY_CHANNELS or kernel.g[3] != 1:
            seen = self._copied(seen, features, samples, rows)
        with code.loop(*own) as (channel,):
            image = b.gep(images.memory, [b.mul(channel, I64(images.image))])
            place = b.add(b.mul(f, I64(kernel.channels)), channel)
            out = b.gep(to, [b.mul(place, I64(self.high * self.wide))])
            some = max(1, _SUMS // features // self.wide)  # rows of the window
            whole = self.high // some * some
            with code.loop(I64(0), I64(whole), some) as (t,):
                self._window_rows(seen, image, out, t, some, features, samples, rows)
            if self.high > whole:
                self._window_rows(seen, image, out, I64(whole), self.high - whole, features, samples, rows)

    def _copied(self, g: _Cotangents, features: int, samples: Any, rows: Any) -> _Cotangents:
        """The cotangents of a few features in scratch memory: a vector of each feature, then the next of each."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        width, count = images.width, kernel.window.out[1]
        row = I64(images.vectors * features * width)
        copy = _Cotangents(
            b.gep(images.memory, [I64(self.samples * images.size)]), b.mul(rows, row), I64(width), row, I64(features)
        )
        whole = count // width

        def move(source: Any, target: Any, vector: Any, mask: Any) -> None:
            for i in range(features):
                at = b.add(source, b.add(b.mul(vector, I64(width * kernel.g[3])), I64(i * kernel.g[1])))
                value = load_lanes(b, g.first, at, kernel.g[3], width, mask)
                place = b.add(target, b.add(b.mul(vector, I64(features * width)), I64(i * width)))
                store_lanes(b, value, copy.first, place, 1)

        with code.loop(I64(0), samples) as (sample,), code.loop(I64(0), rows) as (y,):
            source, target = (b.add(b.mul(sample, one.sample), b.mul(y, one.row)) for one in (g, copy))
            with code.loop(I64(0), I64(whole)) as (vector,):
                move(source, target, vector, None)
            if images.vectors > whole:
                move(source, target, I64(whole), first_or_all(width, count - whole * width))
        return copy

    def _window_rows(
        self, g: _Cotangents, image: Any, out: Any, t: Any, count: int, features: int, samples: Any, rows: Any
    ) -> None:
        """The gradients of `count` rows of the window from `t` on, of a few features and one channel."""
        b, images = self.b, self.images
        image = b.gep(image, [b.mul(t, I64(self.kernel.window.dilation[0] * images.step))])
        out = b.gep(out, [b.mul(t, I64(self.wide))])
        taps = [(row, tap) for row in range(count) for tap in range(self.wide)]
        pieces = -(-len(taps) * features // _SUMS)
        for piece in range(pieces):
            some = taps[len(taps) * piece // pieces : len(taps) * (piece + 1) // pieces]
            self._taps(g, image, out, some, features, samples, rows)

    def _taps(
        self, g: _Cotangents, image: Any, out: Any, taps: list[tuple[int, int]], features: int, samples: Any, rows: Any
    ) -> None:
        """Add what a few taps see, times the cotangents of a few features, to the gradients at `out`."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        window, width = kernel.window, images.width
        seen_at = [row * window.dilation[0] * images.step + images.column(tap) for row, tap in taps]

        def add(of_g: Any, of_image: Any, flat: list[Any], mask: Any = None) -> list[Any]:
            # what is beside an image may be infinite: zeros of the cotangent are not enough
            seen = [load_lanes(b, of_image, I64(at), 1, width, mask) for at in seen_at]
            after = []
            for i in range(features):
                part = load_lanes(b, of_g, b.mul(I64(i), g.feature), 1, width, mask)
                sums = flat[i * len(taps) : (i + 1) * len(taps)]
                after += [intrinsic(b, "fma", part, value, total) for value, total in zip(seen, sums)]
            return after

        zeros = [constant(images.vector, 0.0)] * (features * len(taps))
        whole = window.out[1] // width
        with code.loop(I64(0), samples, 1, *zeros) as (sample, *outer):
            of_sample = b.gep(g.first, [b.mul(sample, g.sample)])
            of_images = b.gep(image, [b.mul(sample, I64(images.size))])
            with code.loop(I64(0), rows, 1, *outer) as (y, *flat):
                of_g = b.gep(of_sample, [b.mul(y, g.row)])
                of_image = b.gep(of_images, [b.mul(y, I64(window.stride[0] * images.step))])

                def at(vector: Any, of_g: Any = of_g, of_image: Any = of_image) -> tuple[Any, Any]:
                    column = b.mul(vector, I64(width))
                    return b.gep(of_g, [b.mul(column, g.column)]), b.gep(of_image, [column])

                if whole <= _UNROLLED:
                    for vector in range(whole):
                        flat = add(*at(I64(vector)), flat)
                else:
                    with code.loop(I64(0), I64(whole), 1, *flat) as (vector, *inner):
                        code.again(*add(*at(vector), inner))
                    flat = list(code.results)
                if images.vectors > whole:
                    flat = add(*at(I64(whole)), flat, first_or_all(width, window.out[1] - whole * width))
                code.again(*flat)
            code.again(*code.results)
        self._add_totals(list(code.results), out, taps, features)

    def _add_totals(self, flat: list[Any], out: Any, taps: list[tuple[int, int]], features: int) -> None:
        """Add the sums of the lanes of each vector to where their gradients are."""
        b, kernel = self.b, self.kernel
        places = [
            i * kernel.channels * self.high * self.wide + row * self.wide + tap
            for i in range(features)
            for row, tap in taps
        ]
        done = 0
        while done < len(flat):
            count = self.images.width
            while count > len(flat) - done:
                count //= 2
            totals = summed(b, flat[done : done + count])
            for lane in range(count):
                value = totals if count == 1 else b.extract_element(totals, I32(lane))
                at = I64(places[done + lane])
                store(b, b.fadd(load(b, out, at, 1, self.size), value), out, at, self.size)
            done += count
