"""Keeping signals from the middle of compiling.

An exception that a signal's handler raises, as Ctrl-C does, can come between any two steps of Python code: also where
llvmlite has just taken its lock and not yet seen to it that it is given back. Nobody could compile any more then.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import Any, Iterator

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


@contextmanager
def signals_later() -> Iterator[None]:
    """Inside, Python's handlers of signals are not called; what came is handled at the end."""
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread alone
        yield
        return
    came: list[tuple[int, Any]] = []
    handlers = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number, frame in came:
        handlers[signal.Signals(number)](number, frame)
