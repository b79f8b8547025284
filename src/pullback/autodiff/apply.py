"""Running an operation on tensors: kernel, then a node if somebody needs the gradient."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Iterable

import numpy as np

from .. import backends, modes
from ..errors import DtypeError
from ..operations import Operation
from . import base, borrowing
from .base import PYTHON_SCALARS, SCALAR_OR_ABSENT, make
from .creation import array_of_list, asarray
from .explanation import absence, explained, mixture
from .graph import Node, next_sequence_number, record_site
from .recipe import Recipe
from .tables import table_for


def apply(operation: Operation, inputs: tuple[Any, ...], static: tuple[Any, ...] = ()) -> Any:
    """Run `operation` on tensors (or raw arrays, Python scalars, None) and record it; a tuple for several outputs."""
    mode = modes.current()
    if mode is not None:
        if mode.mapping is not None:
            return mode.mapping.apply(operation, inputs, static)
        if mode.tracing is not None:
            inputs = mode.tracing.resolve_all(inputs)
        if mode.autocast is not None:
            inputs = mode.autocast.cast(operation, inputs, static)
    raws, nodes = [], []
    array = None
    tracked = scalars = False
    for x in inputs:
        kind = type(x)
        if kind is base.Tensor:
            array = x._raw
            raws.append(array)
            nodes.append(x._node)
            if x._node is not None:
                tracked = True
        elif kind in SCALAR_OR_ABSENT:
            raws.append(x)
            nodes.append(None)
            scalars = True
        elif isinstance(x, base.Tensor):
            return x._apply(operation, inputs, static)
        else:
            return apply(operation, as_operands(inputs, operation), static)
    if array is None:
        if all(x is None for x in inputs):
            raise absence(operation)
        return apply(operation, tuple([x if x is None else asarray(x) for x in inputs]), static)
    backend: Any = backends.of(array)
    for raw in raws:
        if type(raw) is not type(array) and type(raw) not in SCALAR_OR_ABSENT and backends.of(raw) is not backend:
            raise mixture(operation, raws)
    if scalars:
        if operation.elementwise and operation.name != "clip" and any(raw is None for raw in raws):
            raise absence(operation)
        raws = [backend.scalar_for(raw, array) if type(raw) in PYTHON_SCALARS else raw for raw in raws]
    kernel = operation.kernel_for(backend)
    strategy = None
    if mode is not None and mode.recording and type(operation) is Operation:  # a user's function never runs again
        strategy = mode.checkpointing if mode.tracing is None else None  # a program is looked at as a whole
    started = 0.0 if strategy is None else perf_counter()
    try:
        result = kernel(raws, *static) if operation.variadic else kernel(*raws, *static)
    except Exception as error:
        raise explained(operation, raws, static, error) from error
    if operation.is_simple:
        outputs: tuple[Any, ...] = (backend.from_scalar(result),)
        residuals: tuple[Any, ...] = ()
    else:
        outputs, residuals = split(operation, result)
        outputs = tuple([backend.from_scalar(out) for out in outputs])
    if mode is not None:
        if mode.check_every_operation:
            from .guard import check_outputs

            check_outputs(operation, raws, outputs, static)
        tracked = tracked and mode.recording
        if tracked and mode.tapes:
            list_on_tapes(mode, operation, raws, outputs)
    if strategy is not None:
        seconds = perf_counter() - started
        return strategy.record(backend, operation, inputs, raws, nodes, static, outputs, residuals, seconds)
    if tracked:
        node = record(backend, operation, raws, nodes, static, outputs, residuals)
        if node is not None:
            return made_by(node, backend, operation, outputs)
    if operation.has_several_outputs:
        return tuple([make(out, None) for out in outputs])
    return make(outputs[0], None)


def split(operation: Operation, result: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A kernel's result as (outputs, residuals)."""
    if operation.residuals:
        count = len(result) - len(operation.residuals)
        return tuple(result[:count]), tuple(result[count:])
    return (tuple(result) if operation.has_several_outputs else (result,)), ()


def record(
    backend: Any,
    operation: Operation,
    raws: Any,
    nodes: Any,
    static: tuple[Any, ...],
    outputs: tuple[Any, ...],
    residuals: tuple[Any, ...] = (),
) -> Node | None:
    """The node that remembers what the rule needs; None if no output can have a gradient."""
    if not any([backend.is_floating(out) for out in outputs]):
        return None
    recipe = operation.recipe_for(table_for(backend), tuple([node is not None for node in nodes]))
    saved = recipe.gather(tuple(raws) if operation.variadic else raws, static, outputs, residuals)
    parents = tuple([node for node in nodes if node is not None])
    return new_node(recipe, parents, saved, unbroadcasting(operation, raws, nodes, outputs[0]))


def list_on_tapes(mode: modes.Mode, operation: Operation, raws: Any, outputs: tuple[Any, ...]) -> None:
    for tape in mode.tapes:
        tape.note(operation, raws, outputs)


def made_by(node: Node, backend: Any, operation: Operation, outputs: tuple[Any, ...]) -> Any:
    """The tensors of an operation's outputs, with their node."""
    if not operation.has_several_outputs:
        return make(outputs[0], node)
    count = len(outputs)
    return tuple(
        [make(out, select(node, i, count) if backend.is_floating(out) else None) for i, out in enumerate(outputs)]
    )


def new_node(recipe: Any, inputs: tuple[Node, ...], saved: tuple[Any, ...], unbroadcast: Any = None) -> Node:
    node = Node()
    node.seq = next_sequence_number()
    node.recipe = recipe
    node.inputs = inputs
    node.saved = saved
    node.unbroadcast = unbroadcast
    record_site(node)
    return node


def unbroadcasting(operation: Operation, raws: Any, nodes: Any, out: Any) -> Any:
    """What to bring the gradients back to, where broadcasting or promotion changed an input: (shape, dtype) each."""
    shape, dtype = (out.shape, out.dtype) if operation.elementwise else (None, out.dtype)
    for raw, node in zip(raws, nodes):
        if node is not None and (raw.dtype != dtype or (shape is not None and raw.shape != shape)):
            return tuple([(raw.shape, raw.dtype) for raw, node in zip(raws, nodes) if node is not None])
    return None


class Outputs:
    """The cotangents of an operation with several outputs, as a chain of contributions: adding one is O(1)."""

    __slots__ = ("g", "index", "count", "before")

    def __init__(self, g: Any, index: int, count: int, before: Outputs | None = None) -> None:
        self.g = g
        self.index = index
        self.count = count
        self.before = before

    def __add__(self, other: Outputs) -> Outputs:
        total = self
        for link in other.links():
            total = Outputs(link.g, link.index, link.count, total)
        return total

    def links(self) -> list[Outputs]:
        """The contributions in the order in which they were added."""
        found, link = [], self
        while link is not None:
            found.append(link)
            link = link.before  # type: ignore[assignment]
        return found[::-1]

    def parts(self) -> tuple[Any, ...]:
        """The cotangent of each output; None where nothing depends on it."""
        parts: list[Any] = [None] * self.count
        for link in self.links():
            sum_so_far = parts[link.index]
            parts[link.index] = link.g if sum_so_far is None else sum_so_far + link.g
        return tuple(parts)


def _select_backward(g: Any, index: int, count: int) -> tuple[Outputs]:
    return (Outputs(g, index, count),)


SELECT = Recipe.of_function(
    Operation("output", "x", "index count", linear="x", cheap=True),
    (True,),
    ("index", "count"),
    _select_backward,
)


def select(node: Node, index: int, count: int) -> Node:
    """The node of one output of an operation with several."""
    return new_node(SELECT, (node,), (index, count))


def as_operands(inputs: Iterable[Any], operation: Operation) -> tuple[Any, ...]:
    """Each of these as `as_operand` has it; arrays that meet a variable stay for the graph what they are now."""
    return tuple([as_operand(x, operation) for x in kept_arrays(inputs)])


def kept_arrays(inputs: Iterable[Any]) -> tuple[Any, ...]:
    """The inputs of an operation, with NumPy arrays as its graph may keep them, if there is one."""
    inputs = tuple(inputs)
    if modes.is_recording() and modes.tracing() is None and any([_is_variable(x) for x in inputs]):
        return tuple([borrowing.kept(x) if type(x) is np.ndarray else x for x in inputs])
    return inputs


def _is_variable(x: Any) -> bool:
    """Whether what is computed with `x` may go into a graph."""
    return isinstance(x, base.Tensor) and (type(x) is not base.Tensor or x._node is not None)


def as_operand(x: Any, operation: Operation) -> Any:
    """`x` itself if an operation can take it, else a tensor of it."""
    if type(x) in SCALAR_OR_ABSENT or isinstance(x, base.Tensor):
        return x
    if backends.of(x) is not None or hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        return asarray(x)
    advice = " Write `pb.asarray(...)` of it." if isinstance(x, (list, tuple)) else ""
    raise DtypeError(
        f"{operation.name}: expected a tensor, an array or a number, got {type(x).__name__}: {x!r:.60}.{advice}"
    )


def without_list(x: Any, y: Any) -> tuple[Any, Any] | None:
    """A tensor and a list or tuple as two tensors, since operators take those as NumPy's do; None for other things."""
    try:
        if isinstance(x, base.Tensor) and isinstance(y, (list, tuple)):
            return x, array_of_list(y, x.device)
        if isinstance(y, base.Tensor) and isinstance(x, (list, tuple)):
            return array_of_list(x, y.device), y
    except DtypeError:  # words, for example
        return None
    return None
