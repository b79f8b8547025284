"""Images of a group of channels in scratch memory, laid out so that what a window sees are neighbouring elements.

Around an image are the zeros that its windows see; they are written once, each image into their middle. With a stride
along the rows, elements that are a stride apart lie together: one window's next is its neighbour.
"""

from __future__ import annotations

from typing import Any

from ...custom_kernels import Window
from ..code import I64, ITEMSIZE, STORED, Code, constant, vector
from ..strided import first_or_all, lanes, load_lanes, pieces, store_lanes


class Images:
    """`channels` images in scratch memory, and how they come there: what `rows` rows of the result see of them."""

    def __init__(self, code: Code, dtype: str, channels: int, window: Window, rows: int = 0) -> None:
        self.code, self.b, self.window, self.channels = code, code.b, window, channels
        self.width = _lanes(dtype, window)
        self.kind = STORED[dtype]
        self.vector = vector(self.kind, self.width)
        #: Vectors in a row of the result, the last of which may not be full.
        self.vectors = -(-window.out[1] // self.width)
        self.rows = rows or window.out[0]
        self.phase, self.step, self.image = _extents(window, self.rows, self.width)
        self.size = channels * self.image
        self.memory = code.b.bitcast(code.scratch, self.kind.as_pointer())

    @staticmethod
    def elements(dtype: str, channels: int, window: Window, rows: int) -> int:
        """The elements of scratch memory that images take."""
        return channels * _extents(window, rows, _lanes(dtype, window))[2]

    def column(self, tap: int) -> int:
        """Where in a row the element is that the first window sees with a tap."""
        at, stride = tap * self.window.dilation[1], self.window.stride[1]
        return at % stride * self.phase + at // stride

    def clear(self, samples: int = 1) -> None:
        """Write the zeros of the images of so many samples."""
        with self.code.loop(I64(0), I64(samples * self.size), self.width) as (at,):
            store_lanes(self.b, constant(self.vector, 0.0), self.memory, at, 1)

    def fill(self, x: Any, strides: tuple[int, ...], first: Any, channels: tuple[Any, Any], to: Any) -> None:
        """Copy the images of some channels, from the first to before the second one, from x to element `to` on.

        Strides are for channels and the image's axes; `first` is the first row of the result whose windows are to see
        them: 0 if all rows are computed together.
        """
        b, window, loop = self.b, self.window, self.code.loop
        if self.rows == window.out[0]:
            begin, end = _inside(window.size[0], window.reach[0], window.start[0])
            with loop(*channels) as (channel,), loop(I64(begin), I64(end)) as (i,):
                self._row(x, strides, channel, i, to, b.add(i, I64(window.start[0])))
            return
        above = b.sub(b.mul(first, I64(window.stride[0])), I64(window.start[0]))
        with loop(*channels) as (channel,), loop(I64(0), I64(_reach(window, self.rows))) as (row,):
            i = b.add(above, row)
            with b.if_else(b.icmp_unsigned("<", i, I64(window.size[0]))) as (inside, outside):
                with inside:
                    self._row(x, strides, channel, i, to, row)
                with outside:
                    target = self._place(to, channel, row)
                    for start, mask in pieces(self.step, self.width):
                        zeros = constant(self.vector, 0.0)
                        store_lanes(b, zeros, self.memory, b.add(target, I64(start)), 1, mask)

    def _place(self, to: Any, channel: Any, row: Any) -> Any:
        b = self.b
        return b.add(to, b.add(b.mul(channel, I64(self.image)), b.mul(row, I64(self.step))))

    def _row(self, x: Any, strides: tuple[int, ...], channel: Any, i: Any, to: Any, row: Any) -> None:
        """Copy row i of an image of x to a row of the images here."""
        b, window = self.b, self.window
        begin, end = _inside(window.size[1], window.reach[1], window.start[1])
        source = b.add(b.mul(channel, I64(strides[0])), b.mul(i, I64(strides[1])))
        target = self._place(to, channel, row)
        for phase in range(window.stride[1]):
            first = begin + (phase - begin - window.start[1]) % window.stride[1]
            place = phase * self.phase + (first + window.start[1]) // window.stride[1]
            count = -(-(end - first) // window.stride[1])
            at = b.add(source, I64(first * strides[2]))
            self._copy(x, at, window.stride[1] * strides[2], b.add(target, I64(place)), count)

    def _copy(self, x: Any, source: Any, step: int, target: Any, count: int) -> None:
        b, width = self.b, self.width

        def move(at: Any, mask: Any) -> None:
            value = load_lanes(b, x, b.add(source, b.mul(at, I64(step))), step, width, mask)
            store_lanes(b, value, self.memory, b.add(target, at), 1, mask)

        whole = max(count, 0) // width * width
        with self.code.loop(I64(0), I64(whole), width) as (at,):
            move(at, None)
        if count > whole:
            move(I64(whole), first_or_all(width, count - whole))


def _lanes(dtype: str, window: Window) -> int:
    """Elements of a vector: fewer than there is room for if the rows of the result are so short."""
    width = lanes(ITEMSIZE[dtype])
    while width > 2 and 2 * window.out[1] <= width:
        width //= 2
    return width


def _extents(window: Window, rows: int, width: int) -> tuple[int, int, int]:
    """Elements of a phase of a row, of a row and of an image in scratch memory, with room for whole vectors."""
    stride, taps = window.stride[1], (window.kernel[1] - 1) * window.dilation[1]
    phase = -(-window.out[1] // width) * width + taps // stride + 1
    return phase, stride * phase, -(-_reach(window, rows) * stride * phase // width) * width


def _reach(window: Window, rows: int) -> int:
    """How many rows of an image so many rows of the result see."""
    return (rows - 1) * window.stride[0] + (window.kernel[0] - 1) * window.dilation[0] + 1


def _inside(size: int, room: int, start: int) -> tuple[int, int]:
    """The elements of an axis that windows see: the first, and where to stop."""
    begin = max(0, -start)
    return begin, max(begin, min(size, room - start))
