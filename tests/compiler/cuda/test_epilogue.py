"""Rows that are added to products are added in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.targets.kernels import Product

from . import interpreted  # noqa: F401  (the kernels run there)


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    with np.errstate(all="ignore"):
        yield


def run(function: Any, *arrays: np.ndarray) -> tuple[Any, list[bool]]:
    """What a compiled function gives, and of each product whether it adds a row."""
    compiled = pb.compile(function)
    made = compiled(*[pb.asarray(array, device="torch:cpu") for array in arrays])
    expected = function(*[pb.asarray(array) for array in arrays])
    for ours, right in zip(pb.tree.flatten(made)[0], pb.tree.flatten(expected)[0]):
        ours, right = (x.astype(pb.float32) for x in (ours.to_device("numpy"), right))
        np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=4e-3, atol=4e-3)  # a few roundings of 11 bits
    calls = compiled._programs[0].built.executable.calls
    return made, [call.kernel.bias for call in calls if isinstance(call.kernel, Product)]


RNG = np.random.default_rng(0)
X, W, B = (RNG.normal(size=shape).astype(np.float16) for shape in ((6, 4), (4, 5), (5,)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: x @ w + b,
        lambda x, w, b: b + x @ w,
        lambda x, w, b: pb.tanh(x @ w + b),
        lambda x, w, b: pb.linear(x.reshape(2, 3, 4), w.T, b),
        lambda x, w, b: pb.grad(lambda w, b: pb.sum(pb.sin(x @ w + b)), argnums=(0, 1))(w, b),
    ],
)
def test_it_is_added_by_the_product(function: Any) -> None:
    assert any(run(function, X, W, B)[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: (x @ w, x @ w + b),  # which is wanted without it as well
        lambda x, w, b: pb.exp(x @ w) + (x @ w + b),
        lambda x, w, b: x @ w + pb.exp(b),  # which a loop makes
        lambda x, w, b: x @ w + b[:1],
        lambda x, w, b: x @ w + b[::-1],
        lambda x, w, b: (x @ w).T + pb.sum(x, axis=1),
        lambda x, w, b: (x @ w).astype(pb.float32) + b,
        lambda x, w, b: x.reshape(3, 2, 4) @ pb.stack([w, w, w]) + b,  # products of many matrices
    ],
)
def test_it_is_added_apart(function: Any) -> None:
    assert not any(run(function, X, W, B)[1])


def test_products_of_float32_are_faster_without() -> None:
    assert not any(run(lambda x, w, b: x @ w + b, *[array.astype(np.float32) for array in (X, W, B)])[1])
