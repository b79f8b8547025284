"""One program of a compiled function: what it was traced from, and how a call runs it."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from time import perf_counter
from typing import Any, Callable

import numpy as np

from ... import tree
from ...autodiff import pending
from ...autodiff.base import make
from ...errors import PullbackError
from ...tensors.writing import separate
from ..deferral import signals_later
from ..guards import Guards
from ..guards.places import Attribute, Place
from ..host import HOST
from ..interpreter import run as interpreted
from ..program import Program, Value
from ..tracing.trace import Trace
from .arguments import Arguments
from .building import PROCESSOR, Built, built_on_library, host_arrays
from .inputs import Input, gathered, gathered_from, misfit
from .later import Later, Run


class Specialization:
    """A traced program. `run` is a call of it; `why_not` says what has changed since, if anything."""

    def __init__(self, name: str, program: Program, trace: Trace, guards: Guards) -> None:
        self.name = name
        self.program = program
        self.library = trace.recorder.arrays_of  # whose arrays the program is for; None for memory of the host's
        self.device = trace.recorder.device
        self.memory_backend = trace.recorder.memory  # whose arrays they are, in the host's memory
        self.guards = guards
        self.inputs: list[Input] = []
        self.is_guarded = False  # whether the last output says that all is finite
        self.is_steady = True
        self.outputs: list[Value] = []  # those of the caller, without repetitions
        self.structure: Any = None  # of the result
        self.leaves: list[Any] = []  # of the result: `Output` or `Fixed`
        self.returns_arrays = False
        self.vjp: Any = None  # how gradients go back through a call, if a result needs any
        self.written: list[tuple[int, int]] = []  # (leaf of an argument, output): arguments that were written to
        self.cells: list[tuple[Any, Any, Any]] = []  # (cell, what was in it, number of an output, None or `SAME`)
        self.left: list[Left] = []  # what calls leave at places outside
        self.numbers = trace.numbers
        self.draws = [*trace.finished_draws, *trace.draws.values()]
        self.slots = trace.slots
        self.options = [options.group for options in trace.options]  # of optimizers, by which steps are made
        self.feeds: list[Any] = []  # numbers that are inputs
        self.calls = np.array([0, _UNLIMITED], np.int64)  # how many, and at how many the long way is to be gone
        self.trace_seconds = self.run_seconds = 0.0
        self.schedule: Any = None  # of audits, if there are any
        self.digest: Any = None  # of the program as it was traced
        self.key: Any = None  # of the arguments and modes it is for
        self.fast_path: Any = None
        self.holds: Any = None  # whether all guards do, natively, where there is no short way
        self.renewals = 0
        self.new_inputs: list[str] = []  # names of numbers that have just become inputs
        self.kernels: list[Any] = []
        self.memory: dict[str, int] = {}
        self.built: Any = None
        self.later: Any = None  # runs of which it is not known yet whether all was well
        self._execute: Callable[[list[Any]], list[Any]]  # from inputs to outputs; it updates inputs

    # -- does it fit? ------------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        """What is known of the cells before a call: which of them are empty."""
        return tuple([before is None for _, before, _ in self.cells])

    def why_not(self, given: tuple[Any, Any]) -> Any:
        """What has changed since the trace so that the program would be wrong: a `Change`, or None."""
        with self.turn:  # a run of another thread counts its steps one by one
            if self.holds is None or not self.holds(*given):
                change = next(self.guards.changes(given), None)
                if change is not None:
                    return change
            for entry in self.inputs:
                change = misfit(entry)
                if change is not None:
                    return change
            return None

    # -- how it runs -------------------------------------------------------------------------------

    def interpret(self) -> None:
        """Run instruction by instruction, with the device's kernels: for a program that is run once."""
        if self.library is not None:
            self._execute = self._on_library(built_on_library(self.program, self.library, self.device).interpret)
            return

        def execute(inputs: list[Any], outputs: list[Any]) -> None:
            made, new = interpreted(self.program, inputs, HOST)
            for out, array in zip(outputs, made):
                out[...] = array
            numbers = {entry.value: i for i, entry in enumerate(self.inputs)}
            for (target, _), array in zip(self.program.updates, new):
                inputs[numbers[target]][...] = array

        self._execute = self._on_host(execute)

    def build(self) -> None:
        """Compile."""
        if self.library is None:
            self.built = Built(self.program, PROCESSOR)
            self._execute = self._on_host(self.built.execute)
        else:
            bound = [entry.tensor is not None and entry.place is None for entry in self.inputs]
            self.built = built_on_library(self.program, self.library, self.device, bound, self.is_guarded)
            self._execute = self._on_library(self.built.run)
        self.program, self.kernels, self.memory = self.built.program, self.built.kernels, self.built.memory
        if self.is_guarded and self.library is not None and self.library.writable:
            self.later = Later(self.slots, self.built.executable.reset)

    def _on_host(self, execute: Callable[[list[Any], list[Any]], None]) -> Callable[[list[Any]], list[Any]]:
        """Run on memory: outputs are allocated, updated inputs are written."""
        name, values, memory = self.name, self.program.outputs, self.memory_backend  # not `self`: it holds the function

        def run(inputs: list[Any]) -> list[Any]:
            outputs = [_allocated(name, value, memory) for value in values]
            with np.errstate(all="ignore"):
                execute(*[host_arrays(arrays, memory) for arrays in (inputs, outputs)])
            return outputs

        return run

    def _on_library(self, execute: Callable[[list[Any]], Any]) -> Callable[[list[Any]], list[Any]]:
        """Run on arrays that cannot be written: the tensors that are updated get other ones."""
        numbers = {entry.value: i for i, entry in enumerate(self.inputs)}
        updated = [self.inputs[numbers[target]] for target, _ in self.program.updates]

        def run(inputs: list[Any]) -> list[Any]:
            outputs, updates = execute(inputs)
            for entry, array in zip(updated, updates):
                holder = entry.holder
                holder._raw, holder._origin = array, None
            return outputs

        return run

    def gathered(self, arguments: Arguments) -> list[Any] | None:
        """The arrays that a call reads and updates; None if a tensor has been given another one at this moment."""
        if self.later is not None:
            pending.look()  # runs that were launched may have to be made again first
        if (self.written or self.program.updates) and self._is_written_under_two_names(arguments):
            raise RefusedError
        if self.library is not None:
            return gathered_from(self.library, self.inputs, arguments)
        return gathered(self.inputs, arguments)

    def _is_written_under_two_names(self, arguments: Arguments) -> bool:
        """Whether what is written to is also given as another argument, or both given and found outside."""
        given = [arguments.leaves[i] for i in arguments.dynamic if arguments.is_tensor(i)]
        outside = {id(entry.holder): entry.is_updated for entry in self.inputs if entry.holder is not None}
        written = [arguments.leaves[leaf] for leaf, _ in self.written]
        return (
            any(outside.get(id(tensor), False) for tensor in given)
            or any(id(tensor) in outside for tensor in written)
            or any(sum(other is tensor for other in given) > 1 for tensor in written)
        )

    def run(self, arguments: Arguments, inputs: list[Any]) -> Any:
        """Call the program on what was gathered: its result, as the function would have returned it."""
        quiet = signals_later() if self.changes_something else nullcontext()
        with self.turn, quiet:  # what a handler raises finds a whole step
            return self.run_gathered(arguments, inputs)

    @property
    def changes_something(self) -> bool:
        """Whether a call changes anything outside."""
        return bool(self.program.updates or self.slots or self.cells or self.left or self.written)

    @property
    def turn(self) -> Any:
        """Who has this may run the program: its numbers, places in random streams and memory are for one run."""
        return nullcontext() if self.built is None else self.built.executable.lock

    def run_gathered(
        self,
        arguments: Arguments | None,
        inputs: list[Any],
        again: Callable[[], Any] | None = None,
        stands: bool = False,
    ) -> Any:
        """The same for who has its turn; the arguments are needed where they are written to or need a gradient.

        With `again`, which makes the call operation by operation, nobody waits to see whether all is well. If what is
        outside `stands` as it was for the run before, it is not among the inputs.
        """
        for numbers in (*self.numbers, *self.feeds):
            numbers.refresh()
        states = [(draws.generator, draws.generator.state) for draws in self.draws]
        for draws in self.draws:
            draws.refresh()
        for slot in self.slots:  # before the run: Ctrl-C comes when a native run has ended, and must find both or none
            slot.step += 1
        began = perf_counter()
        try:
            outputs = self.built.executable.repeat(inputs) if stands else self._execute(inputs)
            self.run_seconds = perf_counter() - began
        except BaseException as error:
            if isinstance(error, Exception) or hasattr(error, "changed_nothing"):
                self._take_back(states)
            if isinstance(error, (IndexError, ValueError, OverflowError)) and not isinstance(error, PullbackError):
                raise RefusedError from None  # the function itself says it as it always does
            raise
        residuals = [] if self.vjp is None else self.vjp.kept(inputs, outputs)
        del inputs
        flag = outputs.pop() if self.is_guarded else True
        if again is not None and self.later is not None:
            result = self._concluded(arguments, outputs, residuals)
            self.later.add(Run(flag, result, again, states, self.options))
            return result
        if not self._is_true(flag):
            self._take_back(states)
            if self.later is not None:
                self.built.executable.reset()
            raise RefusedError
        return self._concluded(arguments, outputs, residuals)

    def _is_true(self, flag: Any) -> bool:
        """The value of an array of bool, for which the host may have to wait."""
        return bool(flag if self.later is not None else np.asarray(flag))  # JAX's own `bool` takes twice as long

    def _take_back(self, states: list[tuple[Any, Any]]) -> None:
        """Undo what was done for a run that has changed nothing."""
        for generator, state in states:
            generator.state = state
        for slot in self.slots:
            slot.step -= 1

    def _concluded(self, arguments: Arguments | None, outputs: list[Any], residuals: list[Any]) -> Any:
        """Everything that a call changes beside arrays, and its result."""
        for cell, _, after in self.cells:
            if after is None:
                cell.value = None
            elif after is not SAME:
                cell.value = make(outputs[after], None)
        for leaf, number in self.written:
            tensor = arguments.leaves[leaf]  # type: ignore[union-attr]
            tensor._raw = outputs[number]
            tensor._origin = None
            separate(tensor)
        tracked = {} if self.vjp is None else self.vjp.tensors(arguments, outputs, residuals)

        known: dict[Output, Any] = {}

        def value_of(leaf: Any) -> Any:
            if type(leaf) is Fixed:
                return leaf.value()
            if leaf not in known:
                number = leaf.number
                is_tracked = leaf.is_tracked and number in tracked
                known[leaf] = tracked[number] if is_tracked else make(outputs[number], None)
            return known[leaf]

        for left in self.left:
            left.put([value_of(leaf) for leaf in left.leaves])
        if self.returns_arrays:
            made = [leaf.value() if type(leaf) is Fixed else outputs[leaf.number] for leaf in self.leaves]
        else:
            made = [value_of(leaf) for leaf in self.leaves]
        return tree.unflatten(self.structure, made)


class RefusedError(Exception):
    """A program's own checks failed, and it changed nothing: something is not finite, or an index out of bounds."""


class Fixed:
    """A part of a result that is no tensor: the same at every call, or a copy of what the function made."""

    __slots__ = ("thing", "is_made")

    def __init__(self, thing: Any, is_made: bool = False) -> None:
        self.thing = thing
        self.is_made = is_made

    def value(self) -> Any:
        return copy.deepcopy(self.thing) if self.is_made else self.thing


class Output:
    """A tensor of a result: the number of an output, and whether it needs a gradient. There is one for each tensor,
    also where several have the same output.
    """

    __slots__ = ("number", "is_tracked")

    def __init__(self, number: int, is_tracked: bool) -> None:
        self.number = number
        self.is_tracked = is_tracked


class Left:
    """What calls leave at a place: a tree of outputs, or of things that are the same at every call."""

    __slots__ = ("place", "structure", "leaves")

    def __init__(self, place: Place, structure: Any, leaves: list[Any]) -> None:
        self.place = place
        self.structure = structure
        self.leaves = leaves

    def put(self, values: list[Any]) -> None:
        value = tree.unflatten(self.structure, values)
        if isinstance(self.place, Attribute):
            setattr(self.place.owner, self.place.name, value)  # as the function does it
        else:
            self.place.put(value)


class _Same:
    """Marks a cell whose tensor stays, and is written in place."""


SAME = _Same()
_UNLIMITED = 2**62


def _allocated(name: str, value: Value, memory: Any) -> Any:
    """Memory for an output. If there is none, say for what."""
    try:
        return memory.host_empty(value.shape, value.dtype)
    except MemoryError:
        raise MemoryError(
            f"{value.site + ': ' if value.site else ''}pb.compile cannot get the {value.nbytes:,} bytes of memory for "
            f"a result of {name}, {value.dtype} of shape {value.shape}."
        ) from None
