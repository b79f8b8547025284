"""Public functions on other backends give what they give on NumPy, those without a gradient too."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..operations.harness_devices import everything_on
from . import strict
from .installed import require

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((3, 4))
SQUARE = RNG.standard_normal((2, 3, 3))
POSITIVE = SQUARE @ np.swapaxes(SQUARE, -1, -2) + np.eye(3)
INTEGERS = np.asarray([[5, 2, 2], [7, 5, 0]])
BITS = np.asarray([1, 6, 12])
FLAGS = np.asarray([[True, False, True], [False, False, True]])
COMPLEX = X + 1j * Y
IMAGE = RNG.standard_normal((2, 3, 6, 6))

FUNCTIONS = {
    "abs of integers": (lambda x: pb.abs(-x), INTEGERS),
    "angle": (pb.angle, COMPLEX),
    "all": (lambda x: pb.all(x, axis=0), FLAGS),
    "any": (lambda x: pb.any(x, axis=1, keepdims=True), FLAGS),
    "any of floats": (pb.any, X),
    "arange": (lambda x: x[0, 0] + pb.arange(1, 9, 3), X),
    "argmax": (pb.argmax, X),
    "argmax along": (lambda x: pb.argmax(x, axis=0, keepdims=True), X),
    "argmin": (lambda x: pb.argmin(x, axis=-1), INTEGERS),
    "argsort": (lambda x: pb.argsort(x, axis=0), X),
    "argsort descending": (lambda x: pb.argsort(x, descending=True), INTEGERS),
    "astype": (lambda x: pb.astype(x, pb.float32), INTEGERS),
    "astype to bool": (lambda x: pb.astype(x, pb.bool), INTEGERS),
    "bitwise": (lambda x: (x & 5) | (~x ^ 3), BITS),
    "shifts": (lambda x: (x << 2) + (x >> 1), BITS),
    "ceil, floor, trunc, round": (lambda x: pb.ceil(x) + pb.floor(x) + pb.trunc(x) * pb.round(x * 2), X),
    "ceil of integers": (lambda x: pb.ceil(x) + pb.floor(x), INTEGERS),
    "clip": (lambda x: pb.clip(x, -0.5, 0.5), X),
    "clip integers": (lambda x: pb.clip(x, 2, None), INTEGERS),
    "comparisons": (lambda x, y: (x < y) & (x != 0) | (y >= 0.5), X, Y),
    "concat flat": (lambda x, y: pb.concat([x, y], axis=None), X, Y),
    "copysign": (pb.copysign, X, Y),
    "count_nonzero": (lambda x: pb.count_nonzero(x, axis=1), INTEGERS),
    "cumulative_sum": (lambda x: pb.cumulative_sum(x, axis=0, include_initial=True), X),
    "cumulative_sum of integers": (lambda x: pb.cumulative_sum(x, axis=1), INTEGERS),
    "cumulative_prod": (lambda x: pb.cumulative_prod(x, axis=1, include_initial=True), X),
    "diff": (lambda x: pb.diff(x, axis=0, n=2), X),
    "divide integers": (lambda x: x / 3, INTEGERS),
    "einsum": (lambda x, y: pb.einsum("ij,kj->ik", x, y), X, Y),
    "NumPy's ufuncs": (lambda x, y: np.tanh(x) + np.maximum(np.exp(x), y), X, Y),
    "NumPy's tanh of complex numbers": (np.tanh, COMPLEX),
    "eye and tril": (lambda x: x @ pb.eye(3, dtype=pb.float64) + pb.tril(x, k=1) - pb.triu(x), SQUARE),
    "flip, roll": (lambda x: pb.roll(pb.flip(x, axis=0), (1, 2), axis=(0, 1)), X),
    "floor_divide": (lambda x: x // 2 + x % 3, INTEGERS),
    "floor_divide floats": (lambda x, y: x // y + x % y, X, Y),
    "gather rows": (lambda x: x[np.asarray([2, 0, 2])], X),
    "index with an array": (lambda x: x[pb.asarray([1, 0])], X),
    "index with a mask": (lambda x: x[x > 0], X),
    "isin": (lambda x: pb.isin(x, pb.asarray([2, 5])), INTEGERS),
    "isfinite and friends": (lambda x: pb.isnan(x) | pb.isinf(x) | pb.isfinite(x), np.asarray([1.0, np.nan, np.inf])),
    "linspace": (lambda x: x[0, 0] * pb.linspace(0, 1, 5, dtype=pb.float64), X),
    "logical": (lambda x: pb.logical_xor(pb.logical_not(x), pb.logical_or(x, x[0])), FLAGS),
    "max and min": (lambda x: pb.max(x, axis=0) - pb.min(x, axis=(0, 1)), X),
    "max of integers": (lambda x: pb.max(x, axis=1, keepdims=True), INTEGERS),
    "mean of integers": (lambda x: pb.mean(pb.astype(x, pb.float64), axis=0), INTEGERS),
    "median": (lambda x: pb.median(x, axis=1), X),
    "meshgrid": (lambda x: pb.stack(pb.meshgrid(x[0], x[1])), X),
    "nextafter": (pb.nextafter, X, Y),
    "nonzero": (pb.nonzero, INTEGERS),
    "outer and kron": (lambda x: (pb.outer(x[0], x[1]), pb.kron(x, x)), X),
    "pad": (lambda x: pb.pad(x, ((1, 2), (0, 1))), X),
    "powers of integers": (lambda x: x**2, INTEGERS),
    "prod": (lambda x: pb.prod(x, axis=(0, 1)), X),
    "put_along_axis": (lambda x: pb.put_along_axis(x, pb.asarray([[1], [0], [3]]), x[:, :1], axis=1), X),
    "repeat and tile": (lambda x: (pb.repeat(x, 2, axis=1), pb.tile(x, (2, 1))), X),
    "scatter_add": (lambda x: pb.scatter_add(x, pb.asarray([[1, 1], [0, 3], [2, 2]]), x[:, :2], axis=1), X),
    "searchsorted": (lambda x: pb.searchsorted(pb.sort(x[0]), x[1]), X),
    "searchsorted right": (lambda x: pb.searchsorted(pb.asarray([0, 2, 5]), x, side="right"), INTEGERS),
    "sign and signbit": (lambda x: pb.where(pb.signbit(x), pb.sign(x), 2 * pb.sign(x)), X),
    "sort": (lambda x: pb.sort(x, axis=0, descending=True), X),
    "sort flags": (lambda x: pb.sort(x, axis=1), FLAGS),
    "split": (lambda x: pb.split(x, 2, axis=1), X),
    "sum of flags": (lambda x: pb.sum(x, axis=0), FLAGS),
    "sum of small integers": (lambda x: pb.sum(pb.astype(x, pb.int8)), INTEGERS),
    "take": (lambda x: pb.take(x, pb.asarray([3, 0, -1]), axis=1), X),
    "take_along_axis": (lambda x: pb.take_along_axis(x, pb.asarray([[0], [-1], [2]]), axis=1), X),
    "tensordot": (lambda x, y: pb.tensordot(x, y, axes=((0, 1), (0, 1))), X, Y),
    "topk": (lambda x: tuple(pb.topk(x, 2)), X),
    "unique_all": (lambda x: tuple(pb.unique_all(x)), INTEGERS),
    "unique_counts": (lambda x: tuple(pb.unique_counts(x)), INTEGERS),
    "unique_inverse": (lambda x: tuple(pb.unique_inverse(x)), INTEGERS),
    "unique_values": (pb.unique_values, INTEGERS),
    "unstack": (lambda x: pb.unstack(x, axis=1), X),
    "var and std": (lambda x: (pb.var(x, axis=0, correction=1), pb.std(x)), X),
    "vdot": (pb.vdot, COMPLEX, COMPLEX),
    "vecdot": (lambda x, y: pb.vecdot(x, y, axis=0), X, Y),
    "where with numbers": (lambda x: pb.where(x > 0, 1.5, 0), X),
    "write rows": (lambda x: _written(x, slice(0, 2), 7.0), X),
    "write through a mask": (lambda x: _written(x, x > 0, 0.0), X),
    "linalg.cholesky": (pb.linalg.cholesky, POSITIVE),
    "linalg.cholesky upper": (lambda x: pb.linalg.cholesky(x, upper=True), POSITIVE),
    "linalg.det": (pb.linalg.det, SQUARE),
    "linalg.eigvalsh": (pb.linalg.eigvalsh, POSITIVE),
    "linalg.inv": (pb.linalg.inv, SQUARE),
    "linalg.matrix_norm": (lambda x: (pb.linalg.matrix_norm(x), pb.linalg.matrix_norm(x, ord=1)), SQUARE),
    "linalg.matrix_power": (lambda x: pb.linalg.matrix_power(x, -2), SQUARE),
    "linalg.matrix_rank": (pb.linalg.matrix_rank, SQUARE * 0 + 1),
    "linalg.pinv": (pb.linalg.pinv, X),
    "linalg.slogdet": (lambda x: tuple(pb.linalg.slogdet(x)), SQUARE),
    "linalg.solve": (lambda x: pb.linalg.solve(x, x[..., :1]), SQUARE),
    "linalg.solve a vector": (lambda x: pb.linalg.solve(x, x[0, 0]), SQUARE),
    "linalg.svdvals": (pb.linalg.svdvals, X),
    "linalg.vector_norm": (lambda x: (pb.linalg.vector_norm(x, axis=0, ord=3), pb.linalg.vector_norm(x)), X),
    "fft.fft": (pb.fft.fft, COMPLEX),
    "fft.fftn": (lambda x: pb.fft.fftn(x, axes=(0, 1), norm="ortho"), COMPLEX),
    "fft.rfft": (lambda x: pb.fft.rfft(x, n=6), X),
    "fft.irfft": (lambda x: pb.fft.irfft(x, n=7), COMPLEX),
    "fft.hfft and shifts": (lambda x: pb.fft.fftshift(pb.fft.hfft(x)), COMPLEX),
    "fft.fftfreq": (lambda x: pb.fft.fftfreq(5, d=0.5) * pb.astype(x[0, 0], pb.float32), X),
    "softmax": (lambda x: pb.softmax(x, axis=0) + pb.log_softmax(x), X),
    "gelu": (lambda x: pb.gelu(x) + pb.silu(x) + pb.relu(x), X),
    "conv2d": (lambda x: pb.conv2d(x, x[:, :, :3, :3], padding=1), IMAGE),
    "max_pool2d": (lambda x: pb.max_pool2d(x, 2), IMAGE),
    "interpolate": (lambda x: pb.interpolate(x, size=(9, 4), mode="bilinear"), IMAGE),
    "cross_entropy": (lambda x: pb.cross_entropy(x, pb.asarray([1, 0, 3])), X),
    "embedding": (lambda x: pb.embedding(pb.asarray([[2, 0], [1, 1]]), x), X),
    "layer_norm": (lambda x: pb.layer_norm(x, (4,)), X),
    "dropout": (lambda x: _seeded(lambda: pb.dropout(x, 0.5)), X),
    "random numbers": (lambda x: _seeded(lambda: pb.random.normal((3, 4), dtype=pb.float64)) + x, X),
}


def _written(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def _seeded(function):
    pb.random.seed(5)
    return function()


def results(function, arguments, device):
    with everything_on(device):
        found = function(*(pb.asarray(a, device=device) for a in arguments))
    for out in found if isinstance(found, (tuple, list)) else (found,):
        assert out.device == device
        yield out.numpy()


@pytest.mark.parametrize("device", [strict.DEVICE, "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize(("function", "arguments"), [(f, a) for f, *a in FUNCTIONS.values()], ids=list(FUNCTIONS))
def test_same_as_on_numpy(function, arguments, device):
    require(device)
    found, expected = list(results(function, arguments, device)), list(results(function, arguments, "numpy"))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6 if b.dtype == np.float32 else 1e-10, atol=1e-12)


@pytest.mark.parametrize("device", [strict.DEVICE, "torch:cpu"])  # JAX gives infinities instead
def test_a_singular_matrix_is_a_typed_error(device):
    require(device)
    with pytest.raises(pb.PullbackError, match=r"inv of shape \(2, 2\)"):
        pb.linalg.inv(pb.asarray(np.zeros((2, 2)), device=device))
