"""Writing guards as rows of the native check: see `native/row_code.py` for what a row can do.

What has no native form is left to `rest`, which is called at the end of the rows and looks by Python's means.
"""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType, MethodType
from typing import Any, Callable, Iterable

import numpy as np

from . import values
from .native import object_layout as layout, row_code as code
from .places import Attribute, Cell, Computed, Entry, Fixed, OfClass, Place
from .reading import MISSING, NATIVE, attribute, contents, lookup
from .row_passes import simplified
from .values import Guard, Look, UnwrittenError

_ALL_BITS = -1
_LOW_HALF = 0xFFFFFFFF
_FEW = 8
_MANY = 256
_BY_EQUALITY = frozenset((int, str, bytes))
_SINGLE = frozenset((type(None), bool, type(...), type(NotImplemented)))
#: Guards that may be in two places without being one thing.
_ANYWHERE = (values.Plain, values.Promoted, values.Identity, values.Fresh, values.Overwritten, values.Namespace)
#: Whose parts stay as they are: the thing itself is looked at, and then what is in the parts.
_SETTLED = (property, staticmethod, classmethod, type(len), type("".__str__))


class Path:
    """How Python finds, from a call's arguments, what a register holds."""

    __slots__ = ("steps", "keys")

    def __init__(self, steps: tuple[Callable[[Any], Any], ...] = (), keys: tuple[Any, ...] | None = None) -> None:
        self.steps = steps
        self.keys = keys  # if it goes from item to item

    def find(self, given: Any) -> Any:
        for step in self.steps:
            given = step(given)
        return given

    def then(self, step: Callable[[Any], Any]) -> Path:
        return Path((*self.steps, step))

    def item(self, key: Any) -> Path:
        is_direct = not self.steps or self.keys is not None
        return Path((*self.steps, lambda x: x[key]), (*(self.keys or ()), key) if is_direct else None)

    def attribute(self, name: str) -> Path:
        return self.then(lambda x: attribute(x, name))

    def field(self, name: str) -> Path:
        """Of a function."""
        return self.then(lambda x: values.field(x, name))

    def cell(self, number: int) -> Path:
        """What is in a cell of a function."""
        return self.then(lambda x: contents(x.__closure__[number]))

    def part(self, split: Callable[[Any], Any], number: int) -> Path:
        return self.then(lambda x: split(x)[number])


def _path_to(thing: Any) -> Path:
    return Path((lambda _: thing,))


class Rows:
    """Rows in the making. `kept` must stay alive as long as they are used."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.kept: list[Any] = []
        self.registers = 1
        self.rest: list[tuple[Guard, Path]] = []
        self.inputs: set[int] = set()  # tensors and arrays that are looked at as inputs anyway, by identity
        self._constants: dict[int, int] = {}
        self._known: dict[Guard, int] = {}
        self._paths: dict[Guard, Path] = {}
        self._versions: set[type] = set()

    def _row(self, op: int, to: int = 0, source: int = 0, *more: int) -> int:
        words = [op, to, source, *more]
        self.rows.append(words + [0] * (code.ROW_WORDS - len(words)))
        return to

    def _register(self, count: int = 1) -> int:
        first = self.registers
        self.registers += count
        return first

    def _kept(self, thing: Any) -> int:
        self.kept.append(thing)
        return id(thing)

    # -- finding -------------------------------------------------------------------------------------

    def given(self, number: int) -> int:
        """An object that the call is given."""
        return self._row(code.GIVEN, self._register(), 0, number)

    def constant(self, thing: Any) -> int:
        found = self._constants.get(id(thing))
        if found is None:
            found = self._constants[id(thing)] = self._row(code.CONSTANT, self._register(), 0, self._kept(thing))
        return found

    def at(self, address: int) -> int:
        """The object whose address stands at an address."""
        return self._row(code.SLOT, self._register(), 0, address)

    def slot(self, register: int, offset: int) -> int:
        return self._row(code.SLOT, self._register(), register, offset)

    def entry(self, register: int, key: Any) -> int:
        return self._row(code.ENTRY, self._register(), register, self._kept(key))

    def entries(self, register: int, keys: Iterable[Any]) -> range:
        """The values of a dict that has these keys, in this order."""
        keys = list(keys)
        if not all(type(key) in _BY_EQUALITY for key in keys):
            raise UnwrittenError
        self.of_type(register, dict)
        addresses = np.array([id(key) for key in keys] or [0], np.int64)
        self.kept += [keys, addresses]
        first = self._register(len(keys))
        self._row(code.ENTRIES, first, register, addresses.ctypes.data, len(keys))
        return range(first, first + len(keys))

    def items(self, register: int, kind: type, count: int, wanted: Iterable[int] | None = None) -> list[int]:
        """The items of a list or tuple that has so many; not all may be `wanted`."""
        self.of_type(register, kind)
        self.word(register, 16, count)
        numbers = range(count) if wanted is None else wanted
        if kind is list:
            return [self._row(code.ITEM, self._register(), register, i) for i in numbers]
        first: Any = layout.tuple_items()
        return [self.slot(register, first + 8 * i) for i in numbers]

    # -- looking -------------------------------------------------------------------------------------

    def word(self, register: int, offset: int, expected: int, bits: int = _ALL_BITS) -> None:
        self._row(code.WORD, 0, register, offset, expected, bits)

    def identical(self, register: int, thing: Any) -> None:
        if self._constants.get(id(thing)) != register:
            self._row(code.IS, 0, register, self._kept(thing))

    def identical_to(self, register: int, other: int) -> None:
        """That two registers hold one thing."""
        self._row(code.SAME, 0, register, other)

    def attribute(self, register: int, name: str) -> int:
        """An attribute that an object holds itself."""
        return self._row(code.ATTRIBUTE, self._register(), register, self._kept(name))

    def different(self, registers: list[int]) -> None:
        """That registers hold different things; of many that would take too long."""
        for i, register in enumerate(registers if len(registers) <= _FEW else ()):
            for other in registers[:i]:
                self._row(code.DIFFERENT, 0, register, other)

    def alike(self, register: int, other: int) -> None:
        """That two registers hold one number, or equal ones."""
        self._row(code.SAME, 0, register, other, 1)

    def of_type(self, register: int, kind: type) -> None:
        self.word(register, code.TYPE, self._kept(kind))

    def equal(self, register: int, value: Any) -> None:
        """A plain value, or one that means the same."""
        kind = type(value)
        if kind in _SINGLE or isinstance(value, np.dtype):
            self.identical(register, value)
        elif kind in _BY_EQUALITY:
            self._row(code.EQUAL, 0, register, self._kept(value))
        elif kind in (float, np.float64):
            self.of_type(register, kind)
            self.word(register, 16, int(np.array(value, np.float64).view(np.int64)))
        else:
            raise UnwrittenError

    def absent(self, register: int, key: Any) -> None:
        self._row(code.ABSENT, 0, register, self._kept(key))

    def array(self, register: int, dtype: Any, shape: Any, flags: int = 0, references: int = 0, base: int = -1) -> None:
        """An array of this form; its address goes to a base. Small ones by content are to be contiguous."""
        lengths = np.array(shape or (0,), np.int64)
        self.kept += [lengths, dtype]
        flags = flags or layout.CONTIGUOUS
        self._row(code.ARRAY, base, register, id(dtype), len(shape), lengths.ctypes.data, flags, references)

    def storage(self, register: int, places: Any, is_written: bool, base: int) -> None:
        """That the memory of a tensor of PyTorch's may be read, or written; its address goes to a base."""
        self.kept.append(places)
        self._row(code.STORAGE, base, register, places.ctypes.data, int(is_written))

    def flags(self, register: int, array: Any) -> None:
        """That an array is contiguous and can be written as much as this one."""
        bits = layout.CONTIGUOUS | layout.WRITEABLE
        here = layout.CONTIGUOUS * array.flags.c_contiguous | layout.WRITEABLE * array.flags.writeable
        self.word(register, code.FLAGS, here, bits)

    def number(self, register: int, memory: Any) -> None:
        """Write a number, which is known to be one, to an array of float64."""
        self.kept.append(memory)
        self._row(code.NUMBER, 0, register, memory.ctypes.data)

    def content(self, register: int, data: bytes) -> None:
        held = np.frombuffer(data, np.uint8)
        self.kept.append(held)
        self._row(code.CONTENT, 0, register, held.ctypes.data, len(data) // 8, len(data) % 8)

    def tensor_form(self, tensor: Any) -> None:
        """That a tensor from outside is the same variable, of the same form, unless it is looked at as an input."""
        if id(tensor) in self.inputs:
            return
        raw = tensor._raw
        if type(raw) is not np.ndarray:
            raise UnwrittenError  # what a function finds outside is an input, but for a few
        self.kept.append(tensor._node)
        self.word(0, layout.slot_address(tensor, "_node"), id(tensor._node))
        lengths = np.array(raw.shape or (0,), np.int64)
        self.kept += [lengths, raw.dtype]
        register = self.at(layout.slot_address(tensor, "_raw"))
        self._row(code.ARRAY, -1, register, id(raw.dtype), raw.ndim, lengths.ctypes.data, 0, 0)

    def version(self, cls: type) -> None:
        """That a class and its bases are as they are now."""
        if cls in self._versions:
            return
        version = layout.version_of(cls)
        if version is None:
            raise UnwrittenError
        self._versions.add(cls)
        self.word(0, self._kept(cls) + layout.VERSION, version, _LOW_HALF)

    def context(self, variable: Any) -> None:
        """That a context variable holds what it holds now."""
        value = variable.get(MISSING)
        self._row(code.CONTEXT, 0, 0, self._kept(variable), self._kept(value), id(MISSING))

    def count(self, counter: Any) -> None:
        """Count the call, in an array of two words: how many, and at how many to go the long way."""
        self.kept.append(counter)
        self._row(code.COUNT, 0, 0, counter.ctypes.data)

    # -- guards --------------------------------------------------------------------------------------

    def emit(self, guard: Guard, register: int, path: Path) -> None:
        """The rows of a guard on what is in a register; what has none is left to `rest`."""
        if isinstance(guard, _ANYWHERE):
            self._try(guard, register, path)
            return
        known = self._known.get(guard)
        if known is not None:
            if known != register:
                self.identical_to(register, known)
            return
        self._known[guard], self._paths[guard] = register, path
        self._try(guard, register, path)

    def _try(self, guard: Guard, register: int, path: Path) -> None:
        before = len(self.rows), dict(self._known), dict(self._constants), set(self._versions), len(self.rest)
        try:
            guard.emit(self, register, path)
        except UnwrittenError:
            count, self._known, self._constants, self._versions, left = before
            del self.rows[count:], self.rest[left:]
            self.by_python(guard, path)

    def by_python(self, guard: Guard, path: Path) -> None:
        self.rest.append((guard, path))

    def root(self, place: Place, guard: Guard) -> None:
        """The rows of a place and its guard."""
        if isinstance(guard, values.Overwritten):
            return
        path = Path((lambda _: place.get(),))
        if isinstance(place, Computed):
            self.by_python(guard, path)
        elif isinstance(place, Entry):
            holder = self.constant(place.holder)
            if guard.value is MISSING:
                self.absent(holder, place.key)
            else:
                self.emit(guard, self.entry(holder, place.key), path)
        elif isinstance(place, Cell):
            self._cell(self.constant(place.cell), guard, path)
        elif isinstance(place, Attribute):
            owner = self.constant(place.owner)
            try:
                self.read(type(place.owner), place.name, guard, owner, _path_to(place.owner))
            except UnwrittenError:
                self.by_python(guard, path)
        elif isinstance(place, OfClass):
            try:
                self.version(place.cls)
            except UnwrittenError:
                self.by_python(guard, path)
                return
            if guard.value is not MISSING:
                self.emit(guard, self.constant(place.get()), path)
        elif isinstance(place, Fixed):
            self.emit(guard, self.constant(place.thing), path)

    def _cell(self, cell: int, guard: Guard, path: Path) -> None:
        if guard.value is MISSING:
            self.word(cell, object.__basicsize__, 0)
        else:
            self.emit(guard, self.slot(cell, object.__basicsize__), path)

    def read(self, cls: type, name: str, guard: Guard, register: int, path: Path) -> None:
        """An attribute of an object of this class; the class is known to be as it was."""
        found = lookup(cls, name)
        path = path.attribute(name)
        if not _is_generic(cls) or (isinstance(found, NATIVE) and not isinstance(found, MemberDescriptorType)):
            self.by_python(guard, path)
        elif guard.value is MISSING:
            self._row(code.NO_ATTRIBUTE, 0, register, self._kept(name))
        elif found is MISSING or isinstance(found, MemberDescriptorType) or guard.value is not found:
            self.emit(guard, self.attribute(register, name), path)
        else:
            self._of_class(found, name, guard, register, path)

    def _of_class(self, found: Any, name: str, guard: Guard, register: int, path: Path) -> None:
        """An attribute that the class has: the object itself must have none of that name."""
        kind = type(found)
        if kind is FunctionType or isinstance(found, classmethod):
            function = found if kind is FunctionType else found.__func__
            self._row(code.METHOD, 0, register, self._kept(name), self._kept(function), id(MethodType))
        elif isinstance(found, staticmethod):
            self.identical(self.attribute(register, name), found.__func__)
        elif not hasattr(kind, "__get__"):
            self.emit(guard, self.attribute(register, name), path)
            return
        elif not (hasattr(kind, "__set__") or hasattr(kind, "__delete__")):
            self.by_python(guard, path)
            return
        self.emit(guard, self.constant(found), path)

    def whole(self, guard: Any, register: int, path: Path) -> None:
        """All attributes of an object."""
        if not _is_generic(guard.kind):
            raise UnwrittenError
        if guard.kind.__dictoffset__ == 0:
            for name, part in guard.reads.items():
                self.read(guard.kind, name, part, register, path)
            return
        own = guard.names
        if guard.reads.keys() - set(own):
            raise UnwrittenError
        found = self._row(code.DICT, self._register(), register)
        for name, at in zip(own, self.entries(found, own)):
            if name in guard.reads:
                self.emit(guard.reads[name], at, path.attribute(name))

    def function(self, guard: Any, register: int, path: Path) -> None:
        self.of_type(register, FunctionType)
        for name, part in guard.fields.items():
            offset = layout.function_field(name)
            if offset is None:
                raise UnwrittenError
            if part.value is None:
                self._none(register, offset)
            else:
                self.emit(part, self.slot(register, offset), path.field(name))
        closure, first = layout.function_field("__closure__"), layout.tuple_items()
        if guard.cells and (closure is None or first is None):
            raise UnwrittenError
        cells = self.slot(register, closure) if guard.cells else 0  # type: ignore[arg-type]
        for i, part in guard.cells.items():
            cell = self.slot(cells, first + 8 * i)
            self._cell(cell, part, path.cell(i))

    def distinct(self, guard: Any) -> None:
        """That things which were different are not one."""
        pairs = [(self._known.get(one), self._known.get(other)) for one, other in guard.pairs]
        if len(pairs) > _MANY or any(one is None or other is None for one, other in pairs):
            self.by_python(guard, Path())
            return
        for one, other in pairs:
            self._row(code.DIFFERENT, 0, one, other)  # type: ignore[arg-type]

    def _none(self, register: int, offset: int) -> None:
        """Nothing, as C has it: no address."""
        self.word(register, offset, 0)

    def parts(self, guard: Any, register: int, path: Path) -> None:
        if guard.kind is MethodType:
            self.of_type(register, MethodType)
            for i, piece in enumerate(guard.pieces):
                at = self.slot(register, code.FUNCTION + 8 * i)
                self.emit(piece, at, path.part(guard.split, i))
        elif issubclass(guard.kind, _SETTLED):
            self.identical(register, guard.value)
            for piece, part in zip(guard.pieces, guard.split(guard.value)):
                self.emit(piece, self.constant(part), _path_to(part))
        else:
            raise UnwrittenError

    # -- the end ---------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Have Python look at the rest. Registers filled before are not to be used after this."""
        if self.rest:
            rest, own = self.rest, {guard for guard, _ in self.rest}
            every = values.reached(*own)
            shared = [(one, self._paths[one]) for one in every if one in self._known and one not in own]

            def holds(args: Any, kwargs: Any) -> bool:
                look = Look()
                try:
                    for one, path in shared:  # which rows have looked at, and have to be the same here
                        look.found[one] = path.find((args, kwargs))
                    for guard, path in rest:
                        value = path.find((args, kwargs))
                        if next(guard.changes(value, Fixed(value), look), None) is not None:
                            return False
                except (AttributeError, LookupError, TypeError, ValueError):
                    return False  # what the path goes along is not there any more
                return True

            self._row(code.PYTHON, 0, 0, self._kept(holds))
            self._constants.clear()
            self._known.clear()

    def simplified(self) -> list[list[int]]:
        """The rows so far, without those that look for nothing or twice."""
        return simplified(self.rows, self.kept)


def _is_generic(cls: type) -> bool:
    """Whether objects of a class have their attributes where Python's own code looks for them."""
    for base in cls.__mro__:
        found = base.__dict__.get("__getattribute__")
        if found is not None:
            return found is object.__dict__["__getattribute__"]
    return False
