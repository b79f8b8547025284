"""Bounding gradients before a step."""

from __future__ import annotations

from typing import Any, Iterable

from ..autodiff.base import resolved
from ..autodiff.forward import Dual
from ..autodiff.gradients import Gradients
from ..autodiff.graph import Leaf
from ..errors import DtypeError
from ..tensors.tensor import Tensor

__all__ = ["clip_global_norm", "clip_value"]


def clip_global_norm(gradients: Gradients | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale gradients in place so that their joint L2 norm is at most `max_norm`; return the norm before.

    Parameters
    ----------
    gradients : Gradients or iterable of Tensor
        A `pb.Gradients`, gradients themselves, or parameters, whose `.grad` is then meant (frozen ones, and those
        without one, are left out).
    max_norm : float
        The largest norm allowed, positive.

    Returns
    -------
    Tensor
        The norm before, 0-d, right for very large and very small values.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> pb.optim.clip_global_norm([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6, 0.8])
    """
    return _contained("clip_global_norm", gradients).clip_global_norm(max_norm)


def clip_value(gradients: Gradients | Iterable[Tensor], limit: float) -> None:
    """Clip every element of gradients, given as for `clip_global_norm`, to [-limit, limit] in place.

    Parameters
    ----------
    gradients : Gradients or iterable of Tensor
        A `pb.Gradients`, gradients themselves, or parameters, whose `.grad` is then meant.
    limit : float
        The largest size of an element, positive.

    Examples
    --------
    >>> import pullback as pb
    >>> g = pb.tensor([3.0, -0.5])
    >>> pb.optim.clip_value([g], 1.0)
    >>> g
    tensor([ 1. , -0.5])
    """
    _contained("clip_value", gradients).clip_value(limit)


def _contained(caller: str, gradients: Any) -> Gradients:
    """A container of the gradients meant."""
    if isinstance(gradients, Gradients):
        return gradients
    tensors = [gradients] if isinstance(gradients, Tensor) else list(gradients)
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or isinstance(tensor, Dual):
            raise DtypeError(f"{caller}: expected tensors or a pb.Gradients, got {type(tensor).__name__}.")
    # a frozen variable still has the cell of its gradient, and must not be taken for a gradient
    if any([resolved(t)._node is not None or hasattr(resolved(t), "_cell") for t in tensors]):
        tensors = [t.grad for t in tensors if type(resolved(t)._node) is Leaf and t.grad is not None]
    container = Gradients()
    container._by_node = {id(tensor): tensor for tensor in tensors}  # type: ignore[misc]  # any keys will do
    return container
