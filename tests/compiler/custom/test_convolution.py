"""Convolutions straight from the images, and the gradients of their weights, are those of NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pullback.backends import NUMPY
from pullback.targets.custom_kernels import DirectConvolution, DirectConvolutionGradient, Window
from pullback.targets.llvm.emission import emit
from pullback.targets.llvm.kernels import convolution, convolution_gradient

from . import native

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
LAYOUTS = ("contiguous", "transposed", "reversed", "gaps")


def drawn(rng: np.random.Generator) -> tuple[Any, ...]:
    """(samples, groups, channels, features) and the options of a convolution that has a result."""
    while True:
        size = tuple(int(n) for n in rng.integers(1, 36, 2))
        kernel = tuple(int(n) for n in rng.integers(1, 6, 2))
        stride, dilation = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
        padding = tuple((int(low), int(high)) for low, high in rng.integers(-1, 4, (2, 2)))
        axes = zip(size, kernel, stride, padding, dilation)
        out = tuple((n + low + high - (k - 1) * d - 1) // s + 1 for n, k, s, (low, high), d in axes)
        left = (n + low + high for n, (low, high) in zip(size, padding))
        if min(out) > 0 and min(left) > 0:
            groups = rng.integers(1, 4)
            sizes = tuple(int(n) for n in (rng.integers(1, 4), groups, *rng.integers(1, 24 // groups, 2)))
            return sizes, size, kernel, out, (stride, padding, dilation)


def close(got: Any, expected: Any, dtype: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


def check(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    (samples, groups, channels, features), size, kernel, out, (stride, padding, dilation) = drawn(rng)
    x = native.laid_out(rng.normal(size=(samples, groups * channels, *size)).astype(dtype), rng.choice(LAYOUTS))
    w = rng.normal(size=(groups * features, channels, *kernel)).astype(dtype)
    g = native.laid_out(rng.normal(size=(samples, groups * features, *out)).astype(dtype), rng.choice(LAYOUTS))
    options = (stride, padding, dilation, groups)
    start = tuple(low for low, _ in padding)
    window = Window(size, kernel, out, stride, dilation, start)
    sizes = (dtype, samples, groups)
    made = native.laid_out(np.full(g.shape, np.nan, dtype), rng.choice(LAYOUTS))
    forward = DirectConvolution(*sizes, channels, features, window, native.strides(x), native.strides(made))
    same_in_parts(forward, [x, w, made], close, NUMPY.xp.convolution(x, w, *options), dtype)
    dw = np.full(w.shape, np.nan, dtype)
    gradient = DirectConvolutionGradient(*sizes, channels, features, window, native.strides(g), native.strides(x))
    same_in_parts(gradient, [g, x, dw], close, NUMPY.xp.convolution_weight_gradient(g, x, kernel, *options), dtype)


def same_in_parts(kernel: Any, arrays: list[Any], close: Any, expected: Any, dtype: str) -> None:
    """The right numbers, and the same bits however the work is shared."""
    native.run(emit, kernel, arrays)
    close(arrays[-1], expected, dtype)
    alone = arrays[-1].copy()
    arrays[-1][...] = np.nan
    native.run(emit, kernel, arrays, parts=3)
    np.testing.assert_array_equal(arrays[-1], alone)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(12))
def test_convolutions_are_those_of_numpy(seed: int, dtype: str) -> None:
    check(seed, dtype)


@pytest.mark.parametrize("seed", range(40, 46))
def test_images_that_are_large_are_done_a_few_rows_at_a_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "_IMAGES", 512)
    monkeypatch.setattr(convolution_gradient, "_TILE_BYTES", 512)
    native.compiled.cache_clear()
    check(seed, "float64")
    native.compiled.cache_clear()


@pytest.mark.parametrize("features", [*range(1, 14), 32])
def test_features_are_shared_by_units_of_work(features: int) -> None:
    """However many there are: the tiles of a unit begin and end between tiles of other sizes."""
    rng = np.random.default_rng(features)
    x = rng.normal(size=(1, 3, 5, 9)).astype(np.float32)
    w = rng.normal(size=(features, 3, 3, 3)).astype(np.float32)
    out = np.full((1, features, 5, 9), np.nan, np.float32)
    window = Window((5, 9), (3, 3), (5, 9), (1, 1), (1, 1), (1, 1))
    forward = DirectConvolution("float32", 1, 1, 3, features, window, native.strides(x), native.strides(out))
    options = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    same_in_parts(forward, [x, w, out], close, NUMPY.xp.convolution(x, w, *options), "float32")
    g, dw = rng.normal(size=out.shape).astype(np.float32), np.full(w.shape, np.nan, np.float32)
    gradient = DirectConvolutionGradient("float32", 1, 1, 3, features, window, native.strides(g), native.strides(x))
    expected = NUMPY.xp.convolution_weight_gradient(g, x, (3, 3), *options)
    same_in_parts(gradient, [g, x, dw], close, expected, "float32")
    assert sum(size * count for size, count in convolution._tiles(features)) == features


def test_what_lies_beside_an_image_is_not_seen() -> None:
    """Infinities of one row do not become NaN in sums over the vectors of another that are not full."""
    x = np.full((2, 3, 4, 11), np.inf, np.float32)
    x[..., 1:3, 1:10] = 1.0
    g = np.zeros((2, 3, 2, 9), np.float32)
    window = Window((4, 11), (1, 1), (2, 9), (1, 1), (1, 1), (-1, -1))
    kernel = DirectConvolutionGradient("float32", 2, 3, 1, 1, window, native.strides(g), native.strides(x))
    dw = np.full((3, 1, 1, 1), np.nan, np.float32)
    native.run(emit, kernel, [g, x, dw])
    np.testing.assert_array_equal(dw, 0.0)


def test_images_of_no_samples() -> None:
    window = Window((4, 5), (3, 3), (4, 5), (1, 1), (1, 1), (1, 1))
    x = np.zeros((0, 2, 4, 5), np.float32)
    strides = (40, 20, 5, 1)
    kernel = DirectConvolutionGradient("float32", 0, 2, 1, 1, window, strides, strides)
    dw = np.full((2, 1, 3, 3), np.nan, np.float32)
    native.run(emit, kernel, [x, x, dw])
    np.testing.assert_array_equal(dw, 0.0)
    assert native.compiled(emit, replace(kernel, dtype="float64"))[1].units == 2
