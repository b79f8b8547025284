"""Eager code on PyTorch's tensors beside PyTorch itself: a GPT, and many small operations.

    python -m benchmarks.gpu.eager [--check] [--profile]

On a GPU the GPT has 12 layers of width 768 and 8 x 1024 tokens in bfloat16; on a CPU it is the small one of `compiled`.
`gpt` is forward and backward, `step` also AdamW; `host` is `gpt` with so few tokens that only Python's time counts.
Each is measured in rounds, one system after the other. `--check` compares what is there on a GPU alone with PyTorch.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

import pullback as pb

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
CHAIN = 50  # times two operations


class Sizes(NamedTuple):
    batch: int
    length: int
    width: int
    heads: int
    layers: int
    words: int
    dtype: torch.dtype


FULL = Sizes(8, 1024, 768, 12, 12, 50304, torch.bfloat16) if ON_GPU else Sizes(8, 128, 128, 4, 4, 65, torch.float32)
TINY = Sizes(2, 16, 64, 2, 12, 128, torch.bfloat16 if ON_GPU else torch.float32)


def weights(sizes: Sizes) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    width = sizes.width
    made = {
        "tokens": torch.randn(sizes.words, width, generator=generator) * 0.02,
        "places": torch.zeros(sizes.length, width),
    }

    def linear(name: str, inputs: int, outputs: int) -> None:
        made[f"{name}.weight"] = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) / math.sqrt(inputs)
        made[f"{name}.bias"] = torch.zeros(outputs)

    def norm(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = torch.ones(width), torch.zeros(width)

    for i in range(sizes.layers):
        norm(f"{i}.norm1")
        norm(f"{i}.norm2")
        linear(f"{i}.qkv", width, 3 * width)
        linear(f"{i}.out", width, width)
        linear(f"{i}.up", width, 4 * width)
        linear(f"{i}.down", 4 * width, width)
    norm("norm")
    linear("head", width, sizes.words)
    return {name: weight.to(DEVICE, sizes.dtype) for name, weight in made.items()}


def tokens(sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randint(0, sizes.words, (sizes.batch, sizes.length), generator=generator) for _ in range(2))
    return x.to(DEVICE), y.to(DEVICE)


def torch_loss(w: dict[str, Any], x: Any, y: Any, sizes: Sizes) -> Any:
    batch, length, width, heads, layers, words, _ = sizes

    def of(name: str) -> tuple[Any, Any]:
        return w[f"{name}.weight"], w[f"{name}.bias"]

    h = functional.embedding(x, w["tokens"]) + w["places"]
    for i in range(layers):
        parts = functional.linear(functional.layer_norm(h, (width,), *of(f"{i}.norm1")), *of(f"{i}.qkv")).chunk(3, -1)
        q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + functional.linear(mixed.transpose(1, 2).reshape(batch, length, width), *of(f"{i}.out"))
        wide = functional.linear(functional.layer_norm(h, (width,), *of(f"{i}.norm2")), *of(f"{i}.up"))
        h = h + functional.linear(functional.gelu(wide, approximate="tanh"), *of(f"{i}.down"))
    logits = functional.linear(functional.layer_norm(h, (width,), *of("norm")), *of("head"))
    return functional.cross_entropy(logits.view(-1, words), y.view(-1))


def pullback_loss(w: dict[str, Any], x: Any, y: Any, sizes: Sizes) -> Any:
    batch, length, width, heads, layers, words, _ = sizes

    def of(name: str) -> tuple[Any, Any]:
        return w[f"{name}.weight"], w[f"{name}.bias"]

    h = pb.embedding(x, w["tokens"]) + w["places"]
    for i in range(layers):
        parts = pb.split(pb.linear(pb.layer_norm(h, (width,), *of(f"{i}.norm1")), *of(f"{i}.qkv")), 3, axis=-1)
        q, k, v = (pb.permute_dims(part.reshape(batch, length, heads, width // heads), (0, 2, 1, 3)) for part in parts)
        mixed = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + pb.linear(pb.permute_dims(mixed, (0, 2, 1, 3)).reshape(batch, length, width), *of(f"{i}.out"))
        wide = pb.linear(pb.layer_norm(h, (width,), *of(f"{i}.norm2")), *of(f"{i}.up"))
        h = h + pb.linear(pb.gelu(wide, approximate="tanh"), *of(f"{i}.down"))
    logits = pb.linear(pb.layer_norm(h, (width,), *of("norm")), *of("head"))
    return pb.cross_entropy(logits.reshape(-1, words), y.reshape(-1))


def gpt(sizes: Sizes) -> dict[str, Callable[[], tuple[Any, list[Any]]]]:
    """Forward and backward: the loss and all gradients."""
    x, y = tokens(sizes)
    theirs = {name: weight.requires_grad_() for name, weight in weights(sizes).items()}
    ours = {name: pb.asarray(weight).set_requires_grad(True) for name, weight in weights(sizes).items()}
    tensors = pb.asarray(x), pb.asarray(y)

    def torch_step() -> tuple[Any, list[Any]]:
        loss = torch_loss(theirs, x, y, sizes)
        return loss, list(torch.autograd.grad(loss, list(theirs.values())))

    def pullback_step() -> tuple[Any, list[Any]]:
        loss = pullback_loss(ours, *tensors, sizes)
        gradients = pb.backward(loss)
        return loss, [gradients[weight] for weight in ours.values()]

    def unguarded() -> tuple[Any, list[Any]]:
        with pb.guard("off"):
            return pullback_step()

    return {"torch": torch_step, "pullback": pullback_step, "pullback, guard off": unguarded}


def whole_step(sizes: Sizes) -> dict[str, Callable[[], Any]]:
    """Forward, backward, clipping of the gradients' norm and AdamW; returns the loss."""
    x, y = tokens(sizes)
    theirs = {name: weight.requires_grad_() for name, weight in weights(sizes).items()}
    ours = {name: pb.asarray(weight.clone()).set_requires_grad(True) for name, weight in weights(sizes).items()}
    tensors = pb.asarray(x), pb.asarray(y)
    options: dict[str, Any] = {"lr": 1e-4, "weight_decay": 0.01}
    their_optimizer = torch.optim.AdamW(theirs.values(), **options)
    our_optimizer = pb.optim.AdamW(ours.values(), **options)

    def torch_step() -> Any:
        loss = torch_loss(theirs, x, y, sizes)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.values(), 1.0)
        their_optimizer.step()
        their_optimizer.zero_grad(set_to_none=True)
        return loss

    def pullback_step() -> Any:
        loss = pullback_loss(ours, *tensors, sizes)
        gradients = pb.backward(loss)
        gradients.clip_global_norm(1.0)
        our_optimizer.step(gradients)
        return loss

    return {"torch": torch_step, "pullback": pullback_step}


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


def best(functions: dict[str, Callable[[], Any]], calls: int, rounds: int = 7) -> dict[str, float]:
    """Milliseconds per call, the least of some rounds."""
    for function in functions.values():
        for _ in range(3):
            function()
    found = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for system, function in functions.items():
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                function()
            wait()
            found[system] = min(found[system], (time.perf_counter() - start) / calls * 1e3)
    return found


def peak(function: Callable[[], Any]) -> float:
    """GiB beyond what is there before."""
    if not ON_GPU:
        return float("nan")
    wait()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    wait()
    return (torch.cuda.max_memory_allocated() - before) / 2**30


def report(name: str, functions: dict[str, Callable[[], Any]], calls: int) -> None:
    times = best(functions, calls)
    base = times["torch"]
    for system, ms in times.items():
        memory = f"peak {peak(functions[system]):6.2f} GiB"
        print(f"{name:6} {system:22} {ms:9.3f} ms  {ms / base:5.2f}  {memory}", flush=True)


def compare(steps: dict[str, Callable[[], tuple[Any, list[Any]]]]) -> None:
    """Print how far the gradients are apart, as a share of each one's largest element."""
    loss, theirs = steps["torch"]()
    own_loss, ours = steps["pullback"]()
    apart = [
        ((a.float() - b._raw.float()).abs().max() / a.float().abs().max().clamp(min=1e-9)).item()
        for a, b in zip(theirs, ours)
    ]
    print(f"loss {loss.item():.6f} and {own_loss.item():.6f}; gradients apart by at most {max(apart):.2g}", flush=True)


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


def main(arguments: list[str]) -> None:
    if not ON_GPU:
        torch.set_num_threads(2)
    compare(gpt(FULL))
    report("gpt", gpt(FULL), 5)
    report("step", whole_step(FULL), 5)
    report("host", gpt(TINY), 5)
    report("chain", chain(), 20)
    if "--profile" in arguments:
        profile(gpt(FULL)["pullback"])
        profile(chain()["pullback"])
    if "--check" in arguments:
        from benchmarks.gpu.checks import main as check

        check(DEVICE)


if __name__ == "__main__":
    main(sys.argv[1:])
