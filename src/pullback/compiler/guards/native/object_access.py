"""Functions written in native code that go through rows (see `row_code.py`) to look at Python's objects."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Callable

import numpy as np

from ....targets.llvm.runtime.fixed_code import filled, linked
from . import row_code as code


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_FAST_CALL = 0x80  # arguments as an array of objects, without a tuple


@cache
def _functions() -> tuple[_MethodDefinition, _MethodDefinition]:
    """`check` and `call` as Python knows functions written in C."""
    addresses = linked(filled(code.TEXT, code.NAMES), ["pullback_check", "pullback_call"]).addresses
    return (
        _MethodDefinition(b"check", addresses["pullback_check"], _FAST_CALL, None),
        _MethodDefinition(b"call", addresses["pullback_call"], _FAST_CALL, None),
    )


@cache
def _pythons_own() -> np.ndarray:
    """The addresses of Python's functions that native code calls."""
    found = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in code.FUNCTIONS]
    return np.array(found, np.int64)


class Record:
    """What the native functions know: the rows, where the bases go, what to run, and what to look at then."""

    def __init__(
        self, rows: list[list[int]], registers: int, bases: int = 0, program: int = 0, run: int = 0, finite: int = 0
    ) -> None:
        self._table = np.array(rows, np.int64).reshape(-1, code.ROW_WORDS)
        counted = int(sys.version_info < (3, 12))  # since then None, True and False are not counted any more
        words = [
            self._table.ctypes.data, len(rows), bases, program, run, finite, id(np.ndarray),
            id(None), id(False), id(True), counted, _pythons_own().ctypes.data, registers, 0,
        ]  # fmt: skip
        self._words = np.array(words, np.int64)
        self.ran = self._words[-1:]  # whether the last call ran, and all went well
        self._address = self._words.ctypes.data.to_bytes(8, sys.byteorder)

    def check(self) -> Callable[..., bool | None]:
        """`check(*objects)`: fill in the bases; None, or False if something is not as expected."""
        return self._function(_functions()[0])

    def call(self) -> Callable[..., bool | None]:
        """`call(*objects)`: fill in the bases and run, all under Python's lock.

        None if all went well; False if something is not as expected, and nothing was done; True if the program's own
        checks failed.
        """
        return self._function(_functions()[1])

    def _function(self, definition: _MethodDefinition) -> Any:
        """A function written in C whose `self` is the address of this record's words, as bytes."""
        make_function = ctypes.pythonapi.PyCFunction_NewEx
        make_function.restype = ctypes.py_object
        make_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return make_function(ctypes.addressof(definition), self._address, None)
