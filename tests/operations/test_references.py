"""Values and gradients agree with PyTorch and JAX where they have the operation."""

from __future__ import annotations

import pytest

from . import harness, harness_references
from .harness_samples import SAMPLES
from .sample import Sample, rng

TOLERANCE = 1e-10
INEXACT = {"digamma": 1e-8}  # PyTorch's trigamma has nine digits


def compare(sample: Sample, by_reference) -> None:
    outputs = harness.values(sample.function, sample.arguments)
    cotangents = harness.cotangents_for(rng(sample.name + " reference"), outputs)
    gradients = harness.reverse(sample.function, sample.arguments, cotangents)
    values, expected = by_reference(sample, cotangents)
    tolerance = INEXACT.get(sample.operation, TOLERANCE)
    harness.assert_close(outputs, values, tolerance, "value", tolerance)
    harness.assert_close(gradients, expected, tolerance, "gradient", tolerance * harness.size_of(expected))


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.torch], ids=lambda sample: sample.name)
def test_torch_agrees(sample: Sample) -> None:
    compare(sample, harness_references.by_torch)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.jax], ids=lambda sample: sample.name)
def test_jax_agrees(sample: Sample) -> None:
    compare(sample, harness_references.by_jax)
