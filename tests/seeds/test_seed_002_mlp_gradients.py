"""The third document's `Gradients` of an `Mlp`, row by row of what must hold."""

from __future__ import annotations

import copy
import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import losses

GOLDEN = Path(__file__).parents[1] / "mlp" / "golden"
WIDTH = 512
BATCH = 32


def wide_data():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((BATCH, WIDTH)).astype(np.float32)
    return x, generator.standard_normal((BATCH, WIDTH)).astype(np.float32)


def peak_over(turns, function):
    """How far the peak of memory rises over `turns` calls, after two that warm up."""
    tracemalloc.start()
    try:
        function()
        function()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(turns):
            function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


# -- Gradients::new(mlp), allocate once, reuse --------------------------------------------------------


def test_buffers_are_made_once_by_three_names():
    mlp = pb.Mlp([3, 4, 2])
    assert isinstance(mlp.scratch(batch=2), pb.Scratch) and isinstance(mlp.scratch(), pb.Scratch)
    for grads in (mlp.gradients(), mlp.gradients(batch=1), pb.MlpGradients(mlp)):
        assert isinstance(grads, pb.MlpGradients) and grads.batch == 1
    assert pb.MlpGradients(mlp, batch=3).d_output.shape == (3, 2)


def test_forward_backward_loss_clip_and_optimizer_allocate_no_buffer():
    mlp, (x, y) = pb.Mlp([WIDTH, WIDTH, WIDTH]), wide_data()
    scratch, grads = mlp.scratch(BATCH), mlp.gradients(BATCH)
    optimizer = pb.optim.Adam([mlp.parameters], lr=1e-3)

    def step():
        losses.mse(mlp.forward(x, scratch), y, grads)
        mlp.backward(x, scratch, grads)
        grads.clip_global_norm_params(1.0)
        optimizer.step([grads.parameters])

    assert peak_over(100, step) < x.nbytes


def test_the_whole_of_fit_allocates_no_buffer():
    x, y = (np.tile(array, (20, 1)) for array in wide_data())
    mlp = pb.Mlp([WIDTH, WIDTH, WIDTH], "relu")
    memory = []

    def callback(record):
        if record["epoch"] == 2:
            tracemalloc.reset_peak()
            memory.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        mlp.fit(x, y, epochs=5, batch_size=BATCH, clip_norm=1.0, metrics=["mse", "r2"], callback=callback)
        assert tracemalloc.get_traced_memory()[1] - memory[0] < 4 * WIDTH * BATCH
    finally:
        tracemalloc.stop()


# -- forward(input, scratch) -> loss writes d_output -> backward(input, scratch, grads) ---------------


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3)])
def test_the_flow_gives_the_engines_gradients(shape):
    mlp = pb.Mlp([3, 5, 2], activation="tanh", seed=1, dtype=np.float64)
    generator = np.random.default_rng(1)
    x, y = generator.standard_normal(shape), generator.standard_normal((*shape[:-1], 2))
    scratch, grads = mlp.scratch(4), mlp.gradients(4)
    output = mlp.forward(x, scratch)
    grads.d_output[: len(np.atleast_2d(x))] = output - y
    mlp.backward(x, scratch, grads)

    tensors = [pb.tensor(view, requires_grad=True) for i in range(2) for view in (mlp.weights(i), mlp.biases(i))]
    variable = pb.tensor(x, requires_grad=True)
    w0, b0, w1, b1 = tensors
    expected = pb.linear(pb.tanh(pb.linear(variable, w0, b0)), w1, b1)
    (0.5 * pb.sum(pb.square(expected - y))).backward()
    np.testing.assert_allclose(output, expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(grads.d_input, variable.grad.numpy(), rtol=1e-12)
    for i in range(2):
        np.testing.assert_allclose(grads.d_weights(i), tensors[2 * i].grad.numpy(), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(grads.d_biases(i), tensors[2 * i + 1].grad.numpy(), rtol=1e-12, atol=1e-15)


def test_backward_overwrites_and_backward_accumulate_adds():
    mlp = pb.Mlp([3, 5, 2], dtype=np.float64)
    x, scratch, grads = np.ones((2, 3)), mlp.scratch(2), mlp.gradients(2)
    mlp.forward(x, scratch)
    grads.d_output[...] = 1.0
    mlp.backward(x, scratch, grads)
    once = grads.parameters.copy()
    mlp.backward(x, scratch, grads)
    assert np.array_equal(grads.parameters, once)
    mlp.backward_accumulate(x, scratch, grads)
    assert np.array_equal(grads.parameters, 2 * once)


def test_views_are_writable_and_weights_row_major():
    grads = pb.Mlp([3, 5, 2]).gradients(2)
    for view, shape in (
        (grads.d_output, (2, 2)), (grads.d_input, (2, 3)), (grads.d_weights(0), (5, 3)), (grads.d_biases(1), (2,)),
    ):  # fmt: skip
        view[...] = 7.0
        assert view.shape == shape and view.flags.c_contiguous
    assert (grads.d_weights(0) == 7.0).all() and (grads.d_weights(1) == 0.0).all()
    grads.d_weights(0)[1, 2] = -1.0
    assert grads.parameters[1 * 3 + 2] == -1.0


# -- zero_params, scale_params, global_l2_norm_params, clip_global_norm_params -------------------------


def test_zero_scale_and_norm():
    grads = pb.Mlp([2, 1]).gradients()
    grads.d_weights(0)[...] = [1.0, 2.0]
    grads.d_biases(0)[...] = 2.0
    assert grads.global_l2_norm_params() == pytest.approx(3.0)
    grads.scale_params(2.0)
    assert grads.global_l2_norm_params() == pytest.approx(6.0)
    grads.zero_params()
    assert grads.global_l2_norm_params() == 0.0


@pytest.mark.parametrize("size", [1e-30, 1.0, 3e19, 1e37])
def test_clip_returns_the_norm_before_and_is_right_for_every_size(size):
    """The source computes the sum of squares in single precision: gradients of 3e19 become 0 there."""
    grads = pb.Mlp([2, 1]).gradients()
    grads.d_weights(0)[...] = [3 * size, 4 * size]
    assert grads.clip_global_norm_params(size) == pytest.approx(5 * size, rel=1e-6, abs=0)
    np.testing.assert_allclose(grads.d_weights(0), [[0.6 * size, 0.8 * size]], rtol=1e-6)


def test_gradients_within_the_norm_are_left_alone():
    grads = pb.Mlp([2, 1]).gradients()
    grads.d_weights(0)[...] = [0.3, 0.4]
    before = grads.parameters.copy()
    assert grads.clip_global_norm_params(1.0) == pytest.approx(0.5)
    assert np.array_equal(grads.parameters, before)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_clipping_what_is_not_finite_is_a_clear_error(bad):
    grads = pb.Mlp([2, 1]).gradients()
    grads.d_weights(0)[...] = [bad, 1.0]
    with pytest.raises(pb.NumericalInstabilityError, match=r"norm of the gradients is (nan|inf)"):
        grads.clip_global_norm_params(1.0)
    assert grads.d_weights(0)[0, 1] == 1.0


# -- clone, clone_from, debug --------------------------------------------------------------------------


def test_copies_have_their_own_buffers_and_copy_from_allocates_none():
    mlp = pb.Mlp([WIDTH, WIDTH])
    grads, other = mlp.gradients(), mlp.gradients()
    grads.parameters[...] = 1.0
    copied = copy.copy(grads)
    grads.parameters[...] = 2.0
    assert (copied.parameters == 1.0).all()
    assert peak_over(10, lambda: other.copy_from(grads)) < 4 * WIDTH
    assert (other.parameters == 2.0).all() and not np.shares_memory(other.parameters, grads.parameters)
    assert repr(grads).startswith("MlpGradients(512-512, identity, float32, batch=1, norm=")


# -- the library around it ------------------------------------------------------------------------------


def trained(seed):
    generator = np.random.default_rng(2)
    x = generator.standard_normal((70, 3)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    mlp = pb.Mlp.builder(input=3).layer(16, "tanh").layer(2).seed(seed).build()
    schedule = pb.optim.schedules.Cosine(60 * 9)
    history = mlp.fit(
        x, y, epochs=60, batch_size=8, loss="cross_entropy", lr=0.02, schedule=schedule, metrics=["accuracy"], seed=seed
    )
    return mlp, x, y, history


def test_fit_evaluate_and_predict_learn_and_repeat_to_the_bit():
    mlp, x, y, history = trained(1)
    again, _, _, history_again = trained(1)
    assert mlp.parameters.tobytes() == again.parameters.tobytes()
    assert list(history.epochs) == list(history_again.epochs)
    figures = mlp.evaluate(x, y, loss="cross_entropy", metrics=["accuracy", "f1"])
    assert figures["accuracy"] > 0.95 and figures["f1"] > 0.95
    out = np.empty((70, 2), np.float32)
    mlp.predict_into(x, out)
    assert np.array_equal(out, mlp.predict(x))
    assert np.mean(out.argmax(1) == y) == figures["accuracy"]


def test_empty_data_is_a_clear_error():
    mlp = pb.Mlp([3, 2])
    for call in (
        lambda: mlp.fit(np.empty((0, 3)), np.empty((0, 2)), epochs=1),
        lambda: mlp.evaluate(np.empty((0, 3)), []),
    ):
        with pytest.raises(pb.ShapeError, match="there are no samples"):
            call()


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_golden_files_keep_loading(suffix):
    expected = json.loads((GOLDEN / "version_1_expected.json").read_text())
    mlp = pb.Mlp.load(GOLDEN / f"version_1.{suffix}")
    assert mlp.predict(np.array(expected["x"], np.float32)).tolist() == expected["outputs"]


def test_the_short_last_batch_counts_by_its_samples():
    """Two epochs over 5 samples in batches of 3 are the gradient steps of means over 3 and over 2 samples."""
    x = np.arange(5.0)[:, None]
    mlp = pb.Mlp([1, 1], dtype=np.float64, seed=3)
    w = float(mlp.weights(0)[0, 0])
    b = 0.0
    for part in (x[:3], x[3:]):
        error = w * part + b - 2 * part
        w, b = w - 0.01 * float(np.mean(2 * error * part)), b - 0.01 * float(np.mean(2 * error))
    mlp.fit(x, 2 * x, epochs=1, batch_size=3, optimizer="sgd", lr=0.01, shuffle=False)
    assert mlp.parameters == pytest.approx([w, b], rel=1e-12)


# -- traps ----------------------------------------------------------------------------------------------


def test_trap_mean_squared_error_is_the_mean():
    grads = pb.Mlp([1, 4]).gradients(2)
    assert losses.mse(np.full((2, 4), 3.0, np.float32), np.ones((2, 4)), grads) == 4.0
    assert (grads.d_output == 2 * 2.0 / 8).all()


def test_trap_cross_entropy_is_not_divided_by_the_classes():
    grads = pb.Mlp([1, 4]).gradients(2)
    value = losses.cross_entropy(np.zeros((2, 4), np.float32), np.array([0, 3]), grads)
    assert value == pytest.approx(math.log(4))
    np.testing.assert_allclose(grads.d_output, (0.25 - np.eye(4)[[0, 3]]) / 2, rtol=1e-6)


def test_trap_adam_does_not_overwrite_the_gradients():
    mlp = pb.Mlp([3, 2])
    grads = mlp.gradients()
    grads.parameters[...] = np.linspace(-1, 1, grads.parameters.size)
    before, parameters = grads.parameters.copy(), mlp.parameters.copy()
    pb.optim.Adam([mlp.parameters]).step([grads.parameters])
    assert np.array_equal(grads.parameters, before) and not np.array_equal(mlp.parameters, parameters)
