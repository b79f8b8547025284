"""A trace function (as of `sys.settrace`) written in native code, for versions of Python without `sys.monitoring`.

It passes over code that is known to be of no interest; for all other code it calls functions of Python's. A function of
Python's that is asked about every call would make tracing several times slower.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType
from typing import Any, Callable, Iterator

import numpy as np

from ....targets.llvm.runtime.fixed_code import filled, linked

_SIZE = 4096  # entries of the table of codes that are passed over, by their addresses
_known = np.zeros(_SIZE, np.int64)
_kept: dict[int, CodeType] = {}  # a code's address stays its own while it is alive
_FUNCTIONS = ("PyFrame_GetCode", "Py_DecRef", "PyObject_CallFunctionObjArgs")


def pass_over(code: CodeType) -> None:
    """Call no function about this code any more."""
    place = (id(code) >> 5) % _SIZE
    _kept[place] = code
    _known[place] = id(code)


@contextmanager
def tracing(on_call: Callable[[FrameType], None], on_line: Callable[[FrameType], None]) -> Iterator[None]:
    """Have `on_call(frame)` and `on_line(frame)` called in this thread, for all code that is not passed over."""
    before = sys.gettrace()
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    words = np.array([*addresses, _known.ctypes.data, id(on_call), id(on_line)], np.int64)
    told = words.ctypes.data.to_bytes(8, sys.byteorder), words, on_call, on_line
    set_trace = ctypes.pythonapi.PyEval_SetTrace
    set_trace.argtypes, set_trace.restype = (ctypes.c_void_p, ctypes.py_object), None
    set_trace(_address(), told)
    try:
        yield
    finally:
        sys.settrace(before)


def prepare() -> None:
    """Have the function ready: the first time it is compiled, or read from the disk."""
    _address()


@cache
def _address() -> Any:
    return linked(filled(_TEXT, {}), ["pullback_trace"]).addresses["pullback_trace"]


_TEXT = f"""
; functions, the table of codes, what to call for calls and for lines
%Words = type {{ ptr, ptr, ptr, ptr, ptr, ptr }}

define i32 @pullback_trace(ptr %told, ptr %frame, i32 %what, ptr %argument) nounwind {{
entry:
  %is.call = icmp eq i32 %what, 0
  %is.line = icmp eq i32 %what, 2
  %is.either = or i1 %is.call, %is.line
  br i1 %is.either, label %look, label %done

look:
  %bytes = load ptr from i8, ptr %told, i64 24
  %words = load ptr from i8, ptr %bytes, i64 32
  %code.of = load ptr, ptr %words
  %drop = load ptr from %Words, ptr %words, i64 0, i32 1
  %code = call ptr %code.of(ptr %frame)
  call void %drop(ptr %code)
  %code.word = ptrtoint ptr %code to i64
  %shifted = lshr i64 %code.word, 5
  %place = and i64 %shifted, {_SIZE - 1}
  %table = load ptr from %Words, ptr %words, i64 0, i32 3
  %known = load i64 from i64, ptr %table, i64 %place
  %is.known = icmp eq i64 %known, %code.word
  br i1 %is.known, label %done, label %tell

tell:
  %which = select i1 %is.call, i32 4, i32 5
  %function = load ptr from ptr, ptr %words, i32 %which
  %call = load ptr from %Words, ptr %words, i64 0, i32 2
  %said = call ptr (ptr, ...) %call(ptr %function, ptr %frame, ptr null)
  %failed = icmp eq ptr %said, null
  br i1 %failed, label %error, label %given

given:
  call void %drop(ptr %said)
  br label %done

error:
  ret i32 -1

done:
  ret i32 0
}}
"""
