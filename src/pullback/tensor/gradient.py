"""The tensor's side of gradients: walking, accumulating, scaling, hooks, operations of one's own."""

from __future__ import annotations

import math
from typing import Any, Callable

from ..autodiff.custom import BackwardOp, attach, operation_behind
from ..autodiff.gradients import accumulate
from ..autodiff.hooks import HookHandle, register
from ..errors import GradientError
from .core import Tensor, resolved


def backward(self: Tensor, gradient: Any = None, retain_graph: bool = False) -> None:
    """Add the gradients of this tensor into `.grad` of the variables it depends on.

    A tensor with more than one element needs `gradient`, the cotangent to start from.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad
    tensor([2., 4.])
    """
    accumulate(self, gradient, retain_graph)


def accumulate_grad(self: Tensor, gradient: Any) -> None:
    """Add `gradient`, which must have this tensor's shape and dtype, to `.grad`."""
    gradient = self._fitting_gradient("accumulate_grad", gradient)
    cell = self.grad_cell
    if cell.value is None:
        cell.value = gradient
    else:
        cell.value += gradient


def scale_grad(self: Tensor, factor: float) -> None:
    """Multiply `.grad` by a finite number, in place: nothing is allocated unless somebody else holds the gradient."""
    if not math.isfinite(factor):
        raise ValueError(f"scale_grad: the factor must be finite, got {factor!r}.")
    cell = self.grad_cell
    if cell.value is not None:
        cell.value *= float(factor)


def zero_grad(self: Tensor) -> None:
    """Set `.grad` to zeros, keeping its memory; a tensor without gradient stays without."""
    cell = self.grad_cell
    if cell.value is not None:
        cell.value[...] = 0.0


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """Call `hook` with this tensor's gradient in every walk; what it returns, if anything, replaces the gradient.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> y = w * 3
    >>> handle = y.register_hook(lambda g: 10 * g)
    >>> y.sum().backward()
    >>> w.grad
    tensor([30., 30.])
    >>> handle.remove()
    """
    node = resolved(self)._node
    if node is None:
        raise GradientError("register_hook: this tensor does not require a gradient, so no gradient reaches it.")
    return register(node, hook)


def set_backward_op(self: Tensor, op: BackwardOp) -> None:
    """Make this tensor the result of `op`, whose `backward` then gives the gradients of its inputs."""
    attach(self, op)


Tensor.backward = backward
Tensor.accumulate_grad = accumulate_grad
Tensor.scale_grad = scale_grad
Tensor.zero_grad = zero_grad
Tensor.register_hook = register_hook
Tensor.set_backward_op = set_backward_op
Tensor.backward_op = property(
    operation_behind, doc="The operation whose result this tensor is, as a `BackwardOp`; None for variables."
)
