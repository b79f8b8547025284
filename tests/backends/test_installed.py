"""NumPy, pytest and Hypothesis are enough to collect the suite: what needs another library is skipped, not broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .installed import is_installed, needs, optional

ROOT = Path(__file__).parents[2]

#: Imports every test module as if nothing were installed but the named libraries and what has been imported by then.
PROGRAM = """
import importlib, sys
from importlib.machinery import PathFinder
from pathlib import Path
import hypothesis, numpy, pytest

there = {name.partition(".")[0] for name in sys.modules} | set(sys.stdlib_module_names) | set(sys.argv[1:])
there |= {"pullback", "tests", "benchmarks", "scripts", "website"}

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] in there else None

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
failed = 0
for path in sorted(Path("tests").rglob("*.py")):
    if path.name == "conftest.py" or path.name.startswith("test_"):
        try:
            importlib.import_module(".".join(path.with_suffix("").parts))
        except pytest.skip.Exception:
            pass
        except Exception as error:
            failed += 1
            print(f"{path}: {type(error).__name__}: {error}")
import tests.conftest
tests.conftest.pytest_configure(None)
sys.exit(failed > 0)
"""


@pytest.mark.parametrize(
    "installed",
    [[], ["llvmlite"]],  # without it, whole folders are skipped before they import anything
    ids=["nothing else", "llvmlite"],
)
def test_every_module_of_tests_can_be_imported_without_other_libraries(installed: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-c", PROGRAM, *installed]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_library_that_is_there_is_itself() -> None:
    assert optional("json.decoder") is sys.modules["json.decoder"]
    assert is_installed("json")
    with pytest.raises(ModuleNotFoundError, match=r"json\.nothing"):  # a slip, which must not skip anything
        optional("json.nothing")


def test_a_library_that_is_not_there_skips_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = optional("no_such_library.part")
    assert not is_installed("no_such_library")
    for use in (lambda: missing.function, lambda: missing(1), lambda: isinstance(1, missing.Class)):
        with pytest.raises(pytest.skip.Exception, match="no_such_library is not installed"):
            use()
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # as in a table of a module: names are given, calls are not made
    assert missing.function.attribute is missing
    assert not hasattr(missing, "__wrapped__")
    with pytest.raises(RuntimeError, match="no_such_library is not installed, and called outside of a test"):
        missing.function()


def test_a_mark_skips_what_needs_a_library() -> None:
    assert needs("json", "reading").args == (False,)
    mark = needs("no_such_library", "counting")
    assert mark.args == (True,) and mark.kwargs == {"reason": "counting needs no_such_library"}
