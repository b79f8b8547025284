"""Ctrl-C and SIGTERM while training: the first one asks for an end after the step, the second one ends at once."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from typing import Any, Callable, Iterator

INTERRUPTED = "interrupted (Ctrl-C)"
_REASONS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: "terminated (SIGTERM)"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(request_stop: Callable[[int], None]) -> Iterator[None]:
    """Inside, the first SIGINT or SIGTERM calls `request_stop` with its number; the next is what it was outside.

    Only the main thread may say what a signal does, so in any other one nothing changes; nor does it for a signal that
    is ignored, as SIGINT is for a program started by `nohup` or in the background.
    """
    previous: dict[signal.Signals, Any] = {}
    if current_thread() is main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        previous = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def stop(number: int, frame: Any) -> None:
        restore()
        request_stop(number)
        if number == signal.SIGINT:
            say("Interrupted: ending after this step. Press Ctrl-C again to end at once.")
        else:
            say("Terminated: ending after this step. Send the signal again to end at once.")

    try:
        for number in previous:
            signal.signal(number, stop)
        yield
    finally:
        restore()


def reason_of(number: int) -> str:
    """Why a run is stopped that got the signal of that number."""
    return _REASONS[signal.Signals(number)]


def say(message: str) -> None:
    """Tell the user, on the error stream."""
    with suppress(RuntimeError):  # a signal came while the stream was being written to: it cannot be entered again
        print(f"\n{message}", file=sys.stderr, flush=True)
