"""The marker of a run's folder, `run.json`: what the run has written there, and which run it overwrites."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import FileFormatError
from ..files.atomic import atomic_write, permissions, sync_folder

MARKER = "run.json"
_FORMAT = "pullback.run"
_VERSION = 1
_LARGEST = 10_000_000  # bytes: far more than any run's


@dataclass(frozen=True)
class Marker:
    """What a run says about itself.

    `files` are names in the folder that are its own, "/" between their parts. While a run is overwritten,
    `is_moving` says that files are partly in the place where they are set aside, and `replaced` has the files of
    the one that is there whole.
    """

    files: tuple[str, ...]
    is_moving: bool = False
    replaced: tuple[str, ...] | None = None

    @property
    def is_pending(self) -> bool:
        """Whether there is another run beside this one, of which only one is to stay."""
        return self.is_moving or self.replaced is not None

    def with_files(self, *names: str) -> Marker:
        return replace(self, files=tuple(dict.fromkeys((*self.files, *names))))

    def text(self) -> bytes:
        content: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "files": list(self.files)}
        if self.is_moving:
            content["moving"] = True
        if self.replaced is not None:
            content["replaced"] = list(self.replaced)
        return json.dumps(content, indent=1).encode() + b"\n"


def read_marker(folder: Path) -> Marker | None:
    """The marker in a folder; None if there is none, or a file of that name which is something else."""
    path = folder / MARKER
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LARGEST + 1)
    if f'"{_FORMAT}"'.encode() not in text[:100]:
        return None
    try:
        content = json.loads(text[:_LARGEST])
        if content["format"] != _FORMAT:
            return None
        if content["version"] != _VERSION:
            raise FileFormatError(
                f"{path}: of version {content['version']!r:.20}; this library reads version {_VERSION}."
            )
        replaced = content.get("replaced")
        return Marker(
            _checked_names(content["files"]),
            content.get("moving", False) is True,
            None if replaced is None else _checked_names(replaced),
        )
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileFormatError(
            f"{path}: damaged, so it is not known what is this run's ({type(error).__name__}: {error!s:.80}). "
            "Nothing was changed. Choose another folder."
        ) from error


def _checked_names(names: Any) -> tuple[str, ...]:
    """Names that stay inside a folder: what is listed may be moved and removed."""
    if not isinstance(names, list):
        raise ValueError("the names are no list")
    for name in names:
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts) or parts[0] == MARKER:
            raise ValueError(f"{name!r} cannot be a run's")
    return tuple(names)


def create_marker(folder: Path, marker: Marker) -> None:
    """Write the first marker of a folder, whole or not at all; a `FileExistsError` if there is one."""
    # A name like those of `atomic_write`, so that what a killed process leaves is known.
    descriptor, temporary = tempfile.mkstemp(".part", f".{MARKER}.", folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(temporary, permissions(folder / MARKER))  # mkstemp's are private
            file.write(marker.text())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, folder / MARKER)  # unlike a rename, it never replaces
        except FileExistsError:
            raise
        except OSError:  # the file system has no second names
            if os.path.lexists(folder / MARKER):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder / MARKER)) from None
            os.rename(temporary, folder / MARKER)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    sync_folder(folder)


def write_marker(folder: Path, marker: Marker) -> None:
    """Replace a run's own marker."""
    with atomic_write(folder / MARKER) as file:
        file.write(marker.text())
