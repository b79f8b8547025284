"""Recurrent layers: the inputs of all steps are projected by one product, then the steps run one after the other."""

from __future__ import annotations

from typing import Any, Callable, ClassVar

from ..autodiff.creation import asarray
from ..errors import ConfigurationError, ShapeError
from ..functions.activations import relu, sigmoid
from ..functions.filled import empty, zeros
from ..functions.linear import linear
from ..functions.manipulation import concat, split, stack, swapaxes, unstack
from ..functions.normalization import dropout as dropped
from ..functions.recurrent import gru, lstm, rnn
from ..functions.trigonometry import tanh
from ..tensors.tensor import Tensor
from . import init
from .dropout import probability
from .module import Module, Parameter

State = tuple[Tensor, ...]  # (h,), or (h, c) for LSTM

# A step takes the projected input, the projected state and the state, and gives the next state.


def _tanh_step(x: Tensor, recurrent: Tensor, state: State) -> State:
    return (tanh(x + recurrent),)


def _relu_step(x: Tensor, recurrent: Tensor, state: State) -> State:
    return (relu(x + recurrent),)


def _gru_step(x: Tensor, recurrent: Tensor, state: State) -> State:
    width = x.shape[-1] // 3
    gates = sigmoid(x[..., : 2 * width] + recurrent[..., : 2 * width])
    reset, update = gates[..., :width], gates[..., width:]
    candidate = tanh(x[..., 2 * width :] + reset * recurrent[..., 2 * width :])
    return (candidate + update * (state[0] - candidate),)


def _lstm_step(x: Tensor, recurrent: Tensor, state: State) -> State:
    take, keep, candidate, show = split(x + recurrent, 4, axis=-1)
    cell = sigmoid(keep) * state[1] + sigmoid(take) * tanh(candidate)
    return sigmoid(show) * tanh(cell), cell


class _Recurrent(Module):
    """What layers and cells share: the gates of a step, the parameters of a projection."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1  # how many tensors a state has
    hidden_size: int

    def _make(self, suffix: str, inputs: int, bias: bool, dtype: Any, device: str | None) -> None:
        """Make the parameters of one direction of one layer."""
        rows = self.gates * self.hidden_size
        for name, shape in (("weight_ih", (rows, inputs)), ("weight_hh", (rows, self.hidden_size))):
            setattr(self, name + suffix, Parameter(empty(shape, dtype=dtype, device=device)))
        for name in ("bias_ih", "bias_hh"):
            setattr(self, name + suffix, Parameter(empty(rows, dtype=dtype, device=device)) if bias else None)

    def reset_parameters(self) -> None:
        """Draw the first values anew: uniform up to 1 / sqrt(hidden_size)."""
        init.uniform_by_inputs(*self.parameters(), inputs=self.hidden_size)

    def _zeros(self, x: Tensor, *shape: int) -> State:
        return tuple(zeros((*shape, self.hidden_size), dtype=x.dtype, device=x.device) for _ in range(self.states))

    def _given(self, state: Any, shape: tuple[int, ...]) -> State:
        """The state that a caller gave, checked: a tensor, or a tuple of `states` of them."""
        several = self.states > 1 and isinstance(state, (tuple, list))
        parts = tuple(asarray(part) for part in (state if several else (state,)))
        shapes = [part.shape for part in parts]
        if len(parts) != self.states or any(found != shape for found in shapes):
            expected = f"{shape}" if self.states == 1 else f"a pair (h, c) of shape {shape} each"
            raise ShapeError(f"{type(self).__name__}: the state must be {expected}, got {shapes}.")
        return parts


class _RecurrentCell(_Recurrent):
    def _step(self) -> Callable[[Tensor, Tensor, State], State]:
        raise NotImplementedError

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: str | None = None, dtype: Any = None
    ) -> None:
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self._make("", input_size, bias, dtype, device)
        self.reset_parameters()

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The next state, of inputs `x` (samples, input_size) and the state `hx` before, by default zeros."""
        x = asarray(x)
        state = self._zeros(x, *x.shape[:-1]) if hx is None else self._given(hx, (*x.shape[:-1], self.hidden_size))
        projected = linear(x, self.weight_ih, self.bias_ih)
        state = self._step()(projected, linear(state[0], self.weight_hh, self.bias_hh), state)
        return state if self.states > 1 else state[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias}"


class _RecurrentLayers(_Recurrent):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if min(input_size, hidden_size, num_layers) < 1:
            raise ConfigurationError(
                f"{type(self).__name__}: input_size, hidden_size and num_layers must be positive, got {input_size}, "
                f"{hidden_size} and {num_layers}."
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = probability(f"{type(self).__name__}: dropout", dropout)
        self.bidirectional = bidirectional
        self._directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size * len(self._directions)
            for direction in self._directions:
                self._make(f"_l{layer}{direction}", inputs, bias, dtype, device)
        self.reset_parameters()

    def forward(self, x: Any, hx: Any = None) -> tuple[Tensor, Any]:
        """Outputs for all steps of `x`, and the last state; `hx` is the first one, by default zeros."""
        x = asarray(x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            axes = "(samples, length, width)" if self.batch_first else "(length, samples, width)"
            raise ShapeError(
                f"{type(self).__name__}: x must be {axes} or (length, width) with the width {self.input_size}, "
                f"got shape {x.shape}."
            )
        single = x.ndim == 2
        transposed = self.batch_first and not single
        if transposed:
            x = swapaxes(x, 0, 1)
        if not x.shape[0]:
            raise ShapeError(f"{type(self).__name__}: x has no steps; its shape is {x.shape}.")
        count, middle = self.num_layers * len(self._directions), x.shape[1:-1]
        shape = (count, *middle, self.hidden_size)
        given = self._zeros(x, count, *middle) if hx is None else self._given(hx, shape)
        first_states = list(zip(*(unstack(part) for part in given)))
        last_states = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropped(x, self.dropout, self.training)
            outputs = []
            for number, direction in enumerate(self._directions):
                state = first_states[layer * len(self._directions) + number]
                output, state = self._run(x, state, f"_l{layer}{direction}", bool(number))
                outputs.append(output)
                last_states.append(state)
            x = concat(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
        final = tuple(stack(parts) for parts in zip(*last_states))
        return swapaxes(x, 0, 1) if transposed else x, final if self.states > 1 else final[0]

    def _run(self, x: Tensor, state: State, suffix: str, backwards: bool) -> tuple[Tensor, State]:
        """One direction of one layer over all steps: the outputs, and the last state."""
        parameters = vars(self)
        projected = linear(x, parameters["weight_ih" + suffix], parameters["bias_ih" + suffix])
        weight, bias = parameters["weight_hh" + suffix], parameters["bias_hh" + suffix]
        out, *more = self._steps(projected, state, weight, bias, backwards)
        return out, (out[0 if backwards else -1], *more)

    def _steps(self, x: Tensor, state: State, weight: Tensor, bias: Any, backwards: bool) -> tuple[Tensor, ...]:
        """The states of all steps, then what else the last state has."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        options = {
            "num_layers": (self.num_layers, 1),
            "bias": (self.bias, True),
            "batch_first": (self.batch_first, False),
            "dropout": (self.dropout, 0.0),
            "bidirectional": (self.bidirectional, False),
        }
        shown = [f"{name}={value}" for name, (value, default) in options.items() if value != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])


class RNN(_RecurrentLayers):
    """h = tanh(W x + b + U h + c) over the steps of a sequence: (outputs, h).

    Inputs are (length, samples, input_size); the samples may be left out. A first state (num_layers * directions,
    samples, hidden_size) may follow them, by default zeros: `rnn(x, h)`. Outputs are (length, samples, hidden_size *
    directions), and h is the last state.

    Parameters
    ----------
    input_size : int
        The width of inputs.
    hidden_size : int
        The width of the state.
    num_layers : int
        Layers one on top of the other.
    nonlinearity : str
        "tanh" or "relu".
    bias : bool
        Whether there are the biases b and c.
    batch_first : bool
        Whether inputs and outputs are (samples, length, width) instead; states stay as they are.
    dropout : float
        The probability of zeros between layers, in training.
    bidirectional : bool
        Whether a second network reads the sequence backwards, and outputs are twice as wide.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> out, h = pb.nn.RNN(3, 4)(pb.zeros((6, 2, 3)))
    >>> out.shape, h.shape
    ((6, 2, 4), (1, 2, 4))
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ConfigurationError(f'RNN: nonlinearity must be "tanh" or "relu", got {nonlinearity!r}.')
        self.nonlinearity = nonlinearity
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype
        )

    def _steps(self, x: Tensor, state: State, weight: Tensor, bias: Any, backwards: bool) -> tuple[Tensor, ...]:
        return (rnn(x, state[0], weight, bias, self.nonlinearity, backwards),)


class GRU(_RecurrentLayers):
    """Gated recurrent units over the steps of a sequence: (outputs, h).

    Inputs are (length, samples, input_size); the samples may be left out. A first state (num_layers * directions,
    samples, hidden_size) may follow them, by default zeros: `gru(x, h)`. Outputs are (length, samples, hidden_size *
    directions), and h is the last state.

    Parameters
    ----------
    input_size : int
        The width of inputs.
    hidden_size : int
        The width of the state.
    num_layers : int
        Layers one on top of the other.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether inputs and outputs are (samples, length, width) instead; states stay as they are.
    dropout : float
        The probability of zeros between layers, in training.
    bidirectional : bool
        Whether a second network reads the sequence backwards, and outputs are twice as wide.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> out, h = pb.nn.GRU(3, 4, bidirectional=True)(pb.zeros((6, 2, 3)))
    >>> out.shape, h.shape
    ((6, 2, 8), (2, 2, 4))
    """

    gates = 3

    def _steps(self, x: Tensor, state: State, weight: Tensor, bias: Any, backwards: bool) -> tuple[Tensor, ...]:
        return (gru(x, state[0], weight, bias, backwards),)


class LSTM(_RecurrentLayers):
    """Long short-term memory over the steps of a sequence: (outputs, (h, c)).

    Inputs are (length, samples, input_size); the samples may be left out. First states may follow them, by default
    zeros: `lstm(x, (h, c))`. Outputs are (length, samples, hidden_size * directions). The states h and c are
    (num_layers * directions, samples, hidden_size), in whatever order the inputs are.

    Parameters
    ----------
    input_size : int
        The width of inputs.
    hidden_size : int
        The width of the states.
    num_layers : int
        Layers one on top of the other.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether inputs and outputs are (samples, length, width) instead; states stay as they are.
    dropout : float
        The probability of zeros between layers, in training.
    bidirectional : bool
        Whether a second network reads the sequence backwards, and outputs are twice as wide.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> out, (h, c) = pb.nn.LSTM(3, 4, num_layers=2, batch_first=True)(pb.zeros((2, 6, 3)))
    >>> out.shape, h.shape, c.shape
    ((2, 6, 4), (2, 2, 4), (2, 2, 4))
    """

    gates = 4
    states = 2

    def _steps(self, x: Tensor, state: State, weight: Tensor, bias: Any, backwards: bool) -> tuple[Tensor, ...]:
        h, c = state
        return lstm(x, h, c, weight, bias, backwards)


class RNNCell(_RecurrentCell):
    """One step of `RNN`: x and h give the next h.

    `x` is (samples, input_size), h (samples, hidden_size), by default zeros. The arguments are those of `RNN`: `bias`,
    `nonlinearity` ("tanh" or "relu").

    >>> import pullback as pb
    >>> pb.nn.RNNCell(3, 4)(pb.zeros((2, 3))).shape
    (2, 4)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ConfigurationError(f'RNNCell: nonlinearity must be "tanh" or "relu", got {nonlinearity!r}.')
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def _step(self) -> Callable[[Tensor, Tensor, State], State]:
        return _tanh_step if self.nonlinearity == "tanh" else _relu_step


class GRUCell(_RecurrentCell):
    """One step of `GRU`: x and h give the next h.

    `x` is (samples, input_size), h (samples, hidden_size), by default zeros. Without `bias` there are no biases.

    >>> import pullback as pb
    >>> pb.nn.GRUCell(3, 4)(pb.zeros((2, 3))).shape
    (2, 4)
    """

    gates = 3

    def _step(self) -> Callable[[Tensor, Tensor, State], State]:
        return _gru_step


class LSTMCell(_RecurrentCell):
    """One step of `LSTM`: x and (h, c) give the next (h, c).

    `x` is (samples, input_size), h and c (samples, hidden_size), by default zeros. Without `bias` there are no biases.

    >>> import pullback as pb
    >>> h, c = pb.nn.LSTMCell(3, 4)(pb.zeros((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates = 4
    states = 2

    def _step(self) -> Callable[[Tensor, Tensor, State], State]:
        return _lstm_step
