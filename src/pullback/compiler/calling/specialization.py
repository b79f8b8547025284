"""One program of a compiled function: what it was traced from, and how a call runs it."""

from __future__ import annotations

import sys
import weakref
from contextlib import nullcontext
from typing import Any, Callable

import numpy as np

from ... import backends, tree
from ...autodiff.forward import Dual
from ...autodiff.graph import GradCell, Leaf
from ...errors import TraceError
from ...nn.module import Module
from ...tensor.core import Tensor, make
from ...tensor.writing import separate
from ..interpreter import run as interpreted
from ..program import Program, Value
from ..tracing.state import HookWatch
from ..tracing.symbol import Symbol
from ..tracing.trace import Trace
from .arguments import Arguments
from .checks import guarded
from .differentiation import Pulled
from .inputs import Input, array_of, find_inputs, misfit
from .refusing import chance, refuse_caught, refuse_chance, refuse_result
from .watching import Assigned, Watched, watched

_NUMPY = backends.NUMPY


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
        self.assigned = Assigned([])
        self.watched: list[Watched] = []  # what the function found under names outside of it
        self.groups = trace.groups
        self.attributes = trace.attributes
        self.hooks = HookWatch([])
        self.optimizers = list(trace.optimizers.values())
        self.nodes: list[tuple[Tensor, Any]] = []  # tensors from outside, with what says whether they need a gradient
        self.quick: Any = None
        self.kernels: list[Any] = []
        self.memory: dict[str, int] = {}
        self.built: Any = None
        self._execute: Callable[[list[Any], list[Any]], None]

    # -- does it fit? ------------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        """What is known of the cells before a call: which of them are empty."""
        return tuple([before is None for _, before, _ in self.cells])

    def why_not(self) -> str | None:
        """What has changed since the trace so that the program would be wrong, or None."""
        with self.turn:  # a run of another thread counts its steps one by one
            return self._change()

    def _change(self) -> str | None:
        for module, training in self.modules:
            if module.training is not training:
                return f"{type(module).__name__} is in {'training' if module.training else 'evaluation'} mode now"
        watches: list[Any] = [*self.groups, *self.optimizers, *self.numbers, *self.attributes, self.hooks]
        watches += [*self.watched, self.assigned]
        for watch in watches:
            reason = watch.changed()
            if reason is not None:
                return reason
        for tensor, node in self.nodes:
            if tensor._node is not node:
                return _need_of_gradient(tensor, node)
        for cell, before, _ in self.cells:
            if (cell.value is None) is not (before is None):
                return f"a variable's `.grad` {'is gone' if cell.value is None else 'is there now'}"
            if before is not None and cell.value is not before and not self._is_replaced(cell):
                return "a variable's `.grad` is another tensor"
        for entry in self.inputs:
            reason = misfit(entry)
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
        self.program, self.kernels, self.memory = self.built.program, self.built.kernels, self.built.memory
        self._execute = self.built.execute

    def gathered(self, arguments: Arguments) -> list[Any] | None:
        """The arrays that a call reads and updates; None if a tensor has been given another one at this moment."""
        if (self.written or self.program.updates) and self._is_written_under_two_names(arguments):
            raise RefusedError
        inputs = []
        for entry in self.inputs:
            if entry.argument >= 0:
                array = arguments.array(entry.argument)
                is_plain = array.flags.c_contiguous and array.flags.aligned
                inputs.append(array if is_plain else np.array(array, order="C"))
            elif entry.tensors:
                array = array_of(entry)
                if array.shape != entry.value.shape or array.dtype != entry.value.dtype:
                    return None
                inputs.append(array)
            else:
                if entry.view is not None:
                    np.copyto(entry.array, entry.view)
                inputs.append(entry.array)
        return inputs

    def _is_written_under_two_names(self, arguments: Arguments) -> bool:
        """Whether what is written to is also given as another argument, or both given and found outside."""
        given = [arguments.leaves[i] for i in arguments.dynamic if isinstance(arguments.leaves[i], Tensor)]
        outside = {id(tensor): entry.is_updated for entry in self.inputs for tensor in entry.tensors}
        written = [arguments.leaves[leaf] for leaf, _ in self.written]
        return (
            any(outside.get(id(tensor), False) for tensor in given)
            or any(id(tensor) in outside for tensor in written)
            or any(sum(other is tensor for other in given) > 1 for tensor in written)
        )

    def run(self, arguments: Arguments, inputs: list[Any]) -> Any:
        """Call the program on what was gathered: its result, as the function would have returned it."""
        with self.turn:
            return self._run(arguments, inputs)

    @property
    def turn(self) -> Any:
        """Who has this may run the program: its numbers, places in random streams and memory are for one run."""
        return nullcontext() if self.built is None else self.built.executable.lock

    def _run(self, arguments: Arguments, inputs: list[Any]) -> Any:
        outputs = [_allocated(self.name, value) for value in self.program.outputs]
        for numbers in self.numbers:
            numbers.refresh()
        states = [(draws.generator, draws.generator.state) for draws in self.draws]
        for draws in self.draws:
            draws.refresh()
        for slot in self.slots:  # before the run: Ctrl-C comes when a native run has ended, and must find both or none
            slot.step += 1
        try:
            with np.errstate(all="ignore"):
                self._execute(inputs, outputs)
        except BaseException as error:
            if isinstance(error, Exception) or hasattr(error, "changed_nothing"):
                self._take_back(states)
            if isinstance(error, IndexError):
                raise RefusedError from None  # the function itself says it as it always does
            raise
        residuals = [] if self.pulled is None else self.pulled.kept(inputs, outputs)
        del inputs
        if self.is_guarded and not outputs.pop():
            self._take_back(states)
            raise RefusedError
        return self._concluded(arguments, outputs, residuals)

    def _take_back(self, states: list[tuple[Any, Any]]) -> None:
        """Undo what was done for a run that has changed nothing."""
        for generator, state in states:
            generator.state = state
        for slot in self.slots:
            slot.step -= 1

    def _concluded(self, arguments: Arguments, outputs: list[Any], residuals: list[Any]) -> Any:
        """Everything that a call changes beside arrays, and its result."""
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


def _need_of_gradient(tensor: Tensor, before: Any) -> str:
    if before is None or tensor._node is None:
        requires = "requires a" if before is None else "requires no"
        return f"a tensor of shape {tensor.shape} from outside {requires} gradient now"
    return f"a tensor of shape {tensor.shape} from outside is another variable now"


def _allocated(name: str, value: Value) -> Any:
    """Memory for an output. If there is none, say for what."""
    try:
        return np.empty(value.shape, value.dtype)
    except MemoryError:
        raise MemoryError(
            f"{value.site + ': ' if value.site else ''}pb.compile cannot get the {value.nbytes:,} bytes of memory for "
            f"a result of {name}, {value.dtype} of shape {value.shape}."
        ) from None


# -- tracing -------------------------------------------------------------------------------------


def specialize(name: str, function: Callable[..., Any], arguments: Arguments) -> Specialization:
    """Trace `function` for these arguments."""
    trace = Trace()
    given_args, given_kwargs, given = arguments.on_symbols(trace.recorder)
    names, generators = watched(function, given_args)
    before = chance(generators)
    try:
        result = trace.run(function, given_args, given_kwargs)
        refuse_chance(function, name, generators, before)
        refuse_caught(name, trace)
        container = None if isinstance(result, Tensor) else type(result)
        leaves, structure = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor))
        outputs: dict[Value, int] = {}
        tracked: dict[int, Any] = {}
        numbers = [_output(trace, leaf, outputs, tracked) for leaf in leaves]
        for leaf in numbers:
            if type(leaf) is Fixed:
                refuse_result(function, name, leaf.thing)
        written = [
            (arguments.dynamic[i], outputs.setdefault(tensor._data.value, len(outputs)))
            for i, (value, tensor) in enumerate(given)
            if tensor._data.value is not value
        ]
        _refuse_written_arrays(name, arguments, written)
        created: list[tuple[Any, Any, Any]] = []
        trace.cell(GradCell())  # nobody else holds this one: the others are compared with it
        for held in trace.cells.values():
            cell, before, after = held.cell, held.before, held.value
            if after is before:
                created.append((cell, before, _SAME))
            elif after is None:
                created.append((cell, before, None))
            else:
                number = outputs.setdefault(trace.resolve(after)._data.value, len(outputs))
                created.append((cell, before, number))
        program = trace.finish([value for value, _ in given], list(outputs))
        pulled = Pulled.traced(name, trace, program, tracked, given, arguments) if tracked else None
    finally:
        trace.close()
    trace.settle()
    made = Specialization(name, program, trace)
    made.watched = names
    modules = [module for module, _ in made.modules]
    modules += [thing for thing in (*(name.seen for name in names), *arguments.leaves) if isinstance(thing, Module)]
    made.assigned = Assigned(modules)
    made.outputs, made.structure, made.leaves, made.written = list(outputs), structure, numbers, written
    made.pulled = pulled
    made.container = container
    known = {*program.inputs, *(value for step in program.instructions for value in step.results)}
    bounds = [bound for bound in trace.recorder.bounds if bound[0] in known]  # not those of the walk outside
    if trace.checks or bounds:
        made.program = guarded(program, trace.checks, bounds)
        made.is_guarded = True
    given_arrays = any(isinstance(leaf, np.ndarray) for leaf in arguments.leaves)
    given_tensors = any(isinstance(leaf, Tensor) for leaf in arguments.leaves)
    made.returns_arrays = given_arrays and not given_tensors and not trace.held
    references = [(weakref.ref(held.tensor), held.value, held.node) for held in trace.held.values()]
    made.nodes = list(trace.nodes.values())
    trace.held.clear()
    trace.cells.clear()
    del result, leaves, given, given_args, given_kwargs, cell, before, after, held
    tracked.clear()
    find_inputs(made, trace, arguments, references)
    references.clear()
    made.cells = _without_own_cells(created)
    made.is_steady = not any(before is None and type(after) is int for _, before, after in made.cells)
    made.hooks = HookWatch([node for _, node in made.nodes if isinstance(node, Leaf)])
    return made


def _without_own_cells(cells: list[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """The cells that somebody outside holds, not those of variables that the function made. The last is a probe."""
    probe = cells.pop()
    alone = sys.getrefcount(probe[0])
    return [entry for entry in cells if sys.getrefcount(entry[0]) > alone]


def _refuse_written_arrays(name: str, arguments: Arguments, written: list[tuple[int, int]]) -> None:
    for leaf, _ in written:
        if not isinstance(arguments.leaves[leaf], Tensor):
            raise TraceError(
                f"{name} writes to argument {arguments.name_of(leaf)}, which is a NumPy array; a compiled function "
                "sees a tensor in its place, and the write would not reach it. Write to a copy, or pass a tensor."
            )


def _output(trace: Trace, leaf: Any, outputs: dict[Value, int], tracked: dict[int, Any]) -> Any:
    if not isinstance(leaf, Tensor):
        if isinstance(leaf, Symbol):
            return outputs.setdefault(leaf.value, len(outputs))
        return Fixed(leaf)
    if isinstance(leaf, Dual):  # its tangent comes from outside, and would be lost
        raise RefusedError
    leaf = trace.resolve(leaf)
    number = outputs.setdefault(leaf._data.value, len(outputs))
    if leaf._node is not None and leaf._node.saved is not None:  # else it was walked already
        tracked[number] = leaf._node
    return number
