"""Ctrl-C while training: the first one asks for an end after the step, the second one ends at once."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from typing import Any, Callable, Iterator

REASON = "interrupted"


@contextmanager
def interruptible(request_stop: Callable[[str], None]) -> Iterator[None]:
    """Inside, the first SIGINT calls `request_stop("interrupted")`; the next is what it was outside.

    Only the main thread may say what a signal does, so in any other one nothing changes; nor does it where SIGINT is
    ignored, as for a program started by `nohup` or in the background.
    """
    previous = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or previous in (signal.SIG_IGN, None):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, previous)
        request_stop(REASON)
        say("Interrupted: ending after this step. Press Ctrl-C again to end at once.")

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def say(message: str) -> None:
    """Tell the user, on the error stream."""
    with suppress(RuntimeError):  # a signal came while the stream was being written to: it cannot be entered again
        print(f"\n{message}", file=sys.stderr, flush=True)
