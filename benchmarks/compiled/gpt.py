"""A small GPT: 4 layers of width 128, 4 heads, 128 tokens, batch 8, 65 characters; AdamW."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import peers
from ..measure import Effort, Measurement

Step = Callable[[], Any]
BATCH, LENGTH, WIDTH, HEADS, LAYERS, CHARACTERS = 8, 128, 128, 4, 4, 65
RATE = 1e-3


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.integers(0, CHARACTERS, (BATCH, LENGTH)), generator.integers(0, CHARACTERS, (BATCH, LENGTH))


def weights() -> dict[str, np.ndarray]:
    """The first weights, under the names of the torch modules."""
    generator = np.random.default_rng(1)

    def linear(name: str, inputs: int, outputs: int) -> dict[str, np.ndarray]:
        bound = 1 / math.sqrt(inputs)
        return {
            f"{name}.weight": generator.uniform(-bound, bound, (outputs, inputs)).astype(np.float32),
            f"{name}.bias": generator.uniform(-bound, bound, outputs).astype(np.float32),
        }

    def norm(name: str) -> dict[str, np.ndarray]:
        return {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": np.zeros(WIDTH, np.float32)}

    made = {
        "tokens.weight": generator.standard_normal((CHARACTERS, WIDTH)).astype(np.float32),
        "places": np.zeros((LENGTH, WIDTH), np.float32),
    }
    for i in range(LAYERS):
        made |= norm(f"blocks.{i}.norm1") | norm(f"blocks.{i}.norm2")
        made |= linear(f"blocks.{i}.qkv", WIDTH, 3 * WIDTH) | linear(f"blocks.{i}.out", WIDTH, WIDTH)
        made |= linear(f"blocks.{i}.up", WIDTH, 4 * WIDTH) | linear(f"blocks.{i}.down", 4 * WIDTH, WIDTH)
    return made | norm("norm") | linear("head", WIDTH, CHARACTERS)


def steps() -> dict[str, Step]:
    makers = {"pullback": pullback, "torch": torch, "torch.compile": torch_compiled, "jax": jax, "mlx": mlx}
    made = {name: make() for name, make in makers.items() if peers.is_installed(name.partition(".")[0])}
    losses = {name: np.array([float(step().item()) for _ in range(4)]) for name, step in made.items()}
    peers.check_equal(losses, "gpt", 1e-3)
    return {**made, "floor": floor()}


def pullback(device: str = "numpy", is_compiled: bool = True) -> Step:
    import pullback as pb

    class Block(pb.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = pb.nn.LayerNorm(WIDTH), pb.nn.LayerNorm(WIDTH)
            self.qkv, self.out = pb.nn.Linear(WIDTH, 3 * WIDTH), pb.nn.Linear(WIDTH, WIDTH)
            self.up, self.down = pb.nn.Linear(WIDTH, 4 * WIDTH), pb.nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            heads = self.qkv(self.norm1(x)).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = (pb.permute_dims(heads[:, :, i], (0, 2, 1, 3)) for i in range(3))
            mixed = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(pb.permute_dims(mixed, (0, 2, 1, 3)).reshape(BATCH, LENGTH, WIDTH))
            return x + self.down(pb.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(pb.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = pb.nn.Embedding(CHARACTERS, WIDTH)
            self.places = pb.zeros((LENGTH, WIDTH)).set_requires_grad(True)
            self.blocks = pb.nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = pb.nn.LayerNorm(WIDTH), pb.nn.Linear(WIDTH, CHARACTERS)

        def forward(self, x: Any, y: Any) -> Any:
            h = self.tokens(x) + self.places
            for block in self.blocks:
                h = block(h)
            logits = self.head(self.norm(h)).reshape(-1, CHARACTERS)
            return pb.cross_entropy(logits, y.reshape(-1))

    model = Gpt()
    model.load_state_dict(weights())
    model.to_device(device)
    optimizer = pb.optim.AdamW(model.parameters(), RATE)
    x, y = (pb.asarray(array, device=device) for array in data())

    def step(x: Any, y: Any) -> Any:
        loss = model(x, y)
        optimizer.step(pb.backward(loss))
        return loss

    run = pb.compile(step) if is_compiled else step
    return lambda: run(x, y)


def torch_model() -> Any:
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                part.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).chunk(3, -1)
            )
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(CHARACTERS, WIDTH)
            self.places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS)

        def forward(self, x: Any, y: Any) -> Any:
            h = self.tokens(x) + self.places
            for block in self.blocks:
                h = block(h)
            return functional.cross_entropy(self.head(self.norm(h)).view(-1, CHARACTERS), y.view(-1))

    model = Gpt()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights().items()})
    return model


def torch() -> Step:
    return _torch_step(lambda model: model)


def torch_compiled() -> Step:
    import torch

    return _torch_step(torch.compile)


def _torch_step(prepared: Callable[[Any], Any]) -> Step:
    import torch

    model = torch_model()
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    x, y = map(torch.tensor, data())
    loss_of = prepared(model)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _functional(library: Any, gelu: Callable[[Any], Any], rsqrt: Callable[[Any], Any], pick: Any) -> Any:
    """The loss as a function of a dictionary of weights, for the libraries without modules."""

    def norm(x: Any, w: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * rsqrt(variance + 1e-5) * w + b

    def loss_of(p: Any, x: Any, y: Any) -> Any:
        h = p["tokens.weight"][x] + p["places"]
        mask = library.tril(library.ones((LENGTH, LENGTH))) > 0
        for i in range(LAYERS):

            def at(name: str, i: int = i) -> Any:
                return p[f"blocks.{i}.{name}"]

            joint = norm(h, at("norm1.weight"), at("norm1.bias")) @ at("qkv.weight").T + at("qkv.bias")
            q, k, v = (
                part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
                for part in library.split(joint, 3, -1)
            )
            scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(WIDTH // HEADS)
            scores = library.where(mask, scores, -library.inf)
            shares = library.exp(scores - scores.max(-1, keepdims=True))
            mixed = (shares / shares.sum(-1, keepdims=True)) @ v
            h = h + mixed.transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ at("out.weight").T + at("out.bias")
            up = norm(h, at("norm2.weight"), at("norm2.bias")) @ at("up.weight").T + at("up.bias")
            h = h + gelu(up) @ at("down.weight").T + at("down.bias")
        logits = norm(h, p["norm.weight"], p["norm.bias"]) @ p["head.weight"].T + p["head.bias"]
        return pick(logits, y)

    return loss_of


def _adamw(p: Any, m: Any, v: Any, g: Any, t: Any, sqrt: Any) -> tuple[Any, Any, Any]:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**t)) / (sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p - RATE * (step + 0.01 * p), m, v


def jax() -> Step:
    import jax
    import jax.numpy as jnp

    def pick(logits: Any, y: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    loss_of = _functional(jnp, jax.nn.gelu, jax.lax.rsqrt, pick)

    def update(p: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        new = {name: _adamw(p[name], m[name], v[name], g[name], t, jnp.sqrt) for name in p}
        return *({name: parts[i] for name, parts in new.items()} for i in range(3)), t + 1, loss

    compiled = jax.jit(update, donate_argnums=(0, 1, 2))
    p = {name: jnp.array(array) for name, array in weights().items()}
    state = [p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.float32(1)]
    x, y = map(jnp.array, data())

    def step() -> Any:
        *state[:], loss = compiled(*state, x, y)
        return jax.block_until_ready(loss)

    return step


def mlx() -> Step:
    import mlx.core as mx
    import mlx.nn as nn

    def pick(logits: Any, y: Any) -> Any:
        lse = mx.logsumexp(logits, axis=-1)
        return (lse - mx.take_along_axis(logits, y[..., None], axis=-1)[..., 0]).mean()

    value_and_grad = mx.value_and_grad(_functional(mx, nn.gelu_approx, mx.rsqrt, pick))

    def update(p: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
        loss, g = value_and_grad(p, x, y)
        new = {name: _adamw(p[name], m[name], v[name], g[name], t, mx.sqrt) for name in p}
        return *({name: parts[i] for name, parts in new.items()} for i in range(3)), t + 1, loss

    compiled = mx.compile(update)
    p = {name: mx.array(array) for name, array in weights().items()}
    zeros = {name: mx.zeros_like(array) for name, array in p.items()}
    state = [p, zeros, dict(zeros), mx.array(1.0)]
    x, y = map(mx.array, data())

    def step() -> Any:
        *state[:], loss = compiled(*state, x, y)
        mx.eval(loss, state)
        return loss

    return step


def floor() -> Step:
    """The matrix products of forward and backward, each alone, and nothing else."""
    generator = np.random.default_rng(2)
    tokens, per_head = BATCH * LENGTH, WIDTH // HEADS
    wide = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)] * LAYERS + [(WIDTH, CHARACTERS)]

    def array(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    products = []
    for inputs, outputs in wide:
        x, w, g = array(tokens, inputs), array(inputs, outputs), array(tokens, outputs)
        products += [(x, w), (g, w.T), (x.T, g)]
    q = array(BATCH, HEADS, LENGTH, per_head)
    scores = array(BATCH, HEADS, LENGTH, LENGTH)
    products += [(q, q.swapaxes(-1, -2)), (scores, q)] * (3 * LAYERS)
    results = [np.empty(np.matmul(x, y).shape, np.float32) for x, y in products]

    def run() -> None:
        for (x, y), out in zip(products, results):
            np.matmul(x, y, out=out)

    return run


# -- compiling -----------------------------------------------------------------------------------

_FIRST_CALLS = """
import sys, time
from benchmarks.compiled import gpt
step = getattr(gpt, sys.argv[1])()
start = time.perf_counter()
for _ in range(int(sys.argv[2])):
    step()
print(time.perf_counter() - start)
"""


def compile_times(benchmark: str, effort: Effort) -> Iterator[Measurement]:
    """The time of the first call (which compiles), in a new process each; for Pullback once more, with its cache."""
    with tempfile.TemporaryDirectory() as cache:
        for system in peers.installed(("pullback", "jax", *(() if effort.is_quick else ("torch.compile",)))):
            yield Measurement(benchmark, "gpt", system, "compile", _first_calls(system, cache), "s")
            if system == "pullback":
                yield Measurement(benchmark, "gpt", system, "cached", _first_calls(system, cache), "s")


def _first_calls(system: str, cache: str) -> float:
    maker = {"torch.compile": "torch_compiled"}.get(system, system)
    command = [sys.executable, "-c", _FIRST_CALLS, maker, "1"]
    folder = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PULLBACK_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return float(json.loads(done.stdout.splitlines()[-1]))
