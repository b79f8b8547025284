"""Reading tensors and NumPy arrays from native code: whether they are what a program expects, and where their data is.

A call of a small program takes a microsecond or two, and asking Python for the shape, dtype and address of each array
would take longer than that. The layout of NumPy's arrays is part of its binary interface; where the layout of anything
that is read here is not as expected (another Python, a build without the global lock), `is_possible` says so.

A table has one row of words per array: see `Row`.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from types import CellType
from typing import Any, Callable

import numpy as np

from ....backends.numpy.ownership import counts_are_exact
from ....tensor.core import Tensor
from .fixed_code import linked

#: What is read of an object: its count of references (the lower half of a word) and type; of an array also where its
#: data is, its number of axes, their lengths, what it is a view of, its dtype and its flags.
REFERENCES, TYPE, DATA, AXES, LENGTHS, BASE, DTYPE, FLAGS = 0, 8, 16, 24, 32, 48, 56, 64
CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400

#: Where the contents of a `bytes` object begin.
BYTES = 32
GIVEN, HELD, SAME = 0, 1, 2
ROW_WORDS = 8


@dataclass
class Row:
    """An array that a program reads or writes: given with the call, or held by an object in one of its slots.

    `SAME` asks only that a slot still holds the object it held.
    """

    kind: int
    where: int  # GIVEN: the number of the object; HELD, SAME: the address of the slot
    expected: int = 0  # SAME: the object; else the array's dtype
    axes: int = 0
    lengths: int = 0  # the address of the axes' lengths
    flags: int = 0
    references: int = 0  # exactly so many, or any number for 0
    base: int = 0  # the number of the base that gets the address of the data

    def words(self) -> list[int]:
        return [
            self.kind, self.where, self.expected, self.axes, self.lengths, self.flags, self.references, self.base
        ]  # fmt: skip


@cache
def is_possible() -> bool:
    """Whether objects lie in memory as this module expects."""
    if not counts_are_exact() or ctypes.sizeof(ctypes.c_void_p) != 8 or _slot_offset(Tensor, "_data") is None:
        return False
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    view = array[:, 1:]
    found = _word(id(array), TYPE), _word(id(array), DATA), _word(id(array), AXES) & 0xFFFFFFFF
    expected = id(np.ndarray), array.ctypes.data, 2
    lengths = _word(id(array), LENGTHS)
    more = _word(lengths, 0), _word(lengths, 8), _word(id(array), DTYPE), _word(id(view), BASE) in (
        id(array), id(array.base),
    )  # fmt: skip
    sample = b"pullback"
    if ctypes.string_at(id(sample) + BYTES, len(sample)) != sample:
        return False
    count = _word(id(array), REFERENCES) & 0xFFFFFFFF
    more_kept = [array, array]
    counted = (_word(id(array), REFERENCES) & 0xFFFFFFFF) == count + 2
    cell = CellType(array)
    is_cell = _word(id(cell), object.__basicsize__) == id(array)
    flags = _word(id(array), FLAGS) & 0xFFFFFFFF, _word(id(view), FLAGS) & 0xFFFFFFFF
    del more_kept
    return (
        found == expected
        and more == (2, 3, id(array.dtype), True)
        and counted
        and is_cell
        and flags[0] & CONTIGUOUS != 0
        and flags[1] & CONTIGUOUS == 0
    )


def _word(address: int, offset: int) -> int:
    return ctypes.c_int64.from_address(address + offset).value


def slot_address(holder: Any, name: str) -> int:
    """The address of the slot `name` of a tensor, a gradient cell or another object with slots."""
    kind: Any = type(holder)
    offset = _slot_offset(kind, name)
    assert offset is not None
    return id(holder) + offset


@cache
def _slot_offset(kind: Any, name: str) -> int | None:
    """Where the slot `name` is in objects of a type: found by looking for something that was put there."""
    marks = [np.empty(1), np.empty(2)]
    found: set[int] | None = None
    for mark in marks:
        holder: Any = kind.__new__(kind)
        setattr(holder, name, mark)
        here = {at for at in range(16, kind.__basicsize__, 8) if _word(id(holder), at) == id(mark)}
        found = here if found is None else found & here
    return found.pop() if found is not None and len(found) == 1 else None


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
    """`gather` and `call` as Python knows functions written in C."""
    addresses = linked(_text(), ["pullback_gather", "pullback_call"]).addresses
    return (
        _MethodDefinition(b"gather", addresses["pullback_gather"], _FAST_CALL, None),
        _MethodDefinition(b"call", addresses["pullback_call"], _FAST_CALL, None),
    )


class Record:
    """What the native functions know: the table, where the bases go, what to run, and what to look at then."""

    def __init__(self, rows: list[Row], bases: int, program: int, run: int, finite: int) -> None:
        self._table = np.array([row.words() for row in rows], np.int64).reshape(-1, ROW_WORDS)
        counted = int(sys.version_info < (3, 12))  # since then None, True and False are not counted any more
        words = [
            self._table.ctypes.data, len(rows), bases, program, run, finite, id(np.ndarray),
            id(None), id(False), id(True), counted,
        ]  # fmt: skip
        self._words = np.array(words, np.int64)
        self._address = self._words.ctypes.data.to_bytes(8, sys.byteorder)

    def gather(self) -> Callable[..., bool | None]:
        """`gather(*objects)`: fill in the bases; None, or False if an array is not as expected."""
        return self._function(_functions()[0])

    def call(self) -> Callable[..., bool | None]:
        """`call(*objects)`: fill in the bases and run, all under Python's lock.

        None if all went well; False if an array is not as expected, and nothing was done; True if the program's own
        checks failed.
        """
        return self._function(_functions()[1])

    def _function(self, definition: _MethodDefinition) -> Any:
        """A function written in C whose `self` is the address of this record's words, as bytes."""
        make_function = ctypes.pythonapi.PyCFunction_NewEx
        make_function.restype = ctypes.py_object
        make_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return make_function(ctypes.addressof(definition), self._address, None)


def _text() -> str:
    source = _GATHER
    for name, value in {
        "TYPE": TYPE, "DATA": DATA, "AXES": AXES, "LENGTHS": LENGTHS, "DTYPE": DTYPE, "FLAGS": FLAGS,
        "BYTES": BYTES,
    }.items():  # fmt: skip
        source = source.replace(f"<{name}>", str(value))
    return source


_GATHER = """
%Row = type { i64, i64, i64, i64, i64, i64, i64, i64 }
%Record = type { ptr, i64, ptr, ptr, ptr, ptr, i64, ptr, ptr, ptr, i64 }

; A new reference to one of the three answers: 7 all is well, 8 a misfit, 9 a check failed.
define internal ptr @answer(ptr %record, i32 %which) nounwind {
  %none.at = getelementptr %Record, ptr %record, i64 0, i32 7
  %offset = sub i32 %which, 7
  %at = getelementptr ptr, ptr %none.at, i32 %offset
  %object = load ptr, ptr %at
  %counted.at = getelementptr %Record, ptr %record, i64 0, i32 10
  %counted = load i64, ptr %counted.at
  %counts = icmp ne i64 %counted, 0
  br i1 %counts, label %count, label %end

count:
  %before = load i64, ptr %object
  %after = add i64 %before, 1
  store i64 %after, ptr %object
  br label %end

end:
  ret ptr %object
}

define internal ptr @record(ptr %self) nounwind {
  %at = getelementptr i8, ptr %self, i64 <BYTES>
  %record = load ptr, ptr %at
  ret ptr %record
}

define internal i1 @fits(ptr %record, ptr %objects, i64 %given.count) nounwind {
entry:
  %table = load ptr, ptr %record
  %count.at = getelementptr %Record, ptr %record, i64 0, i32 1
  %count = load i64, ptr %count.at
  %bases.at = getelementptr %Record, ptr %record, i64 0, i32 2
  %bases = load ptr, ptr %bases.at
  %array.at = getelementptr %Record, ptr %record, i64 0, i32 6
  %array.type = load i64, ptr %array.at
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %ok ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %row, label %fine

row:
  %kind.at = getelementptr %Row, ptr %table, i64 %i
  %kind = load i64, ptr %kind.at
  %where.at = getelementptr %Row, ptr %table, i64 %i, i32 1
  %where = load i64, ptr %where.at
  %expected.at = getelementptr %Row, ptr %table, i64 %i, i32 2
  %expected = load i64, ptr %expected.at
  %given = icmp eq i64 %kind, 0
  %beyond = icmp sge i64 %where, %given.count
  %missing = and i1 %given, %beyond
  br i1 %missing, label %misfit, label %find

find:
  %given.at = getelementptr i64, ptr %objects, i64 %where
  %slot = inttoptr i64 %where to ptr
  %from = select i1 %given, ptr %given.at, ptr %slot
  %object = load i64, ptr %from
  %only = icmp eq i64 %kind, 2
  br i1 %only, label %same, label %there

same:
  %unchanged = icmp eq i64 %object, %expected
  br i1 %unchanged, label %ok, label %misfit

there:
  %exists = icmp ne i64 %object, 0
  br i1 %exists, label %look, label %misfit

look:
  %at = inttoptr i64 %object to ptr
  %type.at = getelementptr i8, ptr %at, i64 <TYPE>
  %type = load i64, ptr %type.at
  %is.array = icmp eq i64 %type, %array.type
  br i1 %is.array, label %read, label %misfit

read:
  %references = load i32, ptr %at
  %wanted.at = getelementptr %Row, ptr %table, i64 %i, i32 6
  %wanted = load i64, ptr %wanted.at
  %wanted.short = trunc i64 %wanted to i32
  %any = icmp eq i64 %wanted, 0
  %counted = icmp eq i32 %references, %wanted.short
  %alone = or i1 %any, %counted
  %dtype.at = getelementptr i8, ptr %at, i64 <DTYPE>
  %dtype = load i64, ptr %dtype.at
  %is.dtype = icmp eq i64 %dtype, %expected
  %axes.at = getelementptr i8, ptr %at, i64 <AXES>
  %axes = load i32, ptr %axes.at
  %axes.wanted.at = getelementptr %Row, ptr %table, i64 %i, i32 3
  %axes.wanted = load i64, ptr %axes.wanted.at
  %axes.short = trunc i64 %axes.wanted to i32
  %is.axes = icmp eq i32 %axes, %axes.short
  %flags.at = getelementptr i8, ptr %at, i64 <FLAGS>
  %flags = load i32, ptr %flags.at
  %flags.wanted.at = getelementptr %Row, ptr %table, i64 %i, i32 5
  %flags.wanted = load i64, ptr %flags.wanted.at
  %flags.short = trunc i64 %flags.wanted to i32
  %flags.there = and i32 %flags, %flags.short
  %is.flags = icmp eq i32 %flags.there, %flags.short
  %both = and i1 %alone, %is.dtype
  %three = and i1 %both, %is.axes
  %four = and i1 %three, %is.flags
  br i1 %four, label %lengths, label %misfit

lengths:
  %dims.at = getelementptr i8, ptr %at, i64 <LENGTHS>
  %dims = load ptr, ptr %dims.at
  %dims.wanted.at = getelementptr %Row, ptr %table, i64 %i, i32 4
  %dims.wanted = load ptr, ptr %dims.wanted.at
  br label %length.head

length.head:
  %j = phi i64 [ 0, %lengths ], [ %j.next, %length.body ]
  %left = icmp slt i64 %j, %axes.wanted
  br i1 %left, label %length.body, label %take

length.body:
  %dim.at = getelementptr i64, ptr %dims, i64 %j
  %dim = load i64, ptr %dim.at
  %dim.wanted.at = getelementptr i64, ptr %dims.wanted, i64 %j
  %dim.wanted = load i64, ptr %dim.wanted.at
  %j.next = add i64 %j, 1
  %is.dim = icmp eq i64 %dim, %dim.wanted
  br i1 %is.dim, label %length.head, label %misfit

take:
  %data.at = getelementptr i8, ptr %at, i64 <DATA>
  %data = load i64, ptr %data.at
  %base.at = getelementptr %Row, ptr %table, i64 %i, i32 7
  %base = load i64, ptr %base.at
  %out = getelementptr i64, ptr %bases, i64 %base
  store i64 %data, ptr %out
  br label %ok

ok:
  %next = add i64 %i, 1
  br label %head

misfit:
  ret i1 false

fine:
  ret i1 true
}

define ptr @pullback_gather(ptr %self, ptr %objects, i64 %count) nounwind {
  %record = call ptr @record(ptr %self)
  %fits = call i1 @fits(ptr %record, ptr %objects, i64 %count)
  %which = select i1 %fits, i32 7, i32 8
  %result = call ptr @answer(ptr %record, i32 %which)
  ret ptr %result
}

define ptr @pullback_call(ptr %self, ptr %objects, i64 %count) nounwind {
entry:
  %record = call ptr @record(ptr %self)
  %fits = call i1 @fits(ptr %record, ptr %objects, i64 %count)
  br i1 %fits, label %run, label %end

run:
  %bases.at = getelementptr %Record, ptr %record, i64 0, i32 2
  %bases = load ptr, ptr %bases.at
  %program.at = getelementptr %Record, ptr %record, i64 0, i32 3
  %program = load ptr, ptr %program.at
  %run.at = getelementptr %Record, ptr %record, i64 0, i32 4
  %function = load ptr, ptr %run.at
  %done = call i64 %function(ptr %program, ptr %bases)
  %finite.at = getelementptr %Record, ptr %record, i64 0, i32 5
  %finite = load ptr, ptr %finite.at
  %looks = icmp ne ptr %finite, null
  br i1 %looks, label %look, label %end

look:
  %flag = load i8, ptr %finite
  %bad = icmp eq i8 %flag, 0
  %checked = select i1 %bad, i32 9, i32 7
  br label %end

end:
  %which = phi i32 [ 8, %entry ], [ 7, %run ], [ %checked, %look ]
  %result = call ptr @answer(ptr %record, i32 %which)
  ret ptr %result
}
"""
