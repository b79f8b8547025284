"""What a notebook shows of a compiled function."""

from __future__ import annotations

import numpy as np

import pullback as pb

from ...backends.installed import needs_llvmlite
from ...train.test_report import Outline, said

pytestmark = needs_llvmlite


def words(compiled):
    return said(compiled._repr_html_())


def test_a_function_that_was_not_called_says_so():
    assert words(pb.compile(lambda x: x)) == "compiled <lambda>|no program yet: call it"


def test_programs_kernels_and_reasons_are_shown():
    @pb.compile
    def step(a, b):
        return pb.tanh(a @ b).sum()

    step(np.ones((8, 4)), np.ones((4, 3)))
    text = words(step)
    assert text.startswith("compiled step|1 program|") and "why there" not in text
    for expected in ("inputs 352 B", "matmul 8x4 by 4x3|native|1|test_notebook.py:", "loop 24: tanh, sum", "tanh(%"):
        assert expected in text, expected
    step(np.ones((9, 4)), np.ones((4, 3)))
    assert "argument 0 had shape (8, 4) and has (9, 4)" in words(step) and "2 programs" in words(step)


def test_long_programs_are_cut_off():
    def long(x):
        for _ in range(300):
            x = pb.sin(x).sum(keepdims=True) * x[::-1]
        return x

    step = pb.compile(long)
    step(np.ones(3))
    text = step._repr_html_()
    assert len(text) < 60_000 and "more lines)" in text
    Outline(text)


def test_a_compiled_module_shows_its_programs():
    model = pb.compile(pb.nn.Linear(3, 2))
    model(pb.ones((1, 3)))
    assert words(model).startswith("compiled Linear|1 program")
