"""Convolutions: values against PyTorch, the pieces of the NumPy kernel, dtypes, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy import convolution as kernel

from ..backends.installed import optional, require

torch = optional("torch")


def numbers(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 2},
        {"dilation": 2, "padding": 1},
        {"padding": "same"},
        {"padding": "valid"},
        {"groups": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolution_equals_torch(axes: int, options: dict[str, Any], dtype: str) -> None:
    kernel_size = (3, 5, 1) if options.get("padding") == "same" else (3, 2, 3)
    x, bias = numbers(2, 4, *(6, 5, 7)[:axes], dtype=dtype), numbers(6, dtype=dtype)
    weight = numbers(6, 4 // options.get("groups", 1), *kernel_size[:axes], dtype=dtype)
    expected = getattr(torch.nn.functional, f"conv{axes}d")(*map(torch.tensor, (x, weight, bias)), **options)
    result = getattr(pb, f"conv{axes}d")(x, weight, bias, **options)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "output_padding": 1}, {"padding": 1, "groups": 2}], ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolution_equals_torch(axes: int, options: dict[str, Any]) -> None:
    x, weight = numbers(2, 4, *(4, 3, 5)[:axes]), numbers(4, 3, *(3, 2, 3)[:axes])
    bias = numbers(3 * options.get("groups", 1))
    expected = getattr(torch.nn.functional, f"conv_transpose{axes}d")(*map(torch.tensor, (x, weight, bias)), **options)
    result = getattr(pb, f"conv_transpose{axes}d")(x, weight, bias, **options)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("limit", [1, 3000, 20000])
@pytest.mark.parametrize(("stride", "channels", "groups"), list(itertools.product([1, 2], [1, 2], [1, 3])))
def test_result_does_not_depend_on_how_the_work_is_cut(
    monkeypatch: pytest.MonkeyPatch, limit: int, stride: int, channels: int, groups: int
) -> None:
    x, weight = numbers(5, channels * groups, 9, 8), numbers(2 * groups, channels, 3, 3)
    arguments = ((stride, stride), ((1, 1), (0, 2)), (1, 2), groups)
    whole = kernel.convolution(x, weight, *arguments)
    g = numbers(*whole.shape)
    input_gradient = kernel.convolution_input_gradient(g, weight, (9, 8), *arguments)
    weight_gradient = kernel.convolution_weight_gradient(g, x, (3, 3), *arguments)
    monkeypatch.setattr(kernel, "_UNFOLDED_BYTES", limit)
    np.testing.assert_allclose(kernel.convolution(x, weight, *arguments), whole, atol=1e-12)
    pieces = kernel.convolution_input_gradient(g, weight, (9, 8), *arguments)
    np.testing.assert_allclose(pieces, input_gradient, atol=1e-12)
    pieces = kernel.convolution_weight_gradient(g, x, (3, 3), *arguments)
    np.testing.assert_allclose(pieces, weight_gradient, atol=1e-12)


def test_transposes_are_transposes() -> None:
    x, weight = numbers(2, 4, 7, 6), numbers(6, 2, 3, 2)
    arguments = ((2, 1), ((1, 0), (2, 1)), (1, 2), 2)
    out = kernel.convolution(x, weight, *arguments)
    g = numbers(*out.shape)
    value = np.vdot(g, out)
    assert np.vdot(kernel.convolution_input_gradient(g, weight, (7, 6), *arguments), x) == pytest.approx(value)
    assert np.vdot(kernel.convolution_weight_gradient(g, x, (3, 2), *arguments), weight) == pytest.approx(value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_single(dtype: str) -> None:
    require("numpy", dtype)
    x = pb.asarray(np.full((1, 4096, 2), 1.0), dtype=dtype)
    weight = pb.asarray(np.full((1, 4096, 1), 1.0), dtype=dtype)
    out = pb.conv1d(x, weight)
    assert out.dtype == getattr(pb, dtype)
    assert out[0, 0, 0].item() == 4096.0


def test_infinity_stays_in_its_windows() -> None:
    x = np.zeros((1, 1, 4, 6))
    x[0, 0, 1, 5] = np.inf
    out = pb.conv2d(x, np.ones((1, 1, 1, 2)), padding=(0, 1)).numpy()
    assert np.isinf(out[0, 0, 1, 5:]).all()
    assert np.isfinite(np.delete(out[0, 0], 1, 0)).all()
    assert np.isfinite(out[0, 0, 1, :5]).all()


def test_no_samples_give_no_samples() -> None:
    assert pb.conv2d(np.ones((0, 2, 5, 5)), np.ones((3, 2, 3, 3)), np.ones(3)).shape == (0, 3, 3, 3)
    x = pb.tensor(np.ones((0, 2, 5)), requires_grad=True)
    weight = pb.tensor(np.ones((3, 2, 2)), requires_grad=True)
    grads = pb.backward(pb.sum(pb.conv1d(x, weight)), wrt=[x, weight])
    assert grads[x].shape == (0, 2, 5)
    assert not grads[weight].numpy().any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.conv2d(np.ones((1, 3, 5, 5)), np.ones((4, 2, 3, 3))), "x has 3 channels.*takes 2"),
        (lambda: pb.conv2d(np.ones((1, 4, 5, 5)), np.ones((4, 4, 3, 3)), groups=2), "takes 8"),
        (lambda: pb.conv2d(np.ones((1, 4, 5, 5)), np.ones((5, 2, 3, 3)), groups=2), "groups must divide the 5"),
        (lambda: pb.conv2d(np.ones((1, 4, 5, 5)), np.ones((5, 2, 3, 3)), groups=0), "groups"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 5))), "kernel is larger than the input"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 2)), np.ones(3)), r"bias must have shape \(1,\)"),
        (lambda: pb.conv1d(np.ones((2, 3, 4, 5)), np.ones((1, 2, 2))), "x must have 3 axes"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((2, 2))), "weight must have 3 axes"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 0))), "at least one element"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 2)), stride=0), "stride must be at least 1"),
        (lambda: pb.conv2d(np.ones((1, 2, 3, 3)), np.ones((1, 2, 2, 2)), stride=(1, 2, 3)), "stride.*2 of them"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 2)), padding=-1), "padding must be at least 0"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 2)), padding="full"), "'full'"),
        (lambda: pb.conv1d(np.ones((1, 2, 3)), np.ones((1, 2, 2)), padding="same", stride=2), "needs stride 1"),
        (lambda: pb.conv_transpose1d(np.ones((1, 2, 3)), np.ones((3, 2, 2))), "x has 2 channels.*takes 3"),
        (lambda: pb.conv_transpose1d(np.ones((1, 2, 3)), np.ones((2, 2, 2)), output_padding=1), "smaller than stride"),
        (lambda: pb.conv_transpose1d(np.ones((1, 2, 1)), np.ones((2, 2, 2)), padding=1), "gives the size"),
    ],
)
def test_errors_say_what_was_given(call: Any, message: str) -> None:
    with pytest.raises(pb.ShapeError, match=message):
        call()
