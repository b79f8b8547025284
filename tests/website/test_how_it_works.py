"""What the pages about the inside say is so: names, places, layers, pictures, and the order in which things happen."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.operations import OPERATIONS
from website import drawings
from website.execution import blocks

from ..backends.installed import needs_llvmlite

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how_it_works").glob("*.md"))
SOURCE = ROOT / "src" / "pullback"
_FOLDERS = ("src/", "tests/", "website/", "docs/")
#: What is in backticks and is no name of ours: commands, signs, and what other programs call things.
_OTHER_WORDS = frozenset(
    {"<-", "<pullback>", "make lint", "pip install '.[compile]'", "--checkpointing budget", "loss =", "base"}
    | {"__array_ufunc__", "__array_function__", "ml_dtypes", "pullback", "+=", "*", "getrefcount", "pyproject.toml"}
)

page_names = [page.stem for page in PAGES]


def text_of(page: Path) -> str:
    """A page without its fences."""
    return re.sub(r"^ *```.*?^ *```[ ]*$", "", page.read_text(), flags=re.M | re.S)


def codes_of(page: Path) -> list[str]:
    """What stands in backticks between the blocks of a page."""
    return [re.sub(r"\s+", " ", code) for code in re.findall(r"`([^`]+)`", text_of(page))]


# -- what there is -------------------------------------------------------------------------------


class Definitions(ast.NodeVisitor):
    """The names that a module defines: alone, and those of classes with what is in these."""

    def __init__(self) -> None:
        self.names: set[str] = set()  # "walk", "Pass", "Pass.gradients", also of attributes and constants
        self.loose: set[str] = set()  # arguments, and keywords of calls
        self.bases: dict[str, list[str]] = {}
        self._class: list[str] = []
        self._depth = 0  # of functions

    def _define(self, name: str) -> None:
        self.names.add(".".join([*self._class, name]))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node.name)
        self.bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
        before, self._class = self._class, [node.name]
        self.generic_visit(node)
        self._class = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._define(node.name)
        self.loose.update(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            if not self._depth:
                self._define(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self":
            self.names.add(".".join([*self._class, node.attr]))
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg:
            self.loose.add(node.arg)
        self.generic_visit(node)


@cache
def definitions(path: Path) -> Definitions:
    found = Definitions()
    found.visit(ast.parse(path.read_text()))
    return found


@cache
def everything() -> tuple[frozenset[str], frozenset[str], dict[str, set[str]]]:
    """All names, those without their class and loose ones among them, and the members of each class by its name."""
    names: set[str] = set()
    loose: set[str] = set()
    members: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        found = definitions(path)
        names |= found.names
        loose |= found.loose | {name.rpartition(".")[2] for name in found.names} | {path.stem, path.parent.name}
        for name in found.names:
            owner, _, member = name.rpartition(".")
            if owner:
                members[owner].add(member)
        for name, of in found.bases.items():
            bases[name].update(of)
    for _ in range(8):  # as deep as any class is
        for name, of in bases.items():
            members[name].update(*(members.get(base, ()) for base in of))
    return frozenset(names), frozenset(loose), members


def is_there(code: str, own: set[str]) -> bool:
    """Whether what a page has in backticks exists: a file, something of the package's, or an expression of such."""
    loose = everything()[1]
    if code in _OTHER_WORDS:
        return True
    if code.startswith(_FOLDERS):
        return (ROOT / code).exists()
    if code.startswith("."):
        return code[1:] in loose
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError:
        try:
            ast.parse(f"{code.removesuffix(':')}:\n    pass" if code.startswith("with ") else code)
        except SyntaxError:
            return False
        return True  # a statement, as it is shown in the blocks
    dotted = _dotted(tree)
    if dotted is not None:
        return _is_name_there(dotted, own)
    for node in ast.walk(tree):
        inner = _dotted(node)
        if inner is not None and isinstance(node, ast.Attribute) and not _is_name_there(inner, own):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if not _is_name_there([node.func.id], own):
                return False
    return True


def _dotted(node: ast.AST) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else None


def _is_name_there(parts: list[str], own: set[str]) -> bool:
    names, loose, members = everything()
    first, *rest = parts
    if not rest:
        return first in loose or first in own or hasattr(builtins, first)
    if first in ("pb", "np"):
        found: Any = pb if first == "pb" else np
        for name in rest:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    if first in members:
        return rest[0] in members[first] or ".".join(parts[:2]) in names
    if first in ("numpy", "jax", "torch"):
        return importlib.util.find_spec(first) is None or hasattr(importlib.import_module(first), rest[0])
    return first in own | loose and all(name in loose or hasattr(np.ndarray, name) for name in rest)


def own_names(page: Path) -> set[str]:
    """What the blocks of a page define, and short names of the formulas around them."""
    found: set[str] = set()
    for block in blocks(page.read_text()):
        if block.language == "python":
            made = Definitions()
            made.visit(ast.parse(block.code))
            found |= made.names | made.loose
    return found | set("xygfvwabnx")


# -- the tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_what_pages_name_exists(page: Path) -> None:
    own = own_names(page)
    assert [code for code in codes_of(page) if not is_there(code, own)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_names_are_where_pages_say_they_are(page: Path) -> None:
    said = re.findall(r"`([A-Za-z_][\w.]*)`\s+(?:in\s+|\()`(src/[\w/]+\.py)`", text_of(page))
    assert said or page.stem == "index"
    for name, file in said:
        found = definitions(ROOT / file)
        inherited = name.rpartition(".")[2] in everything()[2].get(name.rpartition(".")[0], ())
        inherited = inherited and name.partition(".")[0] in found.names
        declared = name in OPERATIONS and f'"{name}"' in (ROOT / file).read_text()
        assert name in found.names or inherited or declared, (name, file)


def test_a_name_that_is_gone_is_noticed() -> None:
    for name in ("walk_backwards", "Pass.gradiens", "src/pullback/engine.py", "pb.gradd", "Nobody.walk", "vanished(x)"):
        assert not is_there(name, set("x")), name
    for name in ("walk", "Pass.gradients", "src/pullback/autodiff/engine.py", "pb.grad", "walk(x)"):
        assert is_there(name, set("x")), name


def test_layers_are_those_of_import_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    picture = (drawings.FOLDER / "layers.svg").read_text()
    places = []
    for layer in contracts[0]["layers"]:
        for name in layer.split(" : "):
            short = name.removeprefix("pullback.")
            (found,) = re.finditer(rf'fill="#ffffff"[^>]*>[\w ]*\b{short}\b[\w ]*</text>', picture)
            places.append(found.start())
    assert places == sorted(places)
    text = re.sub(r"\s+", " ", (ROOT / "docs/how_it_works/index.md").read_text())
    bold = [name for group in re.findall(r"\*\*(`.*?`)\*\*", text) for name in re.findall(r"`(\w+)`", group)]
    order = [name.removeprefix("pullback.") for layer in contracts[0]["layers"][::-1] for name in layer.split(" : ")]
    ranks = [_rank(contracts[0]["layers"], name) for name in bold]
    assert set(bold) <= set(order) and ranks == sorted(ranks)
    compiler = next(contract for contract in contracts if contract["name"] == "The way of a program")
    (sentence,) = re.findall(r"Its own order is a second contract: (.*?)\.", text)
    said = [_rank(compiler["layers"], name) for name in re.findall(r"`(\w+)`", sentence)]
    assert said == sorted(said, reverse=True) and set(said) == set(range(len(compiler["layers"])))


def _rank(layers: list[str], name: str) -> int:
    """How many layers are below the one with `name`."""
    (found,) = [i for i, layer in enumerate(layers[::-1]) if name in layer.replace("pullback.", "").split(" : ")]
    return found


def test_pictures_are_what_is_drawn(tmp_path: Path) -> None:
    drawings.main(["--out", str(tmp_path)])
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_text() for path in drawings.FOLDER.iterdir()}, "python -m website.drawings"
    assert all("viewBox" in picture and "<title" in picture for picture in drawn.values())
    shown = [
        name for page in PAGES for name in re.findall(r"!\[.+\]\(pictures/([\w.]+)\)\{ \.figure \}", page.read_text())
    ]
    assert sorted(shown) == sorted(drawn)


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_each_page_has_a_picture(page: Path) -> None:
    assert len(re.findall(r"!\[.{20,}\]\(pictures/", page.read_text())) == 1


# -- the order of events -------------------------------------------------------------------------

Event = tuple[str, str]


def said_events(page: str) -> list[Event]:
    """The functions of a page's list, as (file, name)."""
    text = (ROOT / "docs" / "how_it_works" / f"{page}.md").read_text()
    lines = re.findall(r"^(\d+)\. (.*)$", text, flags=re.M)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    events = [re.match(r"`([\w.]+)` in `(src/[\w/]+\.py)`", line) for _, line in lines]
    assert all(events)
    return [(event[2], event[1]) for event in events if event]


def seen_events(call: Callable[[], Any], said: list[Event]) -> list[Event]:
    """Which of these functions a call calls, in their order; calls of one right after the other count once."""
    wanted = set(said)
    seen: list[Event] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(str(ROOT / "src")):
            return
        found = Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_qualname
        if found in wanted and seen[-1:] != [found]:
            seen.append(found)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def first_block(page: str) -> str:
    """The source of a page's first block."""
    return blocks((ROOT / "docs" / "how_it_works" / f"{page}.md").read_text())[0].code


def test_a_value_goes_through_grad_as_the_page_tells() -> None:
    scope: dict[str, Any] = {}
    exec(first_block("data_walk_grad"), scope)
    said = said_events("data_walk_grad")
    assert seen_events(lambda: pb.grad(scope["f"])(scope["x"]), said) == said


@needs_llvmlite
def test_a_step_goes_through_compile_as_the_page_tells(tmp_path: Path) -> None:
    page = tmp_path / "step.py"  # a file of the user's, as far as the trace can tell
    page.write_text(first_block("data_walk_step"))
    scope: dict[str, Any] = {"__name__": "page_of_a_step"}
    exec(compile(page.read_text(), str(page), "exec"), scope)
    step = pb.compile(scope["train"])
    said = said_events("data_walk_step")
    assert seen_events(lambda: step(scope["x"], scope["y"]), said) == said
    for _ in range(5):  # one of these may be audited
        step(scope["x"], scope["y"])
    assert seen_events(lambda: step(scope["x"], scope["y"]), said) == said[:1]
