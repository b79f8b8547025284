"""Rows of zeros that are added to an array are added to it directly, wherever nobody needs the zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiler.passes.added_rows import with_added_rows
from pullback.compiler.program import Program

from ..programs import Builder, assert_same_meaning


def ops(program: Program) -> list[str]:
    return [one.op for one in program.instructions]


class _Table(Builder):
    """The gradient of a table from rows, and another one."""

    def __init__(self, dtype: Any = np.float64, axis: int = -2) -> None:
        super().__init__()
        shape = (7, 4) if axis == -2 else (4, 7)
        value = self.random.standard_normal((5, 4) if axis == -2 else (4, 5)).astype(dtype)
        self.onto = self.make("exp", self.input(self.random.standard_normal(shape).astype(dtype)))
        self.indices = self.input(np.array([3, 0, 3, -1, 6]))
        self.rows = self.make("take_transposed", self.input(value), self.indices, 7, axis)


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("order", [1, -1])
def test_rows_are_added_to_the_other_term(axis: int, order: int) -> None:
    b = _Table(axis=axis)
    program = b.program([b.make("add", *(b.onto, b.rows)[::order])])
    changed = with_added_rows(program)
    assert "take_transposed" not in ops(changed) and ops(changed).count("index_add") == 1
    assert_same_meaning(program, changed, b.given())


def test_half_precision_is_rounded_after_the_sum() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    b = _Table(np.float32)
    rounded = [b.make("astype", one, bfloat16) for one in (b.onto, b.rows)]
    program = b.program([b.make("add", *rounded)])
    changed = with_added_rows(program)
    assert ops(changed) == ["exp", "index_add", "astype"]
    assert_same_meaning(program, changed, b.given())


@pytest.mark.parametrize("what", ["zeros", "rounded", "half", "broadcast", "twice"])
def test_what_is_needed_otherwise_stays(what: str) -> None:
    b = _Table(np.float32)
    if what == "zeros":
        outputs = [b.make("add", b.onto, b.rows), b.rows]
    elif what == "rounded":
        half = [b.make("astype", one, np.dtype(np.float16)) for one in (b.onto, b.rows)]
        outputs = [b.make("add", *half), half[1]]
    elif what == "half":  # rows of half precision cannot be added one by one
        b = _Table(np.float16)
        outputs = [b.make("add", b.onto, b.rows)]
    elif what == "broadcast":
        outputs = [b.make("add", b.make("sum", b.onto, (-2,), False), b.rows)]
    else:
        outputs = [b.make("add", b.rows, b.rows)]
    program = b.program(outputs)
    assert with_added_rows(program) is program
