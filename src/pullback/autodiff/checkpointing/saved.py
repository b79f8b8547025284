"""What the graph holds in place of an array: the array, or how to compute it again.

Under a strategy every operation leaves a `Step`: its kernel's operands, so that it can run again. A tensor knows its
step through an `Origin`. A node holds a `Saved` per array that its rule needs. Dropping a `Saved` gives it a `Replay`
in place of its array: the step with `Saved`s for operands, down to arrays that are still there. Nothing of the user's
Python ever runs again.

Tensors lead to steps weakly, nodes strongly: once a walk has released a node, a result that the user still holds keeps
no operand of it alive.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Iterable

from ...operations import Operation
from ..graph import next_sequence_number

Allowed = Callable[["Step"], bool]


class Step:
    """An operation that ran, and what it ran on: raw arrays, numbers, and origins of what other steps made."""

    __slots__ = (
        "seq",
        "operation",
        "backend",
        "operands",
        "static",
        "seconds",
        "region",
        "run",
        "given",
        "depth",
        "replay",
        "__weakref__",
    )

    def __init__(
        self,
        operation: Operation,
        backend: Any,
        operands: tuple[Any, ...],
        static: tuple[Any, ...],
        seconds: float,
        region: Any,
    ) -> None:
        self.seq = next_sequence_number()
        self.operation = operation
        self.backend = backend
        self.operands = operands
        self.static = static
        self.seconds = seconds  # what it took
        self.region = region  # the `checkpoint` region it ran in
        self.run = 0  # how many in a row a strategy would have to run again up to this one; 0 if it would not
        self.given = 0  # bytes of arrays that it and the untracked steps before it hold on their own account
        self.depth = 1  # of the untracked steps that hold each other up to this one
        self.replay: Any = _nothing  # a weak reference to its Replay


class Origin:
    """Which of a step's results (outputs, then residuals) a tensor is."""

    __slots__ = ("step", "index", "nbytes", "kept", "holder")

    def __init__(self, step: Step, index: int, nbytes: int, tracked: bool) -> None:
        self.step = weakref.ref(step)
        self.index = index
        self.nbytes = nbytes
        self.kept: Any = _nothing  # a weak reference to its Saved
        self.holder = None if tracked else step  # no node holds the step of an untracked result


class Replay:
    """A step as the graph holds it: its operands are raw arrays, numbers, or what is kept."""

    __slots__ = ("seq", "operation", "backend", "operands", "static", "region", "results", "__weakref__")

    def __init__(self, step: Step, operands: tuple[Any, ...]) -> None:
        self.seq = step.seq
        self.operation = step.operation
        self.backend = step.backend
        self.operands = operands
        self.static = step.static
        self.region = step.region
        self.results: dict[int, weakref.ref[Saved]] = {}


class Saved:
    """One array that rules need: the array itself, or the replay that makes it; while walked, perhaps both."""

    __slots__ = ("origin", "raw", "replay", "first", "region", "__weakref__")

    def __init__(self, origin: Origin, raw: Any) -> None:
        self.origin = origin
        self.raw = raw
        self.replay: Replay | None = None
        self.first: int | None = None  # the first node that needs it, which a walk comes to last
        self.region: Any = None  # the `checkpoint` region that dropped it
        origin.kept = weakref.ref(self)

    def drop(self, replay: Replay) -> None:
        """Forget the array; from now on `replay` makes it."""
        self.replay = replay
        replay.results[self.origin.index] = weakref.ref(self)
        self.raw = None

    def store(self, raw: Any) -> None:
        """Hold an array that was computed again, for nodes that a walk has yet to come to."""
        self.raw = raw

    def forget(self) -> None:
        """Let an array that was computed again go."""
        self.raw = None

    def before_replays(self, working: Callable[[], int], pinned: Iterable[Saved]) -> None:
        """Take note of the bytes that replays which make this array are about to need beside those of `pinned`."""

    def during_replays(self, working: Callable[[], int]) -> None:
        """Take note of the bytes that replays have in use, of arrays that nobody holds."""


def _nothing() -> None:
    """A weak reference to nothing."""


def replay_of(step: Step, allowed: Allowed, make: Callable[[Origin, Any], Saved] = Saved) -> Replay | None:
    """The replay of a step, or None if something that it needs is gone.

    An operand that is kept is used as it is. One that is not is replayed in turn, if its own step is `allowed`.
    """
    replay = step.replay()
    if replay is not None:
        return replay
    stack = [step]
    made: dict[Step, Replay] = {}  # alive until what needs them holds them
    while stack:
        current = stack[-1]
        operands: list[Any] = []
        waiting = len(stack)
        for x in current.operands:
            if isinstance(x, Origin):
                kept = x.kept()
                if kept is None:
                    before = x.step()
                    if before is None or not allowed(before):
                        return None
                    replay = before.replay() or made.get(before)
                    if replay is None:
                        stack.append(before)
                        continue
                    kept = make(x, None)
                    kept.drop(replay)
                x = kept
            operands.append(x)
        if len(stack) > waiting:
            continue
        stack.pop()
        if current.replay() is None:
            made[current] = replay = Replay(current, tuple(operands))
            current.replay = weakref.ref(replay)
    return step.replay()
