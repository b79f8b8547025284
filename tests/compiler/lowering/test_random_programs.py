"""Random programs compute the same lowered as run instruction by instruction."""

from __future__ import annotations

import pytest

from .checking import checked
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
