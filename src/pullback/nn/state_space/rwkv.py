"""RWKV-4: averages of what came before, weighted by keys and by age; and mixtures of a step with the one before."""

from __future__ import annotations

import math
from typing import Any

from ...autodiff.creation import asarray
from ...dtypes import float32
from ...errors import ConfigurationError
from ...functions.activations import relu, sigmoid
from ...functions.elementwise import exp, maximum
from ...functions.filled import arange, full, zeros
from ...functions.manipulation import broadcast_to, concat
from ...functions.scan import associative_scan, ssm_scan
from ...modes import no_grad
from ...tensors.tensor import Tensor
from ..linear import Linear
from ..module import Parameter
from ..normalization import LayerNorm
from .streaming import State, StateSpaceLayer

_NOTHING = -1e38  # the logarithm of the weight of what was before the first step


class RWKVTimeMixing(StateSpaceLayer):
    """Each channel's average of its values so far, in which a step counts exp(key) less a decay for each step since.

    Parameters have the published names, in the published shapes: time_decay, time_first, time_mix_key, time_mix_value,
    time_mix_receptance, key.weight, value.weight, receptance.weight, output.weight. A state has the input before, and
    the published sums: numerator, denominator, and the logarithm of what both are divided by.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    d_inner : int, optional
        Channels inside; by default `d_model`.
    layer, layers : int
        Which layer of how many it is: the first values of what is mixed and of the decays depend on it.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.RWKVTimeMixing(8)
    >>> layer(pb.zeros((2, 10, 8))).shape
    (2, 10, 8)
    >>> y, state = layer.step(pb.zeros((2, 8)), layer.initial_state(2))
    >>> sorted(state)
    ['before', 'denominator', 'exponent', 'numerator']
    """

    def __init__(
        self,
        d_model: int,
        d_inner: int | None = None,
        layer: int = 0,
        layers: int = 1,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        deep, shallow = _depth("RWKVTimeMixing", layer, layers)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_inner = d_model, d_model if d_inner is None else d_inner
        along = [i / max(self.d_inner - 1, 1) for i in range(self.d_inner)]
        self.time_decay = _parameter([-5 + 8 * at ** (0.7 + 1.3 * deep) for at in along], **place)
        by_turns = [math.log(0.3) + 0.5 * ((i + 1) % 3 - 1) for i in range(self.d_inner)]
        self.time_first = _parameter(by_turns, **place)
        self.time_mix_key = _shares(d_model, shallow, **place)
        self.time_mix_value = _shares(d_model, shallow, 0.3 * deep, **place)
        self.time_mix_receptance = _shares(d_model, 0.5 * shallow, **place)
        self.key = Linear(d_model, self.d_inner, bias=False, **place)
        self.value = Linear(d_model, self.d_inner, bias=False, **place)
        self.receptance = Linear(d_model, self.d_inner, bias=False, **place)
        self.output = Linear(self.d_inner, d_model, bias=False, **place)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        weight = self.key.weight
        place: dict[str, Any] = {"dtype": weight.dtype if dtype is None else dtype, "device": device or weight.device}
        before = zeros((samples, self.d_model), **place)
        place["dtype"] = before.dtype if before.dtype.itemsize >= 4 else float32
        shape = (samples, self.d_inner)
        return {
            "before": before,
            "numerator": zeros(shape, **place),
            "denominator": zeros(shape, **place),
            "exponent": full(shape, _NOTHING, **place),
        }

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if not x.shape[1]:
            return x, state
        key, value, gate = self._projected(x, _shifted(x, state["before"]))
        averages, sums = _averages(key, value, -exp(self.time_decay), self.time_first, state)
        return self.output(gate * averages.astype(x.dtype)), {"before": x[:, -1], **sums}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        key, value, gate = self._projected(x, state["before"])
        exponent, dtype = state["exponent"], state["exponent"].dtype
        key, value = key.astype(dtype), value.astype(dtype)
        average = _average(key + self.time_first, value, state["numerator"], state["denominator"], exponent)
        decayed = exponent - exp(self.time_decay)
        largest = maximum(decayed, key).detach()
        kept, added = exp(decayed - largest), exp(key - largest)
        after = {
            "before": x,
            "numerator": kept * state["numerator"] + added * value,
            "denominator": kept * state["denominator"] + added,
            "exponent": largest.astype(dtype),
        }
        return self.output(gate * average.astype(x.dtype)), after

    def _projected(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        key = self.key(_mixed(x, before, self.time_mix_key))
        value = self.value(_mixed(x, before, self.time_mix_value))
        return key, value, sigmoid(self.receptance(_mixed(x, before, self.time_mix_receptance)))


def _averages(key: Tensor, value: Tensor, decay: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
    """The averages of all steps and the sums after them.

    The sums of step t are divided by exp(m[t]), where m[t] = max(m[t-1] + decay, key[t]) is the logarithm of their
    largest term: no step's numbers overflow, and they do not vanish either. What they are divided by cancels out, so
    that no gradient goes through it.
    """
    dtype = state["exponent"].dtype
    key, value = key.astype(dtype), value.astype(dtype)
    start = state["exponent"][:, None]
    largest = _largest_terms(key.detach(), decay.detach().astype(dtype), start.detach())
    before = concat([start, largest[:, :-1]], axis=1)
    kept, added = exp(before - largest + decay), exp(key - largest)
    numerator = ssm_scan(added * value, kept, h0=state["numerator"], axis=1)
    denominator = ssm_scan(added, kept, h0=state["denominator"], axis=1)
    above, below = (
        concat([state[name][:, None], sums[:, :-1]], axis=1)
        for name, sums in (("numerator", numerator), ("denominator", denominator))
    )
    averages = _average(key + first, value, above, below, before)
    return averages, {
        "numerator": numerator[:, -1], "denominator": denominator[:, -1], "exponent": largest[:, -1],
    }  # fmt: skip


def _average(now: Tensor, value: Tensor, numerator: Tensor, denominator: Tensor, exponent: Tensor) -> Tensor:
    """That of what was summed, and of a value with the logarithm `now` of its weight."""
    largest = maximum(exponent, now).detach()
    old, new = exp(exponent - largest), exp(now - largest)
    return (old * numerator + new * value) / (old * denominator + new)


def _largest_terms(key: Tensor, decay: Tensor, start: Tensor) -> Tensor:
    """m[t] = max(m[t-1] + decay, key[t]), where m is `start` before the first step."""
    first = maximum(key[:, :1], start + decay)
    key = concat([first, key[:, 1:]], axis=1)

    def joined(earlier: Any, later: Any) -> Any:
        return earlier[0] + later[0], maximum(earlier[1] + later[0], later[1])

    return associative_scan(joined, (broadcast_to(decay, key.shape[1:]), key), axis=-2)[1]


class RWKVChannelMixing(StateSpaceLayer):
    """A gated network of two layers, relu(x) squared between them, on mixtures of a step and the one before.

    Parameters have the published names, in the published shapes: time_mix_key, time_mix_receptance, key.weight,
    receptance.weight, value.weight.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    d_inner : int, optional
        Channels inside; by default 4 `d_model`.
    layer, layers : int
        Which layer of how many it is: the first values of what is mixed depend on it.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.RWKVChannelMixing(8)(pb.zeros((2, 10, 8))).shape
    (2, 10, 8)
    """

    def __init__(
        self,
        d_model: int,
        d_inner: int | None = None,
        layer: int = 0,
        layers: int = 1,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        _, shallow = _depth("RWKVChannelMixing", layer, layers)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_inner = d_model, 4 * d_model if d_inner is None else d_inner
        self.time_mix_key = _shares(d_model, shallow, **place)
        self.time_mix_receptance = _shares(d_model, shallow, **place)
        self.key = Linear(d_model, self.d_inner, bias=False, **place)
        self.receptance = Linear(d_model, d_model, bias=False, **place)
        self.value = Linear(self.d_inner, d_model, bias=False, **place)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        weight = self.key.weight
        place: dict[str, Any] = {"dtype": weight.dtype if dtype is None else dtype, "device": device or weight.device}
        return zeros((samples, self.d_model), **place)

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return (self._made(x, _shifted(x, state)), x[:, -1]) if x.shape[1] else (x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        return self._made(x, state), x

    def _made(self, x: Tensor, before: Tensor) -> Tensor:
        key = relu(self.key(_mixed(x, before, self.time_mix_key)))
        gate = sigmoid(self.receptance(_mixed(x, before, self.time_mix_receptance)))
        return gate * self.value(key * key)


class RWKV(StateSpaceLayer):
    """RWKV-4's block: x + att(ln1(x)), and to that ffn(ln2(x)), by the published names.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    d_ffn : int, optional
        Channels inside of the second half; by default 4 `d_model`.
    layer, layers : int
        Which layer of how many it is: the first values of what is mixed and of the decays depend on it.
    eps : float
        Of the norms.
    device : str, optional
    dtype : dtype, optional

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.RWKV(8)
    >>> layer(pb.zeros((2, 10, 8))).shape
    (2, 10, 8)
    >>> [name for name, _ in layer.named_parameters()][:4]
    ['ln1.weight', 'ln1.bias', 'att.time_decay', 'att.time_first']
    """

    def __init__(
        self,
        d_model: int,
        d_ffn: int | None = None,
        layer: int = 0,
        layers: int = 1,
        eps: float = 1e-5,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model = d_model
        self.ln1 = LayerNorm(d_model, eps=eps, **place)
        self.att = RWKVTimeMixing(d_model, layer=layer, layers=layers, **place)
        self.ln2 = LayerNorm(d_model, eps=eps, **place)
        self.ffn = RWKVChannelMixing(d_model, d_ffn, layer, layers, **place)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> State:
        return {name: getattr(self, name).initial_state(samples, dtype, device) for name in ("att", "ffn")}

    def scan(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self._through("scan", x, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self._check_step(x, state)
        return self._through("step", x, state)

    def _through(self, how: str, x: Tensor, state: State) -> tuple[Tensor, State]:
        mixed, att = getattr(self.att, how)(self.ln1(x), state["att"])
        x = x + mixed
        mixed, ffn = getattr(self.ffn, how)(self.ln2(x), state["ffn"])
        return x + mixed, {"att": att, "ffn": ffn}


def _shifted(x: Tensor, before: Tensor) -> Tensor:
    """Of each step the one before."""
    return concat([before[:, None], x[:, :-1]], axis=1)


def _mixed(x: Tensor, before: Tensor, share: Tensor) -> Tensor:
    share = share[0] if x.ndim == 2 else share
    return before + (x - before) * share


def _depth(caller: str, layer: int, layers: int) -> tuple[float, float]:
    """How deep a layer is, from 0 for the first to 1 for the last; and from 1 for the first to just above 0."""
    if not 0 <= layer < layers:
        raise ConfigurationError(f"{caller}: layer must be from 0 to layers - 1 = {layers - 1}, got {layer!r}.")
    return layer / max(layers - 1, 1), 1 - layer / layers


def _parameter(values: list[float], device: str | None, dtype: Any) -> Tensor:
    made = Parameter(zeros(len(values), device=device, dtype=dtype))
    with no_grad():
        made[...] = asarray(values, dtype=made.dtype, device=made.device)
    return made


def _shares(width: int, power: float, more: float = 0.0, device: str | None = None, dtype: Any = None) -> Tensor:
    """What part of a mixture is the step itself: more of it in later channels."""
    made = Parameter(zeros((1, 1, width), device=device, dtype=dtype))
    with no_grad():
        made[...] = (arange(width, dtype=made.dtype, device=made.device) / width) ** power + more
    return made
