"""Checkpoints: one file each, which is there whole or not at all, and which knows whether it was damaged.

A checkpoint is a safetensors file: the arrays of a run's state under their names, everything else as JSON in the
metadata, with a checksum over both. It is written beside its place, brought to the disk and renamed, and only then are
older ones removed: at every moment, the newest file that has the name of a checkpoint is a whole one.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from ..backends import NUMPY
from ..errors import ConfigurationError, FileFormatError
from ..files.safetensors import read_arrays, write_arrays
from .packing import packed, unpacked

_FORMAT = "pullback.training"
_VERSION = "1"
_NAME = re.compile(r"step-([0-9]{8,})\.safetensors")
_LEFTOVER = re.compile(r"\.step-[0-9]{8,}\.safetensors\.[a-z0-9_]{8}\.part")


def write_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state`, a tree of numbers, strings, arrays and tensors; the file is whole afterwards, or as it was before.

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
    """The tree that `write_checkpoint` wrote to `path`; a `FileFormatError` if a single byte has changed since.

    >>> import pathlib, tempfile, pullback as pb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "step-00000001.safetensors"
    >>> pb.train.write_checkpoint(path, {"step": 1})
    >>> pb.train.read_checkpoint(path)
    {'step': 1}
    """
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


def is_checkpoint_name(name: str) -> bool:
    """Whether a checkpoint is called so."""
    match = _NAME.fullmatch(name)
    return match is not None and name == _name_of(int(match[1]))  # 000000007 is no name of ours


def is_leftover_name(name: str) -> bool:
    """Whether a checkpoint is called so while it is being written."""
    return _LEFTOVER.fullmatch(name) is not None


def _name_of(step: int) -> str:
    return f"step-{step:08d}.safetensors"


class CheckpointFolder:
    """The checkpoints of one run: `checkpoints/step-00001200.safetensors`, the newest `keep` of them.

    >>> import tempfile
    >>> from pullback.train.checkpoints import CheckpointFolder
    >>> checkpoints = CheckpointFolder(tempfile.mkdtemp(), keep=2)
    >>> checkpoints.folder.mkdir()
    >>> for step in (10, 20, 30):
    ...     path = checkpoints.write(step, {"step": step})
    >>> checkpoints.steps(), checkpoints.newest()
    ([20, 30], {'step': 30})
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise ConfigurationError(f"keep={keep}: at least one checkpoint must be kept.")
        self.folder = Path(folder) / "checkpoints"
        self.keep = keep

    def path(self, step: int) -> Path:
        return self.folder / _name_of(step)

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(name[5:].split(".")[0]) for name in os.listdir(self.folder) if is_checkpoint_name(name))

    def write(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint, then remove those that are too many."""
        path = self.path(step)
        for place in (self.folder, path):
            if place.is_symlink():
                raise ConfigurationError(f"{place} is a symbolic link, so it is neither replaced nor followed.")
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
