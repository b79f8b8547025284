"""A row that is added to a matrix product is added by the product itself, where the target's library does that."""

from __future__ import annotations

from dataclasses import replace

from ...targets.kernels import Product
from .nodes import Graph, Node, Operand
from .views import Root

_HALF = frozenset(("float16", "bfloat16"))  # in float32 cuBLAS's products that add are the slower ones


def add_biases(graph: Graph) -> None:
    """Let products of matrices add what only their result is added to: one number for each column."""
    readers: dict[Root, int] = {}
    for node in graph.nodes:
        if node.live:
            for operand in node.operands:
                readers[operand.root] = readers.get(operand.root, 0) + 1
    for node in graph.nodes:
        if node.live and node.op == "add":
            x, y = node.operands
            for whole, row in ((x, y), (y, x)):
                product = _product(node, whole, row)
                if product is not None and readers[whole.root] == 1:
                    _join(node, product, row)
                    break


def _product(node: Node, whole: Operand, row: Operand) -> Node | None:
    """The call whose result `whole` is, if `row` can be added in it."""
    result = whole.root
    if result.target >= 0 or result.update >= 0 or len(result.writers) != 1 or result.writers[0].op != "call":
        return None
    call: Node = result.writers[0]
    kernel = call.kernel
    if (
        not isinstance(kernel, Product)
        or kernel.dtype not in _HALF
        or kernel.batch
        or kernel.accumulate
        or kernel.wide
        or kernel.bias
    ):
        return None
    m, n = kernel.m, kernel.n
    is_matrix = node.sizes == [m, n] and kernel.out == (n, 1) and result.size == m * n
    is_all = whole.offset == 0 and whole.strides == node.place == [n, 1] and node.offset == 0
    is_row = row.root.kind == "memory" and row.strides == [0, 1] and row.root.dtype == kernel.dtype
    is_there = all([writer.op == "call" and writer.index < call.index for writer in row.root.writers])
    is_alone = len(node.root.writers) == 1 and node.dtype == kernel.dtype and node.root.dtype == kernel.dtype
    return call if is_matrix and is_all and is_row and is_there and is_alone else None


def _join(node: Node, call: Node, row: Operand) -> None:
    call.kernel = replace(call.kernel, bias=True)
    call.operands.append(Operand(row.root, row.offset, []))
    call.results = [(node.root, 0)]
    call.site = node.site
    node.root.node, node.root.writers = None, [call]
    node.live = False
