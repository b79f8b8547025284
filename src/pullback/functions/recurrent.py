"""Recurrent layers over all steps, for `nn`: inputs are projected already, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def lstm(x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool) -> tuple[Tensor, Tensor]:
    """The states h of all steps, and the last cell."""
    return _over_steps("lstm", (x, h, c, weight, bias), (reverse,))


def gru(x: Any, h: Any, weight: Any, bias: Any, reverse: bool) -> Tensor:
    """The states of all steps."""
    return _over_steps("gru", (x, h, weight, bias), (reverse,))


def rnn(x: Any, h: Any, weight: Any, bias: Any, activation: str, reverse: bool) -> Tensor:
    """The states of all steps; `activation` is "tanh" or "relu"."""
    return _over_steps("rnn", (x, h, weight, bias), (activation, reverse))


def _over_steps(name: str, inputs: tuple[Any, ...], static: tuple[Any, ...]) -> Any:
    _check(name, *inputs)
    return apply(OPERATIONS[name], inputs, static)


def _check(name: str, x: Any, *more: Any) -> None:
    *states, weight, bias = more
    for given in (x, *states, weight, bias):
        if given is not None and given.dtype.kind != "float":
            raise DtypeError(f"{name}: expected floating-point numbers, got {given.dtype.name}.")
    rows = _GATES[name] * states[0].shape[-1] if states[0].ndim else -1
    expected = [(*x.shape[1:-1], *states[0].shape[-1:])] * len(states), (rows, *states[0].shape[-1:]), (rows,)
    found = [state.shape for state in states], weight.shape, (rows,) if bias is None else bias.shape
    if x.ndim < 2 or x.shape[-1] != rows or found != expected:
        n = _GATES[name]
        raise ShapeError(
            f"{name}: x {x.shape}, states {found[0]}, weight {weight.shape} and bias {found[2]} do not fit: a state of "
            f"width w goes with x (length, ..., {n} w), weight ({n} w, w), bias ({n} w)."
        )
