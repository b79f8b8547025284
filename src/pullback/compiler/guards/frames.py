"""The function that a frame runs: Python does not say, its structures do."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any

_INNER = 24  # where a frame object has the address of the interpreter's own frame
_TAGS = 7  # bits that newer versions put into addresses


def function_of(frame: FrameType) -> FunctionType | None:
    """The function that `frame` runs; None for code that no function has, such as a module's."""
    offset = _offset()
    if offset is not None:
        address = _word(_word(id(frame) + _INNER) + offset) & ~_TAGS
        try:
            found = ctypes.cast(address, ctypes.py_object).value
        except ctypes.ArgumentError as error:  # how it says that calls go too deep
            raise RecursionError(str(error)) from None
        return found if type(found) is FunctionType and found.__code__ is frame.f_code else None
    return _by_search(frame.f_code)


def _by_search(code: CodeType) -> FunctionType | None:
    """Slowly: any function that has the code."""
    return next((f for f in gc.get_referrers(code) if type(f) is FunctionType and f.__code__ is code), None)


@cache
def _offset() -> int | None:
    """Where the interpreter's frame has its function: looked for in frames of functions that are known."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    found: set[int] | None = None
    for function in (_first_probe, _second_probe):
        frame = function()
        inner = _word(id(frame) + _INNER)
        if not inner or inner % 8:
            return None
        here = {at for at in (0, 16, 8, 24) if _word(inner + at) & ~_TAGS == id(function)}
        found = here if found is None else found & here
    return min(found) if found else None


def _first_probe() -> Any:
    return sys._getframe()


def _second_probe() -> Any:
    return sys._getframe()


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value
