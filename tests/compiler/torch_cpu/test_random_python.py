"""Random Python functions over tensors on PyTorch's processor do compiled what they do as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ...backends.installed import require
from ..random_python import Program, failure_of, write_program

DEVICE = "torch:cpu"


def moved(program: Program) -> Program:
    """The program with all that it makes on the device."""
    source = program.source.replace("dtype=D", f"dtype=D, device={DEVICE!r}")
    return replace(program, source=source.replace("pb.asarray(ARRAY)", f"pb.asarray(ARRAY, device={DEVICE!r})"))


def check(seed: int) -> None:
    require(DEVICE)
    program = moved(write_program(seed))
    reason = failure_of(program)
    assert reason is None, f"seed {seed}: {reason}\n{program.source}"


@pytest.mark.parametrize("seed", range(6000, 6010))
def test_some_random_programs_agree_with_eager(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_five_hundred_random_programs_agree_with_eager(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)
