"""Compiled results are the same bits on any number of threads."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

COUNTS = (1, 2, 7)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


INDICES = np.random.default_rng(1).integers(0, 500, 20_000)
CLASSES = np.random.default_rng(2).integers(0, 301, 1000)
FAMILIES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: pb.tanh(x) * pb.exp(-x * x) + pb.sin(x), (numbers(501, 503),)),
    "total": (lambda x: x.sum(), (numbers(300, 1001),)),
    "product of all": (lambda x: pb.prod(1 + x * 1e-4), (numbers(300, 1001),)),
    "largest": (lambda x: pb.max(x), (numbers(300, 1001),)),
    "columns": (lambda x: pb.mean(x, axis=0), (numbers(3000, 333),)),
    "rows": (lambda x: pb.sum(x, axis=1), (numbers(3000, 333),)),
    "variance of columns": (lambda x: pb.var(x, axis=0), (numbers(2000, 133),)),
    "deviation": (lambda x: pb.std(pb.exp(x)), (numbers(300, 1001),)),
    "norm": (lambda x: pb.linalg.vector_norm(x), (numbers(300, 1001),)),
    "softmax": (lambda x: pb.softmax(x, axis=-1), (numbers(700, 301),)),
    "logsumexp along columns": (lambda x: pb.logsumexp(x, axis=0), (numbers(700, 301),)),
    "running sum": (lambda x: pb.cumulative_sum(x, axis=-1), (numbers(300, 1001),)),
    "vectors": (lambda x, y: x @ y, (numbers(1_000_003), numbers(1_000_003)[::-1].copy())),
    "matrix and vector": (lambda x, y: x @ y, (numbers(900, 1001), numbers(1001))),
    "few rows": (lambda x, y: x @ y, (numbers(7, 1000), numbers(1000, 603))),
    "matrices": (lambda x, y: x @ y, (numbers(301, 333), numbers(333, 217))),
    "transposed": (lambda x, y: x.T @ y, (numbers(4000, 257), numbers(4000, 300))),
    "transposed, wide": (lambda x, y: x.T @ y, (numbers(3000, 67), numbers(3000, 1403))),
    "batches": (lambda x, y: x @ y, (numbers(24, 100, 64), numbers(24, 64, 50))),
    "weight gradient": (pb.grad(lambda w, x: (pb.tanh(x @ w) ** 2).sum()), (numbers(257, 100), numbers(2000, 257))),
    "bias gradient": (pb.grad(lambda b, x: (pb.tanh(x + b) ** 2).sum()), (numbers(257), numbers(2000, 257))),
    "layer_norm": (
        pb.grad(lambda w, x: (pb.layer_norm(x, (257,), w) ** 3).sum()), (numbers(257), numbers(2000, 257))
    ),
    "batch_norm": (pb.grad(lambda x: (pb.batch_norm(x, training=True)[0] ** 3).sum()), (numbers(16, 16, 24, 24),)),
    "cross_entropy": (pb.value_and_grad(lambda x: pb.cross_entropy(x, pb.asarray(CLASSES))), (numbers(1000, 301),)),
    "embedding": (pb.grad(lambda w: (pb.embedding(pb.asarray(INDICES), w) ** 2).sum()), (numbers(500, 64),)),
    "taken rows": (pb.grad(lambda w: (w[pb.asarray(INDICES)] ** 2).sum()), (numbers(500, 64),)),
    "convolution": (
        pb.value_and_grad(lambda w, x: (pb.conv2d(x, w) ** 2).sum()), (numbers(16, 8, 3, 3), numbers(8, 8, 33, 35))
    ),
    "pooling": (pb.grad(lambda x: (pb.max_pool2d(x, 3) ** 2).sum()), (numbers(8, 8, 48, 48),)),
    "attention": (
        pb.grad(lambda q: pb.scaled_dot_product_attention(q, q * 0.5, q + 1).sum()), (numbers(2, 2, 300, 64),)
    ),
}  # fmt: skip


def results(function: Callable[..., Any], arguments: tuple[Any, ...], dtype: Any, count: int, monkeypatch: Any) -> Any:
    monkeypatch.setenv("PULLBACK_NUM_THREADS", str(count))
    compiled = pb.compile(function)
    given = [a.astype(dtype) for a in arguments]
    found = [pb.tree.flatten(compiled(*given))[0] for _ in range(2)][-1]
    return [np.asarray(leaf).tobytes() for leaf in found]


IN_DOUBLE = ("total", "columns", "deviation", "transposed", "bias gradient", "layer_norm")


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, np.float32) for name in FAMILIES), *((name, np.float64) for name in IN_DOUBLE)]
)
def test_the_same_bits_on_any_number_of_threads(name: str, dtype: Any, monkeypatch: Any) -> None:
    function, arguments = FAMILIES[name]
    first, *others = [results(function, arguments, dtype, count, monkeypatch) for count in COUNTS]
    assert all(other == first for other in others)


def training(monkeypatch: Any) -> Any:
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(200, 150), pb.nn.GELU(), pb.nn.LayerNorm(150), pb.nn.Linear(150, 301))
    optimizer = pb.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = pb.asarray(numbers(1000, 200).astype(np.float32)), pb.asarray(CLASSES)

    def step() -> Any:
        loss = pb.cross_entropy(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    def run(steps: int, threads: int) -> list[float]:
        monkeypatch.setenv("PULLBACK_NUM_THREADS", str(threads))
        compiled = pb.compile(step)
        return [float(compiled()) for _ in range(steps)]

    return model, optimizer, run


def test_a_run_begun_with_two_threads_and_resumed_with_one_is_bit_for_bit(monkeypatch: Any) -> None:
    whole, _, run = training(monkeypatch)
    losses = run(6, 2)
    begun, optimizer, run = training(monkeypatch)
    first = run(3, 2)
    saved, state = begun.state_dict(), optimizer.state_dict()
    resumed, optimizer, run = training(monkeypatch)
    resumed.load_state_dict(saved)
    optimizer.load_state_dict(state)
    assert first + run(3, 1) == losses
    for one, other in zip(whole.parameters(), resumed.parameters()):
        assert np.asarray(one.detach()).tobytes() == np.asarray(other.detach()).tobytes()


def test_a_run_folder_begun_with_two_threads_and_resumed_with_one_is_bit_for_bit(
    monkeypatch: Any, tmp_path: Any
) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(600, 40)).astype(np.float32)
    y = generator.integers(0, 5, 600)

    def fit(folder: str, epochs: int, threads: int) -> tuple[list[float], bytes]:
        monkeypatch.setenv("PULLBACK_NUM_THREADS", str(threads))
        pb.random.seed(1)
        model = pb.nn.Sequential(
            pb.nn.Linear(40, 512), pb.nn.LayerNorm(512), pb.nn.ReLU(), pb.nn.Dropout(0.2), pb.nn.Linear(512, 5)
        )
        trainer = pb.train.Trainer(
            model,
            pb.cross_entropy,
            pb.optim.AdamW(model.parameters(), lr=0.01),
            folder=tmp_path / folder,
            compile=True,
        )
        history = trainer.fit(pb.data.Batches((x, y), 200, shuffle=True, seed=2), epochs=epochs, resume=True)
        values = b"".join(np.asarray(p.detach()).tobytes() for p in model.parameters())
        return [record["loss"] for record in history.epochs], values

    whole = fit("whole", 4, 2)
    fit("parted", 2, 2)
    assert fit("parted", 4, 1) == whole
