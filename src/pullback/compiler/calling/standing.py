"""Whether tensors from outside are as they were in the last run, looked at in native code where that is possible."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ..guards.native import object_layout as layout
from ..guards.native.object_access import Record
from ..guards.rows import Rows
from ..host import host_dtype


def standing(library: Any, device: str, owned: Sequence[Any], others: Sequence[Any]) -> Any:
    """Something that tells: `note()` remembers the arrays of now, `holds()` says whether they are the same."""
    from ..guards.torch_rows import is_possible

    if is_possible(device.removeprefix("torch:")):
        return _NativeStanding(library, device.removeprefix("torch:"), owned, others)
    return library.standing(owned, others)


class _NativeStanding:
    """Tensors whose arrays are of the same form, in the same place, and nobody else's if they are owned."""

    def __init__(self, library: Any, device: str, owned: Sequence[Any], others: Sequence[Any]) -> None:
        from ..guards.torch_rows import emit_tensor

        self._in_python = library.standing(owned, others)  # for arrays that native code does not know
        rows = Rows()
        self._bases = np.zeros(len(owned) + len(others), np.int64)
        for number, tensor in enumerate((*owned, *others)):
            rows.kept.append(tensor)
            is_owned = number < len(owned)
            register = rows.at(layout.slot_address(tensor, "_raw"))
            form = host_dtype(tensor._raw.dtype), tuple(tensor._raw.shape)
            emit_tensor(rows, register, *form, is_owned, int(is_owned), number, device)
        record = Record(rows.simplified(), rows.registers, self._bases.ctypes.data)
        self._check = record.check()
        self._kept = rows.kept, record
        self._places = b""

    def note(self) -> None:
        is_known = self._check() is None
        self._places = self._bases.tobytes() if is_known else b""
        if not is_known:
            self._in_python.note()

    def holds(self) -> bool:
        if self._places:
            return self._check() is None and self._bases.tobytes() == self._places
        return bool(self._in_python.holds())
