"""The operation suite on GPUs: values, gradients and second derivatives are NumPy's.

    python -m benchmarks.gpu.operations [--processes 16] [--limit 360] [--compiled] [torch:cuda:0] [jax:gpu:0] [cupy:0]

With `--compiled` every sample is compiled, and compared with the eager operation on the same device; then random
functions are: values, gradients and second derivatives. Several processes share the samples and the GPU: most of the
time goes into the libraries' compilers. Prints each sample that fails, and a table of how many passed on each device;
`--limit` is how many seconds a device may take.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

DEVICES = ("torch:cuda:0", "jax:gpu:0", "cupy:0")


class Outcome(NamedTuple):
    """What became of a sample: it differs from NumPy, or raises, if there is a message."""

    name: str
    message: str
    seconds: float


class Count(NamedTuple):
    """A row of the table."""

    device: str
    passed: int
    failed: int
    unfinished: int
    seconds: float


def environment(cache: str) -> dict[str, str]:
    """Variables for processes that share a GPU and what JAX has compiled. JAX reads them when it is imported."""
    return {
        "JAX_ENABLE_X64": "1",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Trying out kernels takes longer than these small arrays do, and numbers must not depend on which one wins.
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0".strip(),
        "OMP_NUM_THREADS": "1",
    }


def compiled_outcome(task: tuple[str, int]) -> Outcome:
    """Compare one sample, compiled, with the eager operation; numbers from the samples' on are random functions."""
    from tests.compiler import test_random_programs
    from tests.compiler.xla.test_operations import TRACEABLE, check

    device, number = task
    start = time.perf_counter()
    name = f"random {number - len(TRACEABLE)}" if number >= len(TRACEABLE) else TRACEABLE[number].name
    try:
        if number < len(TRACEABLE):
            check(TRACEABLE[number], device)
        else:
            test_random_programs.check(number - len(TRACEABLE), device)
        message = ""
    except Exception as error:
        message = f"{type(error).__name__}: {str(error).strip()[:300]}"
    return Outcome(name, message, time.perf_counter() - start)


def outcome(task: tuple[str, int]) -> Outcome:
    """Compare one sample, given by its number, with NumPy."""
    from tests.backends.test_operations import check, derivatives
    from tests.operations.harness_samples import SAMPLES

    device, number = task
    sample = SAMPLES[number]
    start = time.perf_counter()
    try:
        check(derivatives(sample, device, 2), derivatives(sample, "numpy", 2))
        message = ""
    except Exception as error:
        message = f"{type(error).__name__}: {str(error).strip()[:300]}"
    return Outcome(f"{sample.operation}-{sample.name}", message, time.perf_counter() - start)


def outcomes(
    device: str, numbers: list[int], processes: int, limit: float, function: Callable[[tuple[str, int]], Outcome]
) -> Iterator[Outcome]:
    """Those of the samples that were compared within `limit` seconds, as they come."""
    end = time.monotonic() + limit
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        found = pool.imap_unordered(function, [(device, number) for number in numbers])
        for _ in numbers:
            try:
                yield found.next(timeout=max(0.0, end - time.monotonic()))
            except multiprocessing.TimeoutError:
                return


def compare(
    device: str,
    numbers: list[int],
    processes: int,
    limit: float,
    function: Callable[[tuple[str, int]], Outcome] = outcome,
) -> Count:
    """Run the samples on a device and print those that fail."""
    start = time.monotonic()
    done = []
    for one in outcomes(device, numbers, processes, limit, function):
        done.append(one)
        if one.message:
            print(f"  {device} {one.name}: {one.message}", flush=True)
        if len(done) % 100 == 0:
            print(f"  {device} {len(done)} of {len(numbers)}, {time.monotonic() - start:.0f} s", flush=True)
    if done:
        slowest = max(done, key=lambda one: one.seconds)
        print(f"  {device} slowest: {slowest.name}, {slowest.seconds:.1f} s", flush=True)
    failed = sum(bool(one.message) for one in done)
    return Count(device, len(done) - failed, failed, len(numbers) - len(done), time.monotonic() - start)


def print_table(counts: list[Count]) -> None:
    print(f"{'device':14} {'passed':>7} {'failed':>7} {'unfinished':>11} {'seconds':>8}")
    for one in counts:
        print(f"{one.device:14} {one.passed:7} {one.failed:7} {one.unfinished:11} {one.seconds:8.0f}", flush=True)


def installed() -> list[str]:
    return [device for device in DEVICES if importlib.util.find_spec(device.partition(":")[0])]


def spread(count: int, wanted: int | None) -> list[int]:
    """`wanted` of the numbers below `count`, at equal distances; all of them if it is None."""
    return [i * count // wanted for i in range(wanted)] if wanted else list(range(count))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.operations")
    parser.add_argument("devices", nargs="*", help="those of the libraries that are installed unless named")
    parser.add_argument("--processes", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=360.0, help="seconds for each device")
    parser.add_argument("--samples", type=int, help="how many, spread over all of them")
    parser.add_argument("--compiled", action="store_true", help="compile the samples, and random functions")
    parser.add_argument("--random", type=int, default=1000, help="how many random functions")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= environment(cache)
        from tests.operations.harness_samples import SAMPLES

        numbers = spread(len(SAMPLES), options.samples)
        devices = options.devices or installed()
        if options.compiled:
            from tests.compiler.xla.test_operations import TRACEABLE

            numbers = [
                *spread(len(TRACEABLE), options.samples),
                *range(len(TRACEABLE), len(TRACEABLE) + options.random),
            ]
        function = compiled_outcome if options.compiled else outcome
        counts = [compare(device, numbers, options.processes, options.limit, function) for device in devices]
    print_table(counts)
    return 0 if all(one.failed == one.unfinished == 0 for one in counts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
