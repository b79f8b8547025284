"""Lowering: a program becomes a schedule of kernel calls on planned memory.

Values are resolved to views of roots, and computations to nodes (`nodes.py`); nodes are joined into loops
(`fusion.py`, `loops.py`), put in order, and given memory (`memory.py`).
"""

from __future__ import annotations

from typing import Any

from ...targets.kernels import Access, Buffer, Call, Hole, Host, Location, Loop, Schedule, Step, Write
from ...targets.protocol import Abilities
from ..iteration import ITERATE
from ..program import Instruction, Program, Value
from . import host, iterations, products, reduce, scalar_steps
from .convolution import CONVOLUTION
from .custom import CUSTOM
from .epilogue import add_biases
from .fusion import Group, fused
from .gathering import GATHERING
from .loops import loop_of
from .losses import LOSSES
from .memory import Planned, plan, settle_updates
from .movement import MOVEMENT
from .nodes import Graph, memory_of
from .ordering import linked, ordered
from .pooling import POOLING
from .sinking import mark_needed, sink
from .small_loops import join_small
from .views import NATIVE, Root, View, itemsize, name_of, number, whole

_OF_PROCESSORS = Abilities()
_SECTOR = 16  # elements of half precision that a GPU reads at once


def lower(program: Program, abilities: Abilities = _OF_PROCESSORS) -> Schedule:
    """The calls that compute a program on a target with these abilities."""
    graph = Graph(abilities)
    views: dict[Value, View] = {}
    inputs, constants = _given(program, views)
    for instruction in program.instructions:
        _resolve(graph, views, instruction)
    outputs, targets = _wanted(graph, program, views)
    _mark_live(graph)
    if abilities.adds_bias:
        add_biases(graph)
    groups = fused(graph)
    sink(groups, set(targets.values()), abilities.reads_once)
    mark_needed(groups)
    if abilities.small_loop:
        groups = join_small(linked(groups, _does_something), abilities.small_loop)
        mark_needed(groups)
    farthest = _SECTOR if abilities.reads_once else 0
    calls = [_planned(group, farthest) for group in ordered(groups) if _does_something(group)]
    for root, target in settle_updates(calls, targets):
        calls.append(_copy(root, target))
    arena = plan(calls, abilities.makes_memory)
    return Schedule(
        [Call(c.kernel, _located(c.reads), _located(c.writes), c.site) for c in calls],
        inputs,
        outputs,
        constants,
        arena,
    )


def _given(program: Program, views: dict[Value, View]) -> tuple[list[Buffer], list[tuple[Buffer, Any]]]:
    """A buffer for each input, and those of the constants, whose inputs' own buffers nothing reads.

    Constants of one element are numbers in the code instead.
    """
    inputs: list[Buffer] = []
    constants: list[tuple[Buffer, Any]] = []
    updated = {target for target, _ in program.updates}
    for position, value in enumerate(program.inputs):
        root = Root("memory", name_of(value.dtype), value.size)
        root.source = position
        views[value] = whole(root, value.shape)
        inputs.append(memory_of(root, "input", position))
    for value, contents in program.constants.items():
        if value in updated:
            continue
        dtype = name_of(value.dtype)
        if value.size == 1 and dtype in NATIVE:
            views[value] = number(contents.reshape(()).item(), dtype, value.shape)
            continue
        views[value] = whole(Root("memory", dtype, value.size), value.shape)
        views[value].root.source = len(inputs) + len(constants)
        constants.append((memory_of(views[value].root, "constant", len(constants)), contents))
    return inputs, constants


def _resolve(graph: Graph, views: dict[Value, View], instruction: Instruction) -> None:
    """Give the results of an instruction their views."""
    op, results = instruction.op, instruction.results
    graph.site = instruction.site
    graph.waits = () if instruction.after is None else tuple(views[instruction.after].root.writers)
    made: Any = None
    if len(results) == 1 and not results[0].size and name_of(results[0].dtype) in NATIVE:
        made = number(0, name_of(results[0].dtype), results[0].shape)  # there is nothing to compute
    elif op == ITERATE:
        made = iterations.lowered(graph, views, instruction, lower)
    elif op in graph.abilities.whole:
        made = host.lowered(graph, views, instruction)
    elif op in scalar_steps.ELEMENTWISE:
        made = scalar_steps.lowered(graph, views, instruction)
    elif op in MOVEMENT:
        made = MOVEMENT[op](graph, views, instruction)
    elif op in reduce.REDUCTIONS:
        made = reduce.lowered(graph, views, instruction)
    elif op == "matmul":
        made = products.lowered(graph, views, instruction)
    elif op in CUSTOM:
        made = CUSTOM[op](graph, views, instruction)
    elif op in CONVOLUTION:
        made = CONVOLUTION[op](graph, views, instruction)
    elif op in LOSSES:
        made = LOSSES[op](graph, views, instruction)
    elif op in POOLING:
        made = POOLING[op](graph, views, instruction)
    if made is None and op in GATHERING and op not in graph.abilities.whole:
        made = GATHERING[op](graph, views, instruction)
    if made is None:
        made = host.lowered(graph, views, instruction)
    if type(made) is View:
        made = (made,)
    for value, view in zip(results, made):
        views[value] = view


def _wanted(graph: Graph, program: Program, views: dict[Value, View]) -> tuple[list[Buffer], dict[Root, Root]]:
    """Buffers of the outputs, and which roots hold new values of which inputs."""
    outputs: list[Buffer] = []
    targets: dict[Root, Root] = {}
    graph.site, graph.waits = "", ()
    for position, value in enumerate(program.outputs):
        root = _own(graph, views[value])
        root.target = position
        outputs.append(memory_of(root, "output", position))
    for target, value in program.updates:
        old, new = views[target].root, views[value]
        if new.root is old and new.whole:
            continue
        root = _own(graph, new)
        root.update = old.source
        targets[root] = old
    return outputs, targets


def _own(graph: Graph, view: View) -> Root:
    """A root that holds a view's elements and that nothing else wants: its own one, or a copy's."""
    root = view.root
    if view.whole and root.buffer is None and root.update < 0 and root.target < 0:
        return root
    if root.dtype in NATIVE:
        return scalar_steps.own_copy(graph, view).root
    return host.host_copy(graph, view).root


def _mark_live(graph: Graph) -> None:
    """Find the nodes on which something wanted depends."""
    wanted: set[Root] = set()
    for node in reversed(graph.nodes):
        roots = [node.root] if node.op != "call" else [root for root, _ in node.results]
        node.live = any([root.target >= 0 or root.update >= 0 or root in wanted for root in roots])
        if node.live:
            wanted.update([operand.root for operand in node.operands])


def _does_something(group: Group) -> bool:
    """Whether anything of a group is still wanted, after others compute themselves what they need."""
    return not group.loops or any([node.root.needed for node in group.nodes])


def _planned(group: Group, farthest: int) -> Planned:
    node = group.nodes[0]
    if not group.loops:
        return Planned(node.kernel, [(o.root, o.offset) for o in node.operands], node.results, node.site)
    loop, reads, writes = loop_of(group, farthest)
    return Planned(loop, reads, writes, group.nodes[-1].site)


def _copy(root: Root, target: Root) -> Planned:
    """Copy one root to another."""
    if root.dtype not in NATIVE:
        array = ((root.dtype, (root.size,), (1,)),)
        return Planned(Host("positive", (Hole(0),), array, array), [(root, 0)], [(target, 0)], "")
    access = Access(root.dtype, (1,))
    loop = Loop((), (root.size,), (access,), (Step("read", (), root.dtype),), (Write(0, access),))
    return Planned(loop, [(root, 0)], [(target, 0)], "")


def _located(arrays: list[tuple[Root, int]]) -> list[Location]:
    return [Location(root.buffer, offset * itemsize(root.dtype)) for root, offset in arrays]
