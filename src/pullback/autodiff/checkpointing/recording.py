"""Recording an operation under a strategy: a step beside the node, and what is kept in place of arrays."""

from __future__ import annotations

from typing import Any

from ... import backends
from ...operations import Operation
from .. import base
from ..apply import made_by, new_node, unbroadcasting
from ..base import make
from ..graph import Leaf, Node
from ..recipe import Recipe
from ..tables import table_for
from .replay import values_of
from .saved import Origin, Saved, Step

_DEEPEST = 16  # untracked steps that hold each other: a state that is computed from itself for ever must not grow


def record(
    strategy: Any,
    backend: Any,
    operation: Operation,
    inputs: tuple[Any, ...],
    raws: list[Any],
    nodes: list[Node | None],
    static: tuple[Any, ...],
    outputs: tuple[Any, ...],
    residuals: tuple[Any, ...],
    seconds: float,
) -> Any:
    """The tensors of an operation that has just run, which know how they were made."""
    if not outputs:  # the parts of nothing
        return ()
    tracked = any([node is not None for node in nodes]) and any([backend.is_floating(out) for out in outputs])
    step = Step(operation, backend, (), static, seconds, strategy.region)
    operands = [strategy.operand(step, x, raw) for x, raw in zip(inputs, raws)]
    step.operands = tuple(operands)
    strategy.classify(step, inputs, outputs)
    origins = [Origin(step, i, bytes_of(raw), tracked) for i, raw in enumerate((*outputs, *residuals))]
    if tracked:
        recipe = operation.recipe_for(table_for(backend), tuple([node is not None for node in nodes]))
        gathered = recipe.gather(tuple(raws) if operation.variadic else raws, static, outputs, residuals)
        saved = _kept(strategy, step, recipe, gathered, operands, origins, len(outputs))
        parents = tuple([node for node in nodes if node is not None])
        node = new_node(_replaying(recipe), parents, (*saved, step), unbroadcasting(operation, raws, nodes, outputs[0]))
        result = made_by(node, backend, operation, outputs)
    else:
        made = [make(out, None) for out in outputs]
        result = tuple(made) if operation.has_several_outputs else made[0]
        if _is_view(outputs[0], raws) or not _is_light(step, outputs):
            return result  # running it again would need as much as it makes
    for tensor, origin in zip(result if operation.has_several_outputs else (result,), origins):
        tensor._origin = origin
    return result


def _is_light(step: Step, outputs: tuple[Any, ...]) -> bool:
    """Whether an untracked result, which holds its step for as long as it lives, is worth what that holds in turn."""
    if not any([isinstance(x, (Origin, Saved)) for x in step.operands]):
        return False
    for x in step.operands:
        if isinstance(x, Origin):
            if x.holder is not None:
                step.given += x.holder.given
                step.depth = max(step.depth, x.holder.depth + 1)
        else:
            step.given += x.origin.nbytes if isinstance(x, Saved) else bytes_of(x)
    return step.depth <= _DEEPEST and step.given <= sum([bytes_of(out) for out in outputs])


def _is_view(out: Any, raws: list[Any]) -> bool:
    buffer = backends.of(out).buffer_of(out)
    return any([buffer == backend.buffer_of(raw) for raw in raws if (backend := backends.of(raw)) is not None])


def operand_of(x: Any, raw: Any) -> Any:
    """How a step refers to what it ran on: by its origin if another step made it, else by the raw array itself."""
    origin = getattr(x, "_origin", None) if isinstance(x, base.Tensor) else None
    return raw if origin is None else origin


def bytes_of(raw: Any) -> int:
    """The bytes of a raw array; 0 of anything else."""
    backend = backends.of(raw)
    return 0 if backend is None else backend.bytes_of(raw)


def is_variable(x: Any) -> bool:
    return isinstance(x, base.Tensor) and isinstance(x._node, Leaf)


def _kept(
    strategy: Any, step: Step, recipe: Recipe, saved: Any, operands: list[Any], origins: list[Origin], count: int
) -> list[Any]:
    """`saved` with arrays that steps have made replaced by what is kept of them."""
    operation = recipe.operation

    def keep(origin: Any, raw: Any) -> Any:
        if not isinstance(origin, (Origin, Saved)):
            return raw
        kept = origin if isinstance(origin, Saved) else strategy.keep(origin, raw)
        if kept.first is None or kept.first > step.seq:
            kept.first = step.seq
        return kept

    result = []
    for value, (kind, index) in zip(saved, recipe.sources):
        if kind == "input":
            if operation.variadic:
                value = tuple([keep(origin, raw) for origin, raw in zip(operands, value)])
            else:
                value = keep(operands[index], value)
        elif kind == "output":
            if operation.many_outputs:
                value = tuple([keep(origin, raw) for origin, raw in zip(origins, value)])
            else:
                value = keep(origins[index], value)
        elif kind == "residual":
            value = keep(origins[count + index], value)
        result.append(value)
    return result


# -- walking -------------------------------------------------------------------------------------

_variants: dict[Recipe, Recipe] = {}


def _replaying(recipe: Recipe) -> Recipe:
    """The same recipe for a node whose saved values are kept under a strategy, its step behind them."""
    variant = _variants.get(recipe)
    if variant is None:
        variant = Recipe.__new__(Recipe)
        for name in Recipe.__slots__:
            setattr(variant, name, getattr(recipe, name))
        accumulate = recipe.accumulate
        variant.backward = lambda g, *saved: recipe.backward(g, *_taken(saved))
        if accumulate is not None:
            variant.accumulate = lambda total, g, *saved: accumulate(total, g, *_taken(saved))
        variant.bytes_kept = _bytes_kept
        variant.unpack = _unpack
        _variants[recipe] = variant
    return variant


def _taken(saved: tuple[Any, ...]) -> list[Any]:
    """The saved arrays for the rule; those that no node further on needs are let go."""
    current = saved[-1].seq
    values = values_of(saved[:-1], current)
    for x in saved[:-1]:
        for part in x if type(x) is tuple else (x,):
            if isinstance(part, Saved) and part.replay is not None and part.first == current:
                part.forget()
    return values


def _unpack(saved: tuple[Any, ...], walking: bool) -> list[Any]:
    """The saved arrays, for a walk on tensors or for anybody else: then nothing is held, nothing let go."""
    return _taken(saved) if walking else values_of(saved[:-1], -1)


def _bytes_kept(*saved: Any) -> int:
    parts = [part for x in saved for part in (x if type(x) is tuple else (x,))]
    return sum([bytes_of(part.raw if isinstance(part, Saved) else part) for part in parts])
