"""Native code that goes through rows: each looks at one Python object, or finds another one from there.

A row has eight words: an operation, the register it fills, the register it looks at, and what the operation needs.
Registers hold addresses of objects; register 0 holds 0, so that words at fixed addresses can be looked at too. The
first row that does not find what it wants ends the walk. Python's lock is held, and nobody's code runs but that of
`PYTHON`, which may run any: so registers of rows before it are not used by rows after it.
"""

from __future__ import annotations

ROW_WORDS = 8
(
    GIVEN, CONSTANT, SLOT, ITEM, WORD, ENTRY, ABSENT, ATTRIBUTE, NO_ATTRIBUTE, METHOD, EQUAL, ENTRIES, CONTENT, ARRAY,
    CONTEXT, PYTHON, COUNT, SAME, DICT, DIFFERENT, NUMBER, IS, STORAGE,
) = range(23)  # fmt: skip

#: What is read of an object: its count of references (the lower half of a word) and type; of an array also where its
#: data is, its number of axes, their lengths, what it is a view of, its dtype and its flags; of a list where its items
#: are; of a method its function; where the contents of `bytes` begin.
REFERENCES, TYPE, DATA, AXES, LENGTHS, BASE, DTYPE, FLAGS = 0, 8, 16, 24, 32, 48, 56, 64
ITEMS, FUNCTION, BYTES = 24, 16, 32

#: Functions of Python's that are called, by their place in the table of addresses.
FUNCTIONS = (
    "PyDict_GetItemWithError", "PyObject_GenericGetAttr", "PyErr_Clear", "PyObject_RichCompareBool", "PyDict_Next",
    "PyContextVar_Get", "PyObject_CallFunctionObjArgs", "Py_DecRef", "PyObject_GenericGetDict", "PyFloat_AsDouble",
    "PyErr_Occurred",
)  # fmt: skip


#: What the names in the code stand for.
NAMES = {
    "TYPE": TYPE, "DATA": DATA, "AXES": AXES, "LENGTHS": LENGTHS, "DTYPE": DTYPE, "FLAGS": FLAGS, "BYTES": BYTES,
    "ITEMS": ITEMS, "FUNCTION": FUNCTION, **{name: number for number, name in enumerate(FUNCTIONS)},
}  # fmt: skip

TEXT = """
%Row = type { i64, i64, i64, i64, i64, i64, i64, i64 }
; rows, their count, bases, program, run, finite, the type of arrays, None, False, True, counted, functions, registers,
; and whether the last call ran, and all went well
%Record = type { ptr, i64, ptr, ptr, ptr, ptr, i64, ptr, ptr, ptr, i64, ptr, i64, i64 }

; A new reference to one of the three answers: 7 all is well, 8 a misfit, 9 a check failed.
define internal ptr @answer(ptr %record, i32 %which) nounwind {
  %none.at = getelementptr %Record, ptr %record, i64 0, i32 7
  %offset = sub i32 %which, 7
  %object = load ptr from ptr, ptr %none.at, i32 %offset
  %counted = load i64 from %Record, ptr %record, i64 0, i32 10
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
  %record = load ptr from i8, ptr %self, i64 <BYTES>
  ret ptr %record
}

; Whether two objects are one, or equal values of one of Python's own types.
define internal i1 @equal(ptr %functions, i64 %x, i64 %y) nounwind {
entry:
  %same = icmp eq i64 %x, %y
  br i1 %same, label %yes, label %types

types:
  %x.at = inttoptr i64 %x to ptr
  %y.at = inttoptr i64 %y to ptr
  %x.type.at = getelementptr i8, ptr %x.at, i64 <TYPE>
  %y.type.at = getelementptr i8, ptr %y.at, i64 <TYPE>
  %x.type = load i64, ptr %x.type.at
  %y.type = load i64, ptr %y.type.at
  %alike = icmp eq i64 %x.type, %y.type
  br i1 %alike, label %compare, label %no

compare:
  %compare.function = load ptr from ptr, ptr %functions, i64 <PyObject_RichCompareBool>
  %answer = call i32 %compare.function(ptr %x.at, ptr %y.at, i32 2)
  %one = icmp eq i32 %answer, 1
  ret i1 %one

yes:
  ret i1 true

no:
  ret i1 false
}

define internal i1 @fits(ptr %record, ptr %objects, i64 %given.count) nounwind {
entry:
  %table = load ptr, ptr %record
  %count = load i64 from %Record, ptr %record, i64 0, i32 1
  %bases = load ptr from %Record, ptr %record, i64 0, i32 2
  %array.type = load i64 from %Record, ptr %record, i64 0, i32 6
  %functions = load ptr from %Record, ptr %record, i64 0, i32 11
  %register.count = load i64 from %Record, ptr %record, i64 0, i32 12
  %registers = alloca i64, i64 %register.count
  store i64 0, ptr %registers
  %key.room = alloca i64
  %value.room = alloca i64
  %position.room = alloca i64
  %entry.of = load ptr from ptr, ptr %functions, i64 <PyDict_GetItemWithError>
  %attribute.of = load ptr from ptr, ptr %functions, i64 <PyObject_GenericGetAttr>
  %clear = load ptr from ptr, ptr %functions, i64 <PyErr_Clear>
  %next.of = load ptr from ptr, ptr %functions, i64 <PyDict_Next>
  %context.of = load ptr from ptr, ptr %functions, i64 <PyContextVar_Get>
  %python.of = load ptr from ptr, ptr %functions, i64 <PyObject_CallFunctionObjArgs>
  %drop = load ptr from ptr, ptr %functions, i64 <Py_DecRef>
  %dict.of = load ptr from ptr, ptr %functions, i64 <PyObject_GenericGetDict>
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %ok ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %row, label %fine

row:
  %op = load i64 from %Row, ptr %table, i64 %i
  %to = load i64 from %Row, ptr %table, i64 %i, i32 1
  %from = load i64 from %Row, ptr %table, i64 %i, i32 2
  %a = load i64 from %Row, ptr %table, i64 %i, i32 3
  %b = load i64 from %Row, ptr %table, i64 %i, i32 4
  %source = load i64 from i64, ptr %registers, i64 %from
  %object = inttoptr i64 %source to ptr
  %target = getelementptr i64, ptr %registers, i64 %to
  switch i64 %op, label %misfit [
    i64 0, label %op.given
    i64 1, label %op.constant
    i64 2, label %op.slot
    i64 3, label %op.item
    i64 4, label %op.word
    i64 5, label %op.entry
    i64 6, label %op.absent
    i64 7, label %op.attribute
    i64 8, label %op.no.attribute
    i64 9, label %op.method
    i64 10, label %op.equal
    i64 11, label %op.entries
    i64 12, label %op.content
    i64 13, label %op.array
    i64 14, label %op.context
    i64 15, label %op.python
    i64 16, label %op.count
    i64 17, label %op.same
    i64 18, label %op.dict
    i64 19, label %op.different
    i64 20, label %op.number
    i64 21, label %op.is
    i64 22, label %op.storage
  ]

; a: the number of an object that the call was given
op.given:
  %given.there = icmp slt i64 %a, %given.count
  br i1 %given.there, label %given.take, label %misfit

given.take:
  %given = load i64 from i64, ptr %objects, i64 %a
  store i64 %given, ptr %target
  br label %ok

; a: an address
op.constant:
  store i64 %a, ptr %target
  br label %ok

; a: where in the object the address of another one is
op.slot:
  %slot = load i64 from i8, ptr %object, i64 %a
  store i64 %slot, ptr %target
  %slot.there = icmp ne i64 %slot, 0
  br i1 %slot.there, label %ok, label %misfit

; a: the number of a list's item
op.item:
  %items = load ptr from i8, ptr %object, i64 <ITEMS>
  %item = load i64 from i64, ptr %items, i64 %a
  store i64 %item, ptr %target
  br label %ok

; a: where in the object, b: what the word there is, c: of which bits
op.word:
  %c = load i64 from %Row, ptr %table, i64 %i, i32 5
  %word.at = getelementptr i8, ptr %object, i64 %a
  %word = load i64, ptr %word.at, align 4
  %word.bits = and i64 %word, %c
  %word.same = icmp eq i64 %word.bits, %b
  br i1 %word.same, label %ok, label %misfit

; a: the key of a dict's entry
op.entry:
  %entry.key = inttoptr i64 %a to ptr
  %found = call i64 %entry.of(ptr %object, ptr %entry.key)
  store i64 %found, ptr %target
  %found.there = icmp ne i64 %found, 0
  br i1 %found.there, label %ok, label %failed

; a: a key that is not there
op.absent:
  %absent.key = inttoptr i64 %a to ptr
  %absent = call i64 %entry.of(ptr %object, ptr %absent.key)
  %is.absent = icmp eq i64 %absent, 0
  br i1 %is.absent, label %ok, label %misfit

; a: the name of an attribute that the object holds itself, so that it stays when this reference is given back
op.attribute:
  %name = inttoptr i64 %a to ptr
  %value = call i64 %attribute.of(ptr %object, ptr %name)
  store i64 %value, ptr %target
  %value.there = icmp ne i64 %value, 0
  br i1 %value.there, label %attribute.give, label %failed

attribute.give:
  %value.at = inttoptr i64 %value to ptr
  %value.references = load i32, ptr %value.at
  call void %drop(ptr %value.at)
  %value.stays = icmp ne i32 %value.references, 1
  br i1 %value.stays, label %ok, label %misfit

; a: the name of an attribute that is not there
op.no.attribute:
  %no.name = inttoptr i64 %a to ptr
  %no.value = call i64 %attribute.of(ptr %object, ptr %no.name)
  %no.there = icmp ne i64 %no.value, 0
  br i1 %no.there, label %no.give, label %no.fine

no.give:
  %no.at = inttoptr i64 %no.value to ptr
  call void %drop(ptr %no.at)
  br label %misfit

no.fine:
  call void %clear()
  br label %ok

; a: the name of a method, b: its function
op.method:
  %method.name = inttoptr i64 %a to ptr
  %method = call i64 %attribute.of(ptr %object, ptr %method.name)
  %method.there = icmp ne i64 %method, 0
  br i1 %method.there, label %method.look, label %failed

method.look:
  %method.type.wanted = load i64 from %Row, ptr %table, i64 %i, i32 5
  %method.at = inttoptr i64 %method to ptr
  %method.type = load i64 from i8, ptr %method.at, i64 <TYPE>
  %function = load i64 from i8, ptr %method.at, i64 <FUNCTION>
  call void %drop(ptr %method.at)
  %is.method = icmp eq i64 %method.type, %method.type.wanted
  %is.function = icmp eq i64 %function, %b
  %is.both = and i1 %is.method, %is.function
  br i1 %is.both, label %ok, label %misfit

; a: an object of one of Python's own types
op.equal:
  %equals = call i1 @equal(ptr %functions, i64 %source, i64 %a)
  br i1 %equals, label %ok, label %failed

; a: the addresses of a dict's keys in their order, b: how many; the values go to registers from `to` on
op.entries:
  %used = load i64 from i8, ptr %object, i64 16
  %used.same = icmp eq i64 %used, %b
  store i64 0, ptr %position.room
  br i1 %used.same, label %entries.head, label %misfit

entries.head:
  %n = phi i64 [ 0, %op.entries ], [ %n.next, %entries.take ]
  %n.more = icmp slt i64 %n, %b
  br i1 %n.more, label %entries.step, label %ok

entries.step:
  %stepped = call i32 %next.of(ptr %object, ptr %position.room, ptr %key.room, ptr %value.room)
  %is.stepped = icmp ne i32 %stepped, 0
  br i1 %is.stepped, label %entries.look, label %misfit

entries.look:
  %keys = inttoptr i64 %a to ptr
  %key.wanted = load i64 from i64, ptr %keys, i64 %n
  %key = load i64, ptr %key.room
  %key.same = call i1 @equal(ptr %functions, i64 %key, i64 %key.wanted)
  br i1 %key.same, label %entries.take, label %failed

entries.take:
  %taken = load i64, ptr %value.room
  %taken.at = getelementptr i64, ptr %target, i64 %n
  store i64 %taken, ptr %taken.at
  %n.next = add i64 %n, 1
  br label %entries.head

; a: the address of bytes that an array has, b: how many words, c: how many bytes after them
op.content:
  %rest = load i64 from %Row, ptr %table, i64 %i, i32 5
  %content = load ptr from i8, ptr %object, i64 <DATA>
  %content.wanted = inttoptr i64 %a to ptr
  br label %content.head

content.head:
  %w = phi i64 [ 0, %op.content ], [ %w.next, %content.word ]
  %w.more = icmp slt i64 %w, %b
  br i1 %w.more, label %content.word, label %rest.start

content.word:
  %w.at = getelementptr i64, ptr %content, i64 %w
  %w.value = load i64, ptr %w.at, align 1
  %w.wanted.at = getelementptr i64, ptr %content.wanted, i64 %w
  %w.wanted = load i64, ptr %w.wanted.at, align 1
  %w.next = add i64 %w, 1
  %w.same = icmp eq i64 %w.value, %w.wanted
  br i1 %w.same, label %content.head, label %misfit

rest.start:
  %done.bytes = mul i64 %b, 8
  %end.bytes = add i64 %done.bytes, %rest
  br label %rest.head

rest.head:
  %r = phi i64 [ %done.bytes, %rest.start ], [ %r.next, %rest.byte ]
  %r.more = icmp slt i64 %r, %end.bytes
  br i1 %r.more, label %rest.byte, label %ok

rest.byte:
  %r.value = load i8 from i8, ptr %content, i64 %r
  %r.wanted = load i8 from i8, ptr %content.wanted, i64 %r
  %r.next = add i64 %r, 1
  %r.same = icmp eq i8 %r.value, %r.wanted
  br i1 %r.same, label %rest.head, label %misfit

; to: the number of the base that gets the address of the data, or -1; a: the dtype, b: how many axes, c: the address of
; their lengths, d: flags, e: how many references, or 0 for any number
op.array:
  %ac = load ptr from %Row, ptr %table, i64 %i, i32 5
  %ad = load i64 from %Row, ptr %table, i64 %i, i32 6
  %ae = load i64 from %Row, ptr %table, i64 %i, i32 7
  %its.type = load i64 from i8, ptr %object, i64 <TYPE>
  %is.array = icmp eq i64 %its.type, %array.type
  br i1 %is.array, label %read, label %misfit

read:
  %references = load i32, ptr %object
  %wanted.short = trunc i64 %ae to i32
  %any = icmp eq i64 %ae, 0
  %counted = icmp eq i32 %references, %wanted.short
  %alone = or i1 %any, %counted
  %dtype = load i64 from i8, ptr %object, i64 <DTYPE>
  %is.dtype = icmp eq i64 %dtype, %a
  %axes = load i32 from i8, ptr %object, i64 <AXES>
  %axes.short = trunc i64 %b to i32
  %is.axes = icmp eq i32 %axes, %axes.short
  %flags = load i32 from i8, ptr %object, i64 <FLAGS>
  %flags.short = trunc i64 %ad to i32
  %flags.there = and i32 %flags, %flags.short
  %is.flags = icmp eq i32 %flags.there, %flags.short
  %both = and i1 %alone, %is.dtype
  %three = and i1 %both, %is.axes
  %four = and i1 %three, %is.flags
  br i1 %four, label %lengths, label %misfit

lengths:
  %dims = load ptr from i8, ptr %object, i64 <LENGTHS>
  br label %length.head

length.head:
  %j = phi i64 [ 0, %lengths ], [ %j.next, %length.body ]
  %left = icmp slt i64 %j, %b
  br i1 %left, label %length.body, label %take

length.body:
  %dim = load i64 from i64, ptr %dims, i64 %j
  %dim.wanted = load i64 from i64, ptr %ac, i64 %j
  %j.next = add i64 %j, 1
  %is.dim = icmp eq i64 %dim, %dim.wanted
  br i1 %is.dim, label %length.head, label %misfit

take:
  %taken.any = icmp sge i64 %to, 0
  br i1 %taken.any, label %take.address, label %ok

take.address:
  %data = load i64 from i8, ptr %object, i64 <DATA>
  %out = getelementptr i64, ptr %bases, i64 %to
  store i64 %data, ptr %out
  br label %ok

; a: a context variable, b: what it holds, c: what to take for one that is not set
op.context:
  %context.default = load ptr from %Row, ptr %table, i64 %i, i32 5
  %variable = inttoptr i64 %a to ptr
  %got = call i32 %context.of(ptr %variable, ptr %context.default, ptr %value.room)
  %got.fine = icmp eq i32 %got, 0
  br i1 %got.fine, label %context.look, label %failed

context.look:
  %held = load i64, ptr %value.room
  %held.there = icmp ne i64 %held, 0
  br i1 %held.there, label %context.drop, label %context.same

context.drop:
  %held.at = inttoptr i64 %held to ptr
  call void %drop(ptr %held.at)
  br label %context.same

context.same:
  %held.same = icmp eq i64 %held, %b
  br i1 %held.same, label %ok, label %misfit

; a: a function that is called with the first two of the objects given, and says True
op.python:
  %callable = inttoptr i64 %a to ptr
  %first = load ptr, ptr %objects
  %second = load ptr from ptr, ptr %objects, i64 1
  %said = call ptr (ptr, ...) %python.of(ptr %callable, ptr %first, ptr %second, ptr null)
  %said.any = icmp ne ptr %said, null
  br i1 %said.any, label %python.look, label %misfit

python.look:
  %true = load ptr from %Record, ptr %record, i64 0, i32 9
  call void %drop(ptr %said)
  %said.true = icmp eq ptr %said, %true
  br i1 %said.true, label %ok, label %misfit

; a: the address of two words: how many calls there were, and at how many somebody wants to look
op.count:
  %calls.at = inttoptr i64 %a to ptr
  %calls.before = load i64, ptr %calls.at
  %calls = add i64 %calls.before, 1
  store i64 %calls, ptr %calls.at
  %limit = load i64 from i64, ptr %calls.at, i64 1
  %calls.fine = icmp slt i64 %calls, %limit
  br i1 %calls.fine, label %ok, label %misfit

; a: another register, which holds the same object, or for b an equal one
op.same:
  %other = load i64 from i64, ptr %registers, i64 %a
  %strict = icmp eq i64 %b, 0
  br i1 %strict, label %same.strict, label %same.equal

same.strict:
  %other.same = icmp eq i64 %source, %other
  br i1 %other.same, label %ok, label %misfit

same.equal:
  %others = call i1 @equal(ptr %functions, i64 %source, i64 %other)
  br i1 %others, label %ok, label %failed

; a: another register, which holds another object
op.different:
  %unlike = load i64 from i64, ptr %registers, i64 %a
  %differs = icmp ne i64 %source, %unlike
  br i1 %differs, label %ok, label %misfit

; a: the address of the very object
op.is:
  %is.it = icmp eq i64 %source, %a
  br i1 %is.it, label %ok, label %misfit

; of what a tensor of PyTorch's is in C++. to: the number of the base that gets the address of the data, or -1; a: where
; things are: the storage, the offset in elements, of the storage its data, its count of users, whether it may be
; resized, the Python object that stands for it; the bytes of an element and a mask of bits that addresses do not have;
; where the storage has who frees it, and who that is; b: whether it will be written: then nobody else may see it
op.storage:
  %places = inttoptr i64 %a to ptr
  %storage.where = load i64, ptr %places
  %storage = load ptr from i8, ptr %object, i64 %storage.where
  %storage.there = icmp ne ptr %storage, null
  br i1 %storage.there, label %storage.look, label %misfit

storage.look:
  %storage.written = icmp ne i64 %b, 0
  br i1 %storage.written, label %storage.own, label %storage.address

storage.own:
  %own.where = load i64 from i64, ptr %places, i64 4
  %own = load i8 from i8, ptr %storage, i64 %own.where
  %is.own = icmp eq i8 %own, 1
  %freed.where = load i64 from i64, ptr %places, i64 8
  %freed = load i64 from i8, ptr %storage, i64 %freed.where
  %freed.wanted = load i64 from i64, ptr %places, i64 9
  %is.freed = icmp eq i64 %freed, %freed.wanted
  %is.pytorchs = and i1 %is.own, %is.freed
  br i1 %is.pytorchs, label %storage.users, label %misfit

storage.users:
  %users.where = load i64 from i64, ptr %places, i64 3
  %users = load i32 from i8, ptr %storage, i64 %users.where
  switch i32 %users, label %misfit [
    i32 1, label %storage.address
    i32 2, label %storage.wrapped
  ]

storage.wrapped:
  %wrapper.where = load i64 from i64, ptr %places, i64 5
  %wrapper = load ptr from i8, ptr %storage, i64 %wrapper.where
  %wrapper.there = icmp ne ptr %wrapper, null
  br i1 %wrapper.there, label %storage.wrapper, label %misfit

storage.wrapper:
  %wrapper.references = load i32, ptr %wrapper
  %wrapper.alone = icmp eq i32 %wrapper.references, 1
  br i1 %wrapper.alone, label %storage.address, label %misfit

storage.address:
  %elements.where = load i64 from i64, ptr %places, i64 1
  %elements = load i64 from i8, ptr %object, i64 %elements.where
  %data.where = load i64 from i64, ptr %places, i64 2
  %storage.data = load i64 from i8, ptr %storage, i64 %data.where
  %element.bytes = load i64 from i64, ptr %places, i64 6
  %element.mask = load i64 from i64, ptr %places, i64 7
  %elements.bytes = mul i64 %elements, %element.bytes
  %elements.at = add i64 %storage.data, %elements.bytes
  %misaligned = and i64 %elements.at, %element.mask
  %aligned = icmp eq i64 %misaligned, 0
  br i1 %aligned, label %storage.take, label %misfit

storage.take:
  %storage.taken = icmp sge i64 %to, 0
  br i1 %storage.taken, label %storage.give, label %ok

storage.give:
  %storage.out = getelementptr i64, ptr %bases, i64 %to
  store i64 %elements.at, ptr %storage.out
  br label %ok

; a: where the value of a number goes, as a double
op.number:
  %double.of = load ptr from ptr, ptr %functions, i64 <PyFloat_AsDouble>
  %double = call double %double.of(ptr %object)
  %number.to = inttoptr i64 %a to ptr
  store double %double, ptr %number.to
  %perhaps.failed = fcmp oeq double %double, -1.0
  br i1 %perhaps.failed, label %number.clear, label %ok

number.clear:
  call void %clear()
  br label %ok

; the dict of an object's attributes
op.dict:
  %dict = call i64 %dict.of(ptr %object, ptr null)
  store i64 %dict, ptr %target
  %dict.there = icmp ne i64 %dict, 0
  br i1 %dict.there, label %dict.give, label %failed

dict.give:
  %dict.object = inttoptr i64 %dict to ptr
  %dict.references = load i32, ptr %dict.object
  call void %drop(ptr %dict.object)
  %dict.stays = icmp ne i32 %dict.references, 1
  br i1 %dict.stays, label %ok, label %misfit

ok:
  %next = add i64 %i, 1
  br label %head

failed:
  call void %clear()
  br label %misfit

misfit:
  ret i1 false

fine:
  ret i1 true
}

; What to answer if something does not fit: nothing, if that is because of an error of a function of Python's.
define internal ptr @misfit(ptr %record) nounwind {
entry:
  %functions = load ptr from %Record, ptr %record, i64 0, i32 11
  %occurred.of = load ptr from ptr, ptr %functions, i64 <PyErr_Occurred>
  %error = call ptr %occurred.of()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %raise, label %say

raise:
  ret ptr null

say:
  %result = call ptr @answer(ptr %record, i32 8)
  ret ptr %result
}

define ptr @pullback_check(ptr %self, ptr %objects, i64 %count) nounwind {
entry:
  %record = call ptr @record(ptr %self)
  %fits = call i1 @fits(ptr %record, ptr %objects, i64 %count)
  br i1 %fits, label %fine, label %misfit

fine:
  %result = call ptr @answer(ptr %record, i32 7)
  ret ptr %result

misfit:
  %no = call ptr @misfit(ptr %record)
  ret ptr %no
}

define ptr @pullback_call(ptr %self, ptr %objects, i64 %count) nounwind {
entry:
  %record = call ptr @record(ptr %self)
  %ran.at = getelementptr %Record, ptr %record, i64 0, i32 13
  store i64 0, ptr %ran.at
  %fits = call i1 @fits(ptr %record, ptr %objects, i64 %count)
  br i1 %fits, label %run, label %misfit

misfit:
  %no = call ptr @misfit(ptr %record)
  ret ptr %no

run:
  %bases = load ptr from %Record, ptr %record, i64 0, i32 2
  %program = load ptr from %Record, ptr %record, i64 0, i32 3
  %function = load ptr from %Record, ptr %record, i64 0, i32 4
  %done = call i64 %function(ptr %program, ptr %bases)
  %finite = load ptr from %Record, ptr %record, i64 0, i32 5
  %looks = icmp ne ptr %finite, null
  br i1 %looks, label %look, label %end

look:
  %flag = load i8, ptr %finite
  %bad = icmp eq i8 %flag, 0
  %checked = select i1 %bad, i32 9, i32 7
  br label %end

end:
  %which = phi i32 [ 7, %run ], [ %checked, %look ]
  %well = icmp eq i32 %which, 7
  %ran = zext i1 %well to i64
  store i64 %ran, ptr %ran.at
  %result = call ptr @answer(ptr %record, i32 %which)
  ret ptr %result
}
"""
