"""Random functions agree with themselves compiled: values, gradients, second derivatives."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..operations.harness_devices import everything_on
from .random_functions import RandomFunction, derivatives

FEW, MANY = 120, 2000


def check(seed: int, device: str = "numpy") -> None:
    function = RandomFunction(seed)
    directions = [function._numbers(a.shape) for a in function.arguments]
    computed = derivatives(function, directions)
    arguments = [pb.asarray(a, device=device) for a in function.arguments]
    elsewhere = nullcontext() if device == "numpy" else everything_on(device)
    with elsewhere, pb.guard("off"), np.errstate(all="ignore"):
        expected = computed(*arguments)
        compiled = pb.compile(computed)
        found = compiled(*arguments)
        again = compiled(*arguments)
    for name, ours, repeated, theirs in zip(("value", "gradient", "second derivative"), found, again, expected):
        for x, y, z in zip(_listed(ours), _listed(repeated), _listed(theirs)):
            _compare(x, z, f"seed {seed}, {name}: {function!r}")
            np.testing.assert_array_equal(x, y, err_msg=f"seed {seed}, {name}, called again: {function!r}")


def _listed(part: Any) -> list[Any]:
    parts = part if isinstance(part, list) else [part]
    return [None if p is None else p.numpy() for p in parts]


def _compare(found: Any, expected: Any, what: str) -> None:
    if expected is None:
        assert found is None, what
        return
    scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * max(scale, 1e-3), err_msg=what)


@pytest.mark.parametrize("first", range(0, FEW, 20))
def test_some_random_functions_agree_with_eager(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, 100))
def test_two_thousand_random_functions_agree_with_eager(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


def test_the_functions_are_deep_and_various() -> None:
    made = [RandomFunction(seed) for seed in range(300)]
    depths = [len(function.steps) for function in made]
    assert max(depths) == 30 and min(depths) == 1
    names = {name.partition("(")[0] for function in made for name, _ in function.steps}
    assert {"matmul", "cond", "scan", "while", "take", "write", "softmax", "where", "sum", "concat"} <= names
