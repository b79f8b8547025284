"""Where an array's elements begin: asking NumPy takes longer than some kernels."""

from __future__ import annotations

from ctypes import c_int64
from typing import Any, Callable

from ..guards.native import object_layout, row_code

_word_at = c_int64.from_address
_DATA = row_code.DATA


def _read(array: Any) -> int:
    return _word_at(id(array) + _DATA).value


def _ask(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


address_of: Callable[[Any], int] = _read if object_layout.is_possible() else _ask
