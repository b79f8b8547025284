"""Forward mode: tensors that carry a tangent.

A dual belongs to a level; every `jvp` opens a new one. An operation takes its inputs apart at the
highest level among them, so nested derivatives never mix (no perturbation confusion). Primals and
tangents are tensors themselves: of a lower level, or tracked for a later reverse walk.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeGuard

from .. import modes
from ..errors import DtypeError, ShapeError
from ..operations import Operation
from . import base
from .apply import apply as run, as_operand, as_operands
from .base import TensorBase, resolved
from .engine import alias, walk
from .graph import Leaf, origin, users_site
from .tables import TENSORS, tensor_table

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

next_level = itertools.count(1).__next__


class Dual(TensorBase):
    """A tensor with a tangent at one level.

    It has the layout of a tensor, its parts in the slot that a plain tensor uses for a stray gradient,
    so that writing a dual into a plain tensor can make that one a dual too.
    """

    __slots__ = ()

    @property
    def primal(self) -> Tensor:
        return self._cell[0]  # type: ignore[index]

    @property
    def tangent(self) -> Tensor:
        return self._cell[1]  # type: ignore[index]

    @property
    def level(self) -> int:
        return self._cell[2]  # type: ignore[index]

    @property
    def _carries_derivative(self) -> bool:
        return True

    def _apply(self, operation: Operation, inputs: Any, static: Any) -> Any:
        return apply(operation, inputs, static)

    def detach(self) -> Tensor:
        return self.primal.detach()

    def clone(self) -> Tensor:
        return dual(self.primal, self.tangent, self.level)


def dual(primal: Any, tangent: Any, level: int) -> Any:
    mapping = modes.mapping()
    if mapping is not None and mapping.number > level:
        return mapping.dual(primal, tangent, level)
    result = base.DualTensor()
    primal = resolved(primal)
    result._raw = primal._raw
    result._node = primal._node
    result._cell = (primal, tangent, level)
    return result


def adopt(tensor: Any, result: Any) -> None:
    """Make `tensor` be `result`, which nobody else holds."""
    mapping = modes.mapping()
    if mapping is not None:
        result = mapping.written(tensor, result)
    if isinstance(result, Dual) or isinstance(tensor, Dual):
        tensor.__class__ = type(result)
        if isinstance(result, Dual):
            tensor._cell = result._cell
        else:
            del tensor._cell
    if not isinstance(tensor._node, Leaf) or result._node is not None:
        tensor._node = result._node
    tensor._raw = result._raw
    tensor._origin = getattr(result, "_origin", None)


def primal_at(x: Any, level: int) -> Any:
    return x.primal if isinstance(x, Dual) and x.level == level else x


def tangent_at(x: Any, level: int) -> Tensor | None:
    return x.tangent if isinstance(x, Dual) and x.level == level else None


def apply(operation: Operation, inputs: Any, static: Any) -> Any:
    """Run an operation on duals: its result's tangent comes from the operation's mark, or from its rule transposed."""
    mode = modes.current()
    if mode is not None and mode.autocast is not None:  # the inputs were cast already; tangents follow them
        with modes.changed(autocast=None):
            return apply(operation, inputs, static)
    if not modes.is_recording():  # nothing computed under `no_grad` has a derivative, in this mode as in the other
        return run(operation, tuple(x.detach() if isinstance(x, Dual) else x for x in inputs), static)
    before = origin.site
    if before is None:
        origin.site = users_site()  # once for all that is computed here
    try:
        return _moved(operation, inputs, static)
    finally:
        origin.site = before


def _moved(operation: Operation, inputs: Any, static: Any) -> Any:
    inputs = as_operands(inputs, operation)
    level = max(x.level for x in inputs if isinstance(x, Dual))
    primals = tuple(primal_at(x, level) for x in inputs)
    tangents = tuple(tangent_at(x, level) for x in inputs)
    result = run(operation, primals, static)
    several = isinstance(result, tuple)
    outputs = result if several else (result,)
    if not any(out.dtype.kind in ("float", "complex") for out in outputs):
        return result
    own_rule = getattr(operation, "tangent_rule", None)
    if own_rule is not None:
        out_tangents = _by_own_rule(operation, own_rule, primals, tangents, static, outputs)
    elif operation.linear:
        out_tangents = _linear(operation, primals, tangents, static)
    elif operation.elementwise and operation.name in tensor_table().rules and not operation.composite:
        out_tangents = (_elementwise(operation, primals, tangents, static, outputs[0]),)
    else:
        out_tangents = _transposed(operation, primals, tangents, static)
    duals = tuple(
        out if tangent is None else dual(out, _like(tangent, out), level) for out, tangent in zip(outputs, out_tangents)
    )
    return duals if several else duals[0]


def _like(tangent: Tensor, out: Tensor) -> Tensor:
    """Bring a tangent to its primal's shape and dtype."""
    if tangent.shape != out.shape:
        tangent = TENSORS.broadcast_to(tangent, out.shape)
    if tangent.dtype != out.dtype:
        tangent = TENSORS.astype(tangent, out._raw.dtype)
    return tangent


def _linear(operation: Operation, primals: Any, tangents: Any, static: Any) -> tuple[Tensor | None, ...]:
    """Apply the operation to the tangents: to all at once if it is jointly linear, else to one after the other."""
    if operation.linear == ("*",):
        filled = tuple(_zero_like(p) if t is None else t for p, t in zip(primals, tangents))
        result = run(operation, filled, static)
        return result if isinstance(result, tuple) else (result,)
    total: Any = None
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        result = run(operation, primals[:i] + (tangent,) + primals[i + 1 :], static)
        parts = result if isinstance(result, tuple) else (result,)
        total = parts if total is None else tuple(a + b for a, b in zip(total, parts))
    return total


def _by_own_rule(
    operation: Operation, rule: Any, primals: Any, tangents: Any, static: Any, outputs: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    """The tangents that the `jvp` of an operation of the user's gives, after checking them."""
    primals = tuple(as_operand(p, operation) for p in primals)
    filled = tuple(_zero_like(p) if t is None else t for p, t in zip(primals, tangents))
    result = rule(primals, filled, **dict(zip(operation.static, static)))
    given = tuple(result) if operation.has_several_outputs else (result,)
    if len(given) != len(outputs):
        raise ShapeError(f"the jvp of `{operation.name}` returned {len(given)} tangents for {len(outputs)} outputs.")
    found: list[Any] = []
    for tangent, out in zip(given, outputs):
        if out.dtype.kind not in ("float", "complex"):
            found.append(None)
            continue
        if not isinstance(tangent, base.Tensor):
            raise DtypeError(
                f"the jvp of `{operation.name}` returned {type(tangent).__name__}: {tangent!r:.60}; "
                f"expected a tensor of shape {out.shape}."
            )
        if tangent.shape != out.shape:
            raise ShapeError(
                f"the jvp of `{operation.name}` returned a tangent of shape {tangent.shape} "
                f"for a result of shape {out.shape}."
            )
        found.append(tangent)
    return tuple(found)


def _zero_like(x: Any) -> Any:
    """The tangent of what does not move: zeros for a tensor, 0 for a number, None for an absent input."""
    return TENSORS.zeros_like(x) if isinstance(x, base.Tensor) else None if x is None else 0


def _elementwise(operation: Operation, primals: Any, tangents: Any, static: Any, out: Tensor) -> Tensor:
    """An elementwise operation multiplies by the same factor forward and backward: its rule serves for both."""
    mask = tuple(t is not None for t in tangents)
    total: Any = None
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        only = tuple(j == i for j in range(len(mask)))
        recipe = tensor_table().recipe(operation, only)
        saved = recipe.gather(primals, static, (out,), ())
        if tangent.shape != out.shape:
            tangent = TENSORS.broadcast_to(tangent, out.shape)
        (part,) = recipe.backward(tangent, *saved)
        total = part if total is None else total + part
    return total


def _transposed(operation: Operation, primals: Any, tangents: Any, static: Any) -> tuple[Tensor | None, ...]:
    """The tangent from the reverse rule: that rule is linear in the cotangent, so its own transpose is the answer."""
    with modes.changed(recording=True):
        variables = [p if t is None else variable(p) for p, t in zip(primals, tangents)]
        result = run(operation, tuple(variables), static)
        outputs = result if isinstance(result, tuple) else (result,)
        tracked = [out for out in outputs if out._node is not None]
        cotangents = [variable(TENSORS.zeros_like(out)) for out in tracked]
        gradients = vjp_of(tracked, cotangents, [v for v, t in zip(variables, tangents) if t is not None])
        pairs = [(g, t) for g, t in zip(gradients, (t for t in tangents if t is not None)) if g is not None]
        found = iter(vjp_of([g for g, _ in pairs], [t for _, t in pairs], cotangents))
    result_tangents: list[Tensor | None] = []
    for out in outputs:
        tangent = next(found) if out._node is not None else None
        if tangent is None and out.dtype.kind in ("float", "complex"):
            tangent = TENSORS.zeros_like(out)
        result_tangents.append(tangent)
    return tuple(result_tangents)


def variable(x: Tensor) -> Tensor:
    """`x` as a variable of its own, at every level that it has; inside of `vmap` every example has one."""
    mapping = modes.mapping()
    if mapping is not None:
        x = mapping.lift(x)
    return dual(variable(x.primal), x.tangent, x.level) if isinstance(x, Dual) else alias(x)


def vjp_of(outputs: list[Tensor], cotangents: list[Tensor], variables: list[Tensor]) -> list[Tensor | None]:
    """The gradients of `outputs` with respect to `variables`, recorded; all of them may be duals.

    The tangent of a gradient is the gradient of the tangent, plus what comes from the cotangents' tangents.
    """
    level = max((x.level for x in (*outputs, *cotangents) if isinstance(x, Dual)), default=0)
    if level == 0:
        outputs, variables = [resolved(x) for x in outputs], [resolved(x) for x in variables]
        seeds = [(out._node, c) for out, c in zip(outputs, cotangents) if out._node is not None]
        found = walk(seeds, frozenset(v._node for v in variables if v._node is not None), create_graph=True)
        return [None if v._node is None else found.get(v._node) for v in variables]
    primal_outputs = [primal_at(x, level) for x in outputs]
    primal_cotangents = [primal_at(x, level) for x in cotangents]
    gradients = vjp_of(primal_outputs, primal_cotangents, variables)
    moving_outputs = [(x.tangent, c) for x, c in zip(outputs, primal_cotangents) if _at(x, level)]
    moving_cotangents = [(x, c.tangent) for x, c in zip(primal_outputs, cotangents) if _at(c, level)]
    outs, cots = zip(*moving_outputs, *moving_cotangents)
    moved = vjp_of(list(outs), list(cots), variables)
    return [_joined(g, t, level) for g, t in zip(gradients, moved)]


def _at(x: Any, level: int) -> TypeGuard[Dual]:
    return isinstance(x, Dual) and x.level == level


def _joined(gradient: Tensor | None, tangent: Tensor | None, level: int) -> Tensor | None:
    if tangent is None:
        return gradient
    return dual(TENSORS.zeros_like(tangent) if gradient is None else gradient, tangent, level)
