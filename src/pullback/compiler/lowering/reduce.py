"""Reductions: of rows, of columns or of everything. `axis` is None or a tuple of negative integers."""

from __future__ import annotations

from typing import Any

from ..program import Instruction, Value
from . import views as v
from .nodes import Graph
from .scalar_steps import converted
from .views import NATIVE, View, name_of

_IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True}
_HALF = frozenset(("float16", "bfloat16"))
REDUCTIONS = frozenset(("sum", "prod", "max", "min", "any", "all", "count_nonzero"))


def lowered(graph: Graph, views: dict[Value, View], instruction: Instruction) -> View | None:
    """The result of a reduction; None where it has no native form."""
    op, result = instruction.op, instruction.results[0]
    view, dtype = views[instruction.args[0]], name_of(result.dtype)
    if dtype not in NATIVE or view.root.dtype not in NATIVE:
        return None
    made = _reduced(graph, op, view, instruction.args[1] if len(instruction.args) > 1 else None, dtype)
    return None if made is None else v.reshaped(made, result.shape)


def _reduced(graph: Graph, op: str, view: View, axis: Any, dtype: str) -> View | None:
    ndim = len(view.shape)
    axes = set(range(ndim)) if axis is None else {a % ndim for a in axis}
    if op == "count_nonzero":
        truth = converted(graph, view, "bool")
        assert truth is not None
        return _reduced(graph, "sum", truth, axis, dtype)
    if op in ("max", "min") and dtype == "bool":
        op = "any" if op == "max" else "all"
    kept = tuple([n for i, n in enumerate(view.shape) if i not in axes])
    wide = "float32" if dtype in _HALF and op in ("sum", "prod") else dtype
    made = converted(graph, view, wide)
    if made is None:
        return None
    if 0 in view.shape:
        return v.number(_IDENTITY[op], dtype, kept) if op in _IDENTITY else None
    if all(view.shape[a] == 1 for a in axes):
        made = v.squeezed(made, tuple(axes))
    else:
        made = graph.reduce(op, wide, made, axes)
    return converted(graph, made, dtype)


def summed_to(graph: Graph, view: View, shape: tuple[int, ...]) -> View:
    """Sum over the axes that broadcasting `shape` to the view's shape added or stretched."""
    extra = len(view.shape) - len(shape)
    axes = {i for i, n in enumerate(view.shape) if n != 1 and (i < extra or shape[i - extra] == 1)}
    made = v.reshaped(graph.reduce("sum", view.root.dtype, view, axes) if axes else view, shape)
    assert made is not None
    return made
