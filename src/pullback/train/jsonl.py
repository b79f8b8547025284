"""The log of a run: a line of JSON for every step, validation, epoch and event."""

from __future__ import annotations

import json
import math
import os
import time
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, FileFormatError
from .callbacks import Callback, Record
from .destination import destination, name_in
from .endings import ending_after, ending_by
from .figures import count
from .run_folder import LOG

if TYPE_CHECKING:
    from .history import History
    from .trainer import Trainer

__all__ = ["JsonLines", "read_log"]

_BEGINNING = b'{"kind":'
_NOT_FINITE = "not_finite"
_BLOCK = 1 << 16  # read at once when looking for the end of a line


class JsonLines(Callback):
    """Writes the log of a run, by default `log.jsonl` in the trainer's folder, one JSON object a line.

    `"kind"` says what a line is: `"start"`, `"step"` (every `every` steps), `"validation"`, `"epoch"`, `"end"` or
    `"error"`; the rest is the record. The last two have a `"status"` ("finished", "stopped" or "failed") and the
    `"stop_reason"`. JSON has no NaN and no infinity: such a value is `null`, and `"not_finite"` has
    its name and what it was. Every line is with the operating system as soon as it is written. A resumed run cuts off
    what was written after its checkpoint and goes on from there, so that the log is that of an undisturbed run, but
    for the times. `read_log` reads it.

    Parameters
    ----------
    path : str or path, optional
        The log's file, by default `log.jsonl` in the trainer's folder.
    every : int
        Only every so many steps have a line.

    Examples
    --------
    >>> from pullback.train.jsonl import line_of
    >>> line_of("step", {"step": 3, "loss": float("nan")})
    '{"kind":"step","step":3,"loss":null,"not_finite":{"loss":"nan"}}'
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, every: int = 1) -> None:
        if every < 1:
            raise ConfigurationError(f"JsonLines: every={every} must be at least 1: a line for every so many steps.")
        self._given = path
        self._every = every
        self._file: FileIO | None = None
        self._offset: int | None = None  # how long the log is; None before anything was written

    def files(self, folder: Path) -> list[str]:
        name = name_in(folder, self._given, LOG)
        return [] if name is None else [name]

    def on_start(self, trainer: Trainer) -> None:
        self._close()
        path = destination(trainer, self._given, LOG, "JsonLines", _BEGINNING)
        begins = trainer.step == 0  # else it goes on: after a checkpoint, or after an earlier call of fit
        self._file, self._offset = _opened(path, 0 if begins else self._offset or 0)
        if begins:
            self._write("start", {"step": trainer.step, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})

    def on_step(self, trainer: Trainer, record: Record) -> None:
        if record["step"] % self._every == 0:
            self._write("step", record)

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        self._write("validation", record)

    def on_epoch(self, trainer: Trainer, record: Record) -> None:
        self._write("epoch", record)

    def on_end(self, trainer: Trainer, history: History) -> None:
        try:
            status, reason = ending_after(history)
            self._write("end", {"step": trainer.step, "status": status, "stop_reason": reason})
        finally:
            self._close()

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        try:
            status, reason = ending_by(error)
            text = f"{type(error).__name__}: {error}"
            self._write("error", {"step": trainer.step, "status": status, "stop_reason": reason, "error": text})
        finally:
            self._close()

    def state_dict(self) -> dict[str, Any]:
        """How long the log is now; what a resumed run finds after that is of steps it will make again."""
        if self._file is not None:
            os.fsync(self._file.fileno())  # the checkpoint will be on the disk, so its log must be
        return {"offset": self._offset}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._offset = None if state["offset"] is None else count(state, "offset")

    def _write(self, kind: str, record: Record) -> None:
        if self._file is None:  # an error before the start
            return
        line = line_of(kind, record).encode() + b"\n"
        rest = memoryview(line)
        while rest:  # a disk that is nearly full takes a part, and says so at the next one
            rest = rest[self._file.write(rest) :]
        self._offset = (self._offset or 0) + len(line)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def line_of(kind: str, record: Record) -> str:
    """A line of the log, without its end."""
    values = {name: _plain(value) for name, value in record.items()}
    bad = {name: str(value) for name, value in values.items() if isinstance(value, float) and not math.isfinite(value)}
    if bad:
        values = {name: None if name in bad else value for name, value in values.items()} | {_NOT_FINITE: bad}
    return json.dumps({"kind": kind, **values}, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """A value that JSON knows: a number of NumPy's, or a tensor of one element, becomes Python's."""
    return value if isinstance(value, int | float | str | None) else value.item()


def read_log(path: str | os.PathLike[str]) -> list[Record]:
    """The lines of a log as dictionaries, NaN and infinity where they were; a last line that was cut off is left out.

    Parameters
    ----------
    path : str or path
        What `JsonLines` wrote: `log.jsonl` in the trainer's folder.

    Returns
    -------
    list of dict
        One for each line; "kind" says what it is.

    Examples
    --------
    >>> import pathlib, tempfile, pullback as pb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> _ = path.write_text('{"kind":"step","step":1,"loss":null,"not_finite":{"loss":"inf"}}\\n{"kind":"st')
    >>> pb.train.read_log(path)
    [{'kind': 'step', 'step': 1, 'loss': inf}]
    """
    records = []
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):  # what is after the last line's end was cut off, or is nothing
        try:
            record = json.loads(line)
            record |= {name: float(value) for name, value in record.pop(_NOT_FINITE, {}).items()}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise FileFormatError(f"{path}, line {number}: not a line of a training log: {line[:80]!r}.") from error
        records.append(record)
    return records


def _opened(path: Path, offset: int) -> tuple[FileIO, int]:
    """The file and its length, cut off at `offset`, or after the last whole line before it if it was changed."""
    # Without a buffer: what could not be written is not tried again when the file is closed. It stays open for the run.
    file = open(path, "r+b" if path.exists() else "w+b", buffering=0)  # noqa: SIM115
    length = _end_of_lines(file, min(offset, file.seek(0, os.SEEK_END)))
    file.truncate(length)
    file.seek(length)
    return file, length


def _end_of_lines(file: FileIO, end: int) -> int:
    """Where the last whole line before `end` is over."""
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
