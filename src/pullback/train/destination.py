"""Where an observer of a run writes to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from .trainer import Trainer


def destination(trainer: Trainer, given: str | os.PathLike[str] | None, name: str, observer: str) -> Path:
    """The path a user gave, or `name` in the trainer's folder; its parent is there afterwards."""
    if given is not None:
        path = Path(given)
    elif trainer.folder is not None:
        path = trainer.folder / name
    else:
        raise ConfigurationError(
            f"{observer}: no place to write to. Pass one, {observer}({name!r}), or give the trainer a folder, "
            "Trainer(..., folder='runs/first')."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
