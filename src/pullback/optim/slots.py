"""What an optimizer holds per parameter: its buffers, and how one update of it runs.

NumPy's and PyTorch's parameters are updated in place, NumPy's large ones in chunks that stay in the processor's cache,
PyTorch's all at once. Elsewhere it cannot be known who else sees a parameter's memory, so it gets a new array; buffers
are the optimizer's own everywhere.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Iterable, Sequence

import numpy as np

from .. import backends, dtypes
from ..autodiff.base import make
from ..autodiff.graph import Leaf
from ..errors import GradientError, ShapeError
from ..tensors.tensor import Tensor
from ..tensors.writing import separate
from . import native_updates
from .arithmetic import Arithmetic, arithmetic_of, list_arithmetic_of

_ndarray = np.ndarray
_NUMPY = backends.NUMPY
CHUNK = 131072  # elements of a large NumPy array that are updated at a time
NATIVE = 16384  # elements from which on there is native code for an update
JOINED_BYTES = 1 << 28  # of gradients whose parameters are updated at a time
_SETTLED = (
    "names", "buffers", "lent", "backend", "device", "dtype", "shape", "working", "arithmetic", "halved", "chunked",
    "written", "joined",
)  # fmt: skip


class Slot:
    """One parameter and what is kept for it."""

    __slots__ = (
        "parameter", "label", "step", "names", "buffers", "lent",
        "backend", "device", "dtype", "shape", "working", "arithmetic", "halved", "chunked", "spare",
        "written", "joined",
    )  # fmt: skip

    parameter: Any  # a tensor, or a NumPy array
    label: str  # how errors name it
    step: int  # updates so far
    names: tuple[str, ...]
    buffers: list[Tensor]  # in the order of `names`
    lent: bool  # whether clones of the buffers were given out since they were last written
    backend: Any  # this and the next three say what the buffers and scratch arrays were made for
    device: str
    dtype: Any
    shape: Any
    working: Any  # the dtype of buffers and arithmetic
    arithmetic: Arithmetic
    halved: bool  # whether the parameter has half precision, and `working` is float32
    chunked: bool
    written: bool  # whether the parameter's own array is written to
    joined: bool  # whether it is updated together with others, in a list of arrays
    spare: tuple[Any, ...]  # scratch arrays, shared with other parameters

    def __init__(self, parameter: Any, label: str) -> None:
        self.parameter = parameter
        self.label = label
        self.step = 0
        self.names = ()
        self.buffers = []
        self.lent = False
        self.backend = None

    @property
    def raw(self) -> Any:
        """The parameter's raw array."""
        return self.parameter if type(self.parameter) is _ndarray else self.parameter._raw

    def prepare(self, optimizer: Any, group: dict[str, Any]) -> None:
        """Everything that can fail or allocates, so that nothing fails once the first parameter has changed."""
        parameter = self.parameter
        self.settle(optimizer, group, self.raw)
        if self.lent:
            self._reclaim()
        if type(parameter) is _ndarray:
            return
        if type(parameter._node) is not Leaf:
            self.refuse_result(parameter)
        if self.written and not self.backend.is_exclusive(parameter, "_raw"):
            parameter._raw = self.backend.copy(parameter._raw)

    def refuse_result(self, parameter: Tensor) -> None:
        """Refuse to update what is no variable any more."""
        if parameter._node is not None and type(parameter._node) is not Leaf:
            raise GradientError(f"step: {self.label} was a variable and has become the result of an operation.")

    def settle(self, optimizer: Any, group: dict[str, Any], raw: Any) -> None:
        """Make or move buffers and scratch arrays unless they fit the parameter's array as it is now."""
        names = optimizer.buffer_names(group, raw)
        if not self._fits(raw, names):
            self._settle(optimizer, group, names, raw)
            optimizer.scratch_pool.serve(self, optimizer.scratch + 2 * self.halved)

    def settled(self, optimizer: Any, group: dict[str, Any], raw: Any) -> Slot:
        """What `settle` would make of this slot, for `take_over`; itself if nothing."""
        names = optimizer.buffer_names(group, raw)
        if self._fits(raw, names):
            return self
        other = copy(self)
        other._settle(optimizer, group, names, raw)
        return other

    def take_over(self, other: Slot, optimizer: Any) -> None:
        """Have the buffers of what `settled` gave, and scratch arrays that fit them."""
        for name in _SETTLED:
            setattr(self, name, getattr(other, name))
        optimizer.scratch_pool.serve(self, optimizer.scratch + 2 * self.halved)

    def _fits(self, raw: Any, names: tuple[str, ...]) -> bool:
        if self.names != names or self.backend is None or self.shape != raw.shape:
            return False
        if type(raw) is _ndarray:
            own = self.backend is _NUMPY and (not self.chunked or raw.flags.c_contiguous)
            return own and self.dtype == raw.dtype  # in this order: dtypes of two libraries cannot be compared
        return (
            self.backend is backends.of(raw) and self.dtype == raw.dtype and self.device == self.backend.device_of(raw)
        )

    def _settle(self, optimizer: Any, group: dict[str, Any], names: tuple[str, ...], raw: Any) -> None:
        backend: Any = backends.of(raw)
        device = backend.device_of(raw)
        halved = backend.dtype_of(raw).name in ("float16", "bfloat16")
        working = backend.raw_dtype(dtypes.float32) if halved else raw.dtype
        kept = dict(zip(self.names, self.buffers))
        if kept and self.backend is not None and tuple(self.shape) != tuple(raw.shape):
            raise ShapeError(
                f"step: {self.label} had shape {tuple(self.shape)} and has {tuple(raw.shape)} now, "
                "which its state does not fit. Make a new optimizer."
            )
        buffers = []
        for name in names:
            if name in kept:
                moved = backends.transfer(kept[name]._raw, device)
                buffers.append(make(backend.xp.astype(moved, working), None))
            else:
                buffers.append(make(optimizer.new_buffer(name, group, raw, working, backend.xp), None))
        self.lent = bool(kept)  # they may be seen by others: found out when they are written
        self.names, self.buffers = names, buffers
        self.backend, self.device, self.dtype, self.shape = backend, device, raw.dtype, raw.shape
        self.working, self.halved, self.arithmetic = working, halved, arithmetic_of(backend)
        self.chunked = optimizer.elementwise and backend is _NUMPY and raw.size > CHUNK and raw.flags.c_contiguous
        self.written = backend is _NUMPY or backend.lists is not None
        self.joined = optimizer.takes_lists and backend.lists is not None

    def _reclaim(self) -> None:
        """Copy the buffers that somebody else may still see."""
        for buffer in self.buffers:
            if self.arithmetic.in_place and not self.backend.is_exclusive(buffer, "_raw"):
                buffer._raw = self.backend.copy(buffer._raw)
        self.lent = False

    # -- one update ----------------------------------------------------------------------------------

    def advance(
        self, optimizer: Any, group: dict[str, Any], constants: tuple[Any, ...], gradient: Any, noted: Any = None
    ) -> None:
        """Update the parameter and the buffers; `prepare` has been called. `noted` is told of an overflow."""
        self.begin()
        raw = self.raw
        buffers = [buffer._raw for buffer in self.buffers]
        if self.backend is _NUMPY and raw.size >= NATIVE and not self.halved and type(optimizer).elementwise:
            if native_updates.advance(optimizer, group, constants, raw, gradient, buffers, noted):
                return
        if self.chunked:
            flat, gradient = raw.reshape(-1), gradient.reshape(-1)
            buffers = [buffer.reshape(-1) for buffer in buffers]
            for start in range(0, flat.size, CHUNK):
                here = slice(start, start + CHUNK)
                part, parts = flat[here], [buffer[here] for buffer in buffers]
                spare = self.spare if part.size == CHUNK else [array[: part.size] for array in self.spare]
                self._run(optimizer, group, constants, part, gradient[here], parts, spare)
            return
        result = self._run(optimizer, group, constants, raw, gradient, buffers, self.spare)
        if self.backend is not _NUMPY:
            self.keep(result)

    def begin(self) -> None:
        """Count an update, of which the parameter's clones see nothing."""
        self.step += 1
        if type(self.parameter) is not _ndarray:
            separate(self.parameter)
            self.parameter._origin = None

    def keep(self, result: Sequence[Any]) -> None:
        """Have the arrays that an update gave: the parameter's and the buffers', often the ones from before."""
        self.parameter._raw = result[0]
        for buffer, new in zip(self.buffers, result[1:]):
            buffer._raw = new

    def _run(
        self, optimizer: Any, group: Any, constants: Any, raw: Any, gradient: Any, buffers: Any, spare: Any
    ) -> tuple[Any, ...]:
        xp = self.arithmetic
        out = raw if self.written else None
        if not self.halved:
            return optimizer.update(xp, group, constants, raw, gradient, buffers, spare, out)
        *spare, room, other_room = spare
        parameter = xp.convert(raw, self.working, room)
        gradient = xp.convert(gradient, self.working, other_room)
        new, *buffers = optimizer.update(xp, group, constants, parameter, gradient, buffers, spare, room)
        return xp.convert(new, self.dtype, out), *buffers


class Joined:
    """Parameters of one dtype and device with their gradients, to be updated in a few calls for all of them."""

    def __init__(self, group: dict[str, Any], constants: tuple[Any, ...]) -> None:
        self._group = group
        self._constants = constants
        self._slots: list[Slot] = []
        self._gradients: list[Any] = []
        self._bytes = 0

    def add(self, slot: Slot, gradient: Any) -> bool:
        """Take one more; whether they are as many as there should be room for."""
        self._slots.append(slot)
        self._gradients.append(gradient)
        self._bytes += slot.backend.bytes_of(gradient)
        return self._bytes >= JOINED_BYTES

    def advance(self, optimizer: Any) -> None:
        """Update all of them; `prepare` has been called."""
        first, gradients = self._slots[0], self._gradients
        xp = list_arithmetic_of(first.backend)
        for slot in self._slots:
            slot.begin()
        raws = [slot.raw for slot in self._slots]
        buffers = [list(arrays) for arrays in zip(*[[buffer._raw for buffer in slot.buffers] for slot in self._slots])]
        spare = (None,) * optimizer.scratch
        if first.halved:
            wide, gradients = xp.convert(raws, first.working, None), xp.convert(gradients, first.working, None)
            new, *buffers = optimizer.update(xp, self._group, self._constants, wide, gradients, buffers, spare, wide)
            results = [xp.convert(new, first.dtype, raws), *buffers]
        else:
            results = optimizer.update(xp, self._group, self._constants, raws, gradients, buffers, spare, raws)
        for slot, result in zip(self._slots, zip(*results)):
            slot.keep(result)


class ScratchPool:
    """Flat arrays, a few per device and dtype, from which the scratch arrays of all parameters are cut."""

    def __init__(self) -> None:
        self._flat: dict[tuple[Any, ...], list[Any]] = {}
        self._served: list[tuple[Slot, int]] = []

    def serve(self, slot: Slot, count: int) -> None:
        """Give `slot` its scratch arrays."""
        if not slot.arithmetic.in_place or slot.joined:
            slot.spare = (None,) * count
            return
        self._served = [entry for entry in self._served if entry[0] is not slot] + [(slot, count)]
        key, size = self._key(slot), _size(self._shape(slot))
        flat = self._flat.get(key, [])
        if len(flat) >= count and (not count or flat[0].shape[0] >= size):
            self._cut(slot, count, flat)
            return
        sharing = [entry for entry in self._served if self._key(entry[0]) == key]
        size = max(_size(self._shape(other)) for other, _ in sharing)
        number = max(other_count for _, other_count in sharing)
        self._flat[key] = flat = [slot.backend.xp.zeros((size,), slot.working, slot.raw) for _ in range(number)]
        for other, other_count in sharing:  # all of them, so that the old arrays are let go
            self._cut(other, other_count, flat)

    @staticmethod
    def _key(slot: Slot) -> tuple[Any, ...]:
        return (id(slot.backend), slot.device, slot.working)

    @staticmethod
    def _shape(slot: Slot) -> tuple[int, ...]:
        return (CHUNK,) if slot.chunked else tuple(slot.shape)

    def _cut(self, slot: Slot, count: int, flat: Iterable[Any]) -> None:
        shape = self._shape(slot)
        size = _size(shape)
        slot.spare = tuple([slot.backend.xp.reshape(array[:size], shape) for array in list(flat)[:count]])


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
