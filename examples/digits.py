"""Fit a small network to handwritten digits, and draw how it went.

    python examples/digits.py [--epochs 40] [--output demo-output]

The data are scikit-learn's bundled digits: 1797 pictures of 8 x 8 pixels, a fifth of them kept for testing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import pullback as pb

SIZES = (64, 128, 64, 10)
BATCH = 32
RATE, MOMENTUM = 0.02, 0.9


class Data(NamedTuple):
    train_x: np.ndarray
    test_x: np.ndarray
    train_y: np.ndarray
    test_y: np.ndarray


class Epoch(NamedTuple):
    """What is known after an epoch."""

    train_loss: float
    test_loss: float
    test_accuracy: float


def load() -> Data:
    pictures, labels = load_digits(return_X_y=True)
    x = (pictures / 16.0).astype(np.float32)
    return Data(*train_test_split(x, labels, test_size=0.2, random_state=0, stratify=labels))


class Network:
    """Linear layers with ReLU between them."""

    def __init__(self, generator: np.random.Generator) -> None:
        pairs = list(pairwise(SIZES))
        scaled = [generator.standard_normal((n, m)) * np.sqrt(2 / m) for m, n in pairs]
        self.weights = [pb.tensor(w, dtype=pb.float32, requires_grad=True) for w in scaled]
        self.biases = [pb.zeros(n, dtype=pb.float32).set_requires_grad(True) for n in SIZES[1:]]
        self.parameters = [*self.weights, *self.biases]

    def __call__(self, x: pb.Tensor) -> pb.Tensor:
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            x = pb.relu(pb.linear(x, w, b))
        return pb.linear(x, self.weights[-1], self.biases[-1])


def fit(network: Network, data: Data, epochs: int, generator: np.random.Generator) -> Iterator[Epoch]:
    """Train by stochastic gradient descent with momentum; yields after every epoch."""
    velocities = [pb.zeros_like(p) for p in network.parameters]
    for _ in range(epochs):
        losses = []
        order = generator.permutation(len(data.train_x))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            loss = pb.cross_entropy(network(pb.asarray(data.train_x[chosen])), pb.asarray(data.train_y[chosen]))
            loss.backward()
            with pb.no_grad():
                for p, v in zip(network.parameters, velocities):
                    v *= MOMENTUM
                    v += p.grad
                    p -= RATE * v
                    p.zero_grad()
            losses.append(loss.item())
        yield Epoch(float(np.mean(losses)), *evaluate(network, data))


@pb.no_grad()
def evaluate(network: Network, data: Data) -> tuple[float, float]:
    """Loss and accuracy on the test pictures."""
    scores = network(pb.asarray(data.test_x))
    loss = pb.cross_entropy(scores, pb.asarray(data.test_y))
    hits = np.argmax(scores.numpy(), axis=1) == data.test_y
    return loss.item(), float(hits.mean())


def influence(network: Network, pictures: np.ndarray) -> np.ndarray:
    """How each pixel moves the score of the digit that the network sees: the gradient with respect to the input."""
    best_score: Callable[[np.ndarray], np.ndarray] = lambda x: pb.sum(pb.max(network(x), axis=1))
    return pb.grad(best_score)(pictures)


def with_progress(history: Iterator[Epoch], epochs: int) -> list[Epoch]:
    """Run the training: a live bar in a terminal, a line now and then elsewhere."""
    is_live = sys.stderr.isatty()
    done: list[Epoch] = []
    layout = "{desc} {bar} {n_fmt}/{total_fmt} epochs, {remaining} left"
    bar = tqdm(history, total=epochs, disable=not is_live, bar_format=layout)
    for epoch in bar:
        done.append(epoch)
        report = f"loss {epoch.train_loss:.4f}, test accuracy {epoch.test_accuracy:.1%}"
        bar.set_description_str(report)
        if not is_live and (len(done) % max(1, epochs // 8) == 0 or len(done) == epochs):
            print(f"epoch {len(done):3d} of {epochs}: {report}", flush=True)
    return done


def draw(history: list[Epoch], network: Network, data: Data, path: Path) -> None:
    """The losses over the epochs; test pictures, and what the network looks at in them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    axes = left.subplots()
    epochs = range(1, len(history) + 1)
    axes.semilogy(epochs, [epoch.train_loss for epoch in history], label="training", color="#1f6feb")
    axes.semilogy(epochs, [epoch.test_loss for epoch in history], label="test", color="#d1570a")
    axes.set(xlabel="epoch", ylabel="cross-entropy", title=f"test accuracy {history[-1].test_accuracy:.1%}")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)

    shown = (0, 2, 3, 6, 9)
    count = len(shown)
    pictures = data.test_x[[int(np.argmax(data.test_y == digit)) for digit in shown]]
    seen = np.argmax(network(pb.asarray(pictures)).detach().numpy(), axis=1)
    effects = influence(network, pictures)
    rows = right.subplots(2, count)
    for column in range(count):
        rows[0, column].imshow(pictures[column].reshape(8, 8), cmap="gray_r")
        rows[0, column].set_title(f"a {seen[column]}", fontsize=11)
        effect = effects[column].reshape(8, 8)
        limit = np.abs(effect).max()
        rows[1, column].imshow(effect, cmap="RdBu_r", vmin=-limit, vmax=limit)
    for panel in rows.flat:
        panel.set_axis_off()
    right.suptitle("what it sees, and the gradient of that score by pixel", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fit a small network to handwritten digits.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the picture")
    options = parser.parse_args(arguments)

    generator = np.random.default_rng(0)
    data = load()
    network = Network(generator)
    count = sum(p.size for p in network.parameters)
    print(f"{len(data.train_x)} pictures to learn from, {len(data.test_x)} to test on; {count} parameters")
    start = time.perf_counter()
    history = with_progress(fit(network, data, options.epochs, generator), options.epochs)
    seconds = time.perf_counter() - start
    picture = options.output / "digits.png"
    draw(history, network, data, picture)
    print(f"test accuracy {history[-1].test_accuracy:.1%} after {options.epochs} epochs in {seconds:.1f} s")
    print(f"picture: {picture.resolve()}")


if __name__ == "__main__":
    main()
