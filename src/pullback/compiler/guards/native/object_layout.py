"""Where Python objects keep what native code looks at.

A call of a small program takes a microsecond or two, and asking Python for the shape, dtype and address of each array,
or whether a global is still what it was, would take longer than that. The layout of NumPy's arrays is part of its
binary interface; all else is measured here, and where it is not as expected (another Python, a build without the global
lock) `is_possible` says so.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from types import CellType, MethodType
from typing import Any

import numpy as np

from ....backends.numpy.ownership import counts_are_exact
from ....tensors.tensor import Tensor
from . import row_code as code

CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400
VERSION = 384  # where a type has the number of its version: see `version_of`


@cache
def is_possible() -> bool:
    """Whether objects lie in memory as native code expects."""
    if not counts_are_exact() or ctypes.sizeof(ctypes.c_void_p) != 8 or _slot_offset(Tensor, "_raw") is None:
        return False
    return _are_arrays_known() and _are_objects_known()


def _are_arrays_known() -> bool:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    view = array[:, 1:]
    found = word(id(array), code.TYPE), word(id(array), code.DATA), word(id(array), code.AXES) & 0xFFFFFFFF
    expected = id(np.ndarray), array.ctypes.data, 2
    lengths = word(id(array), code.LENGTHS)
    more = word(lengths, 0), word(lengths, 8), word(id(array), code.DTYPE), word(id(view), code.BASE) in (
        id(array), id(array.base),
    )  # fmt: skip
    count = word(id(array), code.REFERENCES) & 0xFFFFFFFF
    more_kept = [array, array]
    counted = (word(id(array), code.REFERENCES) & 0xFFFFFFFF) == count + 2
    flags = word(id(array), code.FLAGS) & 0xFFFFFFFF, word(id(view), code.FLAGS) & 0xFFFFFFFF
    del more_kept
    return (
        found == expected
        and more == (2, 3, id(array.dtype), True)
        and counted
        and flags[0] & CONTIGUOUS != 0
        and flags[1] & CONTIGUOUS == 0
    )


def _are_objects_known() -> bool:
    sample, thing = b"pullback", object()
    if ctypes.string_at(id(sample) + code.BYTES, len(sample)) != sample:
        return False
    method, cell = MethodType(len, thing), CellType(thing)
    numbers, entries, number = [thing, thing], {1: thing, 2: thing}, 2.5
    return (
        word(id(cell), object.__basicsize__) == id(thing)
        and (word(id(method), code.FUNCTION), word(id(method), code.FUNCTION + 8)) == (id(len), id(thing))
        and word(id(numbers), 16) == 2
        and word(word(id(numbers), code.ITEMS), 8) == id(thing)
        and word(id(entries), 16) == 2
        and ctypes.c_double.from_address(id(number) + 16).value == number
        and tuple_items() is not None
        and function_field("__code__") is not None
    )


def word(address: int, offset: int) -> int:
    """The 64-bit word at an address."""
    return ctypes.c_int64.from_address(address + offset).value


def slot_address(holder: Any, name: str) -> int:
    """The address of the slot `name` of a tensor, a gradient cell or another object with slots."""
    return id(holder) + offset_of(type(holder), name)


def offset_of(kind: type, name: str) -> int:
    """Where objects of a type with slots have the slot `name`."""
    offset = _slot_offset(kind, name)
    assert offset is not None
    return offset


@cache
def _slot_offset(kind: Any, name: str) -> int | None:
    """Where the slot `name` is in objects of a type: found by looking for something that was put there."""
    marks = [np.empty(1), np.empty(2)]
    found: set[int] | None = None
    for mark in marks:
        holder: Any = kind.__new__(kind)
        setattr(holder, name, mark)
        here = {at for at in range(16, kind.__basicsize__, 8) if word(id(holder), at) == id(mark)}
        found = here if found is None else found & here
    return found.pop() if found is not None and len(found) == 1 else None


@cache
def tuple_items() -> int | None:
    """Where a tuple's items begin."""
    marks = object(), object()
    found = (marks[0], marks[1])
    size = tuple.__basicsize__ + 16
    return next((at for at in range(24, size, 8) if word(id(found), at) == id(marks[0])), None)


@cache
def function_field(name: str) -> int | None:
    """Where a function has its `__code__`, `__defaults__`, `__kwdefaults__`, `__dict__` or `__closure__`."""
    mark = object()

    def probe(x: Any = mark, *, y: Any = mark) -> Any:
        return mark

    probe.attribute = mark  # type: ignore[attr-defined]
    wanted = id(getattr(probe, name))
    found = [at for at in range(16, type(probe).__basicsize__, 8) if word(id(probe), at) == wanted]
    return found[0] if len(found) == 1 else None


def version_of(cls: type) -> int | None:
    """The number of a type's version, a new one after each change of it or of its bases; None if it has none."""
    if not _has_versions():
        return None
    _look_up(cls)
    return word(id(cls), VERSION) & 0xFFFFFFFF or None


def _look_up(cls: type) -> None:
    """Looking something up in a class gives it a number; what its metaclass may say is not asked."""
    with suppress(AttributeError):
        type.__getattribute__(cls, "_pullback_asks_for_a_version")


@cache
def _has_versions() -> bool:
    class Base:
        pass

    class Probe(Base):
        pass

    def version() -> int:
        _look_up(Probe)
        return word(id(Probe), VERSION) & 0xFFFFFFFF

    first = version()
    is_steady = version() == first != 0
    Base.x = 1  # type: ignore[attr-defined]
    without = word(id(Probe), VERSION) & 0xFFFFFFFF
    second = version()
    Probe.y = 1  # type: ignore[attr-defined]
    third = version()
    return is_steady and without != first and len({0, first, second, third}) == 4
