"""Whether PyTorch's arrays are finite: one flag for all, written by the device, and read when it has arrived."""

from __future__ import annotations

import math
import weakref
from functools import cache
from typing import Any, Callable, ClassVar, Sequence

import torch

_FLOATS = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_check = torch._amp_foreach_non_finite_check_and_unscale_


def finite(raws: Sequence[Any]) -> list[bool]:
    """Which of these arrays have finite elements only."""
    groups: dict[Any, list[int]] = {}
    for i, raw in enumerate(raws):
        if raw.numel() and (raw.dtype in _FLOATS or raw.is_complex()):
            groups.setdefault((raw.dtype, raw.device), []).append(i)
    result = [True] * len(raws)
    for places in groups.values():
        arrays = [torch.view_as_real(raws[i]) if raws[i].is_complex() else raws[i] for i in places]
        largest = torch.stack(torch._foreach_norm(arrays, math.inf))  # few launches for all of them
        for i, size in zip(places, largest.tolist()):
            result[i] = math.isfinite(size)
    return result


def finite_later(raws: Sequence[Any]) -> Callable[[], list[bool]]:
    """A function that says what `finite` does; until it is called nobody waits, and nobody holds the arrays."""
    flags = []
    groups: dict[Any, list[Any]] = {}
    for raw in raws:
        if raw.dtype in _FLOATS:
            if raw.is_contiguous() and raw.numel():
                groups.setdefault((raw.dtype, raw.device), []).append(raw)
            elif raw.numel():
                flags.append(~torch.isfinite(torch.linalg.vector_norm(raw, math.inf)))
        elif raw.is_complex() and raw.numel():
            flags.append(~torch.isfinite(torch.linalg.vector_norm(torch.view_as_real(raw), math.inf)))
    found: dict[Any, Any] = {}
    for (_, device), arrays in groups.items():
        if device not in found:
            found[device] = torch.zeros(1, device=device)
        _check(arrays, found[device], _one(device))  # which multiplies them by one, the only one for lists there is
    messages = [_Message(flag) for flag in (*found.values(), *flags)]
    seen = [weakref.ref(raw) for raw in raws]

    def read() -> list[bool]:
        if not any([message.read() for message in messages]):
            return [True] * len(seen)
        still_there = [reference() for reference in seen]
        fine = finite([torch.zeros(0) if raw is None else raw for raw in still_there])
        known = [raw is not None and is_finite for raw, is_finite in zip(still_there, fine)]
        return known if not all(known) else [False] * len(known)

    return read


@cache
def _one(device: Any) -> Any:
    return torch.ones(1, device=device)


class _Message:
    """A flag of a device's on its way to the host."""

    _free: ClassVar[list[tuple[Any, Any]]] = []  # places on the host that a GPU can write to, and events

    def __init__(self, flag: Any) -> None:
        self._flag = flag
        if not flag.is_cuda:
            self._arrived = None
            return
        try:
            self._host, self._arrived = self._free.pop()
        except IndexError:
            self._host, self._arrived = torch.empty(1, pin_memory=True), torch.cuda.Event()
        self._host.copy_(flag, non_blocking=True)
        self._arrived.record(torch.cuda.current_stream(flag.device))

    def read(self) -> bool:
        """Wait for it; whether it is set."""
        if self._arrived is None:
            return bool(self._flag)
        self._arrived.synchronize()
        is_set = bool(self._host)
        self._free.append((self._host, self._arrived))
        return is_set
