"""Lion: the sign of an average of gradients."""

from __future__ import annotations

from typing import Any, Iterable

from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer

__all__ = ["Lion"]


class Lion(Optimizer):
    """Lion (Chen et al., 2023): every element moves by `lr`, in the direction of the sign of an average gradient.

    Rates are some 3 to 10 times smaller than Adam's, and weight decay is as many times larger.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`; or groups of parameters: dicts with "params" and options of
        their own.
    lr : float
        The learning rate: the size of a step.
    betas : pair of float
        What is kept of the average in the direction of a step, and in the average itself.
    weight_decay : float
        What each step takes off the parameters, as a share of them, times `lr`.
    maximize : bool
        Whether to go up rather than down.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = pb.optim.Lion([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.75, -1.75], requires_grad=True)
    """

    counts_steps = False
    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay, "maximize": maximize})

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("exp_avg",)

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        lr = float(group["lr"])
        return beta1, 1.0 - beta1, beta2, 1.0 - beta2, lr, 1.0 - lr * group["weight_decay"]

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        beta1, new1, beta2, new2, lr, decay = constants
        mean, (change, room) = buffers[0], spare
        change = xp.multiply(g, new1, change)
        room = xp.multiply(mean, beta1, room)
        # the average of -g is the negative one, so maximizing is a step the other way with the same average
        change = xp.multiply(xp.sign(xp.add(change, room, change), change), lr, change)
        mean = xp.blend(mean, g, beta2, new2, mean, room)
        if group["weight_decay"]:
            w = xp.multiply(w, decay, out)
        return (xp.add if group["maximize"] else xp.subtract)(w, change, out), mean
