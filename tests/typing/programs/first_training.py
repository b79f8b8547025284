"""The README's first example: a network fitted to a sine with a Trainer."""

import numpy as np

import pullback as pb


def main() -> float:
    pb.random.seed(0)
    x = np.random.default_rng(0).uniform(-3, 3, (200, 1)).astype(np.float32)
    y = np.sin(x)

    model = pb.nn.Sequential(pb.nn.Linear(1, 16), pb.nn.Tanh(), pb.nn.Linear(16, 1))
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.02)
    batches = pb.data.Batches(pb.data.ArrayDataset(x, y), batch_size=50, shuffle=True)

    schedule = pb.optim.schedules.Cosine(40)
    trainer = pb.train.Trainer(
        model, pb.mse_loss, optimizer, schedule=schedule, callbacks=[pb.train.EarlyStopping(patience=50)]
    )
    history = trainer.fit(batches, epochs=10, validation=batches)
    print(trainer.step, len(history.steps), history.stop_reason)
    return trainer.evaluate(batches)["loss"]


if __name__ == "__main__":
    print(f"mean squared error {main():.5f}")
