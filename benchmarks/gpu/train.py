"""Whole training steps on a GPU, compiled: forward, backward and optimizer, beside PyTorch and JAX.

    python -m benchmarks.gpu.train [gpt] [mlp] [resnet] [--systems pullback,torch,compile,jax] [--json FILE]

gpt     12 layers (`--layers`) of width 768, 8 x 1024 tokens, bfloat16, AdamW
mlp     784-512-512-10, batch 128, SGD, float32 (`--tf32` lets all systems multiply in TF32)
resnet  ResNet-18, 256 images of 64 x 64, bfloat16, SGD with momentum; the others' channels are last in memory

Of every system: milliseconds of a step (median of GPU times; of the MLP by the clock, over many steps without waiting),
peak memory, and seconds of the first call; of the ResNet also the first losses, which show that all do the same work.
Each runs in a process of its own, for one that has run another system before keeps its memory. The last line of each
work is the ratio to the best of the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch
from torch.nn import functional

import pullback as pb

from .measuring import Row, measured, measured_on_jax
from .resnet import resnet_jax, resnet_pullback, resnet_torch

MLP = (784, 512, 512, 10)


class Gpt(NamedTuple):
    layers: int = 12
    width: int = 768
    heads: int = 12
    length: int = 1024
    batch: int = 8
    words: int = 50304


# -- the GPT -------------------------------------------------------------------------------------------


def gpt_weights(size: Gpt) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * 0.02

    width = size.width
    made = {"tokens": normal(size.words, width), "places": normal(size.length, width)}
    made |= {"norm": torch.ones(width), "norm.bias": torch.zeros(width)}
    for i in range(size.layers):
        forms = (
            ("qkv", (3 * width, width)),
            ("out", (width, width)),
            ("up", (4 * width, width)),
            ("down", (width, 4 * width)),
        )
        for name, shape in forms:
            made[f"{i}.{name}"], made[f"{i}.{name}.bias"] = normal(*shape), torch.zeros(shape[0])
        for name in ("norm1", "norm2"):
            made[f"{i}.{name}"], made[f"{i}.{name}.bias"] = torch.ones(width), torch.zeros(width)
    return {name: weight.to("cuda", torch.bfloat16) for name, weight in made.items()}


def gpt_tokens(size: Gpt) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    shape = size.batch, size.length
    x, y = (torch.randint(0, size.words, shape, generator=random).to("cuda") for _ in range(2))
    return x, y


def gpt_loss(w: dict[str, Any], x: Any, y: Any, size: Gpt) -> Any:
    """The loss on Pullback's tensors."""
    shape = size.batch, size.length, 3, size.heads, size.width // size.heads

    def linear(h: Any, name: str) -> Any:
        return pb.linear(h, w[name], w[f"{name}.bias"])

    def norm(h: Any, name: str) -> Any:
        return pb.layer_norm(h, (size.width,), w[name], w[f"{name}.bias"])

    h = pb.embedding(x, w["tokens"]) + w["places"]
    for i in range(size.layers):
        parts = linear(norm(h, f"{i}.norm1"), f"{i}.qkv").reshape(shape)
        q, k, v = (pb.permute_dims(parts[:, :, part], (0, 2, 1, 3)) for part in range(3))
        mixed = pb.permute_dims(pb.scaled_dot_product_attention(q, k, v, is_causal=True), (0, 2, 1, 3))
        h = h + linear(mixed.reshape(size.batch, size.length, size.width), f"{i}.out")
        h = h + linear(pb.gelu(linear(norm(h, f"{i}.norm2"), f"{i}.up"), approximate="tanh"), f"{i}.down")
    return pb.cross_entropy(pb.linear(norm(h, "norm"), w["tokens"]).reshape(-1, size.words), y.reshape(-1))


def gpt_loss_of_torch(w: dict[str, Any], x: Any, y: Any, size: Gpt) -> Any:
    shape = size.batch, size.length, 3, size.heads, size.width // size.heads

    def linear(h: Any, name: str) -> Any:
        return functional.linear(h, w[name], w[f"{name}.bias"])

    def norm(h: Any, name: str) -> Any:
        return functional.layer_norm(h, (size.width,), w[name], w[f"{name}.bias"])

    h = functional.embedding(x, w["tokens"]) + w["places"]
    for i in range(size.layers):
        q, k, v = linear(norm(h, f"{i}.norm1"), f"{i}.qkv").view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        h = h + linear(mixed.reshape(size.batch, size.length, size.width), f"{i}.out")
        h = h + linear(functional.gelu(linear(norm(h, f"{i}.norm2"), f"{i}.up"), approximate="tanh"), f"{i}.down")
    return functional.cross_entropy(functional.linear(norm(h, "norm"), w["tokens"]).view(-1, size.words), y.view(-1))


def gpt_pullback(size: Gpt) -> Row:
    weights = {name: pb.asarray(weight).set_requires_grad(True) for name, weight in gpt_weights(size).items()}
    optimizer = pb.optim.AdamW(weights.values(), lr=1e-4)
    x, y = map(pb.asarray, gpt_tokens(size))

    @pb.compile
    def step(x: Any, y: Any) -> Any:
        loss = gpt_loss(weights, x, y, size)
        optimizer.step(pb.backward(loss))
        return loss

    return measured("gpt", "pullback", lambda: step(x, y))


def gpt_torch(size: Gpt, mode: str | None) -> Row:
    weights = {name: weight.requires_grad_() for name, weight in gpt_weights(size).items()}
    x, y = gpt_tokens(size)
    optimizer = torch.optim.AdamW(weights.values(), lr=1e-4, fused=True)
    torch._dynamo.reset()
    loss_of: Any = gpt_loss_of_torch if mode is None else torch.compile(gpt_loss_of_torch, mode=mode)

    def step() -> None:
        loss_of(weights, x, y, size).backward()
        optimizer.step()
        optimizer.zero_grad()

    return measured("gpt", "torch" if mode is None else f"torch.compile {mode}", step)


def gpt_jax(size: Gpt) -> Row:
    import jax
    import jax.numpy as jnp

    w = {name: jnp.asarray(weight.float().cpu().numpy(), jnp.bfloat16) for name, weight in gpt_weights(size).items()}
    x, y = (jnp.asarray(part.cpu().numpy()) for part in gpt_tokens(size))
    shape = size.batch, size.length, 3, size.heads, size.width // size.heads

    def norm(w: Any, h: Any, name: str) -> Any:
        wide = h.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
        return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(h.dtype) * w[name] + w[f"{name}.bias"]

    def loss(w: Any, x: Any, y: Any) -> Any:
        def linear(h: Any, name: str) -> Any:
            return h @ w[name].T + w[f"{name}.bias"]

        h = w["tokens"][x] + w["places"]
        for i in range(size.layers):
            parts = linear(norm(w, h, f"{i}.norm1"), f"{i}.qkv").reshape(shape)
            q, k, v = (parts[:, :, part] for part in range(3))
            mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
            h = h + linear(mixed.reshape(size.batch, size.length, size.width), f"{i}.out")
            h = h + linear(jax.nn.gelu(linear(norm(w, h, f"{i}.norm2"), f"{i}.up"), approximate=True), f"{i}.down")
        logits = (norm(w, h, "norm") @ w["tokens"].T).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, y[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    def update(p: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        move = 1e-4 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return (p * (1 - 1e-6) - move).astype(p.dtype), m, v

    def step(w: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
        t = t + 1
        gradients = jax.grad(loss)(w, x, y)
        made = {name: update(w[name], gradients[name], m[name], v[name], t) for name in w}
        return (*({name: parts[i] for name, parts in made.items()} for i in range(3)), t)

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    state = w, jax.tree.map(jnp.zeros_like, w), jax.tree.map(jnp.zeros_like, w), jnp.float32(0)

    def again() -> Any:
        nonlocal state
        state = compiled(*state, x, y)
        return state

    return measured_on_jax("gpt", again, 20)


# -- the MLP -------------------------------------------------------------------------------------------


def mlp_weights() -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    made = []
    for inputs, outputs in itertools.pairwise(MLP):
        made += [torch.randn(outputs, inputs, generator=random) / math.sqrt(inputs), torch.zeros(outputs)]
    return [weight.to("cuda") for weight in made]


def mlp_batch() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(128, MLP[0], generator=random)
    return x.to("cuda"), torch.randint(0, MLP[-1], (128,), generator=random).to("cuda")


def mlp_pullback() -> Row:
    weights = [pb.asarray(weight).set_requires_grad(True) for weight in mlp_weights()]
    optimizer = pb.optim.SGD(weights, lr=0.01)
    x, y = map(pb.asarray, mlp_batch())

    @pb.compile
    def step(x: Any, y: Any) -> Any:
        h = x
        for i in range(0, len(weights), 2):
            h = pb.linear(h, weights[i], weights[i + 1])
            h = pb.relu(h) if i + 2 < len(weights) else h
        loss = pb.cross_entropy(h, y)
        optimizer.step(pb.backward(loss))
        return loss

    return measured("mlp", "pullback", lambda: step(x, y), by_clock=True)


def mlp_torch(mode: str | None) -> Row:
    weights = [weight.requires_grad_() for weight in mlp_weights()]
    x, y = mlp_batch()
    optimizer = torch.optim.SGD(weights, lr=0.01, fused=True)

    def loss_of(x: Any, y: Any) -> Any:
        h = x
        for i in range(0, len(weights), 2):
            h = functional.linear(h, weights[i], weights[i + 1])
            h = functional.relu(h) if i + 2 < len(weights) else h
        return functional.cross_entropy(h, y)

    torch._dynamo.reset()
    called: Any = loss_of if mode is None else torch.compile(loss_of, mode=mode)

    def step() -> None:
        called(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return measured("mlp", "torch" if mode is None else f"torch.compile {mode}", step, by_clock=True)


def mlp_jax(precision: str) -> Row:
    import jax
    import jax.numpy as jnp

    w = [jnp.asarray(weight.cpu().numpy()) for weight in mlp_weights()]
    x, y = (jnp.asarray(part.cpu().numpy()) for part in mlp_batch())

    def loss(w: Any, x: Any, y: Any) -> Any:
        h = x
        for i in range(0, len(w), 2):
            h = jnp.matmul(h, w[i].T, precision=precision) + w[i + 1]
            h = jax.nn.relu(h) if i + 2 < len(w) else h
        return -jnp.mean(jax.nn.log_softmax(h)[jnp.arange(h.shape[0]), y])

    def step(w: Any, x: Any, y: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.01 * g, w, jax.grad(loss)(w, x, y))

    compiled = jax.jit(step, donate_argnums=0)

    def again() -> Any:
        nonlocal w
        w = compiled(w, x, y)
        return w

    return measured_on_jax("mlp", again, 300)


# -- all of it -----------------------------------------------------------------------------------------


def jobs(size: Gpt, tf32: bool) -> dict[tuple[str, str], Callable[[], Row]]:
    """What is measured, by the names of a work and of a system."""
    return {
        ("gpt", "pullback"): lambda: gpt_pullback(size),
        ("gpt", "torch"): lambda: gpt_torch(size, None),
        ("gpt", "compile default"): lambda: gpt_torch(size, "default"),
        ("gpt", "compile reduce-overhead"): lambda: gpt_torch(size, "reduce-overhead"),
        ("gpt", "jax"): lambda: gpt_jax(size),
        ("mlp", "pullback"): mlp_pullback,
        ("mlp", "torch"): lambda: mlp_torch(None),
        ("mlp", "compile default"): lambda: mlp_torch("default"),
        ("mlp", "compile reduce-overhead"): lambda: mlp_torch("reduce-overhead"),
        ("mlp", "jax"): lambda: mlp_jax("default" if tf32 else "highest"),
        ("resnet", "pullback"): resnet_pullback,
        ("resnet", "torch"): lambda: resnet_torch(None),
        ("resnet", "compile default"): lambda: resnet_torch("default"),
        ("resnet", "compile reduce-overhead"): lambda: resnet_torch("reduce-overhead"),
        ("resnet", "jax"): resnet_jax,
    }


def rows(works: list[str], systems: list[str], size: Gpt, tf32: bool) -> list[Row]:
    """The rows of works and systems, each from a process of its own; one that fails has none."""
    found: list[Row] = []
    for work, system in jobs(size, tf32):
        if work not in works or system.split()[0] not in systems:
            continue
        command = [sys.executable, "-m", "benchmarks.gpu.train", "--one", work, system, "--layers", str(size.layers)]
        made = subprocess.run(command + ["--tf32"] * tf32, stdout=subprocess.PIPE, text=True)
        if made.returncode:
            print(f"{work:6s} {system:30s} failed ({made.returncode})", flush=True)
            continue
        fields = json.loads(made.stdout.splitlines()[-1])
        found.append(Row(**{**fields, "losses": tuple(fields["losses"])}))
        print(found[-1], flush=True)
    return found


def one(work: str, system: str, size: Gpt, tf32: bool) -> Row:
    """One row, measured in this process."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return jobs(size, tf32)[work, system]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", default=["gpt", "mlp", "resnet"])
    parser.add_argument("--systems", default="pullback,torch,compile,jax")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("WORK", "SYSTEM"), help="measure in this process, print JSON")
    options = parser.parse_args()
    size = Gpt(layers=options.layers)
    if options.one:
        print(json.dumps(one(*options.one, size, options.tf32)._asdict()))
        return
    found = rows(options.works, options.systems.split(","), size, options.tf32)
    for work in options.works:
        times = {row.system: row.milliseconds for row in found if row.work == work}
        others = [taken for system, taken in times.items() if system != "pullback"]
        if "pullback" in times and others:
            print(f"{work}: {times['pullback'] / min(others):.2f} of the best of the others")
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in found], indent=1))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
