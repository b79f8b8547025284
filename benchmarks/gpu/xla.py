"""A GPT's training step on JAX's device through `pb.compile`, beside the same written by hand for `jax.jit`.

    python -m benchmarks.gpu.xla [--profile]

On a GPU it has 12 layers of width 768 and 8 x 1024 tokens in bfloat16; on a CPU it is the small one of `compiled`.
Forward, backward and gradient descent with donated weights. By hand twice: with the attention that JAX chooses itself,
and with cuDNN's, which JAX has for GPUs. `--profile` adds what the device spends its time
with; steps are then run kernel by kernel, which takes longer.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

if "--profile" in sys.argv:  # else a step is one entry; JAX reads this when it is imported
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_enable_command_buffer=".strip()

import jax
import jax.numpy as jnp
import numpy as np

import pullback as pb

from ..measure import Effort, best_times

ON_GPU = jax.default_backend() == "gpu"
DEVICE = "jax:gpu:0" if ON_GPU else "jax:cpu"
BATCH, LENGTH, WIDTH, HEADS, LAYERS, WORDS = (8, 1024, 768, 12, 12, 50304) if ON_GPU else (8, 128, 128, 4, 4, 65)
DTYPE = jnp.bfloat16 if ON_GPU else jnp.float32
RATE = 0.01
EFFORT = Effort(rounds=10, seconds=0.3)
Step = Callable[[], Any]


def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    made = {
        "tokens": generator.standard_normal((WORDS, WIDTH), np.float32) * np.float32(0.02),
        "places": np.zeros((LENGTH, WIDTH), np.float32),
    }

    def linear(name: str, inputs: int, outputs: int) -> None:
        made[f"{name}.weight"] = (generator.random((outputs, inputs), np.float32) * 2 - 1) / np.float32(
            math.sqrt(inputs)
        )
        made[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)

    for i in range(LAYERS):
        norm(f"{i}.norm1")
        norm(f"{i}.norm2")
        linear(f"{i}.qkv", WIDTH, 3 * WIDTH)
        linear(f"{i}.out", WIDTH, WIDTH)
        linear(f"{i}.up", WIDTH, 4 * WIDTH)
        linear(f"{i}.down", 4 * WIDTH, WIDTH)
    norm("norm")
    linear("head", WIDTH, WORDS)
    return made


def arrays() -> dict[str, Any]:
    """The weights on the device; each system has its own, for it writes over them."""
    return {name: jnp.array(weight, DTYPE) for name, weight in weights().items()}


def tokens() -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    x, y = (jnp.array(generator.integers(0, WORDS, (BATCH, LENGTH)), jnp.int32) for _ in range(2))
    return x, y


def pullback() -> Step:
    w = {name: pb.asarray(weight).set_requires_grad(True) for name, weight in arrays().items()}
    x, y = map(pb.asarray, tokens())
    optimizer = pb.optim.SGD(list(w.values()), RATE)

    def of(name: str) -> tuple[Any, Any]:
        return w[f"{name}.weight"], w[f"{name}.bias"]

    def heads(part: Any) -> Any:
        return pb.permute_dims(part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS), (0, 2, 1, 3))

    @pb.compile
    def step(x: Any, y: Any) -> Any:
        h = pb.embedding(x, w["tokens"]) + w["places"]
        for i in range(LAYERS):
            parts = pb.split(pb.linear(pb.layer_norm(h, (WIDTH,), *of(f"{i}.norm1")), *of(f"{i}.qkv")), 3, axis=-1)
            mixed = pb.scaled_dot_product_attention(*map(heads, parts), is_causal=True)
            h = h + pb.linear(pb.permute_dims(mixed, (0, 2, 1, 3)).reshape(BATCH, LENGTH, WIDTH), *of(f"{i}.out"))
            wide = pb.linear(pb.layer_norm(h, (WIDTH,), *of(f"{i}.norm2")), *of(f"{i}.up"))
            h = h + pb.linear(pb.gelu(wide, approximate="tanh"), *of(f"{i}.down"))
        logits = pb.linear(pb.layer_norm(h, (WIDTH,), *of("norm")), *of("head"))
        loss = pb.cross_entropy(logits.reshape(-1, WORDS).astype(pb.float32), y.reshape(-1))
        optimizer.step(pb.backward(loss))
        return loss

    return lambda: jax.block_until_ready(step(x, y)._raw)


def by_hand(attention: str | None) -> Step:
    """The step in JAX alone, with statistics and the loss in float32 as is usual."""

    def linear(x: Any, weight: Any, bias: Any) -> Any:
        return x @ weight.T + bias

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        unit = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return unit.astype(x.dtype) * weight + bias

    def loss_of(w: Any, x: Any, y: Any) -> Any:
        def of(name: str) -> tuple[Any, Any]:
            return w[f"{name}.weight"], w[f"{name}.bias"]

        h = w["tokens"][x] + w["places"]
        for i in range(LAYERS):
            parts = jnp.split(linear(norm(h, *of(f"{i}.norm1")), *of(f"{i}.qkv")), 3, -1)
            q, k, v = (part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS) for part in parts)
            mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=attention)
            h = h + linear(mixed.reshape(BATCH, LENGTH, WIDTH), *of(f"{i}.out"))
            h = h + linear(jax.nn.gelu(linear(norm(h, *of(f"{i}.norm2")), *of(f"{i}.up"))), *of(f"{i}.down"))
        logits = linear(norm(h, *of("norm")), *of("head")).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    def update(w: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(w, x, y)
        return jax.tree.map(lambda weight, g: weight - RATE * g, w, gradients), loss

    compiled = jax.jit(update, donate_argnums=0)
    held = [arrays()]
    x, y = tokens()

    def step() -> Any:
        held[0], loss = compiled(held[0], x, y)
        return jax.block_until_ready(loss)

    return step


def main() -> None:
    steps = {"jax.jit": by_hand(None), "pullback": pullback()}
    if ON_GPU:
        steps["jax.jit, cuDNN"] = by_hand("cudnn")
    for system, step in steps.items():
        losses = [float(step()) for _ in range(4)]
        print(f"{system:16} losses {' '.join(f'{loss:.4f}' for loss in losses)}", flush=True)
    times = best_times(steps, EFFORT)
    for system, microseconds in times.items():
        print(f"{system:16} {microseconds / 1e3:9.3f} ms {microseconds / times['jax.jit']:6.3f}", flush=True)
    if ON_GPU:
        print(f"pullback beside the better one: {times['pullback'] / min(times.values()):.3f}")
    if "--profile" in sys.argv:
        for system, step in steps.items():
            print(system)
            profile(step)


def profile(step: Step, rows: int = 25) -> None:
    """Print what the device does in a step, by kernel, the longest first."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            step()
        (path,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    on_device = {pid for pid, name in names.items() if "GPU" in name or not ON_GPU}
    total: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and event["pid"] in on_device and "hlo_op" in event.get("args", {}):
            total[event["args"]["hlo_op"].rstrip("0123456789.")] += event["dur"]
    for name, microseconds in total.most_common(rows):
        print(f"  {microseconds / 1e3:9.3f} ms  {name}")


if __name__ == "__main__":
    main()
