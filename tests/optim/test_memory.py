"""After the first step nothing as large as a layer is allocated, and nothing a step allocates survives it."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb

from .test_backends import OPTIMIZERS
from .test_optimizer import ELEMENTWISE, make

WIDE = ((60, 2000), (2000,), (2000, 30))
SMALLEST = 2000 * 4  # bytes


@pytest.mark.parametrize("kind", ["tensors", "arrays"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_step_allocates_no_array(name, kind):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in WIDE]
    gradients = [rng.standard_normal(shape).astype(np.float32) for shape in WIDE]
    params = [pb.tensor(a, requires_grad=True) for a in arrays] if kind == "tensors" else arrays
    optimizer = make(name, params)
    for _ in range(2):
        optimizer.step(gradients)
    gc.collect()
    tracemalloc.start()
    try:
        optimizer.step(gradients)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        optimizer.step(gradients)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < SMALLEST
    assert after - before < SMALLEST / 10


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_of_a_training_step_survives_it(name):
    shapes = ((40, 30), (30, 25))
    rng = np.random.default_rng(0)
    tensors = [pb.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]
    x = pb.tensor(rng.standard_normal((50, 40)))
    optimizer = make(name, tensors)

    def train():
        optimizer.zero_grad()
        (pb.tanh(x @ tensors[0]) @ tensors[1]).mean().backward()
        optimizer.step()

    for _ in range(3):
        train()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        train()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            train()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert after - before < 30 * 25 * 8
