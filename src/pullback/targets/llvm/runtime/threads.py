"""The pool of threads that share the work of programs: one for the process, started when a program first needs it.

A worker is a daemon thread of Python's that stays inside one native call, without Python's lock: see `runtime.py`.
A child made by fork has none of its parent's threads, so there the pool is forgotten, and made anew when needed.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
import weakref
from typing import Any

import numpy as np

from ...locking import wait_for
from ...thread_count import LIMIT, asked_threads
from . import dispatch as runtime

__all__ = ["LIMIT", "USUAL_LIMIT"]

#: The most threads that one program is given unless the user asks for more.
USUAL_LIMIT = 16

#: Seconds that a fork waits for runs that call BLAS; one that forks in the midst of a run waits for itself.
LONGEST_WAIT = 2.0


def default_threads() -> int:
    """$PULLBACK_NUM_THREADS, or one thread for each processor whose time this process may use."""
    asked = asked_threads()
    if asked is not None:
        return asked
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return min(count, _granted(), USUAL_LIMIT)


def _granted(limits: str = "/sys/fs/cgroup/cpu.max") -> int:
    """How many processors' time the container we may be in is given: more threads would only be held up."""
    try:
        with open(limits) as file:
            time, period = file.read().split()
        return max(1, -(-int(time) // int(period)))
    except (OSError, ValueError):  # not such a system, or "max": no limit
        return USUAL_LIMIT


class _Pool:
    """Memory that workers and runs share, and the workers."""

    def __init__(self) -> None:
        self.memory = aligned(runtime.POOL_BYTES)
        self.memory[:] = 0
        self.address: int = self.memory.ctypes.data
        process = ctypes.CDLL(None)
        process.pthread_mutex_init(ctypes.c_void_p(self.address + runtime.MUTEX), None)
        process.pthread_cond_init(ctypes.c_void_p(self.address + runtime.CONDITION), None)
        self.wake = process.pthread_cond_broadcast
        self.workers: list[threading.Thread] = []

    def word(self, offset: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.address + offset)

    def grow(self, workers: int) -> None:
        """Have at least that many workers; the system may refuse, and programs that want more run on one thread."""
        work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(runtime.library().addresses["pullback_work"])
        for number in range(len(self.workers) + 1, workers + 1):
            thread = threading.Thread(
                target=work, args=(self.address, number), name=f"pullback-{number}", daemon=True
            )  # fmt: skip
            try:
                thread.start()
            except RuntimeError:  # no more threads
                return
            self.workers.append(thread)
            self.word(runtime.WORKERS).value = number  # from now on a run may count on it

    def stop(self) -> None:
        """Let the workers end, and wait for them a moment: a process that ends must not hang."""
        self.word(runtime.WORKERS).value = 0
        announced = self.word(runtime.ANNOUNCED)
        announced.value = (announced.value & ~255) + 256 + runtime.STOP
        for _ in range(100):  # one that was about to sleep when it was called sleeps on: call again
            self.wake(ctypes.c_void_p(self.address + runtime.CONDITION))
            for worker in self.workers:
                worker.join(0.01)
                if worker.is_alive():
                    break
            else:
                return


_lock = threading.Lock()
_pool: _Pool | None = None
_forgotten: list[_Pool] = []
_after_fork: weakref.WeakSet[Any] = weakref.WeakSet()


def start(threads: int) -> None:
    """Have workers for runs of that many threads."""
    global _pool
    if threads < 2 or not runtime.has_threads():
        return
    with _lock:
        if _pool is None:
            _pool = _Pool()
            _cell("pullback_pool").value = _pool.address
        _pool.grow(threads - 1)


def workers() -> int:
    """How many workers there are."""
    return 0 if _pool is None else len(_pool.workers)


def reset_after_fork(thing: Any) -> None:
    """Have `thing.reset_after_fork()` called in children made by fork, as long as it lives."""
    _after_fork.add(thing)


def aligned(nbytes: int, alignment: int = 64) -> np.ndarray:
    """Memory of that many bytes which begins at a multiple of `alignment`."""
    memory = np.empty(nbytes + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + nbytes]


def _cell(name: str, index: int = 0) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(runtime.library().addresses[name] + 8 * index)


class _ClosedBlas:
    """No run begins that calls BLAS, and those under way have ended: none holds a lock of BLAS's own."""

    def __enter__(self) -> None:
        if not runtime.library.cache_info().currsize:
            return
        users, _, lock, closed = (_cell("pullback_blas", i) for i in range(4))
        closed.value = 1
        latest = time.monotonic() + LONGEST_WAIT
        while True:
            time.sleep(2e-5)  # without Python's lock: a run may be waiting for it
            entering = lock.value  # one that found it open is among the users once it has let go of the lock
            if not (entering or users.value) or time.monotonic() > latest:
                return

    def __exit__(self, *error: object) -> None:
        if runtime.library.cache_info().currsize:
            _cell("pullback_blas", 3).value = 0


def _in_child() -> None:
    global _pool, _lock
    _lock = threading.Lock()
    if _pool is not None:
        _forgotten.append(_pool)  # its memory may be a lock's that is held: never to be used again, nor freed
        _pool = None
        _cell("pullback_pool").value = 0
    if runtime.library.cache_info().currsize:
        users, before, lock = (_cell("pullback_blas", i) for i in range(3))
        lock.value = 0
        if users.value:  # a run that is not going on here had set BLAS to one thread
            users.value = 0
            _restore_blas(before.value)
    for thing in list(_after_fork):
        thing.reset_after_fork()


def _restore_blas(threads: int) -> None:
    setter, _ = blas_functions()
    if setter:
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(setter)(threads)


def blas_functions() -> tuple[int, int]:
    """Addresses of the functions that set and get the number of BLAS's threads, or zeros."""
    from ..products import blas

    found = blas.find()
    return (0, 0) if found is None else (found.set_threads, found.get_threads)


def _at_exit() -> None:
    if _pool is not None:
        _cell("pullback_pool").value = 0
        _pool.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
wait_for(_ClosedBlas())
atexit.register(_at_exit)
