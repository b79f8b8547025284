"""Where a call of a program finds its inputs: among the arguments, in tensors from outside, in arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import backends
from ...errors import TraceError
from ...tensors.tensor import Tensor
from ...tensors.writing import separate
from ..guards import Guards, values
from ..guards.places import Fixed
from ..guards.values import Change
from ..host import host_dtype, is_on_host
from ..program import Value
from ..tracing.trace import Trace
from .arguments import Arguments

_NUMPY = backends.NUMPY
_TENSOR = values.Fresh(None, "a tensor from outside", "")


class Input:
    """Where a call finds one of the program's inputs."""

    __slots__ = ("value", "argument", "tensor", "place", "array", "view", "is_updated", "device", "spread", "memory")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.argument = -1  # the number of the argument's leaf
        self.tensor: Tensor | None = None  # from outside
        self.place: Any = None  # where a tensor is found that each call replaces
        self.array: Any = None  # an array from outside that no tensor holds
        self.view: Any = None  # what must be copied into it for each call: a view of another layout
        self.is_updated = False
        self.device: str | None = None  # where the program runs; None for the host
        self.memory: Any = _NUMPY  # whose arrays a program of the host's works on
        self.spread: Any = None  # how the array was spread over devices when it was last looked at

    @property
    def holder(self) -> Any:
        """The tensor from outside in which a call finds the input at this moment, if that is where it is."""
        return self.tensor if self.place is None else self.place.get()


def misfit(entry: Input) -> Change | None:
    """What is different about the tensors or the array that hold an input, or None."""
    text = _misfit(entry)
    return None if text is None else Change(_TENSOR, Fixed(entry), None, text)


def _misfit(entry: Input) -> str | None:
    if entry.array is not None:
        array = entry.array if entry.view is None else entry.view
        return None if array.shape == entry.value.shape else f"an array from outside has shape {array.shape} now"
    if entry.tensor is None:
        return None
    raw = entry.tensor._raw
    if not (is_in_memory(entry.memory, raw) if entry.device is None else _is_where_it_was(entry, raw)):
        return f"a tensor from outside is on {entry.tensor.device!r} now"
    if not _has_form_of(raw, entry.value):
        was = f"{entry.value.dtype} of shape {entry.value.shape}"
        return f"a tensor from outside was {was} and is {host_dtype(raw.dtype)} of shape {tuple(raw.shape)}"
    return None


def is_in_memory(memory: Any, raw: Any) -> bool:
    """Whether an array is one of those that a program of the host's works on."""
    if memory is _NUMPY:
        return type(raw) is np.ndarray
    return isinstance(raw, memory.array_types) and is_on_host(memory.device_of(raw))


def _has_form_of(raw: Any, value: Value) -> bool:
    return raw.shape == value.shape and host_dtype(raw.dtype) == value.dtype


def _is_where_it_was(entry: Input, raw: Any) -> bool:
    """Whether a library's array is on the device of the program: how it was spread last is remembered."""
    spread = getattr(raw, "sharding", None)
    if spread is not entry.spread or spread is None:
        if entry.tensor.device != entry.device:  # type: ignore[union-attr]
            return False
        entry.spread = spread
    return True


def gathered(entries: list[Input], arguments: Arguments) -> list[Any] | None:
    """The arrays that a call reads and updates; None if a tensor has been given another one at this moment."""
    inputs = []
    for entry in entries:
        if entry.argument >= 0 or entry.place is not None:
            if entry.argument >= 0:
                array = arguments.array(entry.argument)
            else:
                array = array_of(entry.place.get(), entry.is_updated, entry.memory)
            inputs.append(array if is_readable(array) else backends.of(array).copy(array))
        elif entry.tensor is not None:
            array = array_of(entry.tensor, entry.is_updated, entry.memory)
            if not _has_form_of(array, entry.value):
                return None
            inputs.append(array)
        else:
            if entry.view is not None:
                np.copyto(entry.array, entry.view)
            inputs.append(entry.array)
    return inputs


def gathered_from(library: Any, entries: list[Input], arguments: Arguments) -> list[Any] | None:
    """The same for a library whose arrays cannot be written: those that are updated are nobody else's, and may go."""
    is_sole = sole_holder(library)
    inputs = []
    for entry in entries:
        if entry.argument >= 0:
            inputs.append(arguments.array(entry.argument))
            continue
        tensor = entry.tensor if entry.place is None else entry.place.get()
        if tensor is None:
            inputs.append(entry.array if entry.view is None else entry.view)
            continue
        if entry.is_updated:
            separate(tensor)
            array = tensor._raw if is_sole(tensor) else library.copy(tensor._raw)
        else:
            array = tensor._raw
        if not _has_form_of(array, entry.value):
            return None
        inputs.append(array)
    return inputs


def sole_holder(library: Any) -> Any:
    """`is_sole(tensor)`: whether nobody but a tensor holds its array, and sees it written."""
    if library.writable:
        return lambda tensor: library.is_exclusive(tensor, "_raw")
    from ..xla.ownership import is_sole

    return is_sole


def is_readable(array: Any) -> bool:
    """Whether compiled code can read an array where it lies."""
    if type(array) is not np.ndarray:
        if not array.is_contiguous() or array.is_conj() or array.is_neg():
            return False
        array = backends.of(array).host_array(array)
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def array_of(tensor: Tensor, is_updated: bool, memory: Any = _NUMPY) -> Any:
    """The array behind a tensor from outside: contiguous, and if it will be written, nobody else's."""
    if is_updated:
        if not (memory.is_exclusive(tensor, "_raw") and is_readable(tensor._raw)):
            tensor._raw = memory.copy(tensor._raw)
        separate(tensor)
    elif not is_readable(tensor._raw):
        copy = memory.copy(tensor._raw)
        if not memory.is_exclusive(tensor, "_raw"):
            return copy  # somebody may still write to it, and that is to be seen here
        tensor._raw = copy
    return tensor._raw


def find_inputs(
    made: Any, trace: Trace, arguments: Arguments, references: list[Any], places: dict[int, Any], guards: Guards
) -> list[tuple[Tensor, Any]]:
    """Find out where each input comes from, now that what the trace itself made is gone; the tensors, with their nodes.

    `places` are those of tensors, by identity, that each call replaces.
    """
    holders: dict[Value, Tensor] = {}
    found: dict[Value, Any] = {}
    nodes: list[tuple[Tensor, Any]] = []
    for reference, value, node in references:
        tensor = reference()
        if tensor is None:
            continue
        if id(tensor) in places:
            found[value] = places[id(tensor)]
        else:
            holders[value] = tensor
            nodes.append((tensor, node))
    lifted = {key for key, (_, array) in trace.recorder.arrays.items() if key == id(array)}
    for guard in guards.reached():
        if isinstance(guard, values.Array):
            guard.is_input = id(guard.value) in lifted
            if guard.content is None and not guard.is_input:
                raise TraceError(
                    f"{guard.site}: {made.name} reads the values of `{guard.name}`, an array of {guard.value.nbytes:,} "
                    "bytes. Pass it as an argument, or let operations of Pullback work on it."
                )
    updated = {target for target, _ in made.program.updates}
    arrays = dict(trace.recorder.arrays.values())
    states: list[Any] = [*made.numbers, *made.draws, *made.feeds]
    own = {id(state.array) for state in states}
    trace.recorder.arrays.clear()
    for number, value in enumerate(made.program.inputs):
        entry = Input(value)
        if made.library is None:
            entry.memory = made.memory_backend
        else:
            entry.device = made.device
        if number < len(arguments.dynamic):
            entry.argument = arguments.dynamic[number]
        elif value in found:
            entry.place = found[value]
            entry.is_updated = value in updated
        elif value in holders:
            entry.tensor = holders[value]
            entry.is_updated = value in updated
        else:
            entry.array = arrays.pop(value)
            if type(entry.array) is not np.ndarray:
                made.program.constants[value] = constant_of(made.library, entry.array)  # which nobody can change
                made.inputs.append(entry)
                continue
            if id(entry.array) not in own and entry.array.base is None and _references(entry) == _SOLE:
                made.program.constants[value] = entry.array  # made by the function itself: nobody can change it
            if not is_readable(entry.array) or value in updated:
                if value in made.program.constants:
                    made.program.constants[value] = np.array(entry.array, value.dtype, order="C")
                else:
                    entry.view = entry.array
                entry.array = np.array(entry.array, value.dtype, order="C")
        made.inputs.append(entry)
    return nodes


def constant_of(library: Any, array: Any) -> Any:
    """An array as a program has it that never changes: on the host, where the program is made of the host's kernels."""
    return np.array(library.to_numpy(array)) if library is not None and library.writable else array


def _references(entry: Input) -> int:
    return sys.getrefcount(entry.array)


def _count_alone() -> int:
    """What `_references` gives when nobody else holds the array, which differs between versions of Python."""
    entry = Input(Value((1,), np.float32))
    entry.array = np.empty(1, np.float32)
    return _references(entry) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1  # else counts say nothing


_SOLE = _count_alone()
