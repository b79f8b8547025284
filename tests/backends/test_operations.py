"""Every sample of the operation suite on other backends: values, gradients and second derivatives are NumPy's."""

from __future__ import annotations

import pytest

from ..operations.harness_devices import check, derivatives, tangents
from ..operations.harness_samples import SAMPLES
from . import strict
from .installed import require

FIRST_OF_OPERATION = list({sample.operation: sample for sample in reversed(SAMPLES)}.values())


def name_of(sample):
    return sample.name


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_array_api_strict(sample):
    require(strict.DEVICE)
    check(derivatives(sample, strict.DEVICE, 2), derivatives(sample, "numpy", 2))


@pytest.mark.parametrize("sample", FIRST_OF_OPERATION, ids=name_of)
def test_array_api_strict_in_forward_mode(sample):
    require(strict.DEVICE)
    check(tangents(sample, strict.DEVICE), tangents(sample, "numpy"))


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_torch(sample):
    require("torch:cpu")
    check(derivatives(sample, "torch:cpu", 2), derivatives(sample, "numpy", 2))


@pytest.mark.parametrize("sample", FIRST_OF_OPERATION, ids=name_of)
def test_jax(sample):
    require("jax:cpu")
    check(derivatives(sample, "jax:cpu", 1), derivatives(sample, "numpy", 1))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_jax_all(sample):
    require("jax:cpu")
    check(derivatives(sample, "jax:cpu", 2), derivatives(sample, "numpy", 2))
