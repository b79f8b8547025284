"""Whether PyTorch's arrays are finite: one number of a dtype, made by the device, and read when it has arrived."""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from typing import Any, Callable, Sequence

import torch

_vector_norm = torch.linalg.vector_norm


def _sizes(raws: Sequence[Any]) -> list[tuple[list[int], list[Any]]]:
    """The largest magnitudes in arrays that can be infinite, with their places, by dtype and device: few launches."""
    groups: dict[Any, tuple[list[int], list[Any]]] = {}
    for place, raw in enumerate(raws):
        if raw.numel() and (raw.is_floating_point() or raw.is_complex()):
            places, arrays = groups.setdefault((raw.dtype, raw.device), ([], []))
            places.append(place)
            arrays.append(torch.view_as_real(raw) if raw.is_complex() else raw)
    found = []
    for places, arrays in groups.values():
        if len(arrays) <= 2:
            found.append((places, [_vector_norm(array, math.inf) for array in arrays]))
        else:
            found.append((places, torch._foreach_norm(arrays, math.inf)))
    return found


_FEW = 4096  # elements of arrays that are looked at together


def finite(raws: Sequence[Any]) -> list[bool]:
    """Which of these arrays have finite elements only."""
    if not all([raw.is_cpu for raw in raws]):
        return finite_exactly(raws)
    # A sum is fast there, and finite only if everything in it is.
    result = [True] * len(raws)
    doubtful: list[int] = []
    small: dict[Any, list[int]] = {}
    for place, raw in enumerate(raws):
        if raw.is_floating_point() or raw.is_complex():
            if raw.numel() <= _FEW:
                small.setdefault(raw.dtype, []).append(place)
            elif not _is_finite(raw.sum().item()):
                doubtful.append(place)
    for places in small.values():
        if not _is_finite(torch.cat([raws[place].reshape(-1) for place in places]).sum().item()):
            doubtful += places
    if doubtful:
        for place, is_finite in zip(doubtful, finite_exactly([raws[place] for place in doubtful])):
            result[place] = is_finite
    return result


def _is_finite(number: complex) -> bool:
    return math.isfinite(number.real) and math.isfinite(number.imag)


def finite_exactly(raws: Sequence[Any]) -> list[bool]:
    """`finite`, of all elements."""
    result = [True] * len(raws)
    for places, sizes in _sizes(raws):
        for place, size in zip(places, torch.stack(sizes).tolist()):
            result[place] = math.isfinite(size)
    return result


def finite_later(raws: Sequence[Any]) -> Callable[[], list[bool]]:
    """A function that says what `finite` does; until it is called nobody waits, and nobody holds the arrays."""
    largest = [_Message(sizes[0] if len(sizes) == 1 else torch.stack(sizes).max()) for _, sizes in _sizes(raws)]
    seen = [weakref.ref(raw) for raw in raws]

    def read() -> list[bool]:
        if all([math.isfinite(message.read()) for message in largest]):
            return [True] * len(seen)
        still_there = [reference() for reference in seen]
        answers = iter(finite([raw for raw in still_there if raw is not None]))
        known = [raw is not None and next(answers) for raw in still_there]
        return known if not all(known) else [False] * len(known)  # they may have been changed since

    return read


_free: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)  # by dtype: places that GPUs can write to, and events


class _Message:
    """A number of a device's on its way to the host."""

    def __init__(self, number: Any) -> None:
        self._number = number
        self._arrived = None
        if not number.is_cuda:
            return
        try:
            self._host, self._arrived = _free[number.dtype].pop()
        except IndexError:
            self._host = torch.empty((), dtype=number.dtype, pin_memory=True)
            self._arrived = torch.cuda.Event()
        self._host.copy_(number, non_blocking=True)
        self._arrived.record(torch.cuda.current_stream(number.device))

    def read(self) -> float:
        """Wait for it."""
        if self._arrived is None:
            return self._number.item()
        self._arrived.synchronize()
        value = self._host.item()
        _free[self._number.dtype].append((self._host, self._arrived))
        return value
