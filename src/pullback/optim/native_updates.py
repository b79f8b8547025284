"""The library's own formulas on large NumPy parameters as native code, in one pass over memory.

A formula reads options of its group by name; which ones is noted when it is traced, and other values of them are
another program. Formulas of the user's own are run as they are: what else they read or do is not known.
"""

from __future__ import annotations

from typing import Any

from ..backends.numpy import native
from .arithmetic import arithmetic_of

_read: dict[type, tuple[str, ...]] = {}  # the options that each optimizer's formula has read so far


class _Options(dict[str, Any]):
    """A group's options, which note which of them were read."""

    def __init__(self, group: dict[str, Any]) -> None:
        super().__init__(group)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


def _decisive(option: Any) -> Any:
    """What a formula may depend on of an option: numbers come to it as constants, so whether it is zero."""
    return bool(option) if isinstance(option, (int, float)) else repr(option)


def advance(optimizer: Any, group: Any, constants: Any, w: Any, g: Any, buffers: Any, noted: Any) -> bool:
    """Update `w` and `buffers` in place, and tell `noted` of what has become infinite; False if nothing is done."""
    kind = type(optimizer)
    arrays = (w, g, *buffers)
    if not native.is_allowed() or kind.__module__.rpartition(".")[0] != __package__ or w.dtype.char not in "fd":
        return False
    if not all([array.dtype == w.dtype and array.flags.c_contiguous and array.flags.aligned for array in arrays]):
        return False
    from ..compiler.eager import update_in_place

    def formula(backend: Any, numbers: Any, w: Any, g: Any, old: Any) -> Any:
        options = _Options(group)
        new = optimizer.update(arithmetic_of(backend), options, numbers, w, g, old, (None,) * kind.scratch, None)
        _read[kind] = tuple(sorted({*_read.get(kind, ()), *options.names}))
        return new

    key = (kind, tuple([_decisive(group[name]) for name in _read.get(kind, ())]))
    finite = update_in_place(key, formula, constants, w, g, buffers)
    if finite is False:
        noted.happened = True
    return finite is not None
