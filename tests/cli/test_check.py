"""`pullback check`: right gradients pass, wrong ones are shown, and what cannot be checked is explained."""

from __future__ import annotations

import re
import sys
from itertools import count

import pytest

NUMBERS = count()
SOURCE = """
import numpy as np
import pullback as pb

def right(x, y):
    return pb.tanh(x @ y.T), np.sin(x)

def wrong(x, y):
    return pb.stop_gradient(x) * x + y

def number(x):
    return x ** 3

def root(x):
    return pb.sqrt(x)

def fails(x):
    return x / missing

def counts(x):
    return x > 0

def no_arguments():
    return 1.0

constant = 3

class Model:
    @staticmethod
    def loss(x):
        return pb.sum(x ** 2)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current folder; a new one each time, as Python imports a name once."""
    name = f"checked_{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["right"],
        ["right", "--shapes", "2x3", "5x3"],
        ["right", "--dtype", "complex128", "--shapes", "2x2", "2x2"],
        ["right", "--order", "2", "--shapes", "2x1", "1x1"],
        ["number", "--shapes", "scalar"],
        ["root", "--range", "0.5", "2"],
        ["Model.loss", "--seed", "3"],
    ],
)
def test_right_gradients_pass(pullback, module, arguments):
    result = pullback("check", f"{module}:{arguments[0]}", *arguments[1:])
    assert result.code == 0, result
    assert "WRONG" not in result.out and "checks passed" in result.out
    assert result.err == ""


def test_the_table_has_a_row_for_every_argument_and_mode(pullback, module):
    out = pullback("check", f"{module}:right", "--shapes", "2x3", "5x3").out
    rows = re.findall(r"^(\d) +(\S+) +1 +(reverse|forward) +(\S+) +(\S+) .* ok$", out, re.MULTILINE)
    assert [row[:3] for row in rows] == [
        ("0", "2x3", "reverse"), ("0", "2x3", "forward"), ("1", "5x3", "reverse"), ("1", "5x3", "forward"),
    ]  # fmt: skip
    assert all(float(row[3]) < 1e-7 and float(row[4]) < 1e-5 for row in rows)


def test_a_wrong_gradient_is_shown_where_it_is_worst(pullback, module):
    result = pullback("check", f"{module}:wrong", "--shapes", "2x3", "3")
    assert result.code == 1
    assert len(re.findall(r"^0 .*WRONG$", result.out, re.MULTILINE)) == 2
    assert len(re.findall(r"^1 .*ok$", result.out, re.MULTILINE)) == 2
    found = re.search(r"argument 0, reverse mode, order 1: the derivative of the output(\[\d, \d\]) by element "
                      r"(\[\d, \d\]) is (\S+), central differences give (\S+);", result.out)  # fmt: skip
    assert found[1] == found[2]
    assert float(found[4]) == pytest.approx(2 * float(found[3]), rel=1e-4)
    assert "2 of 4 checks failed" in result.out


def test_the_arguments_depend_on_the_seed_alone(pullback, module):
    outputs = [pullback("check", f"{module}:wrong", "--seed", seed).out for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["root"], "it is not finite at these inputs"),
        (["fails"], r"checked_\d+.py:18: in fails: NameError: name 'missing' is not defined"),
        (["counts"], "returned no floating-point numbers"),
        (["number", "--shapes", "0"], "returned no floating-point numbers"),
        (["no_arguments"], "needs no arguments"),
        (["constant"], "expected a function, got int"),
        (["rihgt"], "has no 'rihgt'; it has right, wrong"),
        (["right", "--shapes", "3y4", "5"], "--shapes 3y4: expected a shape such as 3x4"),
        (["right", "--shapes", "3", "4", "5"], "TypeError: right.. takes 2 positional arguments but 3 were given"),
        (["right", "--shapes", "3x2", "4x3"], "ShapeError: .*matmul"),
        (["root", "--range", "2", "1"], "expected a lower and a higher bound"),
        (["right", "--order", "3"], "invalid choice"),
        (["right", "--dtype", "float32"], "invalid choice"),
        (["right", "--seed", "-1"], "invalid"),
    ],
)
def test_what_cannot_be_checked_is_explained(pullback, module, arguments, message):
    result = pullback("check", f"{module}:{arguments[0]}", *arguments[1:])
    assert result.code == 2
    assert re.search(message, result.err), result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing_like_this:f", "there is no module 'nothing_like_this'"),
        ("json.nothing:f", "there is no module 'json.nothing'"),
        ("no_colon", "expected module:function"),
        (":f", "expected module:function"),
        ("broken:f", "broken.py:2: in <module>: ZeroDivisionError"),
        ("unmet:f", "unmet.py:1: in <module>: ModuleNotFoundError: No module named 'not_there'"),
        ("garbled:f", "SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_explained(pullback, tmp_path, monkeypatch, name, message):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "broken.py").write_text("x = 0\ny = 1 / x\n")
    (tmp_path / "unmet.py").write_text("import not_there\n")
    (tmp_path / "garbled.py").write_text("def f(:\n")
    result = pullback("check", name)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
