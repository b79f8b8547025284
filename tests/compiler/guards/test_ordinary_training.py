"""Ordinary training code is neither refused nor traced again and again, and trains as it does eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn, optim

from ...backends.installed import needs_llvmlite
from . import training_models  # noqa: F401  (registers programs)
from .harness import X
from .observation import difference, seen
from .training_loops import PROGRAMS, batches, network


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_is_as_it_is_eagerly_and_traced_once_or_twice(name: str) -> None:
    made: list[Any] = []

    def compiled(function: Any) -> Any:
        made.append(pb.compile(function))
        return made[-1]

    expected, found = _run(name, lambda function: function), _run(name, compiled)
    assert len(found) == len(expected)
    for number, (ours, theirs) in enumerate(zip(found, expected)):
        assert difference(ours, theirs, tolerance=2e-3) is None, f"value {number}: {difference(ours, theirs, 2e-3)}"
    assert made
    for function in made:
        assert 1 <= function.traces <= 2 and len(function.recompilations) <= 1, (function, function.recompilations)


def _run(name: str, compiled: Any) -> list[Any]:
    state = pb.random.get_state()
    pb.random.seed(0)
    try:
        return [seen(value) for value in PROGRAMS[name](compiled)]
    finally:
        pb.random.set_state(state)


class Remember(pb.train.Callback):
    """Counts and keeps what it is told."""

    def __init__(self) -> None:
        self.steps, self.losses = 0, []

    def on_step(self, trainer: Any, record: Any) -> None:
        self.steps += 1
        self.losses.append(record["loss"])


@needs_llvmlite
def test_the_trainer_compiles_with_callbacks_metrics_and_a_schedule() -> None:
    def losses(compile: bool) -> tuple[Any, Any]:
        pb.random.seed(0)
        model, remember = network(nn.Dropout(0.1)), Remember()
        x = np.random.default_rng(0).standard_normal((22, 3)).astype(np.float32)
        data = pb.data.Batches(pb.data.ArrayDataset(x, x.sum(1, keepdims=True)), batch_size=8, shuffle=True, seed=0)
        trainer = pb.train.Trainer(
            model,
            pb.mse_loss,
            optim.AdamW(model.parameters(), lr=0.05),
            schedule=optim.schedules.Cosine(12),
            metrics=["mse"],
            callbacks=[remember],
            clip_norm=1.0,
            average=0.9,
            compile=compile,
        )
        trainer.fit(data, epochs=3, validation=data)
        assert not compile or trainer.why_not_compiled is None
        return remember.losses, remember.steps

    state = pb.random.get_state()
    try:
        (found, steps), (expected, _) = losses(True), losses(False)
    finally:
        pb.random.set_state(state)
    assert steps == len(expected) == 9
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_calls_without_a_change_are_not_traced_again() -> None:
    """Things that are made anew for every call are no change."""
    model, options = network(), {"scale": 2.0}
    f = pb.compile(lambda x, **named: model(x) * named["scale"] * len(named["tags"]))
    for x, _ in batches():
        f(x, **dict(options), tags=("a", "b"))
    g = pb.compile(lambda x, options: x * options["scale"])
    for _ in range(3):
        g(X, {"scale": 1.0 + 1.0})
    assert f.traces == g.traces == 1
