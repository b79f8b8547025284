"""From a group of nodes to the description of one loop."""

from __future__ import annotations

from typing import Any

from ...targets.kernels import Access, Loop, Step, Write
from .fusion import Group
from .nodes import Node, coalesced
from .scalar_steps import as_number
from .views import Root

Array = tuple[Root, int]  # a root, and how many elements into it


def loop_of(group: Group, farthest: int = 0) -> tuple[Loop, list[Array], list[Array]]:
    """The loop that computes a group, what it reads and what it writes.

    Steps of `farthest` elements and more cost the same (0: those that go farther always cost more).
    """
    written, nodes = _used(sorted(group.nodes, key=lambda node: node.index))
    inner, axes = _ordered(group, nodes, written, farthest)
    builder = _Builder(nodes, len(group.sizes))
    for node in nodes:
        builder.add(node)
    return builder.finished(group, written, axes, inner)


def _used(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """The nodes whose results are written, and those on which they depend."""
    wanted: set[Root] = set()
    written: list[Node] = []
    used: list[Node] = []
    for node in reversed(nodes):
        if node.root.needed:
            written.append(node)
        elif node.root not in wanted:
            continue
        used.append(node)
        wanted.update([operand.root for operand in node.operands])
    return written[::-1], used[::-1]


def _ordered(group: Group, nodes: list[Node], written: list[Node], farthest: int) -> tuple[int, list[int]]:
    """The axes of the loop from the slowest to the fastest, and how many of them are inner ones (-1: any)."""
    steps = [operand.strides for node in nodes for operand in node.operands if operand.root.kind == "memory"]
    steps += 2 * [node.place for node in written]
    weights = []
    for axis in range(len(group.sizes)):
        strides = [abs(vector[axis]) for vector in steps]
        weights.append((sum([min(stride, farthest) for stride in strides]) if farthest else 0, sum(strides)))
    # Steps that cost least come last: most arrays are then gone through neighbour by neighbour.
    inner = group.inner
    if inner is None:
        return -1, sorted(range(len(weights)), key=lambda a: weights[a], reverse=True)
    return sum(inner), sorted(range(len(weights)), key=lambda a: (not inner[a], weights[a]), reverse=True)


class _Builder:
    """Steps in order, each read and each number only once."""

    def __init__(self, nodes: list[Node], axes: int) -> None:
        self.nodes = set(nodes)
        self.axes = axes
        self.steps: list[Any] = []
        self.dtypes: list[str] = []
        self.reads: list[tuple[Root, int, tuple[int, ...]]] = []
        self.positions: list[tuple[int, tuple[int, ...], int]] = []
        self.found: dict[Any, int] = {}
        self.made: dict[Root, int] = {}

    def step(self, op: str, operands: tuple[int, ...], dtype: str, index: int = 0, number: Any = None) -> int:
        # True == 1 == 1.0 and -0.0 == 0.0 in Python, but not here.
        key = (op, operands, dtype, index, repr(number))
        at = self.found.get(key)
        if at is None:
            at = self.found[key] = len(self.steps)
            self.steps.append(Step(op, operands, dtype, index, number))
            self.dtypes.append(dtype)
        return at

    def number(self, value: Any, dtype: str) -> int:
        return self.step("number", (), dtype, 0, as_number(value, dtype))

    def converted(self, step: int, dtype: str) -> int:
        if self.dtypes[step] == dtype:
            return step
        if dtype == "bool":
            return self.step("not_equal", (step, self.number(0, self.dtypes[step])), "bool")
        return self.step("convert", (step,), dtype)

    def operand(self, operand: Any, dtype: str) -> int:
        """The step that has an operand's value, in the dtype that it is needed in."""
        root = operand.root
        if root.kind == "number":
            value = root.number if root.dtype == "" else as_number(root.number, root.dtype)
            return self.number(value, dtype)
        if root.kind == "positions":
            return self.converted(self.position(operand), dtype)
        if root.node is not None and root.node in self.nodes:
            return self.converted(self.made[root], dtype)
        key = (root, operand.offset, tuple(operand.strides))
        at = self.found.get(key)
        if at is None:
            at = self.found[key] = len(self.steps)
            self.steps.append(Step("read", (), root.dtype, len(self.reads)))
            self.dtypes.append(root.dtype)
            self.reads.append(key)
        return self.converted(at, dtype)

    def position(self, operand: Any) -> int:
        """Positions along axes are known only when the loop's axes are: a place is kept for them."""
        key = ("positions", operand.offset, tuple(operand.strides))
        at = self.found.get(key)
        if at is None:
            at = self.found[key] = len(self.steps)
            self.steps.append(key)
            self.dtypes.append("int64")
        return at

    def add(self, node: Node) -> None:
        op, compute = node.op, node.compute
        if node.reduce:
            operand = self.operand(node.operands[0], compute)
            made = self.step(f"{node.reduce}_{op}", (operand,), node.dtype)
        elif op == "copy":
            made = self.operand(node.operands[0], compute)
        elif op == "where":
            condition, x, y = node.operands
            operands = (self.operand(condition, "bool"), self.operand(x, compute), self.operand(y, compute))
            made = self.step(op, operands, node.dtype)
        else:
            made = self.step(op, tuple([self.operand(operand, compute) for operand in node.operands]), node.dtype)
        if node.root.node is node:
            self.made[node.root] = made
        self.found[node] = made

    def finished(self, group: Group, written: list[Node], axes: list[int], inner: int) -> Any:
        sizes = [group.sizes[a] for a in axes]
        vectors: list[Any] = [[strides[a] for a in axes] for _, _, strides in self.reads]
        vectors += [[node.place[a] for a in axes] for node in written]
        spots = [i for i, step in enumerate(self.steps) if type(step) is tuple]
        vectors += [[self.steps[i][2][a] for a in axes] for i in spots]
        if inner < 0:
            if vectors:
                sizes, vectors = coalesced(sizes, vectors)
            cut = max(len(sizes) - 1, 0)
        else:
            cut = len(sizes) - inner
            first, slow = coalesced(sizes[:cut], [vector[:cut] for vector in vectors])
            last, fast = coalesced(sizes[cut:], [vector[cut:] for vector in vectors])
            sizes, cut, vectors = first + last, len(first), [a + b for a, b in zip(slow, fast)]
        accesses = [tuple(vector) for vector in vectors]
        reads = tuple([Access(root.dtype, s) for (root, _, _), s in zip(self.reads, accesses)])
        n = len(reads)
        writes = tuple(
            [Write(self.found[node], Access(node.root.dtype, s)) for node, s in zip(written, accesses[n:])]
        )  # fmt: skip
        steps, writes = _with_positions(self.steps, spots, accesses[n + len(writes) :], writes)
        loop = Loop(tuple(sizes[:cut]), tuple(sizes[cut:]), reads, tuple(steps), writes)
        return loop, [(root, offset) for root, offset, _ in self.reads], [(node.root, node.offset) for node in written]


def _with_positions(steps: list[Any], spots: list[int], strides: list[Any], writes: Any) -> tuple[list[Step], Any]:
    """Put the computation of positions, from those along the loop's own axes, where their places were kept."""
    if not spots:
        return steps, writes
    out: list[Step] = []
    number: list[int] = []  # of each old step among the new ones
    moves = dict(zip(spots, strides))
    for i, step in enumerate(steps):
        if i in moves:
            out += _positions(step[1], moves[i], len(out))
        else:
            out.append(Step(step.op, tuple([number[o] for o in step.operands]), step.dtype, step.index, step.number))
        number.append(len(out) - 1)
    return out, tuple([Write(number[write.step], write.access) for write in writes])


def _positions(offset: int, strides: tuple[int, ...], first: int) -> list[Step]:
    """offset + the sum of position * stride over the axes; `first` is the number of its first step."""
    steps: list[Step] = []
    total = -1

    def made(op: str, operands: tuple[int, ...], index: int = 0, number: Any = None) -> int:
        steps.append(Step(op, operands, "int64", index, number))
        return first + len(steps) - 1

    for axis, stride in enumerate(strides):
        if not stride:
            continue
        at = made("position", (), axis)
        if stride != 1:
            at = made("multiply", (at, made("number", (), 0, stride)))
        total = at if total < 0 else made("add", (total, at))
    if total < 0:
        made("number", (), 0, offset)
    elif offset:
        made("add", (total, made("number", (), 0, offset)))
    return steps
