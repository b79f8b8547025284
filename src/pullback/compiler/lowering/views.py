"""Values as views: a part of some array's memory, in some order, without copying.

A root is memory that something writes, in C order; or a number that is everywhere the same; or the positions 0, 1,
2, ... themselves, which need no memory either. A view names the elements of a root by an offset and by strides, both
counted in elements. What moves elements makes views of views; only some reshapes have to copy.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

NATIVE = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip

_NAMES: dict[Any, str] = {}


def name_of(dtype: Any) -> str:
    """NumPy's name of a dtype."""
    try:
        return _NAMES[dtype]
    except KeyError:
        name = _NAMES[dtype] = np.dtype(dtype).name
        return name


def itemsize(name: str) -> int:
    """Bytes of one element, of any dtype of NumPy's."""
    return NATIVE.get(name) or np.dtype(name).itemsize


class Root:
    """What views are views of. `kind` is "memory", "number" (with its value in `number`) or "positions".

    `node` is what writes all of its memory in C order, if that is one loop's computation; `writers` are all that write
    some of it. `target` is the number of the output whose memory it is; `update` that of the pair in the program's
    updates that it is the new value of.
    """

    __slots__ = ("kind", "dtype", "size", "number", "node", "writers", "buffer", "source", "target", "update", "needed")

    def __init__(self, kind: str, dtype: str, size: int, number: Any = None) -> None:
        self.kind = kind
        self.dtype = dtype
        self.size = size
        self.number = number
        self.node: Any = None
        self.writers: list[Any] = []
        self.buffer: Any = None
        self.source = -1  # the number of the program's input that it is
        self.target = -1
        self.update = -1
        self.needed = False

    @property
    def nbytes(self) -> int:
        return self.size * itemsize(self.dtype)


class View:
    """Elements of a root. `dense`: they are neighbours, in C order."""

    __slots__ = ("root", "offset", "shape", "strides", "dense")

    def __init__(self, root: Root, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.root = root
        self.offset = offset
        self.shape = shape
        self.strides = strides
        expected = 1
        dense = True
        for n, stride in zip(reversed(shape), reversed(strides)):
            if n != 1:
                if stride != expected:
                    dense = False
                    break
                expected *= n
        self.dense = dense

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether it is all of its root, in the root's order."""
        return self.dense and self.offset == 0 and self.root.kind == "memory" and self.size == self.root.size


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in C order."""
    strides = [0] * len(shape)
    stride = 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = stride
        stride *= shape[axis]
    return tuple(strides)


def whole(root: Root, shape: tuple[int, ...]) -> View:
    """All of a root."""
    return View(root, 0, shape, c_strides(shape))


def number(value: Any, dtype: str, shape: tuple[int, ...]) -> View:
    """The same number everywhere."""
    return View(Root("number", dtype, 1, value), 0, shape, (0,) * len(shape))


def positions(shape: tuple[int, ...], axis: int) -> View:
    """The index of each element along an axis, as int64."""
    return View(Root("positions", "int64", shape[axis]), 0, shape, tuple([int(i == axis) for i in range(len(shape))]))


def reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    """The same elements in another shape, or None where that takes a copy."""
    if view.dense or 0 in shape:
        return View(view.root, view.offset, shape, c_strides(shape))
    if view.root.kind == "number":
        return View(view.root, 0, shape, (0,) * len(shape))
    old = [(n, s) for n, s in zip(view.shape, view.strides) if n != 1]
    strides = [0] * len(shape)
    axis = len(shape) - 1
    while old:
        # Old axes that go on where the next one ends are one long axis, which the new ones divide.
        size, step = old.pop()
        reach = size * step
        while old and old[-1][1] == reach:
            n, _ = old.pop()
            size *= n
            reach *= n
        while size > 1:
            if axis < 0:
                return None
            n = shape[axis]
            if n == 0 or size % n:
                return None
            strides[axis] = step
            step *= n
            size //= n
            axis -= 1
    return View(view.root, view.offset, shape, tuple(strides))


def permuted(view: View, axes: tuple[int, ...]) -> View:
    shape, strides = view.shape, view.strides
    return View(view.root, view.offset, tuple([shape[a] for a in axes]), tuple([strides[a] for a in axes]))


def transposed(view: View) -> View:
    n = len(view.shape)
    return permuted(view, (*range(n - 2), n - 1, n - 2))


def expanded(view: View, axes: tuple[int, ...]) -> View:
    """With new axes of length 1, whose places in the result are given."""
    ndim = len(view.shape) + len(axes)
    new = {a % ndim for a in axes}
    shape, strides = iter(view.shape), iter(view.strides)
    return View(
        view.root,
        view.offset,
        tuple([1 if i in new else next(shape) for i in range(ndim)]),
        tuple([0 if i in new else next(strides) for i in range(ndim)]),
    )


def squeezed(view: View, axes: tuple[int, ...]) -> View:
    gone = {a % len(view.shape) for a in axes}
    kept = [i for i in range(len(view.shape)) if i not in gone]
    return permuted(view, tuple(kept))


def broadcast(view: View, shape: tuple[int, ...]) -> View:
    return View(view.root, view.offset, shape, broadcast_strides(view, shape))


def broadcast_strides(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides with which a view is read at every index of a shape that it is broadcast to."""
    if view.shape == shape:
        return view.strides
    strides = [0] * (len(shape) - len(view.shape))
    for n, stride in zip(view.shape, view.strides):
        strides.append(0 if n == 1 else stride)
    return tuple(strides)


def flipped(view: View, axes: tuple[int, ...] | int | None) -> View:
    axes = tuple(range(len(view.shape))) if axes is None else (axes,) if isinstance(axes, int) else axes
    offset, strides = view.offset, list(view.strides)
    for axis in axes:
        offset += (view.shape[axis] - 1) * strides[axis] if view.shape[axis] else 0
        strides[axis] = -strides[axis]
    return View(view.root, offset, view.shape, tuple(strides))


def part(view: View, axis: int, start: int, stop: int) -> View:
    """The slice from `start` to `stop` of an axis."""
    shape = list(view.shape)
    shape[axis] = stop - start
    return View(view.root, view.offset + start * view.strides[axis], tuple(shape), view.strides)


def diagonal(view: View, offset: int) -> View:
    """The diagonal of the last two axes, as the last axis."""
    *shape, rows, columns = view.shape
    *strides, down, right = view.strides
    start = view.offset + (offset * right if offset >= 0 else -offset * down)
    length = min(rows + min(offset, 0), columns - max(offset, 0))
    return View(view.root, start if length > 0 else view.offset, (*shape, max(length, 0)), (*strides, down + right))


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis alone, so that what it names is a view."""
    parts = index if type(index) is tuple else (index,)
    for p in parts:
        if p is None or p is Ellipsis or type(p) is int:
            continue
        if type(p) is slice and all(b is None or type(b) is int for b in (p.start, p.stop, p.step)):
            continue
        return False
    return True


def indexed(view: View, index: Any) -> View:
    """What a basic index names."""
    parts = list(index) if type(index) is tuple else [index]
    named = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(view.shape) - named)
    else:
        parts += [slice(None)] * (len(view.shape) - named)
    offset = view.offset
    shape: list[int] = []
    strides: list[int] = []
    axis = 0
    for p in parts:
        if p is None:
            shape.append(1)
            strides.append(0)
            continue
        n, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if type(p) is int:
            if not -n <= p < n:
                raise IndexError(f"index {p} is out of bounds for an axis of size {n}")
            offset += (p + n if p < 0 else p) * stride
        else:
            start, stop, step = p.indices(n)
            length = len(range(start, stop, step))
            if length:
                offset += start * stride
            shape.append(length)
            strides.append(stride * step)
    return View(view.root, offset, tuple(shape), tuple(strides))
