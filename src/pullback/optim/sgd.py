"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..errors import ConfigurationError
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import descent_direction

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent; with `momentum` along a decaying sum of the gradients.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`; or groups of parameters: dicts with "params" and options of
        their own.
    lr : float
        The learning rate.
    momentum : float
        What is kept of the sum of gradients from step to step; 0.9 is usual.
    dampening : float
        Steps with momentum add (1 - dampening) of the gradient.
    weight_decay : float
        The strength of an L2 penalty, which adds so much of each parameter to its gradient.
    nesterov : bool
        Whether to look ahead along the momentum.
    maximize : bool
        Whether to go up rather than down.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8, 1.6], requires_grad=True)
    """

    counts_steps = False
    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                "nesterov": nesterov, "maximize": maximize,
            },
        )  # fmt: skip

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        options = {**self.defaults, **group}
        if options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0):
            raise ConfigurationError("SGD: nesterov needs momentum above 0 and dampening 0.")
        super().add_param_group(group)

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        new = 1.0 if step == 1 else 1.0 - group["dampening"]  # the first gradient enters whole
        return float(group["lr"]), float(group["momentum"]), new, float(group["weight_decay"])

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        lr, momentum, new, weight_decay = constants
        change, room = spare
        g = descent_direction(xp, group, w, g, weight_decay, room, change)
        if not group["momentum"]:
            return (xp.subtract_scaled(w, g, lr, out, change),)
        velocity = xp.multiply(buffers[0], momentum, buffers[0])
        if group["dampening"]:
            velocity = xp.add_scaled(velocity, g, new, velocity, change)
        else:
            velocity = xp.add(velocity, g, velocity)
        direction = xp.add_scaled(g, velocity, momentum, change, change) if group["nesterov"] else velocity
        return xp.subtract_scaled(w, direction, lr, out, change), velocity
