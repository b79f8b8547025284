"""Kernels of Triton's made ready side by side: most of the time goes into programs that it starts and waits for."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Sequence

import torch
from triton.runtime import driver

from .launch import Launch

_MOST_THREADS = 16


def compile_all(launches: Sequence[Launch], device: int) -> None:
    """Compile what will be launched on a GPU. What Triton cannot compile it says when that is launched."""
    if len(launches) < 2:
        return
    _ = driver.active.utils  # made on first use, which is no work for several threads

    def compile_one(launch: Launch) -> Any:
        torch.cuda.set_device(device)
        try:
            made = launch.compiled()
            # Triton writes and compiles C code that launches it. What it loads here is thrown away: it loads all such
            # code under one name, and of two threads that do one may get the other's. From then on it is on the disk.
            driver.active.launcher_cls(made.src, made.metadata)
        except RuntimeError:
            return None
        return made

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        found = list(threads.map(compile_one, launches))
    for made in found:
        if made is not None and hasattr(made, "_init_handles"):
            made._init_handles()  # one after the other
