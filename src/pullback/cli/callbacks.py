"""What commands that train hook into their runs."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import numpy as np

from .. import train
from ..autodiff.graph import library_at_work
from .folders import Owner


@contextmanager
def told_by_command() -> Iterator[None]:
    """Inside, nobody hears of a run but through the command: no warnings, and no lines of code in errors."""
    # what becomes of an overflow is reported by the trainer
    with np.errstate(all="ignore"), warnings.catch_warnings(), library_at_work():
        warnings.filterwarnings("ignore", category=train.NotCompiledWarning)  # it is told by `Notice`
        yield


class Beginning(train.Callback):
    """Writes what a new run is of, once the trainer has made sure that it may; None for one that has begun before."""

    def __init__(self, owner: Owner, configuration: str | None, fingerprint: str) -> None:
        self.owner = owner
        self.configuration = configuration
        self.fingerprint = fingerprint

    def files(self, folder: Path) -> list[str]:
        return list(self.owner.files)

    def on_start(self, trainer: train.Trainer) -> None:
        assert trainer.folder is not None
        if self.configuration is not None:
            self.owner.begin(trainer.folder, self.configuration, self.fingerprint)


class Notice(train.Callback):
    """Says that steps are not compiled, and why, unless the configuration wants it so."""

    def on_start(self, trainer: train.Trainer) -> None:
        self._is_told = False
        self._tell(trainer)

    def on_step(self, trainer: train.Trainer, record: train.Record) -> None:
        self._tell(trainer)

    def _tell(self, trainer: train.Trainer) -> None:
        reason = trainer.why_not_compiled
        if reason is not None and not self._is_told:
            self._is_told = True
            print(f"steps are not compiled: {reason.rstrip('.')}.", file=sys.stderr, flush=True)
