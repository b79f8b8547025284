"""Muon: momentum whose matrices are made orthogonal."""

from __future__ import annotations

from math import sqrt
from typing import Any, Iterable

from ..errors import ConfigurationError, ShapeError
from .arithmetic import Arithmetic
from .optimizer import Arrays, Group, Optimizer

__all__ = ["Muon"]


class Muon(Optimizer):
    """Muon (Jordan et al., 2024), for the matrices between hidden layers; other parameters need another optimizer.

    A step is the average gradient with all its singular values brought near 1 by Newton-Schulz iterations, in the
    parameter's own precision.

    Parameters
    ----------
    params : iterable of Tensor
        Matrices to update; or groups of them: dicts with "params" and options of their own.
    lr : float
        The learning rate.
    weight_decay : float
        What each step takes off the parameters, as a share of them, times `lr`.
    momentum : float
        What is kept of the average gradient from step to step.
    nesterov : bool
        Whether to look ahead along the momentum.
    ns_coefficients : three float
        Those of the polynomial in an iteration.
    eps : float
        Added to the norm that a gradient is divided by.
    ns_steps : int
        How many iterations.
    adjust_lr_fn : str, optional
        How the length of steps is adapted to a matrix: "original" (also None), or "match_rms_adamw", with which
        rates and weight decays found for AdamW can be used.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> w = pb.zeros((2, 2)).set_requires_grad(True)
    >>> optimizer = pb.optim.Muon([w], lr=0.1)
    >>> (w * pb.tensor([[5.0, 0.0], [0.0, -2.0]])).sum().backward()
    >>> optimizer.step()
    >>> np.round(w.detach(), 1)
    tensor([[-0.1,  0. ],
            [ 0. ,  0.1]])
    """

    elementwise = False
    counts_steps = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ConfigurationError(
                f'Muon: adjust_lr_fn is "original" or "match_rms_adamw" or None, got {adjust_lr_fn!r}.'
            )
        super().__init__(
            params,
            {
                "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                "ns_coefficients": tuple(ns_coefficients), "eps": eps, "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )  # fmt: skip

    def check_parameter(self, parameter: Any, label: str) -> None:
        if len(parameter.shape) != 2:
            raise ShapeError(
                f"Muon: {label} has shape {tuple(parameter.shape)}; Muon updates matrices. "
                "Give the other parameters to another optimizer, for example AdamW."
            )

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        lr, momentum = float(group["lr"]), float(group["momentum"])
        return lr, momentum, 1.0 - momentum, 1.0 - lr * group["weight_decay"]

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        lr, momentum, new, decay = constants
        change, room = spare
        change = xp.multiply(g, new, change)
        velocity = xp.multiply(buffers[0], momentum, buffers[0])
        velocity = xp.add(velocity, change, velocity)
        if group["nesterov"]:
            change = xp.add(change, xp.multiply(velocity, momentum, room), change)
        else:
            change = velocity
        rows, columns = w.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            lr = lr * (0.2 * sqrt(max(rows, columns)))
        else:
            lr = lr * sqrt(max(1.0, rows / columns))
        step = _orthogonal(xp.kernels, change, group["ns_coefficients"], group["ns_steps"], group["eps"])
        return xp.subtract(xp.multiply(w, decay, out), step * lr, out), velocity


def _orthogonal(kernels: Any, matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """A matrix with the singular vectors of `matrix` and singular values near 1.

    The iteration is an odd polynomial of the singular values, steepest at 0; it works on the smaller Gram matrix.
    """
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = kernels.matrix_transpose(matrix) if tall else matrix
    norm = kernels.vector_norm(x, None, False, 2)  # which is finite where a sum of squares is not
    x = x / kernels.maximum(norm, kernels.zeros((), x.dtype, x) + eps)
    for _ in range(steps):
        gram = kernels.matmul(x, kernels.matrix_transpose(x))
        x = x * a + kernels.matmul(gram * b + kernels.matmul(gram, gram) * c, x)
    return kernels.matrix_transpose(x) if tall else x
