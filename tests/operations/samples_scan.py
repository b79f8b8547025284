"""Linear recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample, rng


def _torch(axis: int, reverse: bool) -> Any:
    def function(x: Any, a: Any, b: Any, h0: Any) -> Any:
        import torch

        steps = list(zip(x.unbind(axis), a.expand(x.shape).unbind(axis), b.expand(x.shape).unbind(axis)))
        state, states = h0, []
        for x_now, a_now, b_now in reversed(steps) if reverse else steps:
            state = a_now * state + b_now * x_now
            states.append(state)
        return torch.stack(states[::-1] if reverse else states, axis)

    return function


def _normal(name: str, *shape: int) -> np.ndarray:
    return rng(name).normal(size=shape)


def _complex(name: str, *shape: int) -> np.ndarray:
    return _normal(name, *shape) + 1j * _normal(name + "i", *shape)


X = _normal("x", 2, 4, 3)
SAMPLES: list[Sample] = [
    Sample(
        "ssm_scan",
        f"axis={axis}{'-reverse' * reverse}",
        lambda x, a, b, h, axis=axis, reverse=reverse: pb.ssm_scan(x, a, b, h, axis, reverse),
        (
            X,
            _normal("a", 2, 4, 3),
            _normal("b", 2, 4, 3),
            _normal("h", *(n for i, n in enumerate(X.shape) if i != axis)),
        ),
        torch=_torch(axis, reverse),
    )
    for axis in (0, 1, 2)
    for reverse in (False, True)
]
SAMPLES += [
    Sample("ssm_scan", "constant-a", lambda x, a: pb.ssm_scan(x, a, axis=1), (X, _normal("a3", 3))),
    Sample(
        "ssm_scan", "constant-a-reverse", lambda x, a: pb.ssm_scan(x, a, axis=1, reverse=True), (X, _normal("a3", 3))
    ),
    Sample("ssm_scan", "scalar-a", lambda x, a: pb.ssm_scan(x, a), (X, np.array(0.7))),
    Sample(
        "ssm_scan",
        "a-over-time",
        lambda x, a, b: pb.ssm_scan(x, a, b, axis=1),
        (X, _normal("a41", 4, 1), _normal("b1", 1)),
    ),
    Sample(
        "ssm_scan",
        "broadcast-h0",
        lambda x, a, h: pb.ssm_scan(x, a, h0=h, axis=1),
        (X, _normal("a3", 3), _normal("h1", 2, 1)),
    ),
    Sample(
        "ssm_scan",
        "one-dimensional",
        lambda x, a, h: pb.ssm_scan(x, a, h0=h),
        (_normal("x1", 5), _normal("a1", 5), np.array(0.4)),
    ),
    Sample(
        "ssm_scan",
        "one-step",
        lambda x, a, h: pb.ssm_scan(x, a, h0=h, axis=1),
        (X[:, :1].copy(), _normal("a3", 3), _normal("h", 2, 3)),
    ),
    Sample(
        "ssm_scan",
        "complex",
        lambda x, a, b, h: pb.ssm_scan(x, a, b, h, 1),
        (_complex("cx", 2, 3, 2), _complex("ca", 2, 3, 2), _complex("cb", 2), _complex("ch", 2, 2)),
        torch=_torch(1, False),
    ),
]
