"""Complex arguments for every operation that takes them: the gradient is PyTorch's, whichever parts it depends on."""

from __future__ import annotations

import pytest

import pullback as pb

from . import harness, harness_checks, harness_derived, harness_references
from .sample import Sample, rng


@pytest.mark.parametrize("sample", list(harness_derived.complex_versions()), ids=lambda sample: sample.name)
def test_complex_arguments(sample: Sample) -> None:
    try:
        outputs = harness.values(sample.function, sample.arguments)
    except pb.DtypeError:
        return  # an operation on real numbers only, and it says so
    harness_checks.first_order(sample, every_coordinate=False)
    harness_checks.forward_mode(sample)
    if sample.orders >= 2:
        harness_checks.second_order(sample)
    if sample.torch is None:
        return
    cotangents = harness.cotangents_for(rng(sample.name), outputs)
    try:
        values, expected = harness_references.by_torch(sample, cotangents)
    except (RuntimeError, TypeError):
        return  # PyTorch has it for real numbers only; the differences above decide
    found = harness.reverse(sample.function, sample.arguments, cotangents)
    harness.assert_close(outputs, values, 1e-10, "value", 1e-10)
    harness.assert_close(found, expected, 1e-10, "gradient", 1e-10 * harness.size_of(expected))
