"""Normalisation layers, dropout and embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample, rng

INDICES = np.array([[0, 3, 3], [4, 0, 3]])


def _torch(name: str, *options: Any, **named: Any) -> Any:
    def function(x: Any, *parameters: Any) -> Any:
        import torch.nn.functional

        return getattr(torch.nn.functional, name)(x, *options, *parameters, **named)

    return function


def _normal(name: str, *shape: int) -> np.ndarray:
    return rng(name).normal(size=shape)


def _batch_norm(x: Any, weight: Any = None, bias: Any = None) -> Any:
    return pb.batch_norm(x, None, None, weight, bias, training=True)[0]


def _torch_batch_norm(x: Any, weight: Any = None, bias: Any = None) -> Any:
    import torch.nn.functional

    return torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


def _batch_statistics(x: Any) -> Any:
    from pullback.autodiff.tables import TENSORS

    return TENSORS.batch_norm(x, None, None, (-3, -1), 1e-5)


def _torch_instance_norm(x: Any, weight: Any, bias: Any) -> Any:
    import torch

    return torch.nn.functional.instance_norm(x, weight=weight, bias=bias, eps=1e-3)


def _torch_one_hot(x: Any) -> Any:
    import torch

    return x * torch.nn.functional.one_hot(torch.tensor(INDICES), 5)


def _torch_embedding(weight: Any) -> Any:
    import torch

    return torch.nn.functional.embedding(torch.tensor(INDICES), weight)


def _dropout(x: Any) -> Any:
    return pb.dropout(x, 0.4, generator=pb.random.Generator(3))


X, W, B = _normal("x", 3, 4, 5), _normal("weight", 5), _normal("bias", 5)
CHANNELS = _normal("channel weight", 4), _normal("channel bias", 4)

SAMPLES: list[Sample] = [
    Sample("normalize", "rows", pb.normalize, (X,), torch=_torch("normalize", 2.0, -1)),
    Sample("normalize", "ord=3", lambda x: pb.normalize(x, 1, ord=3), (X,), torch=_torch("normalize", 3.0, 1)),
    Sample("layer_norm", "plain", lambda x: pb.layer_norm(x, 5), (X,), torch=_torch("layer_norm", (5,))),
    Sample(
        "layer_norm", "affine", lambda x, w, b: pb.layer_norm(x, 5, w, b), (X, W, B), torch=_torch("layer_norm", (5,))
    ),
    Sample("layer_norm", "weight", lambda x, w: pb.layer_norm(x, (5,), w), (X, W), torch=_torch("layer_norm", (5,))),
    Sample("layer_norm", "bias", lambda x, b: pb.layer_norm(x, (5,), None, b), (X, B)),
    Sample(
        "layer_norm",
        "two-axes",
        lambda x, w, b: pb.layer_norm(x, (4, 5), w, b, 1e-3),
        (X, _normal("w2", 4, 5), _normal("b2", 4, 5)),
        torch=_torch("layer_norm", (4, 5), eps=1e-3),
    ),
    Sample("layer_norm", "axis=1", lambda x, w, b: pb.layer_norm(x, weight=w, bias=b, axis=1), (X, *CHANNELS)),
    Sample("layer_norm", "axes=0,2", lambda x, w: pb.layer_norm(x, weight=w, axis=(2, 0)), (X, _normal("w02", 3, 5))),
    Sample("rms_norm", "plain", lambda x: pb.rms_norm(x, 5), (X,), torch=_torch("rms_norm", (5,))),
    Sample(
        "rms_norm", "weight", lambda x, w: pb.rms_norm(x, 5, w, 1e-3), (X, W), torch=_torch("rms_norm", (5,), eps=1e-3)
    ),
    Sample("rms_norm", "axis=1", lambda x, w: pb.rms_norm(x, weight=w, axis=1), (X, CHANNELS[0])),
    Sample("group_norm", "plain", lambda x: pb.group_norm(x, 2), (X,), torch=_torch("group_norm", 2)),
    Sample(
        "group_norm", "affine", lambda x, w, b: pb.group_norm(x, 2, w, b), (X, *CHANNELS), torch=_torch("group_norm", 2)
    ),
    Sample("group_norm", "no-positions", lambda x, w: pb.group_norm(x, 2, w), (X[..., 0].copy(), CHANNELS[0])),
    Sample("instance_norm", "plain", pb.instance_norm, (X,), torch=_torch("instance_norm")),
    Sample(
        "instance_norm",
        "affine",
        lambda x, w, b: pb.instance_norm(x, weight=w, bias=b, eps=1e-3),
        (X, *CHANNELS),
        torch=_torch_instance_norm,
    ),
    Sample("batch_norm", "plain", _batch_norm, (X,), torch=_torch_batch_norm),
    Sample("batch_norm", "affine", _batch_norm, (X, *CHANNELS), torch=_torch_batch_norm),
    Sample("batch_norm", "two-dimensional", _batch_norm, (X[..., 0].copy(), *CHANNELS), torch=_torch_batch_norm),
    Sample("batch_norm", "statistics", _batch_statistics, (X,)),
    Sample("batch_norm", "one-statistic", lambda x: _batch_statistics(x)[2], (X,)),
    Sample(
        "multiply_add",
        "batch-norm-outside-training",
        lambda x, mean, variance, w, b: pb.batch_norm(x, mean, variance, w, b)[0],
        (X, _normal("mean", 4), rng("var").uniform(0.5, 2, 4), *CHANNELS),
    ),
    Sample("dropout", "plain", _dropout, (_normal("dropout", 4, 5),)),
    Sample(
        "embedding", "repeated", lambda w: pb.embedding(INDICES, w), (_normal("table", 5, 3),), torch=_torch_embedding
    ),
    Sample("embedding", "number", lambda w: pb.embedding(np.array(2), w), (_normal("table0", 5, 3),)),
    Sample(
        "one_hot",
        "times x",
        lambda x: x * pb.one_hot(INDICES, 5),
        (_normal("one hot", *INDICES.shape, 5),),
        torch=_torch_one_hot,
    ),
    Sample(
        "cosine_similarity",
        "last axis",
        pb.cosine_similarity,
        (_normal("cosine x", 3, 4), _normal("cosine y", 3, 4)),
        torch=_torch("cosine_similarity"),
    ),
    Sample(
        "cosine_similarity",
        "axis=0, broadcast",
        lambda x, y: pb.cosine_similarity(x, y, axis=0),
        (_normal("cosine x0", 3, 2), _normal("cosine y0", 3, 1)),
        torch=_torch("cosine_similarity", dim=0),
    ),
]
