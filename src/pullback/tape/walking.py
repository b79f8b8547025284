"""Walking a tape: its steps become nodes of the engine's graph, and the engine's walk does the rest."""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

import numpy as np

from ..autodiff import guard
from ..autodiff.apply import new_node
from ..autodiff.creation import asarray
from ..autodiff.engine import walk
from ..autodiff.graph import GradCell, Leaf, Node
from ..autodiff.provenance import describe_backward, kind_of_bad
from ..errors import DtypeError, GradientError, ShapeError
from .recording import Shape, Step, Tape, Value, data_for

Known = dict[Value, tuple[Shape, Any]]


def add_gradients(tape: Tape, loss_grad: Any, tensors: Sequence[Any]) -> None:
    """Add the gradient of each slot to its buffer: all of them, or on an error none."""
    if not tape._steps:
        raise GradientError("backward: nothing has been recorded on this tape.")
    buffers = _checked_buffers(tape, tensors)
    root = tape._steps[-1].result
    seed = _seed(root, loss_grad, buffers)
    steps, known = _leading_to(root, seed, tape._steps, buffers)
    nodes = _nodes(steps, known)
    cotangents = walk([(nodes[root], np.conjugate(seed))], frozenset(nodes.values()), retain_graph=True)
    is_guarded = guard._guard_mode.get() != "off"
    if is_guarded and not all(map(guard.is_finite, cotangents.values())):
        guard.report(_where_it_began(steps, nodes, cotangents, tape))
    additions = []
    for value, node in nodes.items():
        if value.slot is not None and node in cotangents:
            gradient = np.conjugate(np.asarray(cotangents.pop(node)))
            buffer = buffers[value.slot]
            if gradient.dtype.kind == "c" and buffer.dtype.kind != "c":
                raise DtypeError(
                    f"backward: the gradient of slot {value.slot} is {gradient.dtype.name}, its buffer "
                    f"{buffer.dtype.name}."
                )
            additions.append((value.slot, buffer, gradient.reshape(buffer.shape)))
    with np.errstate(all="ignore"):
        if is_guarded and not guard.all_finite(_sum(buffer, gradient) for _, buffer, gradient in additions):
            _report_sum(additions)
        for _, buffer, gradient in additions:
            np.add(buffer, gradient, out=buffer, casting="same_kind")


def _checked_buffers(tape: Tape, tensors: Sequence[Any]) -> list[Any]:
    count = tape.num_tensors
    if not hasattr(tensors, "__len__"):
        raise DtypeError(f"backward: expected a list with a NumPy array for each slot, got {type(tensors).__name__}.")
    if len(tensors) < count:
        raise ShapeError(
            f"backward: {len(tensors)} buffers for {count} slots. Pass a NumPy array for each slot, "
            "in the order of the slots, filled with zeros or with the gradients to add to."
        )
    buffers = [tensors[slot] for slot in range(count)]
    owner: dict[int, int] = {}
    for slot, (value, buffer) in enumerate(zip(tape._slots, buffers)):
        if not isinstance(buffer, np.ndarray):
            raise DtypeError(f"backward: the buffer of slot {slot} must be a NumPy array, got {type(buffer).__name__}.")
        if buffer.dtype.kind not in "fc":
            raise DtypeError(f"backward: the buffer of slot {slot} is {buffer.dtype.name}; gradients need floats.")
        if not buffer.flags.writeable:
            raise GradientError(f"backward: the buffer of slot {slot} is read-only.")
        if owner.setdefault(id(buffer), slot) != slot:
            raise GradientError(
                f"backward: slots {owner[id(buffer)]} and {slot} have the same array as buffer. Make one for each: "
                "`[np.zeros(n) for _ in ...]`, not `[np.zeros(n)] * ...`."
            )
        if value.shape is not None and buffer.size != prod(value.shape):
            raise ShapeError(
                f"backward: the buffer of slot {slot} has {buffer.size} elements (shape {buffer.shape}), "
                f"but the slot has shape {value.shape}."
            )
    return buffers


def _seed(root: Value, loss_grad: Any, buffers: list[Any]) -> Any:
    """The cotangent of the last output, in its shape and dtype."""
    if isinstance(loss_grad, (int, float, list, tuple)):  # numbers take the dtype of the data
        seed = np.asarray(loss_grad, dtype=root.dtype or asarray(0.0)._raw.dtype)
    else:
        seed, _ = data_for("backward: loss_grad", loss_grad)
    shape = seed.shape if root.shape is None else root.shape
    if seed.size != prod(shape) or seed.size != buffers[root.slot].size:  # type: ignore[index]
        raise ShapeError(
            f"backward: loss_grad has shape {seed.shape}, but the last output, slot {root.slot}, has "
            f"{'as many elements as its buffer' if root.shape is None else 'shape'} "
            f"{buffers[root.slot].shape if root.shape is None else root.shape}."  # type: ignore[index]
        )
    if seed.dtype.kind == "c" and root.dtype is not None and root.dtype.kind != "c":
        raise DtypeError(f"backward: loss_grad is {seed.dtype.name}, but the last output is {root.dtype.name}.")
    return seed.reshape(shape).astype(root.dtype or seed.dtype, copy=False)


def _leading_to(root: Value, seed: Any, steps: list[Step], buffers: list[Any]) -> tuple[list[Step], Known]:
    """The steps on a way to `root`, last first, and the shape and dtype of every value there.

    A shape that no data told is that of the result, or, where its size is another, that of the slot's buffer.
    """
    known: Known = {root: (seed.shape, seed.dtype)}
    found = []
    for step in reversed(steps):
        result = known.get(step.result)
        if result is None:
            continue
        found.append(step)
        for operand in step.operands:
            if operand in known:
                continue
            shape = operand.shape
            if shape is None:  # only operations that broadcast take values of unknown shape
                buffer = buffers[operand.slot]  # type: ignore[index]
                shape = result[0] if buffer.size == prod(result[0]) else buffer.shape
            known[operand] = (shape, operand.dtype or result[1])
        if step.recipe.operation.elementwise:
            _check_broadcast(step, [known[operand][0] for operand in step.operands], result[0])
    return found, known


def _check_broadcast(step: Step, shapes: list[Shape], result: Shape) -> None:
    if all([shape == result for shape in shapes]):
        return
    try:
        fits = np.broadcast_shapes(*shapes, result) == result
    except ValueError:
        fits = False
    if not fits:
        slots = " and ".join(f"{operand.slot} {shape}" for operand, shape in zip(step.operands, shapes))
        raise ShapeError(
            f"backward: `{step.recorded}` cannot have a result of shape {result}: its slots have the shapes {slots}, "
            "from data or from their buffers. Give shapes to `tape.leaf(shape)`."
        )


def _nodes(steps: list[Step], known: Known) -> dict[Value, Node]:
    """A graph of the steps, which is this walk's own."""
    nodes: dict[Value, Node] = {}
    for step in reversed(steps):
        for operand in step.operands:
            if operand not in nodes:
                nodes[operand] = Leaf(*known[operand], GradCell())
        operation = step.recipe.operation
        shape, dtype = known[step.result]
        given = [known[operand] for operand in step.operands]
        is_same = all([d == dtype and (s == shape or not operation.elementwise) for s, d in given])
        parents = tuple([nodes[operand] for operand in step.operands])
        node = new_node(step.recipe, parents, step.saved, None if is_same else tuple(given))
        node.code, node.lasti = step.recorded.code, step.recorded.lasti
        nodes[step.result] = node
    return nodes


def _sum(buffer: Any, gradient: Any) -> Any:
    """What the buffer will hold."""
    return np.add(buffer, gradient, dtype=buffer.dtype, casting="same_kind")


def _report_sum(additions: list[tuple[int, Any, Any]]) -> None:
    for slot, buffer, gradient in additions:
        total = _sum(buffer, gradient)
        if guard.is_finite(gradient) and not guard.is_finite(total):
            before = "is finite" if guard.is_finite(buffer) else "held values that were not finite"
            guard.report(
                f"the gradient of slot {slot} added to its buffer is {kind_of_bad(total)}; "
                f"the buffer {before} ({buffer.dtype.name})."
            )


def _where_it_began(steps: list[Step], nodes: dict[Value, Node], cotangents: dict[Node, Any], tape: Tape) -> str:
    """The message about cotangents that are not finite: the first step, from the end, that made one."""
    root = steps[0].result
    if not guard.is_finite(cotangents[nodes[root]]):
        return f"loss_grad, the gradient of slot {root.slot}, is {kind_of_bad(cotangents[nodes[root]])} already."
    number = {id(recorded): i for i, recorded in enumerate(tape._recorded)}
    for step in steps:
        node = nodes[step.result]
        bad = [not guard.is_finite(cotangents[nodes[operand]]) for operand in step.operands]
        if not any(bad):
            continue
        with np.errstate(all="ignore"):
            gradients = step.recipe.backward(cotangents[node], *step.saved)
        for operand, is_bad, gradient in zip(step.operands, bad, gradients):
            if is_bad and not guard.is_finite(gradient):
                slots = [operand.slot] if operand.slot is not None else step.recorded.slots
                what = ", ".join(f"slot {slot}" for slot in slots if slot is not None)
                return describe_backward(
                    node, gradient, f"operation {number[id(step.recorded)]} of the tape, for {what}"
                )
    slot = next(v.slot for v, n in nodes.items() if v.slot is not None and not guard.is_finite(cotangents[n]))
    return f"the gradient of slot {slot} is not finite: the sum of contributions to it overflows."
