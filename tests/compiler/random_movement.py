"""Instructions chosen at random that move elements: reshaping, indexing, gathering. Others: `random_instructions`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from pullback.compiler.program import Value

if TYPE_CHECKING:
    from .random_instructions import RandomProgram

LARGEST = 5000  # elements of a value


def movement(b: RandomProgram) -> Value | None:
    x = b.some(test=lambda v: v.size < LARGEST // 8)
    if x is None:
        return None
    op = b.any_of(list(_MOVES))
    return _MOVES[op](b, x)


def _reshape(b: RandomProgram, x: Value) -> Value:
    shapes: list[tuple[int, ...]] = [(x.size,), (1, *x.shape), (*x.shape, 1), tuple(n for n in x.shape if n != 1)]
    if x.ndim > 1 and x.size:
        shapes += [
            (x.shape[0] * x.shape[1], *x.shape[2:]),
            (*x.shape[:-2], x.shape[-2] * x.shape[-1]),
            x.shape[::-1],
            (-1, x.shape[-1]),
        ]
    return b.make("reshape", x, b.any_of(shapes))


def _permute(b: RandomProgram, x: Value) -> Value:
    return b.make(
        "permute_dims", x, tuple(int(axis) - (x.ndim if b.one_in(2) else 0) for axis in b.random.permutation(x.ndim))
    )


def _broadcast(b: RandomProgram, x: Value) -> Value | None:
    shape = tuple(b.any_of([2, 3]) if n == 1 and b.one_in(2) else n for n in x.shape)
    shape = (b.any_of([1, 2, 4]), *shape) if b.one_in(2) else shape
    return b.make("broadcast_to", x, shape) if math.prod(shape) <= LARGEST else None


def _along(
    function: Callable[[RandomProgram, Value, int], Value | None],
) -> Callable[[RandomProgram, Value], Value | None]:
    """A movement along one axis of an array that has one."""
    return lambda b, x: function(b, x, -int(b.random.integers(1, x.ndim + 1))) if x.ndim else None


def _last_two(op: str, *more: Any) -> Callable[[RandomProgram, Value], Value | None]:
    return lambda b, x: b.make(op, x, *more) if x.ndim > 1 else None


_MOVES: dict[str, Callable[[RandomProgram, Value], Value | None]] = {
    "reshape": _reshape,
    "permute_dims": _permute,
    "matrix_transpose": _last_two("matrix_transpose"),
    "expand_dims": lambda b, x: b.make("expand_dims", x, (b.any_of([0, -1]),)) if x.ndim < 5 else None,
    "squeeze": lambda b, x: b.make("squeeze", x, tuple(i - x.ndim for i, n in enumerate(x.shape) if n == 1)),
    "broadcast_to": _broadcast,
    "flip": _along(lambda b, x, axis: b.make("flip", x, (axis,))),
    "roll": _along(lambda b, x, axis: b.make("roll", x, (b.any_of([-2, 0, 1]),), (axis,))),
    "repeat": _along(lambda b, x, axis: b.make("repeat", x, b.any_of([1, 2]), axis)),
    "tile": lambda b, x: b.make("tile", x, (b.any_of([1, 2]),) + (1,) * (x.ndim - 1)) if x.ndim else None,
    "pad": lambda b, x: b.make("pad", x, tuple((int(b.random.integers(2)), 1) for _ in x.shape), 0),
    "concat": _along(lambda b, x, axis: b.make("concat", (x, x, b.make("zeros_like", x))[: b.any_of([1, 2, 3])], axis)),
    "stack": lambda b, x: b.make("stack", (x, x)[: b.any_of([1, 2])], b.any_of([0, -1])) if x.ndim < 5 else None,
    "unstack": _along(lambda b, x, axis: b.any_of(b.make_all("unstack", x, axis)) if 0 < x.shape[axis] < 5 else None),
    "tril": _last_two("tril", 0),
    "triu": _last_two("triu", 1),
    "diagonal": _last_two("diagonal", 0),
}  # fmt: skip


def _index(b: RandomProgram, x: Value) -> tuple[Any, ...]:
    """Integers, slices (of negative steps, too), None and Ellipsis."""
    index: list[Any] = []
    for n in x.shape:
        which = b.random.integers(6)
        if which == 0 and n:
            index.append(int(b.random.integers(-n, n)))
        elif which == 1:
            index.append(slice(None, None, -1))
        elif which == 2 and n > 1:
            index.append(slice(int(b.random.integers(n)), None, b.any_of([1, 2])))
        else:
            index.append(slice(None))
    if b.one_in(3):
        index.insert(int(b.random.integers(len(index) + 1)), None)
    if b.one_in(3):
        index = [*index[:1], Ellipsis]
    return tuple(index)


def indexing(b: RandomProgram) -> Value | None:
    x = b.some()
    if x is None:
        return None
    index = _index(b, x)
    part = b.make("getitem", x, index)
    which = b.random.integers(4)
    if which == 0:
        return b.make("place", part, x.shape, index)
    if which == 1 and None not in index:
        return b.make("setitem", x, part, index) if b.one_in(2) else b.make("setitem", x, 0, index)
    if which == 2 and None not in index and x.dtype.kind in "fi":
        return b.make("index_add", x, part, index)
    return part


def gathering(b: RandomProgram) -> Value | None:
    x = b.some("fi", lambda v: v.ndim > 0 and v.size > 0)
    if x is None:
        return None
    axis = -int(b.random.integers(1, x.ndim + 1))
    n = x.shape[axis]
    which = b.random.integers(5)
    if which == 0:
        shape = tuple(2 if i - x.ndim == axis else size for i, size in enumerate(x.shape))
        indices = b.input(b.random.integers(0, n, shape), b.one_in(3))
        taken = b.make("take_along_axis", x, indices, axis)
        return b.make("take_along_axis_transposed", taken, indices, n, axis) if b.one_in(2) else taken
    indices = b.input(b.random.integers(0, n, 4), b.one_in(3))
    if which == 1:
        rows = b.input(b.random.integers(0, x.shape[0], (2, 3)))
        read = b.make("getitem", x, (rows,))
        return b.make("place", read, x.shape, (rows,)) if b.one_in(2) else read
    if x.size * 4 // n > LARGEST:
        return None
    taken = b.make("take", x, indices, axis)
    return b.make("take_transposed", taken, indices, n, axis) if which == 2 else taken
