"""RAdam: Adam that waits until its averages of squares can be relied on."""

from __future__ import annotations

from math import sqrt
from typing import Any, Iterable

from .adam import averages
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import decayed

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """RAdam (Liu et al., 2020): Adam whose first steps, while the average square is of few gradients, are smaller.

    Until it is of five or so, steps go along the average gradient alone; so it needs no warmup.

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
        The weight of an L2 penalty, or with `decoupled_weight_decay` the share of a parameter that a step of rate 1
        takes away, as in `AdamW`.
    decoupled_weight_decay : bool
        Whether weight decay is kept out of the averages.
    maximize : bool
        Whether to go up instead of down.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8, 1.6], requires_grad=True)
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
                "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        lr, weight_decay = float(group["lr"]), float(group["weight_decay"])
        unseen = 1.0 - beta2**step
        most = 2.0 / (1.0 - beta2) - 1.0  # of how many gradients the average square is in the end, and now
        length = most - 2.0 * step * beta2**step / unseen
        rate, scale, offset = lr / (1.0 - beta1**step), 0.0, 1.0
        if length > 5.0:
            trust = (length - 4.0) * (length - 2.0) * most / ((most - 4.0) * (most - 2.0) * length)
            rate, scale, offset = rate * sqrt(unseen * trust), 1.0, group["eps"]
        decay = 1.0 - lr * weight_decay if group["decoupled_weight_decay"] else weight_decay
        return beta1, 1.0 - beta1, beta2, 1.0 - beta2, rate, scale, offset, decay

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        rate, scale, offset, decay = constants[4:]
        change = spare[0]
        w, g = decayed(xp, group, w, g, decay, spare, out)
        mean, square = averages(xp, constants, g, buffers, change)
        # numbers, not a branch: one formula for all steps is compiled once; in the first ones it divides by 1
        change = xp.multiply(xp.sqrt(square, change), scale, change)
        change = xp.add(change, offset, change)
        return xp.subtract_quotient(w, mean, change, rate, out), mean, square
