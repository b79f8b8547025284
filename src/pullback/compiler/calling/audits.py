"""Audits: now and then a function is traced again, and must give the program that it gave before.

They are the net under the guards. What a program is, is kept as a digest: of each instruction what it does to what, its
name and the user's line.
"""

from __future__ import annotations

import hashlib
from time import perf_counter
from typing import Any, Callable, NamedTuple

import numpy as np

from ...errors import TraceError
from ..guards.values import Array
from ..iteration import ITERATE, Iteration
from ..program import Program, Value

#: A call that takes more than this share of a trace's time is audited at once; later ones take this share of all time.
SHARE = 0.01
NEVER = 2**62


class Line(NamedTuple):
    """An instruction of a program: what it is, and what it is called and where it comes from for messages."""

    identity: tuple[Any, ...]
    op: str
    site: str


def digest(made: Any) -> list[Line]:
    """What a traced program consists of: its inputs by where they come from, its instructions, what it gives."""
    numbers: dict[Value, int] = {}
    lines = []
    own = {id(state.array) for state in (*made.numbers, *made.draws, *made.feeds)}
    own |= {id(before) for _, before, after in made.cells if after is None or type(after) is int}  # calls replace it
    outside = {id(guard.value) for guard in made.guards.reached() if isinstance(guard, Array)}
    for entry in made.inputs:
        numbers[entry.value] = len(numbers)
        source = _source(entry, own, outside, made.program.constants)
        lines.append(Line((source, _form(entry.value)), "input", entry.value.site))
    program: Program = made.program
    _add_instructions(lines, program, numbers)
    outputs = [numbers.get(value) for value in program.outputs]
    updates = [(numbers.get(target), numbers.get(value)) for target, value in program.updates]
    lines.append(Line((*outputs, *updates), "what it gives", ""))
    return lines


def _add_instructions(lines: list[Line], program: Program, numbers: dict[Value, int]) -> None:
    for instruction in program.instructions:
        parts = [_part(arg, numbers) for arg in instruction.args]
        if instruction.op == ITERATE:
            iteration: Iteration = instruction.args[0]
            body = iteration.body
            within = {value: -1 - i for i, value in enumerate(body.inputs)}
            _add_instructions(lines, body, within)
            given = tuple([within.get(value) for value in body.outputs])
            parts[0] = (iteration.constants, iteration.carry, repr(iteration), given)
        for value in instruction.results:
            numbers[value] = len(numbers)
            parts.append(_form(value))
        lines.append(Line((instruction.op, *parts), instruction.op, instruction.site))


def _source(entry: Any, own: set[int], outside: set[int], constants: dict[Value, Any]) -> Any:
    """Where an input comes from; of an array that the function made itself, what is in it."""
    if entry.argument >= 0:
        return "argument", entry.argument
    if entry.tensor is not None:
        return "tensor", id(entry.tensor) if id(entry.tensor) not in own else "a gradient"
    if entry.place is not None:
        return "place", type(entry.place).__name__
    if id(entry.array) in own:
        return "own"
    array = entry.array if entry.view is None else entry.view
    if id(array) in outside and type(array) is np.ndarray:
        return "array", id(array)
    return ("made", _content(array)) if entry.value in constants else "array"  # else what a graph outside has saved


def _part(arg: Any, numbers: dict[Value, int]) -> Any:
    kind = type(arg)
    if kind is Value:
        return numbers.get(arg)
    if isinstance(arg, (tuple, list)):
        return tuple([_part(part, numbers) for part in arg])
    if isinstance(arg, np.ndarray):
        return arg.shape, arg.dtype.str, _content(arg)
    if isinstance(arg, (int, float, complex, str, bytes, slice, type(None))):
        return repr(arg)  # 1, 1.0 and True differ, and nan is itself
    return kind


def _form(value: Value) -> tuple[Any, ...]:
    return value.shape, value.dtype


def _content(array: Any) -> bytes:
    return hashlib.sha256(array.tobytes()).digest()


def difference(before: list[Line], now: list[Line]) -> Line | None:
    """The first instruction that is not the same, or None."""
    for old, new in zip(before, now):
        if old.identity != new.identity and not _are_arrays(old, new):
            return new if new.site else old
    if len(before) == len(now):
        return None
    return (before if len(before) > len(now) else now)[min(len(before), len(now))]


def _are_arrays(old: Line, new: Line) -> bool:
    """Whether both are arrays of one form, of which somebody else held one: garbage not yet collected, it may be."""
    if old.op != "input" or new.op != "input" or old.identity[1:] != new.identity[1:]:
        return False
    sources = (old.identity[0], new.identity[0])
    return "array" in sources and all([source == "array" or source[0] == "made" for source in sources])


class Schedule:
    """When to audit a program: at how many calls to see whether enough time has gone by."""

    __slots__ = ("calls", "cost", "_run_seconds", "_since", "_calls_then", "_clock")

    def __init__(self, calls: Any, trace_seconds: float, clock: Callable[[], float] = perf_counter) -> None:
        self.calls = calls  # how many there were, and at how many the long way is to be gone
        self.cost = trace_seconds  # of an audit
        self._run_seconds = float("inf")  # of a call: not more than that
        self._since: float | None = None  # when the last audit was; None if one comes at once
        self._calls_then = 0
        self._clock = clock

    @property
    def is_reached(self) -> bool:
        return bool(self.calls[0] >= self.calls[1])

    def is_due(self) -> bool:
        """Whether calls have taken long enough."""
        return self._since is None or self._spent() * SHARE >= self.cost

    def _spent(self) -> float:
        """The seconds in calls since the last audit, or more: not more than have gone by."""
        assert self._since is not None
        count = int(self.calls[0]) - self._calls_then
        if count > 0:
            self._run_seconds = min(self._run_seconds, (self._clock() - self._since) / count)
        return count * self._run_seconds

    def note(self, run_seconds: float) -> None:
        """After a call that went the long way."""
        is_first = self._run_seconds == float("inf")
        self._run_seconds = min(self._run_seconds, run_seconds)
        if is_first and run_seconds > SHARE * self.cost:
            self.calls[1] = self.calls[0] + 1
        elif is_first or self.is_reached:
            if self._since is None:
                self._begin()
            left = (self.cost / SHARE - self._spent()) / max(self._run_seconds, 1e-7)
            self.calls[1] = self.calls[0] + 1 + max(int(left), 1)

    def audited(self, seconds: float) -> None:
        """An audit was done, and took so long."""
        self.cost = seconds
        self._begin()

    def _begin(self) -> None:
        self._since, self._calls_then = self._clock(), int(self.calls[0])

    def stop(self) -> None:
        self.calls[1] = NEVER


def refusal(name: str, line: Line) -> TraceError:
    """What to say if a function gives another program than before."""
    where = f"{line.site}: " if line.site else ""
    return TraceError(
        f"{where}{name}, traced again, does something else here than when it was compiled (`{line.op}`), and nothing "
        "that pb.compile looks at has changed. It reads something that cannot be seen, such as the clock or the state "
        "of a library. Pass that as an argument, or call the function without pb.compile."
    )
