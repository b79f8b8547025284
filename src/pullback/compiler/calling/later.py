"""Runs of which nobody knows yet whether they were fine: they are looked at later, and made good if they were not.

A run that fails has changed nothing, and neither have those after it (see `cuda/halting.py`). What was done for them on
the host is taken back, and they are made again, operation by operation: the first of them says what is wrong, and
where. If it turns out that nothing is, its results go where those of the program went.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable

from ... import tree
from ...autodiff import pending
from ...tensors.tensor import Tensor

MOST_WAITING = 32


class Run:
    """A run that was launched: its flag, what it gave back, how to make it again, and what was so then.

    `states` are those of generators before it, `options` the groups of optimizers, whose rates may change meanwhile.
    """

    __slots__ = ("flag", "result", "_again", "states", "_options")

    def __init__(
        self,
        flag: Any,
        result: Any,
        again: Callable[[], Any],
        states: list[tuple[Any, Any]],
        options: list[dict[str, Any]],
    ) -> None:
        self.flag = flag
        self.result = result
        self._again = again
        self.states = states
        self._options = [(group, dict(group)) for group in options]

    def again(self) -> None:
        """Make it again, as things were, into what it gave back."""
        for generator, state in self.states:
            generator.state = state
        now = [(group, dict(group)) for group, _ in self._options]
        for group, then in self._options:
            group.update(then)
        try:
            _write(self._again(), self.result)
        finally:
            for group, options in now:
                group.update(options)


class Later:
    """The runs of a program that wait to be looked at, in their order."""

    def __init__(self, slots: list[Any], reset: Callable[[], None]) -> None:
        self._slots = slots
        self._lock = threading.Lock()  # of the list alone: what is made again may need the locks of programs
        self._reset = reset  # lets the program change something again
        self._waiting: deque[Run] = deque()

    def add(self, run: Run) -> None:
        """Have a run looked at when somebody reads a value in this thread, and before much more is launched."""
        self._waiting.append(run)
        waiting = pending.checks.waiting
        if self.look not in waiting:
            waiting.append(self.look)

    def glance(self) -> None:
        """Look at what is known already, and at the oldest one if there are many; at all that other programs launched.

        Those know nothing of a failure of this one's, nor this one of theirs.
        """
        if any(check != self.look for check in pending.checks.waiting):
            pending.look()
        while self._settled(waits=False):
            pass

    def look(self) -> None:
        """Wait for all runs."""
        while self._settled(waits=True):
            pass

    def _settled(self, waits: bool) -> bool:
        """Forget the oldest run if it was fine; else make it and all after it again. Whether there was one."""
        with self._lock:
            waiting = self._waiting
            if not waiting or not (waits or waiting[0].flag.is_known() or len(waiting) >= MOST_WAITING):
                return False
            if waiting[0].flag:
                waiting.popleft()
                return True
            failed = list(waiting)
            waiting.clear()
            bool(failed[-1].flag)  # waits: until then the device may still run them
            self._reset()
        for slot in self._slots:
            slot.step -= len(failed)
        now = [(generator, generator.state) for generator, _ in failed[0].states]
        for run in failed:
            run.again()
        for generator, state in now:  # others may have drawn since
            generator.state = state
        return True


def _write(made: Any, result: Any) -> None:
    """Put the tensors of a result where those of another one are."""
    for new, old in zip(tree.flatten(made, is_leaf=_is_tensor)[0], tree.flatten(result, is_leaf=_is_tensor)[0]):
        if isinstance(old, Tensor):
            old._raw.copy_(new._raw)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)
