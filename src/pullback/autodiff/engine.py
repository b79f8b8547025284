"""Walking the graph: from a result back to the variables, each node once, in linear time."""

from __future__ import annotations

from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import numpy as np

from .. import backends, modes
from ..backends import portable
from ..errors import GraphConsumedError
from ..operations import Operation
from . import base, borrowing, guard
from .apply import Outputs, new_node, select
from .base import make, resolved
from .graph import Node, origin, saved_values
from .hooks import hooked, hooks_of
from .recipe import Recipe
from .tables import TENSORS, tensor_table

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_by_sequence = attrgetter("seq")
_buffers = backends.buffers


def walk(
    seeds: Iterable[tuple[Node, Any]],
    wrt: frozenset[Node] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    guarded: Any = False,
    stop: bool = False,
    hooks_since: int = -1,
    is_masked: bool = False,
    on_tensors: bool = False,
) -> dict[Node, Any]:
    """The cotangents of the leaves (or of the nodes in `wrt`), given those of some results.

    Cotangents are raw arrays; with `create_graph` they are tensors, and what is computed is recorded.
    Values kept for the rules are released as the walk passes them unless `retain_graph`. A guarded walk
    releases them a window later, so that it can tell where a NaN or an infinity in its result came from.
    With `stop` nothing passes through the nodes in `wrt`. Hooks on variables older than `hooks_since` are not called.
    `is_masked` says that the given cotangents may have passed a masking operation. With `on_tensors` cotangents are
    tensors, and nothing is recorded: so many of them go through a graph of one at once, inside of `vmap`.
    """
    mode = modes.current()
    if mode is not None and mode.tracing is not None and not mode.tracing.is_walking:
        with mode.tracing.walking():
            return walk(seeds, wrt, retain_graph, create_graph, guarded, stop, hooks_since, is_masked, on_tensors)
    if mode is not None and (mode.autocast is not None or (create_graph and not mode.recording)):
        # Cotangents have the precision of what they are cotangents of: rules are not cast again.
        with modes.changed(recording=mode.recording or create_graph, autocast=None):
            return walk(seeds, wrt, retain_graph, create_graph, guarded, stop, hooks_since, is_masked, on_tensors)
    cotangents: dict[Node, Any] = {}
    for node, g in seeds:
        cotangents[node] = cotangents[node] + g if node in cotangents else g
    order = in_order(cotangents, wrt is None)
    if borrowing.has_shared():
        borrowing.refuse_changes(order)
    useful = None if wrt is None else _leading_to(order, wrt)
    if useful is not None:
        order = [node for node in order if node in useful]
    visitor = _Visitor(order, create_graph, hooks_since, on_tensors)
    plain, masked = visitor.is_plain, visitor.masked
    if is_masked:
        masked.update(cotangents)
    release = not (retain_graph or create_graph or on_tensors)
    trace = mode.tracing if mode is not None and release else None
    if trace is not None:
        release = False  # not before the end: symbols take no memory
    window = None  # of a guarded walk, once there is more than one
    beginning = dict(cotangents)
    roots = guarded if type(guarded) is tuple else ()  # on a device: not looked at yet
    on_device = guarded and release and (bool(roots) or guard.is_on_device(cotangents))
    if roots and not release:
        guard.check_root(make(roots[0], None), next(iter(cotangents)), waiting=True)
    guarded = bool(guarded) and not on_device
    held, most = 0, guard.WINDOW_BYTES  # bytes kept alive in the window
    kept: dict[Node, Any] = {}
    sums: dict[Node, Any] = {}  # cotangents in buffers that this walk made: more is added to them in place
    take, find, find_sum = cotangents.pop, cotangents.get, sums.get
    gradients: Any
    with _at_sites() if create_graph else np.errstate(all="ignore"):
        for node in order:
            g = take(node, None)
            if g is None:
                g = sums.pop(node, None)
                if g is None:
                    continue
            if create_graph:
                origin.site = node.code, node.lasti
            if useful is not None:
                if node in wrt:  # type: ignore[operator]
                    g = kept[node] = visitor.hooked(node, g)
                    visitor.hooks.pop(node, None)  # called once in a walk
                    if stop:
                        continue
                if useful.isdisjoint(node.inputs):
                    continue
            if type(g) is Outputs:
                g = g.parts()
            recipe = node.recipe
            if recipe.accumulate is not None and plain and node.inputs[0] in sums and node.unbroadcast is None:
                recipe.accumulate(sums[node.inputs[0]], g, *node.saved)
                masked.update(node.inputs)
                gradients = ()
            elif plain:  # what `visit` does, without hooks and recording
                gradients = recipe.backward(g, *node.saved)
                if node in masked:
                    if recipe.singular:
                        gradients = visitor.where_not_masked(node, g, gradients)
                    masked.update(node.inputs)
                elif recipe.masking:
                    masked.update(node.inputs)
                if node.unbroadcast is not None:
                    gradients = _unbroadcast(gradients, node.unbroadcast)
            else:
                gradients = visitor.visit(node, g)
            for parent, gradient in zip(node.inputs, gradients):
                if gradient is None:  # of several outputs, those that have a cotangent do not depend on it
                    continue
                total = find_sum(parent)
                if total is not None:
                    total += gradient
                    continue
                before = find(parent)
                if before is None:
                    if useful is None or parent in useful:
                        if recipe.accumulate is not None and plain and type(gradient) in _buffers:
                            sums[parent] = gradient  # such a rule makes an array of its own
                        else:
                            cotangents[parent] = gradient
                    continue
                total = before + gradient
                if type(total) in _buffers:
                    sums[parent] = total
                    del cotangents[parent]
                else:
                    cotangents[parent] = total
            if guarded:
                if recipe.keeps_like_cotangent:
                    held += getattr(g, "nbytes", 0)
                elif recipe.keeps_arrays:
                    held += recipe.bytes_kept(*node.saved)
                if held > most:
                    window = window or guard.Window(order, beginning, visitor.visit, release, useful)
                    cotangents.update(sums)
                    sums.clear()  # what the next window starts from must not be written any more
                    window.close(node, cotangents)
                    held = 0
            elif release:
                node.saved = None
        cotangents.update(sums)
        if visitor.hooks:
            for node in cotangents:
                cotangents[node] = visitor.hooked(node, cotangents[node])
        if wrt is not None:
            kept.update((node, g) for node, g in cotangents.items() if node in wrt)
            cotangents = kept
        if on_device:
            guard.check_on_device(order, cotangents, roots)
        elif guarded:
            if window is None and useful is None and guard.all_finite(cotangents.values()):
                if release:
                    for node in order:
                        node.saved = None
            else:
                window = window or guard.Window(order, beginning, visitor.visit, release, useful)
                window.end(cotangents)
    if trace is not None:
        for node in order:
            if node.seq > trace.began and (useful is None or not useful.isdisjoint(node.inputs)):
                node.saved = None  # a graph from outside stays as it is
    return cotangents


@contextmanager
def _at_sites() -> Iterator[None]:
    """What a rule records comes from where its operation was called: the walk says so, node by node."""
    before = origin.site
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        origin.site = before


def in_order(roots: Iterable[Node], all_needed: bool = True) -> list[Node]:
    """The nodes that lead to `roots`, children before parents, without the leaves."""
    stack = [node for node in roots if node.recipe is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if all_needed and node.saved is None:
            _check_not_consumed(node)
        for parent in node.inputs:
            if parent not in seen and parent.recipe is not None:
                seen.add(parent)
                stack.append(parent)
    return sorted(seen, key=_by_sequence, reverse=True)


def is_consumed(root: Node, sound: set[Node]) -> bool:
    """Whether something behind `root` was walked already, so that no gradient can be had any more.

    Nodes behind which nothing was are in `sound`, or come into it.
    """
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        if node.saved is None:
            return True
        for parent in node.inputs:
            if parent not in seen and parent not in sound:
                seen.add(parent)
                stack.append(parent)
    sound |= seen
    return False


def _check_not_consumed(node: Node) -> None:
    if node.saved is None:
        raise GraphConsumedError(
            "this graph was already walked and its saved values released. "
            "Pass retain_graph=True to the first backward to walk it twice."
        )


def _leading_to(order: list[Node], wrt: frozenset[Node]) -> set[Node]:
    """The nodes in `wrt`, and those of `order` on a way to them."""
    useful = set(wrt)
    for node in reversed(order):
        if not useful.isdisjoint(node.inputs):
            _check_not_consumed(node)
            useful.add(node)
    return useful


class _Visitor:
    """What a node's visit takes beyond calling its rule: hooks, masks, and rules on tensors."""

    def __init__(self, order: list[Node], create_graph: bool, hooks_since: int = -1, on_tensors: bool = False) -> None:
        self.create_graph = create_graph or on_tensors
        self.is_recorded = create_graph
        self.hooks = hooks_of(order) if hooked else {}
        if hooks_since >= 0:
            self.hooks = {node: found for node, found in self.hooks.items() if node.recipe or node.seq >= hooks_since}
        self.is_plain = not (self.create_graph or self.hooks)
        self.masked: set[Node] = set()  # nodes whose cotangent has passed a masking operation

    def hooked(self, node: Node, g: Any) -> Any:
        """`g` after the hooks on `node`, which see tensors: gradients as the user knows them, conjugates of `g`."""
        for hook in self.hooks.get(node, ()):
            gradient = _conjugate(g if isinstance(g, base.Tensor) else make(backends.of(g).from_scalar(g), None))
            with _at_sites():
                origin.site = None  # the hook's own lines
                result = hook(gradient)
            if result is None:
                continue
            fitting = gradient._fitting_gradient("hook", result)
            if self.create_graph:
                g = _conjugate(result if isinstance(result, base.Tensor) else fitting)
            else:
                g = resolved(_conjugate(fitting))._raw
        return g

    def visit(self, node: Node, g: Any) -> Any:
        """The gradients of the node's tracked inputs, given its cotangent."""
        if type(g) is Outputs:
            g = g.parts()
        if self.hooks:
            g = self.hooked(node, g)
        recipe = node.recipe
        gradients = self._on_tensors(node, g) if self.create_graph else recipe.backward(g, *node.saved)
        if node in self.masked:
            if recipe.singular:
                gradients = self.where_not_masked(node, g, gradients)
            self.masked.update(node.inputs)
        elif recipe.masking:
            self.masked.update(node.inputs)
        return gradients if node.unbroadcast is None else _unbroadcast(gradients, node.unbroadcast)

    def _on_tensors(self, node: Node, g: Any) -> Any:
        """The rule on tensors, so that what it computes is recorded."""
        recipe = node.recipe
        if recipe.operation.composite:
            return _through_portable_form(node, g, self.is_recorded)
        rule = recipe.backward if recipe.on_tensors else tensor_table().recipe(recipe.operation, recipe.mask).backward
        return rule(g, *_as_tensors(node, self.is_recorded))

    def where_not_masked(self, node: Node, g: Any, gradients: Any) -> Any:
        """The gradients of an elementwise operation, zero where `g` is, also where its factor is not finite."""
        if self.create_graph or not guard.is_on_device({node: g}):
            return gradients if guard.all_finite(gradients) else self._with_finite_factors(node, g)
        xp = _namespace(g)
        zeros = xp.equal(g, 0)  # nobody waits for the device to say whether it matters
        return tuple([gradient if gradient is None else xp.cleared(zeros, gradient) for gradient in gradients])

    def _with_finite_factors(self, node: Node, g: Any) -> tuple[Any, ...]:
        """An elementwise operation's gradients, where a zero cotangent stays zero even if the factor is not finite.

        The factor is replaced, not the product: the product's derivative with respect to `g` must survive.
        """
        xp = _namespace(g)
        ones = xp.ones_like(g)
        factors = self._on_tensors(node, ones) if self.create_graph else node.recipe.backward(ones, *node.saved)
        gradients = []
        for factor in factors:
            bad = xp.logical_and(xp.equal(g, 0), xp.logical_not(xp.isfinite(factor)))
            gradients.append(xp.multiply(xp.where(bad, xp.zeros_like(factor), factor), g))
        return tuple(gradients)


def visit_alone(node: Node, g: Tensor) -> tuple[Tensor, ...]:
    """The gradients that one node passes on, as tensors; nothing is released."""
    _check_not_consumed(node)
    return tuple(_Visitor([node], create_graph=True).visit(node, g))


def _namespace(x: Any) -> Any:
    return TENSORS if isinstance(x, base.Tensor) else backends.of(x).xp


def _conjugate(tensor: Any) -> Tensor:
    return TENSORS.conj(tensor) if tensor.dtype.kind == "complex" else tensor


# -- shapes and dtypes ---------------------------------------------------------------------------


def _unbroadcast(gradients: tuple[Any, ...], unbroadcast: tuple[tuple[Any, Any], ...]) -> tuple[Any, ...]:
    """Undo broadcasting and promotion: bring each gradient to the shape and dtype of its input."""
    return tuple(
        [None if g is None else _unbroadcast_one(g, shape, dtype) for g, (shape, dtype) in zip(gradients, unbroadcast)]
    )


def _unbroadcast_one(g: Any, shape: Any, dtype: Any) -> Any:
    xp = _namespace(g)
    if tuple(g.shape) != tuple(shape):
        g = xp.sum_to(g, shape)
    raw = g._raw if isinstance(g, base.Tensor) else g
    if raw.dtype != dtype:
        backend: Any = backends.of(raw)
        if (
            backend.dtype_of(raw).kind == "complex"
            and backend.dtype_of(backend.xp.zeros((), dtype, raw)).kind == "float"
        ):
            g = xp.real(g)
        g = xp.astype(g, dtype)
    return g


# -- higher orders: rules on tensors -------------------------------------------------------------


def _as_tensors(node: Node, is_recorded: bool = True) -> list[Any]:
    """What was saved in `node`, as tensors that know how they were made, or as constants."""
    recipe = node.recipe
    operation = recipe.operation
    if not is_recorded:
        pairs = zip(saved_values(node, walking=True), recipe.sources)
        return [_constants(value) if kind in ("input", "output", "residual") else value for value, (kind, _) in pairs]
    parents = iter(node.inputs)
    # the variable of a transform that has ended is an identity with nothing behind it
    inputs = [next(parents, None) if tracked else None for tracked in recipe.mask]
    values: list[Any] = []
    for value, (kind, index) in zip(saved_values(node, walking=True), recipe.sources):
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


def _constants(value: Any) -> Any:
    """Raw arrays, alone or several, as tensors."""
    return tuple([_tensor(part, None) for part in value]) if type(value) is tuple else _tensor(value, None)


def _tensor(value: Any, node: Node | None) -> Any:
    return make(value, node) if backends.of(value) is not None else value


def _identity(g: Any) -> tuple[Any]:
    return (g,)


IDENTITY = Recipe.of_function(Operation("identity", "x", linear="x", cheap=True), (True,), (), _identity)


def alias(tensor: Tensor) -> Tensor:
    """The same value as a variable of its own, which passes its gradient on to `tensor`."""
    tensor = resolved(tensor)
    return make(tensor._raw, new_node(IDENTITY, () if tensor._node is None else (tensor._node,), ()))


def _through_portable_form(node: Node, g: Any, is_recorded: bool) -> tuple[Any, ...]:
    """Gradients of a fused operation by differentiating its portable form, which is made of other operations."""
    recipe = node.recipe
    operation = recipe.operation
    saved = dict(zip(recipe.names, _as_tensors(node, is_recorded)))
    like = g if isinstance(g, base.Tensor) else next(part for part in g if part is not None)
    parents = iter(node.inputs)
    inputs: list[Any] = []
    variables: list[Any] = []
    mapping = modes.mapping()
    for name, tracked in zip(operation.inputs, recipe.mask):
        x: Any = saved.get(name)
        if x is None and saved[name + "_shape"] is not None:  # its value has no influence on any gradient
            x = TENSORS.zeros(saved[name + "_shape"], saved[name + "_dtype"], like)
        if tracked:
            parent = next(parents)
            x = make(x._raw, parent if is_recorded else None)
            x = alias(x if mapping is None else mapping.lift(x))
            variables.append(x)
        inputs.append(x)
    result = portable.bind(operation.name, TENSORS)(*inputs, *(saved[name] for name in operation.static))
    outputs = result[: len(operation.outputs)] if isinstance(result, tuple) else (result,)
    cotangents = (g,) if isinstance(g, base.Tensor) else g
    seeds = [(out._node, part) for out, part in zip(outputs, cotangents) if part is not None and out._node is not None]
    gradients = walk(seeds, frozenset(v._node for v in variables), create_graph=True)
    found = [gradients[v._node] if v._node in gradients else TENSORS.zeros_like(v) for v in variables]
    return tuple(found if is_recorded else [make(gradient._raw, None) for gradient in found])
