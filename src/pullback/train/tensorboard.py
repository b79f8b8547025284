"""Event files for TensorBoard, written without it.

A file is a sequence of records, each framed by its length and masked checksums; a record is a protocol buffer of the
type Event. Of these only the few fields below are needed to show scalars.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Mapping

from .callbacks import Callback, Record
from .destination import destination, name_in
from .figures import count
from .run_folder import TENSORBOARD, RunFolder

if TYPE_CHECKING:
    from .history import History
    from .trainer import Trainer

__all__ = ["EventFile", "TensorBoard", "crc32c"]

_FLUSH_SECONDS = 2.0
_NOT_VALUES = ("step", "epoch", "seconds")
_START = 1  # the status of a log that says where a run begins
_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_HEAD = struct.Struct("<BdB")  # wall_time with its tag, and the tag of step
_FLOAT = struct.Struct("<Bf")


class TensorBoard(Callback):
    """Writes scalars for TensorBoard, by default into the folder `tensorboard` of the trainer's folder.

    Tags are `train/loss`, `train/learning_rate`, ... for every step, `validation/loss`, `validation/accuracy`, ... for
    every validation, and `epoch/loss`, ... for every epoch. A resumed run writes a new file, which begins by telling
    TensorBoard to forget what the interrupted one wrote after the checkpoint. Look at it with
    `tensorboard --logdir FOLDER`.

    >>> import pathlib, tempfile
    >>> from pullback.train.tensorboard import EventFile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with EventFile(folder) as file:
    ...     file.scalars(1, {"train/loss": 0.5})
    >>> [path.name.startswith("events.out.tfevents.") for path in folder.iterdir()]
    [True]
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._given = folder
        self._file: EventFile | None = None
        self._step = 0
        self._values: dict[str, float] = {}  # those of the last step: a checkpoint may come between two of them

    def files(self, folder: Path) -> list[str]:
        return [TENSORBOARD] if self._given is None else []

    def on_start(self, trainer: Trainer) -> None:
        self._close()
        folder, name = self._folder(trainer), event_file_name()
        own = None if trainer.folder is None else name_in(trainer.folder, folder / name, name)
        if own is not None:
            assert trainer.folder is not None
            RunFolder(trainer.folder).claim(own)
        self._file = EventFile(folder, name)
        if self._step == trainer.step:
            self._file.restart(trainer.step)
            self._file.scalars(trainer.step, self._values, flush=True)
        else:  # a new run, or the first that is written for TensorBoard
            self._file.restart(trainer.step + 1 if trainer.step else 0)
            self._step, self._values = trainer.step, {}

    def _folder(self, trainer: Trainer) -> Path:
        """The folder of the event files, which others may write to as well if the user named it."""
        if self._given is None:
            folder = destination(trainer, None, TENSORBOARD, "TensorBoard")
        else:
            folder = Path(self._given)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def on_step(self, trainer: Trainer, record: Record) -> None:
        self._write(record["step"], {f"train/{name}": record[name] for name in record if name not in _NOT_VALUES})

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        before = "validation_"
        values = {f"validation/{name.removeprefix(before)}": record[name] for name in record if name.startswith(before)}
        self._write(record["step"], values, flush=True)

    def on_epoch(self, trainer: Trainer, record: Record) -> None:
        names = [name for name in record if name not in _NOT_VALUES and not name.startswith("validation_")]
        self._write(record["step"], {f"epoch/{name}": record[name] for name in names}, flush=True)

    def on_checkpoint(self, trainer: Trainer, path: Path) -> None:
        if self._file is not None:  # what came before the checkpoint is not written again by a resumed run
            self._file.flush()

    def on_end(self, trainer: Trainer, history: History) -> None:
        self._close()

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        self._close()

    def state_dict(self) -> dict[str, Any]:
        """What was written of the last step; what comes after the checkpoint is written again by a resumed run."""
        return {"step": self._step, "values": {tag: str(float(value)) for tag, value in self._values.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        values = {tag: float(value) for tag, value in state["values"].items()}
        self._step, self._values = count(state, "step"), values

    def _write(self, step: int, values: dict[str, float], flush: bool = False) -> None:
        if self._file is None:
            return
        self._file.scalars(step, values, flush)
        if step == self._step:
            self._values |= values
        else:
            self._step, self._values = step, values

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class EventFile:
    """A new event file in a folder; it is read after those that are there already."""

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self._file: IO[bytes] = open(folder / (name or event_file_name()), "xb")  # noqa: SIM115 (closed by `close`)
        self._flushed = time.monotonic()
        self._tags: dict[str, bytes] = {}
        self._event(0, _field(3, b"brain.Event:2"))
        self.flush()

    def restart(self, step: int) -> None:
        """Say that the run goes on with `step`: what earlier files have of that step and later ones is void."""
        self._event(step, _field(7, bytes([0x08, _START])))
        self.flush()

    def scalars(self, step: int, values: Mapping[str, float], flush: bool = False) -> None:
        """Write numbers by tag; they reach the file within seconds, or at once with `flush`."""
        if values:
            self._event(step, _field(5, b"".join([self._value(tag, value) for tag, value in values.items()])))
        if flush or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _value(self, tag: str, value: float) -> bytes:
        """A Summary.Value with a tag and a simple_value."""
        start = self._tags.get(tag)
        if start is None:  # all but the number is the same each time
            named = _field(1, tag.encode())
            start = self._tags[tag] = _field(1, named + bytes(5))[: -_FLOAT.size]
        return start + _FLOAT.pack(0x15, _single(value))

    def _event(self, step: int, what: bytes) -> None:
        data = _HEAD.pack(0x09, time.time(), 0x10) + _varint(step) + what
        length = _LENGTH.pack(len(data))
        self._file.write(length + _masked(length) + data + _masked(data))


def event_file_name() -> str:
    """A name that comes after those there are: TensorBoard reads files in the order of their names."""
    import socket

    now = time.time_ns()  # fine enough for a restart
    return f"events.out.tfevents.{now // 10**9:010d}.{now % 10**9:09d}.{socket.gethostname()}.{os.getpid()}"


def _single(value: float) -> float:
    """A number that fits into 32 bits; one too large is infinite."""
    return value if -3.4e38 < value < 3.4e38 or value != value else float("inf") * (1 if value > 0 else -1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    """A field whose content is given by its length: text, or a message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


# -- checksums ---------------------------------------------------------------------------------------


def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = row >> 1 ^ (0x82F63B78 if row & 1 else 0)
        rows.append(row)
    return tuple(rows)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) checksum.

    >>> from pullback.train.tensorboard import crc32c
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = _TABLE, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    """The checksum, rotated and shifted: one of data that itself holds checksums would be weak."""
    crc = crc32c(data)
    return _CHECKSUM.pack(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
