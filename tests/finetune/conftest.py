"""Tokenizers that the tests share: training one takes longer than what is tried on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pullback.finetune import Tokenizer

from .folders import TEMPLATES, write_folder


@pytest.fixture(scope="session")
def tokenizer_with(tmp_path_factory: pytest.TempPathFactory):
    """A function from a template's name to a tokenizer that has it."""

    @cache
    def made(name: str) -> Tokenizer:
        folder = Path(tmp_path_factory.mktemp("tokenizers")) / name
        return Tokenizer(write_folder(folder, TEMPLATES[name]))

    return made
