"""Attention that drops some of its shares drops the same ones compiled, without a call of NumPy's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.tracing import kernels

RNG = np.random.default_rng(0)


def _gradients(mask: Any, is_causal: bool, grouped: bool) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        mixed = pb.scaled_dot_product_attention(q, k, v, mask, 0.3, is_causal, enable_gqa=grouped)
        return (mixed * mixed).sum()

    return pb.value_and_grad(loss, argnums=(0, 1, 2))


CASES = {
    "plain": (None, False, 4),
    "causal": (None, True, 4),
    "grouped heads": (None, False, 2),
    "boolean mask, a row of which sees nothing": (np.arange(9)[:, None] > np.arange(9), False, 4),
    "added mask": (RNG.normal(size=(2, 1, 9, 9)).astype(np.float32), False, 4),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_shares_are_dropped(case: str) -> None:
    mask, is_causal, heads = CASES[case]
    q, k, v = (pb.tensor(RNG.normal(size=(2, n, 9, 8)).astype(np.float32)) for n in (4, heads, heads))
    function = _gradients(None if mask is None else pb.asarray(mask), is_causal, heads == 2)
    compiled = pb.compile(function)
    for seed in (1, 2):
        pb.random.seed(seed)
        value, gradients = function(q, k, v)
        pb.random.seed(seed)
        got, got_gradients = compiled(q, k, v)
        np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=1e-5)
        for one, other in zip(got_gradients, gradients, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
    assert all(kernel.how == "native" for kernel in compiled.kernels)


def test_scores_that_are_too_many_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST_SCORES", 100)
    q = pb.tensor(RNG.normal(size=(2, 4, 9, 8)).astype(np.float32))
    function = _gradients(None, False, False)
    compiled = pb.compile(function)
    pb.random.seed(1)
    value, _ = function(q, q, q)
    pb.random.seed(1)
    np.testing.assert_allclose(compiled(q, q, q)[0].numpy(), value.numpy(), rtol=1e-5)
    assert any(kernel.how == "numpy" for kernel in compiled.kernels)
