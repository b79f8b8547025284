"""Adafactor: Adam's scaling with one number per row and column instead of one per element."""

from __future__ import annotations

from math import sqrt
from typing import Any, Iterable

from .. import backends
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adafactor (Shazeer & Stern, 2018), as in PyTorch: the average squares of a matrix are kept by row and by column.

    `params` and `lr` are as in `Adam`. `beta2_decay` is the power of the step that averages move by. `eps` are two: the
    smallest root mean square of gradients (None for the dtype's precision) and of parameters; `d` bounds the root mean
    square of a step. `weight_decay` is decoupled, as in `AdamW`; `maximize` goes up.

    >>> import pullback as pb
    >>> w = pb.ones((100, 200)).set_requires_grad(True)
    >>> optimizer = pb.optim.Adafactor([w], lr=0.01)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> [value.shape for name, value in optimizer.state_dict()["state"][0].items() if name != "step"]
    [(100, 1), (1, 200)]
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "beta2_decay": beta2_decay, "eps": tuple(eps), "d": d, "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )  # fmt: skip

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("row_var", "col_var") if len(parameter.shape) > 1 else ("variance",)

    def new_buffer(self, name: str, group: Group, parameter: Any, dtype: Any, kernels: Any) -> Any:
        shape = list(parameter.shape)
        if name != "variance":
            shape[-1 if name == "row_var" else -2] = 1
        return kernels.zeros(tuple(shape), dtype, parameter)

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        lr = float(group["lr"])
        return step ** group["beta2_decay"], min(lr, 1.0 / sqrt(step)), 1.0 - lr * group["weight_decay"]

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        new, rate, decay = constants
        change, room = spare
        kernels = xp.kernels
        eps_gradient, eps_parameter = group["eps"]
        if eps_gradient is None:
            eps_gradient = 2.0**-52 if backends.of(w).dtype_of(w).itemsize == 8 else 2.0**-23

        def at_least(x: Any, bound: float) -> Any:
            return kernels.maximum(x, kernels.zeros((), x.dtype, x) + bound)

        def root_mean_square(x: Any) -> Any:
            return kernels.sqrt(kernels.mean(xp.multiply(x, x, room)))

        def averaged(old: Any, value: Any) -> Any:
            return xp.add(old, (value - old) * new, old)

        rate = at_least(root_mean_square(w), eps_parameter) * rate
        square = xp.multiply(g, g, room)
        if len(buffers) == 2:
            row = averaged(buffers[0], kernels.mean(square, (-1,), True))
            column = averaged(buffers[1], kernels.mean(square, (-2,), True))
            variance = kernels.matmul(row, column) / at_least(kernels.mean(row, (-2,), True), eps_gradient)
            buffers = (row, column)
        else:
            variance = averaged(buffers[0], square)
            buffers = (variance,)
        root = kernels.sqrt(at_least(variance, eps_gradient**2))
        change = xp.divide(g, root, change)
        rate = rate / at_least(root_mean_square(change) / group["d"], 1.0)
        if group["weight_decay"]:
            w = xp.multiply(w, decay, out)
        change = xp.multiply(change, rate, change)
        return (xp.add if group["maximize"] else xp.subtract)(w, change, out), *buffers
