"""S4D and S5: linear systems in continuous time, with numbers on the diagonal that are complex."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes, random
from ...autodiff.creation import result_type
from ...dtypes import float32
from ...errors import ConfigurationError
from ...functions.activations import gelu
from ...functions.discretization import discretize
from ...functions.elementwise import exp, imag, real
from ...functions.filled import arange, empty, ones, zeros
from ...functions.manipulation import permute_dims, stack
from ...functions.reductions import sum
from ...functions.scan import ssm_scan
from ...modes import no_grad
from ...tensors.tensor import Tensor
from ..init import normal_
from ..module import Parameter
from .streaming import State, StateSpaceLayer


class _Diagonal(StateSpaceLayer):
    """A layer whose state is complex: real parts and imaginary parts, on a last axis of two."""

    d_state: int
    method: str
    activation: bool
    D: Tensor

    def _check_method(self, d_state: int, method: str) -> None:
        if method not in ("zoh", "bilinear"):
            raise ConfigurationError(f"{type(self).__name__}: method must be 'zoh' or 'bilinear', got {method!r}.")
        if d_state < 1:
            raise ConfigurationError(f"{type(self).__name__}: d_state must be 1 or more, got {d_state!r}.")
        self.d_state, self.method = d_state, method

    def _begin(self, shape: tuple[int, ...], dtype: Any, device: str | None) -> Tensor:
        """A state of zeros, in float32 or wider: there are no complex numbers of half precision."""
        dtype = self.D.dtype if dtype is None else dtypes.get(dtype)
        return zeros((*shape, 2), dtype=float32 if dtype.itemsize < 4 else dtype, device=device or self.D.device)

    def _finish(self, x: Tensor, out: Tensor, states: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """The output in the dtype of inputs and parameters, and the next state."""
        out = gelu(out) if self.activation else out
        return out.astype(result_type(x, self.D)), as_pairs(states[:, -1]) if x.shape[1] else before


def as_complex(pairs: Tensor) -> Tensor:
    """Complex numbers of their parts."""
    return pairs[..., 0] + 1j * pairs[..., 1]


def as_pairs(numbers: Tensor) -> Tensor:
    """The parts of complex numbers, on a last axis of two."""
    return stack([real(numbers), imag(numbers)], axis=-1)


class S4D(_Diagonal):
    """Each channel has a linear system of its own (S4D-Lin): y = 2 Re(C h) + D x, then GELU.

    Its parameters: log_dt, log_A_real, A_imag, C (channels, states, 2) and D.

    Parameters
    ----------
    d_model : int
        Channels.
    d_state : int
        Complex numbers in the state of each channel; with their conjugates twice as many.
    method : str
        How time is divided: "zoh" or "bilinear" (`pb.discretize`).
    activation : bool
        Whether GELU comes after it.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.S4D(4, d_state=8)(pb.zeros((2, 10, 4))).shape
    (2, 10, 4)
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 32,
        method: str = "zoh",
        activation: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check_method(d_state, method)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.activation = d_model, activation
        self.log_dt = Parameter(random.uniform((d_model,), low=math.log(1e-3), high=math.log(0.1), **place))
        self.log_A_real = Parameter(empty((d_model, d_state), **place))
        self.A_imag = Parameter(empty((d_model, d_state), **place))
        self.C = Parameter(empty((d_model, d_state, 2), **place))
        self.D = Parameter(ones(d_model, **place))
        normal_(self.C, std=0.5**0.5)
        with no_grad():
            self.log_A_real[...] = math.log(0.5)
            self.A_imag[...] = math.pi * arange(d_state, dtype=self.D.dtype, device=self.D.device)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        return self._begin((samples, self.d_model, self.d_state), dtype, device)

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        a, b = discretize(-exp(self.log_A_real) + 1j * self.A_imag, 1.0, exp(self.log_dt)[:, None], self.method)
        states = ssm_scan(x[..., None] * b, a, h0=as_complex(state), axis=1)
        out = 2.0 * real(sum(states * as_complex(self.C), axis=-1)) + x * self.D
        return self._finish(x, out, states, state)


class S5(_Diagonal):
    """One linear system of all channels: y = 2 Re(C h) + D x, where h' = A h + B x with A on the diagonal, then GELU.

    Its parameters: log_dt, log_A_real, A_imag (all (states,)), B (states, channels, 2), C (channels, states, 2) and D.

    Parameters
    ----------
    d_model : int
        Channels.
    d_state : int
        Complex numbers in the state; with their conjugates twice as many.
    method : str
        How time is divided: "zoh" or "bilinear" (`pb.discretize`).
    activation : bool
        Whether GELU comes after it.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.S5(4, d_state=8)(pb.zeros((2, 10, 4))).shape
    (2, 10, 4)
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 32,
        method: str = "zoh",
        activation: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check_method(d_state, method)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.activation = d_model, activation
        self.log_dt = Parameter(random.uniform((d_state,), low=math.log(1e-3), high=math.log(0.1), **place))
        self.log_A_real = Parameter(empty(d_state, **place))
        self.A_imag = Parameter(empty(d_state, **place))
        self.B = Parameter(empty((d_state, d_model, 2), **place))
        self.C = Parameter(empty((d_model, d_state, 2), **place))
        self.D = Parameter(ones(d_model, **place))
        normal_(self.B, std=(2 * d_model) ** -0.5)
        normal_(self.C, std=(2 * d_state) ** -0.5)
        with no_grad():
            self.log_A_real[...] = math.log(0.5)
            self.A_imag[...] = math.pi * arange(d_state, dtype=self.D.dtype, device=self.D.device)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        return self._begin((samples, self.d_state), dtype, device)

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        a, b = discretize(-exp(self.log_A_real) + 1j * self.A_imag, 1.0, exp(self.log_dt), self.method)
        whole = as_complex(self.B) * b[:, None]
        moved = x @ permute_dims(real(whole), (1, 0)) + 1j * (x @ permute_dims(imag(whole), (1, 0)))
        states = ssm_scan(moved, a, h0=as_complex(state), axis=1)
        seen = as_complex(self.C)
        parts = real(states) @ permute_dims(real(seen), (1, 0)) - imag(states) @ permute_dims(imag(seen), (1, 0))
        out = 2.0 * parts + x * self.D
        return self._finish(x, out, states, state)
