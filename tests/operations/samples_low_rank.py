"""Samples: linear layers with thin products beside their weights, and with packed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.functions.low_rank import Projection, low_rank_linear
from pullback.functions.packed import packed_linear

from .sample import Sample, rng


def _normal(name: str, *shape: int) -> np.ndarray:
    return rng(f"low rank {name}").normal(size=shape)


X = _normal("x", 2, 3, 4)
WEIGHT, BIAS, DOWN, UP, FACTOR = (
    _normal("weight", 5, 4), _normal("bias", 5), _normal("down", 2, 4), _normal("up", 5, 2), _normal("factor", 5),
)  # fmt: skip
SECOND = _normal("second weight", 3, 4), _normal("second down", 1, 4), _normal("second up", 3, 1)


def _one(x: Any, weight: Any, bias: Any, down: Any, up: Any, factor: Any = None, **options: Any) -> Any:
    with pb.random.using(5):
        return low_rank_linear(x, [Projection(weight, bias, down, up, factor, 0.7, **options)])[0]


def _two(x: Any, weight: Any, down: Any, up: Any, weight2: Any, down2: Any, up2: Any, chances: Any = (0.0, 0.0)) -> Any:
    with pb.random.using(6):
        return low_rank_linear(
            x,
            [
                Projection(weight, None, down, up, None, 0.7, chances[0]),
                Projection(weight2, None, down2, up2, None, -1.3, chances[1]),
            ],
        )


def _packed_once(array: np.ndarray, scheme: str) -> Any:
    if scheme == "nf4":  # with scales of 1, whose exponential is the same everywhere
        array = array / np.abs(array).max(1, keepdims=True)
    packed = pb.quant.packed(pb.asarray(array, device="numpy"), scheme)  # libraries may round a scale otherwise
    return packed._replace(parts=tuple([part.numpy() for part in packed.parts]))


_PACKED = {
    (id(array), scheme): _packed_once(array, scheme)
    for array in (WEIGHT, SECOND[0])
    for scheme in ("int8", "int4", "nf4", "fp8")
}


def _packed(x: Any, array: np.ndarray, scheme: str = "int8") -> Any:
    """Where x is."""
    packed = _PACKED[id(array), scheme]
    return packed._replace(parts=tuple([pb.asarray(part, device=x.device) for part in packed.parts]))


def _packed_pair(
    x: Any, bias: Any, down: Any, up: Any, factor: Any, weight2: Any, down2: Any, up2: Any, chance: float = 0.0
) -> Any:
    """With weights that are packed, one of them not the last, beside one that is not."""
    with pb.random.using(7):
        return low_rank_linear(
            x,
            [
                Projection(_packed(x, WEIGHT), bias, down, up, factor, 0.7, chance),
                Projection(weight2, None, down2, up2),
                Projection(_packed(x, SECOND[0], "nf4"), None, down2, up2, None, 0.3, chance / 2),
            ],
        )


def _plain(x: Any, weight: Any, bias: Any, down: Any, up: Any, factor: Any = 1.0) -> Any:
    return factor * (x @ weight.T + 0.7 * (x @ down.T) @ up.T) + bias


def _plain_pair(x: Any, weight: Any, down: Any, up: Any, weight2: Any, down2: Any, up2: Any) -> Any:
    return x @ weight.T + 0.7 * (x @ down.T) @ up.T, x @ weight2.T - 1.3 * (x @ down2.T) @ up2.T


PARAMETERS = WEIGHT, BIAS, DOWN, UP
PAIR = X, WEIGHT, DOWN, UP, *SECOND
PACKED = X, BIAS, DOWN, UP, FACTOR, *SECOND
SAMPLES = [
    Sample("low_rank_linear", "bias", _one, (X, *PARAMETERS), torch=_plain, jax=_plain),
    Sample("low_rank_linear", "factor", _one, (X, *PARAMETERS, FACTOR), torch=_plain, jax=_plain),
    Sample("low_rank_linear", "vector", _one, (X[0, 0].copy(), *PARAMETERS), torch=_plain),
    Sample("low_rank_linear", "no-rows", _one, (np.zeros((2, 0, 4)), *PARAMETERS)),
    Sample("low_rank_linear", "two", _two, PAIR, torch=_plain_pair, jax=_plain_pair),
    Sample("low_rank_linear", "first-of-two", lambda *xs: _two(*xs)[0], PAIR),
    Sample("low_rank_linear", "dropout", lambda *xs: _one(*xs, chance=0.4), (X, *PARAMETERS)),
    Sample("low_rank_linear", "factor-and-dropout", lambda *xs: _one(*xs, chance=0.4), (X, *PARAMETERS, FACTOR)),
    Sample("low_rank_linear", "two-and-dropouts", lambda *xs: _two(*xs, chances=(0.4, 0.3)), PAIR),
    Sample("low_rank_linear", "packed", _packed_pair, PACKED),
    Sample("low_rank_linear", "packed-and-dropouts", lambda *xs: _packed_pair(*xs, chance=0.4), PACKED),
    Sample("packed_linear", "bias", lambda x, bias: packed_linear(x, _packed(x, WEIGHT), bias), (X, BIAS)),
    Sample("packed_linear", "vector", lambda x: packed_linear(x, _packed(x, WEIGHT)), (X[0, 0].copy(),)),
    *[
        Sample("packed_linear", scheme, lambda x, s=scheme: packed_linear(x, _packed(x, WEIGHT, s)), (X,))
        for scheme in ("int4", "nf4", "fp8")
    ],
    Sample("packed_linear", "no-rows", lambda x: packed_linear(x, _packed(x, WEIGHT)), (np.zeros((2, 0, 4)),)),
]
