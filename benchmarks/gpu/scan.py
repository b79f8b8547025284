"""Scans on a GPU: linear recurrences and Mamba's selective scan, beside copies of as many bytes, JAX and PyTorch.

    python -m benchmarks.gpu.scan [linear] [selective] [--systems pullback,torch,jax] [--small] [--json FILE]

linear     h[t] = a[t] h[t-1] + x[t]: 4096 steps, batch 2, width 4096, float32
selective  batch 8, 4096 steps, width 4096, 16 states, bfloat16: gradients of u, delta, A, B and C

Forward, and forward and backward; of Pullback operation by operation (eager) and compiled. Milliseconds are medians of
GPU times. The floor of the first reads a and x and writes h, and then reads a, h and g and writes da and dx, as fast as
the device copies. `memory` is the most that was allocated beside what was given; the states of a selective scan as a
whole would take what the line `states` says. With `--small` everything is small, and runs on processors too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch

import pullback as pb

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"


class Size(NamedTuple):
    batch: int
    length: int
    width: int
    states: int = 0


class Row(NamedTuple):
    work: str
    system: str
    part: str  # "forward" or "both"
    milliseconds: float
    mebibytes: float  # nan where it is not known
    floor: float = float("nan")  # in milliseconds

    def __str__(self) -> str:
        ratio = f"{self.milliseconds / self.floor:7.2f} of the floor" if self.floor == self.floor else ""
        memory = f"memory {self.mebibytes:9.1f} MiB" if self.mebibytes == self.mebibytes else ""
        return f"{self.work:10s} {self.system:24s} {self.part:8s} {self.milliseconds:10.3f} ms {ratio:>22s}  {memory}"


Step = Callable[[], Any]


# -- measuring -------------------------------------------------------------------------------------------


def milliseconds(step: Step, is_jax: bool = False, times: int = 20) -> float:
    """The median time of a call, when it has been called a few times."""
    for _ in range(3):
        wait(step(), is_jax)
    found = []
    for _ in range(times):
        if HAS_GPU and not is_jax:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            step()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            wait(step(), is_jax)
            found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)


def wait(made: Any, is_jax: bool) -> None:
    if is_jax:
        import jax

        jax.block_until_ready(made)
    elif HAS_GPU:
        torch.cuda.synchronize()


def mebibytes(step: Step) -> float:
    """What a call has allocated at most."""
    if not HAS_GPU:
        return float("nan")
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measured(work: str, system: str, steps: dict[str, Step], floors: dict[str, float]) -> Iterator[Row]:
    is_jax = system.startswith("jax")
    for part, step in steps.items():
        try:
            taken = milliseconds(step, is_jax)
            memory = float("nan") if is_jax else mebibytes(step)
        except Exception as error:
            print(f"{work:10s} {system:24s} {part:8s} failed: {type(error).__name__}: {error}".split("\n")[0][:160])
            continue
        yield Row(work, system, part, taken, memory, floors.get(part, float("nan")))


def size_of(made: Any) -> float:
    """What numbers are on average, signs apart: by which one sees that systems compute the same."""
    if isinstance(made, pb.Tensor):
        return float(pb.mean(pb.abs(made.astype(pb.float32))).item())
    if isinstance(made, torch.Tensor):
        return made.float().abs().mean().item()
    return float(abs(made.astype("float32")).mean())


def copy_floors(size: Size) -> dict[str, float]:
    """How long the least memory traffic of a linear scan takes at the speed of a copy, forward and both ways."""
    source = torch.randn(size.batch, size.length, size.width, device=DEVICE)
    target = torch.empty_like(source)
    copied = milliseconds(lambda: target.copy_(source))
    speed = 2 * source.nbytes / copied / 1e9
    print(f"a copy of {source.nbytes / 2**20:.1f} MiB takes {copied:.3f} ms: {speed:.2f} TB/s")
    return {"forward": copied * 3 / 2, "both": copied * 8 / 2}


# -- linear recurrences ------------------------------------------------------------------------------------


def linear_arrays(size: Size) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    shape = (size.batch, size.length, size.width)
    return torch.rand(shape, generator=random).to(DEVICE), torch.randn(shape, generator=random).to(DEVICE)


def linear_pullback(size: Size, compiles: bool) -> dict[str, Step]:
    a, x = map(pb.asarray, linear_arrays(size))
    g = pb.asarray(torch.randn(x.shape, device=DEVICE))

    def forward(a: Any, x: Any) -> Any:
        return pb.ssm_scan(x, a, axis=1)

    def both(a: Any, x: Any, g: Any) -> Any:
        return pb.vjp(forward, a, x)[1](g)

    if compiles:
        forward_called, both_called = pb.compile(forward), pb.compile(both)
    else:
        forward_called, both_called = forward, both
    return {"forward": lambda: forward_called(a, x), "both": lambda: both_called(a, x, g)}


def combine(left: Any, right: Any) -> Any:
    return left[0] * right[0], right[0] * left[1] + right[1]


def linear_torch(size: Size) -> dict[str, Step]:
    """PyTorch's own scan, compiled."""
    from torch._higher_order_ops.associative_scan import associative_scan

    a, x = linear_arrays(size)
    g = torch.randn_like(x)

    @torch.compile
    def scan(a: Any, x: Any) -> Any:
        return associative_scan(combine, (a, x), dim=1, combine_mode="pointwise" if HAS_GPU else "generic")[1]

    def both() -> Any:
        inputs = [part.detach().requires_grad_() for part in (a, x)]
        return torch.autograd.grad(scan(*inputs), inputs, g)

    return {"forward": lambda: scan(a, x), "both": both}


def linear_jax(size: Size, how: str) -> dict[str, Step]:
    import jax
    import jax.numpy as jnp

    a, x = (jnp.asarray(part.cpu().numpy()) for part in linear_arrays(size))
    g = jnp.asarray(torch.randn(x.shape).numpy())

    def step_by_step(a: Any, x: Any) -> Any:
        def body(h: Any, ax: Any) -> Any:
            h = ax[0] * h + ax[1]
            return h, h

        rows = jnp.moveaxis(a, 1, 0), jnp.moveaxis(x, 1, 0)
        return jnp.moveaxis(jax.lax.scan(body, jnp.zeros_like(x[:, 0]), rows)[1], 0, 1)

    def associative(a: Any, x: Any) -> Any:
        return jax.lax.associative_scan(combine, (a, x), axis=1)[1]

    function = {"scan": step_by_step, "associative_scan": associative}[how]
    forward, both = jax.jit(function), jax.jit(lambda a, x, g: jax.vjp(function, a, x)[1](g))
    return {"forward": lambda: forward(a, x), "both": lambda: both(a, x, g)}


# -- selective scans ---------------------------------------------------------------------------------------


def selective_arrays(size: Size) -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(shape, generator=random)
    wide, narrow = (size.batch, size.width, size.length), (size.batch, size.states, size.length)
    delta, a = 0.1 * torch.rand(wide, generator=random), -draw(size.width, size.states).exp()
    arrays = [draw(*wide), delta, a, draw(*narrow), draw(*narrow)]
    return [array.to(DEVICE, torch.float32 if i == 2 else torch.bfloat16) for i, array in enumerate(arrays)]


def selective_pullback(size: Size, compiles: bool) -> dict[str, Step]:
    arrays = [pb.asarray(array) for array in selective_arrays(size)]
    g = pb.asarray(torch.randn(size.batch, size.width, size.length, device=DEVICE).bfloat16())

    def forward(*arrays: Any) -> Any:
        return pb.selective_scan(*arrays)

    def both(g: Any, *arrays: Any) -> Any:
        return pb.vjp(forward, *arrays)[1](g)

    forward_called, both_called = (pb.compile(forward), pb.compile(both)) if compiles else (forward, both)
    return {"forward": lambda: forward_called(*arrays), "both": lambda: both_called(g, *arrays)}


def selective_mamba(size: Size) -> dict[str, Step]:
    """The kernels of the package mamba-ssm."""
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    arrays = selective_arrays(size)
    g = torch.randn_like(arrays[0])

    def both() -> Any:
        inputs = [part.detach().requires_grad_() for part in arrays]
        return torch.autograd.grad(selective_scan_fn(*inputs), inputs, g)

    return {"forward": lambda: selective_scan_fn(*arrays), "both": both}


def selective_jax(size: Size) -> dict[str, Step]:
    """By chunks of steps, whose states are not kept: they are computed again for the gradient."""
    import jax
    import jax.numpy as jnp

    arrays = [jnp.asarray(array.float().cpu().numpy()) for array in selective_arrays(size)]
    u, delta, a, b, c = [array if i == 2 else array.astype(jnp.bfloat16) for i, array in enumerate(arrays)]
    chunk = min(64, size.length)
    g = jnp.asarray(torch.randn(u.shape).numpy()).astype(jnp.bfloat16)

    def function(u: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
        def cut(x: Any) -> Any:
            steps = jnp.moveaxis(x, -1, 0).astype(jnp.float32)
            return steps.reshape(-1, chunk, *steps.shape[1:])

        @jax.checkpoint
        def body(h: Any, now: Any) -> Any:
            u, delta, b, c = now
            moved = (delta * u)[..., None] * b[:, :, None]
            factors = jnp.exp(delta[..., None] * a)
            states = jax.lax.associative_scan(combine, (factors.at[0].multiply(1), moved.at[0].add(factors[0] * h)))[1]
            return states[-1], (states * c[:, :, None]).sum(-1)

        _, out = jax.lax.scan(body, jnp.zeros((u.shape[0], *a.shape), jnp.float32), tuple(map(cut, (u, delta, b, c))))
        return jnp.moveaxis(out.reshape(-1, *out.shape[2:]), 0, -1).astype(u.dtype)

    given = u, delta, a, b, c
    forward, both = jax.jit(function), jax.jit(lambda g, *given: jax.vjp(function, *given)[1](g))
    return {"forward": lambda: forward(*given), "both": lambda: both(g, *given)}


# -- all of it ---------------------------------------------------------------------------------------------


def jobs(linear: Size, selective: Size) -> dict[tuple[str, str], Callable[[], dict[str, Step]]]:
    """What is measured, by the names of a work and of a system."""
    return {
        ("linear", "pullback eager"): lambda: linear_pullback(linear, False),
        ("linear", "pullback compiled"): lambda: linear_pullback(linear, True),
        ("linear", "torch compiled"): lambda: linear_torch(linear),
        ("linear", "jax associative_scan"): lambda: linear_jax(linear, "associative_scan"),
        ("linear", "jax scan"): lambda: linear_jax(linear, "scan"),
        ("selective", "pullback eager"): lambda: selective_pullback(selective, False),
        ("selective", "pullback compiled"): lambda: selective_pullback(selective, True),
        ("selective", "torch mamba_ssm"): lambda: selective_mamba(selective),
        ("selective", "jax"): lambda: selective_jax(selective),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", default=["linear", "selective"])
    parser.add_argument("--systems", default="pullback,torch,jax")
    parser.add_argument("--small", action="store_true", help="to see that it runs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not (HAS_GPU or options.small):
        parser.error("PyTorch sees no GPU here: see with --small that it runs")
    linear = Size(2, 64, 32) if options.small else Size(2, 4096, 4096)
    selective = Size(2, 128, 8, 4) if options.small else Size(8, 4096, 4096, 16)
    print(f"device: {torch.cuda.get_device_name() if HAS_GPU else 'processor'}")
    found: list[Row] = []
    sizes: dict[str, float] = {}
    for (work, system), make in jobs(linear, selective).items():
        if work not in options.works or system.split()[0] not in options.systems.split(","):
            continue
        floors = copy_floors(linear) if work == "linear" and system == "pullback eager" else {}
        try:
            steps = make()
            size = size_of(steps["forward"]())
        except Exception as error:
            print(f"{work:10s} {system:24s} not measured: {type(error).__name__}: {error}".split("\n")[0][:160])
            continue
        if abs(size - sizes.setdefault(work, size)) > 1e-2 * size:
            raise AssertionError(f"{work}: {system} computes {size}, the first system computed {sizes[work]}.")
        if work == "linear":
            floors = floors or {row.part: row.floor for row in found if row.work == "linear"}
        for row in measured(work, system, steps, floors):
            found.append(row)
            print(row, flush=True)
        del steps
    if "selective" in options.works:
        whole = 4 * selective.batch * selective.length * selective.width * selective.states
        print(f"selective  states {whole / 2**20:.1f} MiB as a whole, in float32")
    for work in options.works:
        for part in ("forward", "both"):
            ours = [row for row in found if (row.work, row.part) == (work, part) and row.system.startswith("pullback")]
            others = [row for row in found if (row.work, row.part) == (work, part) and row not in ours]
            if ours and others:
                best, other = (min(rows, key=lambda row: row.milliseconds) for rows in (ours, others))
                ratio = best.milliseconds / other.milliseconds
                print(f"{work} {part}: {best.system} takes {ratio:.2f} of the best of the others, {other.system}")
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in found], indent=1))


if __name__ == "__main__":
    main()
