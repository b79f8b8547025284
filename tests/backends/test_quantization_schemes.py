"""Storage formats: the codes that others publish, errors within what the format can hold, the same on every device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy.native import native_kernels
from pullback.backends.portable.quantized import NF4_LEVELS
from pullback.backends.quantization import SCHEMES

from . import strict
from .installed import needs_llvmlite, needs_ml_dtypes, require

NAMES = ["int8", "int4", "nf4", "fp8"]
RNG = np.random.default_rng(5)
SHAPES = [(1,), (3,), (64,), (65,), (6, 4), (3, 64), (5, 70), (2, 3, 33), (260, 66)]


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def codes_of(q: Any) -> np.ndarray:
    """The codes of four bits in the order of the values."""
    packed = np.asarray(q.data.parts[0])
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def groups_of(values: np.ndarray, size: int = 64) -> np.ndarray:
    padding = [*[(0, 0)] * (values.ndim - 1), (0, -values.shape[-1] % size)]
    return np.pad(values, padding).reshape(-1, size)


# -- what is published ------------------------------------------------------------------------------


def test_codes_of_nf4_are_those_of_the_nearest_levels() -> None:
    x = normal(100, 64)
    codes = codes_of(pb.quantize(x, "nf4")).reshape(100, 64)
    shares = x / np.abs(x).max(1, keepdims=True)
    assert (codes == np.abs(shares[..., None] - np.asarray(NF4_LEVELS)).argmin(-1)).all()
    assert set(codes.ravel()) == set(range(16))


def test_levels_of_nf4_are_quantiles_of_the_normal_distribution() -> None:
    """Eight negative ones, nothing, seven positive ones, between the outermost quantile of a sixteenth's half."""
    special = pytest.importorskip("scipy.special")
    offset = 0.9677083  # (1 - 1/30 + 1 - 1/32) / 2
    positive = special.ndtri(np.linspace(offset, 0.5, 9)[:-1])
    negative = special.ndtri(np.linspace(offset, 0.5, 8)[:-1])
    levels = np.sort(np.concatenate([positive, [0.0], -negative]))
    np.testing.assert_allclose(levels / levels.max(), NF4_LEVELS, atol=2e-7)


@pytest.mark.parametrize(("scheme", "absolute", "relative"), [("nf4", 0.0728, 0.2034)])
def test_errors_of_normal_numbers_are_the_published_ones(scheme: str, absolute: float, relative: float) -> None:
    x = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    error = np.abs(pb.quantize(x, scheme).dequantize().numpy() - x)
    assert error.mean() == pytest.approx(absolute, rel=5e-3)
    assert (error / (np.abs(x) + 1e-8)).mean() == pytest.approx(relative, rel=0.02)


@needs_ml_dtypes
def test_numbers_of_fp8_are_those_of_ml_dtypes() -> None:
    import ml_dtypes

    kind = ml_dtypes.float8_e4m3fn
    every = np.arange(256, dtype=np.uint8)
    known = every[np.isfinite(every.view(kind).astype(np.float32))]
    xp = pb.backends.NUMPY.xp
    np.testing.assert_array_equal(xp.unpack_float8(known, np.ones(1, np.float32)), known.view(kind).astype(np.float32))
    exact = known.view(kind).astype(np.float32)
    between = (np.sort(exact)[1:] + np.sort(exact)[:-1]) / 2  # of two as near, the even one
    some = np.concatenate([exact, between, np.linspace(-448, 448, 9999), normal(9999), 2.0 ** -normal(9999) * 0.01])
    some = some[np.abs(some) > 0].astype(np.float32)
    np.testing.assert_array_equal(xp.pack_float8(some), some.astype(kind).view(np.uint8) & (127 | (some < 0) * 128))


# -- what is left of values -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("scheme", NAMES)
def test_values_are_within_half_a_step(scheme: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    q = pb.quantize(x, scheme, axis=0)
    values = q.dequantize().numpy()
    assert values.shape == shape and values.dtype == np.float32 and q.dtype.kind == "quantized"
    if SCHEMES[scheme].has_axis:
        rows, ours = x.reshape(shape[0], -1), values.reshape(shape[0], -1)
    else:
        rows, ours = groups_of(x), groups_of(values)
    largest = np.abs(rows).max(1, keepdims=True)
    if scheme == "fp8":
        allowed = np.maximum(np.abs(rows) / 16, largest / 448 / 1024)
    else:
        gap = {"int8": 1 / 254, "int4": 1 / 14, "nf4": max(np.diff(NF4_LEVELS)) / 2}[scheme]
        allowed = largest * gap
        if scheme == "nf4":  # scales are rounded, too
            logs = np.log(largest[largest > 0])
            allowed = allowed + largest * (np.exp((logs.max() - logs.min()) / 255 / 2) - 1)
    assert (np.abs(rows - ours) <= allowed * 1.0001 + 1e-7).all()


@pytest.mark.parametrize("scheme", NAMES)
def test_memory(scheme: str) -> None:
    bits = {"int8": 8 + 32 / 512, "fp8": 8 + 32 / 512, "int4": 4.5, "nf4": 4 + 8 / 64 + 64 / (64 * 256)}
    assert 8 * pb.quantize(normal(512, 512), scheme).nbytes / 2**18 == bits[scheme]


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("scheme", NAMES)
def test_layouts_are_those_of_the_parts(scheme: str, axis: int | None) -> None:
    for shape in SHAPES:
        q = pb.quantize(normal(*shape), scheme, axis=axis)
        found = tuple((part.shape, part.dtype.name) for part in q.data.parts)
        assert found == SCHEMES[scheme].layout(shape, q.axis)
        assert len(found) == len(SCHEMES[scheme].part_names)


@pytest.mark.parametrize("scheme", NAMES)
def test_edges(scheme: str) -> None:
    quantized = lambda x: pb.quantize(np.asarray(x, np.float32), scheme, axis=None).dequantize().numpy()
    assert (quantized(np.zeros((3, 70))) == 0).all()
    for value in (2.5, -1e-30, 3e38, -1e-34):
        np.testing.assert_allclose(quantized(value), value, rtol=1e-5)
        row = quantized([value, 0.0, -value])
        np.testing.assert_allclose(row, [value, 0.0, -value], rtol=1e-5)
    tiny = quantized([1e-45, 0.0, -1e-45])  # smaller than any scale: nothing is left, or all
    assert np.isfinite(tiny).all() and (np.abs(tiny) <= 2e-45).all()
    alone = quantized([*[0.0] * 64, *[1e-3] * 64, *[1e3] * 64])
    assert (alone[:64] == 0).all() and np.allclose(alone[128:], 1e3, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_largest_numbers_stay_where_their_scale_is_rounded(dtype: Any) -> None:
    for value in (0.9e-4, 8.8e-43, 448.0, 6e4):
        x = np.array([[value, -value, value / 2]], dtype)
        if x[0, 2]:
            found = pb.quantize(x, "fp8").dequantize().numpy()
            np.testing.assert_allclose(found[0, :2], x[0, :2], rtol=0.5)


@pytest.mark.parametrize("outlier", [1.0, 500.0])
def test_small_rows_of_nf4_keep_their_digits_beside_large_ones(outlier: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 256)).astype(np.float32)
    x *= np.logspace(0, -4, 64)[rng.permutation(64)][:, None].astype(np.float32)
    x[0, 0] = outlier
    found = pb.quantize(x, "nf4").dequantize().numpy()
    errors = np.linalg.norm(found - x, axis=1) / np.linalg.norm(x, axis=1)
    assert errors[1:].max() < 0.13 and (np.sign(found) * np.sign(x) >= 0).all()
    whole = pb.quantize(np.full((3, 200), 3e38, np.float32), "nf4").dequantize().numpy()
    np.testing.assert_allclose(whole, 3e38, rtol=1e-5)


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_precisions(scheme: str, dtype: Any) -> None:
    x = normal(6, 70, dtype=dtype)
    found = pb.quantize(x, scheme).dequantize()
    assert found.dtype.name == ("float64" if dtype == np.float64 else "float32")
    expected = pb.quantize(x.astype(np.float32), scheme).dequantize().numpy()
    step = {"int8": 0.04, "int4": 0.6, "nf4": 0.9, "fp8": 0.01 + np.abs(expected) / 8}[scheme]  # rounded otherwise
    error = np.abs(found.numpy() - expected)
    assert (error <= step).all() and error.mean() < 0.01


# -- where it is ------------------------------------------------------------------------------------


@needs_llvmlite
@pytest.mark.parametrize("scheme", NAMES)
def test_native_code_gives_the_same_bits(scheme: str) -> None:
    x = normal(300, 257)
    native = pb.quantize(x, scheme)
    with native_kernels(False):
        plain = pb.quantize(x, scheme)
        values = plain.dequantize().numpy()
    assert [p.tobytes() for p in native.data.parts] == [p.tobytes() for p in plain.data.parts]
    np.testing.assert_array_equal(native.dequantize().numpy(), values)


@pytest.mark.parametrize("device", [strict.DEVICE, "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("scheme", NAMES)
def test_devices_give_the_same_numbers(scheme: str, device: str) -> None:
    require(device)
    x = normal(9, 70)
    here, there = pb.quantize(x, scheme), pb.quantize(pb.asarray(x, device=device), scheme)
    moved = here.to_device(device)
    assert there.device == moved.device == device and there.dequantize().device == device
    np.testing.assert_allclose(moved.numpy(), here.numpy(), rtol=1e-6)
    np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-6, atol=1e-7)
    for one, other in zip(here.data.parts, there.to_device("numpy").data.parts):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-6)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("scheme", NAMES)
def test_products_are_those_of_the_dequantized_values(scheme: str, device: str) -> None:
    require(device)
    q = pb.quantize(normal(6, 70), scheme).to_device(device)
    x = pb.asarray(normal(3, 6), device=device).set_requires_grad(True)
    product, expected = x @ q, x @ q.dequantize()
    np.testing.assert_allclose(product.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    g = pb.asarray(normal(3, 70), device=device)
    np.testing.assert_allclose(
        pb.backward(product, g)[x].numpy(), pb.backward(expected, g)[x].numpy(), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("scheme", NAMES)
def test_quantized_arrays_go_down_and_up_a_level(scheme: str, device: str) -> None:
    require(device)
    first = pb.Autodiff(device)
    q = pb.quantize(normal(6, 70), scheme).to_device(device)
    inner = first.inner(q)
    again = first.from_inner(inner)
    assert type(again) is type(q) and again.dtype == q.dtype and again.device == device and again.axis == q.axis
    assert math.prod(again.shape) == 420
    assert all(a is b for a, b in zip(again.data.parts, q.data.parts))
