"""Telling where a NaN or an infinity was born: the operation, the user's line, the ranges of its inputs."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping

import numpy as np

from .. import backends
from .graph import Node, line_of, saved_values

UNKNOWN = object()


def place(node: Node) -> str:
    """Where the user called the operation: `file.py:41, in `function``; nothing if it was no line of theirs."""
    if node.code is None:
        return ""
    return f"{os.path.basename(node.code.co_filename)}:{line_of(node.code, node.lasti)}, in `{node.code.co_name}`"


def kind_of_bad(raw: Any) -> str:
    array = _to_numpy(raw)
    if np.isnan(array).any():
        return "nan"
    return "inf"


def describe_range(name: str, raw: Any) -> str:
    """An input's smallest and largest element, shape and dtype."""
    array = _to_numpy(raw)
    shape_and_dtype = f"(shape {tuple(array.shape)}, {array.dtype.name})"
    if array.size == 0:
        return f"its `{name}` is empty {shape_and_dtype}"
    if array.dtype.kind == "c":
        return f"its `{name}` is complex {shape_and_dtype}"
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    numbers = array[~np.isnan(array)]
    if not numbers.size:
        return f"its `{name}` is all NaN {shape_and_dtype}"
    low, high = numbers.min(), numbers.max()
    return f"its `{name}` has a minimum of {low:.6g} and a maximum of {high:.6g} {shape_and_dtype}"


def _to_numpy(raw: Any) -> np.ndarray[Any, Any]:
    raw = getattr(raw, "_raw", raw)
    backend = backends.of(raw)
    if backend is None:
        return np.asarray(raw)
    raw = backend.values_in(raw)  # of many examples: all of them
    return np.asarray(backends.of(raw).to_numpy(raw))


def _ranges(pairs: list[tuple[str, Any]]) -> str:
    arrays = [(name, raw) for name, raw in pairs if backends.of(raw) is not None or isinstance(raw, (int, float))]
    return "; ".join(describe_range(name, raw) for name, raw in arrays)


def describe_outputs(operation: Any, inputs: Any, outputs: Any, static: Any) -> str:
    """The message of "trace" mode, about an operation that has just run in the user's code."""
    import sys

    from .graph import user_frame

    frame = user_frame(sys._getframe(1))
    where = (
        f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}, in `{frame.f_code.co_name}`"
        if frame is not None
        else "unknown place"
    )
    bad = next(out for out in outputs if _to_numpy(out).dtype.kind in "fc" and not np.isfinite(_to_numpy(out)).all())
    names = operation.inputs if not operation.variadic else [operation.inputs[0]] * len(inputs)
    made = kind_of_bad(bad) + _first_step(operation, bad, dict(zip(operation.static, static)))
    return f"`{operation.name}` made {made}: {where}: {_ranges(list(zip(names, inputs)))}."


def describe_backward(node: Node, gradient: Any, what: str | None) -> str:
    """The message about a gradient that is not finite although the operation's cotangent is."""
    operation = node.recipe.operation
    subject = f"gradient of `{operation.name}`" + (f" ({what})" if what else "")
    kind = "not finite" if not hasattr(gradient, "dtype") else kind_of_bad(gradient)
    saved = [
        (name, value)
        for name, value, (source, _) in zip(node.recipe.names, saved_values(node) or (), node.recipe.sources)
        if source in ("input", "output")
    ]
    named = dict(zip(node.recipe.names, saved_values(node) or ()))
    out = named.get("out") if operation.walks else None
    if out is not None and getattr(gradient, "shape", None) == out.shape:  # else it is summed over the steps
        kind += _first_step(operation, gradient, {**named, "reverse": not named["reverse"]})
    return _sentence(f"{subject} is {kind}", place(node), _ranges(saved))


# -- forward -------------------------------------------------------------------------------------


def born_forward(root: Node, value: Any, is_finite: Callable[[Any], bool]) -> str:
    """The message about a result that is not finite: finds the first operation whose own result is not.

    What operations returned is not kept as such. It is known where some rule kept it, and computed again
    where an operation's inputs are known. Where neither is so, the lines in between are named.
    """
    nodes = _ancestors(root)
    values = _known_values(nodes)
    values[root] = value
    unknown: list[Node] = []
    for node in nodes:
        if not node.inputs:  # a variable
            if node in values and not is_finite(values[node]):
                return f"a variable is {kind_of_bad(values[node])} already: {describe_range('value', values[node])}."
            continue
        if node not in values:
            computed = _computed_again(node, values)
            if computed is UNKNOWN:
                unknown.append(node)
                continue
            values[node] = computed
        if not isinstance(values[node], tuple) and not is_finite(values[node]):
            return _describe_forward(node, values, [n for n in unknown if n.seq < node.seq])
    return f"the result is {kind_of_bad(value)}."


def _ancestors(root: Node) -> list[Node]:
    """All nodes behind `root`, leaves included, oldest first."""
    seen, stack = {root}, [root]
    while stack:
        for parent in stack.pop().inputs:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted(seen, key=lambda node: node.seq)


def _tracked_inputs(node: Node) -> list[Node | None]:
    parents = iter(node.inputs)
    return [next(parents) if tracked else None for tracked in node.recipe.mask]


def _known_values(nodes: list[Node]) -> dict[Node, Any]:
    """The results that rules have kept: each node's own, or an input of a later one."""
    values: dict[Node, Any] = {}
    for node in nodes:
        if not node.inputs or node.saved is None:
            continue
        parents = _tracked_inputs(node)
        operation = node.recipe.operation
        for value, (kind, index) in zip(saved_values(node), node.recipe.sources):
            if kind == "output" and len(operation.outputs) == 1 and not operation.many_outputs:
                values[node] = value
            elif kind == "input":
                for parent, v in zip(parents, value) if operation.variadic else ((parents[index], value),):
                    if parent is not None:
                        values[parent] = v
    return values


def _computed_again(node: Node, values: dict[Node, Any]) -> Any:
    """The node's result, if all its inputs and static arguments are known."""
    operation = node.recipe.operation
    if node.saved is None or operation.many_outputs or len(operation.outputs) > 1:
        return UNKNOWN
    saved = dict(zip(node.recipe.names, saved_values(node)))
    inputs = []
    for i, parent in enumerate(_tracked_inputs(node)):
        if parent is not None and parent in values:
            inputs.append(values[parent])
        elif operation.variadic and operation.inputs[0] in saved:
            inputs.append(saved[operation.inputs[0]][i])
        elif not operation.variadic and operation.inputs[i] in saved:
            inputs.append(saved[operation.inputs[i]])
        else:
            return UNKNOWN
    if any(name not in saved for name in operation.static):
        return UNKNOWN
    static = [saved[name] for name in operation.static]
    backend = next((b for x in inputs if (b := backends.of(x)) is not None), None)
    if backend is None or not hasattr(backend.xp, operation.name):
        return UNKNOWN
    with np.errstate(all="ignore"):
        kernel = operation.kernel_for(backend)
        result = kernel(inputs, *static) if operation.variadic else kernel(*inputs, *static)
    return result[0] if operation.residuals else result


def _describe_forward(node: Node, values: dict[Node, Any], unknown: list[Node]) -> str:
    operation = node.recipe.operation
    bad = kind_of_bad(values[node])
    parents = _tracked_inputs(node)
    saved = dict(zip(node.recipe.names, saved_values(node) or ()))
    step = _first_step(operation, values[node], saved)
    doubtful = [n for n in unknown if n in set(node.inputs)]
    if doubtful:
        first = min(unknown, key=lambda n: n.seq)
        return f"{bad} was made between {_operation_at(first)} and {_operation_at(node)}{step}."
    names = operation.inputs if not operation.variadic else operation.inputs * len(parents)
    inputs = [
        (name, values[parent] if parent is not None and parent in values else saved.get(name))
        for name, parent in zip(names, parents)
    ]
    return _sentence(f"`{operation.name}` made {bad}{step}", place(node), _ranges(inputs))


def _first_step(operation: Any, raw: Any, static: Mapping[str, Any]) -> str:
    """Of a result that is computed step by step: at which step the first number was made that is not finite."""
    if not operation.walks or "axis" not in static:  # which is not known where nothing was kept
        return ""
    array, axis = _to_numpy(raw), static["axis"]
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    is_bad = ~np.isfinite(np.moveaxis(array, axis, -1)).all(axis=tuple(range(array.ndim - 1)))
    steps = np.flatnonzero(is_bad)
    first = steps[-1] if static["reverse"] else steps[0]
    return f" (from step {first} of {len(is_bad)} on)"


def _operation_at(node: Node) -> str:
    name, where = f"`{node.recipe.operation.name}`", place(node)
    return f"{where} ({name})" if where else name


def _sentence(*parts: str) -> str:
    return ": ".join([part for part in parts if part]) + "."
