"""Matrix products: NumPy's forms of `matmul` as batches of products of strided matrices."""

from __future__ import annotations

from ...targets.kernels import Product
from ..program import Instruction, Value
from ..shapes import broadcast_shape
from . import views as v
from .nodes import Graph, Node, coalesced
from .scalar_steps import converted, copied
from .views import View, name_of

_DTYPES = frozenset(("float32", "float64"))
_HALF = frozenset(("float16", "bfloat16"))


def lowered(graph: Graph, views: dict[Value, View], instruction: Instruction) -> View | None:
    """The result of a matrix product; None where it has no native form (integers)."""
    if any(type(arg) is not Value for arg in instruction.args[:2]):
        return None
    result = instruction.results[0]
    dtype = name_of(result.dtype)
    wide = "float32" if dtype in _HALF and not graph.abilities.multiplies_half else dtype
    if wide not in _DTYPES and wide not in _HALF:
        return None
    x, y = (converted(graph, views[arg], wide) for arg in instruction.args[:2])
    if x is None or y is None:
        return None
    if x.size == 0 or y.size == 0:
        return v.number(0.0, dtype, result.shape)
    if len(x.shape) == 1:
        x = v.expanded(x, (0,))
    if len(y.shape) == 1:
        y = v.expanded(y, (1,))
    if x.shape[-1] == 1:
        # Each result is one product of two numbers: no matter how large, a loop does it as fast as memory goes.
        out = graph.map("multiply", wide, wide, [x, y], result_shape(x, y))
    else:
        out = product(graph, usable(graph, x), usable(graph, y), wide)
    made = v.reshaped(out, result.shape)
    assert made is not None
    return converted(graph, made, dtype)


def result_shape(x: View, y: View) -> tuple[int, ...]:
    """The shape of a product of two batches of matrices."""
    return (*broadcast_shape([x.shape[:-2], y.shape[:-2]]), x.shape[-2], y.shape[-1])


def product(graph: Graph, x: View, y: View, dtype: str) -> View:
    """The product of two matrices, or of two batches of them that are broadcast to each other."""
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    out = graph.new((*batch, m, n), dtype)
    over_x = v.broadcast_strides(View(x.root, 0, x.shape[:-2], x.strides[:-2]), batch)
    over_y = v.broadcast_strides(View(y.root, 0, y.shape[:-2], y.strides[:-2]), batch)
    sizes, (xs, ys, outs) = coalesced(batch, [over_x, over_y, out.strides[:-2]])
    x_rows, out_rows = x.strides[-2], n
    # A batch of matrices one below the other, times one matrix, is a product with more rows.
    if sizes and ys[-1] == 0 and x.strides[-1] == 1 and xs[-1] == (m * x_rows if m > 1 else max(k, xs[-1])):
        x_rows = xs[-1] if m == 1 else x_rows
        m *= sizes.pop()
        xs.pop(), ys.pop(), outs.pop()
    kernel = Product(
        dtype, tuple(sizes), m, n, k, (*xs, x_rows, x.strides[-1]), (*ys, *y.strides[-2:]), (*outs, out_rows, 1)
    )
    graph.call(kernel, [x, y], [out])
    return out


def multiply_into(graph: Graph, x: View, y: View, out: View, accumulate: bool = False) -> Node:
    """Write the product of two matrices, which are `usable`, to memory that is there, or add it to what is there."""
    (m, k), n, dtype = x.shape, y.shape[1], x.root.dtype
    wide = "" if out.root.dtype == dtype else out.root.dtype
    kernel = Product(dtype, (), m, n, k, x.strides, y.strides, out.strides, accumulate, wide=wide)
    return graph.call(kernel, [x, y], [out])


def usable(graph: Graph, view: View) -> View:
    """A matrix with neighbours along one of its axes, as products take it; copied if need be."""
    rows, columns = view.shape[-2:]
    *strides, row, column = view.strides
    if view.root.kind != "memory":
        return copied(graph, view)
    if (columns == 1 or column == 1) and (rows == 1 or row >= columns):
        return View(view.root, view.offset, view.shape, (*strides, row if rows > 1 else columns, 1))
    if (rows == 1 or row == 1) and (columns == 1 or column >= rows):
        return View(view.root, view.offset, view.shape, (*strides, 1, column if columns > 1 else rows))
    return copied(graph, view)
