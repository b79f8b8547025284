"""Computing again instead of keeping: cheap values that other loops read are computed there.

The gradient of tanh needs 1 - h * h of a result h that is kept anyway. What joins the forward loop because it can would
be written there and read again much later. Where a value follows in a few cheap steps from one array that is in memory
at any rate, each loop that reads it reads that array instead.
"""

from __future__ import annotations

from typing import Any

from .fusion import Group
from .nodes import CHEAP, Node, Operand
from .views import Root

_MOST_STEPS = 4

Readers = dict[Root, list[tuple[Group, Node, Operand]]]


def mark_needed(groups: list[Group]) -> None:
    """Find the roots that need memory: those that leave the group in which they are made."""
    for group in groups:
        for node in group.nodes:
            if node.op != "call":
                root = node.root
                root.needed = root.node is not node or root.target >= 0 or root.update >= 0
    for group in groups:
        for node in group.nodes:
            for operand in node.operands:
                maker = operand.root.node
                if maker is not None and maker.group is not group:
                    operand.root.needed = True


def sink(groups: list[Group], updated: set[Root]) -> None:
    """Let loops compute cheap values themselves. `updated` are inputs whose memory gets new contents."""
    mark_needed(groups)
    readers: Readers = {}
    for group in groups:
        for node in group.nodes:
            for operand in node.operands:
                maker = operand.root.node
                if maker is not None and maker.group is not group:
                    readers.setdefault(operand.root, []).append((group, node, operand))
    # The last first: what they are computed from may be computed again in turn.
    for root in sorted(readers, key=lambda root: -root.node.index):
        if root.target >= 0 or root.update >= 0 or any(node.op == "call" for _, node, _ in readers[root]):
            continue
        leaves: dict[Root, Any] = {}
        if _steps(root, root.node, leaves, updated) > _MOST_STEPS:
            continue
        groups_of = {group: None for group, _, _ in readers[root]}
        if any(len([leaf for leaf in leaves if leaf not in group.reads]) > 1 for group in groups_of):
            continue
        made: dict[Any, Root] = {}
        for group, node, operand in readers[root]:
            operand.root = _again(root, node, operand, made, readers)
            group.reads.update(leaves)
        root.needed = False


def _steps(root: Root, node: Node, leaves: dict[Root, Any], updated: set[Root]) -> int:
    """In how many cheap steps a root follows from `leaves`, arrays in memory of the same form; many if it does not."""
    if node.op not in CHEAP or node.reduce:
        return _MOST_STEPS + 1
    steps = 1
    for operand in node.operands:
        source = operand.root
        if source.kind == "number":
            continue
        if source.kind != "memory" or source.size != root.size or operand.strides != node.place:
            return _MOST_STEPS + 1
        if (source.needed or source.node is None) and source not in updated:
            leaves[source] = None
        elif source.node is None or source.node.group is not node.group:
            return _MOST_STEPS + 1
        else:
            steps += _steps(source, source.node, leaves, updated)
        if steps > _MOST_STEPS:
            break
    return steps


def _again(root: Root, reader: Node, operand: Operand, made: dict[Any, Root], readers: Readers) -> Root:
    """A root that a reader's own group computes: the same elements that `operand` names of `root`."""
    key = (reader.group, root, operand.offset, tuple(operand.strides))
    copy = made.get(key)
    if copy is not None and copy.node.index < reader.index:
        return copy
    original = root.node
    copy = made[key] = Root("memory", root.dtype, root.size)
    node = Node(reader.index, original.op, [], original.site)
    node.compute, node.dtype, node.root, node.place = original.compute, original.dtype, copy, operand.strides
    copy.node = node
    copy.writers.append(node)
    node.group, node.live = reader.group, True
    node.index = reader.index - 0.5**reader.depth
    node.depth = reader.depth + 1
    for source in original.operands:
        if source.root.kind == "number":
            node.operands.append(Operand(source.root, 0, [0] * len(operand.strides)))
        else:
            again = Operand(source.root, operand.offset, operand.strides)
            if not source.root.needed and source.root.node is not None:
                again.root = _again(source.root, node, again, made, readers)
            elif source.root.node is not None:
                readers.setdefault(source.root, []).append((reader.group, node, again))
            node.operands.append(again)
    reader.group.nodes.append(node)
    return copy
