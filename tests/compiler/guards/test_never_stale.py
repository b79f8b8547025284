"""A compiled function does what the function does, whatever changed since its last call, or says that it cannot."""

from __future__ import annotations

import pytest

from . import cases  # noqa: F401  (registers them)
from .harness import CASES, can_fail, judge, why_not_deterministic


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_noticed(name: str) -> None:
    outcome, detail = judge(CASES[name])
    assert outcome in CASES[name].accepted, f"{outcome}: {detail}"


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_deterministic_and_can_fail(name: str) -> None:
    one = CASES[name]
    assert why_not_deterministic(one) is None
    assert can_fail(one) is not one.steady, f"steady is {one.steady}"


def test_there_are_many_cases_and_few_may_be_refused() -> None:
    assert len(CASES) >= 250
    assert sum(one.refused for one in CASES.values()) <= len(CASES) / 10
