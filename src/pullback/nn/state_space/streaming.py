"""What layers that stream have in common, and what they are made of."""

from __future__ import annotations

from typing import Any, Sequence

from ... import tree
from ...errors import ConfigurationError, DtypeError, ShapeError
from ...functions.convolution import conv1d
from ...functions.filled import zeros
from ...functions.manipulation import concat
from ...functions.reductions import sum
from ...tensors.tensor import Tensor
from ..containers import ModuleList
from ..convolution import Conv1d
from ..module import Module
from ..normalization import RMSNorm

#: A tree of tensors, the first axis of each of which is that of the samples.
State = Any


class StateSpaceLayer(Module):
    """A layer of sequences (samples, length, width) with a state that goes from step to step.

    `layer(x)` computes a sequence from nothing; `layer(x, state)` goes on from a state, and gives the next one as well;
    `layer.step(x_t, state)` takes a single step (samples, width). All of them compute the same.

    >>> import pullback as pb
    >>> layer = pb.nn.MinGRU(4)
    >>> y, state = layer(pb.zeros((2, 10, 4)), layer.initial_state(2))
    >>> layer.step(pb.zeros((2, 4)), state)[0].shape
    (2, 4)
    """

    d_model: int

    def forward(self, x: Tensor, state: State = None) -> Any:
        self._check_input(x, 3)
        if state is not None:
            self._check_state(x, state)
        out, after = self.scan(x, self.initial_state(x.shape[0], x.dtype, x.device) if state is None else state)
        return out if state is None else (out, after)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        """The state before anything has come, for so many `samples`."""
        raise NotImplementedError

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """What comes of a sequence, and the state after it."""
        raise NotImplementedError

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """What comes of one step (samples, width), and the next state."""
        self._check_step(x, state)
        out, after = self.scan(x[:, None], state)
        return out[:, 0], after

    def _check_step(self, x: Tensor, state: State) -> None:
        self._check_input(x, 2)
        self._check_state(x, state)

    def _check_input(self, x: Tensor, axes: int) -> None:
        name = type(self).__name__
        if x.ndim != axes or x.shape[-1] != self.d_model:
            form = "samples, length" if axes == 3 else "samples"
            raise ShapeError(f"{name}: expected ({form}, {self.d_model}), got {x.shape}.")
        if x.dtype.kind != "float":
            raise DtypeError(
                f"{name}: expected floating-point numbers, got {x.dtype.name}. Convert with `.astype(...)`."
            )

    def _check_state(self, x: Tensor, state: State) -> None:
        """Raise unless the state is of as many samples: numbers of one sample would else go to all."""
        name, samples = type(self).__name__, x.shape[0]
        if state is None:
            raise DtypeError(f"{name}: expected a state, got None. Begin with `initial_state({samples})`.")
        for leaf in tree.flatten(state)[0]:
            if leaf.ndim and leaf.shape[0] != samples:
                raise ShapeError(
                    f"{name}: the state is of {leaf.shape[0]} samples, the input of {samples}. "
                    f"Begin with `initial_state({samples})`."
                )


class CausalConv1d(Conv1d):
    """A convolution of each channel (samples, channels, length) by itself, with those of now and before.

    `bias` says whether a number is added for each channel.

    >>> import pullback as pb
    >>> conv = pb.nn.CausalConv1d(3, kernel_size=4)
    >>> conv(pb.zeros((2, 3, 7))).shape, conv.weight.shape
    ((2, 3, 7), (3, 1, 4))
    """

    def __init__(
        self, channels: int, kernel_size: int, bias: bool = True, device: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(channels, channels, kernel_size, groups=channels, bias=bias, device=device, dtype=dtype)

    def before(self, samples: int, dtype: Any = None, device: str | None = None) -> Tensor:
        """What stands before the first step: zeros (samples, channels, kernel_size - 1)."""
        return zeros((samples, self.in_channels, self.weight.shape[-1] - 1), dtype=dtype, device=device)

    def forward(self, x: Tensor, before: Tensor | None = None) -> Tensor:
        return self.scan(x, self.before(x.shape[0], x.dtype, x.device) if before is None else before)[0]

    def scan(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and what will stand before the next steps."""
        if not x.shape[-1]:
            return x, before
        whole = concat([before, x], axis=-1)
        out = conv1d(whole, self.weight, self.bias, groups=self.in_channels)
        return out, whole[..., x.shape[-1] :]

    def step(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """One step (samples, channels), and what will stand before the next one."""
        window = concat([before, x[..., None]], axis=-1)
        out = sum(window * self.weight[:, 0], axis=-1)
        return out if self.bias is None else out + self.bias, window[..., 1:]


class _Block(Module):
    """x + mixer(norm(x))."""

    def __init__(self, mixer: StateSpaceLayer, eps: float, dtype: Any, device: str | None) -> None:
        self.norm = RMSNorm(mixer.d_model, eps=eps, dtype=dtype, device=device)
        self.mixer = mixer


class StateSpaceModel(StateSpaceLayer):
    """Layers one after the other, each on normalised inputs and added to them, and a norm at the end.

    `mixers` are the layers, all of one width; `eps` is that of the norms. Parameters are named as in Mamba's published
    checkpoints: layers.0.mixer.in_proj.weight, layers.0.norm.weight, norm_f.weight.

    >>> import pullback as pb
    >>> model = pb.nn.StateSpaceModel([pb.nn.Mamba(16) for _ in range(2)])
    >>> x = pb.random.normal((2, 10, 16))
    >>> whole, state = model(x).detach(), model.initial_state(2)
    >>> for t in range(10):
    ...     y, state = model.step(x[:, t], state)
    >>> bool(abs(y - whole[:, -1]).max() < 1e-5)
    True
    """

    def __init__(
        self, mixers: Sequence[StateSpaceLayer], eps: float = 1e-5, device: str | None = None, dtype: Any = None
    ) -> None:
        widths = {getattr(mixer, "d_model", None) for mixer in mixers}
        if len(widths) != 1 or not all(isinstance(mixer, StateSpaceLayer) for mixer in mixers):
            raise ConfigurationError("StateSpaceModel: expected layers of state-space models, all of the same d_model.")
        (self.d_model,) = widths  # type: ignore[assignment]
        self.layers = ModuleList([_Block(mixer, eps, dtype, device) for mixer in mixers])
        self.norm_f = RMSNorm(self.d_model, eps=eps, dtype=dtype, device=device)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        """The state before anything has come, for so many `samples`."""
        return [block.mixer.initial_state(samples, dtype, device) for block in self.layers]

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self._through("scan", x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        return self._through("step", x, state)

    def _through(self, how: str, x: Tensor, state: State) -> tuple[Tensor, State]:
        after = []
        for block, before in zip(self.layers, state, strict=True):
            out, now = getattr(block.mixer, how)(block.norm(x), before)
            x = x + out
            after.append(now)
        return self.norm_f(x), after
