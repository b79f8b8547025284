"""Every rule against central differences, to second order, by reverse and forward mode and their mixtures."""

from __future__ import annotations

import pytest

from . import harness_checks
from .harness_samples import SAMPLES
from .sample import Sample

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


@every_sample
def test_reverse_mode_agrees_with_central_differences(sample: Sample) -> None:
    harness_checks.first_order(sample)


@every_sample
def test_forward_mode_agrees_with_reverse_mode(sample: Sample) -> None:
    harness_checks.forward_mode(sample)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.orders >= 2], ids=lambda sample: sample.name)
def test_second_order_agrees_with_central_differences(sample: Sample) -> None:
    harness_checks.second_order(sample)
