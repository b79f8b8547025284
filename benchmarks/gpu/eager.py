"""Eager code on PyTorch's tensors beside PyTorch itself: a GPT's forward and backward pass, and many small operations.

    python -m benchmarks.gpu.eager [--profile]

On a GPU the GPT has 12 layers of width 768 and 8 x 1024 tokens in bfloat16; on a CPU it is the small one of `compiled`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import pullback as pb

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
BATCH, LENGTH, WIDTH, HEADS, LAYERS, WORDS = (8, 1024, 768, 12, 12, 50304) if ON_GPU else (8, 128, 128, 4, 4, 65)
DTYPE = torch.bfloat16 if ON_GPU else torch.float32
CHAIN = 50  # times two operations


def weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    made = {"tokens": torch.randn(WORDS, WIDTH, generator=generator) * 0.02, "places": torch.zeros(LENGTH, WIDTH)}

    def linear(name: str, inputs: int, outputs: int) -> None:
        made[f"{name}.weight"] = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) / math.sqrt(inputs)
        made[f"{name}.bias"] = torch.zeros(outputs)

    def norm(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = torch.ones(WIDTH), torch.zeros(WIDTH)

    for i in range(LAYERS):
        norm(f"{i}.norm1")
        norm(f"{i}.norm2")
        linear(f"{i}.qkv", WIDTH, 3 * WIDTH)
        linear(f"{i}.out", WIDTH, WIDTH)
        linear(f"{i}.up", WIDTH, 4 * WIDTH)
        linear(f"{i}.down", 4 * WIDTH, WIDTH)
    norm("norm")
    linear("head", WIDTH, WORDS)
    return {name: weight.to(DEVICE, DTYPE) for name, weight in made.items()}


def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randint(0, WORDS, (BATCH, LENGTH), generator=generator) for _ in range(2))
    return x.to(DEVICE), y.to(DEVICE)


def torch_loss(w: dict[str, Any], x: Any, y: Any) -> Any:
    def of(name: str) -> tuple[Any, Any]:
        return w[f"{name}.weight"], w[f"{name}.bias"]

    h = functional.embedding(x, w["tokens"]) + w["places"]
    for i in range(LAYERS):
        parts = functional.linear(functional.layer_norm(h, (WIDTH,), *of(f"{i}.norm1")), *of(f"{i}.qkv")).chunk(3, -1)
        q, k, v = (part.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + functional.linear(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), *of(f"{i}.out"))
        wide = functional.linear(functional.layer_norm(h, (WIDTH,), *of(f"{i}.norm2")), *of(f"{i}.up"))
        h = h + functional.linear(functional.gelu(wide, approximate="tanh"), *of(f"{i}.down"))
    logits = functional.linear(functional.layer_norm(h, (WIDTH,), *of("norm")), *of("head"))
    return functional.cross_entropy(logits.view(-1, WORDS), y.view(-1))


def pullback_loss(w: dict[str, Any], x: Any, y: Any) -> Any:
    def of(name: str) -> tuple[Any, Any]:
        return w[f"{name}.weight"], w[f"{name}.bias"]

    h = pb.embedding(x, w["tokens"]) + w["places"]
    for i in range(LAYERS):
        parts = pb.split(pb.linear(pb.layer_norm(h, (WIDTH,), *of(f"{i}.norm1")), *of(f"{i}.qkv")), 3, axis=-1)
        q, k, v = (pb.permute_dims(part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS), (0, 2, 1, 3)) for part in parts)
        mixed = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + pb.linear(pb.permute_dims(mixed, (0, 2, 1, 3)).reshape(BATCH, LENGTH, WIDTH), *of(f"{i}.out"))
        wide = pb.linear(pb.layer_norm(h, (WIDTH,), *of(f"{i}.norm2")), *of(f"{i}.up"))
        h = h + pb.linear(pb.gelu(wide, approximate="tanh"), *of(f"{i}.down"))
    logits = pb.linear(pb.layer_norm(h, (WIDTH,), *of("norm")), *of("head"))
    return pb.cross_entropy(logits.reshape(-1, WORDS), y.reshape(-1))


def gpt() -> dict[str, Callable[[], tuple[Any, list[Any]]]]:
    x, y = tokens()
    theirs = {name: weight.requires_grad_() for name, weight in weights().items()}
    ours = {name: pb.asarray(weight).set_requires_grad(True) for name, weight in weights().items()}
    tensors = pb.asarray(x), pb.asarray(y)

    def torch_step() -> tuple[Any, list[Any]]:
        loss = torch_loss(theirs, x, y)
        return loss, list(torch.autograd.grad(loss, list(theirs.values())))

    def pullback_step() -> tuple[Any, list[Any]]:
        loss = pullback_loss(ours, *tensors)
        gradients = pb.backward(loss)
        return loss, [gradients[weight] for weight in ours.values()]

    def unguarded() -> tuple[Any, list[Any]]:
        with pb.guard("off"):
            return pullback_step()

    return {"torch": torch_step, "pullback": pullback_step, "pullback, guard off": unguarded}


def chain() -> dict[str, Callable[[], Any]]:
    raw = torch.linspace(-1, 1, 1000, device=DEVICE)
    theirs, ours = raw.clone().requires_grad_(), pb.asarray(raw.clone()).set_requires_grad(True)

    def torch_chain() -> Any:
        y = theirs
        for _ in range(CHAIN):
            y = torch.tanh(y * 1.1)
        return torch.autograd.grad(y.sum(), theirs)[0]

    def pullback_chain() -> Any:
        y = ours
        for _ in range(CHAIN):
            y = pb.tanh(y * 1.1)
        return pb.backward(pb.sum(y))[ours]

    def unguarded() -> Any:
        with pb.guard("off"):
            return pullback_chain()

    return {"torch": torch_chain, "pullback": pullback_chain, "pullback, guard off": unguarded}


def wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def best(function: Callable[[], Any], calls: int, rounds: int = 5) -> float:
    """Milliseconds per call."""
    for _ in range(3):
        function()
    times = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        wait()
        times.append((time.perf_counter() - start) / calls * 1e3)
    return min(times)


def peak(function: Callable[[], Any]) -> float:
    """GiB."""
    if not ON_GPU:
        return float("nan")
    wait()
    torch.cuda.reset_peak_memory_stats()
    function()
    wait()
    return torch.cuda.max_memory_allocated() / 2**30


def compare(steps: dict[str, Callable[[], tuple[Any, list[Any]]]]) -> None:
    """Print how far the gradients are apart, as a share of each one's largest element."""
    loss, theirs = steps["torch"]()
    own_loss, ours = steps["pullback"]()
    apart = [
        ((a.float() - b._raw.float()).abs().max() / a.float().abs().max().clamp(min=1e-9)).item()
        for a, b in zip(theirs, ours)
    ]
    print(f"loss {loss.item():.6f} and {own_loss.item():.6f}; gradients apart by at most {max(apart):.2g}", flush=True)


def report(name: str, functions: dict[str, Callable[[], Any]], calls: int) -> None:
    base = None
    for system, function in functions.items():
        ms = best(function, calls)
        base = base or ms
        print(f"{name:6} {system:22} {ms:9.3f} ms  {ms / base:5.2f}  peak {peak(function):6.2f} GiB", flush=True)


def profile(function: Callable[[], Any]) -> None:
    import cProfile
    import pstats

    for _ in range(3):
        function()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(5):
        function()
    wait()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    if ON_GPU:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
            function()
            wait()
        print(found.key_averages().table(sort_by="cuda_time_total", row_limit=30, max_name_column_width=60))


if __name__ == "__main__":
    if not ON_GPU:
        torch.set_num_threads(2)
    steps = gpt()
    compare(steps)
    report("gpt", steps, 5)
    report("chain", chain(), 20)
    if "--profile" in sys.argv:
        profile(steps["pullback"])
        profile(chain()["pullback"])
