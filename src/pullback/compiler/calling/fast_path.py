"""The short way for a call like the one before: native code looks at guards and inputs, a few lines do the rest.

The function is compiled from a template for each specialization. It returns NotImplemented, with nothing done, whenever
something is not as it was; the long way then finds out what.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import modes, tree
from ...autodiff import creation, guard
from ...tensors.tensor import Tensor
from ..guards.library import Together
from ..guards.native import object_layout as layout
from ..guards.native.object_access import Record
from ..guards.places import Attribute, Cell, Entry, OfClass, Within
from ..guards.rows import Path, Rows
from ..guards.values import Given
from . import verification
from .arguments import on_device
from .fast_memory import MEMORIES, NUMPY, READ, Memory
from .library_call import ArgumentSource, ArraySource, LibraryCall, Source, TensorSource
from .specialization import Fixed
from .unlocked import REFERENCES_GIVEN, Held

_TEMPLATE = """
def fast_path(args, kwargs):
    try:
        {outputs}
    except {no_memory}:  # the long way says for what
        return NotImplemented
    {turn}:
        {counts}
        {prepare}
        try:
            refused = call({objects})
        except BaseException:  # of a signal's handler: a run is whole, or was not begun
            if {was_run}:
                {conclude_run}
            else:
                {undo_run}
            raise
        if refused is None:
            {conclude}
        else:
            {undo}
    if refused is not None:
        return on_device(function, args, kwargs, device) if refused else NotImplemented
    return {result}
"""


def fast_call(made: Any, function: Any, arguments: Any) -> Any:
    """The short way to call `made`, or None where there is none."""
    if made.library is not None:
        return fast_call_on_library(made, function, arguments)
    executable, folded = made.built.executable, made.built.folded
    memory = MEMORIES[made.device]()
    if memory is None or not executable.is_native:
        return None
    if made.written or made.vjp is not None or not _returns_plainly(made):
        return None
    finite = np.zeros(1, np.bool_)
    first = len(made.inputs) + folded
    bases = np.zeros(first + len(made.program.outputs), np.int64)
    rows = _checks(made, is_call=True)
    for feed in made.feeds:
        if not isinstance(feed.place, OfClass):
            rows.number(_register_of(rows, feed.place), feed.array)
    held = _input_rows(rows, made, arguments, bases, memory)
    if held is None:
        return None
    for number in range(len(made.outputs)):
        value = made.program.outputs[number]
        memory.emit(rows, rows.given(2 + number), value.dtype, value.shape, False, 0, first + number)
    if made.is_guarded:
        bases[first + len(made.outputs)] = finite.ctypes.data
    program, run = executable.native_program
    record = Record(
        rows.simplified(), rows.registers, bases.ctypes.data, program, run, finite.ctypes.data if made.is_guarded else 0
    )
    names: dict[str, Any] = {
        "kept": (rows.kept, bases, finite, record), "Tensor": Tensor, "function": function,
        "on_device": on_device, "device": made.device, "executable": executable, "ran": record.ran, "finite": finite,
    }  # fmt: skip
    if executable.keeps_lock:
        names["call"] = record.call()
    else:
        names["call"] = held.call(executable, record, bases, finite if made.is_guarded else None)
    outputs = []
    for number in range(len(made.outputs)):
        outputs.append(f"o{number} = {memory.new(names, number, made.program.outputs[number])}")
    counts, prepare, undo, conclude = _surroundings(made, names)
    result = _result(made, conclude, names)
    is_shared = made.numbers or made.draws or made.slots or not executable.keeps_lock
    source = _TEMPLATE.format(
        turn="with executable.lock" if is_shared else "if True",
        counts="\n        ".join(counts) or "pass",
        prepare="\n        ".join(prepare) or "pass",
        outputs="\n        ".join(outputs) or "pass",
        no_memory=memory.error,
        objects=", ".join(["args", "kwargs", *(f"o{number}" for number in range(len(made.outputs)))]),
        was_run="ran[0]" if executable.keeps_lock or not made.is_guarded else "ran[0] and finite[0]",
        undo="\n            ".join(undo) or "pass",
        undo_run="\n                ".join(undo) or "pass",
        conclude="\n            ".join(conclude) or "pass",
        conclude_run="\n                ".join(conclude) or "pass",
        result=result,
    )
    exec(compile(source, "<pullback>", "exec"), names)  # made of numbers alone
    return names.pop("fast_path")  # else the function and its names would hold each other


def fast_call_on_library(made: Any, function: Any, arguments: Any) -> Any:
    """The same for a program on a library's devices: native code looks at guards, Python at the arrays."""
    if not layout.is_possible() or made.written or made.vjp is not None:
        return None
    rows = _checks(made, is_call=True)
    given = _argument_registers(rows, made, arguments)
    sources: list[Source] = []
    for entry in made.inputs:
        if entry.argument >= 0:
            if entry.argument not in given:
                return None
            _, path, is_tensor = given[entry.argument]
            sources.append(ArgumentSource(entry, path, is_tensor, arguments.array(entry.argument)))
        elif entry.place is not None:
            _array_of_tensor(rows, _register_of(rows, entry.place))
            sources.append(TensorSource(entry, entry.place.get))
        elif entry.tensor is not None:
            sources.append(TensorSource(entry, None))
        else:
            sources.append(ArraySource(entry))
    record = Record(rows.simplified(), rows.registers)
    return LibraryCall(made, function, record.check(), sources, (rows.kept, record))


def fast_check(made: Any) -> Any:
    """`holds(args, kwargs)`: whether all guards hold, natively; None where that is not possible."""
    if not layout.is_possible():
        return None
    rows = _checks(made, is_call=False)
    record = Record(rows.simplified(), rows.registers)
    check, kept = record.check(), (rows.kept, record)
    return lambda args, kwargs, kept=kept: check(args, kwargs) is None


def _checks(made: Any, is_call: bool) -> Rows:
    """Rows for everything that a program depends on, but for the inputs. Calls are counted, and look at steps later."""
    rows = Rows()
    rows.inputs = {id(entry.tensor) for entry in made.inputs if entry.tensor is not None}
    if is_call:
        rows.count(made.calls)
    for variable in (modes._mode, guard._guard_mode, verification._verifying):
        rows.context(variable)
    rows.identical(rows.entry(rows.constant(vars(creation)), "_default_dtype"), creation._default_dtype)
    whole = made.guards.arguments
    for number, part in enumerate(whole.items):
        rows.emit(part, rows.given(number), Path().item(number))
    for place, one in made.guards.roots:
        if not (is_call and isinstance(one, Together)):
            rows.root(place, one)
    rows.finish()
    return rows


def _input_rows(rows: Rows, made: Any, arguments: Any, bases: Any, memory: Memory) -> Held | None:
    """Rows that find the inputs' memory; None if an argument is in a container that native code cannot read."""
    held = Held(made)
    is_held = not made.built.executable.keeps_lock
    given = _argument_registers(rows, made, arguments)
    for number, entry in enumerate(made.inputs):
        form = entry.value.dtype, entry.value.shape
        is_written, references = entry.is_updated, int(entry.is_updated)
        if entry.argument >= 0 and arguments.is_number(entry.argument):
            room = np.zeros((), np.float64)
            bases[number] = room.ctypes.data
            rows.number(_number_register(rows, made, arguments, entry.argument), room)
        elif entry.argument >= 0:
            if entry.argument not in given:
                return None
            register, path, is_tensor = given[entry.argument]
            if is_held:
                register = rows.given(held.argument(path, is_tensor))
            (memory if is_tensor else NUMPY).emit(rows, register, *form, is_written, 0, number)
        elif entry.place is not None:
            register = _array_of_tensor(rows, _register_of(rows, entry.place))
            if is_held:
                register = rows.given(held.found(entry.place.get))
            references = references and (REFERENCES_GIVEN if is_held else 1)
            memory.emit(rows, register, *form, is_written, references, number)
        elif entry.tensor is not None:
            rows.kept.append(entry.tensor)
            if is_held:
                register, references = rows.given(held.tensor(entry.tensor)), references and REFERENCES_GIVEN
            else:
                register = rows.at(layout.slot_address(entry.tensor, "_raw"))
            memory.emit(rows, register, *form, is_written, references, number)
        else:
            _rows_of_array(rows, entry, number, bases)
    return held


def _rows_of_array(rows: Rows, entry: Any, number: int, bases: Any) -> None:
    bases[number] = entry.array.ctypes.data
    array = entry.array if entry.view is None else entry.view
    if array.flags.owndata and array.base is None:  # else nobody can give it other memory
        flags, base = (READ, number) if entry.view is None else (layout.ALIGNED, -1)
        rows.array(rows.constant(array), entry.value.dtype, entry.value.shape, flags, 0, base)


def _number_register(rows: Rows, made: Any, arguments: Any, leaf: int) -> int:
    """A number among the arguments: given by position or by name."""
    args, kwargs = made.guards.arguments.items
    path = arguments.structure._paths()[leaf]
    if path.startswith("[0]"):
        return rows.items(rows.given(0), tuple, len(args.items), (int(path[4:-1]),))[0]
    registers = rows.entries(rows.given(1), kwargs.keys)
    return registers[[f"[1][{key!r}]" for key in kwargs.keys].index(path)]


def _register_of(rows: Rows, place: Any) -> int:
    if isinstance(place, Attribute):
        return rows.attribute(rows.constant(place.owner), place.name)
    if isinstance(place, Entry):
        return rows.entry(rows.constant(place.holder), place.key)
    if isinstance(place, Within):
        outer, value = _register_of(rows, place.outer), place.outer.get()
        if isinstance(value, dict):
            return rows.entry(outer, place.key)
        return rows.items(outer, type(value), len(value), (place.key,))[0]
    assert isinstance(place, Cell)
    return rows.slot(rows.constant(place.cell), object.__basicsize__)


def _array_of_tensor(rows: Rows, register: int) -> int:
    """The array of an untracked tensor that is in a register."""
    rows.of_type(register, Tensor)
    rows.identical(rows.slot(register, layout.offset_of(Tensor, "_node")), None)
    return rows.slot(register, layout.offset_of(Tensor, "_raw"))


def _argument_registers(rows: Rows, made: Any, arguments: Any) -> dict[int, tuple[int, Path, bool]]:
    """The arrays of dynamic arguments, how to find these, and whether they are tensors', by their leaf's number, as far
    as native code can.
    """
    found: dict[int, tuple[int, Path, bool]] = {}
    objects: dict[int, int] = {}
    by_path = {path: i for i, path in enumerate(arguments.structure._paths())}
    parts = enumerate(made.guards.arguments.items)
    waiting = [(part, rows.given(number), f"[{number}]", Path().item(number)) for number, part in parts]
    while waiting:
        part, register, written, path = waiting.pop()
        if isinstance(part, Given):
            i = by_path.get(written)
            if i is not None:
                objects[i] = register
                is_tensor = part.form[0] is Tensor
                found[i] = (_array_of_tensor(rows, register) if is_tensor else register), path, is_tensor
        elif any(isinstance(one, Given) for one in made.guards.reached(part)):
            waiting += _parts_of_argument(rows, part, register, written, path)
    rows.different([register for i, register in objects.items() if arguments.first_of(i) == i])
    for i, register in objects.items():
        if arguments.first_of(i) != i:
            rows.identical_to(register, objects[arguments.first_of(i)])
    return found


def _parts_of_argument(
    rows: Rows, part: Any, register: int, written: str, path: Path
) -> list[tuple[Any, int, str, Path]]:
    """What is in a container: guards, registers, and paths as trees write them and as Python goes along them."""
    kind = getattr(part, "kind", None)
    if kind is dict:
        entries = zip(part.keys, part.items, rows.entries(register, part.keys))
        return [(item, at, f"{written}[{key!r}]", path.item(key)) for key, item, at in entries]
    if kind is list or kind is tuple:
        items = enumerate(zip(part.items, rows.items(register, kind, len(part.items))))
        return [(item, at, f"{written}[{i}]", path.item(i)) for i, (item, at) in items]
    if kind is not None and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        fields = enumerate(zip(kind._fields, part.items, rows.items(register, kind, len(part.items))))
        return [(item, at, f"{written}.{name}", path.item(i)) for i, (name, item, at) in fields]
    if hasattr(kind, "__dataclass_fields__"):
        return [
            (item, rows.attribute(register, name), f"{written}.{name}", path.attribute(name))
            for name, item in part.reads.items()
        ]
    return []


def _returns_plainly(made: Any) -> bool:
    """Whether the result is a tree of tensors, and single ones are left elsewhere."""
    return not made.returns_arrays and all(len(left.leaves) == 1 for left in made.left)


def _result(made: Any, conclude: list[str], names: dict[str, Any]) -> str:
    known: dict[int, str] = {}  # what is there twice is one thing

    def made_of(leaf: Any, name: str) -> str:
        if type(leaf) is Fixed and leaf.is_made:
            names[f"{name}_made"] = leaf.value
            conclude.append(f"{name} = {name}_made()")
        elif type(leaf) is Fixed:
            names[name] = leaf.thing
        elif id(leaf) in known:
            return known[id(leaf)]
        else:  # nobody outside asks for a gradient
            conclude.append(f"{name} = Tensor(); {name}._raw = o{leaf.number}; {name}._node = None")
            known[id(leaf)] = name
        return name

    for number, left in enumerate(made.left):
        names[f"left{number}"] = left
        conclude.append(f"left{number}.put([{made_of(left.leaves[0], f'l{number}')}])")
    parts = [made_of(leaf, f"t{i}") for i, leaf in enumerate(made.leaves)]

    def container(kind: Any, data: Any, children: list[str]) -> str:
        inside = ", ".join(children)
        if kind is tree._LIST:
            return f"[{inside}]"
        if kind is tree._TUPLE:
            return f"({inside}{',' if children else ''})"
        number = len(names)
        if kind is tree._DICT and data.kind is dict:
            names.update({f"key{number}_{i}": key for i, key in enumerate(data.insertion)})
            of_key = dict(zip(data.ordered, children))
            return "{" + ", ".join(f"key{number}_{i}: {of_key[key]}" for i, key in enumerate(data.insertion)) + "}"
        names[f"make{number}"], names[f"data{number}"] = kind.make, data
        return f"make{number}([{inside}], data{number})"

    return str(made.structure._built(parts, container))


def _surroundings(made: Any, names: dict[str, Any]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Lines that look at counts of steps, prepare a call, undo that, and conclude a call."""
    counts: list[str] = []
    prepare: list[str] = []
    undo: list[str] = []
    conclude: list[str] = []
    for number, entry in enumerate(made.inputs):
        if entry.view is not None:
            names["copyto"], names[f"copy{number}"], names[f"view{number}"] = np.copyto, entry.array, entry.view
            prepare.append(f"copyto(copy{number}, view{number})")
    for number, numbers in enumerate(made.numbers):
        names[f"refresh{number}"] = numbers.refresh
        prepare.append(f"refresh{number}()")
        for j, slot in enumerate(numbers.slots):
            names[f"stepping{number}_{j}"] = slot
    for number, feed in enumerate(made.feeds):
        if isinstance(feed.place, OfClass):  # all others natively
            names[f"feed{number}"] = feed.refresh
            prepare.append(f"feed{number}()")
    for number, draws in enumerate(made.draws):
        names[f"draws{number}"] = draws
        prepare.append(f"state{number} = draws{number}.generator.state; draws{number}.refresh()")
        undo.append(f"draws{number}.generator.state = state{number}")
    for number, (cell, _, after) in enumerate(made.cells):
        if after is None:
            names[f"cell{number}"] = cell
            conclude.append(f"cell{number}._value = None")
        elif type(after) is int:
            names[f"cell{number}"] = cell
            conclude.append(f"g = Tensor(); g._raw = o{after}; g._node = None; cell{number}._value = g")
    for number, numbers in enumerate(made.numbers):  # before the run: see `Specialization._run`
        steps = [f"stepping{number}_{j}.step" for j in range(len(numbers.slots))]
        if not steps:
            continue
        if len(steps) > 1:
            counts.append(f"if not ({' == '.join(steps)}): return NotImplemented")
        if len({id(slot) for slot in made.slots}) == len(made.slots):
            prepare.append(f"before{number} = {steps[0]}; {' = '.join(steps)} = before{number} + 1")
            undo.append(f"{' = '.join(steps)} = before{number}")
        else:
            prepare += [f"{step} += 1" for step in steps]
            undo += [f"{step} -= 1" for step in steps]
    return counts, prepare, undo, conclude
