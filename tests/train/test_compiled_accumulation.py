"""Steps of several batches, compiled: those of an eager run, errors that change nothing, and going on eagerly."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.data import Batches
from pullback.optim import SGD, AdamW
from pullback.train import NotCompiledWarning, Trainer

from ..backends.installed import needs_llvmlite, require
from .test_compiling import CLASSES, X, Y, assert_same, network, weights

pytestmark = needs_llvmlite


def run(compile, make=lambda parameters: SGD(parameters, lr=0.1), loss=pb.mse_loss, target=Y, middle=(), **options):
    """A run of nine batches an epoch, two at a time: the last step of an epoch has one, which is shorter."""
    model = network(*[part() for part in middle])
    options.setdefault("accumulate", 2)
    trainer = Trainer(model, loss, make(model.parameters()), compile=compile, **options)
    history = trainer.fit(Batches((X, target), 5), epochs=2)
    records = [[record[name] for name in ("loss", "gradient_norm")] for record in history.steps]
    return weights(model), records, trainer


def assert_alike(options, rtol=1e-4):
    (eager, eager_records, _), (mine, records, trainer) = run(False, **options), run(True, **options)
    assert trainer.why_not_compiled is None
    for name in eager:
        np.testing.assert_allclose(mine[name], eager[name], rtol=rtol, atol=rtol / 10, err_msg=name)
    np.testing.assert_allclose(records, eager_records, rtol=rtol, atol=rtol / 10)
    return trainer


@pytest.mark.parametrize("clip_norm", [None, 0.2])
@pytest.mark.parametrize(
    "make",
    [lambda parameters: SGD(parameters, lr=0.05, momentum=0.9), lambda parameters: AdamW(parameters, lr=0.01)],
    ids=["momentum", "AdamW"],
)
def test_a_compiled_run_is_the_eager_one(make, clip_norm):
    middle = (lambda: pb.nn.BatchNorm1d(8), lambda: pb.nn.Dropout(0.3))
    options = {"make": make, "clip_norm": clip_norm, "loss": pb.cross_entropy, "target": CLASSES, "middle": middle}
    trainer = assert_alike({**options, "average": 0.9})
    programs = trainer._updater._compiled
    assert programs._add.traces == 2  # the last batch of an epoch is shorter
    assert programs._update.traces == 1


@pytest.mark.parametrize("accumulate", [4, 100])
def test_the_batches_at_the_end_of_an_epoch_are_a_step_of_their_own(accumulate):
    assert_alike({"accumulate": accumulate})


@pytest.mark.parametrize("weight", [lambda mask: mask.sum(), lambda mask: 7.3], ids=["counted", "a number"])
def test_a_loss_that_gives_its_weight(weight):
    def masked(output, target):
        mask = (target[:, :1] > 0).astype(output.dtype)
        return (mask * (output - target) ** 2).sum(), weight(mask)

    assert_alike({"loss": masked})


def test_a_batch_of_no_weight_adds_nothing():
    target = Y.copy()
    target[5:10] = 0.0  # the second one

    def masked(output, target):
        mask = (target[:, :1] != 0).astype(output.dtype)
        return (mask * (output - target) ** 2).sum(), mask.sum()

    assert_alike({"loss": masked, "target": target})


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("weight", [-1.0, float("nan"), 0.0])
def test_a_weight_that_cannot_be_is_an_error_and_changes_nothing(weight, compile):
    def weighted(output, target):
        return pb.mse_loss(output, target), weight * pb.max(target * 0.0 + 1.0)

    model = network(pb.nn.BatchNorm1d(8))
    before = weights(model)
    trainer = Trainer(model, weighted, SGD(model.parameters(), lr=0.1), accumulate=2, compile=compile)
    with pytest.raises(pb.GradientError, match="weight"):
        trainer.fit([(X, Y), (X, Y)], epochs=1)
    assert_same(weights(model), before)


@pytest.mark.parametrize("guard", ["raise", "off"])
@pytest.mark.parametrize("compile", [False, True])
def test_a_bad_batch_changes_nothing_and_the_next_run_starts_afresh(compile, guard):
    bad = X.copy()
    bad[7, 2] = np.nan  # in the second batch: the first one has been added by then
    model = network(pb.nn.BatchNorm1d(8))
    before = weights(model)
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), accumulate=3, compile=compile)
    with pb.guard(guard), pytest.raises(pb.NumericalInstabilityError):
        trainer.fit(Batches((bad, Y), 5), epochs=1)
    assert_same(weights(model), before)

    fresh = network(pb.nn.BatchNorm1d(8))
    other = Trainer(fresh, pb.mse_loss, SGD(fresh.parameters(), lr=0.1), accumulate=3, compile=compile)
    for one in (trainer, other):
        one.fit(Batches((X, Y), 5), epochs=1)
    for name, expected in weights(fresh).items():
        np.testing.assert_allclose(weights(model)[name], expected, rtol=1e-6, atol=1e-7, err_msg=name)


class Double(pb.nn.Module):
    """A model whose parameters are float64."""

    def __init__(self):
        super().__init__()
        self.w = pb.tensor(np.linspace(0.1, 1.0, 6), requires_grad=True)

    def forward(self, x):
        return x @ self.w


def test_float64_is_divided_by_the_weight_in_float64():
    results = []
    for compile in (False, True):
        model = Double()
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), accumulate=3, compile=compile)
        trainer.fit([(X[:7].astype(float), Y[:7, 0].astype(float))] * 3, epochs=2)
        results.append(model.w.detach().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-13)


def test_a_model_that_cannot_be_traced_goes_on_with_one_notice():
    class Branching(pb.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y if y.sum() > 0 else -y

    results = []
    for compile in (False, None):
        pb.random.seed(0)
        model = Branching(6, 3)
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), accumulate=2, compile=compile)
        if compile is None:
            with pytest.warns(NotCompiledWarning, match="a choice"):
                trainer.fit(Batches((X, Y), 5), epochs=1)
        else:
            trainer.fit(Batches((X, Y), 5), epochs=1)
        results.append(weights(model))
    assert_same(*results)


def test_a_shape_that_cannot_be_traced_takes_over_what_was_added():
    class OnlyFives(pb.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y if x.shape[0] == 5 or y.sum() > -1e9 else -y

    results = []
    for compile in (False, None):
        pb.random.seed(0)
        model = OnlyFives(6, 3)
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), accumulate=3, compile=compile)
        batches = [(X[:5], Y[:5]), (X[5:9], Y[5:9]), (X[9:14], Y[9:14])]
        if compile is None:
            with pytest.warns(NotCompiledWarning):
                trainer.fit(batches, epochs=1)
        else:
            trainer.fit(batches, epochs=1)
        results.append(weights(model))
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-5, atol=1e-6)


def test_variables_that_some_batches_do_not_reach_keep_what_others_gave_them():
    class Two(pb.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = pb.nn.Linear(6, 3), pb.nn.Linear(6, 3)

        def forward(self, x):
            return self.first(x) if x.shape[0] == 5 else self.second(x)

    results = []
    for compile in (False, True):
        pb.random.seed(0)
        model = Two()
        trainer = Trainer(
            model, pb.mse_loss, AdamW(model.parameters(), lr=0.1, weight_decay=0.1), accumulate=2, compile=compile
        )
        fives, fours = (X[:5], Y[:5]), (X[5:9], Y[5:9])
        trainer.fit([fives, fours, fives, fives, fours, fives], epochs=2)
        results.append(weights(model))
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_devices(device):
    require(device)
    results = []
    for compile in (False, True):
        model = network(pb.nn.BatchNorm1d(8))
        model.to_device(device)
        trainer = Trainer(
            model, pb.mse_loss, SGD(model.parameters(), lr=0.1, momentum=0.9), accumulate=2, compile=compile
        )
        trainer.fit(Batches((X, Y), 5), epochs=1)
        assert trainer.why_not_compiled is None
        results.append({name: t.to_device("numpy").numpy() for name, t in model.state_dict().items()})
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_strategy_and_accumulation_go_together():
    results = []
    for strategy in (pb.NoCheckpointing(), pb.BalancedCheckpointing(), pb.BudgetCheckpointing(600)):
        with pb.checkpointing(strategy):
            mine, _, trainer = run(True)
        assert trainer.why_not_compiled is None
        results.append(mine)
    for other in results[1:]:
        for name in other:
            np.testing.assert_allclose(other[name], results[0][name], rtol=1e-6, atol=1e-7)
