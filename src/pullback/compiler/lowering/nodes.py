"""The work of a program before it is cut into loops: one node for each computation that elements or rows need.

A node's domain is the index space that it goes over: `sizes`, without axes of length 1, and as few axes as all its
arrays allow. Its operands and its place (where its result goes) have a stride for each axis of its group's domain; a
group begins as one node and grows (see `fusion.py`).
"""

from __future__ import annotations

from typing import Any, Sequence

from ...targets.kernels import Buffer
from ...targets.protocol import Abilities
from .views import Root, View, broadcast_strides, c_strides, whole

#: Operations that cost less than reading their result from memory.
CHEAP = frozenset((
    "copy", "add", "subtract", "multiply", "negative", "square", "abs", "sign", "maximum", "minimum", "where", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "isfinite", "isnan", "isinf",
    "signbit", "floor", "ceil", "round", "trunc", "copysign",
))  # fmt: skip


class Operand:
    """A root that a node reads, from `offset` on, with a stride for each axis of the domain."""

    __slots__ = ("root", "offset", "strides")

    def __init__(self, root: Root, offset: int, strides: list[int]) -> None:
        self.root = root
        self.offset = offset
        self.strides = strides


class Node:
    """One computation: a scalar operation at every index, a reduction, or the call of a kernel of another kind.

    `reduce` is "" or "row", "column", "total" (see `kernels.Step`): the result has the stride 0 along reduced axes.
    Operands are converted to `compute` first. A call has `op` "call", its kernel in `kernel`, and writes `results`.
    `after` are nodes that must come before because they write some of the same memory; `waits` those that what is
    computed again waits for, in the same loop at the earliest.
    """

    __slots__ = (
        "index", "op", "operands", "compute", "dtype", "reduce", "root", "offset", "place", "sizes", "kernel",
        "results", "after", "waits", "group", "site", "live", "depth",
    )  # fmt: skip

    def __init__(self, index: float, op: str, operands: list[Operand], site: str, waits: Sequence[Node] = ()) -> None:
        self.index = index
        self.op = op
        self.operands = operands
        self.compute = ""
        self.dtype = ""
        self.reduce = ""
        self.root: Any = None
        self.offset = 0
        self.place: list[int] = []
        self.sizes: list[int] = []
        self.kernel: Any = None
        self.results: list[tuple[Root, int]] = []
        self.after: list[Node] = []
        self.waits = waits
        self.group: Any = None
        self.site = site
        self.live = False
        self.depth = 1  # of what is computed again only for what is computed again

    def again(self, site: str) -> Node:
        """The same computation once more, into a root of its own."""
        operands = [Operand(o.root, o.offset, list(o.strides)) for o in self.operands]
        node = Node(self.index, self.op, operands, site, self.waits)
        node.compute, node.dtype, node.live = self.compute, self.dtype, True
        node.sizes, node.place = list(self.sizes), list(self.place)
        node.root = Root("memory", self.root.dtype, self.root.size)
        node.root.node = node
        node.root.writers.append(node)
        return node


def coalesced(sizes: Sequence[int], vectors: list[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Axes without those of length 1, and with neighbours joined where every vector of strides goes on across both."""
    out_sizes: list[int] = []
    out: list[list[int]] = [[] for _ in vectors]
    for axis in range(len(sizes) - 1, -1, -1):
        n = sizes[axis]
        if n == 1:
            continue
        if out_sizes:
            last = out_sizes[-1]
            for vector, made in zip(vectors, out):
                if vector[axis] != last * made[-1]:
                    break
            else:
                out_sizes[-1] = last * n
                continue
        out_sizes.append(n)
        for vector, made in zip(vectors, out):
            made.append(vector[axis])
    out_sizes.reverse()
    for made in out:
        made.reverse()
    return out_sizes, out


class Graph:
    """The nodes of a program in an order in which they can run, for a target with these abilities."""

    def __init__(self, abilities: Abilities) -> None:
        self.abilities = abilities
        self.nodes: list[Node] = []
        self.copies: dict[Any, Root] = {}  # of views that had to be copied
        self.site = ""
        self.waits: Sequence[Node] = ()  # of the nodes of an instruction that computes something again

    def map(
        self,
        op: str,
        compute: str,
        dtype: str,
        operands: list[View],
        shape: tuple[int, ...],
        into: View | None = None,
        after: Sequence[Node] = (),
    ) -> View:
        """Compute `op` at every index of `shape`: into a new root, or into a part of one, `after` other writers."""
        node = Node(len(self.nodes), op, [], self.site, self.waits)
        node.compute = compute
        node.dtype = dtype
        size = 1
        for n in shape:
            size *= n
        if into is None:
            root = Root("memory", dtype, size)
            made = whole(root, shape)
            root.node = node
        else:
            root, made = into.root, into
            node.after = list(after)
            node.offset = into.offset
        if size == 0:
            return made  # there is nothing to compute
        root.writers.append(node)
        node.root = root
        if made.dense and all([v.root.kind == "number" or (v.dense and v.shape == shape) for v in operands]):
            some = size != 1
            node.sizes = [size] if some else []
            node.place = [1] if some else []
            node.operands = [Operand(v.root, v.offset, [int(v.root.kind != "number")] * some) for v in operands]
        else:
            vectors: list[Sequence[int]] = [broadcast_strides(view, shape) for view in operands]
            vectors.append(made.strides)
            node.sizes, strides = coalesced(shape, vectors)
            node.place = strides.pop()
            node.operands = [Operand(view.root, view.offset, s) for view, s in zip(operands, strides)]
        self.nodes.append(node)
        return made

    def reduce(self, op: str, dtype: str, view: View, axes: set[int]) -> View:
        """Reduce over axes (not negative) by "sum", "prod", "max", ...: `view` has the dtype of the result already."""
        node = Node(len(self.nodes), op, [], self.site, self.waits)
        node.compute = node.dtype = dtype
        shape = view.shape
        kept = tuple([n for i, n in enumerate(shape) if i not in axes])
        size = 1
        for n in kept:
            size *= n
        root = Root("memory", dtype, size)
        root.node = node
        root.writers.append(node)
        node.root = root
        inner = iter(c_strides(kept))
        place = [0 if i in axes else next(inner) for i in range(len(shape))]
        node.sizes, strides = coalesced(shape, [view.strides, place])
        node.operands = [Operand(view.root, view.offset, strides[0])]
        node.place = strides[1]
        reduced = [i for i, s in enumerate(node.place) if s == 0]
        if len(reduced) == len(node.sizes):
            node.reduce = "total"
        elif op == "sum" and reduced == list(range(len(reduced))):
            node.reduce = "column"
        else:
            node.reduce = "row"
        self.nodes.append(node)
        return whole(root, kept)

    def call(self, kernel: Any, reads: Sequence[View], writes: Sequence[View]) -> Node:
        """Call a kernel of another kind, which knows its strides itself."""
        node = Node(len(self.nodes), "call", [Operand(v.root, v.offset, []) for v in reads], self.site, self.waits)
        node.kernel = kernel
        node.results = [(v.root, v.offset) for v in writes]
        for v in writes:
            node.after.extend(v.root.writers)
            v.root.writers.append(node)
        self.nodes.append(node)
        return node

    def new_like(self, shape: tuple[int, ...], dtype: str, strides: Sequence[int]) -> View:
        """A new root with its axes in the order in which something else has them: undoing that order is no copy."""
        order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
        made = self.new(tuple([shape[axis] for axis in order]), dtype)
        at = dict(zip(order, made.strides))
        return View(made.root, 0, shape, tuple([at[axis] for axis in range(len(shape))]))

    def new(self, shape: tuple[int, ...], dtype: str) -> View:
        """A new root that is still to be written."""
        size = 1
        for n in shape:
            size *= n
        return whole(Root("memory", dtype, size), shape)


def memory_of(root: Root, kind: str, index: int) -> Buffer:
    """Give a root memory of its own."""
    root.buffer = Buffer(kind, index, root.nbytes)
    return root.buffer
