"""A run that is overwritten is set aside until the new one has a checkpoint, and put back if it gets none.

The marker says how far that is, and every step is a rename or a rewritten marker, so that a process may die between
any two of them:

    plain (old)      the old run; its files are where they were
    moving (old)     files are going to `replaced-run`, or coming back: coming back is always right
    replacing        the marker is the new run's, with the old one's list; all of the old one is in `replaced-run`
    plain (new)      the new run; nothing is left of the old one
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Iterable

from ..files.atomic import remove_leftovers, sync_folder
from .checkpoints import is_checkpoint_name
from .marker import Marker, read_marker, write_marker

ASIDE = "replaced-run"
_CHECKPOINTS = "checkpoints"


def set_aside(folder: Path) -> None:
    """From plain (old) to replacing."""
    marker = _marker(folder)
    write_marker(folder, Marker(marker.files, is_moving=True))
    (folder / ASIDE).mkdir(exist_ok=True)
    _move(marker.files, folder, folder / ASIDE)
    stay = tuple(name for name in marker.files if (folder / name).is_dir())  # as others may have files in them
    write_marker(folder, Marker(stay, replaced=marker.files))


def put_back(folder: Path) -> None:
    """From moving or replacing to plain (old)."""
    marker = _marker(folder)
    if marker.replaced is not None:
        _remove(marker.files, folder)
        for name in set(marker.files) - set(marker.replaced):
            with suppress(OSError):  # no folder, or others have files in it
                (folder / name).rmdir()
        marker = Marker(marker.replaced, is_moving=True)
        write_marker(folder, marker)
    _move(marker.files, folder / ASIDE, folder)
    _remove_folders(marker.files, folder / ASIDE)
    write_marker(folder, replace(marker, is_moving=False))


def drop(folder: Path) -> None:
    """From replacing to plain (new)."""
    marker = _marker(folder)
    assert marker.replaced is not None
    _remove(marker.replaced, folder / ASIDE)
    _remove_folders(marker.replaced, folder / ASIDE)
    write_marker(folder, replace(marker, replaced=None))


def _marker(folder: Path) -> Marker:
    marker = read_marker(folder)
    assert marker is not None
    return marker


def _own_files(names: Iterable[str], folder: Path) -> list[str]:
    """The plain files of a run, by their names in `folder`; its checkpoints are known by their names."""
    found = []
    for name in names:
        path = folder / name
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISREG(path.lstat().st_mode):
                found.append(name)
    checkpoints = folder / _CHECKPOINTS
    if checkpoints.is_dir() and not checkpoints.is_symlink():
        # Oldest first, so that the newest is the last to go wherever this is cut off.
        found += [f"{_CHECKPOINTS}/{name}" for name in sorted(os.listdir(checkpoints)) if is_checkpoint_name(name)]
    return found


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    for name in _own_files(names, source):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(source / name, target / name)
    for place in {target / Path(name).parent for name in names} | {target, target / _CHECKPOINTS}:
        sync_folder(place)


def _remove(names: Iterable[str], folder: Path) -> None:
    for name in _own_files(names, folder):
        (folder / name).unlink(missing_ok=True)
    for name in names:
        remove_leftovers(folder / name)


def _remove_folders(names: Iterable[str], folder: Path) -> None:
    """Remove what is left of the place where a run was set aside; what others put there stays."""
    inner = {Path(name).parent for name in names} | {Path(_CHECKPOINTS), Path()}
    for path in sorted(inner, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            (folder / path).rmdir()
