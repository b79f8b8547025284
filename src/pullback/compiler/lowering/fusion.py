"""Joining nodes into groups, each of which becomes one loop.

Two groups can be joined if their domains are the same index space: an array that one makes and the other reads, or that
both read, says which axes correspond. Axes are divided where the other domain has a boundary, so that (6, 4) and (24,)
are the same; and one group may go over some of the axes only, if those it does not go over can be the inner ones: its
values then belong to rows. What one group needs of the other must be at the very index where it is made; results of
reductions over columns or over everything are known only after the loop. The groups must stay free of cycles: what
lies between two groups keeps them apart.
"""

from __future__ import annotations

from typing import Any, Iterable

from .nodes import CHEAP, Graph, Node, Operand

MOST_NODES = 64
MOST_ARRAYS = 20


class Group:
    """Nodes over one domain. `inner` says of each axis whether it is an inner one, or is None while that is open.

    `bits` are the numbers of its nodes and `ancestors` those of all nodes that must come before it, as bits of an int.
    It is `of_inputs` if it reads nothing but what is given, and what other loops have made of that alone.
    """

    __slots__ = (
        "nodes", "sizes", "inner", "before", "after", "bits", "ancestors", "reduces", "loops", "reads", "of_inputs",
    )  # fmt: skip

    def __init__(self, node: Node) -> None:
        self.nodes = [node]
        self.sizes = node.sizes
        self.loops = node.op != "call"
        self.reduces = bool(node.reduce)
        self.inner: list[bool] | None = None
        if node.reduce == "row":
            self.inner = [not s for s in node.place]
        elif node.reduce == "column":
            self.inner = [bool(s) for s in node.place]
        self.bits = 1 << int(node.index)
        self.ancestors = 0
        self.before: set[Group] = set()
        self.after: set[Group] = set()
        self.reads: set[Any] = set()
        self.of_inputs = self.loops
        for operand in node.operands:
            root = operand.root
            if root.kind == "memory":
                self.reads.add(root)
                for writer in root.writers:
                    if writer is not node and writer.group is not None:
                        self.comes_after(writer.group)
        for writer in (*node.after, *node.waits):
            if writer.group is not None:  # else nobody needs what it writes
                self.comes_after(writer.group)

    def comes_after(self, group: Group) -> None:
        self.before.add(group)
        group.after.add(self)
        self.ancestors |= group.ancestors | group.bits
        self.of_inputs = self.of_inputs and group.of_inputs

    @property
    def index(self) -> int:
        """The number of the last of its nodes."""
        return self.bits.bit_length()


def fused(graph: Graph) -> list[Group]:
    """The live nodes of a graph as groups."""
    _separate_totals(graph)
    groups: list[Group] = []
    for node in graph.nodes:
        if not node.live:
            continue
        group = node.group = Group(node)
        groups.append(group)
        if node.op != "call":
            _join_producers(node)
    alive = [group for group in groups if group.nodes]
    _join_siblings(alive)
    return [group for group in alive if group.nodes]


def _separate_totals(graph: Graph) -> None:
    """Let what is summed up over everything be computed for that sum alone, where it is a few cheap steps.

    Others that use it may have to wait for the sum: an update does that is made only if all gradients are finite, and
    that could then not be one loop. Where nothing waits the two come together again, in the loop of what they read.
    """
    readers: dict[Any, int] = {}
    for node in graph.nodes:
        if node.live:
            for operand in node.operands:
                readers[operand.root] = readers.get(operand.root, 0) + 1
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.live and node.reduce == "total" and _is_shared(node.operands[0], readers, _STEPS_OF_TOTALS):
            nodes += _made_again(node.operands[0], node.site, _STEPS_OF_TOTALS)
        nodes.append(node)
    if len(nodes) > len(graph.nodes):
        graph.nodes = nodes
        for index, node in enumerate(nodes):
            node.index = index
        wanted = {operand.root for node in nodes if node.live for operand in node.operands}
        for node in nodes:  # what only the sums have used
            if node.live and node.op in CHEAP and node.root not in wanted and _is_inside(node.root):
                node.live = False


_STEPS_OF_TOTALS = 4  # conversions, and a square


def _is_shared(operand: Operand, readers: dict[Any, int], steps: int) -> bool:
    """Whether somebody else uses what a sum goes over, or what that is made from in cheap steps."""
    maker = operand.root.node
    if maker is None or maker.op not in CHEAP or maker.reduce or not steps:
        return False
    return readers[operand.root] > 1 or any([_is_shared(one, readers, steps - 1) for one in maker.operands])


def _made_again(operand: Operand, site: str, steps: int) -> list[Node]:
    """Have an operand read what is computed for it alone, in so many cheap steps; the nodes that do."""
    maker = operand.root.node
    if maker is None or maker.op not in CHEAP or maker.reduce or not steps:
        return []
    again = maker.again(site)
    operand.root = again.root
    before = [node for one in again.operands for node in _made_again(one, site, steps - 1)]
    return [*before, again]


def _is_inside(root: Any) -> bool:
    return bool(root.target < 0 and root.update < 0)


def _join_producers(node: Node) -> None:
    """Join a node's group with those that make its operands, the latest first."""
    edges = [(o.root.node.index, o) for o in node.operands if o.root.node is not None and o.offset == 0]
    if len(edges) > 1:
        edges.sort(key=lambda edge: -edge[0])
    for _, operand in edges:
        producer = operand.root.node
        group = producer.group
        if group is not node.group and producer.reduce in ("", "row"):
            join(group, node.group, producer.place, operand.strides)


def _join_siblings(groups: list[Group]) -> None:
    """Join groups that read the same array over the same domain, and computations of single numbers."""
    readers: dict[Any, list[Node]] = {}
    single: list[Group] = []
    for group in groups:
        if not group.loops:
            continue
        if not group.sizes:
            single.append(group)
            continue
        for node in group.nodes:
            for operand in node.operands:
                if operand.root.kind == "memory" and operand.root.size > 1 and 0 not in operand.strides:
                    readers.setdefault(operand.root, []).append(node)
    for root, nodes in readers.items():
        if root.node is not None and root.node.reduce in ("", "row"):
            continue  # these were tried where it is made
        first = nodes[0]
        for node in nodes[1:]:
            if node.group is first.group or (_only_expands(node.group) and _only_expands(first.group)):
                continue
            x = next(o for o in first.operands if o.root is root)
            y = next(o for o in node.operands if o.root is root)
            if x.offset == y.offset and 0 not in x.strides and 0 not in y.strides:
                if first.group.ancestors & node.group.bits:
                    join(node.group, first.group, y.strides, x.strides)
                else:
                    join(first.group, node.group, x.strides, y.strides)
            first = node if node.group is not first.group else first
    last: Group | None = None
    for group in single:
        if not group.nodes:
            continue
        if last is not None and last.nodes:
            join(group, last, [], []) if last.ancestors & group.bits else join(last, group, [], [])
        last = group if group.nodes else last


def _only_expands(group: Group) -> bool:
    """Whether a group makes more of what is given than that is, such as a weight that is stored in fewer bits.

    Each of those runs just before it is needed: one loop for two of them would save little, and keep the later one's
    values from the first on.
    """
    return group.of_inputs and group.nodes[-1].root.nbytes > sum([root.nbytes for root in group.reads])


def join(
    a: Group,
    b: Group,
    place: list[int],
    strides: list[int],
    most_nodes: int = MOST_NODES,
    most_arrays: int = MOST_ARRAYS,
) -> bool:
    """Join b, which does not come before a, to a: `place` and `strides` go over the same elements in their domains."""
    if len(a.nodes) + len(b.nodes) > most_nodes or not a.loops or not b.loops:
        return False
    reads = {root for root in b.reads if root.node is None or root.node.group is not a} | a.reads
    if len(reads) > most_arrays:
        return False
    if _is_between(a, b):
        return False
    mapping = _correspondence(a, b, place, strides)
    if mapping is None:
        return False
    division, moves, sizes = mapping
    inner = _inner(a, b, division, moves, sizes)
    if inner is False and _turned(b):
        inner = _inner(a, b, division, moves, sizes)
        if inner is False:
            _turned(b)
    if inner is False:
        return False
    # Everything that one needs of the other must be made at the same index.
    vectors: list[tuple[Any, list[int]]] = []
    width = len(sizes)
    for node in b.nodes:
        for writer in node.after:
            if writer.group is a:
                return False
        for operand in node.operands:
            moved = _moved(operand.strides, moves, b.sizes, sizes, width)
            vectors.append((operand, moved))
            for producer in operand.root.writers:
                if producer.group is a:
                    if producer.reduce not in ("", "row") or operand.root.node is not producer or operand.offset:
                        return False
                    if moved != _divided(producer.place, division, a.sizes, sizes, width):
                        return False
    if division is not None or width != len(a.sizes):
        for node in a.nodes:
            for operand in node.operands:
                operand.strides = _divided(operand.strides, division, a.sizes, sizes, width)
            node.place = _divided(node.place, division, a.sizes, sizes, width)
    for operand, moved in vectors:
        operand.strides = moved
    for node in b.nodes:
        node.place = _moved(node.place, moves, b.sizes, sizes, width)
        node.group = a
    a.sizes = sizes
    a.inner = inner
    a.reduces = a.reduces or b.reduces
    a.of_inputs = a.of_inputs and b.of_inputs
    a.nodes += b.nodes
    a.reads = reads
    b.nodes = []
    _connect(a, b)
    return True


def _turned(group: Group) -> bool:
    """Turn a sum of rows into one of columns or the other way round, where a group is that sum alone."""
    node = group.nodes[0]
    if len(group.nodes) > 1 or node.op != "sum" or node.reduce not in ("row", "column") or group.inner is None:
        return False
    node.reduce = "column" if node.reduce == "row" else "row"
    group.inner = [not flag for flag in group.inner]
    return True


# -- order -----------------------------------------------------------------------------------------


def _is_between(a: Group, b: Group) -> bool:
    """Whether something else needs a and is needed by b."""
    return bool(b.ancestors & a.bits) and any(other is not a and other.ancestors & a.bits for other in b.before)


def _connect(a: Group, b: Group) -> None:
    """Make a stand for b, too, in the order of groups."""
    for other in b.before:
        other.after.discard(b)
        if other is not a:
            other.after.add(a)
    for other in b.after:
        other.before.discard(b)
        if other is not a:
            other.before.add(a)
    # Who comes after a has some of its nodes among its ancestors already: only what a gains is news to them.
    news = [(other, b.ancestors & ~(a.ancestors | a.bits)) for other in a.after]
    news += [(other, (a.ancestors | a.bits) & ~b.ancestors) for other in b.after]
    a.before |= b.before
    a.after |= b.after
    for side in (a.before, a.after):
        side.discard(a)
        side.discard(b)
    a.bits |= b.bits
    a.ancestors = (a.ancestors | b.ancestors) & ~a.bits
    while news:
        group, more = news.pop()
        if more and group is not a and group is not b and group.ancestors | more != group.ancestors:
            group.ancestors |= more
            news += [(other, more) for other in group.after]


# -- axes ------------------------------------------------------------------------------------------


def _correspondence(a: Group, b: Group, place: list[int], strides: list[int]) -> Any:
    """How the axes of two domains become one domain's.

    Returns the axes of the joint domain into which each axis of `a` is divided (None: as they are), those of each axis
    of `b`, and the sizes of the joint domain: the axes of a, then those that only b has. Or None.
    """
    if a.sizes == b.sizes and place == strides and 0 not in place:
        return None, [[i] for i in range(len(a.sizes))], a.sizes
    used = _matched(_chain(a.sizes, place), _chain(b.sizes, strides))
    if used is None:
        return None
    free_a = [(n, 0, i) for i, n in enumerate(a.sizes) if not place[i]]
    free_b = [(n, 0, i) for i, n in enumerate(b.sizes) if not strides[i]]
    pieces = used
    if free_a and free_b:
        unused = _matched(free_a, free_b)
        if unused is None:
            return None
        pieces = used + unused
        free_a = free_b = []
    if (free_a and b.reduces) or (free_b and a.reduces):
        return None
    # Pieces come from the fastest to the slowest within each axis.
    of_a: list[list[Any]] = [[] for _ in a.sizes]
    of_b: list[list[Any]] = [[] for _ in b.sizes]
    for piece in reversed(pieces):
        of_a[piece[1]].append(piece)
        of_b[piece[2]].append(piece)
    for n, _, axis in free_a:
        of_a[axis].append((n, axis, -1))
    sizes: list[int] = []
    number: dict[int, int] = {}
    division: list[list[int]] = []
    for parts in of_a:
        division.append([])
        for piece in parts:
            number[id(piece)] = len(sizes)
            division[-1].append(len(sizes))
            sizes.append(piece[0])
    moves = [[number[id(piece)] for piece in parts] for parts in of_b]
    for n, _, axis in free_b:
        moves[axis].append(len(sizes))
        sizes.append(n)
    divided = any(len(parts) != 1 for parts in division)
    return (division if divided else None), moves, sizes


def _chain(sizes: list[int], strides: list[int]) -> list[tuple[int, int, int]]:
    """(size, stride, axis) of the axes along which something moves, the slowest first."""
    chain = [(n, s, i) for i, (n, s) in enumerate(zip(sizes, strides)) if s]
    if len(chain) > 1:
        chain.sort(key=lambda axis: -abs(axis[1]))
    return chain


def _matched(xs: Any, ys: Any) -> list[tuple[int, int, int]] | None:
    """The pieces (size, axis of x, axis of y), from the fastest, into which both lists of axes can be divided."""
    pieces: list[tuple[int, int, int]] = []
    i, j = len(xs) - 1, len(ys) - 1
    if i < 0 or j < 0:
        return pieces if i == j else None
    n, s, x = xs[i]
    m, t, y = ys[j]
    while True:
        if s != t:
            return None
        size = n if n < m else m
        if n % size or m % size:
            return None
        pieces.append((size, x, y))
        n //= size
        m //= size
        s *= size
        t *= size
        if n == 1:
            i -= 1
            if i >= 0:
                n, s, x = xs[i]
        if m == 1:
            j -= 1
            if j >= 0:
                m, t, y = ys[j]
        if i < 0 or j < 0:
            return pieces if i < 0 and j < 0 else None


def _inner(a: Group, b: Group, division: Any, moves: list[list[int]], sizes: list[int]) -> Any:
    """Which axes of the joint domain are inner ones; None where that stays open, False where the groups disagree."""
    width = len(sizes)
    mine = _flags(a.inner, division or [[i] for i in range(len(a.sizes))], width)
    other = _flags(b.inner, moves, width)
    # Axes that one of the groups does not go over must be inner ones, and all of those.
    covered_a = sum(map(len, division)) if division is not None else len(a.sizes)
    covered_b = sum(map(len, moves))
    if covered_a < width:
        rows = [i >= covered_a for i in range(width)]
        if mine is not None or not covered_a or (other is not None and other != rows):
            return False
        return rows if other is not None or _is_fastest(b, moves, rows) else False
    if covered_b < width:
        over = {i for parts in moves for i in parts}
        rows = [i not in over for i in range(width)]
        if other is not None or (mine is not None and mine != rows):
            return False
        if mine is None and not _is_fastest(a, division or [[i] for i in range(len(a.sizes))], rows):
            return False
        return rows
    if mine is not None and other is not None:
        return mine if mine == other else False
    return mine if mine is not None else other


def _is_fastest(group: Group, parts: list[list[int]], rows: list[bool]) -> bool:
    """Whether the fastest axis of what a group makes first is an inner one."""
    place = group.nodes[-1].place
    fastest = min((abs(s), i) for i, s in enumerate(place) if s)[1] if any(place) else -1
    return fastest >= 0 and rows[parts[fastest][-1]]


def _flags(inner: list[bool] | None, parts: Iterable[list[int]], width: int) -> list[bool] | None:
    if inner is None:
        return None
    flags = [False] * width
    for flag, axes in zip(inner, parts):
        for axis in axes:
            flags[axis] = flag
    return flags


def _moved(strides: list[int], moves: list[list[int]], old: list[int], sizes: list[int], width: int) -> list[int]:
    """Strides of one domain as strides of the joint one."""
    out = [0] * width
    for stride, axes in zip(strides, moves):
        if stride:
            for axis in reversed(axes):
                out[axis] = stride
                stride *= sizes[axis]
    return out


def _divided(strides: list[int], division: Any, old: list[int], sizes: list[int], width: int) -> list[int]:
    if division is None:
        return strides + [0] * (width - len(strides)) if len(strides) < width else strides
    return _moved(strides, division, old, sizes, width)
