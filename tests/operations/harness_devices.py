"""Samples on another device: values, gradients, second derivatives and tangents, to compare with NumPy's.

It needs nothing but NumPy, so that a backend outside of this repository can be held to the suite, too.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import pullback as pb
from pullback.autodiff import creation


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


def compare(sample, device, orders=2):
    """Raise an AssertionError where a sample's values or derivatives on `device` are not NumPy's."""
    check(derivatives(sample, device, orders), derivatives(sample, "numpy", orders))


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
