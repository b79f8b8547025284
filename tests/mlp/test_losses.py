"""Losses agree with Pullback's, write into the first rows of `d_output`, and refuse what they cannot be given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import losses

from .reference import LOSSES


def engine(loss, output, target):
    x = pb.tensor(output, requires_grad=True)
    value = LOSSES[loss](x, target)
    value.backward()
    return value.item(), x.grad.numpy()


def computed(loss, output, target, batch=None):
    width = output.shape[-1]
    grads = pb.Mlp([2, width], dtype=output.dtype).gradients(batch or len(output))
    grads.d_output[...] = 7.0
    return getattr(losses, loss)(output, target, grads), grads.d_output


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-13)])
def test_values_and_gradients_equal_the_engines(loss, scale, dtype, tolerance):
    generator = np.random.default_rng(0)
    output = (generator.standard_normal((6, 4)) * scale).astype(dtype)
    targets = {
        "cross_entropy": [
            generator.integers(0, 4, 6),
            generator.dirichlet(np.ones(4), 6).astype(dtype),
            generator.random((6, 4)).astype(dtype),
        ],
        "binary_cross_entropy": [generator.integers(0, 2, (6, 4)), generator.random((6, 4)).astype(dtype)],
    }.get(loss, [(generator.standard_normal((6, 4)) * scale).astype(dtype), output.copy()])
    for target in targets:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, d_output = computed(loss, output, target)
        expected, gradient = engine(loss, output, target)
        assert value == pytest.approx(expected, rel=10 * tolerance, abs=tolerance)
        np.testing.assert_allclose(
            d_output, gradient, rtol=10 * tolerance, atol=tolerance * max(1, np.abs(gradient).max())
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_short_batch_writes_its_own_rows_alone(loss):
    output = np.random.default_rng(1).standard_normal((2, 3))
    target = np.array([2, 0]) if loss == "cross_entropy" else np.ones((2, 3))
    value, d_output = computed(loss, output, target, batch=5)
    assert value == pytest.approx(engine(loss, output, target)[0])
    assert (d_output[2:] == 7.0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_sample_without_an_axis_for_it(loss):
    output = np.array([0.5, -1.0, 2.0])
    target = 2 if loss == "cross_entropy" else np.array([0.0, 1.0, 1.0])
    value, d_output = computed(loss, output, target, batch=1)
    expected, gradient = engine(loss, output[None], np.asarray(target)[None])
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(d_output, gradient, rtol=1e-12)


def test_means_are_over_elements_and_over_samples():
    """The mean squared error is the mean; cross-entropy is not divided by the classes."""
    value, d_output = computed("mse", np.full((2, 4), 3.0), np.ones((2, 4)))
    assert value == 4.0 and (d_output == 2 * 2 / 8).all()
    value, d_output = computed("cross_entropy", np.zeros((2, 4)), np.array([0, 1]))
    assert value == pytest.approx(np.log(4)) and d_output[0, 1] == pytest.approx(0.25 / 2)


@pytest.mark.parametrize(("loss", "output"), [("cross_entropy", "softmax"), ("binary_cross_entropy", "sigmoid")])
def test_probabilities_are_refused_where_logits_are_taken(loss, output):
    mlp = pb.Mlp([2, 3], output=output)
    grads = mlp.gradients()
    with pytest.raises(pb.ConfigurationError, match=f'applies {output} itself.*output="identity"'):
        getattr(losses, loss)(np.ones(3, np.float32), np.ones(3, np.float32), grads)
    with pytest.raises(pb.ConfigurationError, match=f"applies {output} itself"):
        mlp.fit(np.ones((4, 2)), np.ones((4, 3)), epochs=1, loss=loss)


@pytest.mark.parametrize(
    ("loss", "output", "target", "error", "match"),
    [
        (
            "mse",
            np.ones((2, 3)),
            np.ones((2, 4)),
            pb.ShapeError,
            r"target has shape \(2, 4\), output has shape \(2, 3\)",
        ),
        ("mse", np.ones((2, 3)), np.ones(3), pb.ShapeError, "target has shape"),
        ("mse", np.ones((2, 3)), np.ones((2, 3), complex), pb.DtypeError, "real numbers, got complex128"),
        ("mse", np.ones((2, 3), np.float32), np.ones((2, 3)), pb.DtypeError, "must be a float64 array"),
        ("mse", np.ones((2, 2)), np.ones((2, 2)), pb.ShapeError, r"expected \(3,\) or \(samples, 3\)"),
        ("mse", np.ones((5, 3)), np.ones((5, 3)), pb.ShapeError, "5 samples; these gradients take from 1 to 4"),
        ("mse", np.ones((0, 3)), np.ones((0, 3)), pb.ShapeError, "0 samples"),
        ("cross_entropy", np.ones((2, 3)), np.array([0, 3]), pb.ShapeError, "targets from 0 to 3 for 3 classes"),
        ("cross_entropy", np.ones((2, 3)), np.array([-1, 0]), pb.ShapeError, "targets from -1"),
        ("cross_entropy", np.ones((2, 3)), np.array([0.0, 1.0]), pb.ShapeError, "target has shape"),
    ],
)
def test_wrong_arguments_are_refused_and_change_nothing(loss, output, target, error, match):
    grads = pb.Mlp([2, 3], dtype=np.float64).gradients(4)
    with pytest.raises(error, match=match):
        getattr(losses, loss)(output, target, grads)
    assert not grads.d_output.any()
