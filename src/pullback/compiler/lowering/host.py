"""Calls of NumPy's own kernels, for what has no native form."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Iterator

from ...targets.kernels import Hole, Host
from ..passes.channels_last import FROM_LAST, TO_LAST, lies_last
from ..program import Instruction, Value
from .nodes import Graph
from .scalar_steps import copied
from .views import NATIVE, View, name_of, permuted


def lowered(graph: Graph, views: dict[Value, View], instruction: Instruction) -> list[View]:
    """The results of an instruction, each in new memory."""
    reads: list[View] = []
    holes: dict[Value, Hole] = {}
    channels_last = lies_last(instruction, graph.abilities.channels_last)

    def hole(value: Value) -> Hole:
        if value not in holes:
            view = views[value]
            if view.root.kind != "memory":
                view = copied(graph, view)
            elif not graph.abilities.goes_backwards and any(step < 0 for step in view.strides):
                view = copied(graph, view) if view.root.dtype in NATIVE else host_copy(graph, view)
            if channels_last and len(view.shape) == 4:
                view = _with_channels_last(graph, view)
            holes[value] = Hole(len(reads))
            reads.append(view)
        return holes[value]

    args = _with_holes(instruction.args, hole)
    if channels_last:
        writes = [_new_with_channels_last(graph, value) for value in instruction.results]
    else:
        likeness = zip(instruction.results, _likeness(instruction))
        writes = [_result(graph, views, value, like) for value, like in likeness]
    kernel = Host(instruction.op, args, _arrays(reads), _arrays(writes))
    graph.call(kernel, reads, writes)
    return writes


def _likeness(instruction: Instruction) -> Iterator[Any]:
    """For each result, the argument in whose order of axes a library makes it; None for C's order."""
    args = instruction.args
    if instruction.op == "attention":
        return iter((args[0], None))
    if instruction.op == "attention_gradient":
        return iter([arg for arg, needed in zip((*args[1:4], None), args[7]) if needed])
    return repeat(None)


def _result(graph: Graph, views: dict[Value, View], value: Value, like: Value | None) -> View:
    dtype = name_of(value.dtype)
    if like is None or views[like].root.kind != "memory" or 0 in views[like].strides:
        return graph.new(value.shape, dtype)
    return graph.new_like(value.shape, dtype, views[like].strides)


def _with_channels_last(graph: Graph, view: View) -> View:
    """Images whose channels are neighbours in memory: a view as it is, or a copy."""
    turned = permuted(view, TO_LAST)
    return view if turned.dense else permuted(copied(graph, turned), FROM_LAST)


def _new_with_channels_last(graph: Graph, value: Value) -> View:
    shape = tuple([value.shape[axis] for axis in TO_LAST])
    return permuted(graph.new(shape, name_of(value.dtype)), FROM_LAST)


def _with_holes(args: Any, hole: Any) -> Any:
    made = []
    for arg in args:
        if type(arg) is Value:
            made.append(hole(arg))
        elif type(arg) in (tuple, list):
            made.append(_with_holes(arg, hole))
        else:
            made.append(arg)
    return tuple(made)


def _arrays(views: list[View]) -> tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]:
    return tuple([(view.root.dtype, view.shape, view.strides) for view in views])


def host_copy(graph: Graph, view: View) -> View:
    """A copy of elements that loops cannot move."""
    out = graph.new(view.shape, view.root.dtype)
    graph.call(Host("positive", (Hole(0),), _arrays([view]), _arrays([out])), [view], [out])
    return out
