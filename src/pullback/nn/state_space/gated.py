"""Gated recurrences whose gates look at the input alone, so that all steps are computed at once."""

from __future__ import annotations

from typing import Any

from ...functions.activations import sigmoid
from ...functions.filled import zeros
from ...functions.scan import ssm_scan
from ...tensors.tensor import Tensor
from ..linear import Linear, project
from .streaming import State, StateSpaceLayer


class MinGRU(StateSpaceLayer):
    """A GRU without what makes it slow: h[t] = (1 - z[t]) h[t-1] + z[t] (W x[t] + b), z = sigmoid(V x + c).

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    expand : int
        Channels inside, of those outside; with more than one there is a projection back.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.MinGRU(4)(pb.zeros((2, 10, 4))).shape
    (2, 10, 4)
    """

    def __init__(self, d_model: int, expand: int = 1, device: str | None = None, dtype: Any = None) -> None:
        self.d_model, self.d_inner = d_model, expand * d_model
        self.gate = Linear(d_model, self.d_inner, device=device, dtype=dtype)
        self.candidate = Linear(d_model, self.d_inner, device=device, dtype=dtype)
        self.out_proj = Linear(self.d_inner, d_model, bias=False, device=device, dtype=dtype) if expand > 1 else None

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        weight = self.gate.weight
        place: dict[str, Any] = {"dtype": weight.dtype if dtype is None else dtype, "device": device or weight.device}
        return zeros((samples, self.d_inner), **place)

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        gate, candidate = project(x, self.gate, self.candidate)
        gate = sigmoid(gate)
        states = ssm_scan(gate * candidate, 1.0 - gate, h0=state, axis=1)
        after = states[:, -1] if x.shape[1] else state
        return states if self.out_proj is None else self.out_proj(states), after

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        gate, candidate = project(x, self.gate, self.candidate)
        after = state + sigmoid(gate) * (candidate - state)
        return after if self.out_proj is None else self.out_proj(after), after
