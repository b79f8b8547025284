"""Walking the graph: from a result back to the variables, each node once, in linear time."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Iterable

import numpy as np

from .. import backends
from ..backends import portable
from ..errors import GraphConsumedError
from ..tensor.core import Tensor, make
from .apply import new_node, select
from .graph import Node
from .hooks import hooks, hooks_of
from .operation import Operation, Recipe
from .tables import TENSORS, tensor_table

_by_sequence = attrgetter("seq")


def walk(
    seeds: Iterable[tuple[Node, Any]],
    wrt: frozenset[Node] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> dict[Node, Any]:
    """The cotangents of the leaves (or of the nodes in `wrt`), given those of some results.

    Cotangents are raw arrays; with `create_graph` they are tensors, and what is computed is recorded.
    Values kept for the rules are released as the walk passes them unless `retain_graph`.
    """
    cotangents: dict[Node, Any] = {}
    for node, g in seeds:
        cotangents[node] = cotangents[node] + g if node in cotangents else g
    order = _in_order(cotangents)
    useful = None if wrt is None else _leading_to(order, wrt)
    visitor = _Visitor(order, create_graph)
    kept: dict[Node, Any] = {}
    summed: set[Node] = set()  # nodes whose cotangent is a buffer that this walk made
    release = not (retain_graph or create_graph)
    plain = visitor.is_plain
    with np.errstate(all="ignore"):
        for node in order:
            g = cotangents.pop(node, None)
            if g is None:
                continue
            if useful is not None:
                if node in wrt:  # type: ignore[operator]
                    kept[node] = g
                if useful.isdisjoint(node.inputs):
                    continue
            if plain:
                gradients = node.recipe.backward(g, *node.saved)
                if node.restore is not None:
                    gradients = _restored(gradients, node.restore)
            else:
                gradients = visitor.visit(node, g)
            if release:
                node.saved = None
            for parent, gradient in zip(node.inputs, gradients):
                if parent in cotangents:
                    if parent in summed:
                        cotangents[parent] += gradient
                    else:
                        cotangents[parent] = cotangents[parent] + gradient
                        if not create_graph:
                            summed.add(parent)
                elif useful is None or parent in useful:
                    cotangents[parent] = gradient
    if wrt is None:
        return cotangents
    kept.update((node, g) for node, g in cotangents.items() if node in wrt)
    return kept


def _in_order(roots: Iterable[Node]) -> list[Node]:
    """The nodes that lead to `roots`, children before parents, without the leaves."""
    stack = [node for node in roots if node.recipe is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node.saved is None:
            raise GraphConsumedError(
                "this graph was already walked and its saved values released. "
                "Pass retain_graph=True to the first backward to walk it twice."
            )
        for parent in node.inputs:
            if parent not in seen and parent.recipe is not None:
                seen.add(parent)
                stack.append(parent)
    return sorted(seen, key=_by_sequence, reverse=True)


def _leading_to(order: list[Node], wrt: frozenset[Node]) -> set[Node]:
    """The nodes in `wrt`, and those of `order` on a way to them."""
    useful = set(wrt)
    for node in reversed(order):
        if not useful.isdisjoint(node.inputs):
            useful.add(node)
    return useful


class _Visitor:
    """What a node's visit takes beyond calling its rule: hooks, masks, and rules on tensors."""

    def __init__(self, order: list[Node], create_graph: bool) -> None:
        self.create_graph = create_graph
        self.hooks = hooks_of(order) if hooks else {}
        self.has_masks = any([node.recipe.operation.masking for node in order])
        self.is_plain = not (create_graph or self.has_masks or self.hooks)
        self.masked: set[Node] = set()  # nodes whose cotangent has passed a masking operation

    def visit(self, node: Node, g: Any) -> Any:
        for hook in self.hooks.get(node, ()):
            g = hook(g)
        operation = node.recipe.operation
        backward = self._backward(node)
        gradients = backward(g)
        if self.has_masks:
            if operation.singular and node in self.masked and not _all_finite(gradients):
                gradients = _with_finite_factors(backward, g)
            if operation.masking or node in self.masked:
                self.masked.update(node.inputs)
        return gradients if node.restore is None else _restored(gradients, node.restore)

    def _backward(self, node: Node) -> Any:
        recipe = node.recipe
        if not self.create_graph:
            return lambda g: recipe.backward(g, *node.saved)
        if recipe.operation.composite:
            return lambda g: _through_portable_form(node, g)
        values = _as_tensors(node)
        rule = recipe.backward if recipe.on_tensors else tensor_table().recipe(recipe.operation, recipe.mask).backward
        return lambda g: rule(g, *values)


# -- zero cotangents where a factor is not finite ------------------------------------------------


def _namespace(x: Any) -> Any:
    return TENSORS if isinstance(x, Tensor) else backends.of(x).xp  # type: ignore[union-attr]


def _all_finite(gradients: tuple[Any, ...]) -> bool:
    return all(bool(xp.all(xp.isfinite(x))) for x in gradients for xp in (_namespace(x),))


def _with_finite_factors(backward: Any, g: Any) -> tuple[Any, ...]:
    """An elementwise operation's gradients, where a zero cotangent stays zero even if the factor is infinite or NaN.

    The factor is replaced, not the product: the product's derivative with respect to `g` must survive.
    """
    xp = _namespace(g)
    gradients = []
    for factor in backward(xp.ones_like(g)):
        bad = xp.logical_and(xp.equal(g, 0), xp.logical_not(xp.isfinite(factor)))
        gradients.append(xp.multiply(xp.where(bad, xp.zeros_like(factor), factor), g))
    return tuple(gradients)


# -- shapes and dtypes ---------------------------------------------------------------------------


def _restored(gradients: tuple[Any, ...], restore: tuple[tuple[Any, Any], ...]) -> tuple[Any, ...]:
    """Undo broadcasting and promotion: bring each gradient to the shape and dtype of its input."""
    return tuple([_restored_one(g, shape, dtype) for g, (shape, dtype) in zip(gradients, restore)])


def _restored_one(g: Any, shape: Any, dtype: Any) -> Any:
    xp = _namespace(g)
    if tuple(g.shape) != tuple(shape):
        g = xp.sum_to(g, shape)
    raw = g._data if isinstance(g, Tensor) else g
    if raw.dtype != dtype:
        g = xp.astype(g, dtype)  # drops the imaginary part of a real input's gradient
    return g


# -- higher orders: rules on tensors -------------------------------------------------------------


def _as_tensors(node: Node) -> list[Any]:
    """What was saved in `node`, as tensors that know how they were made."""
    recipe = node.recipe
    operation = recipe.operation
    parents = iter(node.inputs)
    inputs = [next(parents) if tracked else None for tracked in recipe.mask]
    values = []
    for value, (kind, index) in zip(node.saved, recipe.sources):  # type: ignore[arg-type]
        if kind == "input":
            if operation.variadic:
                value = tuple(_tensor(v, parent) for v, parent in zip(value, inputs))
            else:
                value = _tensor(value, inputs[index])
        elif kind == "output":
            if operation.many_outputs:
                value = tuple(make(v, select(node, i, len(value))) for i, v in enumerate(value))
            elif len(operation.outputs) > 1:
                value = make(value, select(node, index, len(operation.outputs)))
            else:
                value = make(value, node)
        elif kind == "residual":
            value = _tensor(value, None)
        values.append(value)
    return values


def _tensor(value: Any, node: Node | None) -> Any:
    return make(value, node) if backends.of(value) is not None else value


def _identity(g: Any) -> tuple[Any]:
    return (g,)


IDENTITY = Recipe.of_function(
    Operation("identity", "x", "", "", "out", ("x",), False, "x", False, False, False, True), (True,), (), _identity
)


def alias(tensor: Tensor) -> Tensor:
    """The same value as a variable of its own, which passes its gradient on to `tensor`."""
    return make(tensor._data, new_node(IDENTITY, () if tensor._node is None else (tensor._node,), ()))


def _through_portable_form(node: Node, g: Any) -> tuple[Any, ...]:
    """Gradients of a fused operation by differentiating its portable form, which is made of other operations."""
    recipe = node.recipe
    operation = recipe.operation
    saved = dict(zip(recipe.names, _as_tensors(node)))
    like = g if isinstance(g, Tensor) else next(part for part in g if part is not None)
    parents = iter(node.inputs)
    inputs, variables = [], []
    for name, tracked in zip(operation.inputs, recipe.mask):
        x = saved.get(name)
        if x is None and saved[name + "_shape"] is not None:  # its value has no influence on any gradient
            x = TENSORS.zeros(saved[name + "_shape"], saved[name + "_dtype"], like)
        if tracked:
            x = make(x._data, new_node(IDENTITY, (next(parents),), ()))
            variables.append(x)
        inputs.append(x)
    result = portable.bind(operation.name, TENSORS)(*inputs, *(saved[name] for name in operation.static))
    outputs = result[: len(operation.outputs)] if isinstance(result, tuple) else (result,)
    cotangents = (g,) if isinstance(g, Tensor) else g
    seeds = [(out._node, part) for out, part in zip(outputs, cotangents) if part is not None and out._node is not None]
    gradients = walk(seeds, frozenset(v._node for v in variables), create_graph=True)
    return tuple(gradients[v._node] if v._node in gradients else TENSORS.zeros_like(v) for v in variables)
