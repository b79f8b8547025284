"""Adam, and AdamW, whose weight decay does not pass through the averages."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar, Iterable

from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import descent_direction

__all__ = ["Adam", "AdamW"]


def averages(xp: Arithmetic, constants: Arrays, g: Any, buffers: Arrays, room: Any) -> tuple[Any, Any]:
    """The running averages of the gradient and of its square, with it in them."""
    beta1, new1, beta2, new2 = constants[:4]
    mean = xp.blend(buffers[0], g, beta1, new1, buffers[0], room)
    square = xp.multiply(buffers[1], beta2, buffers[1])
    return mean, xp.add_product(square, g, g, new2, square, room)


class Adam(Optimizer):
    """Adam: steps along the average gradient, divided by the root of the average squared one.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`; or groups of parameters: dicts with "params" and options of
        their own.
    lr : float
        The learning rate: about the size of a step.
    betas : pair of float
        What is kept from step to step of the average gradient, and of the average squared one.
    eps : float
        Added to what is divided by.
    weight_decay : float
        The strength of an L2 penalty, which adds so much of each parameter to its gradient.
    amsgrad : bool
        Whether to divide by the largest average so far.
    maximize : bool
        Whether to go up rather than down.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> np.round(w.detach(), 3)
    tensor([0.9, 1.9])
    """

    _decoupled: ClassVar[bool] = False
    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        lr, weight_decay = float(group["lr"]), group["weight_decay"]
        root = sqrt(1.0 - beta2**step)
        rate = lr * root / (1.0 - beta1**step)
        decay = 1.0 - lr * weight_decay if self._decoupled else float(weight_decay)
        return beta1, 1.0 - beta1, beta2, 1.0 - beta2, rate, group["eps"] * root, decay

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        rate, eps, decay = constants[4:]
        change, room = spare
        if not self._decoupled:
            g = descent_direction(xp, group, w, g, decay, room, change)
        else:
            if group["maximize"]:
                g = xp.negative(g, room)
            if group["weight_decay"]:
                w = xp.multiply(w, decay, out)
        mean, square = averages(xp, constants, g, buffers, change)
        largest = (xp.maximum(buffers[2], square, buffers[2]),) if group["amsgrad"] else ()
        # sqrt(square) / root + eps, times root: `rate` and `eps` carry the bias correction
        change = xp.sqrt(largest[0] if largest else square, change)
        change = xp.add(change, eps, change)
        return xp.subtract_quotient(w, mean, change, rate, out), mean, square, *largest


class AdamW(Adam):
    """Adam with weight decay of its own: every step shrinks the parameters by `lr * weight_decay` of themselves.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`; or groups of parameters: dicts with "params" and options of
        their own.
    lr : float
        The learning rate: about the size of a step.
    betas : pair of float
        What is kept from step to step of the average gradient, and of the average squared one.
    eps : float
        Added to what is divided by.
    weight_decay : float
        What each step takes off the parameters, as a share of them, times `lr`.
    amsgrad : bool
        Whether to divide by the largest average so far.
    maximize : bool
        Whether to go up rather than down.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.85, 1.8 ], requires_grad=True)
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
