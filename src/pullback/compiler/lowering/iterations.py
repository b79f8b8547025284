"""Loops of a program: the body's calls, which are repeated on arrays that move from step to step."""

from __future__ import annotations

from typing import Any

from ...targets.kernels import Access, Hole, Host, Loop, Repeat, Step, Write
from ..iteration import Iteration
from ..program import Instruction, Program, Value
from .host import host_copy
from .nodes import Graph
from .scalar_steps import copied
from .views import NATIVE, View, indexed, itemsize, name_of


def lowered(graph: Graph, views: dict[Value, View], instruction: Instruction, lower: Any) -> list[View] | None:
    """The results of a loop. `lower` makes a schedule of its body."""
    iteration: Iteration = instruction.args[0]
    _, carry, _, next_carry, outputs = iteration.split()
    body = iteration.body
    # The next carry is a new value of the carry's own memory.
    changing = Program(body.inputs, body.instructions, outputs, list(zip(carry, next_carry)), body.constants)
    schedule = lower(changing, graph.abilities)
    if schedule.constants:
        return None  # none are left after the passes
    constants = [_dense(graph, views[value]) for value in instruction.args[1]]
    initial = [_dense(graph, views[value]) for value in instruction.args[2]]
    columns = [_with_dense_slices(graph, views[value]) for value in instruction.args[3]]
    results = [graph.new(value.shape, name_of(value.dtype)) for value in instruction.results]
    made = results[len(carry) :]
    arena = graph.new((max(schedule.arena_bytes, 1),), "uint8")
    reads, writes = [*constants, *columns, *initial], [*results, arena]
    strides = [_stride(view) if view in columns else 0 for view in reads]
    strides += [_stride(view) if view in made else 0 for view in writes]
    if iteration.reverse and iteration.steps:
        last = iteration.steps - 1
        reads = [_from(view, last) if view in columns else view for view in reads]
        writes = [_from(view, last) if view in made else view for view in writes]
        strides = [-stride for stride in strides]
    first_carry = len(reads)
    starts = [len(constants) + len(columns) + i for i in range(len(initial))]
    inputs = [*range(len(constants)), *range(first_carry, first_carry + len(carry))]
    inputs += range(len(constants), len(constants) + len(columns))
    kernel = Repeat(
        iteration.steps,
        schedule,
        tuple(inputs),
        tuple(range(first_carry + len(carry), first_carry + len(results))),
        len(reads) + len(results),
        tuple(strides),
        tuple([(_copy(view), start, first_carry + i) for i, (view, start) in enumerate(zip(initial, starts))]),
    )
    graph.call(kernel, reads, writes)
    return results


def _dense(graph: Graph, view: View) -> View:
    """A view whose elements are neighbours, in order."""
    if view.root.kind == "memory" and view.dense:
        return view
    return copied(graph, view) if view.root.dtype in NATIVE else host_copy(graph, view)


def _with_dense_slices(graph: Graph, view: View) -> View:
    """A view each of whose slices is one of neighbours, in order."""
    if view.root.kind == "memory" and view.size and indexed(view, 0).dense:
        return View(view.root, view.offset, view.shape, view.strides)  # its own: it may be a constant as well
    made = _dense(graph, view)
    return View(made.root, made.offset, made.shape, made.strides)


def _stride(view: View) -> int:
    return view.strides[0] * itemsize(view.root.dtype)


def _from(view: View, start: int) -> View:
    return View(view.root, view.offset + start * view.strides[0], view.shape, view.strides)


def _copy(view: View) -> Any:
    """The kernel that copies elements that are neighbours."""
    dtype, size = view.root.dtype, view.size
    if dtype not in NATIVE:
        array = ((dtype, (size,), (1,)),)
        return Host("positive", (Hole(0),), array, array)
    access = Access(dtype, (1,))
    return Loop((), (size,), (access,), (Step("read", (), dtype),), (Write(0, access),))
