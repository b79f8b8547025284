"""Samples: products with quantized constants, and gradients past rounding."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .sample import Sample, rng

_draw = rng("quantized").standard_normal
VALUES = _draw((3, 4))


def weight() -> pb.Tensor:
    return pb.quantize(pb.asarray(VALUES), "int8", axis=0)


SAMPLES = [
    Sample("quantized_matmul", "right", lambda x: pb.matmul(x, weight()), (_draw((2, 3)),)),
    Sample("quantized_matmul", "left", lambda x: pb.matmul(weight(), x), (_draw((4, 2)),)),
    Sample("quantized_matmul", "vector", lambda x: pb.matmul(weight(), x), (_draw(4),)),
    Sample("quantized_matmul", "stack", lambda x: pb.matmul(x, weight()), (_draw((2, 2, 3)),)),
    Sample("quantized_matmul", "complex", lambda x: pb.matmul(x, weight()), (_draw((2, 3)) + 1j * _draw((2, 3)),)),
    Sample("quantized_matmul", "no rows", lambda x: pb.matmul(x, weight()), (np.zeros((0, 3)),)),
    # what it gives is smooth in x here, and changes as x does
    Sample("straight_through", "same", lambda x: pb.straight_through(x, 1.0 * x.detach()), (_draw((2, 3)),)),
    Sample("straight_through", "later", lambda x: pb.sin(pb.straight_through(2 * x, 2 * x.detach())), (_draw((2, 3)),)),
]
