"""How a run ended, in the same words on the bar, in the log, in the report and in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .interruption import INTERRUPTED

if TYPE_CHECKING:
    from .history import History

__all__ = ["Ending", "ending_after", "ending_by"]

_LONGEST = 300  # characters of an error's message


class Ending(NamedTuple):
    """What became of a run, and why it did not go through to its end: "finished", "stopped" or "failed".

    >>> from pullback.train.endings import Ending
    >>> str(Ending("stopped", "no gain for 5 epochs")), str(Ending("finished", None))
    ('stopped: no gain for 5 epochs', 'finished')
    """

    status: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


def ending_after(history: History) -> Ending:
    """The end of a run that came to one: it finished, or was asked to stop."""
    return Ending("stopped", history.stop_reason) if history.stop_reason else Ending("finished", None)


def ending_by(error: BaseException) -> Ending:
    """The end of a run by an error, or by a second Ctrl-C."""
    if isinstance(error, KeyboardInterrupt):
        return Ending("stopped", INTERRUPTED)
    message = " ".join(str(error).split())
    kind = type(error).__name__
    reason = f"{kind}: {message}" if message else kind
    return Ending("failed", reason if len(reason) <= _LONGEST else reason[: _LONGEST - 3] + "...")
