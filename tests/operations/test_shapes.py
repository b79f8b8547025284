"""0-d, empty and single elements, and what broadcasts: derived for every elementwise operation and reduction."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from . import harness, harness_checks, harness_derived
from .sample import Sample


@pytest.mark.parametrize("sample", list(harness_derived.elementwise_shapes()), ids=lambda sample: sample.name)
def test_elementwise_operations_on_small_and_broadcast_shapes(sample: Sample) -> None:
    (out,) = harness.values(sample.function, sample.arguments)
    assert out.shape == np.broadcast_shapes(*(x.shape for x in sample.arguments))
    harness_checks.first_order(sample, every_coordinate=False)
    harness_checks.forward_mode(sample)
    harness_checks.second_order(sample)


@pytest.mark.parametrize("sample", list(harness_derived.reduction_shapes()), ids=lambda sample: sample.name)
def test_reductions_of_small_shapes(sample: Sample) -> None:
    (argument,) = sample.arguments
    with np.errstate(all="ignore"), pb.guard("off"):
        if argument.size:
            harness_checks.first_order(sample)
            harness_checks.forward_mode(sample)
            harness_checks.second_order(sample)
            return
        try:
            (out,) = harness.values(sample.function, sample.arguments)
        except pb.ShapeError:
            return  # no identity: the maximum of nothing is an error
        (gradient,) = harness.reverse(sample.function, sample.arguments, [np.ones_like(out)])
        (tangent,) = harness.forward_mode(sample.function, sample.arguments, [argument])
        assert gradient.shape == argument.shape
        assert tangent.shape == out.shape
