"""Arrays in the memory of programs: tensors of PyTorch's over parts of an arena, of inputs and of outputs."""

from __future__ import annotations

from functools import cache
from typing import Any, Sequence

import torch

from ..kernels import Buffer, Location, Schedule


@cache
def torch_dtype(name: str) -> Any:
    """PyTorch's dtype for a name of NumPy's."""
    return getattr(torch, name)


class Memory:
    """Where each buffer of a schedule is: those of its own are allocated once, inputs and outputs are given."""

    def __init__(self, schedule: Schedule, scratch_bytes: int, device: Any, library: Any) -> None:
        self.device = device
        self._scratch_start = -(-schedule.arena_bytes // 64) * 64
        self.arena_bytes = self._scratch_start + scratch_bytes
        self._arena = allocated(self.arena_bytes, schedule, device)
        self._constants = {
            buffer: _bytes(
                (array if isinstance(array, torch.Tensor) else library.on_host(array)).to(device).contiguous()
            )
            for buffer, array in schedule.constants
        }
        self.given: dict[str, Sequence[Any]] = {}
        self._bound: dict[Buffer, Any] = {}  # what a library has made, in memory of its own

    @property
    def anything(self) -> Any:
        """A tensor on the device."""
        return self._arena

    def bind(self, buffer: Buffer, tensor: Any) -> None:
        """Note where a library has put what it made."""
        self._bound[buffer] = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)

    def unbind(self, buffer: Buffer) -> None:
        """Give what a library made back to it."""
        self._bound.pop(buffer, None)

    def free(self) -> None:
        """Forget all that was given and made."""
        self._bound.clear()
        self.given = {}

    def at(self, location: Location, dtype: str) -> Any:
        """The elements from a location on to the end of its buffer, as one long tensor."""
        buffer, kind = location.buffer, location.buffer.kind
        if kind == "library":
            whole = self._bound.get(buffer, self._arena)  # before it has been made, only the alignment matters
        elif kind == "temporary":
            whole = self._arena[buffer.offset : buffer.offset + buffer.nbytes]
        elif kind == "constant":
            whole = self._constants[buffer]
        else:
            tensor = self.given[kind][buffer.index]
            whole = _bytes(tensor)
        return whole[location.offset :].view(torch_dtype(dtype))

    def view(self, location: Location, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Any:
        """Elements with these strides, from a location on; a copy where some are negative, which PyTorch has not."""
        if any(step < 0 for step in strides) and 0 not in shape:
            back = sum((n - 1) * step for n, step in zip(shape, strides) if step < 0)
            size = torch_dtype(dtype).itemsize
            first = self.at(Location(location.buffer, location.offset + back * size), dtype)
            axes = [axis for axis, step in enumerate(strides) if step < 0]
            return first.as_strided(tuple(shape), tuple([abs(step) for step in strides])).flip(axes)
        return self.at(location, dtype).as_strided(tuple(shape), tuple(strides))

    def scratch(self, parts: Sequence[tuple[str, int]]) -> list[Any]:
        """Memory that a kernel needs for itself while it runs."""
        made, start = [], self._scratch_start
        for dtype, count in parts:
            nbytes = count * torch_dtype(dtype).itemsize
            made.append(self._arena[start : start + nbytes].view(torch_dtype(dtype)))
            start += -(-nbytes // 64) * 64
        return made


def scratch_bytes(parts: Sequence[tuple[str, int]]) -> int:
    """How much memory `Memory.scratch` takes for these."""
    return sum(-(-count * torch_dtype(dtype).itemsize // 64) * 64 for dtype, count in parts)


def _bytes(tensor: Any) -> Any:
    """The memory of a contiguous tensor."""
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0, dtype=torch.uint8)


def allocated(nbytes: int, schedule: Schedule, device: Any) -> Any:
    """Memory for the arena. If there is none, say what it is for."""
    try:
        return torch.empty(max(nbytes, 1), dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        sizes = {
            location.buffer: (location.buffer.nbytes, call.site) for call in schedule.calls for location in call.writes
        }
        largest = sorted([one for buffer, one in sizes.items() if buffer.kind == "temporary"], reverse=True)[:5]
        listed = ", ".join(f"{size:,}{f' ({site})' if site else ''}" for size, site in largest)
        raise MemoryError(
            f"pb.compile cannot get the {nbytes:,} bytes on {device} that the program needs beside its inputs and "
            f"outputs; its largest arrays have {listed} bytes."
        ) from None
