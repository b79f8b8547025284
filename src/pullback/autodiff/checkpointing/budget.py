"""Keeping at most so many bytes, and computing again what costs least."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import weakref
from typing import Any, Callable, Container, Iterable

from ... import backends
from ...errors import DtypeError
from .saved import Origin, Replay, Saved, Step, replay_of
from .strategies import Strategy

_LOOKED_AT = 32  # steps looked at to estimate what running again takes
_alive: weakref.WeakSet[BudgetCheckpointing] = weakref.WeakSet()


class BudgetCheckpointing(Strategy):
    """Hold at most `bytes` of saved values; what is dropped is what takes the least time per byte to compute again.

    Variables and arrays that were given are not counted: they are there anyway. The budget holds while recording and
    while walking, including what is computed again, in regions of `pb.checkpoint` too. Two things can go beyond it:
    what cannot be computed again (results of a user's own operation), and what a single operation needs to run again,
    if that alone is more. Give each thread a budget of its own: walks that run at the same time do not know of each
    other's work.

    `held` is what is kept now, `peak` the most that ever was. A compiled function plans all this beforehand, and says
    so in its `memory["saved"]`.

    Parameters
    ----------
    bytes : int
        The most that saved values may take.

    Examples
    --------
    >>> import pullback as pb
    >>> strategy = pb.BudgetCheckpointing(4096)
    >>> w = pb.random.normal((8, 8)).set_requires_grad(True)
    >>> with pb.checkpointing(strategy):
    ...     x = w
    ...     for _ in range(100):
    ...         x = pb.tanh(x @ w)
    >>> x.sum().backward()
    >>> strategy.peak <= 4096
    True
    """

    def __init__(self, bytes: int) -> None:
        if isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 0:
            raise DtypeError(f"BudgetCheckpointing: expected a number of bytes, got {bytes!r}.")
        self.bytes = bytes
        self.held = 0
        self.peak = 0
        self._reserve = 0  # what running a step again needs beside what is kept
        self._working = 0  # what the replays need that run now
        self._buffers: dict[int, _Buffer] = {}
        self._candidates: list[tuple[float, int, _Buffer]] = []
        self._count = itertools.count().__next__
        self._lock = threading.RLock()  # a walk in another thread releases at any moment
        _alive.add(self)

    def __repr__(self) -> str:
        return f"BudgetCheckpointing({self.bytes})"

    @property
    def key(self) -> Any:
        return type(self).__name__, self.bytes

    def keep(self, origin: Origin, raw: Any) -> Saved:
        kept = origin.kept()
        if kept is None:
            kept = self.make(origin, raw)
            with self._lock:
                self._add(kept, raw)
                self._make_room()
                self.saw(0)
        return kept

    # -- what is held --------------------------------------------------------------------------------

    def _add(self, kept: _Counted, raw: Any) -> None:
        key, nbytes = backends.of(raw).buffer_of(raw)
        buffer = self._buffers.get(key) or _Buffer(key, nbytes)
        buffer.members.add(kept)
        kept.buffer = buffer
        if self._buffers.get(key) is not buffer:  # new, or its last member has just been collected
            self._buffers[key] = buffer
            self.held += nbytes
            if kept.replay is None:  # what was computed again goes when it has been used
                heapq.heappush(self._candidates, (_seconds([kept]) / max(nbytes, 1), self._count(), buffer))
                self._forget_the_dead()

    def _forget_the_dead(self) -> None:
        """Now and then take what is gone out of the candidates, which are looked at only when room is short."""
        if len(self._candidates) > 16 + 2 * len(self._buffers):
            self._candidates = [entry for entry in self._candidates if self._buffers.get(entry[2].key) is entry[2]]
            heapq.heapify(self._candidates)

    def remove(self, kept: _Counted) -> None:
        """Count an array that is no longer held."""
        with self._lock:
            buffer, kept.buffer = kept.buffer, None
            if buffer is None:
                return
            buffer.members.discard(kept)
            if not buffer.members:
                del self._buffers[buffer.key]
                self.held -= buffer.nbytes

    def store(self, kept: _Counted, raw: Any) -> bool:
        """Hold an array that was computed again, if there is room for it."""
        with self._lock:
            key, nbytes = backends.of(raw).buffer_of(raw)
            if key not in self._buffers and self.held + nbytes + max(self._working, self._reserve) > self.bytes:
                return False
            self._add(kept, raw)
            self.saw(0)
            return True

    def saw(self, working: int) -> None:
        """Note that `working` bytes were in use beside what is held."""
        self.peak = max(self.peak, self.held + working)

    def make_room(self, working: int, pinned: Iterable[Saved]) -> None:
        """Before running again: drop what leaves no room for `working` bytes, but nothing that is `pinned`."""
        with self._lock:
            self._working = working
            self._make_room(working, {kept.buffer for kept in pinned if isinstance(kept, _Counted)})

    # -- what goes -----------------------------------------------------------------------------------

    def _make_room(self, working: int = 0, pinned: Container[_Buffer | None] = ()) -> None:
        aside = []
        while self.held + max(working, self._reserve) > self.bytes and self._candidates:
            score, number, buffer = heapq.heappop(self._candidates)
            if self._buffers.get(buffer.key) is not buffer:
                continue
            if buffer in pinned:
                aside.append((score, number, buffer))
                continue
            now = _seconds(buffer.members) / max(buffer.nbytes, 1)
            if now > 1.25 * score and self._candidates and now > self._candidates[0][0]:
                heapq.heappush(self._candidates, (now, number, buffer))  # its inputs were dropped since
            elif not self._drop(buffer):
                aside.append((score, number, buffer))
        for entry in aside:
            heapq.heappush(self._candidates, entry)
        if self.held + working > self.bytes:
            self._forget_again(working, pinned)

    def _forget_again(self, working: int, pinned: Container[_Buffer | None]) -> None:
        """Let what was computed again go before it was used, where there is no room for it any more."""
        for buffer in list(self._buffers.values()):
            members = list(buffer.members)
            if buffer not in pinned and all([kept.replay is not None for kept in members]):
                for kept in members:
                    kept.forget()
            if self.held + working <= self.bytes:
                return

    def _drop(self, buffer: _Buffer) -> bool:
        """Drop all arrays in a buffer; False, with nothing changed, if one of them cannot be made again."""
        replays: list[tuple[_Counted, Replay]] = []
        for kept in list(buffer.members):
            step = kept.origin.step()
            replay = None if step is None else replay_of(step, _always, self.make)
            if replay is None:
                return False
            replays.append((kept, replay))
        for kept, replay in replays:
            self.remove(kept)
            kept.drop(replay)
            inputs = sum([x.origin.nbytes for x in replay.operands if isinstance(x, Saved) and x.raw is None])
            self._reserve = max(self._reserve, kept.origin.nbytes + inputs)
        return True

    def make(self, origin: Origin, raw: Any) -> _Counted:
        return _Counted(origin, raw, self)


class _Buffer:
    """Memory that is held: one array, or views of it."""

    __slots__ = ("key", "nbytes", "members")

    def __init__(self, key: int, nbytes: int) -> None:
        self.key = key
        self.nbytes = nbytes
        self.members: weakref.WeakSet[_Counted] = weakref.WeakSet()


class _Counted(Saved):
    """What is kept under a budget, which is told when it goes."""

    __slots__ = ("budget", "buffer")

    def __init__(self, origin: Origin, raw: Any, budget: BudgetCheckpointing) -> None:
        self.budget = budget
        self.buffer: _Buffer | None = None
        super().__init__(origin, raw)

    def store(self, raw: Any) -> None:
        if self.budget.store(self, raw):
            self.raw = raw

    def forget(self) -> None:
        self.budget.remove(self)  # before its memory can be somebody else's
        self.raw = None

    def before_replays(self, working: Callable[[], int], pinned: Iterable[Saved]) -> None:
        self.budget.make_room(working(), pinned)

    def during_replays(self, working: Callable[[], int]) -> None:
        self.budget.saw(working())

    def __del__(self) -> None:
        if self.buffer is not None:
            self.budget.remove(self)


def _in_child() -> None:
    for strategy in _alive:
        strategy._lock = threading.RLock()  # a thread that had the other one is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _always(step: Step) -> bool:
    return True


def _seconds(kept: Iterable[Saved]) -> float:
    """About what running again takes that makes these arrays, of which none is there."""
    stack = [step for x in kept if (step := x.origin.step()) is not None]
    seen = set(stack)
    total = 0.0
    while stack and len(seen) < _LOOKED_AT:
        step = stack.pop()
        total += step.seconds
        for operand in step.operands:
            if isinstance(operand, Origin):
                held = operand.kept()
                before = operand.step()
                if (held is None or held.raw is None) and before is not None and before not in seen:
                    seen.add(before)
                    stack.append(before)
    return total
