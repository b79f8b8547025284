"""Type checkers accept what users write, and find their mistakes; `make types` asks pyright, too."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import pullback as pb
from tests.backends.installed import needs

from .checking import MISTAKES, PROGRAMS, PUBLIC, gather, mypy, wrong_lines

SOURCE = Path(pb.__file__).parents[1]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run(path, capsys):
    assert runpy.run_path(str(path))["main"]() is not None


@needs("mypy", "checking types")
def test_programs_and_public_names_are_accepted_and_mistakes_are_found(tmp_path):
    gather(tmp_path)
    reported = mypy(tmp_path, SOURCE)
    mistakes = reported.pop(MISTAKES.name)
    assert reported == {}
    assert set(mistakes) == wrong_lines(MISTAKES)


@pytest.mark.parametrize("module", PUBLIC)
def test_only_public_names_are_listed(module):
    namespace = PUBLIC[module]
    assert sorted(dir(namespace)) == sorted(set(namespace.__all__))
    assert [name for name in namespace.__all__ if name.startswith("_") or not hasattr(namespace, name)] == []


def test_names_imported_by_a_star_are_the_public_ones():
    namespace: dict[str, object] = {}
    exec("from pullback import *", namespace)
    assert {name for name in namespace if name != "__builtins__"} == set(dir(pb))
