"""One step of a loop: its body traced until two traces are alike, for one that stands for all.

What a step does must be what every other one does. Where it is not, or where a step does something that the next one
sees (tensors from outside are written, Python's state changes), `UnrollError` says that the whole function is to be
traced again, with its loops unrolled. Random numbers go on from step to step: each begins where the last one has ended.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ... import modes
from ...autodiff.apply import new_node
from ...autodiff.base import make
from ...autodiff.graph import Node
from ...autodiff.recipe import Recipe
from ...autodiff.sites import user_site
from ...operations import Operation
from ...tensors.tensor import Tensor
from ..iteration import Iteration
from ..program import Instruction, Value
from .python_state import PythonState
from .symbol import Symbol

#: A function of the carry and of slices that gives the next carry and outputs, all of them lists of tensors.
Body = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


class UnrollError(BaseException):
    """A loop cannot be one instruction: the function is to be traced again with its loops unrolled."""


class Step:
    """What a trace of the body has written down."""

    def __init__(self) -> None:
        self.carry: list[Value] = []
        self.slices: list[Value] = []
        self.carry_nodes: list[Node | None] = []
        self.slice_nodes: list[Node | None] = []
        self.next_carry: list[Value] = []
        self.next_nodes: list[Node | None] = []
        self.outputs: list[Value] = []
        self.output_nodes: list[Node | None] = []
        self.instructions: list[Instruction] = []
        self.kept = 0  # how many of the outputs are the body's: others must be true everywhere
        self.places: dict[Any, Value] = {}  # by what a generator has drawn: where in its stream this step begins
        self.drawn: dict[Any, int] = {}  # and how many words a step takes

    def place_of(self, draws: Any) -> Value:
        """How many words the steps before have drawn, as a value of each step."""
        if draws not in self.places:
            self.places[draws] = Value((), np.uint64)
        return self.places[draws]

    def stacks_of_places(self, steps: int, reverse: bool) -> dict[Value, Any]:
        """By the value of each step, what it is at all of them."""
        order = np.arange(steps, dtype=np.uint64)[:: -1 if reverse else 1]
        return {value: order * np.uint64(self.drawn[draws]) for draws, value in self.places.items()}


def settled_step(
    trace: Any, body: Body, functions: Sequence[Any], initial: list[Tensor], columns: list[Tensor], steps: int
) -> Step:
    """The trace of a step like all others, whose carry needs gradients where that of the step before does."""
    before = _Effects(trace)
    tracked = [x._node is not None and modes.is_recording() for x in initial]
    last: Step | None = None
    state: PythonState | None = None
    while True:
        known = _Arrays(trace)
        step = _traced(trace, body, initial, columns, tracked)
        before.refuse_changes()
        needed = [was or node is not None for was, node in zip(tracked, step.next_nodes)]
        if last is not None:
            if needed != tracked or state != PythonState(functions) or not _are_alike(last, step, trace):
                raise UnrollError
            for draws, count in step.drawn.items():
                draws.taken += (steps - 1) * count
            return step
        if needed == tracked:
            last, state = step, PythonState(functions)
        tracked = needed
        trace.inner.update(_values_of(step))
        known.forget_new()
        for draws, count in step.drawn.items():
            draws.taken -= count


def _traced(trace: Any, body: Body, initial: list[Tensor], columns: list[Tensor], tracked: list[bool]) -> Step:
    step = Step()
    recorder = trace.recorder
    before = {draws: draws.taken for draws in trace.draws.values()}
    with written_apart(trace, step):
        carry = [variable(recorder, x.shape, x._raw.dtype, needed, x._node) for x, needed in zip(initial, tracked)]
        follows = modes.is_recording()
        slices = [
            variable(recorder, x.shape[1:], x._raw.dtype, follows and x._node is not None, x._node) for x in columns
        ]
        step.carry, step.carry_nodes = [x._raw.value for x in carry], [x._node for x in carry]
        step.slices, step.slice_nodes = [x._raw.value for x in slices], [x._node for x in slices]
        trace.steps.append(step)
        try:
            after, outputs = (trace.resolve_all(part) for part in body(carry, slices))
        except Exception:
            raise UnrollError from None  # the same will happen in the first step of the unrolled loop
        finally:
            trace.steps.pop()
        if any(type(x) is not Tensor for x in (*after, *outputs)):
            raise UnrollError  # with tangents, for example
        step.next_carry, step.next_nodes = [x._raw.value for x in after], [x._node for x in after]
        step.outputs, step.output_nodes = [x._raw.value for x in outputs], [x._node for x in outputs]
    taken = {draws: draws.taken - before.get(draws, 0) for draws in trace.draws.values()}
    step.drawn = {draws: count for draws, count in taken.items() if count}
    return step


@contextmanager
def written_apart(trace: Any, step: Step) -> Iterator[None]:
    """What is written down inside goes to the step, and with it what the program has to look at when it runs."""
    recorder, looked_at = trace.recorder, _LookedAt(trace)
    outside, recorder.instructions = recorder.instructions, []
    trace.outside.append(outside)
    try:
        yield
        inside = {*step.carry, *step.slices}
        inside.update([value for one in recorder.instructions for value in one.results])
        required = looked_at.taken(inside)
        step.kept = len(step.outputs)
        step.outputs = [*step.outputs, *required]
        step.instructions = recorder.instructions
    finally:
        recorder.instructions = outside
        trace.outside.pop()


#: Of variables that stand for other values at every step. What is behind them outside is only for who looks there.
VARIABLE = Recipe.of_function(Operation("step", "x", linear="x", cheap=True), (True,), (), lambda g: (g,))


def variable(
    recorder: Any, shape: tuple[int, ...], dtype: Any, needs_gradient: bool, behind: Node | None = None
) -> Tensor:
    """A tensor that stands for other values at every step; in the first one for that of a node outside."""
    node = new_node(VARIABLE, () if behind is None else (behind,), ()) if needs_gradient else None
    return make(Symbol(Value(shape, dtype, user_site()), recorder), node)


def _values_of(step: Step) -> set[Value]:
    return {
        *step.carry,
        *step.slices,
        *step.places.values(),
        *[value for one in step.instructions for value in one.results],
    }


class _LookedAt:
    """Which values the program is to look at when it has run: those of a body as one that each step gives."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.counts = len(trace.recorder.bounds), len(trace.recorder.requirements), len(trace.checks)

    def taken(self, inside: set[Value]) -> list[Value]:
        """What came since and is of values `inside`, as a value that must be true at every step, if there is any."""
        recorder, xp = self.trace.recorder, self.trace.backend.xp
        bounds = [key for key in list(recorder.bounds)[self.counts[0] :] if key[0] in inside]
        requirements = [value for value in list(recorder.requirements)[self.counts[1] :] if value in inside]
        checks = [value for value in self.trace.checks[self.counts[2] :] if value in inside]
        self.trace.checks[self.counts[2] :] = [v for v in self.trace.checks[self.counts[2] :] if v not in inside]
        flags = []
        for indices, least, end in bounds:
            del recorder.bounds[indices, least, end]
            x, possible = Symbol(indices, recorder), np.iinfo(indices.dtype)
            lower = xp.greater_equal(x, max(0 if indices.dtype.kind == "u" else least, int(possible.min)))
            flags.append(lower if end > possible.max else xp.logical_and(lower, xp.less(x, end)))
        for value in requirements:
            del recorder.requirements[value]
            flags.append(Symbol(value, recorder))
        flags += [xp.isfinite(Symbol(value, recorder)) for value in dict.fromkeys(checks)]
        whole = [xp.all(flag, None, False) if flag.shape else flag for flag in flags]
        for flag in whole[1:]:
            whole[0] = xp.logical_and(whole[0], flag)
        return [whole[0].value] if whole else []


class _Arrays:
    """The arrays that a trace has met, to forget those that it meets in a step that is traced once more."""

    def __init__(self, trace: Any) -> None:
        self.trace, self.known = trace, set(trace.recorder.arrays)

    def forget_new(self) -> None:
        trace, arrays = self.trace, self.trace.recorder.arrays
        kept = self.known | set(trace.held) | {id(draws.array) for draws in trace.draws.values()}
        for key in [key for key in arrays if key not in kept]:
            value, array = arrays.pop(key)
            trace.contents[value] = array


class _Effects:
    """What a body must leave alone because every step would see what the one before has left."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.held = {key: (held.stand_in._raw, held.stand_in._node) for key, held in trace.held.items()}
        self.cells = {key: cell._value for key, cell in trace.cells.items()}
        self.others = self._others()

    def _others(self) -> tuple[Any, ...]:
        trace = self.trace
        return len(trace.slots), len(trace.numbers), len(trace.finished_draws)

    def refuse_changes(self) -> None:
        trace = self.trace
        for key, held in trace.held.items():
            raw, node = self.held.get(key, (None, None))
            if held.is_written if raw is None else held.stand_in._raw is not raw or held.stand_in._node is not node:
                raise UnrollError
        for key, cell in trace.cells.items():
            if cell._value is not self.cells.get(key, cell.before):
                raise UnrollError
        if self._others() != self.others:
            raise UnrollError


def _are_alike(first: Step, second: Step, trace: Any) -> bool:
    """Whether two traces of the body have written down the same."""
    if first.drawn != second.drawn or list(first.places) != list(second.places):
        return False
    same = dict(zip((*first.carry, *first.slices), (*second.carry, *second.slices)))
    same.update(zip(first.places.values(), second.places.values()))
    comparison = _Comparison(same, trace)
    if not comparison.of_instructions(first.instructions, second.instructions):
        return False
    pairs = ((first.next_carry, second.next_carry), (first.outputs, second.outputs))
    nodes = ((first.next_nodes, second.next_nodes), (first.output_nodes, second.output_nodes))
    return all(comparison.of(tuple(x), tuple(y)) for x, y in pairs) and all(
        [node is None for node in x] == [node is None for node in y] for x, y in nodes
    )


class _Comparison:
    """Instructions of two traces, with the values that stand for each other.

    No function that calls itself by a variable of another one: such a cycle would keep arrays until it is collected,
    and whether anybody holds an array is asked afterwards.
    """

    def __init__(self, same: dict[Value, Value], trace: Any) -> None:
        self.same = same
        self.before = trace.contents
        self.now = dict(trace.recorder.arrays.values())

    def of(self, x: Any, y: Any) -> bool:
        if type(x) is not type(y):
            return False
        if type(x) is Value:
            return self.same[x] is y if x in self.same else x is y or self._has_same_contents(x, y)
        if type(x) is tuple:
            return len(x) == len(y) and all(map(self.of, x, y))
        if type(x) is Iteration:
            return self._of_loops(x, y)
        if type(x) is slice:
            return self.of((x.start, x.stop, x.step), (y.start, y.stop, y.step))
        return x is y or (repr(x) == repr(y) if isinstance(x, (int, float, complex)) else bool(x == y))

    def _has_same_contents(self, x: Value, y: Value) -> bool:
        """Whether these are arrays that each step makes anew, and makes the same."""
        a, b = self.before.get(x), self.now.get(y)
        if a is None or b is None or (x.shape, x.dtype) != (y.shape, y.dtype):
            return False
        return a is b or bool(type(a) is type(b) is np.ndarray and a.tobytes() == b.tobytes())

    def of_instructions(self, first: Any, second: Any) -> bool:
        if len(first) != len(second):
            return False
        for one, other in zip(first, second):
            if one.op != other.op or not self.of(one.args, other.args) or len(one.results) != len(other.results):
                return False
            self.same.update(zip(one.results, other.results))
        return True

    def _of_loops(self, first: Iteration, second: Iteration) -> bool:
        """The same of loops in the body."""
        numbers = [(one.constants, one.carry, one.steps, one.reverse) for one in (first, second)]
        if numbers[0] != numbers[1] or len(first.body.inputs) != len(second.body.inputs):
            return False
        self.same.update(zip(first.body.inputs, second.body.inputs))
        return self.of_instructions(first.body.instructions, second.body.instructions) and self.of(
            tuple(first.body.outputs), tuple(second.body.outputs)
        )
