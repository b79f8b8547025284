"""The short way for a call like the one before: arrays are looked at by native code, and all else by a few lines.

The function is compiled from a template for each specialization. It returns NotImplemented, with nothing done, whenever
something is not as it was; the long way then finds out what.
"""

from __future__ import annotations

import sys
from types import CellType
from typing import Any

import numpy as np

from ... import modes
from ...autodiff import guard
from ...autodiff.hooks import changes as hook_changes
from ...functions import creation
from ...nn.module import assignments
from ...tensor.core import Tensor, make
from ..llvm.runtime import object_access as access
from .verification import is_verifying
from .watching import found_in, has_items

_READ = access.CONTIGUOUS | access.ALIGNED
_WRITE = _READ | access.OWNS_DATA | access.WRITEABLE

_TEMPLATE = """
def quick(args, kwargs):
    if kwargs or mode() is not expected_mode or guard_mode() != expected_guard or is_verifying():
        return NotImplemented
    if creation._default_dtype is not expected_dtype or len(args) != {count}:
        return NotImplemented
    {unpack}
    if not ({conditions}):
        return NotImplemented
    try:
        {outputs}
    except MemoryError:  # the long way says for what
        return NotImplemented
    {turn}:
        {prepare}
        refused = call({objects})
        if refused is None:
            {conclude}
        else:
            {undo}
    if refused is not None:
        return function(*args) if refused else NotImplemented
    return {result}
"""


def quick_call(made: Any, function: Any, arguments: Any) -> Any:
    """The short way to call `made`, or None where there is none."""
    executable, folded = made.built.executable, made.built.folded
    if not access.is_possible() or not executable.is_native:
        return None
    leaves, kinds = arguments.leaves, arguments.kinds
    if len(arguments.structure._paths()) != len(leaves) or not _is_flat(arguments):
        return None
    if made.written or made.pulled is not None:
        return None
    if not _returns_plainly(made):
        return None
    names: dict[str, Any] = {}
    conditions: list[str] = []
    for i, leaf in enumerate(leaves):
        if i in arguments.dynamic:
            names[f"type{i}"] = kinds[i][0]
            conditions.append(f"type(a{i}) is type{i}" + (f" and a{i}._node is None" if kinds[i][0] is Tensor else ""))
        else:
            names[f"fixed{i}"] = leaf
            conditions.append(f"a{i} is fixed{i}")
    for number, (_, container, items) in enumerate(made.assigned.containers):
        names["has_items"], names[f"container{number}"], names[f"items{number}"] = has_items, container, items
        conditions.append(f"has_items(container{number}, items{number})")
    if not made.assigned.is_empty:
        names["assignments"], names["assigned"] = assignments, made.assigned
        conditions.append("assignments[0] == assigned.count")
    for number, watch in enumerate(made.watched):
        if type(watch.place) is not CellType:
            names[f"place{number}"], names[f"found{number}"] = watch.place, watch.seen
            inline = f"place{number}.get({watch.key!r}, place{number})" if type(watch.place) is dict else ""
            conditions.append(f"{inline or f'found_in(place{number}, {watch.key!r})'} is found{number}")
    for number, watch in enumerate(made.groups):
        names[f"group{number}"] = watch.group
        for j, (option, seen) in enumerate(watch.options.seen.items()):
            names[f"seen{number}_{j}"] = seen
            conditions.append(f"group{number}[{option!r}] == seen{number}_{j}")
    if made.hooks.nodes:
        names["hook_changes"], names["hooks"] = hook_changes, made.hooks
        conditions.append("hook_changes[0] == hooks.count")
    for number, watch in enumerate(made.attributes):
        names[f"thing{number}"], names[f"value{number}"] = watch.thing, watch.seen
        conditions.append(f"thing{number}.{watch.name} == value{number}")
    for number, watch in enumerate(made.optimizers):
        names[f"optimizer{number}"] = watch.optimizer
        conditions.append(f"len(optimizer{number}._slots) == {len(watch.sizes)}")
    for number, numbers in enumerate(made.numbers):
        steps = []
        for j, slot in enumerate(numbers.slots):
            names[f"stepping{number}_{j}"] = slot
            steps.append(f"stepping{number}_{j}.step")
        if len(steps) > 1:
            conditions.append(" == ".join(steps))
    for number, (cell, before, after) in enumerate(made.cells):
        if after is None or type(after) is int:
            names[f"cell{number}"] = cell
            conditions.append(f"cell{number}.value is {'' if before is None else 'not '}None")
    rows, kept, held = _rows(made, arguments)
    finite = np.zeros(1, np.bool_)
    names["kept"] = kept, finite
    bases = np.zeros(len(made.inputs) + folded + len(made.program.outputs), np.int64)
    for number, entry in enumerate(made.inputs):
        if entry.array is not None:
            bases[number] = entry.array.ctypes.data
    first = len(made.inputs) + folded
    for number in range(len(made.outputs)):
        value = made.program.outputs[number]
        rows.append(_row(access.GIVEN, len(arguments.dynamic) + number, value, _READ, 0, first + number, kept))
    if made.is_guarded:
        bases[first + len(made.outputs)] = finite.ctypes.data
    program, run = executable.native_program
    record = access.Record(rows, bases.ctypes.data, program, run, finite.ctypes.data if made.is_guarded else 0)
    kept += [bases, record]
    prepare, undo, conclude = _surroundings(made, names)
    objects = [f"a{i}._data" if kinds[i][0] is Tensor else f"a{i}" for i in arguments.dynamic]
    objects += [f"o{number}" for number in range(len(made.outputs))]
    if executable.keeps_lock:
        names["call"] = record.call()
    else:
        names["call"] = _with_lock_released(held, executable, record, bases, finite if made.is_guarded else None)
    outputs = []
    for number in range(len(made.outputs)):
        value = made.program.outputs[number]
        names[f"shape{number}"], names[f"dtype{number}"] = value.shape, value.dtype
        outputs.append(f"o{number} = empty(shape{number}, dtype{number})")
    result = _result(made, conclude)
    is_shared = made.numbers or made.draws or made.slots or not executable.keeps_lock
    source = _TEMPLATE.format(
        turn="with executable.lock" if is_shared else "if True",
        count=len(leaves),
        unpack=f"{', '.join(f'a{i}' for i in range(len(leaves)))}, = args" if leaves else "pass",
        conditions=" and ".join(conditions) or "True",
        prepare="\n        ".join(prepare) or "pass",
        outputs="\n        ".join(outputs) or "pass",
        objects=", ".join(objects),
        undo="\n            ".join(undo) or "pass",
        conclude="\n            ".join(conclude) or "pass",
        result=result,
    )
    names |= {
        "mode": modes.current, "expected_mode": modes.current(), "guard_mode": guard._guard_mode.get,
        "expected_guard": guard._guard_mode.get(), "is_verifying": is_verifying, "creation": creation,
        "expected_dtype": creation._default_dtype, "empty": np.empty, "Tensor": Tensor, "function": function,
        "found_in": found_in, "executable": executable,
    }  # fmt: skip
    exec(compile(source, "<pullback>", "exec"), names)  # made of the numbers of arguments and options' names alone
    return names.pop("quick")  # else the function and its names would hold each other


def _is_flat(arguments: Any) -> bool:
    """Whether the arguments are leaves, given by position."""
    paths = arguments.structure._paths()
    return paths == [f"[0][{i}]" for i in range(len(paths))]


def _returns_plainly(made: Any) -> bool:
    """Whether the result is one array, or a list or tuple of arrays."""
    if any(type(leaf) is not int for leaf in made.leaves) or made.returns_arrays:
        return False
    paths = made.structure._paths()
    return paths == [""] or (made.container in (tuple, list) and paths == [f"[{i}]" for i in range(len(paths))])


def _result(made: Any, conclude: list[str]) -> str:
    for number in made.leaves:
        conclude.append(f"t{number} = Tensor(); t{number}._data = o{number}; t{number}._node = None")
    parts = [f"t{number}" for number in made.leaves]
    if made.structure._paths() == [""]:
        return parts[0]
    inside = ", ".join(parts)
    return f"[{inside}]" if made.container is list else f"({inside}{',' if parts else ''})"


def _surroundings(made: Any, names: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Lines that prepare a call, undo that, and conclude a call: numbers, generators and counts of steps."""
    prepare, undo, conclude = [], [], []
    for number, entry in enumerate(made.inputs):
        if entry.view is not None:
            names["copyto"], names[f"copy{number}"], names[f"view{number}"] = np.copyto, entry.array, entry.view
            prepare.append(f"copyto(copy{number}, view{number})")
    for number, numbers in enumerate(made.numbers):
        names[f"refresh{number}"] = numbers.refresh
        prepare.append(f"refresh{number}()")
    for number, draws in enumerate(made.draws):
        names[f"draws{number}"] = draws
        prepare.append(f"state{number} = draws{number}.generator.state; draws{number}.refresh()")
        undo.append(f"draws{number}.generator.state = state{number}")
    for number, (cell, _, after) in enumerate(made.cells):
        if after is None:
            names[f"cell{number}"] = cell
            conclude.append(f"cell{number}.value = None")
        elif type(after) is int:
            names[f"cell{number}"] = cell
            conclude.append(f"g = Tensor(); g._data = o{after}; g._node = None; cell{number}.value = g")
    for number, numbers in enumerate(made.numbers):  # before the run: see `Specialization._run`
        if len({id(slot) for slot in made.slots}) == len(made.slots):  # equal counts, as the conditions have seen
            counts = " = ".join(f"stepping{number}_{j}.step" for j in range(len(numbers.slots)))
            prepare.append(f"before{number} = stepping{number}_0.step; {counts} = before{number} + 1")
            undo.append(f"{counts} = before{number}")
        else:
            prepare += [f"stepping{number}_{j}.step += 1" for j in range(len(numbers.slots))]
            undo += [f"stepping{number}_{j}.step -= 1" for j in range(len(numbers.slots))]
    return prepare, undo, conclude


def _row(kind: int, where: int, value: Any, flags: int, references: int, base: int, kept: list[Any]) -> access.Row:
    lengths = np.array(value.shape or (0,), np.int64)
    kept.append(lengths)
    kept.append(value.dtype)
    return access.Row(kind, where, id(value.dtype), len(value.shape), lengths.ctypes.data, flags, references, base)


def _rows(made: Any, arguments: Any) -> tuple[list[access.Row], list[Any], list[Tensor]]:
    """A row for each input, what must stay alive for them, and the tensors whose arrays are given after the outputs.

    While a run lets other threads run, these may give a tensor another array: what is used must be held from before
    it is looked at, and so is given with the call.
    """
    rows: list[access.Row] = []
    kept: list[Any] = []
    held: list[Tensor] = []
    is_held = not made.built.executable.keeps_lock
    for number, entry in enumerate(made.inputs):
        if entry.argument >= 0:
            place = arguments.dynamic.index(entry.argument)
            rows.append(_row(access.GIVEN, place, entry.value, _READ, 0, number, kept))
        elif entry.tensors:
            flags, references = (_WRITE, 1) if entry.is_updated else (_READ, 0)
            slot = access.slot_address(entry.tensors[0], "_data")
            if is_held:
                place = len(arguments.dynamic) + len(made.outputs) + len(held)
                held.append(entry.tensors[0])
                references = references and _REFERENCES_GIVEN
                rows.append(_row(access.GIVEN, place, entry.value, flags, references, number, kept))
            else:
                rows.append(_row(access.HELD, slot, entry.value, flags, references, number, kept))
            for other in entry.tensors[1:]:
                first = id(entry.tensors[0]._data)  # tensors that share an array: looked at the long way if it changes
                rows.append(access.Row(access.SAME, access.slot_address(other, "_data"), first))
                rows.append(access.Row(access.SAME, slot, first))
            kept += entry.tensors
    for cell, before, after in made.cells:
        if after is None or type(after) is int:
            continue  # replaced by each call
        rows.append(access.Row(access.SAME, access.slot_address(cell, "value"), id(before)))
        kept += [cell, before]
    for tensor, node in made.nodes:
        rows.append(access.Row(access.SAME, access.slot_address(tensor, "_node"), id(node)))
        kept += [tensor, node]
    for watch in made.optimizers:
        for slot, buffers in watch.buffers:
            rows.append(access.Row(access.SAME, access.slot_address(slot, "buffers"), id(buffers)))
            kept += [slot, buffers]
    for watch in made.watched:
        if type(watch.place) is CellType:  # of a closure: what is in it stands behind the object's head
            rows.append(access.Row(access.SAME, id(watch.place) + object.__basicsize__, id(watch.seen)))
            kept += [watch.place, watch.seen]
    return rows, kept, held


def _with_lock_released(tensors: list[Tensor], executable: Any, record: Any, bases: Any, finite: Any) -> Any:
    """Gather under Python's lock, run without it: other threads may run, so what is used is held meanwhile."""
    gather, run, pointer = record.gather(), executable.run_native, bases.ctypes.data

    def call(*objects: Any) -> bool | None:
        arrays = [*objects, *[tensor._data for tensor in tensors]]
        if gather(*arrays) is not None:
            return False
        if run(pointer):
            executable.start_threads()
        return None if finite is None or finite[0] else True

    return call


def _references_given() -> int:
    """How often an array is held that a tensor holds and that is given to a function as in `call` above."""
    tensor = make(np.empty(1, np.float32), None)
    arrays = [*(), *[tensor._data for tensor in [tensor]]]
    return sys.getrefcount(*arrays)


_REFERENCES_GIVEN = _references_given()
