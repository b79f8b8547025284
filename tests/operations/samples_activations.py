"""Activation functions, and softmax with its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample, rng

POINTS = np.array([[-30.0, -3.1, -0.7], [0.4, 2.3, 25.0]])  # nothing within a step of a kink


def _torch(name: str, **options: Any) -> Any:
    def function(*args: Any) -> Any:
        import torch.nn.functional

        return getattr(torch.nn.functional, name)(*args, **options)

    return function


def _jax(name: str, **options: Any) -> Any:
    def function(*args: Any) -> Any:
        import jax

        return getattr(jax.nn, name)(*args, **options)

    return function


def _torch_logsumexp(axis: Any, keepdims: bool) -> Any:
    def function(x: Any) -> Any:
        import torch

        return torch.logsumexp(x, axis, keepdims)

    return function


def _normal(name: str, *shape: int) -> np.ndarray:
    return rng(name).normal(size=shape) * 2


def _elementwise(name: str, case: str, torch_name: str | None, jax_name: str | None, **options: Any) -> list[Sample]:
    function = getattr(pb, name)
    references = {
        "torch": _torch(torch_name, **options) if torch_name else None,
        "jax": _jax(jax_name) if jax_name and not options else None,
    }
    return [
        Sample(name, case, lambda x: function(x, **options), (_normal(name, 3, 4),), **references),
        Sample(name, f"{case}-large", lambda x: function(x, **options), (POINTS.copy(),), **references),
    ]


SAMPLES: list[Sample] = [
    *_elementwise("relu", "plain", "relu", "relu"),
    *_elementwise("leaky_relu", "plain", "leaky_relu", "leaky_relu"),
    *_elementwise("leaky_relu", "slope-above-1", "leaky_relu", None, negative_slope=1.5),
    *_elementwise("leaky_relu", "slope-negative", "leaky_relu", None, negative_slope=-0.3),
    *_elementwise("elu", "plain", "elu", "elu"),
    *_elementwise("elu", "alpha", "elu", None, alpha=0.3),
    *_elementwise("gelu", "exact", "gelu", None, approximate="none"),
    *_elementwise("gelu", "tanh", "gelu", "gelu", approximate="tanh"),
    *_elementwise("sigmoid", "plain", "sigmoid", "sigmoid"),
    *_elementwise("log_sigmoid", "plain", "logsigmoid", "log_sigmoid"),
    *_elementwise("silu", "plain", "silu", "silu"),
    *_elementwise("softplus", "plain", "softplus", "softplus"),
    *_elementwise("softplus", "beta", None, None, beta=2.5),
    *_elementwise("softplus", "threshold", "softplus", None, beta=1.5, threshold=2.0),
    *_elementwise("relu6", "plain", "relu6", "relu6"),
    *_elementwise("hardsigmoid", "plain", None, "hard_sigmoid"),  # PyTorch's slope is 1/6 in single precision
    *_elementwise("hardswish", "plain", "hardswish", "hard_silu"),
    *_elementwise("selu", "plain", "selu", "selu"),
    *_elementwise("mish", "plain", "mish", "mish"),
    *[
        Sample(
            "prelu",
            case,
            pb.prelu,
            (_normal(f"prelu {case}", *shape), np.array(slopes)),
            torch=_torch("prelu"),
        )
        for case, shape, slopes in (
            ("one slope", (4,), [0.25]),
            ("number", (2, 3), 0.3),
            ("slope per channel", (2, 3), [0.25, -0.5, 1.5]),
            ("slope per channel of images", (2, 3, 2), [0.25, -0.5, 1.5]),
        )
    ],
    Sample("glu", "last axis", pb.glu, (_normal("glu", 3, 4),), torch=_torch("glu"), jax=_jax("glu")),
    Sample("glu", "axis=0", lambda x: pb.glu(x, axis=0), (_normal("glu0", 2, 3),), torch=_torch("glu", dim=0)),
]

for _axis in (-1, 0, 1):
    SAMPLES += [
        Sample(
            name,
            f"axis={_axis}",
            lambda x, name=name, axis=_axis: getattr(pb, name)(x, axis=axis),
            (_normal(f"{name}{_axis}", 2, 3, 4),),
            torch=_torch(name, dim=_axis),
            jax=_jax(name, axis=_axis),
        )
        for name in ("softmax", "log_softmax")
    ]
SAMPLES += [
    Sample(
        "softmax",
        "two-axes",
        lambda x: pb.softmax(x, (0, 2)),
        (_normal("softmax2", 2, 3, 2),),
        jax=_jax("softmax", axis=(0, 2)),
    ),
    Sample("softmax", "one-element", lambda x: pb.softmax(x, 1), (_normal("softmax1", 3, 1),)),
    Sample("log_softmax", "two-axes", lambda x: pb.log_softmax(x, (-1, 0)), (_normal("log_softmax2", 2, 3, 2),)),
    Sample(
        "logsumexp", "all", lambda x: pb.logsumexp(x), (_normal("lse", 3, 4),), torch=_torch_logsumexp((0, 1), False)
    ),
    Sample(
        "logsumexp",
        "axis=1",
        lambda x: pb.logsumexp(x, 1),
        (_normal("lse1", 2, 3, 4),),
        torch=_torch_logsumexp(1, False),
    ),
    Sample(
        "logsumexp",
        "axes-kept",
        lambda x: pb.logsumexp(x, (0, 2), keepdims=True),
        (_normal("lse2", 2, 3, 4),),
        torch=_torch_logsumexp((0, 2), True),
    ),
    Sample(
        "logsumexp",
        "far",
        lambda x: pb.logsumexp(x, 0),
        (_normal("lse3", 3, 4) + 800,),
        torch=_torch_logsumexp(0, False),
    ),
    Sample("logsumexp", "number", lambda x: pb.logsumexp(x), (np.array(0.7),)),
]
