"""Adagrad: gradients divided by the root of the sum of all their squares."""

from __future__ import annotations

from typing import Any, Iterable

from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer
from .regularization import descent_direction

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Adagrad: the rate of an element falls with the squares of its gradients so far.

    `params`, `lr`, `weight_decay`, `eps` and `maximize` are as in `Adam`. `lr_decay` lowers the rate with the steps,
    and `initial_accumulator_value` is the sum of squares to begin with.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5, 1.5], requires_grad=True)
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("sum",)

    def new_buffer(self, name: str, group: Group, parameter: Any, dtype: Any, kernels: Any) -> Any:
        return kernels.full(tuple(parameter.shape), float(group["initial_accumulator_value"]), dtype, parameter)

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        return float(group["lr"]) / (1.0 + (step - 1) * group["lr_decay"]), group["eps"], float(group["weight_decay"])

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        lr, eps, weight_decay = constants
        change, room = spare
        g = descent_direction(xp, group, w, g, weight_decay, room, change)
        total = xp.add(buffers[0], xp.multiply(g, g, change), buffers[0])
        change = xp.add(xp.sqrt(total, change), eps, change)
        return xp.subtract_quotient(w, g, change, lr, out), total
