"""Pooling and interpolation: values against PyTorch, ties, NaN and infinity, dtypes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).standard_normal(shape)


def agree(name: str, x: np.ndarray, *arguments: Any, **options: Any) -> None:
    expected = getattr(torch.nn.functional, name)(torch.tensor(x), *arguments, **options)
    result = getattr(pb, name)(x, *arguments, **options)
    if not isinstance(expected, tuple):
        expected, result = (expected,), (result,)
    for theirs, ours in zip(expected, result):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
    ],
    ids=str,
)
def test_pooling_equals_torch(axes: int, options: dict[str, Any]) -> None:
    x = numbers(2, 3, *(7, 6, 5)[:axes])
    agree(f"max_pool{axes}d", x, **options)
    dilation = 2 if options["kernel_size"] == 2 else 1
    agree(f"max_pool{axes}d", np.round(x), dilation=dilation, return_indices=True, **options)
    agree(f"avg_pool{axes}d", x, **options)
    agree(f"avg_pool{axes}d", x, count_include_pad=False, **options)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_adaptive_pooling_equals_torch(axes: int, size: int) -> None:
    x = numbers(2, 2, *(7, 4, 3)[:axes])
    agree(f"adaptive_avg_pool{axes}d", x, size)
    agree(f"adaptive_max_pool{axes}d", np.round(x), size, return_indices=True)


@pytest.mark.parametrize(
    ("axes", "mode", "corners"),
    [
        (1, "nearest", None),
        (2, "nearest", None),
        (2, "nearest-exact", None),
        (3, "nearest-exact", None),
        (1, "linear", False),
        (1, "linear", True),
        (2, "bilinear", False),
        (2, "bilinear", True),
        (3, "trilinear", False),
        (3, "trilinear", True),
        (2, "bicubic", False),
        (2, "bicubic", True),
        (1, "area", None),
        (2, "area", None),
        (3, "area", None),
    ],
)
def test_interpolation_equals_torch(axes: int, mode: str, corners: bool | None) -> None:
    x = numbers(2, 2, *(5, 4, 3)[:axes])
    for size in (1, 2, 5, 11):
        agree("interpolate", x, size=size, mode=mode, align_corners=corners)
    for factor in (2, 1.3, 0.6):
        agree("interpolate", x, scale_factor=factor, mode=mode, align_corners=corners)
        agree("interpolate", x, scale_factor=factor, mode=mode, align_corners=corners, recompute_scale_factor=True)


def test_the_first_of_equal_elements_gets_the_gradient() -> None:
    x = pb.tensor([[[1.0, 2.0, 2.0, 2.0, 0.0]]], requires_grad=True)
    pb.sum(pb.max_pool1d(x, 3, stride=1)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[[0, 2, 1, 0, 0]]])


def test_windows_of_minus_infinity_point_into_the_input() -> None:
    x = np.full((1, 1, 5, 5), -np.inf)
    agree("max_pool2d", x, 3, 2, 1, return_indices=True)


def test_infinity_and_nan_stay_in_their_windows() -> None:
    x = numbers(1, 1, 8, 8)
    x[0, 0, 0, 0], x[0, 0, 3, 3], x[0, 0, 6, 7] = -np.inf, np.nan, np.inf
    agree("max_pool2d", x, 2, return_indices=True)
    agree("max_pool2d", x, 3, 2, 1)
    agree("avg_pool2d", x, 2)
    agree("avg_pool2d", x, 3, 2, 1, count_include_pad=False)
    agree("adaptive_avg_pool2d", x, 3)
    agree("adaptive_avg_pool2d", x, 1)
    agree("interpolate", x, size=(11, 5))


def test_long_axes_and_short_ones_take_different_ways_to_the_same_result() -> None:
    agree("avg_pool2d", numbers(1, 2, 300, 20), 2)
    agree("avg_pool1d", numbers(1, 2, 1000), 3, stride=2, padding=1, count_include_pad=False)
    agree("interpolate", numbers(1, 1, 300, 10), size=(500, 7), mode="bilinear")
    agree("interpolate", numbers(1, 1, 300, 10), size=(100, 17), mode="bicubic")


def test_integers_can_be_pooled_and_repeated_but_not_averaged() -> None:
    x = np.arange(8).reshape(1, 1, 8)
    np.testing.assert_array_equal(pb.max_pool1d(x, 2).numpy(), [[[1, 3, 5, 7]]])
    np.testing.assert_array_equal(pb.interpolate(x[..., :2], size=4).numpy(), [[[0, 0, 1, 1]]])
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.avg_pool1d(x, 2)
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.interpolate(x, size=4, mode="linear")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtype_is_kept(dtype: str) -> None:
    require("numpy", dtype)
    x = pb.asarray(numbers(1, 2, 6, 6), dtype=dtype)
    for out in (pb.max_pool2d(x, 2), pb.avg_pool2d(x, 2), pb.adaptive_avg_pool2d(x, 1), pb.interpolate(x, size=4)):
        assert out.dtype == getattr(pb, dtype)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.max_pool2d(np.ones((1, 1, 3, 3)), 4), "window is larger than the input"),
        (lambda: pb.max_pool2d(np.ones((1, 1, 3, 3)), 2, padding=2), "at most half of kernel_size"),
        (lambda: pb.max_pool2d(np.ones((3, 3)), 2), "x must have 4 axes"),
        (lambda: pb.max_pool2d(np.ones((1, 1, 3, 3)), (2, 2, 2)), "kernel_size must be"),
        (lambda: pb.max_pool1d(np.ones((1, 1, 1)), 2, padding=1, dilation=2), "nothing but padding"),
        (lambda: pb.avg_pool2d(np.ones((1, 1, 3, 3)), 2, divisor_override=0), "divisor_override"),
        (lambda: pb.adaptive_avg_pool2d(np.ones((1, 1, 3, 3)), 0), "output_size must be at least 1"),
        (lambda: pb.interpolate(np.ones((1, 1, 3))), "size or scale_factor"),
        (lambda: pb.interpolate(np.ones((1, 1, 3)), size=2, scale_factor=2), "size or scale_factor"),
        (lambda: pb.interpolate(np.ones((1, 1, 3)), size=2, mode="bilinear"), "'linear' for 1 spatial axes"),
        (lambda: pb.interpolate(np.ones((1, 1, 3)), size=2, align_corners=True), "align_corners has no meaning"),
        (lambda: pb.interpolate(np.ones((1, 1, 3)), scale_factor=0.1), "at least 1"),
        (lambda: pb.interpolate(np.ones((1, 3)), size=2), "one to three spatial axes"),
    ],
)
def test_errors_say_what_was_given(call: Any, message: str) -> None:
    with pytest.raises(pb.ShapeError, match=message):
        call()


@pytest.mark.parametrize(
    "reading_the_first",
    [
        lambda x: pb.max_pool1d(x, 2),
        lambda x: pb.max_pool1d(x, 2, return_indices=True)[0],
        lambda x: pb.interpolate(x, size=1),
        lambda x: pb.conv1d(x, np.ones((1, 1, 1)), stride=2),
    ],
)
def test_elements_that_are_not_read_get_no_gradient_even_from_an_infinite_factor(reading_the_first: Any) -> None:
    x = pb.tensor([[[4.0, 0.0]]], dtype=pb.float64, requires_grad=True)
    pb.sum(reading_the_first(pb.sqrt(x))).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[[0.25, 0.0]]])
