"""After the first steps nothing is allocated that is as large as the smallest buffer."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import losses
from pullback.train import metrics

from .reference import ACTIVATIONS, LOSSES, REFUSED

WIDTH = 256
BATCHES = (1, 3, 16, 64)  # each is computed in another way


class Growth:
    bytes = 0


@contextmanager
def growth():
    """How far the peak of traced memory rises inside the block above what is held at its start."""
    found = Growth()
    tracemalloc.start()
    try:
        yield found
        found.bytes = tracemalloc.get_traced_memory()[1] - found.bytes
    finally:
        tracemalloc.stop()


def peak_of(function, turns):
    """The rise of the peak over `turns` calls, after two that may allocate what is kept."""
    with growth() as found:
        function()
        function()
        tracemalloc.reset_peak()
        found.bytes = tracemalloc.get_traced_memory()[0]
        for _ in range(turns):
            function()
    return found.bytes


def test_the_measure_sees_a_buffer():
    x = np.ones((16, WIDTH), np.float32)
    assert peak_of(lambda: x + x, 3) >= x.nbytes
    assert peak_of(lambda: np.add(x, x[0], x), 3) >= x.nbytes  # NumPy allocates for two shapes


@pytest.mark.parametrize("samples", BATCHES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_forward_and_backward(activation, samples):
    mlp = pb.Mlp([WIDTH, WIDTH, WIDTH, WIDTH], activation, activation)
    x = np.random.default_rng(0).standard_normal((samples, WIDTH)).astype(np.float32)
    scratch, grads, other = mlp.scratch(64), mlp.gradients(64), mlp.gradients(64)

    def step():
        output = mlp.forward(x, scratch)
        grads.d_output[:samples] = output
        mlp.backward(x, scratch, grads)
        mlp.backward_accumulate(x, scratch, grads)
        grads.clip_global_norm_params(1e-3)
        grads.scale_params(0.5)
        other.copy_from(grads)
        grads.zero_params()

    smallest = 4 * WIDTH * max(samples, 4)  # for a single sample, Python's own objects would count
    assert peak_of(step, 20) < smallest


@pytest.mark.parametrize("samples", [1, 16])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss, samples):
    mlp = pb.Mlp([4, WIDTH])
    grads = mlp.gradients(samples)
    generator = np.random.default_rng(0)
    output = generator.standard_normal((samples, WIDTH)).astype(np.float32)
    targets = [np.abs(output)] if loss != "cross_entropy" else [np.abs(output), generator.integers(0, WIDTH, samples)]
    for target in targets:
        assert peak_of(lambda target=target: getattr(losses, loss)(output, target, grads), 20) < 4 * WIDTH * max(
            samples, 4
        )


@pytest.mark.parametrize("size", [1e-30, 1.0, 3e19])
def test_norms_of_every_size(size):
    grads = pb.Mlp([WIDTH, WIDTH]).gradients()

    def clip():
        grads.parameters.fill(size)
        grads.clip_global_norm_params(size)

    assert peak_of(clip, 20) < grads.parameters.nbytes / 16


@pytest.mark.parametrize(
    ("loss", "activation", "optimizer", "output"),
    [
        ("mse", "tanh", "sgd", "identity"),
        ("cross_entropy", "relu", "adam", "identity"),
        ("huber", "gelu", "adamw", "softmax"),
        ("binary_cross_entropy", "silu", "rmsprop", "identity"),
    ],
)
def test_the_whole_of_fit(loss, activation, optimizer, output):
    """Shuffling, gathering, forward, loss, backward, clipping, optimizer, schedule, metrics: 1,000 steps."""
    assert (loss, output) not in REFUSED
    batch = 16
    generator = np.random.default_rng(0)
    x = generator.standard_normal((510 * batch + 5, WIDTH)).astype(np.float32)
    y = generator.standard_normal((len(x), WIDTH)).astype(np.float32)
    watched = ["accuracy", metrics.top_k_accuracy(3), "f1"] if loss == "cross_entropy" else ["mse", "mae", "r2"]
    if loss == "cross_entropy":
        y = generator.integers(0, WIDTH, len(x))
    elif loss == "binary_cross_entropy":
        y = (y > 0).astype(np.float32)
    mlp = pb.Mlp([WIDTH, WIDTH, WIDTH], activation, output)
    probe = Probe(first=4)
    tracemalloc.start()
    try:
        mlp.fit(
            x, y, epochs=2, batch_size=batch, loss=loss, optimizer=optimizer, lr=1e-4, clip_norm=1.0,
            schedule=pb.optim.schedules.Cosine(1100), metrics=[*watched, probe],
        )  # fmt: skip
    finally:
        tracemalloc.stop()
    assert probe.steps > 1000
    assert probe.peak - probe.start < 4 * WIDTH * batch


class Probe(metrics.Metric):
    """Looks at the memory after every step; the peak counts from step `first` on."""

    name = "probe"

    def __init__(self, first):
        self.first, self.steps, self.start, self.peak = first, 0, 0, 0
        super().__init__()

    def reset(self):
        pass

    def update(self, output, target):
        self.steps += 1
        if self.steps == self.first:
            tracemalloc.reset_peak()
            self.start = tracemalloc.get_traced_memory()[0]
        self.peak = tracemalloc.get_traced_memory()[1]

    def compute(self):
        return float(self.steps)


def test_validation_of_fit():
    x = np.random.default_rng(0).standard_normal((64, WIDTH)).astype(np.float32)
    mlp = pb.Mlp([WIDTH, WIDTH])
    found = Growth()

    def callback(record):
        if record["epoch"] == 3:
            tracemalloc.reset_peak()
            found.bytes = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        mlp.fit(x, x, epochs=6, batch_size=16, validation=(x, x), metrics="r2", callback=callback)
        assert tracemalloc.get_traced_memory()[1] - found.bytes < 4 * WIDTH * 16
    finally:
        tracemalloc.stop()


def test_predicting_with_a_scratch():
    mlp = pb.Mlp([WIDTH, WIDTH, WIDTH])
    x, out = np.ones((100, WIDTH), np.float32), np.empty((100, WIDTH), np.float32)
    scratch = mlp.scratch(16)
    assert peak_of(lambda: mlp.predict_into(x, out, scratch), 20) < 4 * WIDTH * 4
