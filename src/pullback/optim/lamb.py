"""LAMB: Adam's step, as long as the parameter is large."""

from __future__ import annotations

from math import sqrt
from typing import Any, Iterable

from .adam import averages
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer

__all__ = ["LAMB"]


class LAMB(Optimizer):
    """LAMB (You et al., 2020): Adam's direction plus weight decay, scaled per tensor to `lr` times the tensor's norm.

    A tensor that is zero, or whose direction is, takes the step unscaled. The arguments are those of `AdamW`.

    >>> import numpy as np, pullback as pb
    >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
    >>> optimizer = pb.optim.LAMB([w], lr=0.1)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> np.round(np.linalg.norm(w.detach() - pb.tensor([3.0, 4.0])), 3)
    tensor(0.5)
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay})

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        correction, root = 1.0 - beta1**step, sqrt(1.0 - beta2**step)
        return (
            beta1, 1.0 - beta1, beta2, 1.0 - beta2, root / correction, group["eps"] * root, float(group["lr"]),
            float(group["weight_decay"]),
        )  # fmt: skip

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        scale, eps, lr, weight_decay = constants[4:]
        change, room = spare
        mean, square = averages(xp, constants, g, buffers, change)
        change = xp.add(xp.sqrt(square, change), eps, change)
        change = xp.multiply(xp.divide(mean, change, change), scale, change)
        if group["weight_decay"]:
            change = xp.add(change, xp.multiply(w, weight_decay, room), change)
        kernels = xp.kernels
        size, length = (kernels.sqrt(kernels.sum(xp.multiply(x, x, room))) for x in (w, change))
        usable = kernels.logical_and(kernels.greater(size, 0.0), kernels.greater(length, 0.0))
        one = kernels.ones_like(size)
        trust = kernels.where(usable, size / kernels.where(usable, length, one), one)
        change = xp.multiply(change, trust * lr, change)
        return xp.subtract(w, change, out), mean, square
