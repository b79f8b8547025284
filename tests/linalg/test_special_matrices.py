"""Gradients where a matrix is special: singular, with equal eigenvalues, zero, or empty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback as pb

L = pb.linalg
WEIGHTS = np.arange(9.0).reshape(3, 3)


def gradient(function: Any, x: np.ndarray) -> np.ndarray:
    variable = pb.tensor(x, requires_grad=True)
    return np.asarray(pb.backward(function(variable))[variable].detach())


def weighted(x: Any) -> Any:
    return pb.sum(x * pb.asarray(WEIGHTS))


def test_det_of_singular_matrices_has_its_cofactors() -> None:
    rank_two = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    cofactors = np.array([[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]])
    np.testing.assert_allclose(gradient(L.det, rank_two), cofactors, atol=1e-12)
    np.testing.assert_allclose(gradient(L.det, np.diag([2.0, 3.0, 0.0])), np.diag([0.0, 0.0, 6.0]), atol=1e-12)
    np.testing.assert_allclose(gradient(L.det, np.ones((3, 3))), np.zeros((3, 3)), atol=1e-12)
    stack = np.stack([np.eye(3), np.zeros((3, 3)), rank_two])
    found = gradient(lambda x: pb.sum(L.det(x)), stack)
    np.testing.assert_allclose(found, np.stack([np.eye(3), np.zeros((3, 3)), cofactors]), atol=1e-12)


def test_second_derivative_of_det_at_zero() -> None:
    x = pb.tensor(np.zeros((2, 2)), requires_grad=True)
    first = pb.backward(L.det(x), create_graph=True)[x]
    second = pb.backward(pb.sum(first * pb.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=pb.float64)))[x]
    np.testing.assert_allclose(np.asarray(second.detach()), [[4.0, -3.0], [-2.0, 1.0]], atol=1e-12)


def test_projector_on_an_eigenspace_of_dimension_two() -> None:
    def projector(x: Any) -> Any:
        v = L.eigh((x + x.T) / 2).eigenvectors[:, :2]
        return weighted(v @ v.T)

    x = np.diag([1.0, 1.0, 3.0])
    found = gradient(projector, x)
    step = 1e-5
    for i in range(3):
        for j in range(3):
            moved = np.zeros((3, 3))
            moved[i, j] = step
            difference = (projector(pb.asarray(x + moved)) - projector(pb.asarray(x - moved))).item() / (2 * step)
            assert abs(found[i, j] - difference) < 1e-6


def test_equal_singular_values_do_not_matter_to_the_polar_factor() -> None:
    def polar(x: Any) -> Any:
        u, _, vh = L.svd(x, full_matrices=False)
        return weighted(u @ vh)

    np.testing.assert_allclose(gradient(polar, np.eye(3)), (WEIGHTS - WEIGHTS.T) / 2, atol=1e-12)


@pytest.mark.parametrize("x", [np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 1.0, 0.0])])
def test_nothing_is_nan_at_special_matrices(x: np.ndarray) -> None:
    functions = [
        lambda x: pb.sum(L.svdvals(x)),
        lambda x: pb.sum(pb.abs(L.svd(x).U)) + pb.sum(L.svd(x).S),
        lambda x: pb.sum(pb.abs(L.eigh(x).eigenvectors)) + pb.sum(L.eigh(x).eigenvalues),
        lambda x: pb.sum(L.eigvalsh(x)),
        lambda x: L.matrix_norm(x, ord="nuc"),
        lambda x: L.matrix_norm(x, ord=2),
        lambda x: L.matrix_norm(x),
        lambda x: pb.sum(L.pinv(x)),
    ]
    for function in functions:
        assert np.all(np.isfinite(gradient(function, x)))


@pytest.mark.parametrize("ord", [2, 1, 3, 1.5, 0.5, math.inf, 0])
def test_norm_of_a_zero_vector_has_gradient_zero(ord: float) -> None:
    assert gradient(lambda x: L.vector_norm(x, ord=ord), np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.all(gradient(lambda x: L.vector_norm(x, ord=ord), np.zeros(3, complex)) == 0)


def test_ties_share_the_gradient_of_the_largest() -> None:
    assert gradient(lambda x: L.vector_norm(x, ord=math.inf), np.array([1.0, -1.0, 0.5])).tolist() == [0.5, -0.5, 0.0]
    assert gradient(lambda x: L.vector_norm(x, ord=-math.inf), np.array([1.0, -1.0, 2.0])).tolist() == [0.5, -0.5, 0.0]


def test_masked_singular_matrix_gives_no_nan() -> None:
    def masked(x: Any) -> Any:
        sign, logarithm = L.slogdet(x)
        return pb.sum(pb.where(sign != 0, logarithm, 0.0))

    x = np.stack([2 * np.eye(2), np.zeros((2, 2))])
    np.testing.assert_allclose(gradient(masked, x), np.stack([np.eye(2) / 2, np.zeros((2, 2))]))


@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2), (3, 0, 0)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    functions = [
        L.inv,
        L.det,
        L.cholesky,
        L.eigvalsh,
        L.svdvals,
        L.pinv,
        L.matrix_norm,
        lambda x: L.eigh(x).eigenvectors,
        lambda x: L.svd(x).U,
        lambda x: L.qr(x).Q,
        lambda x: L.slogdet(x).logabsdet,
        lambda x: pb.abs(L.eig(x).eigenvectors),
        lambda x: pb.abs(L.eigvals(x)),
        lambda x: L.solve(x, x),
    ]
    for function in functions:
        assert gradient(lambda x, function=function: pb.sum(function(x)), np.zeros(shape)).shape == shape


def test_gradients_in_single_precision_stay_single() -> None:
    x = np.eye(3, dtype=np.float32) * np.array([1.0, 2.0, 3.0], np.float32)
    for function in (
        L.inv,
        L.det,
        L.cholesky,
        L.svdvals,
        L.pinv,
        lambda x: L.qr(x).R,
        lambda x: L.eigh(x).eigenvectors,
    ):
        assert gradient(lambda x, function=function: pb.sum(function(x)), x).dtype == np.float32
    assert gradient(lambda x: pb.sum(pb.abs(pb.fft.rfft(x))), x).dtype == np.float32
    assert gradient(lambda x: pb.sum(pb.real(L.eig(x).eigenvalues)), x).dtype == np.float32
