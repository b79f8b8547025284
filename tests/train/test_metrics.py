"""Metrics over batches equal scikit-learn's over the whole, on tensors and arrays of every library."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.train import metrics

from ..backends.installed import optional

torch = optional("torch")
reference = optional("sklearn.metrics")

CLASSES = 5


def in_batches(metric, output, target, size=7):
    for start in range(0, len(output), size):
        metric.update(output[start : start + size], target[start : start + size])
    return metric.compute()


@pytest.fixture
def scores():
    generator = np.random.default_rng(0)
    target = generator.integers(0, CLASSES, 40)
    return generator.standard_normal((40, CLASSES)) + np.eye(CLASSES)[target], target


@pytest.fixture
def numbers():
    generator = np.random.default_rng(1)
    target = 1e4 + generator.standard_normal((40, 3))
    return target + generator.standard_normal((40, 3)) * 0.3, target


EXPECTED_OF_CLASSES = {
    "accuracy": (metrics.accuracy, lambda x, t: reference.accuracy_score(t, x.argmax(1))),
    "top 1": (lambda: metrics.top_k_accuracy(1), lambda x, t: reference.accuracy_score(t, x.argmax(1))),
    "top 3": (lambda: metrics.top_k_accuracy(3), lambda x, t: reference.top_k_accuracy_score(t, x, k=3)),
    "top all": (lambda: metrics.top_k_accuracy(9), lambda x, t: 1.0),
    "f1": (metrics.f1, lambda x, t: reference.f1_score(t, x.argmax(1), average="macro")),
}
EXPECTED_OF_NUMBERS = {
    "mse": (metrics.mse, reference.mean_squared_error),
    "mae": (metrics.mae, reference.mean_absolute_error),
    "r2": (metrics.r2, reference.r2_score),
}


@pytest.mark.parametrize("name", EXPECTED_OF_CLASSES)
def test_classes_agree_with_scikit_learn(scores, name):
    make, expected = EXPECTED_OF_CLASSES[name]
    assert in_batches(make(), *scores) == pytest.approx(expected(*scores), abs=1e-12)


@pytest.mark.parametrize("name", EXPECTED_OF_NUMBERS)
def test_numbers_agree_with_scikit_learn(numbers, name):
    make, expected = EXPECTED_OF_NUMBERS[name]
    output, target = numbers
    assert in_batches(make(), output, target) == pytest.approx(expected(target, output), rel=1e-9)


@pytest.mark.parametrize("name", EXPECTED_OF_CLASSES)
def test_one_hot_targets_and_ignored_ones(scores, name):
    make, expected = EXPECTED_OF_CLASSES[name]
    output, target = scores
    assert in_batches(make(), output, np.eye(CLASSES)[target]) == pytest.approx(expected(output, target))
    ignored = np.where(np.arange(40) % 3 == 0, -100, target)
    kept = ignored != -100
    assert in_batches(make(), output, ignored) == pytest.approx(expected(output[kept], target[kept]))


@pytest.mark.parametrize("name", EXPECTED_OF_CLASSES)
def test_positions_beyond_the_samples_are_samples_too(scores, name):
    make, _ = EXPECTED_OF_CLASSES[name]
    output, target = scores
    flat, shaped = make(), make()
    flat.update(output, target)
    shaped.update(np.moveaxis(output.reshape(8, 5, CLASSES), -1, 1), target.reshape(8, 5))
    assert shaped.compute() == flat.compute()


@pytest.mark.parametrize("make", [np.asarray, torch.tensor, pb.tensor, lambda x: pb.tensor(x, requires_grad=True)])
def test_arrays_of_every_library(make):
    metric = metrics.mse()
    metric.update(make(np.array([1.0, 2.0])), np.array([1.0, 4.0]))
    assert metric.compute() == 2.0


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
@pytest.mark.parametrize(("threshold", "shift"), [(0.0, 0.0), (0.5, 0.5)])
def test_single_output_is_a_score_for_class_one(shape, threshold, shift):
    output = np.array([3.0, -1.0, 2.0, -2.0, 0.5, -0.1]).reshape(shape) + shift
    target = np.array([1, 1, 0, 0, 1, 0])
    chosen = (output.reshape(-1) > threshold).astype(int)
    for target_shape in ((6,), shape):
        accuracy, f1 = metrics.accuracy(threshold), metrics.f1(threshold)
        accuracy.update(output, target.reshape(target_shape))
        f1.update(output, target.reshape(target_shape))
        assert accuracy.compute() == pytest.approx(np.mean(chosen == target))
        assert f1.compute() == pytest.approx(reference.f1_score(target, chosen))


def test_equal_scores_are_ranked_by_class_and_nan_is_no_hit():
    metric = metrics.top_k_accuracy(2)
    metric.update(np.zeros((3, 4)), np.array([0, 1, 2]))
    assert metric.compute() == pytest.approx(2 / 3)
    metric.reset()
    metric.update(np.full((2, 4), np.nan), np.array([0, 1]))
    assert metric.compute() == 0.0


def test_constant_targets():
    right, wrong = metrics.r2(), metrics.r2()
    right.update(np.ones(4), np.ones(4))
    wrong.update(np.zeros(4), np.ones(4))
    assert (right.compute(), wrong.compute()) == (1.0, 0.0)


@pytest.mark.parametrize("make", [*(make for make, _ in EXPECTED_OF_CLASSES.values()), metrics.mse, metrics.r2])
def test_reset_forgets_and_nothing_is_an_error(make, scores, numbers):
    metric = make()
    data = numbers if isinstance(metric, metrics.mse | metrics.r2) else scores
    first = in_batches(metric, *data)
    metric.reset()
    with pytest.raises(pb.ShapeError, match="no samples"):
        metric.compute()
    assert in_batches(metric, *data) == first


@pytest.mark.parametrize(
    ("metric", "output", "target", "error", "match"),
    [
        (metrics.accuracy, np.zeros((3, 2)), np.array([0, 1]), pb.ShapeError, "expected \\(3,\\)"),
        (metrics.accuracy, np.zeros((3, 2)), np.array([0, 1, 2]), pb.ShapeError, "targets from 0 to 2 for 2 classes"),
        (metrics.accuracy, np.zeros((3, 2)), np.array([0, -1, 1]), pb.ShapeError, "from -1"),
        (metrics.accuracy, np.zeros((3, 2)), np.array([0.0, 1, 1]), pb.DtypeError, "must be integers"),
        (metrics.top_k_accuracy, np.zeros(3), np.array([0, 1, 1]), pb.ShapeError, "single output"),
        (metrics.mse, np.zeros((3, 2)), np.zeros(3), pb.ShapeError, "must be equal"),
        (metrics.r2, np.zeros(3), np.zeros((3, 2)), pb.ShapeError, "must be equal"),
    ],
)
def test_wrong_targets_are_refused(metric, output, target, error, match):
    with pytest.raises(error, match=match):
        metric().update(output, target)


def test_collect_takes_names_metrics_and_dictionaries():
    assert metrics.collect(None) == {}
    assert list(metrics.collect("accuracy")) == ["accuracy"]
    found = metrics.collect({"error": metrics.mae, "top": metrics.top_k_accuracy(2)})
    assert [type(metric) for metric in found.values()] == [metrics.mae, metrics.top_k_accuracy]
    wrong = {
        "no metric 'acuracy'; there are accuracy": ["acuracy"],
        "two metrics": ["mse", "mse"],
        "update, compute and reset": [math.sqrt],
        "expected names or metrics": 3,
    }
    for match, given in wrong.items():
        with pytest.raises(pb.ConfigurationError, match=match):
            metrics.collect(given)


def test_large_offsets_do_not_cancel():
    """The variance around a mean of 1e8, which a difference of sums of squares would lose."""
    generator = np.random.default_rng(2)
    target = 1e8 + generator.standard_normal(1000)
    output = target + 0.1 * generator.standard_normal(1000)
    assert in_batches(metrics.r2(), output, target) == pytest.approx(reference.r2_score(target, output), rel=1e-6)


@pytest.mark.parametrize("name", ["accuracy", "top_k_accuracy", "f1", "mse", "mae", "r2"])
def test_batches_after_the_first_allocate_little(name):
    generator = np.random.default_rng(3)
    output = generator.standard_normal((512, 64)).astype(np.float32)
    target = generator.integers(0, 64, 512) if name in ("accuracy", "top_k_accuracy", "f1") else output * 0.5
    (metric,) = metrics.collect(name).values()
    metric.update(output, target)
    tracemalloc.start()
    try:
        metric.update(output, target)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            metric.update(output, target)
        assert tracemalloc.get_traced_memory()[1] - before < output.nbytes / 8
    finally:
        tracemalloc.stop()


def test_classes_along_the_last_axis_are_refused():
    with pytest.raises(pb.ShapeError, match=r"shape \(2, 3\), expected \(2, 5\).*Classes are along axis 1"):
        metrics.accuracy().update(np.zeros((2, 3, 5)), np.zeros((2, 3), int))


@pytest.mark.parametrize("name", ["accuracy", "f1"])
def test_probabilities_of_class_one_are_rounded_and_a_nan_is_refused(name):
    metric = metrics.collect(name)[name]
    metric.update(np.array([2.0, 1.0, -1.0, -3.0]), np.array([0.9, 0.6, 0.4, 0.0], np.float32))
    assert metric.compute() == 1.0
    with pytest.raises(pb.ShapeError, match="targets must be finite, got nan"):
        metric.update(np.array([2.0]), np.array([np.nan]))
