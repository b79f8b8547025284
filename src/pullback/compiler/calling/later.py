"""Runs of which nobody knows yet whether they were fine: they are looked at later, and made good if they were not.

A run that fails has changed nothing, and neither have those after it (see `cuda/halting.py`). What was done for them on
the host is taken back, and they are made again, operation by operation: the first of them says what is wrong, and
where. If it turns out that nothing is, its results go where those of the program went.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable

from ... import tree
from ...autodiff import pending
from ...tensors.tensor import Tensor

MOST_WAITING = 32


class Run:
    """A run that was launched: its flag, what it gave back, and how to make it again."""

    __slots__ = ("flag", "result", "again", "states")

    def __init__(self, flag: Any, result: Any, again: Callable[[], Any], states: list[tuple[Any, Any]]) -> None:
        self.flag = flag
        self.result = result
        self.again = again
        self.states = states  # of generators, before it


class Later:
    """The runs of a program that wait to be looked at, in their order."""

    def __init__(self, slots: list[Any], lock: Any, reset: Callable[[], None]) -> None:
        self._slots = slots
        self._lock = lock
        self._reset = reset  # lets the program change something again
        self._waiting: deque[Run] = deque()

    def add(self, run: Run) -> None:
        """Have a run looked at when somebody reads a value in this thread, and before much more is launched."""
        self._waiting.append(run)
        waiting = pending.checks.waiting
        if self.look not in waiting:
            waiting.append(self.look)

    def glance(self) -> None:
        """Look at what is known already, and at the oldest one if there are many."""
        waiting = self._waiting
        while waiting and (waiting[0].flag.is_known() or len(waiting) >= MOST_WAITING):
            self._settle()

    def look(self) -> None:
        """Wait for all runs."""
        with self._lock:
            while self._waiting:
                self._settle()

    def _settle(self) -> None:
        """Forget the oldest run if it was fine; else make it and all after it again."""
        if self._waiting[0].flag:
            self._waiting.popleft()
            return
        failed = list(self._waiting)
        self._waiting.clear()
        for generator, state in failed[0].states:
            generator.state = state
        for slot in self._slots:
            slot.step -= len(failed)
        bool(failed[-1].flag)  # waits: until then the device may still run them
        self._reset()
        for run in failed:
            _write(run.again(), run.result)


def _write(made: Any, result: Any) -> None:
    """Put the tensors of a result where those of another one are."""
    for new, old in zip(tree.flatten(made, is_leaf=_is_tensor)[0], tree.flatten(result, is_leaf=_is_tensor)[0]):
        if isinstance(old, Tensor):
            old._raw.copy_(new._raw)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)
