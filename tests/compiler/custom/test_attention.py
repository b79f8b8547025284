"""Attention and its gradient against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy import attention as reference
from pullback.targets.custom_kernels import Attention, AttentionGradient
from pullback.targets.llvm.kernels import attention, attention_gradient

from .native import broadcast_strides, laid_out, run, strides

#: batch, heads of k, group, length, keys, width, width of values
SIZES = [
    ((2,), 2, 1, 5, 5, 3, 3), ((), 1, 1, 1, 1, 1, 1), ((2, 1), 1, 3, 33, 33, 5, 33), ((1,), 2, 2, 64, 64, 32, 32),
    ((), 2, 1, 7, 40, 16, 8), ((3,), 1, 1, 50, 17, 33, 20), ((), 1, 1, 200, 130, 4, 70),
]  # fmt: skip
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def _inputs(sizes: Any, dtype: str, seed: int = 1) -> tuple[Any, Any, Any]:
    batch, heads, group, length, keys, width, value_width = sizes
    rng = np.random.default_rng(seed)
    shapes = ((heads * group, length, width), (heads, keys, width), (heads, keys, value_width))
    q, k, v = (rng.standard_normal((*batch, *shape)).astype(dtype) for shape in shapes)
    return q, k, v


def _description(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, out: Any, lse: Any) -> Attention:
    described = None
    if mask is not None:
        described = (mask.dtype.name, broadcast_strides(mask, (*q.shape[:-1], k.shape[-2])))
    return Attention(
        q.dtype.name, q.shape[:-3], k.shape[-3], q.shape[-3] // k.shape[-3], q.shape[-2], k.shape[-2], q.shape[-1],
        v.shape[-1], strides(q), strides(k), strides(v), described, is_causal, scale, strides(out), strides(lse),
    )  # fmt: skip


def _attention(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, parts: int = 1) -> tuple[Any, Any]:
    out, lse = np.full((*q.shape[:-1], v.shape[-1]), 7, q.dtype), np.full(q.shape[:-1], 7, q.dtype)
    kernel = _description(q, k, v, mask, is_causal, scale, out, lse)
    assert attention.supports(kernel)
    run(attention.emit, kernel, [array for array in (q, k, v, mask, out, lse) if array is not None], parts)
    return out, lse


def _gradient(
    g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any, is_causal: bool, scale: float
) -> Any:
    made = [np.full(x.shape, 7, x.dtype) if need else None for x, need in zip((q, k, v), needs)]
    forward = _description(q, k, v, mask, is_causal, scale, out, lse)
    kernel = AttentionGradient(forward, strides(g), *(None if d is None else strides(d) for d in made))
    assert attention_gradient.supports(kernel)
    arrays = [array for array in (g, q, k, v, mask, out, lse, *made) if array is not None]
    run(attention_gradient.emit, kernel, arrays, 2)
    return made


def _check(sizes: Any, dtype: str, mask: Any, is_causal: bool, arrange: Any = lambda x: x) -> None:
    q, k, v = map(arrange, _inputs(sizes, dtype))
    scale = 0.7
    with np.errstate(all="ignore"):
        out, lse = reference.attention(q, k, v, mask, is_causal, scale, 0.0, 0, 0)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for parts in (1, 3):
        got, got_lse = _attention(q, k, v, mask, is_causal, scale, parts)
        np.testing.assert_allclose(got, out, **tolerance)
        np.testing.assert_allclose(got_lse, lse, **tolerance)
    g = arrange(np.random.default_rng(2).standard_normal(out.shape).astype(dtype))
    needs = (True, True, True, False)
    expected = reference.attention_gradient(g, q, k, v, mask, out, lse, needs, is_causal, scale, 0.0, 0, 0)
    for d, want in zip(_gradient(g, q, k, v, mask, out, lse, needs[:3], is_causal, scale), expected):
        np.testing.assert_allclose(d, want, **tolerance)


@pytest.mark.parametrize(("dtype", "is_causal"), [("float32", True), ("float64", False), ("float64", True)])
@pytest.mark.parametrize("sizes", SIZES)
def test_attention_is_that_of_numpy(sizes: Any, is_causal: bool, dtype: str) -> None:
    _check(sizes, dtype, None, is_causal)


@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_only_what_is_asked_for_is_made(needs: tuple[bool, ...]) -> None:
    q, k, v = _inputs(SIZES[2], "float64")
    out, lse = reference.attention(q, k, v, None, True, 0.5, 0.0, 0, 0)
    g = np.random.default_rng(4).standard_normal(out.shape)
    expected = reference.attention_gradient(g, q, k, v, None, out, lse, (*needs, False), True, 0.5, 0.0, 0, 0)
    for d, want in zip(_gradient(g, q, k, v, None, out, lse, needs, True, 0.5), expected):
        if want is not None:
            np.testing.assert_allclose(d, want, rtol=1e-11, atol=1e-11)
        else:
            assert d is None


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps", "heads inside"])
def test_arrays_may_lie_in_any_order(layout: str) -> None:
    def arrange(x: Any) -> Any:
        if layout == "heads inside":
            return np.ascontiguousarray(np.swapaxes(x, -3, -2)).swapaxes(-3, -2)
        return laid_out(x, layout)

    _check(SIZES[2], "float64", None, True, arrange)


@pytest.mark.parametrize("shape", [(33, 33), (1, 33), (2, 1, 1, 33, 33), (3, 33, 1), (2, 1, 3, 33, 33)])
@pytest.mark.parametrize(("kind", "is_causal"), [("bool", False), ("added", True)])
def test_masks_are_broadcast(shape: tuple[int, ...], kind: str, is_causal: bool) -> None:
    rng = np.random.default_rng(3)
    mask = rng.random(shape) < 0.7 if kind == "bool" else rng.standard_normal(shape)
    _check(SIZES[2], "float64", mask, is_causal)


def test_rows_that_see_nothing_are_zero() -> None:
    mask = np.ones((33, 33), bool)
    mask[3] = False
    _check(SIZES[2], "float32", mask, False)
    q, k, v = _inputs(SIZES[2], "float32")
    out, lse = _attention(q, k, v, mask, False, 1.0)
    assert (out[..., 3, :] == 0).all() and (lse[..., 3] == np.inf).all()


def test_nan_stays_in_its_row() -> None:
    q, k, v = _inputs(SIZES[2], "float32")
    q[..., 4, 0] = np.nan
    out, lse = _attention(q, k, v, None, True, 1.0)
    assert np.isnan(out[..., 4, :]).all() and np.isnan(lse[..., 4]).all()
    assert np.isfinite(np.delete(out, 4, axis=-2)).all() and np.isfinite(np.delete(lse, 4, axis=-1)).all()


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (100 * x for x in _inputs(SIZES[3], "float64"))
    expected = reference.attention(q, k, v, None, False, 1.0, 0.0, 0, 0)
    for got, want in zip(_attention(q, k, v, None, False, 1.0), expected):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize("sizes", [((0,), 2, 1, 4, 4, 3, 3), ((2,), 1, 1, 0, 4, 3, 3), ((2,), 1, 2, 4, 0, 3, 3)])
def test_nothing_to_attend_to(sizes: Any) -> None:
    _check(sizes, "float32", None, False)


def test_what_has_no_native_form_is_refused() -> None:
    q, k, v = _inputs(SIZES[0], "float32")
    half = _description(q.astype("float16"), k, v, None, False, 1.0, q, q[..., 0])
    mixed = _description(q, k, v, np.zeros((5, 5)), False, 1.0, q, q[..., 0])
    assert not attention.supports(half) and not attention.supports(mixed)
