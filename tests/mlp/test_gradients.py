"""Gradients equal the engine's, for every activation, output, loss and way of computing."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import losses
from pullback.mlp.scratch import _is_turned

from ..backends.installed import optional
from . import reference
from .reference import ACTIVATIONS, LOSSES, REFUSED

torch = optional("torch")

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}


def assert_close(actual, expected, tolerance):
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def check_against_engine(mlp, x, target, loss, batch=None):
    samples = len(x)
    scratch, grads = mlp.scratch(batch or samples), mlp.gradients(batch or samples)
    output = mlp.forward(x, scratch)
    value = getattr(losses, loss)(output, target, grads)
    mlp.backward(x, scratch, grads)
    expected = reference.gradients_of(mlp, x, target, loss)
    for actual, right in zip((value, output, grads.parameters, grads.d_input), expected):
        assert_close(actual, right, TOLERANCE[mlp.dtype.type])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("output", ACTIVATIONS)
@pytest.mark.parametrize("hidden", ACTIVATIONS)
def test_gradients_equal_the_engines(hidden, output, dtype):
    generator = np.random.default_rng(0)
    mlp = reference.network([5, 7, 6, 3], hidden, output, dtype)
    for loss in LOSSES:
        if (loss, output) in REFUSED:
            continue
        for samples in (1, 3, 8):
            x = generator.standard_normal((samples, 5)).astype(dtype)
            check_against_engine(mlp, x, reference.target_for(loss, samples, 3, dtype, generator), loss, batch=8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("samples", [1, 2, 6, 48, 64, 130])
@pytest.mark.parametrize("hidden", ["tanh", "gelu"])
def test_wide_layers_are_computed_in_other_ways_with_the_same_results(hidden, samples, dtype):
    """Products turned around, in parts, with a row of zeros, and derivatives of several layers at once."""
    generator = np.random.default_rng(1)
    mlp = reference.network([70, 130, 140, 256, 9], hidden, "identity", dtype)
    assert _is_turned(samples, 70, 130) == (5 <= samples <= 48)
    x = generator.standard_normal((samples, 70)).astype(dtype)
    check_against_engine(mlp, x, reference.target_for("mse", samples, 9, dtype, generator), "mse")


def test_per_layer_activations():
    generator = np.random.default_rng(2)
    builder = pb.Mlp.builder(input=5).dtype(np.float64).seed(3)
    for size, activation in enumerate(ACTIVATIONS, start=4):
        builder.layer(size, activation)
    mlp = builder.layer(3).build()
    assert mlp.activations == (*ACTIVATIONS, "identity")
    x = generator.standard_normal((4, 5))
    check_against_engine(mlp, x, generator.standard_normal((4, 3)), "mse")


@pytest.mark.parametrize("hidden", ACTIVATIONS)
def test_gradients_equal_finite_differences(hidden):
    generator = np.random.default_rng(3)
    mlp = reference.network([4, 6, 3], hidden, "tanh", np.float64)
    x, cotangent = generator.standard_normal((3, 4)), generator.standard_normal((3, 3))
    scratch, grads = mlp.scratch(3), mlp.gradients(3)
    mlp.forward(x, scratch)
    grads.d_output[...] = cotangent
    mlp.backward(x, scratch, grads)

    def value():
        return float(np.sum(mlp.forward(x, scratch) * cotangent))

    for array, gradient in ((mlp.parameters, grads.parameters), (x.reshape(-1), grads.d_input.reshape(-1))):
        for i in range(array.size):
            before = array[i]
            array[i] = before + 1e-6
            above = value()
            array[i] = before - 1e-6
            below = value()
            array[i] = before
            assert gradient[i] == pytest.approx((above - below) / 2e-6, rel=1e-6, abs=1e-8)


def test_gradients_equal_torchs():
    generator = np.random.default_rng(4)
    mlp = reference.network([6, 8, 5], "gelu", "identity", np.float64)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 5)).double()
    state = mlp.state_dict()
    with torch.no_grad():
        for number, layer in ((0, model[0]), (1, model[2])):
            layer.weight.copy_(torch.tensor(state[f"layers.{number}.weight"]))
            layer.bias.copy_(torch.tensor(state[f"layers.{number}.bias"]))
    x, target = generator.standard_normal((7, 6)), generator.integers(0, 5, 7)
    loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(target))
    loss.backward()
    scratch, grads = mlp.scratch(7), mlp.gradients(7)
    assert losses.cross_entropy(mlp.forward(x, scratch), target, grads) == pytest.approx(loss.item(), rel=1e-12)
    mlp.backward(x, scratch, grads)
    for number, layer in ((0, model[0]), (1, model[2])):
        assert_close(grads.d_weights(number), layer.weight.grad.numpy(), 1e-13)
        assert_close(grads.d_biases(number), layer.bias.grad.numpy(), 1e-13)


# -- shapes and meanings --------------------------------------------------------------------------------


@pytest.fixture
def mlp():
    return reference.network([4, 6, 3], "tanh", "identity", np.float64)


def walk(mlp, x, scratch, grads, cotangent=1.0):
    output = mlp.forward(x, scratch)
    grads.d_output[: np.atleast_2d(x).shape[0]] = cotangent
    mlp.backward(x, scratch, grads)
    return output


def test_one_sample_is_a_batch_of_one(mlp):
    x = np.linspace(-1, 1, 4)
    scratch, grads, other = mlp.scratch(), mlp.gradients(), mlp.gradients()
    output = walk(mlp, x, scratch, grads).copy()
    assert output.shape == (3,) and grads.d_input.shape == (4,)
    rows = walk(mlp, x[None], scratch, other)
    assert rows.shape == (1, 3) and other.d_input.shape == (1, 4)
    assert np.array_equal(rows[0], output) and np.array_equal(grads.parameters, other.parameters)
    assert np.array_equal(grads.d_input, other.d_input[0])


@pytest.mark.parametrize("sizes", [[4, 6, 3], [70, 130, 3]])
def test_buffers_serve_batches_of_every_size_in_turn(sizes):
    generator = np.random.default_rng(5)
    mlp = reference.network(sizes, "silu", "identity", np.float64)
    scratch, grads = mlp.scratch(9), mlp.gradients(9)
    for samples in (9, 1, 5, 2, 9, 1, 8):
        x = generator.standard_normal((samples, sizes[0]))
        cotangent = generator.standard_normal((samples, 3))
        output = walk(mlp, x, scratch, grads, cotangent)
        fresh_scratch, fresh = mlp.scratch(samples), mlp.gradients(samples)
        assert np.array_equal(output, walk(mlp, x, fresh_scratch, fresh, cotangent))
        assert np.array_equal(grads.parameters, fresh.parameters)
        assert np.array_equal(grads.d_input, fresh.d_input)


def test_backward_overwrites_and_can_be_repeated(mlp):
    x = np.random.default_rng(6).standard_normal((3, 4))
    scratch, grads = mlp.scratch(3), mlp.gradients(3)
    walk(mlp, x, scratch, grads)
    first = grads.parameters.copy()
    mlp.backward(x, scratch, grads)
    assert np.array_equal(grads.parameters, first)
    assert (grads.d_output == 1).all()


@pytest.mark.parametrize("output", ["identity", "tanh", "softmax"])
def test_backward_leaves_d_output_alone(output):
    mlp = reference.network([4, 6, 3], "tanh", output, np.float64)
    scratch, grads = mlp.scratch(2), mlp.gradients(2)
    cotangent = np.arange(6.0).reshape(2, 3)
    walk(mlp, np.ones((2, 4)), scratch, grads, cotangent)
    assert np.array_equal(grads.d_output, cotangent)


def test_accumulating_adds(mlp):
    generator = np.random.default_rng(7)
    first, second = generator.standard_normal((3, 4)), generator.standard_normal((2, 4))
    scratch, grads, other = mlp.scratch(3), mlp.gradients(3), mlp.gradients(3)
    walk(mlp, first, scratch, grads)
    walk(mlp, second, scratch, other)
    expected = grads.parameters + other.parameters
    mlp.backward_accumulate(second, scratch, grads)
    assert np.array_equal(grads.parameters, expected)
    assert np.array_equal(grads.d_input, other.d_input)
    mlp.backward(second, scratch, grads)
    assert np.array_equal(grads.parameters, other.parameters)


def test_without_the_inputs_gradient(mlp):
    x = np.ones((2, 4))
    scratch, grads, bare = mlp.scratch(2), mlp.gradients(2), mlp.gradients(2, input_gradient=False)
    walk(mlp, x, scratch, grads)
    walk(mlp, x, scratch, bare)
    assert np.array_equal(grads.parameters, bare.parameters)
    with pytest.raises(pb.ShapeError, match="input_gradient=False"):
        _ = bare.d_input


def test_views_are_of_one_vector_and_can_be_written(mlp):
    grads = mlp.gradients()
    for owner, weights, biases in ((mlp, mlp.weights, mlp.biases), (grads, grads.d_weights, grads.d_biases)):
        flat = owner.parameters
        flat[...] = np.arange(flat.size)
        joined = np.concatenate([view.ravel() for layer in range(2) for view in (weights(layer), biases(layer))])
        assert np.array_equal(joined, flat) and flat.flags.c_contiguous
        weights(1)[0, 0] = -1.0
        biases(-1)[2] = -2.0
        assert flat[6 * 4 + 6] == -1.0 and flat[-1] == -2.0
        assert weights(0).shape == (6, 4) and weights(0).flags.c_contiguous
        with pytest.raises(pb.IndexingError, match="layer 2 is not one of the 2 layers"):
            weights(2)


def test_changed_weights_are_seen(mlp):
    x, scratch = np.ones(4), mlp.scratch()
    before = mlp.forward(x, scratch).copy()
    mlp.biases(1)[...] += 1.0
    np.testing.assert_allclose(mlp.forward(x, scratch), before + 1.0, rtol=1e-14)


@pytest.mark.parametrize("hidden", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_inputs_neither_warn_nor_give_nan(hidden, dtype):
    mlp = pb.Mlp([2, 2], output=hidden, dtype=dtype)
    mlp.weights(0)[...] = np.eye(2)
    x = np.array([[1e4, -1e4], [-300, 300], [0, 0]], dtype)
    scratch, grads = mlp.scratch(3), mlp.gradients(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = walk(mlp, x, scratch, grads)
    assert np.isfinite(output).all() and np.isfinite(grads.parameters).all() and np.isfinite(grads.d_input).all()
    expected = x if hidden == "identity" else getattr(pb, hidden)(pb.tensor(x)).numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-6, atol=1e-33)


@pytest.mark.parametrize("value", [-6.0, -3.0, -0.5, 0.5, 3.0, 6.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-6), (np.float64, 1e-13)])
def test_gelu_is_exact_also_in_its_tail(value, dtype, tolerance):
    mlp = pb.Mlp([1, 1], output="gelu", dtype=dtype)
    mlp.weights(0)[...] = 1.0
    output = float(mlp.forward(np.array([value], dtype), mlp.scratch())[0])
    assert output == pytest.approx(value * 0.5 * math.erfc(-value / math.sqrt(2)), rel=tolerance)


# -- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "error", "match"),
    [
        (np.ones(5), pb.ShapeError, r"x has shape \(5,\), expected \(4,\) or \(samples, 4\)"),
        (np.ones((2, 5)), pb.ShapeError, r"\(2, 5\)"),
        (np.ones((1, 1, 4)), pb.ShapeError, r"\(1, 1, 4\)"),
        (np.float64(1.0), pb.DtypeError, "NumPy array"),
        (np.ones((0, 4)), pb.ShapeError, "0 samples; this scratch takes from 1 to 2"),
        (np.ones((3, 4)), pb.ShapeError, r"Write `mlp.scratch\(batch=3\)`"),
        (np.ones(4, np.float32), pb.DtypeError, r"Write `x.astype\(np.float64\)`"),
        ([1.0, 2.0, 3.0, 4.0], pb.DtypeError, "must be a NumPy array, got list"),
        (pb.ones(4), pb.DtypeError, "got Tensor"),
    ],
)
def test_wrong_inputs_are_refused(mlp, x, error, match):
    scratch = mlp.scratch(2)
    with pytest.raises(error, match=match):
        mlp.forward(x, scratch)
    mlp.forward(np.ones((2, 4)), scratch)
    with pytest.raises(error, match=match):
        mlp.forward(x, scratch)


def test_wrong_order_and_strangers_are_refused(mlp):
    x, scratch, grads = np.ones(4), mlp.scratch(2), mlp.gradients()
    with pytest.raises(pb.GradientError, match=r"Call `mlp.forward` first"):
        mlp.backward(x, scratch, grads)
    mlp.forward(x, scratch)
    with pytest.raises(pb.ShapeError, match="Pass the same x"):
        mlp.backward(np.ones((1, 4)), scratch, grads)
    other = pb.Mlp([4, 6, 3], dtype=np.float64)
    for call in (other.forward, lambda x, s: other.backward(x, s, grads)):
        with pytest.raises(pb.ShapeError, match="belongs to another Mlp"):
            call(x, scratch)
    with pytest.raises(pb.ShapeError, match="these gradients are for 4-5-3"):
        mlp.backward(x, scratch, pb.Mlp([4, 5, 3], dtype=np.float64).gradients())
    mlp.forward(np.ones((2, 4)), scratch)
    with pytest.raises(pb.ShapeError, match=r"mlp.gradients\(batch=2\)"):
        mlp.backward(np.ones((2, 4)), scratch, grads)
    assert not grads.parameters.any()


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (([4],), {}, "at least"),
        (([],), {}, "at least"),
        ((4, 2), {}, r"list of sizes, such as \[4, 16, 1\], got 4"),
        (([4, 0],), {}, "positive integer, got 0"),
        (([4, 2.5],), {}, "positive integer, got float"),
        (([4, 2, 1],), {"activation": "rleu"}, "no activation 'rleu'; there are identity"),
        (([4, 2],), {"dtype": np.float16}, "float32 or float64, not in float16"),
        (([4, 2],), {"dtype": np.int64}, "float32 or float64"),
    ],
)
def test_wrong_networks_are_refused(arguments, options, match):
    with pytest.raises(pb.PullbackError, match=match):
        pb.Mlp(*arguments, **options)


def test_wrong_buffers_are_refused(mlp):
    for make in (mlp.scratch, mlp.gradients):
        for batch in (0, -1, 1.5, None):
            with pytest.raises(pb.PullbackError, match="batch must be a positive integer"):
                make(batch)
    with pytest.raises(pb.ConfigurationError, match="no layer yet"):
        pb.Mlp.builder(3).build()


# -- norms, copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-42, 1e-30, 1e-22, 1e-20, 1.0, 3e19, 1e30, 3e37])
@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 1e30])
def test_norm_and_clipping_at_every_size(size, max_norm, dtype):
    grads = pb.Mlp([30, 40, 2], dtype=dtype).gradients()
    grads.parameters[...] = np.linspace(-1, 1, grads.parameters.size) * size
    before = grads.parameters.astype(np.longdouble)
    expected = float(np.sqrt(np.sum(before**2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        norm = grads.clip_global_norm_params(max_norm)
    assert norm == pytest.approx(expected, rel=1e-6, abs=0)
    factor = min(1.0, max_norm / expected)
    smallest = float(np.finfo(dtype).smallest_subnormal)
    np.testing.assert_allclose(grads.parameters, (before * factor).astype(dtype), rtol=1e-5, atol=4 * smallest)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_clipping_what_is_not_finite_is_an_error_and_changes_nothing(bad):
    grads = pb.Mlp([3, 4, 2]).gradients()
    grads.parameters[...] = 2.0
    grads.d_weights(1)[1, 2] = bad
    before = grads.parameters.copy()
    with pytest.raises(pb.NumericalInstabilityError, match=r"the norm of the gradients is (nan|inf)"):
        grads.clip_global_norm_params(1.0)
    assert np.array_equal(grads.parameters, before, equal_nan=True)
    assert not math.isfinite(grads.global_l2_norm_params())


@pytest.mark.parametrize("max_norm", [0.0, -1.0, math.nan])
def test_a_norm_to_clip_to_must_be_positive(max_norm):
    grads = pb.Mlp([3, 2]).gradients()
    with pytest.raises(ValueError, match="max_norm must be positive"):
        grads.clip_global_norm_params(max_norm)


def test_zeroing_and_scaling(mlp):
    grads = mlp.gradients()
    grads.parameters[...] = 3.0
    grads.d_output[...] = 5.0
    grads.scale_params(-0.5)
    assert (grads.parameters == -1.5).all()
    with pytest.raises(ValueError, match="must be finite"):
        grads.scale_params(math.inf)
    assert (grads.parameters == -1.5).all()
    grads.zero_params()
    assert not grads.parameters.any() and (grads.d_output == 5.0).all()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_have_buffers_of_their_own(mlp, copied):
    x, scratch, grads = np.linspace(-1, 1, 4), mlp.scratch(), mlp.gradients()
    walk(mlp, x, scratch, grads)
    other = copied(grads)
    for name in ("parameters", "d_output", "d_input"):
        assert np.array_equal(getattr(other, name), getattr(grads, name))
        assert not np.shares_memory(getattr(other, name), getattr(grads, name))
    grads.zero_params()
    mlp.backward(x, scratch, other)
    assert other.parameters.any() and not grads.parameters.any()


def test_copy_from_refuses_other_shapes(mlp):
    grads = mlp.gradients(2)
    for other in (mlp.gradients(3), pb.Mlp([4, 6, 3]).gradients(2), mlp.gradients(2, input_gradient=False)):
        with pytest.raises(pb.ShapeError, match="copy_from: cannot copy"):
            grads.copy_from(other)
    with pytest.raises(pb.DtypeError, match="expected MlpGradients, got int"):
        grads.copy_from(3)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda mlp: pickle.loads(pickle.dumps(mlp))])
def test_copied_networks(mlp, copied):
    other = copied(mlp)
    assert np.array_equal(other.parameters, mlp.parameters) and repr(other) == repr(mlp)
    other.parameters[...] = 0
    assert mlp.parameters.any()


def test_threads_share_a_network_each_with_its_own_buffers():
    mlp = reference.network([70, 130, 130, 4], "gelu", "identity", np.float64)
    inputs = np.random.default_rng(8).standard_normal((4, 16, 70))

    def gradients(x):
        scratch, grads = mlp.scratch(16), mlp.gradients(16)
        for _ in range(20):
            walk(mlp, x, scratch, grads)
        return grads.parameters

    expected = [gradients(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for actual, right in zip(pool.map(gradients, inputs), expected):
            assert np.array_equal(actual, right)


def test_representations(mlp):
    assert repr(mlp) == "Mlp(4-6-3, tanh, identity, float64)"
    assert repr(mlp.scratch(2)) == "Scratch(4-6-3, tanh, identity, float64, batch=2)"
    assert repr(mlp.gradients(2)) == "MlpGradients(4-6-3, tanh, identity, float64, batch=2, norm=0)"


def test_starting_weights_depend_on_the_seed_alone():
    def made(seed):
        return pb.Mlp([30, 40, 5], "relu", seed=seed).parameters

    np.random.seed(0)
    pb.random.seed(0)
    first = made(1)
    np.random.seed(1)
    pb.random.seed(1)
    assert np.array_equal(made(1), first) and not np.array_equal(made(2), first)
    assert not np.array_equal(made(None), made(None))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [(name, 2 / 200 if name in ("relu", "leaky_relu", "gelu", "silu") else 2 / 500) for name in ACTIVATIONS],
)
def test_starting_weights_have_the_spread_that_fits(activation, expected):
    mlp = pb.Mlp([200, 300, 1], activation, seed=1, dtype=np.float64)
    assert np.var(mlp.weights(0)) == pytest.approx(expected, rel=0.03)
    assert not mlp.biases(0).any()


def test_state_dict_round_trip_is_all_or_nothing(mlp):
    state = mlp.state_dict()
    assert list(state) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    other = pb.Mlp([4, 6, 3], dtype=np.float64, seed=9)
    other.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    assert np.array_equal(other.parameters, mlp.parameters)
    bad = dict.fromkeys(state, np.zeros((6, 4)))
    for wrong, match in (
        ({}, "missing layers.0.weight"),
        ({**state, "more": 1}, "unexpected more"),
        (bad, "layers.0.bias has shape"),
    ):
        with pytest.raises(pb.ShapeError, match=match):
            other.load_state_dict(wrong)
        assert np.array_equal(other.parameters, mlp.parameters)
