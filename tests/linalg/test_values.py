"""Values, dtypes and errors of pullback.linalg and pullback.fft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

generator = np.random.default_rng(0)
L = pb.linalg


def matrices(dtype: str, *shape: int) -> np.ndarray:
    x = generator.normal(size=shape)
    return (x + 1j * generator.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


REAL = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}
COMPLEX = {"float32": "complex64", "float64": "complex128", "complex64": "complex64", "complex128": "complex128"}


@pytest.mark.parametrize("dtype", REAL)
def test_decompositions_multiply_back(dtype: str) -> None:
    x = matrices(dtype, 2, 4, 3)
    square = matrices(dtype, 2, 3, 3)
    tolerance = 1e-4 if REAL[dtype] == "float32" else 1e-10

    def close(a: Any, b: Any) -> None:
        np.testing.assert_allclose(np.asarray(a), b, atol=tolerance)

    def adjoint(a: Any) -> Any:
        return pb.conj(pb.matrix_transpose(a))

    for full in (True, False):
        u, s, vh = L.svd(pb.asarray(x), full_matrices=full)
        assert s.dtype == getattr(pb, REAL[dtype])
        assert u.dtype == getattr(pb, dtype)
        close((u[..., :3] * s[:, None, :]) @ vh, x)
    for mode in ("reduced", "complete"):
        q, r = L.qr(pb.asarray(x), mode=mode)
        close(q @ r, x)
        assert q.shape == (2, 4, 4 if mode == "complete" else 3)
    hermitian = square + np.conj(square.swapaxes(-1, -2))
    w, v = L.eigh(pb.asarray(hermitian))
    assert w.dtype == getattr(pb, REAL[dtype])
    close((v * w[:, None, :]) @ adjoint(v), hermitian)
    close(L.eigvalsh(pb.asarray(hermitian)), np.asarray(w))
    w, v = L.eig(pb.asarray(square))
    assert w.dtype == v.dtype == L.eigvals(pb.asarray(square)).dtype == getattr(pb, COMPLEX[dtype])
    close(pb.asarray(square, dtype=w.dtype) @ v, np.asarray(v * w[:, None, :]))
    definite = square @ np.conj(square.swapaxes(-1, -2)) + np.eye(3, dtype=dtype)
    lower, upper = L.cholesky(pb.asarray(definite)), L.cholesky(pb.asarray(definite), upper=True)
    close(lower @ adjoint(lower), definite)
    close(upper, np.asarray(adjoint(lower)))
    close(L.inv(pb.asarray(definite)) @ pb.asarray(definite), np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(L.pinv(pb.asarray(x)) @ pb.asarray(x), np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(L.matrix_power(pb.asarray(definite), 0), np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(L.matrix_power(pb.asarray(square), 5), np.linalg.matrix_power(square, 5))


def test_named_results() -> None:
    x = pb.asarray(np.eye(2))
    assert L.svd(x)._fields == ("U", "S", "Vh")
    assert L.qr(x)._fields == ("Q", "R")
    assert L.eigh(x)._fields == L.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert L.slogdet(x)._fields == ("sign", "logabsdet")


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norm_as_numpy(ord: Any, keepdims: bool) -> None:
    x = matrices("complex128", 2, 3, 2)
    found = L.matrix_norm(pb.asarray(x), ord=ord, keepdims=keepdims)
    np.testing.assert_allclose(np.asarray(found), np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims))


def test_rank_with_tolerances() -> None:
    x = np.stack([np.diag([1.0, 1e-3]), np.diag([1.0, 0.0])])
    assert L.matrix_rank(pb.asarray(x)).tolist() == [2, 1]
    assert L.matrix_rank(pb.asarray(x), rtol=0.1).tolist() == [1, 1]
    assert L.matrix_rank(pb.asarray(x), rtol=pb.asarray([0.1, 0.0])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: L.inv(x), ValueError),
        (lambda x: L.det(x), ValueError),
        (lambda x: L.solve(x @ x.T, x[0]), ValueError),
        (lambda x: L.qr(x, mode="raw"), ValueError),
        (lambda x: L.matrix_norm(x, ord=7), ValueError),
        (lambda x: L.cross(x[:, :2], x[:, :2]), ValueError),
        (lambda x: L.svd(x[0]), ValueError),
        (lambda x: L.inv(pb.asarray([[1, 2], [3, 4]])), TypeError),
        (lambda x: L.inv(pb.asarray(np.zeros((2, 2)))), np.linalg.LinAlgError),
        (lambda x: L.solve(pb.asarray(np.zeros((2, 2))), x[:, 0]), np.linalg.LinAlgError),
        (lambda x: L.cholesky(pb.asarray(-np.eye(2))), np.linalg.LinAlgError),
        (lambda x: pb.fft.fft(x, n=0), ValueError),
        (lambda x: pb.fft.fft(x, norm="half"), ValueError),
        (lambda x: pb.fft.fft(pb.asarray([1, 2])), TypeError),
        (lambda x: pb.fft.rfft(pb.asarray([1j])), TypeError),
        (lambda x: pb.fft.fftn(x, s=(2,)), ValueError),
        (lambda x: pb.fft.fft(x, axis=2), IndexError),
    ],
)
def test_errors_are_typed(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        call(pb.asarray(np.arange(6.0).reshape(2, 3)))
    assert isinstance(caught.value, pb.PullbackError)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [None, 3, 4, 7, 8])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fft_as_numpy(name: str, n: int | None, norm: str) -> None:
    x = matrices("float32" if name in ("rfft", "ihfft") else "complex64", 2, 5)
    found = getattr(pb.fft, name)(pb.asarray(x), n=n, norm=norm)
    expected = getattr(np.fft, name)(x, n=n, norm=norm)
    assert found.dtype in (pb.float32, pb.complex64)
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(("s", "axes"), [(None, None), ((3, 4), (1, 0)), ((-1, 6), (0, 2)), (None, (2, 1))])
def test_fft_over_several_axes_as_numpy(name: str, s: Any, axes: Any) -> None:
    x = matrices("float64" if name == "rfftn" else "complex128", 2, 3, 5)
    lengths = None if s is None else tuple(x.shape[a] if n == -1 else n for n, a in zip(s, axes))
    found = getattr(pb.fft, name)(pb.asarray(x), s=s, axes=axes)
    np.testing.assert_allclose(np.asarray(found), getattr(np.fft, name)(x, s=lengths, axes=axes), atol=1e-10)


def test_frequencies() -> None:
    for n in (1, 4, 5):
        np.testing.assert_allclose(np.asarray(pb.fft.fftfreq(n, d=0.5, dtype=pb.float64)), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(np.asarray(pb.fft.rfftfreq(n)), np.fft.rfftfreq(n))
        x = np.arange(2.0 * n).reshape(2, n)
        assert np.array_equal(np.asarray(pb.fft.fftshift(pb.asarray(x))), np.fft.fftshift(x))
        assert np.array_equal(np.asarray(pb.fft.ifftshift(pb.asarray(x), axes=1)), np.fft.ifftshift(x, 1))
