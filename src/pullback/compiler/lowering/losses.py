"""Cross-entropy of a product, a chunk of rows at a time: logits, losses and gradients that nobody has to keep whole."""

from __future__ import annotations

from typing import Any, Callable

from ...targets.custom_kernels import CrossEntropy
from ..program import Instruction, Value
from . import views as v
from .custom import in_memory
from .nodes import Graph, Node
from .products import multiply_into, usable
from .scalar_steps import converted
from .views import View, name_of

Views = dict[Value, View]


def _linear_cross_entropy(graph: Graph, views: Views, i: Instruction) -> list[View]:
    x, y, bias, target, weight, scale, ignored, smoothing, rights, lefts, sums, chunk = i.args
    rows_of = usable(graph, views[x])
    columns = usable(graph, views[y])
    rows, classes, dtype = rows_of.shape[0], columns.shape[1], rows_of.root.dtype
    classes_of = in_memory(graph, views[target])
    given = [None if one is None else in_memory(graph, views[one]) for one in (bias, weight, scale)]
    right_factors = [usable(graph, views[right]) for right in rights]
    left_factors = [usable(graph, views[left]) for left, _ in lefts]
    results = [graph.new(value.shape, name_of(value.dtype)) for value in i.results]
    losses, products = results[0], results[1:]
    total: View | None = None
    before: list[Node] = []  # of the last chunk: what it has in memory is given back before the next one begins
    for start in range(0, rows, chunk):
        first = len(graph.nodes)
        stop = min(start + chunk, rows)
        logits = graph.new((stop - start, classes), dtype)
        node = multiply_into(graph, v.part(rows_of, 0, start, stop), columns, logits)
        node.after.extend(before)
        parts = [v.part(classes_of, 0, start, stop), *given[:2], _part_of_scale(given[2], start, stop)]
        gradient = _losses(graph, logits, parts, v.part(losses, 0, start, stop), ignored, smoothing)
        if gradient is None:
            before = _lasting(graph.nodes[first:])
            continue
        made = iter(products)
        for factor in right_factors:
            multiply_into(graph, gradient, factor, v.part(next(made), 0, start, stop))
        for factor, (_, is_turned) in zip(left_factors, lefts):
            one, other = v.part(factor, 0, start, stop), gradient
            if not is_turned:
                one, other = gradient, one
            multiply_into(graph, v.transposed(one), other, next(made), accumulate=start > 0)
        if sums:
            total = _added(graph, total, gradient, products[-1].root.dtype)
        before = _lasting(graph.nodes[first:])
    if total is not None:
        results[-1] = total
    return results


def _lasting(nodes: list[Node]) -> list[Node]:
    """Those that are not computed again elsewhere."""
    return [node for node in nodes if node.op == "call" or node.reduce]


def _part_of_scale(scale: View | None, start: int, stop: int) -> View | None:
    return v.part(scale, 0, start, stop) if scale is not None and scale.shape else scale


def _losses(
    graph: Graph, logits: View, given: list[Any], losses: View, ignored: int, smoothing: float
) -> View | None:  # fmt: skip
    """Write the losses of a chunk; returns the gradient of its logits, if there is a scale of it."""
    target, bias, weight, scale = given
    rows, classes = logits.shape
    step = None if scale is None else scale.strides[0] if scale.shape else 0
    kernel = CrossEntropy(
        logits.root.dtype, rows, classes, logits.strides, _form(target), None if bias is None else _form(bias),
        None if weight is None else _form(weight), step, ignored, smoothing,
    )  # fmt: skip
    gradient = None if scale is None else graph.new(logits.shape, logits.root.dtype)
    reads = [logits, *[one for one in given if one is not None]]
    graph.call(kernel, reads, [losses] if gradient is None else [losses, gradient])
    return gradient


def _form(vector: View) -> tuple[str, int]:
    return vector.root.dtype, vector.strides[0]


def _added(graph: Graph, total: View | None, gradient: View, dtype: str) -> View:
    """The sums of rows so far, with those of another chunk."""
    rows = converted(graph, gradient, dtype)
    assert rows is not None
    part = graph.reduce("sum", dtype, rows, {0}) if rows.shape[0] > 1 else v.reshaped(rows, rows.shape[1:])
    assert part is not None
    return part if total is None else graph.map("add", dtype, dtype, [total, part], part.shape)


LOSSES: dict[str, Callable[[Graph, Views, Instruction], Any]] = {"linear_cross_entropy": _linear_cross_entropy}
