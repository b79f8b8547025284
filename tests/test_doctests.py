"""Every example is run: those in docstrings, and those in the README and the docs pages."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback as pb
from website.execution import blocks, check, run_here

ROOT = Path(__file__).parents[1]
NAMESPACES = (pb, pb.linalg, pb.fft, pb.random, pb.tree)
#: What examples need beyond NumPy, and beyond what pages import.
NEEDS = {
    "pullback.backends.standard.StandardBackend": "array_api_strict",
    "pullback.bridges.jax_functions.from_jax": "jax",
    "pullback.bridges.jax_transforms.to_jax": "jax",
    "pullback.bridges.torch_autograd.to_torch": "torch",
    "pullback.bridges.torch_functions.from_torch": "torch",
    "pullback.bridges.torch_modules.TorchModule": "torch",
    "pullback.compiler.calling.compiled.compile": "llvmlite",
    "pullback.compiler.calling.verification.compiled": "llvmlite",
    "pullback.finetune.samples.make_samples": "tokenizers",
    "pullback.finetune.sandbox.compiled": "jinja2",
    "pullback.finetune.templates.ChatTemplate": "jinja2",
    "pullback.finetune.tokenizer.Tokenizer": "tokenizers",
    "README.md": "llvmlite",
    "docs/bridges.md": "jax torch",
    "docs/compile.md": "llvmlite jax",
    "docs/custom_operations.md": "llvmlite",
    "docs/devices.md": "torch",
    "docs/mlp.md": "llvmlite",
    "docs/models.md": "llvmlite",
    "docs/random.md": "llvmlite",
    "docs/training.md": "llvmlite",
    "docs/coming_from/autograd.md": "llvmlite",
    "docs/coming_from/jax.md": "llvmlite",
    "docs/coming_from/keras.md": "llvmlite",
    "docs/coming_from/mygrad.md": "llvmlite",
    "docs/coming_from/pytorch.md": "llvmlite",
    "docs/how_it_works/data_walk_step.md": "llvmlite",
    "docs/how_it_works/guards.md": "llvmlite",
    "docs/how_it_works/memory_plan.md": "llvmlite",
    "docs/how_it_works/programs.md": "llvmlite",
    "docs/start.md": "llvmlite",
    "docs/tutorials/checkpointing.md": "llvmlite",
    "docs/tutorials/compiling.md": "llvmlite",
    "docs/tutorials/devices.md": "jax llvmlite",
    "docs/tutorials/finetune_qwen3.md": "jinja2 llvmlite ml_dtypes tokenizers",
    "docs/tutorials/gpt.md": "llvmlite",
    "docs/tutorials/image_classifier.md": "llvmlite sklearn",
    "docs/tutorials/nan_hunting.md": "llvmlite",
    "docs/tutorials/per_example_gradients.md": "llvmlite",
    "docs/tutorials/physics_informed.md": "llvmlite",
    "docs/tutorials/state_space.md": "llvmlite",
}


def public_objects() -> Iterator[tuple[str, Any]]:
    """Public names and the public methods of Tensor, however they were made (a search by module would miss some)."""
    for namespace in NAMESPACES:
        for name, value in vars(namespace).items():
            is_ours = str(getattr(value, "__module__", "")).startswith("pullback")
            if not name.startswith("_") and callable(value) and is_ours:
                yield f"{namespace.__name__}.{name}", value
    for name, value in vars(pb.Tensor).items():
        if not name.startswith("_"):
            yield f"pullback.Tensor.{name}", value.fget if isinstance(value, property) else value


def modules() -> Iterator[ModuleType]:
    yield pb
    for found in pkgutil.walk_packages(pb.__path__, "pullback."):
        try:
            yield importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("pullback"):
                raise  # else it is the backend of a library that is not installed


def examples_in_docstrings() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found: dict[str, doctest.DocTest] = {}
    seen: set[str] = set()
    sources = [(module.__name__, module) for module in modules()]
    for name, source in [*sources, *public_objects()]:
        if not isinstance(source, ModuleType | type) and not inspect.isroutine(source):
            continue
        for test in finder.find(source, name, globs={}):
            if test.examples and test.docstring not in seen:
                seen.add(test.docstring)
                found[test.name] = test
    return found


EXAMPLES = examples_in_docstrings()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_docstring(name):
    require_all_of(name)
    check(EXAMPLES[name])


def require_all_of(name: str) -> None:
    """Skip the test unless what these examples need is installed."""
    for library in NEEDS.get(name, "").split():
        pytest.importorskip(library)


@pytest.mark.parametrize("name", sorted(dict(public_objects())))
def test_public_name_has_a_docstring(name):
    value = dict(public_objects())[name]
    assert inspect.getdoc(value), f"{name} has no docstring"


def imported_by(page: Path) -> set[str]:
    """What the blocks of a page import that neither Python nor Pullback brings along."""
    code = "\n".join(block.code for block in blocks(page.read_text()) if block.language == "python")
    found = re.findall(r"^[ >.]*(?:import|from) (\w+)", code, re.MULTILINE)
    return set(found) - sys.stdlib_module_names - {"numpy", "pullback"}


PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page(page, tmp_path, monkeypatch):
    """Blocks of a page run one after the other: `>>>` blocks with their output, other Python blocks as they are."""
    require_all_of(name_of(page))
    for library in imported_by(page):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    for known in ("_by_name", "_by_type"):  # backends that a page registers are its own
        monkeypatch.setattr(pb.backends, known, dict(getattr(pb.backends, known)))
    for _ in run_here(page):
        pass


def test_every_page_is_linked_and_every_link_leads_somewhere():
    texts = {page: re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL) for page in PAGES}
    links = {page: re.findall(r"\]\((?!https?:)([^)#\s]+)", text) for page, text in texts.items()}
    for page, targets in links.items():
        assert [target for target in targets if not (page.parent / target).exists()] == [], page.name
    docs = ROOT / "docs"
    assert {page.name for page in docs.glob("*.md")} - {"index.md"} <= set(links[docs / "index.md"])
