"""Convolutions in groups of few channels, and the gradients of their weights, straight from the images.

A unit of work is a group of a sample, for gradients of weights a group. Its images are copied to scratch memory with
zeros around them (see `images.py`); then each row of the result is a few vectors of sums in registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...custom_kernels import DirectConvolution, DirectConvolutionGradient
from ..code import I64, ITEMSIZE, Code, Emitted, constant, intrinsic, load, splat
from ..strided import first_or_all, load_lanes, store_lanes, total
from .images import Images

_NANOSECONDS = 0.03  # for each multiplication and addition in float32
#: Features and vectors of each whose sums are in registers, by how many features there are at least.
_TILES = ((4, 2), (2, 4), (1, 4))
_MOST_TAPS = 12  # whose gradients are in registers at a time


def emit(module: ir.Module, name: str, kernel: DirectConvolution | DirectConvolutionGradient) -> Emitted:
    if isinstance(kernel, DirectConvolution):
        return _Forward(module, name, kernel).emit()
    return _Gradient(module, name, kernel).emit()


def _cost(kernel: DirectConvolution | DirectConvolutionGradient) -> float:
    window = kernel.window
    taps = window.kernel[0] * window.kernel[1] * kernel.channels * kernel.features
    work = kernel.samples * kernel.groups * window.out[0] * window.out[1] * (taps + 2 * kernel.channels)
    return work * _NANOSECONDS * ITEMSIZE[kernel.dtype] / 4


class _Forward:
    def __init__(self, module: ir.Module, name: str, kernel: DirectConvolution) -> None:
        self.kernel, self.name = kernel, name
        self.code = Code(module, name)
        self.b = self.code.b
        self.images = Images(self.code, kernel.dtype, kernel.channels, kernel.window)
        self.size = ITEMSIZE[kernel.dtype]

    def emit(self) -> Emitted:
        b, code, kernel = self.b, self.code, self.kernel
        x, w, out = (code.pointer(i, kernel.dtype) for i in range(3))
        taps = kernel.channels * kernel.window.kernel[0] * kernel.window.kernel[1]
        self.images.clear()
        with code.loop(code.begin, code.end) as (unit,):
            sample, group = b.udiv(unit, I64(kernel.groups)), b.urem(unit, I64(kernel.groups))
            channel, feature = b.mul(group, I64(kernel.channels)), b.mul(group, I64(kernel.features))
            x_at = b.add(b.mul(sample, I64(kernel.x[0])), b.mul(channel, I64(kernel.x[1])))
            out_at = b.add(b.mul(sample, I64(kernel.out[0])), b.mul(feature, I64(kernel.out[1])))
            self.images.fill(b.gep(x, [x_at]), kernel.x[1:])
            of_w, to = b.gep(w, [b.mul(feature, I64(taps))]), b.gep(out, [out_at])
            done = 0
            for features, vectors in _TILES:
                stop = kernel.features // features * features
                if stop > done:
                    with code.loop(I64(done), I64(stop), features) as (f,):
                        self._features(b.gep(of_w, [b.mul(f, I64(taps))]), to, f, features, vectors)
                    done = stop
        code.end_function()
        return Emitted(self.name, kernel.samples * kernel.groups, _cost(kernel), scratch=self.images.size * self.size)

    def _features(self, w: Any, out: Any, f: Any, features: int, vectors: int) -> None:
        """All places of a few features."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        full = kernel.window.out[1] // images.width  # vectors
        whole = full // vectors * vectors
        with code.loop(I64(0), I64(kernel.window.out[0])) as (y,):
            rows = [
                b.add(b.mul(b.add(f, I64(i)), I64(kernel.out[1])), b.mul(y, I64(kernel.out[2])))
                for i in range(features)
            ]
            with code.loop(I64(0), I64(whole), vectors) as (block,):
                self._tile(w, out, rows, y, b.mul(block, I64(images.width)), features, vectors, None)
            if images.vectors > whole:
                mask = first_or_all(images.width, kernel.window.out[1] - (images.vectors - 1) * images.width)
                self._tile(w, out, rows, y, I64(whole * images.width), features, images.vectors - whole, mask)

    def _tile(
        self, w: Any, out: Any, rows: list[Any], y: Any, column: Any, features: int, vectors: int, mask: Any
    ) -> None:
        """The sums of a few features at a few vectors of places of a row, written; the last vector by a mask."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        window, width = kernel.window, images.width
        high, wide = window.kernel
        taps = kernel.channels * high * wide
        start = b.add(b.mul(y, I64(window.stride[0] * images.step)), column)
        sums = [constant(images.vector, 0.0)] * (features * vectors)
        with code.loop(I64(0), I64(kernel.channels * high), 1, *sums) as (number, *flat):
            channel, t = b.udiv(number, I64(high)), b.urem(number, I64(high))
            row = b.add(b.mul(channel, I64(images.image)), b.mul(t, I64(window.dilation[0] * images.step)))
            row = b.add(row, start)
            after = list(flat)
            for tap in range(wide):
                places = [b.add(row, I64(images.column(tap) + v * width)) for v in range(vectors)]
                seen = [load(b, images.memory, place, width, self.size) for place in places]
                for i in range(features):
                    at = b.add(b.mul(number, I64(wide)), I64(i * taps + tap))
                    weight = splat(b, load(b, w, at, 1, self.size), width)
                    for v in range(vectors):
                        after[i * vectors + v] = intrinsic(b, "fma", weight, seen[v], after[i * vectors + v])
            code.again(*after)
        results = code.results
        for i in range(features):
            for v in range(vectors):
                place = b.add(rows[i], b.mul(b.add(column, I64(v * width)), I64(kernel.out[3])))
                store_lanes(b, results[i * vectors + v], out, place, kernel.out[3], mask if v == vectors - 1 else None)


class _Gradient:
    def __init__(self, module: ir.Module, name: str, kernel: DirectConvolutionGradient) -> None:
        self.kernel, self.name = kernel, name
        self.code = Code(module, name)
        self.b = self.code.b
        self.images = Images(self.code, kernel.dtype, kernel.channels, kernel.window)
        self.size = ITEMSIZE[kernel.dtype]

    def emit(self) -> Emitted:
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        g, x, grad = (code.pointer(i, kernel.dtype) for i in range(3))
        high, wide = kernel.window.kernel
        each = high * wide
        count = kernel.features * kernel.channels * each
        sums = b.gep(images.memory, [I64(images.size)])  # a vector for each weight of a group
        images.clear()
        with code.loop(code.begin, code.end) as (group,):
            with code.loop(I64(0), I64(count * images.width), images.width) as (at,):
                store_lanes(b, constant(images.vector, 0.0), sums, at, 1)
            channel, feature = b.mul(group, I64(kernel.channels)), b.mul(group, I64(kernel.features))
            with code.loop(I64(0), I64(kernel.samples)) as (sample,):
                x_at = b.add(b.mul(sample, I64(kernel.x[0])), b.mul(channel, I64(kernel.x[1])))
                images.fill(b.gep(x, [x_at]), kernel.x[1:])
                g_at = b.add(b.mul(sample, I64(kernel.g[0])), b.mul(feature, I64(kernel.g[1])))
                with (
                    code.loop(I64(0), I64(kernel.features)) as (f,),
                    code.loop(I64(0), I64(kernel.channels)) as (c,),
                ):
                    of_g = b.gep(g, [b.add(g_at, b.mul(f, I64(kernel.g[1])))])
                    image = b.gep(images.memory, [b.mul(c, I64(images.image))])
                    at = b.mul(b.add(b.mul(f, I64(kernel.channels)), c), I64(each * images.width))
                    some = max(1, _MOST_TAPS // wide)
                    for first in range(0, high, some):
                        self._taps(of_g, image, b.gep(sums, [at]), range(first, min(first + some, high)))
            to = b.gep(grad, [b.mul(group, I64(count))])
            with code.loop(I64(0), I64(count)) as (at,):
                value = total(b, load_lanes(b, sums, b.mul(at, I64(images.width)), 1, images.width))
                store_lanes(b, value, to, at, 1)
        code.end_function()
        scratch = (images.size + count * images.width) * self.size
        return Emitted(self.name, kernel.groups, _cost(kernel), scratch=scratch)

    def _taps(self, g: Any, image: Any, sums: Any, rows: range) -> None:
        """Add what some rows of the window give in one image of one feature to the sums of these weights."""
        b, code, kernel, images = self.b, self.code, self.kernel, self.images
        window, width = kernel.window, images.width
        wide = window.kernel[1]
        taps = [(row, tap) for row in rows for tap in range(wide)]
        zeros = [constant(images.vector, 0.0)] * len(taps)

        def add(y: Any, column: Any, flat: list[Any], mask: Any) -> list[Any]:
            place = b.add(b.mul(y, I64(kernel.g[2])), b.mul(column, I64(kernel.g[3])))
            part = load_lanes(b, g, place, kernel.g[3], width, mask)
            start = b.add(b.mul(y, I64(window.stride[0] * images.step)), column)
            after = []
            for (row, tap), value in zip(taps, flat):
                at = b.add(start, I64(row * window.dilation[0] * images.step + images.column(tap)))
                after.append(intrinsic(b, "fma", part, load_lanes(b, image, at, 1, width, mask), value))
            return after

        whole = window.out[1] // width * width
        with code.loop(I64(0), I64(window.out[0]), 1, *zeros) as (y, *flat):
            with code.loop(I64(0), I64(whole), width, *flat) as (column, *inner):
                code.again(*add(y, column, inner, None))
            after = list(code.results)
            if window.out[1] > whole:
                after = add(y, I64(whole), after, first_or_all(width, window.out[1] - whole))
            code.again(*after)
        for (row, tap), value in zip(taps, code.results):
            at = I64((row * wide + tap) * width)
            store_lanes(b, b.fadd(load_lanes(b, sums, at, 1, width), value), sums, at, 1)
