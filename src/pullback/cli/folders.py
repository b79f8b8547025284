"""The folders of runs: choosing a free one, finding one to go on with, what the command that trains writes there."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from ..errors import ConfigurationError
from ..files.atomic import atomic_write
from ..train.run_folder import LOG, LOSS_PICTURE, REPORT, RunFolder, Wording

CONFIGURATION = "config.toml"
WEIGHTS = "model.safetensors"
RESULTS = "results.json"
PICTURE = "predictions.svg"
SAMPLE = "sample.txt"
_DATA = "# Data: sha256 "


@contextmanager
def next_free(name: str, parent: Path) -> Iterator[Path]:
    """A new folder `runs/<name>-<n>`, numbered above all that are there; it goes again if the block leaves it empty."""
    runs = parent / "runs"
    made = not runs.is_dir()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        number = max(_numbers(name, parent), default=0) + 1
        while True:
            folder = runs / f"{name}-{number}"
            with suppress(FileExistsError):  # a run that began at the same time has it: it can be made only once
                folder.mkdir()
                break
            number += 1
    except OSError as error:
        raise ConfigurationError(
            f"a run cannot be written to {runs}: {error.strerror or error}. Name another place with --folder."
        ) from error
    try:
        yield folder
    finally:
        with suppress(OSError):  # there is something in it, as there should be
            folder.rmdir()
            if made:
                runs.rmdir()


def latest(name: str, parent: Path) -> Path:
    """The run of that name with the highest number; a folder that was made and never used is none."""
    found = [parent / "runs" / f"{name}-{number}" for number in sorted(_numbers(name, parent), reverse=True)]
    if not found:
        first = parent / "runs" / f"{name}-1"
        raise ConfigurationError(f"there is no run to resume: no folder {first}. Name it with --folder.")
    return next((folder for folder in found if RunFolder(folder).marker() is not None), found[0])


def _numbers(name: str, parent: Path) -> list[int]:
    runs = parent / "runs"
    names = [path.name for path in runs.iterdir()] if runs.is_dir() else []
    found = (re.fullmatch(rf"{re.escape(name)}-([0-9]+)", entry) for entry in names)
    return [int(match[1]) for match in found if match]


@dataclass(frozen=True)
class Owner:
    """A command whose runs have folders: its name, the option that names a folder, and the files that it writes."""

    command: str
    option: str
    files: tuple[str, ...]

    @property
    def _mark(self) -> str:
        """How a configuration of its begins."""
        command = f"pullback {self.command}"
        return f"# Written by `{command}`. To go on with this run: {command} --resume {self.option} FOLDER\n"

    @property
    def _wording(self) -> Wording:
        return Wording("--resume", "--overwrite", f"another {self.option}")

    def check_new(self, path: Path, overwrite: bool) -> None:
        """Refuse a folder that has something in it which may not be replaced."""
        folder = RunFolder(path, self._wording)
        folder.settle()
        if not overwrite and folder.marker() is not None and not self._is_ours(path / CONFIGURATION):
            raise ConfigurationError(
                f"{path} already holds a run, which has no {CONFIGURATION} to go on with. Pass --overwrite to replace "
                f"it, or another {self.option}."
            )
        folder.check((*self.files, LOG, REPORT, LOSS_PICTURE), overwrite=overwrite, empty=True)

    def configuration_of(self, path: Path, needed: bool) -> Path | None:
        """The configuration of the run in a folder; None if it ended before that was written and is not `needed`."""
        folder = RunFolder(path, self._wording)
        folder.settle()  # the run that was here before may have to come back first
        marker, found = folder.marker(), path / CONFIGURATION
        if marker is None:
            raise ConfigurationError(
                f"{path} holds no run of `pullback {self.command}`, so there is nothing to resume: leave --resume out."
            )
        if CONFIGURATION in marker.files:
            folder.place(CONFIGURATION, marker)
            if self._is_ours(found):
                return found
        if needed or folder.last_step() is not None:
            raise ConfigurationError(
                f"{path} holds a run, but no {CONFIGURATION} of `pullback {self.command}` to go on with: it was cut "
                "off before that was written, or is another program's. Name what to train, with --overwrite to replace "
                "the run."
            )
        return None

    def check_data(self, folder: Path, fingerprint: str) -> None:
        """Refuse to resume a run with other data than those that it began with."""
        lines = (folder / CONFIGURATION).read_text(encoding="utf-8").splitlines()
        if f"{_DATA}{fingerprint}" not in lines[:2]:
            raise ConfigurationError(
                f"{folder}: the data are not those that this run began with, so it cannot be resumed. Bring them back, "
                "or start a new run without --resume."
            )

    def write(self, folder: Path, name: str, text: str) -> None:
        """Write a file of the run's own."""
        with atomic_write(self.own_path(folder, name)) as file:
            file.write(text.encode())

    def own_path(self, folder: Path, name: str) -> Path:
        """The path of a file that is the run's own."""
        return RunFolder(folder, self._wording).claim(name)

    def begin(self, folder: Path, configuration: str, fingerprint: str) -> None:
        """Write the configuration of a new run."""
        self.write(folder, CONFIGURATION, f"{self._mark}{_DATA}{fingerprint}\n{configuration}")

    def _is_ours(self, path: Path) -> bool:
        if not path.is_file() or path.is_symlink():
            return False
        mark = self._mark.encode()
        with path.open("rb") as file:
            return file.read(len(mark)) == mark


TRAIN = Owner("train", "--folder", (CONFIGURATION, WEIGHTS, RESULTS, PICTURE, SAMPLE))


def new_folder(path: str) -> Path:
    """A folder that is to be written, and must be new or empty."""
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there and not an empty folder: name another --out.")
    return folder
