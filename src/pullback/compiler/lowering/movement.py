"""Kernels that move elements: as views where there are any, else as loops that write parts of new memory."""

from __future__ import annotations

from typing import Any, Callable

from ..program import Instruction, Value
from . import views as v
from .nodes import Graph
from .scalar_steps import as_number, converted, copied
from .views import NATIVE, View, name_of

Views = dict[Value, View]


def _reshape(graph: Graph, views: Views, i: Instruction) -> Any:
    shape = i.results[0].shape
    view = views[i.args[0]]
    made = v.reshaped(view, shape)
    if made is None:
        if view.root.dtype not in NATIVE:
            return None
        made = v.reshaped(copied(graph, view), shape)
    return made


def _permute(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.permuted(views[i.args[0]], i.args[1])


def _transpose(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.transposed(views[i.args[0]])


def _same_elements(graph: Graph, views: Views, i: Instruction) -> Any:
    """Axes of length 1 come or go."""
    return v.reshaped(views[i.args[0]], i.results[0].shape)


def _broadcast(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.broadcast(views[i.args[0]], i.results[0].shape)


def _flip(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.flipped(views[i.args[0]], i.args[1])


def _unstack(graph: Graph, views: Views, i: Instruction) -> Any:
    view = views[i.args[0]]
    axis = i.args[1] % len(view.shape)
    return [v.squeezed(v.part(view, axis, n, n + 1), (axis,)) for n in range(len(i.results))]


def _diagonal(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.diagonal(views[i.args[0]], i.args[1])


def _getitem(graph: Graph, views: Views, i: Instruction) -> Any:
    return v.indexed(views[i.args[0]], i.args[1]) if v.is_basic(i.args[1]) else None


# -- creation --------------------------------------------------------------------------------------


def _zeros(graph: Graph, views: Views, i: Instruction) -> Any:
    dtype = name_of(i.results[0].dtype)
    return v.number(as_number(0, dtype), dtype, i.results[0].shape) if dtype in NATIVE else None


def _ones(graph: Graph, views: Views, i: Instruction) -> Any:
    dtype = name_of(i.results[0].dtype)
    return v.number(as_number(1, dtype), dtype, i.results[0].shape) if dtype in NATIVE else None


def _full(graph: Graph, views: Views, i: Instruction) -> Any:
    value, dtype = i.args[1], name_of(i.results[0].dtype)
    if type(value) is Value:
        made = converted(graph, views[value], dtype)
        return made and v.broadcast(made, i.results[0].shape)
    if type(value) not in (int, float, bool) or dtype not in NATIVE:
        return None
    return v.number(as_number(value, dtype), dtype, i.results[0].shape)


def _arange(graph: Graph, views: Views, i: Instruction) -> Any:
    """start + i * (the difference of the first two elements), each operation in the result's dtype, as NumPy does."""
    import numpy as np

    start, stop, step = i.args[:3]
    dtype, shape = name_of(i.results[0].dtype), i.results[0].shape
    if dtype not in NATIVE or dtype in ("bool", "float16", "bfloat16") or type(step) is Value:
        return None
    if stop is None:
        start, stop = 0, start
    if type(start) is Value or shape == (0,):
        return None
    first = np.arange(start, start + 2 * step, step, i.results[0].dtype)[:2]
    if len(first) < 2:
        return None
    begin, delta = first[0].item(), (first[1] - first[0]).item() if first[1] >= first[0] or dtype[0] != "u" else None
    if delta is None:
        return None
    at = converted(graph, v.positions(shape, 0), dtype)
    assert at is not None
    if delta != 1:
        at = graph.map("multiply", dtype, dtype, [at, v.number(delta, "", ())], shape)
    return at if begin == 0 else graph.map("add", dtype, dtype, [at, v.number(begin, "", ())], shape)


# -- parts of new memory ---------------------------------------------------------------------------


def write(graph: Graph, into: View, view: View, over: bool = False) -> bool:
    """Copy a view, broadcast and converted, into a part of a root: `over` what was written there before."""
    if view.root.dtype not in NATIVE or into.root.dtype not in NATIVE:
        return False
    if 0 not in into.shape:
        after = list(into.root.writers) if over else ()
        value = v.broadcast(view, into.shape)
        graph.map("copy", into.root.dtype, into.root.dtype, [value], into.shape, into, after)
    return True


def _is_native(views: Views, i: Instruction) -> bool:
    return name_of(i.results[0].dtype) in NATIVE and all(views[value].root.dtype in NATIVE for value in i.values())


def _new(graph: Graph, i: Instruction) -> View:
    return graph.new(i.results[0].shape, name_of(i.results[0].dtype))


def _concat(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    out = _new(graph, i)
    flat = i.args[1] is None
    at, axis = 0, 0 if flat else i.args[1] % len(out.shape)
    for value in i.args[0]:
        view = views[value]
        if flat:
            made = v.reshaped(view, (view.size,))
            view = made if made is not None else v.whole(copied(graph, view).root, (view.size,))
        write(graph, v.part(out, axis, at, at + view.shape[axis]), view)
        at += view.shape[axis]
    return out


def _stack(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    out = _new(graph, i)
    axis = i.args[1] % len(out.shape)
    for n, value in enumerate(i.args[0]):
        write(graph, v.squeezed(v.part(out, axis, n, n + 1), (axis,)), views[value])
    return out


def _pad(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i) or type(i.args[2]) not in (int, float, bool):
        return None
    view, out = views[i.args[0]], _new(graph, i)
    middle = out
    # What lies before and after along each axis in turn, then the middle: nothing is written twice.
    for axis, (before, after) in enumerate(i.args[1]):
        n = view.shape[axis]
        for start, stop in ((0, before), (before + n, before + n + after)):
            if stop > start:
                edge = v.part(middle, axis, start, stop)
                write(graph, edge, v.number(as_number(i.args[2], out.root.dtype), out.root.dtype, ()))
        middle = v.part(middle, axis, before, before + n)
    write(graph, middle, view)
    return out


def _setitem(graph: Graph, views: Views, i: Instruction) -> Any:
    x, value, index = i.args
    if not v.is_basic(index) or not _is_native(views, i):
        return None
    out = _new(graph, i)
    write(graph, out, views[x])
    into = v.indexed(out, index)
    if type(value) is Value:
        view = views[value]
        while len(view.shape) > len(into.shape):
            view = v.squeezed(view, (0,))
    elif type(value) in (int, float, bool):
        view = v.number(as_number(value, out.root.dtype), out.root.dtype, ())
    else:
        return None
    write(graph, into, view, over=True)
    return out


def _place(graph: Graph, views: Views, i: Instruction) -> Any:
    value, _, index = i.args
    if not v.is_basic(index) or not _is_native(views, i):
        return None
    return _on_zeros(graph, views[value], i, lambda out: v.indexed(out, index))


def _place_diagonal(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    return _on_zeros(graph, views[i.args[0]], i, lambda out: v.diagonal(out, i.args[2]))


def _on_zeros(graph: Graph, view: View, i: Instruction, where: Callable[[View], View]) -> View:
    out = _new(graph, i)
    into = where(out)
    if into.size != out.size:
        write(graph, out, v.number(0, out.root.dtype, ()))
    write(graph, into, view, over=True)
    return out


def _index_add(graph: Graph, views: Views, i: Instruction) -> Any:
    x, value, index = i.args
    dtype = name_of(i.results[0].dtype)
    if not v.is_basic(index) or not _is_native(views, i) or type(value) is not Value or dtype == "bool":
        return None
    out = _new(graph, i)
    write(graph, out, views[x])
    into = v.indexed(out, index)
    if 0 not in into.shape:
        graph.map(
            "add", dtype, dtype, [into, v.broadcast(views[value], into.shape)], into.shape, into, list(out.root.writers)
        )
    return out


def _roll(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    view, shifts, axes = views[i.args[0]], i.args[1], i.args[2]
    shape = view.shape
    if axes is None:
        flat = v.reshaped(view, (view.size,))
        view = flat if flat is not None else v.whole(copied(graph, view).root, (view.size,))
        axes = (0,)
    axes = axes if type(axes) is tuple else (axes,)
    shifts = shifts if type(shifts) is tuple else (shifts,) * len(axes)
    pieces = [(view, (0,) * len(view.shape))]  # parts of the input and where they go
    for axis, shift in zip(axes, shifts):
        axis %= len(view.shape)
        n = view.shape[axis]
        if n == 0 or shift % n == 0:
            continue
        moved = []
        for piece, start in pieces:
            # The piece covers [start, start + length) of the axis; after the shift it may wrap around the end.
            length, first = piece.shape[axis], (start[axis] + shift) % n
            fits = min(length, n - first)
            moved.append((v.part(piece, axis, 0, fits), (*start[:axis], first, *start[axis + 1 :])))
            if fits < length:
                moved.append((v.part(piece, axis, fits, length), (*start[:axis], 0, *start[axis + 1 :])))
        pieces = moved
    out = graph.new(view.shape, view.root.dtype)
    for piece, start in pieces:
        into = out
        for axis, first in enumerate(start):
            into = v.part(into, axis, first, first + piece.shape[axis])
        write(graph, into, piece)
    return v.whole(out.root, shape)


def _repeat(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i) or type(i.args[1]) is not int or type(i.args[2]) is not int:
        return None
    view, repeats = views[i.args[0]], i.args[1]
    axis = i.args[2] % len(view.shape)
    wide = v.expanded(view, (axis + 1,))
    wide = v.broadcast(wide, (*view.shape[: axis + 1], repeats, *view.shape[axis + 1 :]))
    return v.reshaped(copied(graph, wide), i.results[0].shape)


def _tile(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    view, repetitions = views[i.args[0]], i.args[1]
    repetitions = repetitions if type(repetitions) is tuple else (repetitions,)
    ndim = max(len(repetitions), len(view.shape))
    view = v.expanded(view, tuple(range(ndim - len(view.shape))))
    repetitions = (1,) * (ndim - len(repetitions)) + repetitions
    wide = v.expanded(view, tuple(range(0, 2 * ndim, 2)))
    shape: list[int] = []
    for count, n in zip(repetitions, view.shape):
        shape += [count, n]
    return v.reshaped(copied(graph, v.broadcast(wide, tuple(shape))), i.results[0].shape)


def _shift(graph: Graph, views: Views, i: Instruction) -> Any:
    if not _is_native(views, i):
        return None
    view, out = views[i.args[0]], _new(graph, i)
    axis, offset = i.args[1][0] % len(view.shape), i.args[2]
    n = view.shape[axis]
    offset = max(-n, min(n, offset))
    zero = v.number(0, out.root.dtype, ())
    if offset >= 0:
        write(graph, v.part(out, axis, 0, offset), zero)
        write(graph, v.part(out, axis, offset, n), v.part(view, axis, 0, n - offset))
    else:
        write(graph, v.part(out, axis, n + offset, n), zero)
        write(graph, v.part(out, axis, 0, n + offset), v.part(view, axis, -offset, n))
    return out


def _triangle(graph: Graph, views: Views, i: Instruction) -> Any:
    """Zeros above or below a diagonal: a choice by position."""
    view = views[i.args[0]]
    k = i.args[1] if len(i.args) > 1 else 0
    if not _is_native(views, i) or len(view.shape) < 2 or type(k) is not int:
        return None
    shape, dtype = view.shape, view.root.dtype
    ndim = len(shape)
    down, right = v.positions(shape, ndim - 2), v.positions(shape, ndim - 1)
    limit = graph.map("add", "int64", "int64", [down, v.number(k, "", ())], shape) if k else down
    # tril keeps column <= row + k, triu keeps column >= row + k
    test = "less_equal" if i.op == "tril" else "greater_equal"
    kept = graph.map(test, "int64", "bool", [right, limit], shape)
    return graph.map("where", dtype, dtype, [kept, view, v.number(0, "", ())], shape)


MOVEMENT: dict[str, Callable[[Graph, Views, Instruction], Any]] = {
    "reshape": _reshape, "permute_dims": _permute, "matrix_transpose": _transpose, "expand_dims": _same_elements,
    "squeeze": _same_elements, "broadcast_to": _broadcast, "flip": _flip, "unstack": _unstack, "diagonal": _diagonal,
    "getitem": _getitem, "zeros": _zeros, "zeros_like": _zeros, "ones_like": _ones, "full": _full, "arange": _arange,
    "concat": _concat, "stack": _stack, "pad": _pad, "setitem": _setitem, "place": _place,
    "place_diagonal": _place_diagonal, "index_add": _index_add, "roll": _roll, "repeat": _repeat, "tile": _tile,
    "shift": _shift, "tril": _triangle, "triu": _triangle,
}  # fmt: skip
