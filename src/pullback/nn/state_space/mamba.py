"""Mamba and Mamba-2: recurrences that choose by the input what they keep."""

from __future__ import annotations

import math
from typing import Any

from ... import random
from ...errors import ConfigurationError
from ...functions.activations import silu, softplus
from ...functions.elementwise import exp, expm1, log
from ...functions.filled import arange, empty, ones, zeros
from ...functions.linear import matrix_transpose
from ...functions.manipulation import repeat, reshape, split
from ...functions.normalization import rms_norm
from ...functions.reductions import sum
from ...functions.selective_scan import selective_scan, state_space_dual
from ...modes import no_grad
from ...tensors.tensor import Tensor
from ..init import uniform_
from ..linear import Linear
from ..module import Module, Parameter
from .streaming import CausalConv1d, State, StateSpaceLayer


class Mamba(StateSpaceLayer):
    """Mamba's block: a projection, a causal convolution, a selective scan, a gate, a projection.

    Parameters have the published names and shapes: in_proj.weight, conv1d.weight, conv1d.bias, x_proj.weight,
    dt_proj.weight, dt_proj.bias, A_log, D, out_proj.weight.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    d_state : int
        Numbers in the state of each channel.
    d_conv : int
        The length of the convolution.
    expand : int
        Channels inside, of those outside.
    dt_rank : int, optional
        The rank of the steps of time; by default a sixteenth of `d_model`.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.Mamba(16, d_state=4)
    >>> layer(pb.zeros((2, 10, 16))).shape
    (2, 10, 16)
    >>> y, state = layer.step(pb.zeros((2, 16)), layer.initial_state(2))
    >>> y.shape, state["ssm"].shape
    ((2, 16), (2, 32, 4))
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        dt_rank: int | None = None,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_inner = d_model, d_state, expand * d_model
        self.dt_rank = math.ceil(d_model / 16) if dt_rank is None else dt_rank
        self.in_proj = Linear(d_model, 2 * self.d_inner, bias=False, **place)
        self.conv1d = CausalConv1d(self.d_inner, d_conv, **place)
        self.x_proj = Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False, **place)
        self.dt_proj = Linear(self.dt_rank, self.d_inner, **place)
        self.A_log = Parameter(empty((self.d_inner, d_state), **place))
        self.D = Parameter(ones(self.d_inner, **place))
        self.out_proj = Linear(self.d_inner, d_model, bias=False, **place)
        uniform_(self.dt_proj.weight, -(self.dt_rank**-0.5), self.dt_rank**-0.5)
        with no_grad():
            assert self.dt_proj.bias is not None
            self.dt_proj.bias[...] = first_steps(self.d_inner, self.dt_proj.bias)
            self.A_log[...] = log(arange(1, d_state + 1, dtype=self.D.dtype, device=self.D.device))

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        place: dict[str, Any] = {"dtype": self.D.dtype if dtype is None else dtype, "device": device or self.D.device}
        return {
            "conv": self.conv1d.before(samples, **place),
            "ssm": zeros((samples, self.d_inner, self.d_state), **place),
        }

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        inner, gate = split(matrix_transpose(self.in_proj(x)), 2, axis=-2)
        inner, window = self.conv1d.scan(inner, state["conv"])
        inner = silu(inner)
        low, b, c = self._chosen(matrix_transpose(inner))
        delta = self.dt_proj.weight @ matrix_transpose(low)
        out, last = selective_scan(
            inner, delta, -exp(self.A_log), matrix_transpose(b), matrix_transpose(c), self.D, gate, self.dt_proj.bias,
            delta_softplus=True, return_last_state=True, initial_state=state["ssm"],
        )  # fmt: skip
        return self.out_proj(matrix_transpose(out)), {"conv": window, "ssm": last.astype(state["ssm"].dtype)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        inner, gate = split(self.in_proj(x), 2, axis=-1)
        inner, window = self.conv1d.step(inner, state["conv"])
        inner = silu(inner)
        low, b, c = self._chosen(inner)
        delta = softplus(self.dt_proj(low))
        kept = exp(delta[..., None] * -exp(self.A_log)) * state["ssm"]
        now = kept + (delta * inner)[..., None] * b[:, None]
        out = sum(now * c[:, None], axis=-1) + inner * self.D
        return self.out_proj(out * silu(gate)), {"conv": window, "ssm": now.astype(state["ssm"].dtype)}

    def _chosen(self, inner: Tensor) -> Any:
        """What the input chooses: the step of time in few numbers, B and C."""
        ends = [self.dt_rank, self.dt_rank + self.d_state]
        chosen = self.x_proj(inner)
        return chosen[..., : ends[0]], chosen[..., ends[0] : ends[1]], chosen[..., ends[1] :]


class Mamba2(StateSpaceLayer):
    """Mamba-2's block, whose scan is made of products; heads have one decay each.

    Parameters have the published names and shapes: in_proj.weight, conv1d.weight, conv1d.bias, dt_bias, A_log, D,
    norm.weight, out_proj.weight.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    d_state : int
        Numbers in the state of each channel.
    d_conv : int
        The length of the convolution.
    expand : int
        Channels inside, of those outside.
    headdim : int
        Channels of a head.
    ngroups : int
        Groups of heads, each with its own B and C.
    chunk_size : int
        Steps that are computed together.
    eps : float
        Of the norm before the last projection.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.Mamba2(16, d_state=8, headdim=8)
    >>> layer(pb.zeros((2, 10, 16))).shape
    (2, 10, 16)
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 128,
        d_conv: int = 4,
        expand: int = 2,
        headdim: int = 64,
        ngroups: int = 1,
        chunk_size: int = 64,
        eps: float = 1e-5,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_inner = d_model, d_state, expand * d_model
        self.headdim, self.ngroups, self.chunk_size = headdim, ngroups, chunk_size
        self.nheads = self.d_inner // headdim
        if self.d_inner % headdim or self.nheads % ngroups:
            raise ConfigurationError(
                f"Mamba2: {self.d_inner} channels inside are not divided into heads of {headdim}, or these into "
                f"{ngroups} groups."
            )
        mixed = self.d_inner + 2 * ngroups * d_state
        self.in_proj = Linear(d_model, self.d_inner + mixed + self.nheads, bias=False, **place)
        self.conv1d = CausalConv1d(mixed, d_conv, **place)
        self.dt_bias = Parameter(empty(self.nheads, **place))
        self.A_log = Parameter(empty(self.nheads, **place))
        self.D = Parameter(ones(self.nheads, **place))
        self.norm = _GatedNorm(self.d_inner, ngroups, eps, **place)
        self.out_proj = Linear(self.d_inner, d_model, bias=False, **place)
        uniform_(self.A_log, 1.0, 16.0)
        with no_grad():
            self.dt_bias[...] = first_steps(self.nheads, self.dt_bias)
            self.A_log[...] = log(self.A_log)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        place: dict[str, Any] = {"dtype": self.D.dtype if dtype is None else dtype, "device": device or self.D.device}
        shape = (samples, self.nheads, self.headdim, self.d_state)
        return {"conv": self.conv1d.before(samples, **place), "ssm": zeros(shape, **place)}

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        gate, mixed, low = self._projected(x)
        mixed, window = self.conv1d.scan(matrix_transpose(mixed), state["conv"])
        inner, b, c = self._chosen(silu(matrix_transpose(mixed)))
        b, c = (reshape(one, (*x.shape[:2], self.ngroups, self.d_state)) for one in (b, c))
        out, last = state_space_dual(
            reshape(inner, (*x.shape[:2], self.nheads, self.headdim)), softplus(low + self.dt_bias), -exp(self.A_log),
            b, c, self.D, self.chunk_size, return_last_state=True, initial_state=state["ssm"],
        )  # fmt: skip
        out = self.norm(reshape(out, (*x.shape[:2], self.d_inner)), gate)
        return self.out_proj(out), {"conv": window, "ssm": last.astype(state["ssm"].dtype)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        gate, mixed, low = self._projected(x)
        mixed, window = self.conv1d.step(mixed, state["conv"])
        inner, b, c = self._chosen(silu(mixed))
        samples, each = x.shape[0], self.nheads // self.ngroups
        inner = reshape(inner, (samples, self.nheads, self.headdim))
        b, c = (repeat(reshape(one, (samples, self.ngroups, 1, self.d_state)), each, axis=1) for one in (b, c))
        delta = softplus(low + self.dt_bias)
        kept = exp(delta * -exp(self.A_log))[..., None, None] * state["ssm"]
        now = kept + (delta[..., None] * inner)[..., None] * b
        out = sum(now * c, axis=-1) + inner * self.D[:, None]
        out = self.norm(reshape(out, (samples, self.d_inner)), gate)
        return self.out_proj(out), {"conv": window, "ssm": now.astype(state["ssm"].dtype)}

    def _projected(self, x: Tensor) -> Any:
        """The gate, what is mixed, and the steps of time in few numbers."""
        whole, heads = self.in_proj(x), self.nheads
        return whole[..., : self.d_inner], whole[..., self.d_inner : -heads], whole[..., -heads:]

    def _chosen(self, mixed: Tensor) -> Any:
        ends = [self.d_inner, self.d_inner + self.ngroups * self.d_state]
        return mixed[..., : ends[0]], mixed[..., ends[0] : ends[1]], mixed[..., ends[1] :]


class _GatedNorm(Module):
    """Groups of x * silu(gate), each divided by the root of its mean square, times a weight."""

    def __init__(self, width: int, groups: int, eps: float, device: str | None, dtype: Any) -> None:
        self.weight = Parameter(ones(width, device=device, dtype=dtype))
        self.groups, self.eps = groups, eps

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        gated = reshape(x * silu(gate), (*x.shape[:-1], self.groups, x.shape[-1] // self.groups))
        return reshape(rms_norm(gated, axis=-1, eps=self.eps), x.shape) * self.weight


def first_steps(count: int, like: Tensor) -> Tensor:
    """What softplus makes steps of time from 0.001 to 0.1 of, drawn evenly by their logarithm."""
    drawn = random.uniform((count,), low=math.log(1e-3), high=math.log(0.1), dtype=like.dtype, device=like.device)
    steps = exp(drawn)
    return steps + log(-expm1(-steps))
