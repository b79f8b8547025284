"""Every sample of the operation suite on other backends: values, gradients and second derivatives are NumPy's."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import pullback as pb
from pullback.functions import creation

from ..operations.harness_samples import SAMPLES
from . import strict

FIRST_OF_OPERATION = list({sample.operation: sample for sample in reversed(SAMPLES)}.values())


@contextmanager
def everything_on(device):
    """Arrays and numbers that a sample closes over go to `device` too."""
    original = creation._of_raw

    def placed(raw, backend, dtype, wanted, copy):
        return original(raw, backend, dtype, device if wanted is None else wanted, copy)

    creation._of_raw = placed
    try:
        with pb.device(device):
            yield
    finally:
        creation._of_raw = original


def derivatives(sample, device):
    """Values, gradients, and gradients of the gradients' products with fixed numbers."""
    rng = np.random.default_rng(0)

    def like(tensor):
        numbers = rng.standard_normal(tensor.shape)
        if tensor.dtype.kind == "complex":
            numbers = numbers + 1j * rng.standard_normal(tensor.shape)
        return pb.asarray(numbers, dtype=tensor.dtype, device=device)

    with everything_on(device), pb.guard("off"):
        variables = [pb.asarray(a, device=device).set_requires_grad(True) for a in sample.arguments]
        result = sample.function(*variables)
        outputs = [out for out in (result if isinstance(result, tuple) else (result,)) if out.requires_grad]
        yield from (out.detach().numpy() for out in outputs)
        total = inner(outputs[0], like(outputs[0]))
        for out in outputs[1:]:
            total = total + inner(out, like(out))
        grads = pb.backward(total, create_graph=sample.orders > 1)
        found = [grads.get(v) for v in variables]
        yield from (np.zeros(v.shape) if g is None else g.detach().numpy() for g, v in zip(found, variables))
        tracked = [g for g in found if g is not None and g.requires_grad]
        if not tracked:
            return
        second = inner(tracked[0], like(tracked[0]))
        for g in tracked[1:]:
            second = second + inner(g, like(g))
        grads = pb.backward(second)
        yield from (np.zeros(v.shape) if (g := grads.get(v)) is None else g.numpy() for v in variables)


def inner(x, y):
    return pb.sum(pb.real(x * y) if x.dtype.kind == "complex" else x * y)


def check(sample, device):
    expected, found = list(derivatives(sample, "numpy")), list(derivatives(sample, device))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_array_api_strict(sample):
    check(sample, strict.DEVICE)


@pytest.mark.parametrize("sample", FIRST_OF_OPERATION, ids=lambda sample: sample.name)
@pytest.mark.parametrize("device", ["jax:cpu", "torch:cpu"])
def test_other_libraries(sample, device):
    pytest.importorskip(device.partition(":")[0])
    check(sample, device)
