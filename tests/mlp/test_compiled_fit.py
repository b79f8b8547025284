"""Compiled steps of `Mlp.fit`: NumPy's numbers, in the network's own memory, without an allocation per step."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import compiled
from pullback.train import NotCompiledWarning, metrics

from ..backends.installed import needs_llvmlite
from .reference import ACTIVATIONS, LOSSES, REFUSED

NUMBERS = np.random.default_rng(5)
X = NUMBERS.standard_normal((70, 5))
Y = NUMBERS.standard_normal((70, 3))


def targets_for(loss):
    if loss == "binary_cross_entropy":
        return (Y > 0).astype(float)
    return np.arange(70) % 3 if loss == "cross_entropy" else Y


def fitted(compile, x=X, y=Y, sizes=(5, 9, 7, 3), activation="tanh", output="identity", dtype=np.float32, **options):
    mlp = pb.Mlp(sizes, activation, output, seed=1, dtype=dtype)
    history = mlp.fit(x, y, compile=compile, **{"epochs": 2, "batch_size": 16, "lr": 0.01, **options})
    return mlp, history


def assert_close(first, second, tolerance=1e-5):
    (mine, history), (other, other_history) = first, second
    np.testing.assert_allclose(mine.parameters, other.parameters, rtol=tolerance, atol=tolerance)
    for name in ("loss", "gradient_norm", "learning_rate"):
        np.testing.assert_allclose(
            history.epochs.column(name), other_history.epochs.column(name), rtol=10 * tolerance, err_msg=name
        )


# -- the numbers -----------------------------------------------------------------------------------


@needs_llvmlite
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_and_activation(loss, activation):
    output = "identity" if (loss, activation) in REFUSED else activation
    options = {"y": targets_for(loss), "loss": loss, "activation": activation, "output": output, "batch_size": 35}
    options["dtype"] = np.float64
    assert_close(fitted(True, **options), fitted(False, **options), 1e-9)


@needs_llvmlite
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "lamb", "adafactor"])
@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_every_optimizer(optimizer, clip_norm):
    options = {"optimizer": optimizer, "clip_norm": clip_norm, "dtype": np.float64, "batch_size": 35}
    assert_close(fitted(True, **options), fitted(False, **options), 1e-8)


@needs_llvmlite
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 16, 35, 70, 1000])
def test_batches_of_any_size_in_float32(batch_size, shuffle):
    options = {"batch_size": batch_size, "shuffle": shuffle, "metrics": ["mae", "r2"], "validation": (X[:9], Y[:9])}
    mine, other = fitted(True, **options), fitted(False, **options)
    assert_close(mine, other)
    for name in ("mae", "r2", "validation_loss", "validation_mae"):
        np.testing.assert_allclose(mine[1].epochs.column(name), other[1].epochs.column(name), rtol=1e-4)


@needs_llvmlite
def test_class_probabilities_as_targets():
    weights = np.abs(Y)  # which do not add up to one
    options = {"y": weights, "loss": "cross_entropy", "dtype": np.float64}
    assert_close(fitted(True, **options), fitted(False, **options), 1e-9)


@needs_llvmlite
@pytest.mark.parametrize("schedule", [pb.optim.schedules.Cosine(10, warmup=3), pb.optim.schedules.Plateau(patience=0)])
def test_schedules(schedule):
    results = [fitted(compile, schedule=type(schedule)(**vars_of(schedule)), epochs=4) for compile in (True, False)]
    assert_close(*results)


def vars_of(schedule):
    if isinstance(schedule, pb.optim.schedules.Plateau):
        return {"patience": 0, "threshold": 1e9}
    return {"total": 10, "warmup": 3}


@needs_llvmlite
def test_equal_seeds_give_equal_bits():
    runs = [fitted(True, epochs=3)[0].parameters.tobytes() for _ in range(3)]
    assert len(set(runs)) == 1


@needs_llvmlite
@pytest.mark.parametrize("around", [pb.no_grad, lambda: pb.guard("trace"), lambda: pb.guard("off")])
def test_what_is_around_does_not_matter(around):
    expected = fitted(True)[0].parameters
    with around():
        found = fitted(True)[0].parameters
    np.testing.assert_array_equal(found, expected)


# -- the memory ------------------------------------------------------------------------------------


@needs_llvmlite
def test_parameters_are_updated_where_they_are():
    mlp = pb.Mlp([5, 9, 3])
    parameters, address = mlp.parameters, mlp.parameters.ctypes.data
    weights, before = mlp.weights(1), mlp.weights(1).copy()
    mlp.fit(X, Y, epochs=1, compile=True)
    assert mlp.parameters is parameters and parameters.ctypes.data == address
    assert np.shares_memory(mlp.weights(1), weights) and (weights != before).any()
    first = mlp.predict(X)
    mlp.parameters[:] = 0.0  # and what is written there is what the next steps start from
    mlp.fit(X, Y, epochs=1, lr=1e-30, compile=True)
    assert not np.allclose(first, mlp.predict(X)) and np.abs(mlp.parameters).max() < 1e-20


@needs_llvmlite
def test_a_callback_may_write_to_the_parameters_between_epochs():
    def halve(mlp):
        return lambda record: np.multiply(mlp.parameters, 0.5, mlp.parameters) is None

    results = []
    for compile in (True, False):
        mlp = pb.Mlp([5, 9, 3])
        results.append((mlp, mlp.fit(X, Y, epochs=3, callback=halve(mlp), compile=compile)))
    assert_close(*results)


class Probe(metrics.Metric):
    """Looks at the memory after every step; the peak counts from step `first` on."""

    name = "probe"
    steps = start = peak = 0

    def reset(self):
        pass

    def update(self, output, target):
        self.steps += 1
        if self.steps == 4:
            tracemalloc.reset_peak()
            self.start = tracemalloc.get_traced_memory()[0]
        self.peak = tracemalloc.get_traced_memory()[1]

    def compute(self):
        return float(self.steps)


@needs_llvmlite
@pytest.mark.parametrize("shuffle", [True, False])
def test_nothing_is_allocated_per_step(shuffle):
    width, batch = 128, 128
    x = NUMBERS.standard_normal((40 * batch + 5, width)).astype(np.float32)
    probe = Probe()
    tracemalloc.start()
    try:
        pb.Mlp([width, width, width]).fit(
            x, x, epochs=3, batch_size=batch, clip_norm=1.0, shuffle=shuffle, metrics=[probe], compile=True
        )
    finally:
        tracemalloc.stop()
    assert probe.steps == 123
    assert probe.peak - probe.start < 4 * width * batch / 2  # half of the smallest buffer


# -- what is not finite ----------------------------------------------------------------------------


@needs_llvmlite
def test_divergence_leaves_the_parameters_of_before_the_step():
    results = []
    for compile in (True, False):
        mlp = pb.Mlp([5, 9, 3], "relu", seed=1)
        kept = []

        class Keep(metrics.Metric):
            name = "keep"

            def reset(self):
                pass

            def update(self, output, target, mlp=mlp, kept=kept):
                kept.append(mlp.parameters.copy())

            def compute(self):
                return 0.0

        with pytest.raises(pb.NumericalInstabilityError, match=r"in epoch \d+, step \d+, the loss is") as caught:
            mlp.fit(X, Y, epochs=50, optimizer="sgd", lr=1e3, metrics=[Keep()], compile=compile)
        assert np.isfinite(mlp.parameters).all()
        np.testing.assert_array_equal(mlp.parameters, kept[-1])
        results.append(str(caught.value).split("the loss")[0])
    assert results[0] == results[1]


@needs_llvmlite
@pytest.mark.parametrize("size", [0.0, 1e20])  # biases are zero at first, so that zeros give no gradient at all
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_steps_whose_norm_a_program_cannot_tell_are_made_by_numpy(size, optimizer, dtype, tolerance):
    """On the same memory and with the same optimizer; compiled ones follow."""
    x = np.concatenate([np.full((16, 5), size), X[:32]])
    y = np.concatenate([np.zeros((16, 3)), np.full((32, 3), 50.0)])  # far away: no rounding changes the error's sign
    options = {"sizes": (5, 3), "shuffle": False, "optimizer": optimizer, "loss": "mae"}
    options |= {"dtype": dtype, "clip_norm": 0.1}
    assert_close(fitted(True, x=x, y=y, **options), fitted(False, x=x, y=y, **options), tolerance)
    x, y = x[::-1], y[::-1]
    mine, other = fitted(True, x=x, y=y, **options), fitted(False, x=x, y=y, **options)
    assert_close(mine, other, tolerance)  # the record has the norm of that step now
    if size:
        assert mine[1].epochs[-1]["gradient_norm"] > size / 10


@needs_llvmlite
def test_a_large_gradient_of_a_small_loss_has_its_norm():
    for compile in (True, False):
        mlp = pb.Mlp([5, 3])
        mlp.parameters[:] = 0.0
        x, y = np.full((16, 5), 1e20, np.float32), np.ones((16, 3), np.float32)
        history = mlp.fit(x, y, epochs=1, loss="mae", optimizer="sgd", clip_norm=0.3, lr=1.0, compile=compile)
        assert history.epochs[-1]["gradient_norm"] == pytest.approx(np.sqrt(5 / 3) * 1e20, rel=1e-5)
        assert np.sqrt((mlp.parameters**2).sum()) == pytest.approx(0.3, rel=1e-5)


# -- the choice ------------------------------------------------------------------------------------


def spied(monkeypatch):
    made = []
    original = compiled.CompiledSteps.prepare
    monkeypatch.setattr(
        compiled.CompiledSteps, "prepare", lambda self, optimizer: (made.append(1), original(self, optimizer))[1]
    )
    return made


@needs_llvmlite
def test_few_steps_are_not_worth_compiling_and_many_are(monkeypatch):
    made = spied(monkeypatch)
    x = np.zeros((64, 2), np.float32)
    pb.Mlp([2, 4, 1]).fit(x, x[:, :1], epochs=3)
    assert not made
    pb.Mlp([2, 4, 1]).fit(x, x[:, :1], epochs=200, batch_size=1, callback=lambda record: True)
    assert made
    pb.Mlp([2, 4, 1]).fit(x, x[:, :1], epochs=200, batch_size=1, callback=lambda record: True, compile=False)
    assert len(made) == 1


@needs_llvmlite
def test_an_optimizer_made_by_a_function_is_not_compiled(monkeypatch):
    made = spied(monkeypatch)
    monkeypatch.setattr(compiled, "_pays", lambda *sizes: True)
    mlp = pb.Mlp([5, 3])
    mlp.fit(X, Y, epochs=1, optimizer=lambda arrays: pb.optim.SGD(arrays, lr=0.1))
    assert not made
    with pytest.raises(pb.ConfigurationError, match=r"compile=True, but the optimizer is not one of `pb.optim` by its"):
        mlp.fit(X, Y, epochs=1, optimizer=lambda arrays: pb.optim.SGD(arrays, lr=0.1), compile=True)


def test_without_llvmlite_numpy_does_it(monkeypatch):
    monkeypatch.setattr(compiled, "_pays", lambda *sizes: True)
    monkeypatch.setitem(sys.modules, "llvmlite", None)  # importing it raises
    np.testing.assert_array_equal(fitted(None)[0].parameters, fitted(False)[0].parameters)
    with pytest.raises(pb.ConfigurationError, match=r"pip install 'pullback\[compile\]'"):
        fitted(True)


@needs_llvmlite
def test_what_fails_to_compile_is_told_and_done_by_numpy(monkeypatch):
    def failing(self, optimizer):
        raise RuntimeError("no registers left")

    monkeypatch.setattr(compiled, "_pays", lambda *sizes: True)
    monkeypatch.setattr(compiled.CompiledSteps, "prepare", failing)
    with pytest.warns(
        NotCompiledWarning, match=r"fit: .*RuntimeError in .* failing: no registers left.*compile=False"
    ) as told:
        mlp, _ = fitted(None)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(mlp.parameters, fitted(False)[0].parameters)
    with pytest.raises(RuntimeError, match="no registers left"):
        fitted(True)


@pytest.mark.parametrize("compile", [None, True])
def test_an_unknown_optimizer_is_named(compile):
    with pytest.raises(pb.ConfigurationError, match="there is no optimizer 'sdg'"):
        fitted(compile, optimizer="sdg")


@pytest.mark.parametrize("compile", [None, pytest.param(True, marks=needs_llvmlite), False])
@pytest.mark.parametrize(("optimizer", "error"), [("muon", pb.ShapeError), ("lbfgs", pb.PullbackError)])
def test_optimizers_that_are_not_for_this_say_so(optimizer, error, compile, monkeypatch):
    monkeypatch.setattr(compiled, "_pays", lambda *sizes: True)
    with pytest.raises(error, match=r"(?i)muon|lbfgs|by its name"):
        fitted(compile, optimizer=optimizer)
