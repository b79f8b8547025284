"""Keeping signals from the middle of compiling.

An exception that a signal's handler raises, as Ctrl-C does, can come between any two steps of Python code: also where
llvmlite has just taken its lock and not yet seen to it that it is given back. Nobody could compile any more then.
"""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_SIGNALS = [int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name)]
# What `signal` itself calls, without making an enumeration's member of every number: a step of a small program takes
# no longer than that.
_signal: Any = importlib.import_module("_signal")


class signals_later:
    """Inside, Python's handlers of signals are not called; what came is handled at the end."""

    __slots__ = ("_came", "_handlers")

    def __enter__(self) -> None:
        self._handlers: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread alone
            return
        came: list[tuple[int, Any]] = []
        self._came = came

        def note(number: int, frame: Any) -> None:
            came.append((number, frame))

        for number in _SIGNALS:
            handler = _signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                _signal.signal(number, note)

    def __exit__(self, *error: Any) -> None:
        if not self._handlers:
            return
        for number, handler in self._handlers.items():
            _signal.signal(number, handler)
        for number, frame in self._came:
            self._handlers[number](number, frame)
