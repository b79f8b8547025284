"""Random Python functions over tensors do compiled what they do as they are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from .random_python import failure_of, running, write_program

FEW, MANY, PIECE = 60, 5000, 100


def check(seed: int) -> None:
    program = write_program(seed)
    reason = failure_of(program)
    assert reason is None, f"seed {seed}: {reason}\n{program.source}"


@pytest.mark.parametrize("first", range(0, FEW, 10))
def test_some_random_programs_agree_with_eager(first: int) -> None:
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, PIECE))
def test_five_thousand_random_programs_agree_with_eager(first: int) -> None:
    for seed in range(first, first + PIECE):
        check(seed)


def test_a_seed_makes_one_program() -> None:
    assert write_program(5).source == write_program(5).source != write_program(6).source


def test_every_construct_is_used_often() -> None:
    used: Counter[str] = Counter()
    for seed in range(1000):
        used += Counter(set(write_program(seed).used))
    rare = {construct: times for construct, times in used.items() if times < 20}
    assert len(used) > 60 and not rare, f"of 1000 programs: {rare}"


def test_a_function_that_repeats_its_first_result_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class FirstResult:
        def __init__(self, function: Any) -> None:
            self.function, self.results = function, []

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            self.results = self.results or [self.function(*args, **kwargs)]
            return self.results[0]

    monkeypatch.setattr(running.pb, "compile", FirstResult)
    found = [failure_of(write_program(seed)) is not None for seed in range(40)]
    assert sum(found) > 35
