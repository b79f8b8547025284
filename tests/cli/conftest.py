"""A folder of one's own for every test, and the program run inside the process."""

from __future__ import annotations

from typing import Callable, NamedTuple

import pytest

from pullback.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pullback(capsys) -> Callable[..., Outcome]:
    """`pullback("train", ...)` runs the program with these arguments."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:  # how argparse ends
            code = error.code
        return Outcome(code, *capsys.readouterr())

    return run
