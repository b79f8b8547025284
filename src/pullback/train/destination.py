"""Where an observer of a run writes to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from .run_folder import RunFolder

if TYPE_CHECKING:
    from .trainer import Trainer


def name_in(folder: Path, given: str | os.PathLike[str] | None, name: str) -> str | None:
    """What a file is called in a run's folder: `name`, or as the user said; None for one that is elsewhere."""
    if given is None:
        return name
    path = Path(os.path.abspath(given))
    inside = Path(os.path.abspath(folder))
    return path.relative_to(inside).as_posix() if path != inside and path.is_relative_to(inside) else None


def destination(
    trainer: Trainer, given: str | os.PathLike[str] | None, name: str, observer: str, beginning: bytes = b""
) -> Path:
    """The path a user gave, or `name` in the trainer's folder; its parent is there afterwards.

    In the folder it must be the run's own; elsewhere a file is one to replace if it has the `beginning` of ours.
    """
    own = None if trainer.folder is None else name_in(trainer.folder, given, name)
    if own is not None:
        assert trainer.folder is not None
        path = RunFolder(trainer.folder).claim(own)
    elif given is not None:
        path = Path(given)
        if path.is_file() and not _begins(path, beginning):
            raise ConfigurationError(
                f"{observer}: {path} was not written by a {observer}, so it is not replaced. Choose another name."
            )
    else:
        raise ConfigurationError(
            f"{observer}: no place to write to. Pass one, {observer}({name!r}), or give the trainer a folder, "
            "Trainer(..., folder='runs/first')."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _begins(path: Path, beginning: bytes) -> bool:
    """Whether a file begins so; an empty one holds nothing that could be lost."""
    with path.open("rb") as file:
        start = file.read(len(beginning))
    return start in (b"", beginning)
