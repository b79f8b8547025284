"""The models that a configuration names, made of `pullback.nn`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Mapping

import numpy as np

from .. import nn
from ..autodiff.creation import asarray
from ..errors import ConfigurationError
from ..modes import no_grad
from ..random import Generator, using
from ..tensors.tensor import Tensor

_ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


def build(options: Mapping[str, Any], input_shape: tuple[int, ...], outputs: int, seed: int) -> nn.Module:
    """The model of a configuration's [model] section, for data of this shape; its first weights depend on `seed`."""
    with using(Generator(seed)):
        return _KINDS[options["kind"]](options, input_shape, outputs)


def _mlp(options: Mapping[str, Any], input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    layers: list[nn.Module] = [] if len(input_shape) == 1 else [nn.Flatten()]
    sizes = [math.prod(input_shape), *options["hidden"]]
    for size, next_size in pairwise(sizes):
        layers += [nn.Linear(size, next_size), *_activated(options)]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def _conv(options: Mapping[str, Any], input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Convolutions of 3 x 3, each followed by taking the largest of 2 x 2, and two linear layers."""
    if len(input_shape) != 3:
        raise ConfigurationError(
            f'model.kind = "conv" needs pictures (channels, height, width), the data have the shape {input_shape}.'
        )
    *_, height, width = input_shape
    halvings = len(options["channels"])
    if min(height, width) < 2**halvings:
        raise ConfigurationError(
            f"model.channels: {halvings} layers halve the picture {halvings} times; {height} x {width} is too small."
        )
    layers: list[nn.Module] = []
    channels = [input_shape[0], *options["channels"]]
    for count, next_count in pairwise(channels):
        layers += [nn.Conv2d(count, next_count, 3, padding=1), _ACTIVATIONS[options["activation"]](), nn.MaxPool2d(2)]
    features = channels[-1] * (height >> halvings) * (width >> halvings)
    layers += [nn.Flatten(), nn.Linear(features, options["hidden"]), *_activated(options)]
    return nn.Sequential(*layers, nn.Linear(options["hidden"], outputs))


def _activated(options: Mapping[str, Any]) -> list[nn.Module]:
    dropout: list[nn.Module] = [nn.Dropout(options["dropout"])] if options["dropout"] else []
    return [_ACTIVATIONS[options["activation"]](), *dropout]


def _transformer(options: Mapping[str, Any], input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    return Transformer(
        outputs, input_shape[0], options["layers"], options["heads"], options["width"], options["dropout"]
    )


def _state_space(options: Mapping[str, Any], input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    mixers = [mixer for number in range(options["layers"]) for mixer in _mixers(options, number)]
    model = nn.StateSpaceModel(mixers)
    return Forecaster(outputs, model) if len(input_shape) == 2 else Reader(outputs, model)


def _mixers(options: Mapping[str, Any], number: int) -> list[nn.StateSpaceLayer]:
    """What layer `number` of the model is made of: where channels are alone, something that mixes them comes next."""
    kind, width, states = options["layer"], options["width"], options["states"]
    if kind == "mamba":
        return [nn.Mamba(width, states)]
    if kind == "mamba2":
        return [nn.Mamba2(width, states, headdim=math.gcd(2 * width, 64))]
    if kind == "s4d":
        return [nn.S4D(width, states), nn.RWKVChannelMixing(width)]
    if kind == "s5":
        return [nn.S5(width, states)]
    if kind == "mingru":
        return [nn.MinGRU(width, expand=2)]
    place: dict[str, Any] = {"layer": number, "layers": options["layers"]}
    return [nn.RWKVTimeMixing(width, **place), nn.RWKVChannelMixing(width, **place)]


_KINDS = {"mlp": _mlp, "conv": _conv, "transformer": _transformer, "state_space": _state_space}


class Forecaster(nn.StateSpaceLayer):
    """Says of each step of a signal (samples, length, channels) what the next one will be; one step at a time, too."""

    def __init__(self, channels: int, model: nn.StateSpaceModel) -> None:
        self.d_model = channels
        self.input = nn.Linear(channels, model.d_model)
        self.model = model
        self.head = nn.Linear(model.d_model, channels)

    def initial_state(self, samples: int, dtype: Any = None, device: str | None = None) -> Any:
        return self.model.initial_state(samples, dtype, device)

    def scan(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        out, after = self.model.scan(self.input(x), state)
        return x + self.head(out), after

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        out, after = self.model.step(self.input(x), state)
        return x + self.head(out), after


class Reader(nn.Module):
    """Scores (samples, classes, length) of each token of a sequence, by what was read so far."""

    def __init__(self, tokens: int, model: nn.StateSpaceModel) -> None:
        self.embedding = nn.Embedding(tokens, model.d_model)
        self.model = model
        self.head = nn.Linear(model.d_model, tokens)

    def forward(self, tokens: Any) -> Tensor:
        return self.head(self.model(self.embedding(tokens))).mT


class Transformer(nn.Module):
    """Predicts each next character of a text from those before: numbers of characters (samples, length) to scores
    (samples, characters, length), which is how `pb.cross_entropy` takes them."""

    def __init__(self, characters: int, context: int, layers: int, heads: int, width: int, dropout: float) -> None:
        self.context = context
        self.embedding = nn.Embedding(characters, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=1 / math.sqrt(width))

    def forward(self, tokens: Any) -> Tensor:
        x = self.embedding(tokens) + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, is_causal=True)
        return self.head(self.norm(x)).mT

    def continued(self, tokens: list[int], count: int, generator: Generator, temperature: float = 1.0) -> list[int]:
        """The tokens followed by `count` more, each drawn from what the model expects there."""
        was_training = self.training
        self.eval()
        device = self.head.weight.device
        thresholds = generator.uniform((count,)).numpy()
        tokens = list(tokens)
        with no_grad():
            for threshold in thresholds:
                shown = asarray(np.array([tokens[-self.context :]]), device=device)
                scores = self(shown)[0, :, -1].to_device("numpy").numpy().astype(np.float64) / temperature
                shares = np.cumsum(np.exp(scores - scores.max()))
                drawn = np.searchsorted(shares, threshold * shares[-1], side="right")
                tokens.append(int(min(drawn, len(shares) - 1)))
        self.train(was_training)
        return tokens
