"""Computing again instead of keeping: cheap values that other loops read are computed there.

The gradient of tanh needs 1 - h * h of a result h that is kept anyway. What joins the forward loop because it can would
be written there and read again much later. Where a value follows in a few cheap steps from arrays that are in memory
at any rate, each loop that reads it reads these instead. They have the value's form; on targets whose passes over
memory cost more than arithmetic small ones may be broadcast to it, and the value may be a small part of one: the
normalised images of a batch, say, follow from the images and two numbers for each channel.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .fusion import Group
from .nodes import CHEAP, Node, Operand, coalesced
from .views import Root, itemsize

_MOST_STEPS = 4
_DEEPEST = 24  # of what is computed again for what is computed again: their numbers come ever closer to each other
_MOST_STEPS_OF_FAST = 8  # on targets whose arithmetic costs next to nothing
_FEW = 1 << 14  # elements that are computed, and even copied, sooner than a loop of their own is launched for them
_MOST_STEPS_OF_FEW = 16
_OF_FEW = frozenset(("sqrt", "divide", "reciprocal"))  # what else is computed again of them
_SMALL = 8  # times smaller, so that reading it does not count
_TINY = 64  # times smaller, so that writing it does not count either

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


def sink(groups: list[Group], updated: set[Root], reads_once: bool = False) -> None:
    """Let loops compute cheap values themselves. `updated` are inputs whose memory gets new contents.

    `reads_once`: passes over memory cost more than arithmetic (see `Abilities`).
    """
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
        if any(node.depth > _DEEPEST for _, node, _ in readers[root]):
            continue
        origin = _origin(root, readers[root], updated, reads_once)
        if origin is None:
            continue
        for source in origin.narrower:
            source.needed = True
        made: dict[Any, Root] = {}
        for group, node, operand in readers[root]:
            operand.root = _again(root, node, operand, made, readers)
            group.reads.update(origin.leaves)
        root.needed = False


def _origin(
    root: Root, readers: list[tuple[Group, Node, Operand]], updated: set[Root], reads_once: bool
) -> _Origin | None:
    """What all readers of a root can compute it from, if there is something."""
    for keeps_narrower in (False, True) if reads_once else (False,):
        origin = _Origin(root, updated, reads_once, keeps_narrower)
        if origin.is_near and all([origin.suits(*reader) for reader in readers]):
            return origin
    return None


class _Origin:
    """The arrays in memory from which a root follows in a few cheap steps (`is_near`), if it does.

    `leaves` have, for each, how many bytes of it are read. `others` are the operands whose form is not the root's.
    With `keeps_narrower`, what has fewer bytes than the root on the way to it is written in its place (`narrower`).
    """

    def __init__(self, root: Root, updated: set[Root], reads_once: bool, keeps_narrower: bool) -> None:
        self.root = root
        self.leaves: dict[Root, int] = {}
        self.others: list[Operand] = []
        self.narrower: list[Root] = []
        self._keeps_narrower = keeps_narrower
        self._updated = updated
        self._reads_once = reads_once
        self._is_few = reads_once and 1 < root.size <= _FEW
        self._most = (_MOST_STEPS_OF_FEW if self._is_few else _MOST_STEPS_OF_FAST) if reads_once else _MOST_STEPS
        self.is_near = self._steps(root, root.node) <= self._most

    def _steps(self, root: Root, node: Node) -> int:
        """In how many cheap steps a root follows from leaves; many if it does not."""
        many = self._most + 1
        if node.reduce or (node.op not in CHEAP and not (self._is_few and node.op in _OF_FEW)):
            return many
        steps = 1
        for operand in node.operands:
            source = operand.root
            if source.kind == "number":
                continue
            if source.kind != "memory":
                return many
            if source.size != root.size or operand.strides != node.place:
                if not self._takes(operand):
                    return many
            elif (source.needed or source.node is None) and self._stays(source):
                self.leaves[source] = source.nbytes
            elif source.node is None or source.node.group is not node.group:
                return many
            elif self._keeps_narrower and itemsize(source.dtype) < itemsize(self.root.dtype):
                self.leaves[source] = source.nbytes
                self.narrower.append(source)
            else:
                steps += self._steps(source, source.node)
            if steps > self._most:
                break
        return steps

    def _stays(self, source: Root) -> bool:
        """Whether an array can be read later than now: one that gets new contents would have to be copied before."""
        return source not in self._updated or (self._reads_once and 1 < source.size <= _FEW)

    def _takes(self, operand: Operand) -> bool:
        """Whether to read an array of another form: of which few elements are read, or of which the root is a part."""
        source, size = operand.root, self.root.size
        if not self._reads_once:
            return False
        if not (source.needed or source.node is None):
            if source.node.group is not self.root.node.group or source.size * _TINY > size:
                return False
            self.narrower.append(source)  # the mean of a row, say
        read = prod([n for n, stride in zip(self.root.node.group.sizes, operand.strides) if stride])
        if read * _SMALL > size and not self._stays(source):
            return False
        if read >= size and size * _SMALL > source.size:
            return False  # the same elements in another order: some loops would not go through them in order
        self.others.append(operand)
        self.leaves.setdefault(source, read * itemsize(source.dtype))
        return True

    def suits(self, group: Group, reader: Node, operand: Operand) -> bool:
        """Whether a reader's loop reads no more for computing the root than for reading it, and can."""
        new = [nbytes for leaf, nbytes in self.leaves.items() if leaf not in group.reads]
        if not self._reads_once:
            return len(new) <= 1
        large = [nbytes for nbytes in new if nbytes * _SMALL > self.root.nbytes]
        if not self._is_few and len(large) > 1 and sum(large) > self.root.nbytes:
            return False
        return all([_carried(other, self.root.node, operand, reader.group) is not None for other in self.others])


def _carried(source: Operand, maker: Node, operand: Operand, group: Group) -> list[int] | None:
    """Strides in the domain of `group`, where `operand` reads what `maker` makes, for what that reads as `source`.

    None where a step along one of the domain's axes is not some steps along one of the maker's.
    """
    if operand.offset:
        return None
    order = sorted(range(len(maker.place)), key=lambda axis: -maker.place[axis])
    sizes, (place, moves) = coalesced(
        [maker.group.sizes[axis] for axis in order],
        [[vector[axis] for axis in order] for vector in (maker.place, source.strides)],
    )
    left = [n - 1 for n in sizes]  # steps along each of the maker's axes that nothing goes yet
    strides: list[int] = []
    for size, stride in zip(group.sizes, operand.strides):
        if not stride:
            strides.append(0)
            continue
        fitting = [axis for axis, step in enumerate(place) if step and stride > 0 and stride % step == 0]
        if not fitting:
            return None
        times = stride // place[fitting[0]]
        left[fitting[0]] -= times * (size - 1)
        if left[fitting[0]] < 0:
            return None
        strides.append(times * moves[fitting[0]])
    return strides


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
            if source.root.size != root.size or source.strides != original.place:
                strides = _carried(source, original, operand, reader.group)
                assert strides is not None
                again = Operand(source.root, source.offset, strides)
            if not source.root.needed and source.root.node is not None:
                again.root = _again(source.root, node, again, made, readers)
            elif source.root.node is not None:
                readers.setdefault(source.root, []).append((reader.group, node, again))
            node.operands.append(again)
    reader.group.nodes.append(node)
    return copy
