"""What a compiled step on a GPU must bear: many replays, other threads, shared parameters, no memory, a NaN.

    python -m benchmarks.gpu.robustness

Prints a line for each, and exits with 1 if one does not hold.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import pullback as pb

DEVICE = "torch:cuda:0"
REPLAYS = 10_000


class Net:
    """A small network with dropout-free steps that can be compiled several times."""

    def __init__(self, seed: int = 0, width: int = 64) -> None:
        random = np.random.default_rng(seed)
        shapes = (width, width), (width,), (width, 10)
        arrays = [(random.normal(size=shape) * 0.1).astype(np.float32) for shape in shapes]
        self.weights = [pb.tensor(array, device=DEVICE, requires_grad=True) for array in arrays]
        self.optimizer = pb.optim.AdamW(self.weights, lr=1e-3)
        self.x = pb.asarray(random.normal(size=(32, width)).astype(np.float32), device=DEVICE)
        self.y = pb.asarray(random.integers(0, 10, 32), device=DEVICE)

    def step(self, x: Any, y: Any) -> Any:
        first, bias, last = self.weights
        loss = pb.cross_entropy(pb.gelu(x @ first + bias) @ last, y)
        self.optimizer.step(pb.backward(loss))
        return loss

    def values(self) -> list[np.ndarray]:
        return [weight.detach().to_device("numpy").numpy().copy() for weight in self.weights]


def no_growth() -> str:
    net = Net()
    step = pb.compile(net.step)
    for _ in range(200):
        step(net.x, net.y)
    torch.cuda.synchronize()
    before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    for _ in range(REPLAYS):
        step(net.x, net.y)
    loss = step(net.x, net.y).item()
    grown = torch.cuda.memory_allocated() - before, torch.cuda.memory_reserved() - reserved
    assert max(grown) <= 1 << 16, grown
    return f"{REPLAYS} replays: {grown[0]} bytes more allocated, {grown[1]} reserved; loss {loss:.4f}"


def the_same_bits() -> str:
    found = []
    for _ in range(2):
        net = Net()
        step = pb.compile(net.step)
        for _ in range(100):
            step(net.x, net.y)
        found.append(net.values())
    assert all((a == b).all() for a, b in zip(*found))
    return "two runs of 100 steps: the same bits"


def another_thread_and_stream() -> str:
    net, alone = Net(), Net()
    step, own = pb.compile(net.step), pb.compile(alone.step)
    for _ in range(3):
        step(net.x, net.y), own(alone.x, alone.y)

    def elsewhere() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                step(net.x, net.y)

    torch.cuda.synchronize()
    worker = threading.Thread(target=elsewhere)
    worker.start()
    worker.join()
    for _ in range(20):
        step(net.x, net.y)
    for _ in range(40):
        own(alone.x, alone.y)
    torch.cuda.synchronize()
    assert all((a == b).all() for a, b in zip(net.values(), alone.values()))
    return "captured on one stream, replayed on another thread's: the same bits"


def shared_parameters() -> str:
    net, eager = Net(), Net()
    train, look = pb.compile(net.step), pb.compile(lambda x: pb.sum(pb.gelu(x @ net.weights[0])))
    for _ in range(5):
        train(net.x, net.y)
        seen = look(net.x).item()
        eager.step(eager.x, eager.y)
    with pb.no_grad():
        expected = pb.sum(pb.gelu(eager.x @ eager.weights[0])).item()
    assert abs(seen - expected) < 1e-3 * abs(expected), (seen, expected)
    return f"two programs on one parameter: {seen:.5f}, eager {expected:.5f}"


def no_memory() -> str:
    rows = 1 << 17
    weight = pb.tensor(np.ones(8, np.float32), device=DEVICE, requires_grad=True)

    @pb.compile
    def step(x: Any) -> Any:
        grown = pb.sort(x[:, None] * weight[0] + x[None, :], axis=-1)
        loss = pb.sum(pb.sort(grown * 2.0, axis=0))
        pb.optim.SGD([weight], lr=1.0).step(pb.backward(loss))
        return loss

    x = pb.asarray(np.ones(rows, np.float32), device=DEVICE)
    before = weight.detach().to_device("numpy").numpy().copy()
    try:
        step(x)
    except MemoryError as error:
        assert (weight.detach().to_device("numpy").numpy() == before).all()
        return str(error)[:160]
    raise AssertionError("no error")


def a_nan_is_named() -> str:
    net = Net()
    step = pb.compile(net.step)
    for _ in range(3):
        step(net.x, net.y)
    before = net.values()
    bad = pb.asarray(np.full((32, 64), np.nan, np.float32), device=DEVICE)
    try:
        step(bad, net.y)
        step(net.x, net.y).item()
    except pb.NumericalInstabilityError as error:
        said = str(error)
    else:
        said = "no error"
    assert "robustness.py:" in said, said
    assert all((a == b).all() for a, b in zip(net.values(), before)), "something has changed"
    return said[:120]


class Mixer:
    """One layer of attention in bfloat16."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        arrays = [(random.normal(size=(768, 3 * 768)) * 0.02), (random.normal(size=(768, 768)) * 0.02)]
        self.weights = [
            pb.asarray(array.astype(np.float32), device=DEVICE).astype(pb.bfloat16).set_requires_grad(True)
            for array in arrays
        ]
        self.optimizer = pb.optim.SGD(self.weights, lr=0.1)
        self.x = pb.asarray(random.normal(size=(8, 1024, 768)).astype(np.float32), device=DEVICE).astype(pb.bfloat16)

    def step(self, x: Any) -> Any:
        into, out = self.weights
        parts = (x @ into).reshape((8, 1024, 3, 12, 64))
        q, k, v = (pb.permute_dims(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
        mixed = pb.permute_dims(pb.scaled_dot_product_attention(q, k, v, is_causal=True), (0, 2, 1, 3))
        loss = pb.mean((mixed.reshape((8, 1024, 768)) @ out).astype(pb.float32) ** 2)
        self.optimizer.step(pb.backward(loss))
        return loss


def attention_repeats() -> str:
    def trained(times: int) -> tuple[list[np.ndarray], float]:
        mixer = Mixer()
        step = pb.compile(mixer.step)
        for _ in range(5):
            step(mixer.x)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            step(mixer.x)
        torch.cuda.synchronize()
        took = (time.perf_counter() - start) / times * 1e3
        return [w.detach().astype(pb.float32).to_device("numpy").numpy() for w in mixer.weights], took

    _, plain = trained(50)
    with pb.deterministic():
        (first, took), (second, _) = trained(50), trained(50)
    assert all((a == b).all() for a, b in zip(first, second)), "pb.deterministic gave two results"
    return f"the same bits in two runs; a layer of attention, {took:.3f} ms for {plain:.3f} without pb.deterministic"


CHECKS: list[Callable[[], str]] = [
    the_same_bits, attention_repeats, another_thread_and_stream, shared_parameters, a_nan_is_named, no_memory,
    no_growth,
]  # fmt: skip


def main() -> int:
    failed = 0
    for check in CHECKS:
        try:
            print(f"{check.__name__}: {check()}", flush=True)
        except Exception as error:
            failed += 1
            print(f"{check.__name__}: FAILED, {type(error).__name__}: {str(error)[:600]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
