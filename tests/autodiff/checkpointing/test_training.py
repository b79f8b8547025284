"""A whole training run under a strategy gives the same weights, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


def trained(strategy):
    pb.random.seed(0)
    x = np.random.default_rng(0).standard_normal((96, 8)).astype(np.float32)
    model = pb.nn.Sequential(
        pb.nn.Linear(8, 32), pb.nn.GELU(), pb.nn.Dropout(0.1), pb.nn.BatchNorm1d(32), pb.nn.Linear(32, 1)
    )
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.01)
    trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, accumulate=2, average=0.9, clip_norm=1.0)
    with pb.checkpointing(strategy):
        trainer.fit(pb.data.Batches((x, x.sum(1, keepdims=True)), batch_size=16, shuffle=True), epochs=2)
    return [value.numpy().tobytes() for value in model.state_dict().values()]


@pytest.mark.parametrize(
    "strategy", [pb.BalancedCheckpointing, lambda: pb.BudgetCheckpointing(20_000), lambda: pb.BudgetCheckpointing(0)]
)
def test_the_same_weights(strategy):
    assert trained(strategy()) == trained(pb.NoCheckpointing())
