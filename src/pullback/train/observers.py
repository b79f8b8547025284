"""Who watches a run: the callbacks it was given, and what it has where nobody gave one."""

from __future__ import annotations

from typing import Iterable

from .callbacks import Callback
from .progress import Progress, someone_looks
from .report import Report


class Defaults:
    """A progress display and a report, for runs whose callbacks have none.

    They stay the same from one call of `fit` to the next, as a report has the curves of the whole run.

    >>> from pullback.train.observers import Defaults
    >>> defaults = Defaults(progress=True, report=False)
    >>> [type(callback).__name__ for callback in defaults.added_to([])]
    ['Progress']
    """

    def __init__(self, progress: bool | None, report: bool) -> None:
        self._wants_progress = progress
        self._progress = Progress()
        self._report = Report() if report else None

    def added_to(self, callbacks: Iterable[Callback]) -> list[Callback]:
        """The callbacks and after them the defaults, which so hear of what those before put into records."""
        observers = list(callbacks)
        if self._report is not None and not any(isinstance(callback, Report) for callback in observers):
            observers.append(self._report)
        wanted = someone_looks() if self._wants_progress is None else self._wants_progress
        if wanted and not any(isinstance(callback, Progress) for callback in observers):
            observers.append(self._progress)
        return observers
