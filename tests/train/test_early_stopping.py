"""Early stopping with `restore_best`: the model ends with the weights of the best validation, also when resumed."""

from __future__ import annotations

import os

import numpy as np
import pytest

import pullback as pb
from pullback.data import Batches
from pullback.optim import SGD
from pullback.train import Callback, EarlyStopping, Trainer

from ..backends.installed import require

NUMBERS = np.random.default_rng(7)
X, Y = NUMBERS.standard_normal((23, 4)), NUMBERS.standard_normal((23, 2))


class CrashError(Exception):
    """What ends a run in these tests."""


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Kept(Callback):
    """The weights at each validation, by its loss, and the last ones."""

    def __init__(self, crash_after=None):
        self.at, self.last = {}, None
        self.crash_after = crash_after

    def on_step(self, trainer, record):
        self.last = weights(trainer.model)

    def on_validation(self, trainer, record):
        self.at[record["validation_loss"]] = weights(trainer.model)

    def on_checkpoint(self, trainer, path):
        if trainer.step == self.crash_after:
            raise CrashError


def weights(model):
    return {name: np.array(tensor.to_device("numpy").numpy()) for name, tensor in model.state_dict().items()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def made(folder=None, *, restore_best=True, patience=99, crash_after=None, device="numpy", **options):
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(4, 5), pb.nn.BatchNorm1d(5), pb.nn.Tanh(), pb.nn.Linear(5, 2))
    model.astype(pb.float64).to_device(device)
    stopping, kept = EarlyStopping(patience=patience, restore_best=restore_best), Kept(crash_after)
    optimizer = SGD(model.parameters(), lr=0.8, momentum=0.9)
    if folder is not None:
        options.setdefault("checkpoint_every", 1)
    trainer = Trainer(model, pb.mse_loss, optimizer, callbacks=[kept, stopping], folder=folder, **options)
    return trainer, stopping, kept


def run(trainer, epochs=6, **options):
    data = Batches((X, Y), 12, shuffle=True, seed=3)
    return trainer.fit(data, epochs=epochs, validation=Batches((X, Y), 23), **options)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize(("patience", "compile"), [(99, False), (99, None), (2, None)])
def test_the_model_ends_with_the_best_weights(patience, compile, device):
    require(device)
    trainer, stopping, kept = made(patience=patience, compile=compile, device=device)
    history = run(trainer)
    assert (history.stop_reason is None) == (patience == 99)
    assert stopping.best.value == min(kept.at) and stopping.best.step < trainer.step
    assert_same(weights(trainer.model), kept.at[min(kept.at)])
    assert trainer.evaluate(Batches((X, Y), 23))["loss"] == stopping.best.value


def test_without_it_the_last_weights_stay():
    trainer, _, kept = made(restore_best=False)
    run(trainer)
    assert_same(weights(trainer.model), kept.last)
    assert "weights" not in trainer._state()["callbacks"]["EarlyStopping 1"]


def test_an_average_is_that_of_the_best_validation():
    trainer, stopping, _ = made(average=0.5)
    run(trainer, 8)
    assert stopping.best.step < trainer.step
    assert trainer.evaluate(Batches((X, Y), 23))["loss"] == stopping.best.value
    assert trainer.average.updates == stopping.best.step


def test_a_run_cut_after_any_step_ends_with_the_same_weights(tmp_path):
    undisturbed, stopping, kept = made(tmp_path / "a")
    run(undisturbed)
    for step in range(1, undisturbed.step):
        folder = tmp_path / f"b{step}"
        with pytest.raises(CrashError):
            run(made(folder, crash_after=step)[0])
        trainer, resumed, rest = made(folder)
        run(trainer, resume=True)
        assert (resumed.best.value, resumed.best.step) == (stopping.best.value, stopping.best.step)
        assert_same(weights(trainer.model), weights(undisturbed.model))
        assert_same(rest.last, kept.last)


def test_a_finished_run_is_gone_on_with_from_its_last_weights(tmp_path):
    undisturbed, stopping, kept = made()
    run(undisturbed, 8)
    for folder in (None, tmp_path):
        trainer, resumed, rest = made(folder)
        run(trainer)
        assert resumed.best.step < trainer.step
        run(trainer, 8, resume=True)
        assert_same(rest.last, kept.last)
        assert_same(weights(trainer.model), weights(undisturbed.model))
    trainer, resumed, _ = made(tmp_path)  # nothing is left to do but to give it the best weights
    run(trainer, 8, resume=True)
    assert resumed.best.step == stopping.best.step
    assert_same(weights(trainer.model), weights(undisturbed.model))


def test_weights_that_were_changed_in_between_are_left_alone():
    trainer, _, kept = made()
    run(trainer)
    with pb.no_grad():
        trainer.model[0].weight[...] = 0.0

    class First(Callback):
        def on_start(self, trainer):
            self.weights = weights(trainer.model)

    first = First()
    trainer.callbacks.append(first)
    run(trainer, 7, resume=True)
    assert not first.weights["0.weight"].any()
    assert_same({**kept.at[min(kept.at)], "0.weight": 0 * first.weights["0.weight"]}, first.weights)


def test_a_new_run_has_a_best_of_its_own():
    trainer, stopping, kept = made()
    run(trainer)
    trainer.optimizer.param_groups[0]["lr"] = 1e-9
    kept.at.clear()
    run(trainer, 1)
    assert stopping.best.value == min(kept.at)
    assert_same(weights(trainer.model), kept.last)


def test_a_checkpoint_without_the_best_weights_is_refused(tmp_path):
    run(made(tmp_path, restore_best=False)[0], 2)
    trainer, _, _ = made(tmp_path)
    before = weights(trainer.model)
    with pytest.raises(pb.ConfigurationError, match="without restore_best"):
        run(trainer, resume=True)
    assert_same(weights(trainer.model), before)
    run(made(tmp_path)[0], 2, overwrite=True)
    trainer, _, kept = made(tmp_path, restore_best=False)
    run(trainer, resume=True)
    assert_same(weights(trainer.model), kept.last)
