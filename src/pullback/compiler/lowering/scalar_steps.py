"""Elementwise kernels as scalar operations: the dtype in which each computes, as NumPy promotes its operands.

Python numbers are weak: they take the dtype of the arrays beside them (NEP 50). What has no native form (complex
numbers, functions that nobody has written as native code) is not taken: `lowered` returns None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operations import names
from ..program import Instruction, Value
from .nodes import Graph, coalesced
from .views import NATIVE, View, broadcast, name_of, number, whole

#: Operations whose operands are converted to the dtype of the result.
_IN_RESULT = names(lambda operation: operation.scalar and operation.dtypes in ("promoted", "floating", "bitwise"))
_COMPARISONS = names(lambda operation: operation.dtypes == "comparison")
_LOGICAL = names(lambda operation: operation.dtypes == "logical")
#: What arithmetic of truth values is.
_OF_TRUTHS = {
    "add": "logical_or", "maximum": "logical_or", "bitwise_or": "logical_or", "multiply": "logical_and",
    "minimum": "logical_and", "bitwise_and": "logical_and", "bitwise_xor": "logical_xor",
    "bitwise_invert": "logical_not",
}  # fmt: skip
_ROUNDING = frozenset(("floor", "ceil", "round", "trunc"))
_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_HALF = frozenset(("float16", "bfloat16"))
_NUMBERS = (int, float, bool)

ELEMENTWISE = names(lambda operation: operation.scalar)


def lowered(graph: Graph, views: dict[Value, View], instruction: Instruction) -> View | None:
    """The result of an elementwise instruction, as a node or a view; None where it has no native form."""
    op, result = instruction.op, instruction.results[0]
    dtype, shape = name_of(result.dtype), result.shape
    if dtype not in NATIVE:
        return None
    if op == "astype":
        return converted(graph, views[instruction.args[0]], dtype)
    operands: list[View] = []
    for arg in instruction.args:
        if type(arg) is Value:
            view = views[arg]
            if view.root.dtype not in NATIVE:
                return None
            operands.append(view)
        elif type(arg) in _NUMBERS:
            operands.append(number(arg, "", ()))
        elif isinstance(arg, np.generic) and arg.dtype.kind in "biuf":
            operands.append(number(arg.item(), name_of(arg.dtype), ()))
        else:
            return None
    if op == "positive":
        return broadcast(operands[0], shape)
    if op in _IN_RESULT:
        return _arithmetic(graph, op, dtype, operands, shape)
    if op == "where":
        operands[0] = _truth(graph, operands[0])
        return graph.map("where", dtype, dtype, operands, shape) if _fit(operands[1:], dtype) else None
    if op in _COMPARISONS:
        common = _common(operands)
        if common is None or not _fit(operands, common):
            return None
        return graph.map(op, common, "bool", operands, shape)
    if op in _LOGICAL:
        return graph.map(op, "bool", "bool", [_truth(graph, view) for view in operands], shape)
    return _class(graph, op, operands[0])


def converted(graph: Graph, view: View, dtype: str) -> View | None:
    """A view's elements in another dtype."""
    root = view.root
    if root.dtype == dtype:
        return view
    if root.dtype not in NATIVE or dtype not in NATIVE:
        return None
    if root.kind == "number":
        return number(as_number(root.number, dtype), dtype, view.shape)
    if dtype == "bool":
        return _truth(graph, view)
    return graph.map("copy", dtype, dtype, [view], view.shape)


def as_number(value: Any, dtype: str) -> Any:
    """A number as a Python number that `dtype` can hold."""
    if dtype == "bool":
        return bool(value)
    if dtype in _FLOATS:
        return float(value)
    if type(value) is float:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(dtype).item()
    value = int(value)
    bits = NATIVE[dtype] * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


def copied(graph: Graph, view: View) -> View:
    """A view's elements in memory of their own, in C order; the same memory for the same elements."""
    sizes, (strides,) = coalesced(view.shape, [view.strides])
    key = (view.root, view.offset, tuple(sizes), tuple(strides))
    root = graph.copies.get(key)
    if root is None:
        root = graph.copies[key] = own_copy(graph, view).root
    return whole(root, view.shape)


def own_copy(graph: Graph, view: View) -> View:
    """A copy that nobody else has."""
    return graph.map("copy", view.root.dtype, view.root.dtype, [view], view.shape)


def _arithmetic(graph: Graph, op: str, dtype: str, operands: list[View], shape: tuple[int, ...]) -> View | None:
    if not _fit(operands, dtype):
        return None
    if dtype == "bool":
        if op in ("square", "abs"):
            return broadcast(operands[0], shape)
        if op not in _OF_TRUTHS:
            return None
        return graph.map(_OF_TRUTHS[op], "bool", "bool", operands, shape)
    if op in _ROUNDING and dtype not in _FLOATS:
        return operands[0]
    if op == "pow":
        power = operands[1].root
        if power.kind == "number" and power.dtype == "" and dtype in _FLOATS and operands[0].root.dtype in _FLOATS:
            x = operands[0]
            if power.number == 2:
                return graph.map("square", dtype, dtype, [x], shape)
            if power.number == 3:
                squared = graph.map("square", dtype, dtype, [x], shape)
                return graph.map("multiply", dtype, dtype, [squared, x], shape)
            if power.number == 1:
                return x
        elif dtype not in _FLOATS and not (power.kind == "number" and power.number >= 0):
            return None  # NumPy refuses negative powers when it meets one
    if (op == "reciprocal" and dtype not in _FLOATS) or (op == "nextafter" and dtype in _HALF):
        return None  # neighbours in half precision are not those in single
    return graph.map(op, dtype, dtype, operands, shape)


def _truth(graph: Graph, view: View) -> View:
    """Whether each element is not zero."""
    root = view.root
    if root.dtype == "bool":
        return view
    if root.kind == "number":
        return number(bool(root.number), "bool", view.shape)
    return graph.map("not_equal", root.dtype, "bool", [view, number(0, "", ())], view.shape)


def _class(graph: Graph, op: str, x: View) -> View | None:
    dtype = x.root.dtype
    if dtype in _FLOATS:
        return graph.map(op, dtype, "bool", [x], x.shape)
    if op == "signbit":
        return graph.map("less", dtype, "bool", [x, number(0, "", ())], x.shape) if dtype != "bool" else None
    return number(op == "isfinite", "bool", x.shape)


_COMMON: dict[Any, str | None] = {}


def _common(operands: list[View]) -> str | None:
    """The dtype in which operands are compared."""
    kinds = tuple([view.root.dtype or type(view.root.number) for view in operands])
    try:
        return _COMMON[kinds]
    except KeyError:
        pass
    strong = [kind for kind in kinds if isinstance(kind, str)]
    signed = {kind[0] for kind in strong if kind[0] in "iu"}
    if len(signed) == 2 and "uint64" in strong:
        common = None  # NumPy compares these exactly, in no common dtype
    else:
        weak = [kind(0) for kind in kinds if not isinstance(kind, str)]
        try:
            common = name_of(np.result_type(*map(_dtype, strong), *weak))
        except TypeError:
            common = None  # as for bfloat16 and int16: the kernel chooses one
    _COMMON[kinds] = common
    return common


def _dtype(name: str) -> Any:
    if name == "bfloat16":
        from ...dtypes import bfloat16, numpy_dtype

        return numpy_dtype(bfloat16)
    return np.dtype(name)


def _fit(operands: list[View], dtype: str) -> bool:
    """Whether the Python numbers among operands are numbers of the dtype."""
    if dtype in _FLOATS:
        return True
    for view in operands:
        root = view.root
        if root.kind == "number" and root.dtype == "":
            if dtype == "bool":
                if type(root.number) is not bool:
                    return False
            elif type(root.number) is float or as_number(root.number, dtype) != root.number:
                return False
    return True
