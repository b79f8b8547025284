"""What a run takes: the most memory so far."""

from __future__ import annotations

import sys
from pathlib import Path

from .. import train
from ..backends import for_device


def peak_memory(device: str) -> int | None:
    """The most bytes in use on a device so far; on a processor by this process, mapped files included.

    None where the system does not tell.
    """
    _, name = for_device(device)
    library, _, kind = name.partition(":")
    if library == "torch" and kind.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(kind))
    if library == "jax" and not kind.startswith("cpu"):
        import jax

        statistics = jax.devices()[int(kind.partition(":")[2] or 0)].memory_stats() or {}
        return int(statistics.get("peak_bytes_in_use", 0))
    if library == "cupy":
        import cupy

        return int(cupy.get_default_memory_pool().total_bytes())
    return _of_process()


def _of_process() -> int | None:
    status = Path("/proc/self/status")  # Linux; what `resource` tells there may be a parent's
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # not a POSIX system
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Measures(train.Callback):
    """Adds "memory_gib", the most memory so far, to the record of every step, for those who hear of it after this."""

    def __init__(self, device: str) -> None:
        self._device = device

    def on_step(self, trainer: train.Trainer, record: train.Record) -> None:
        peak = peak_memory(self._device)
        if peak is not None:
            record["memory_gib"] = peak / 2**30
