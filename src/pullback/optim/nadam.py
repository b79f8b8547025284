"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any, Iterable

from .adam import averages
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import decayed

__all__ = ["NAdam"]


def momentum(beta1: float, momentum_decay: float, step: int) -> float:
    """The share of the average in the `step`-th update: half of `beta1` at first, all of it in the end."""
    return beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))


@lru_cache(maxsize=64)
def product(beta1: float, momentum_decay: float, step: int) -> float:
    """The product of the momenta of all updates up to the `step`-th, by which the bias of the average is corrected."""
    found = 1.0
    for earlier in range(1, step + 1):
        found *= momentum(beta1, momentum_decay, earlier)
        if found < 1e-20:  # it is taken from 1
            break
    return found


class NAdam(Optimizer):
    """NAdam (Dozat, 2016): Adam that looks one step ahead, as Nesterov's momentum does.

    `weight_decay` is an L2 penalty, or with `decoupled_weight_decay` what it is in `AdamW`. The momentum rises from
    half of `betas[0]` to all of it, the faster the larger `momentum_decay` is.

    Parameters
    ----------
    params : iterable of Tensor
        Tensors, (name, tensor) pairs, or groups of them, as for every optimizer.
    lr : float
        The learning rate.
    betas : pair of float
        How much of the averages of gradients and of their squares is kept in a step.
    eps : float
        Added to the root of the average square.
    weight_decay : float
        The weight of the L2 penalty, or the share of a parameter that a step of rate 1 takes away.
    momentum_decay : float
        How fast the momentum rises.
    decoupled_weight_decay : bool
        Whether weight decay is kept out of the averages.
    maximize : bool
        Whether to go up instead of down.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> np.round(w.detach(), 3)
    tensor([0.894, 1.894])
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
                "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def step_state(self, group: Group, step: int) -> dict[str, float]:
        return {"mu_product": product(group["betas"][0], group["momentum_decay"], step)}

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        lr, weight_decay, rise = float(group["lr"]), float(group["weight_decay"]), group["momentum_decay"]
        root = sqrt(1.0 - beta2**step)
        so_far = product(beta1, rise, step)
        here, ahead = momentum(beta1, rise, step), momentum(beta1, rise, step + 1)
        of_gradient, of_average = (1.0 - here) / (1.0 - so_far), ahead / (1.0 - so_far * ahead)
        decay = 1.0 - lr * weight_decay if group["decoupled_weight_decay"] else weight_decay
        return (
            beta1, 1.0 - beta1, beta2, 1.0 - beta2, lr * root, group["eps"] * root, of_gradient, of_average, decay
        )  # fmt: skip

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        rate, eps, of_gradient, of_average, decay = constants[4:]
        change, room = spare
        w, g = decayed(xp, group, w, g, decay, spare, out)
        mean, square = averages(xp, constants, g, buffers, change)
        direction = xp.add_scaled(xp.multiply(g, of_gradient, room), mean, of_average, room, change)
        change = xp.add(xp.sqrt(square, change), eps, change)  # times the root that corrects its bias, as `rate` is
        return xp.subtract_quotient(w, direction, change, rate, out), mean, square
