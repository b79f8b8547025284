"""Every sample of the operation suite on other backends: values, gradients and second derivatives are NumPy's."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import creation

from ..operations.harness_samples import SAMPLES
from . import strict
from .installed import require

FIRST_OF_OPERATION = list({sample.operation: sample for sample in reversed(SAMPLES)}.values())


@contextmanager
def everything_on(device):
    """Arrays and numbers that a sample closes over go to `device` too."""
    original, here = creation._of_raw, creation._HERE

    def placed(raw, backend, dtype, wanted, copy):
        return original(raw, backend, dtype, device if wanted is None else wanted, copy)

    creation._of_raw, creation._HERE = placed, ()
    try:
        with pb.device(device):
            yield
    finally:
        creation._of_raw, creation._HERE = original, here


def derivatives(sample, device, orders):
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
        grads = pb.backward(total, create_graph=min(orders, sample.orders) > 1)
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


def tangents(sample, device):
    """Forward mode's derivatives along fixed directions."""
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal(a.shape).astype(a.dtype) for a in sample.arguments]
    with everything_on(device):
        variables = tuple(pb.asarray(a, device=device) for a in sample.arguments)
        _, result = pb.jvp(sample.function, variables, tuple(pb.asarray(d, device=device) for d in directions))
        yield from (out.numpy() for out in (result if isinstance(result, tuple) else (result,)))


def check(found, expected):
    found, expected = list(found), list(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


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
