"""The tables of the pages for those who know another library: every name in them exists, on both sides."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb

FOLDER = Path(__file__).parents[2] / "docs" / "coming_from"
#: Names on the pages that are the reader's own.
VARIABLES = """
    a adapter array b batches carry condition data dataset dict edges f forward g generators gradients i isinstance k
    kind labels layer leaves list logits mask metrics n name new old operation output p parameters print q self shape
    step structure sum super target tensors tree updates v value values w x xs y
"""
#: By page: what its library's names begin with, and what has them.
THEIRS = {
    "pytorch": {
        "torch": "torch",
        "nn": "torch.nn",
        "F": "torch.nn.functional",
        "lr_scheduler": "torch.optim.lr_scheduler",
        "t": "torch:Tensor",
        "loss": "torch:Tensor",
        "model": "torch.nn:Module",
        "optimizer": "torch.optim:Optimizer",
        "scheduler": "torch.optim.lr_scheduler:LRScheduler",
    },
    "jax": {"jax": "jax", "jnp": "jax.numpy", "key": None, "optax": "optax", "optimizer": None, "state": None},
    "autograd": {"autograd": "autograd", "np": "autograd.numpy"},
    "keras": {
        "keras": "keras",
        "tf": "tensorflow",
        "model": "keras:Model",
        "layer": "keras.layers:Layer",
        "history": None,
        "loss": None,
        "optimizer": None,
    },
    "mygrad": {
        "mg": "mygrad",
        "np": "numpy",
        "t": "mygrad:Tensor",
        "loss": "mygrad:Tensor",
        "activations": "mygrad.nnet.activations",
        "losses": "mygrad.nnet.losses",
        "layers": "mygrad.nnet.layers",
        "initializers": "mygrad.nnet.initializers",
    },
}
OURS = {
    "pb": "pullback",
    "np": "numpy",
    "scipy": "scipy",
    "torch": "torch",
    "t": "pullback:Tensor",
    "loss": "pullback:Tensor",
    "x": "pullback:Tensor",
    "model": "pullback.nn:Module",
    "optimizer": "pullback.optim:Optimizer",
    "scheduler": "pullback.optim:Scheduler",
    "trainer": "pullback.train:Trainer",
    "history": "pullback.train:History",
    "generator": "pullback.random:Generator",
    "tape": "pullback:GradientTape",
}
#: Where arguments are named alone (`axis=`), they are those of one of these.
WITH_ARGUMENTS = (pb.sum, pb.tensor, pb.train.Trainer, pb.train.Trainer.fit, pb.optim.AdamW, pb.while_loop)
#: Attributes that objects of these classes get when they are made.
MADE = {("LRScheduler", "get_last_lr"), ("Optimizer", "param_groups"), ("History", "epochs"), ("Scheduler", "last_lr")}
MADE |= {("Tensor", "data")}
#: Tables must not get lost: a page has at least so many names of its library, and of ours.
AT_LEAST = {"pytorch": (130, 120), "jax": (85, 90), "autograd": (30, 35), "keras": (115, 120), "mygrad": (75, 70)}


@dataclass(frozen=True)
class Span:
    """A piece of code in a cell of a table."""

    code: str
    is_ours: bool


def spans(page: str) -> Iterator[Span]:
    """Code in the two columns of a page's tables: that of the other library, and that of Pullback."""
    text = re.sub(r"^ *```.*?^ *```", "", (FOLDER / f"{page}.md").read_text(), flags=re.M | re.S)
    tables = [table for table in re.findall(r"(?:^\|.*\n)+", text, re.M) if "| here |" in table.splitlines()[0]]
    for table in tables:
        for row in table.splitlines()[2:]:
            cells = re.fullmatch(r"\| ((?:[^`|]|`[^`]+`)+) \| ((?:[^`|]|`[^`]+`)+) \|", row)
            assert cells, f"not two cells: {row}"
            for cell, is_ours in zip(cells.groups(), (False, True)):
                for code in re.findall(r"`([^`]+)`", cell):
                    yield Span(code, is_ours)


def parsed(code: str) -> ast.Module | None:
    """The tree of a piece of code, or None for what names nothing: `axis=`, `for`, `__len__`, `[x]` of a result."""
    if re.fullmatch(r"\w+=|__\w+__", code) or keyword.iskeyword(code) or code.startswith("["):
        return None
    with contextlib.suppress(SyntaxError):
        return ast.parse(code)
    return ast.parse(f"{code} pass")  # `with pb.no_grad():`


def found(source: str | None) -> Any:
    """What `module:Class` names, or None where its library is not installed."""
    if source is None:
        return None
    module, _, name = source.partition(":")
    try:
        thing = importlib.import_module(module)
    except ModuleNotFoundError:
        return None
    return getattr(thing, name) if name else thing


def resolved(thing: Any, path: list[str]) -> Any:
    for name in path:
        if thing is None:
            return None  # what an attribute of an object holds is not followed
        if not hasattr(thing, name):
            if inspect.ismodule(thing):
                with contextlib.suppress(ModuleNotFoundError):
                    thing = importlib.import_module(f"{thing.__name__}.{name}")
                    continue
            if (getattr(thing, "__name__", ""), name) in MADE:
                return None
            raise AttributeError(f"{getattr(thing, '__name__', thing)} has no {name}")
        thing = getattr(thing, name)
        if not (callable(thing) or inspect.ismodule(thing)):
            return None
    return thing


def dotted(node: ast.AST) -> tuple[str, list[str]] | None:
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return (node.id, path) if isinstance(node, ast.Name) else None


def problems(span: Span, roots: dict[str, str | None]) -> Iterator[str]:
    """What a piece of code names that is not there."""
    argument = re.match(r"(\w+)=(?!=)", span.code)
    if argument and span.is_ours and not any(argument[1] in inspect.signature(f).parameters for f in WITH_ARGUMENTS):
        yield f"no function here has an argument {argument[1]}"
    tree = parsed(span.code)
    if tree is None:
        return
    own = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.Lambda) for argument in node.args.args}
    own |= {node.target.id for node in ast.walk(tree) if isinstance(node, ast.comprehension)}
    for node in ast.walk(tree):
        is_target = argument is not None and node is getattr(tree.body[0], "targets", [None])[0]
        if (
            isinstance(node, ast.Name)
            and not is_target
            and node.id not in roots
            and node.id not in {*VARIABLES.split(), *own}
        ):
            callback = not span.is_ours and node.id.startswith("on_")  # methods of a callback, in the table of these
            if not callback:
                yield f"`{node.id}` begins no name that this test knows"
        name = dotted(node)
        if isinstance(node, ast.Attribute) and name and name[0] in roots and name[0] not in own:
            try:
                resolved(found(roots[name[0]]), name[1])
            except AttributeError as error:
                yield f"{'.'.join([name[0], *name[1]])}: {error}"
        if isinstance(node, ast.Call) and (name := dotted(node.func)) and name[0] in roots and name[0] not in own:
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                yield from misused(node, resolved(found(roots[name[0]]), name[1]), bool(name[1]))


def misused(call: ast.Call, function: Any, is_attribute: bool) -> Iterator[str]:
    """Keyword arguments that a function does not have, and too many without a name."""
    if function is None or not is_attribute:
        return
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        names = {parameter.name for parameter in parameters}
        for keyword in call.keywords:
            if keyword.arg not in names:
                yield f"{ast.unparse(call.func)} has no argument {keyword.arg}, only {sorted(names)}"
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and len(call.args) > len(positional):
        yield f"{ast.unparse(call)}: {function} takes {len(positional)} arguments"


@pytest.mark.parametrize("page", THEIRS)
def test_every_name_of_pullbacks_in_the_tables_exists(page):
    wrong = [f"{span.code}: {what}" for span in spans(page) if span.is_ours for what in problems(span, OURS)]
    assert wrong == []


@pytest.mark.parametrize("page", ["pytorch", "jax", "autograd", "mygrad"])
def test_every_name_of_the_other_library_in_the_tables_exists(page):
    pytest.importorskip({"pytorch": "torch"}.get(page, page))
    wrong = [
        f"{span.code}: {what}" for span in spans(page) if not span.is_ours for what in problems(span, THEIRS[page])
    ]
    assert wrong == []


def test_every_name_of_keras_is_one_where_keras_is_installed():
    pytest.importorskip("keras")
    wrong = [
        f"{span.code}: {what}"
        for span in spans("keras")
        if not span.is_ours
        for what in problems(span, THEIRS["keras"])
    ]
    assert wrong == []


@pytest.mark.parametrize("page", THEIRS)
def test_the_tables_are_found(page):
    sides = [span.is_ours for span in spans(page)]
    theirs, ours = AT_LEAST[page]
    assert sides.count(False) >= theirs and sides.count(True) >= ours, sides


@pytest.mark.parametrize(
    "code", ["pb.nothing(x)", "pb.grad(f, argnum=1)", "t.view(2)", "nobody.knows()", "pb.stop_gradient(x, 1, 2)"]
)
def test_a_wrong_name_is_found(code):
    assert list(problems(Span(code, True), OURS)) != []


@pytest.mark.parametrize(
    ("code", "roots"),
    [
        ("torch.nothing(x)", THEIRS["pytorch"]),
        ("t.reshape_(2)", THEIRS["pytorch"]),
        ("jax.lax.nothing(x)", THEIRS["jax"]),
        ("mg.tensor(x, nothing=1)", THEIRS["mygrad"]),
    ],
)
def test_a_wrong_name_of_another_library_is_found(code, roots):
    pytest.importorskip(roots[code.partition(".")[0]].partition(":")[0])
    assert list(problems(Span(code, False), roots)) != []


def test_values_have_the_dtypes_that_the_overview_says():
    assert pb.tensor([1.0]).dtype == pb.float32 and isinstance(pb.grad(lambda x: x * x)(3.0), float)
    assert (pb.ones(1) * pb.tensor(1.0, dtype=pb.float64)).dtype == pb.float64
    assert pb.asarray(np.ones(1)).dtype == pb.float64
