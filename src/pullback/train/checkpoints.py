"""Checkpoints: one file each, which is there whole or not at all, and which knows whether it was damaged.

A checkpoint is a safetensors file: the arrays of a run's state under their names, everything else as JSON in the
metadata, with a checksum over both. It is written beside its place, brought to the disk and renamed, and only then are
older ones removed: at every moment, the newest file that has the name of a checkpoint is a whole one.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Iterator, Mapping

import numpy as np

from ..backends import NUMPY
from ..errors import ConfigurationError, FileFormatError
from ..files.atomic import remove_leftovers, sync_folder
from ..files.safetensors import read_arrays, write_arrays
from .packing import packed, unpacked

_FORMAT = "pullback.training"
_VERSION = "1"
_NAME = re.compile(r"step-(\d{8,})\.safetensors")


def write_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a tree of numbers, strings, arrays and tensors; the file is there whole afterwards, or as it was before.

    >>> import pathlib, tempfile, pullback as pb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "step-00000001.safetensors"
    >>> pb.train.write_checkpoint(path, {"step": 1, "model": {"weight": pb.ones(2)}})
    >>> pb.train.read_checkpoint(path)
    {'step': 1, 'model': {'weight': tensor([1., 1.])}}
    """
    text, arrays = packed(state)
    checksum = _checksum(text, arrays)
    write_arrays(path, arrays, {"format": _FORMAT, "version": _VERSION, "state": text, "checksum": checksum})


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tree that was written, or a `FileFormatError` if a single byte of the file is not as it was written."""
    arrays, metadata = read_arrays(path)
    if metadata.get("format") != _FORMAT:
        raise FileFormatError(f"{os.fspath(path)}: not a checkpoint of a training run, or a damaged one.")
    if metadata.get("version") != _VERSION:
        raise FileFormatError(
            f"{os.fspath(path)}: a checkpoint of version {metadata.get('version')!r:.20}; this library reads "
            f"version {_VERSION}."
        )
    text = metadata.get("state", "")
    if set(metadata) != {"format", "version", "state", "checksum"} or not _is_padded_with_spaces(path):
        raise FileFormatError(f"{os.fspath(path)}: damaged: its header is not as it was written.")
    if _checksum(text, arrays) != metadata["checksum"]:
        raise FileFormatError(f"{os.fspath(path)}: damaged: the checksum does not fit the contents.")
    try:
        state = unpacked(text, arrays)
    except FileFormatError as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from error
    if not isinstance(state, dict):
        raise FileFormatError(f"{os.fspath(path)}: not a checkpoint of a training run.")
    return state


def _checksum(text: str, arrays: Mapping[str, Any]) -> str:
    outline = [[name, NUMPY.dtype_of(arrays[name]).name, list(arrays[name].shape)] for name in sorted(arrays)]
    digest = sha256(json.dumps([_FORMAT, _VERSION, text, outline]).encode())
    for name in sorted(arrays):
        if arrays[name].nbytes:
            digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _is_padded_with_spaces(path: str | os.PathLike[str]) -> bool:
    """Whether the blanks after the header, which mean nothing to a reader, are those that were written."""
    with open(path, "rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
    return header.rstrip(b" ").endswith(b"}")


class CheckpointFolder:
    """The checkpoints of one run: `checkpoints/step-00001200.safetensors`, the newest `keep` of them, and the best.

    >>> import tempfile
    >>> from pullback.train.checkpoints import CheckpointFolder
    >>> checkpoints = CheckpointFolder(tempfile.mkdtemp(), keep=2)
    >>> with checkpoints.claimed():
    ...     for step in (10, 20, 30):
    ...         path = checkpoints.write(step, {"step": step})
    >>> checkpoints.steps(), checkpoints.newest()
    ([20, 30], {'step': 30})
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise ConfigurationError(f"keep={keep}: at least one checkpoint must be kept.")
        self.folder = Path(folder) / "checkpoints"
        self.best = Path(folder) / "best.safetensors"
        self.keep = keep

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        found = {int(match[1]) for name in os.listdir(self.folder) if (match := _NAME.fullmatch(name))}
        return sorted(step for step in found if self.path(step).exists())  # 000000007 is no name of ours

    def refuse_existing(self) -> None:
        """Raise if a run has written here."""
        steps = self.steps()
        if steps:
            raise ConfigurationError(
                f"{self.folder.parent} already holds a run, up to step {steps[-1]}. Pass resume=True to go on with "
                "it, overwrite=True to replace it, or another folder."
            )

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Inside, the folder is there, can be written to, and is no other process's; what a killed one left is gone."""
        self._make()
        with open(self.folder / ".lock", "w") as file:
            _lock(file, self.folder.parent)
            for leftover in self.folder.glob(".step-*.part"):
                leftover.unlink(missing_ok=True)
            remove_leftovers(self.best)
            yield

    def _make(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder) as file:
                file.write(b"can this be written?")
        except OSError as error:
            raise ConfigurationError(
                f"checkpoints cannot be written to {self.folder}: {error.strerror or error}. "
                "Choose another folder, or make this one writable."
            ) from error
        for place in (self.folder.parent, self.folder.parent.parent):  # which may have been made as well
            sync_folder(place)

    def clear(self) -> None:
        """Remove all checkpoints, newest last, so that a run cut off here is still known as one."""
        for step in self.steps():
            self.path(step).unlink()
        self.best.unlink(missing_ok=True)

    def write(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint, then remove those that are too many."""
        path = self.path(step)
        write_checkpoint(path, state)
        for old in self.steps()[: -self.keep]:
            with suppress(FileNotFoundError):
                self.path(old).unlink()
        return path

    def newest(self) -> dict[str, Any] | None:
        """The newest checkpoint, or None; if it is damaged, an error that says what there is instead."""
        steps = self.steps()
        if not steps:
            return None
        try:
            return read_checkpoint(self.path(steps[-1]))
        except FileFormatError as error:
            raise FileFormatError(f"{error} {self._advice(steps[:-1])}") from error

    def _advice(self, older: list[int]) -> str:
        for step in reversed(older):
            try:
                read_checkpoint(self.path(step))
            except FileFormatError:
                continue
            return (
                f"The newest sound checkpoint is {self.path(step).name}: to resume from there, move what is newer "
                "out of the folder. Nothing was changed."
            )
        return "There is no older checkpoint that is sound. Nothing was changed."


def _lock(file: IO[str], folder: Path) -> None:
    """Refuse a folder that another process has locked; the lock goes when the file is closed or its process killed."""
    try:
        import fcntl
    except ImportError:  # the system has no such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            f"another process is training in {folder}. Wait for it to end, or use another folder."
        ) from None
    except OSError:  # the file system has none
        pass
