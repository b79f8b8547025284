"""Datasets and batches."""

import typing as _typing

from .arrays import ArrayDataset, Subset, random_split
from .batches import Batches
from .text import Characters, TextWindows

__all__ = [
    "ArrayDataset", "Batches", "Characters", "Subset", "TextWindows", "random_split",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> object:
        from ..pytorch_names import missing

        raise missing(__name__, name)


def __dir__() -> list[str]:
    return __all__
