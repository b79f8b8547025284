"""Run folders: finding a free one, finding one to go on with, and never writing over what is not ours."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import ConfigurationError
from ..files.atomic import atomic_write

CONFIGURATION = "config.toml"
WEIGHTS = "model.safetensors"
RESULTS = "results.json"
PICTURE = "predictions.svg"
SAMPLE = "sample.txt"
_MADE_AT_THE_END = (WEIGHTS, RESULTS, PICTURE, SAMPLE)
_MARK = "# Written by `pullback train`. To go on with this run: pullback train --resume --folder FOLDER\n"
_DATA = "# Data: sha256 "


def next_free(name: str, parent: Path) -> Path:
    """`runs/<name>-<n>` with a number above all that are there."""
    return parent / "runs" / f"{name}-{max(_numbers(name, parent), default=0) + 1}"


def latest(name: str, parent: Path) -> Path:
    """The run of that name with the highest number."""
    numbers = _numbers(name, parent)
    if not numbers:
        first = parent / "runs" / f"{name}-1"
        raise ConfigurationError(f"there is no run to resume: no folder {first}. Name it with --folder.")
    return parent / "runs" / f"{name}-{max(numbers)}"


def _numbers(name: str, parent: Path) -> list[int]:
    runs = parent / "runs"
    names = [path.name for path in runs.iterdir()] if runs.is_dir() else []
    found = (re.fullmatch(rf"{re.escape(name)}-(\d+)", entry) for entry in names)
    return [int(match[1]) for match in found if match]


def configuration_of(folder: Path) -> Path:
    """The configuration of the run in a folder."""
    path = folder / CONFIGURATION
    if not _is_ours(path):
        raise ConfigurationError(f"{folder} holds no run of `pullback train` (it has no {CONFIGURATION} of one).")
    return path


def check_new(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that has something in it which may not be replaced. Changes nothing."""
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; a run needs a folder.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    is_run = _is_ours(folder / CONFIGURATION)
    if not overwrite:
        held = "already holds a run" if is_run else "already has files in it"
        resume = "--resume to go on with it, " if is_run else ""
        raise ConfigurationError(
            f"{folder} {held}. Pass {resume}--overwrite to replace {'it' if is_run else 'those of a run'}, or another "
            "--folder."
        )
    taken = [name for name in (CONFIGURATION, *_MADE_AT_THE_END, "checkpoints") if (folder / name).exists()]
    if taken and not is_run:
        raise ConfigurationError(
            f"{folder} has {taken[0]}, which is not of a run of `pullback train`, so it is not replaced. Choose "
            "another --folder."
        )


def check_data(folder: Path, fingerprint: str) -> None:
    """Refuse to resume a run with other data than those that it began with."""
    lines = (folder / CONFIGURATION).read_text(encoding="utf-8").splitlines()
    if f"{_DATA}{fingerprint}" not in lines[:2]:
        raise ConfigurationError(
            f"{folder}: the data are not those that this run began with, so it cannot be resumed. Bring them back, or "
            "start a new run without --resume."
        )


def begin(folder: Path, configuration: str, fingerprint: str) -> None:
    """Make a folder that of a new run: with its configuration, and without the results of an old one."""
    with atomic_write(folder / CONFIGURATION) as file:
        file.write(f"{_MARK}{_DATA}{fingerprint}\n{configuration}".encode())
    for name in _MADE_AT_THE_END:
        (folder / name).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK.encode()
