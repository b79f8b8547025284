"""Images of a group of channels in scratch memory, laid out so that what a window sees are neighbouring elements.

Around an image are the zeros that its windows see; they are written once, each image into their middle. With a stride
along the rows, elements that are a stride apart lie together: one window's next is its neighbour.
"""

from __future__ import annotations

from typing import Any

from ...custom_kernels import Window
from ..code import I64, ITEMSIZE, STORED, Code, constant, vector
from ..strided import first_or_all, lanes, load_lanes, store_lanes


class Images:
    """`channels` images in scratch memory, and how they come there."""

    def __init__(self, code: Code, dtype: str, channels: int, window: Window) -> None:
        self.code, self.b, self.window, self.channels = code, code.b, window, channels
        self.width = lanes(ITEMSIZE[dtype])
        self.kind = STORED[dtype]
        self.vector = vector(self.kind, self.width)
        #: Vectors in a row of the result, the last of which may not be full.
        self.vectors = -(-window.out[1] // self.width)
        self.phase, self.step, self.image = _extents(window, self.width)
        self.size = channels * self.image
        self.memory = code.b.bitcast(code.scratch, self.kind.as_pointer())

    def column(self, tap: int) -> int:
        """Where in a row the element is that the first window sees with a tap."""
        at, stride = tap * self.window.dilation[1], self.window.stride[1]
        return at % stride * self.phase + at // stride

    def clear(self) -> None:
        """Write the zeros."""
        with self.code.loop(I64(0), I64(self.size), self.width) as (at,):
            store_lanes(self.b, constant(self.vector, 0.0), self.memory, at, 1)

    def fill(self, x: Any, strides: tuple[int, ...]) -> None:
        """Copy the images of a group from x, with strides for channels and the image's axes."""
        b, window = self.b, self.window
        rows, columns = map(_inside, window.size, window.reach, window.start, window.gaps)
        with (
            self.code.loop(I64(0), I64(self.channels)) as (channel,),
            self.code.loop(I64(rows[0]), I64(rows[1])) as (i,),
        ):
            source = b.add(b.mul(channel, I64(strides[0])), b.mul(i, I64(strides[1])))
            row = b.add(b.mul(i, I64(window.gaps[0])), I64(window.start[0]))
            target = b.add(b.mul(channel, I64(self.image)), b.mul(row, I64(self.step)))
            for phase in range(window.stride[1]):
                begin = columns[0] + (phase - columns[0] * window.gaps[1] - window.start[1]) % window.stride[1]
                at = begin * window.gaps[1] + window.start[1]
                place = phase * self.phase + at // window.stride[1]
                count = -(-(columns[1] - begin) // window.stride[1])
                self._copy(
                    x, b.add(source, I64(begin * strides[2])), window.stride[1] * strides[2],
                    b.add(target, I64(place)), window.gaps[1], count,
                )  # fmt: skip

    def _copy(self, x: Any, source: Any, step: int, target: Any, target_step: int, count: int) -> None:
        b, width = self.b, self.width

        def move(at: Any, mask: Any) -> None:
            value = load_lanes(b, x, b.add(source, b.mul(at, I64(step))), step, width, mask)
            store_lanes(b, value, self.memory, b.add(target, b.mul(at, I64(target_step))), target_step, mask)

        whole = max(count, 0) // width * width
        with self.code.loop(I64(0), I64(whole), width) as (at,):
            move(at, None)
        if count > whole:
            move(I64(whole), first_or_all(width, count - whole))


def _extents(window: Window, width: int) -> tuple[int, int, int]:
    """Elements of a phase of a row, of a row and of an image in scratch memory, with room for whole vectors."""
    stride, taps = window.stride[1], (window.kernel[1] - 1) * window.dilation[1]
    phase = -(-window.out[1] // width) * width + taps // stride + 1
    return phase, stride * phase, -(-window.reach[0] * stride * phase // width) * width


def _inside(size: int, room: int, start: int, gap: int) -> tuple[int, int]:
    """The elements of an axis that windows see: the first, and where to stop."""
    begin = max(0, -(start // gap))
    return begin, max(begin, min(size, (room - 1 - start) // gap + 1))
