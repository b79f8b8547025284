"""Cross-entropy with its gradient over the logits, in Triton's interpreter, against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.targets.cuda.array_dtypes import array_dtypes
from pullback.targets.cuda.kernels import cross_entropy
from pullback.targets.cuda.kernels.table import kernel_for
from pullback.targets.custom_kernels import CrossEntropy

from .. import meaning
from ..custom.native import strides
from ..loops.evaluation import dtype_of
from .custom import run

_IGNORED = -3


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Rows of several blocks: 64 elements of float32."""
    monkeypatch.setattr(cross_entropy, "_WARPS", 1)
    monkeypatch.setattr(cross_entropy, "_BYTES", 8)
    kernel_for.cache_clear()
    yield
    kernel_for.cache_clear()


def _run(
    x: Any, target: Any, scale: Any = None, bias: Any = None, weight: Any = None, smoothing: float = 0.0
) -> tuple[Any, Any]:
    """The losses of rows, and the gradient that was written over a copy of the logits."""
    form = lambda array: None if array is None else (array.dtype.name, strides(array)[0])
    kernel = CrossEntropy(
        x.dtype.name, *x.shape, strides(x), form(target), form(bias), form(weight),
        None if scale is None else (strides(scale) or (0,))[0], _IGNORED, smoothing,
    )  # fmt: skip
    wide = dtype_of(kernel.wide)
    losses, out = np.full(len(x), 7, wide), x.copy()
    arrays = [out, target, *(one for one in (bias, weight, scale) if one is not None), losses]
    arrays += [out] if scale is not None else []
    assert array_dtypes(kernel) == [array.dtype.name for array in arrays]
    run(None, kernel, arrays)
    return losses, out


def _expected(x: Any, target: Any, scale: Any, bias: Any, weight: Any, smoothing: float) -> tuple[Any, Any]:
    logits = x.astype(np.float64) + (0 if bias is None else bias.astype(np.float64))
    weight = None if weight is None else weight.astype(np.float64)
    losses, lse, total = meaning.kernel("cross_entropy")(logits, target, weight, _IGNORED, "none", smoothing)
    g = np.broadcast_to(scale.astype(np.float64), losses.shape)
    options = (_IGNORED, "none", smoothing)
    return losses, meaning.kernel("cross_entropy_gradient")(g, logits, target, weight, lse, total, *options)


def _numbers(rows: int, classes: int, dtype: str, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, rows)
    target[rows // 2] = _IGNORED
    return (4 * rng.standard_normal((rows, classes))).astype(dtype_of(dtype)), target


@pytest.mark.parametrize(("rows", "classes"), [(3, 131), (2, 64), (2, 1)])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("given", ["", "bias", "weight", "bias weight"])
def test_losses_and_gradients(rows: int, classes: int, smoothing: float, given: str) -> None:
    x, target = _numbers(rows, classes, "float64")
    rng = np.random.default_rng(1)
    bias = rng.standard_normal(classes) if "bias" in given else None
    weight = rng.uniform(0.5, 2, 2 * classes)[::2] if "weight" in given else None
    scale = rng.standard_normal(rows)
    losses, gradient = _run(x, target, scale, bias, weight, smoothing)
    wanted, slopes = _expected(x, target, scale, bias, weight, smoothing)
    np.testing.assert_allclose(losses, wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-13, atol=1e-14)
    alone, untouched = _run(x, target, None, bias, weight, smoothing)
    np.testing.assert_array_equal(alone, losses)
    np.testing.assert_array_equal(untouched, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_half_precision_is_rounded_once(dtype: str) -> None:
    x, target = _numbers(6, 150, dtype)
    scale = np.asarray(3.0, np.float32)
    losses, gradient = _run(x, target.astype(np.int32), scale)
    wanted, slopes = _expected(x, target, scale, None, None, 0.0)
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)
    step = {"float16": 2**-11, "bfloat16": 2**-7, "float32": 2e-6}[dtype]  # the interpreter cuts bfloat16 off
    np.testing.assert_allclose(gradient.astype(np.float64), slopes, rtol=1.01 * step, atol=1e-7)


def test_classes_that_cannot_be_and_classes_that_are_certain() -> None:
    x = np.full((4, 100), -np.inf)
    x[:, [3, 70]] = [0.0, 1.0]
    x[1], x[2, 70], x[3] = np.finfo(np.float64).min, 800.0, 1e300
    target = np.array([70, 5, 70, 70])
    losses, gradient = _run(x, target, np.ones(4))
    np.testing.assert_allclose(losses, [np.log1p(np.exp(-1.0)), np.log(100), 0.0, np.log(100)], rtol=1e-14)
    np.testing.assert_allclose(gradient[0, [3, 70, 5]], [1 / (1 + np.e), -1 / (1 + np.e), 0], rtol=1e-14)
    np.testing.assert_allclose(gradient[1:, 70], [0.01, 0.0, -0.99], rtol=1e-14)


def test_small_losses_keep_their_digits() -> None:
    x = np.array([[0.0, -30.0, -35.0]])
    losses, gradient = _run(x, np.array([0]), np.ones(1))
    exact = np.log1p(np.exp(-30.0) + np.exp(-35.0))
    np.testing.assert_allclose(losses, [exact], rtol=1e-2)  # the sum of exponentials is rounded at 1
    np.testing.assert_allclose(gradient[0, 0], -losses[0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")  # of the interpreter, where all of a lane is NaN
def test_what_is_not_finite_is_seen_but_where_it_is_ignored() -> None:
    x, target = _numbers(4, 130, "float64")
    x[0, 100], x[1, 3], x[2, 1] = np.nan, np.inf, np.nan
    target[:] = [0, 0, _IGNORED, 2]
    losses, gradient = _run(x, target, np.ones(4))
    assert not np.isfinite(losses[:2]).any() and not np.isfinite(gradient[:2]).any(1).all()
    assert losses[2] == 0 and not gradient[2].any() and np.isfinite(losses[3]) and np.isfinite(gradient[3]).all()


def test_a_class_that_there_is_not_is_not_read() -> None:
    x, _ = _numbers(3, 10, "float64")
    losses, _ = _run(x, np.array([0, 10, -1]), np.ones(3))
    assert np.isfinite(losses[0]) and np.isnan(losses[1:]).all()
