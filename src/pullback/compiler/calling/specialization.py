"""One program of a compiled function: what it was traced from, and how a call runs it."""

from __future__ import annotations

import random
import sys
import weakref
from typing import Any, Callable

import numpy as np

from ... import backends, tree
from ...errors import TraceError
from ...tensor.core import Tensor, make
from ...tensor.writing import separate
from ..interpreter import run as interpreted
from ..program import Program, Value
from ..tracing.symbol import Symbol
from ..tracing.trace import Trace
from .arguments import Arguments
from .checks import guarded
from .differentiation import Pulled

_NUMPY = backends.NUMPY


class Input:
    """Where a call finds one of the program's inputs."""

    __slots__ = ("value", "argument", "tensors", "array", "is_updated")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.argument = -1  # the number of the argument's leaf
        self.tensors: list[Tensor] = []  # tensors from outside, which all hold the array
        self.array: Any = None  # an array from outside that no tensor holds
        self.is_updated = False


class Specialization:
    """A traced program. `run` is a call of it; `why_not` says what has changed since, if anything."""

    def __init__(self, name: str, program: Program, trace: Trace) -> None:
        self.name = name
        self.program = program
        self.inputs: list[Input] = []
        self.is_guarded = False  # whether the last output says that all is finite
        self.is_steady = True
        self.outputs: list[Value] = []  # those of the caller, without repetitions
        self.structure: Any = None  # of the result
        self.container: type | None = None  # of the result, where it is no tensor itself
        self.leaves: list[Any] = []  # of the result: numbers of outputs, or `Fixed` things
        self.returns_arrays = False
        self.pulled: Pulled | None = None  # how gradients go back through a call, if a result needs any
        self.written: list[tuple[int, int]] = []  # (leaf of an argument, output): arguments that were written to
        self.cells: list[tuple[Any, Any, Any]] = []  # (cell, what was in it, number of an output, None or `_SAME`)
        self.numbers = trace.numbers
        self.draws = [*trace.finished_draws, *trace.draws.values()]
        self.slots = trace.slots
        self.modules = list(trace.modules.values())
        self.groups = trace.groups
        self.quick: Any = None
        self.kernels: list[Any] = []
        self.memory: dict[str, int] = {}
        self._execute: Callable[[list[Any], list[Any]], None]

    # -- does it fit? ------------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        """What is known of the cells before a call: which of them are empty."""
        return tuple([before is None for _, before, _ in self.cells])

    def why_not(self) -> str | None:
        """What has changed since the trace so that the program would be wrong, or None."""
        for module, training in self.modules:
            if module.training is not training:
                return f"{type(module).__name__} is in {'training' if module.training else 'evaluation'} mode now"
        for group in self.groups:
            reason = group.changed()
            if reason is not None:
                return reason
        for cell, before, _ in self.cells:
            if (cell.value is None) is not (before is None):
                return f"a variable's `.grad` {'is gone' if cell.value is None else 'is there now'}"
            if before is not None and cell.value is not before and not self._is_replaced(cell):
                return "a variable's `.grad` is another tensor"
        for entry in self.inputs:
            reason = _misfit(entry)
            if reason is not None:
                return reason
        return None

    def _is_replaced(self, cell: Any) -> bool:
        return any(c is cell and after is not _SAME for c, _, after in self.cells)

    # -- how it runs -------------------------------------------------------------------------------

    def interpret(self) -> None:
        """Run instruction by instruction, with NumPy's kernels: for a program that is run once."""

        def execute(inputs: list[Any], outputs: list[Any]) -> None:
            made, new = interpreted(self.program, inputs)
            for out, array in zip(outputs, made):
                out[...] = array
            numbers = {entry.value: i for i, entry in enumerate(self.inputs)}
            for (target, _), array in zip(self.program.updates, new):
                inputs[numbers[target]][...] = array

        self._execute = execute

    def build(self) -> None:
        """Compile."""
        from .building import Built

        self.built = Built(self.program)
        self.program, self.kernels, self.memory = self.built.program, self.built.executable.kernels, self.built.memory
        self._execute = self.built.execute

    def run(self, arguments: Arguments) -> Any:
        """Call the program: its result, as the function would have returned it."""
        inputs = []
        for entry in self.inputs:
            if entry.argument >= 0:
                array = arguments.array(entry.argument)
                inputs.append(array if array.flags.c_contiguous else np.array(array, order="C"))
            elif entry.tensors:
                inputs.append(_array_of(entry))
            else:
                inputs.append(entry.array)
        for numbers in self.numbers:
            numbers.refresh()
        states = [(draws.generator, draws.generator.state) for draws in self.draws]
        for draws in self.draws:
            draws.refresh()
        outputs = [np.empty(value.shape, value.dtype) for value in self.program.outputs]
        with np.errstate(all="ignore"):
            self._execute(inputs, outputs)
        residuals = [] if self.pulled is None else self.pulled.kept(inputs, outputs)
        del inputs
        if self.is_guarded and not outputs.pop():
            for generator, state in states:
                generator.state = state
            raise RefusedError
        return self._concluded(arguments, outputs, residuals)

    def _concluded(self, arguments: Arguments, outputs: list[Any], residuals: list[Any]) -> Any:
        """Everything that a call changes beside arrays, and its result."""
        for slot in self.slots:
            slot.step += 1
        for cell, _, after in self.cells:
            if after is None:
                cell.value = None
            elif after is not _SAME:
                cell.value = make(outputs[after], None)
        for leaf, number in self.written:
            tensor = arguments.leaves[leaf]
            tensor._data = outputs[number]
            tensor._origin = None
            separate(tensor)
        tracked = {} if self.pulled is None else self.pulled.tensors(arguments, outputs, residuals)
        made = [
            leaf.thing
            if type(leaf) is Fixed
            else tracked[leaf]
            if leaf in tracked
            else outputs[leaf]
            if self.returns_arrays
            else make(outputs[leaf], None)
            for leaf in self.leaves
        ]
        return tree.unflatten(self.structure, made)


class RefusedError(Exception):
    """A program's own checks failed, and it changed nothing: something is not finite, or an index out of bounds."""


class Fixed:
    """A part of a result that is no array: the same at every call."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class _Same:
    """Marks a cell whose tensor stays, and is written in place."""


_SAME = _Same()


def _misfit(entry: Input) -> str | None:
    if not entry.tensors:
        return None
    first = entry.tensors[0]._data
    if type(first) is not np.ndarray:
        return f"a tensor from outside is on {entry.tensors[0].device!r} now"
    if first.shape != entry.value.shape or first.dtype != entry.value.dtype:
        was = f"{entry.value.dtype} of shape {entry.value.shape}"
        return f"a tensor from outside was {was} and is {first.dtype} of shape {first.shape}"
    if any(tensor._data is not first for tensor in entry.tensors):
        return "tensors from outside that were the same array are not any more"
    return None


def _array_of(entry: Input) -> Any:
    """The array behind a tensor from outside: contiguous, and if it will be written, nobody else's."""
    tensor = entry.tensors[0]
    if entry.is_updated:
        if not (_NUMPY.is_exclusive(tensor, "_data") and tensor._data.flags.c_contiguous):
            tensor._data = _NUMPY.copy(tensor._data)
        separate(tensor)
    elif not tensor._data.flags.c_contiguous:
        copy = _NUMPY.copy(tensor._data)
        for holder in entry.tensors:
            holder._data = copy
    return tensor._data


# -- tracing -------------------------------------------------------------------------------------


def specialize(name: str, function: Callable[..., Any], arguments: Arguments) -> Specialization:
    """Trace `function` for these arguments."""
    trace = Trace()
    given_args, given_kwargs, given = arguments.on_symbols(trace.recorder)
    chance = _chance()
    try:
        result = trace.run(function, given_args, given_kwargs)
        _refuse_chance(name, chance)
        container = None if isinstance(result, Tensor) else type(result)
        leaves, structure = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor))
        outputs: dict[Value, int] = {}
        tracked: dict[int, Any] = {}
        numbers = [_output(trace, leaf, outputs, tracked) for leaf in leaves]
        written = [
            (arguments.dynamic[i], outputs.setdefault(tensor._data.value, len(outputs)))
            for i, (value, tensor) in enumerate(given)
            if tensor._data.value is not value and isinstance(arguments.leaves[arguments.dynamic[i]], Tensor)
        ]
        created: list[tuple[Any, Any, Any]] = []
        for cell, before in trace.cells.values():
            after = cell.value
            if after is before:
                created.append((cell, before, _SAME))
            elif after is None:
                created.append((cell, before, None))
            else:
                number = outputs.setdefault(after._data.value, len(outputs))
                created.append((cell, before, number))
        program = trace.finish([value for value, _ in given], list(outputs))
        pulled = Pulled.traced(name, trace, program, tracked, given, arguments) if tracked else None
    finally:
        trace.restore()
    made = Specialization(name, program, trace)
    made.outputs, made.structure, made.leaves, made.written, made.cells = (
        list(outputs), structure, numbers, written, created
    )  # fmt: skip
    made.pulled = pulled
    made.container = container
    made.is_steady = not any(before is None and type(after) is int for _, before, after in created)
    known = {*program.inputs, *(value for step in program.instructions for value in step.results)}
    bounds = [bound for bound in trace.recorder.bounds if bound[0] in known]  # not those of the walk outside
    if trace.checks or bounds:
        made.program = guarded(program, trace.checks, bounds)
        made.is_guarded = True
    made.returns_arrays = not trace.held and not any(isinstance(leaf, Tensor) for leaf in arguments.leaves)
    references = [(weakref.ref(held.tensor), held.value) for held in trace.held.values()]
    trace.held.clear()
    del result, leaves, given, given_args, given_kwargs
    _find_inputs(made, trace, arguments, references)
    return made


def _output(trace: Trace, leaf: Any, outputs: dict[Value, int], tracked: dict[int, Any]) -> Any:
    if not isinstance(leaf, Tensor):
        if isinstance(leaf, Symbol):
            return outputs.setdefault(leaf.value, len(outputs))
        return Fixed(leaf)
    trace.lift(leaf)
    number = outputs.setdefault(leaf._data.value, len(outputs))
    if leaf._node is not None and leaf._node.saved is not None:  # else it was walked already
        tracked[number] = leaf._node
    return number


def _find_inputs(made: Specialization, trace: Trace, arguments: Arguments, references: list[Any]) -> None:
    """Find out where each input comes from, now that what the trace itself made is gone."""
    holders: dict[Value, list[Tensor]] = {}
    for reference, value in references:
        tensor = reference()
        if tensor is not None:
            holders.setdefault(value, []).append(tensor)
    updated = {target for target, _ in made.program.updates}
    arrays = dict(trace.recorder.arrays.values())
    states: list[Any] = [*made.numbers, *made.draws]
    own = {id(state.array) for state in states}
    trace.recorder.arrays.clear()
    for number, value in enumerate(made.program.inputs):
        entry = Input(value)
        if number < len(arguments.dynamic):
            entry.argument = arguments.dynamic[number]
        elif value in holders:
            entry.tensors = holders[value]
            entry.is_updated = value in updated
        else:
            entry.array = arrays.pop(value)
            if id(entry.array) not in own and entry.array.base is None and _references(entry) == _SOLE:
                made.program.constants[value] = entry.array  # made by the function itself: nobody can change it
            if not entry.array.flags.c_contiguous or value in updated:
                entry.array = np.array(entry.array, order="C")
        made.inputs.append(entry)


def _references(entry: Input) -> int:
    return sys.getrefcount(entry.array)


def _count_alone() -> int:
    """What `_references` gives when nobody else holds the array, which differs between versions of Python."""
    entry = Input(Value((1,), np.float32))
    entry.array = np.empty(1, np.float32)
    return _references(entry) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1  # else counts say nothing


_SOLE = _count_alone()


# -- numbers drawn behind our back ---------------------------------------------------------------


def _chance() -> tuple[Any, Any]:
    state = np.random.get_state(legacy=False)["state"]
    return random.getstate(), (state["key"].tobytes(), state["pos"]) if "pos" in state else repr(state)


def _refuse_chance(name: str, before: tuple[Any, Any]) -> None:
    now = _chance()
    for library, old, new in zip(("random", "numpy.random"), before, now):
        if old != new:
            raise TraceError(
                f"{name} draws random numbers from `{library}` while it is traced, and would get the same ones at "
                "every call. Draw them from `pb.random`, or outside and pass them as an argument."
            )
