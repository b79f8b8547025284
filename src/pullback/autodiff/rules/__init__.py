"""The rule table. Each module declares a family of operations, with their gradients."""

from . import (
    activations,
    attention,
    convolution,
    elementwise,
    fft,
    indexing,
    linalg,
    linear,
    losses,
    normalization,
    pooling,
    reductions,
    scan,
    shape,
    sorting,
    special,
)

MODULES = (
    elementwise.rules,
    reductions.rules,
    shape.rules,
    indexing.rules,
    linear.rules,
    sorting.rules,
    linalg.rules,
    fft.rules,
    activations.rules,
    normalization.rules,
    losses.rules,
    convolution.rules,
    pooling.rules,
    attention.rules,
    scan.rules,
    special.rules,
)
