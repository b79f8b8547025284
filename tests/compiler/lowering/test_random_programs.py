"""Random programs compute the same lowered as run instruction by instruction."""

from __future__ import annotations

from typing import Any

import pytest

from pullback.compiler.lowering import sinking

from .checking import FAST, checked
from .random_programs import random_program


@pytest.mark.parametrize("first", range(0, 400, 20))
def test_random_programs_agree_with_the_interpreter(first: int) -> None:
    for seed in range(first, first + 20):
        program, inputs = random_program(seed, 4 + seed % 27)
        checked(program, inputs)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_programs_of_several_dtypes_agree(first: int) -> None:
    for seed in range(first, first + 20):
        program, inputs = random_program(1000 + seed, 4 + seed % 27, ("float32", "float64", "int32", "bool", "float16"))
        checked(program, inputs)


@pytest.mark.parametrize("small", [(1 << 14, 8), (0, 1), (4, 2)])
def test_random_programs_agree_where_arithmetic_costs_nothing(small: tuple[int, int], monkeypatch: Any) -> None:
    monkeypatch.setattr(sinking, "_FEW", small[0])
    monkeypatch.setattr(sinking, "_SMALL", small[1])
    for seed in range(60):
        dtypes = ("float32",) if seed % 3 else ("float32", "float64", "int32", "bool", "float16")
        program, inputs = random_program(2000 + seed, 4 + seed % 40, dtypes)
        checked(program, inputs, abilities=FAST)
