"""RMSprop: gradients divided by the root of their average square."""

from __future__ import annotations

from typing import Any, Iterable

from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import descent_direction

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop: steps along the gradient, divided by the root of its average square.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`; or groups of parameters: dicts with "params" and options of
        their own.
    lr : float
        The learning rate.
    alpha : float
        What is kept of the average square from step to step.
    eps : float
        Added to what is divided by.
    weight_decay : float
        The strength of an L2 penalty, which adds so much of each parameter to its gradient.
    momentum : float
        What is kept of a step in the next one.
    centered : bool
        Whether to divide by the standard deviation of the gradients instead.
    maximize : bool
        Whether to go up rather than down.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.RMSprop([w], lr=0.01, alpha=0.75)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.98, 1.98], requires_grad=True)
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                "centered": centered, "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *momentum, "grad_avg") if group["centered"] else ("square_avg", *momentum)

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        alpha = group["alpha"]
        return (
            float(group["lr"]), alpha, 1.0 - alpha, group["eps"], float(group["momentum"]), float(group["weight_decay"])
        )  # fmt: skip

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        lr, alpha, new, eps, momentum, weight_decay = constants
        change, room = spare
        g = descent_direction(xp, group, w, g, weight_decay, room, change)
        square, *others = buffers
        square = xp.multiply(square, alpha, square)
        square = xp.add_product(square, g, g, new, square, change)
        if group["centered"]:
            others[-1] = mean = xp.blend(others[-1], g, alpha, new, others[-1], change)
            change = xp.multiply(mean, mean, change)
            change = xp.sqrt(xp.subtract(square, change, change), change)
        else:
            change = xp.sqrt(square, change)
        change = xp.divide(g, xp.add(change, eps, change), change)
        if group["momentum"]:
            velocity = xp.multiply(others[0], momentum, others[0])
            others[0] = velocity = xp.add(velocity, change, velocity)
            return xp.subtract_scaled(w, velocity, lr, out, change), square, *others
        return xp.subtract_scaled(w, change, lr, out, change), square, *others
