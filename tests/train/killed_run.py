"""The program that is killed by test_resume_after_kill.py: a run that resumes, and says when it has made a step."""

from __future__ import annotations

import os
import sys

import numpy as np

import pullback as pb


class Announce(pb.train.Callback):
    """Writes a line for every step, so that the parent can kill at a chosen one."""

    def on_start(self, trainer):
        os.write(1, b"start\n")

    def on_step(self, trainer, record):
        os.write(1, b"step\n")


def main(folder: str, epochs: int, prefetch: int) -> None:
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((43, 6)).astype(np.float32)
    y = (np.arange(43) % 3).astype(np.int64)
    pb.random.seed(5)
    model = pb.nn.Sequential(
        pb.nn.Linear(6, 16), pb.nn.BatchNorm1d(16), pb.nn.ReLU(), pb.nn.Dropout(0.3), pb.nn.Linear(16, 3)
    )
    trainer = pb.train.Trainer(
        model,
        pb.cross_entropy,
        pb.optim.AdamW(model.parameters(), lr=0.01),
        schedule=pb.optim.schedules.Cosine(total=9 * epochs, warmup=10),
        metrics=["accuracy", "f1"],
        callbacks=[Announce(), pb.train.EarlyStopping(patience=10**6), pb.train.JsonLines()],
        clip_norm=1.0,
        average=0.9,
        folder=folder,
        checkpoint_every=1,
        best="validation_loss",
    )
    data = pb.data.Batches((x, y), 5, shuffle=True, seed=3, prefetch=prefetch, transform=noisy)
    history = trainer.fit(data, epochs=epochs, validation=pb.data.Batches((x, y), 16), resume=True)
    with trainer.average.applied():
        averaged = {f"average.{name}": tensor for name, tensor in model.state_dict().items()}
    pb.save({**model.state_dict(), **averaged}, os.path.join(folder, "final.safetensors"))
    with open(os.path.join(folder, "losses.txt"), "w") as file:
        for record in history.epochs:
            figures = {name: value for name, value in record.items() if "second" not in name}
            file.write(f"{figures}\n")


def noisy(batch):
    x, y = batch
    return x + pb.random.normal(x.shape, std=0.01).numpy(), y


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
