"""Solvers, factors of matrices and functions of them: against SciPy, NumPy and PyTorch, at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

scipy_linalg = optional("scipy.linalg")
torch = optional("torch")

generator = np.random.default_rng(0)
L = pb.linalg


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    x = generator.normal(size=shape)
    return (x + 1j * generator.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def on(device: str, x: np.ndarray) -> pb.Tensor:
    require(device)
    if device.startswith("jax") and x.dtype.itemsize > 4:
        import jax

        jax.config.update("jax_enable_x64", True)
    return pb.asarray(x, device=device)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().to_device("numpy"))


DEVICES = ["numpy", "torch:cpu", "jax:cpu", "strict"]
every_device = pytest.mark.parametrize("device", DEVICES)
KINDS = ["float64", "complex128"]


# -- triangular solve ------------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
def test_triangular_solve_as_scipy(device: str, dtype: str, trans: Any) -> None:
    x, y = matrices(4, 4, dtype=dtype), matrices(4, 2, dtype=dtype)
    for lower in (False, True):
        for unit in (False, True):
            options = {"lower": lower, "trans": trans, "unit_diagonal": unit}
            found = L.solve_triangular(on(device, x), on(device, y), **options)
            np.testing.assert_allclose(host(found), scipy_linalg.solve_triangular(x, y, **options), rtol=1e-9)
            vector = L.solve_triangular(on(device, x), on(device, y[:, 0]), **options)
            np.testing.assert_allclose(host(vector), host(found)[:, 0], rtol=1e-12)


@every_device
def test_the_other_triangle_is_not_read(device: str) -> None:
    x = np.tril(matrices(2, 3, 3)) + 3 * np.eye(3)
    noisy = np.where(np.tri(3, dtype=bool), x, np.nan)
    y = matrices(3, 2)
    found = L.solve_triangular(on(device, noisy), on(device, y), upper=False)
    np.testing.assert_allclose(host(found), np.linalg.solve(x, np.broadcast_to(y, (2, 3, 2))), rtol=1e-10)


def test_which_triangle_may_be_said_in_two_ways() -> None:
    x, y = pb.asarray(matrices(3, 3)), pb.asarray(matrices(3))
    upper = L.solve_triangular(x, y)
    assert (L.solve_triangular(x, y, upper=True) == upper).all()
    assert (L.solve_triangular(x, y, lower=False) == upper).all()
    assert (L.solve_triangular(x, y, lower=True) == L.solve_triangular(x, y, upper=False)).all()
    with pytest.raises(pb.ShapeError, match="exclude each other"):
        L.solve_triangular(x, y, lower=True, upper=True)


def test_substitution_is_as_exact_as_the_diagonal_allows() -> None:
    """A graded triangle, where exchanging rows would lose the small ones."""
    x = np.tril(np.ones((3, 3))) * np.array([[1e-12], [1.0], [1e12]])
    exact = np.array([1.0, 2.0, 3.0])
    found = L.solve_triangular(pb.asarray(x), pb.asarray(x @ exact), lower=True)
    np.testing.assert_allclose(host(found), exact, rtol=1e-13)


def test_bad_arguments_of_triangular_solves() -> None:
    x = pb.asarray(np.eye(3))
    with pytest.raises(pb.ShapeError, match="do not fit"):
        L.solve_triangular(x, pb.asarray(np.ones(2)))
    with pytest.raises(pb.ShapeError, match="square"):
        L.solve_triangular(pb.asarray(np.ones((3, 2))), pb.asarray(np.ones(3)))
    with pytest.raises(pb.ShapeError, match="trans must be"):
        L.solve_triangular(x, pb.asarray(np.ones(3)), trans=3)
    with pytest.raises(pb.DtypeError, match="floating-point"):
        L.solve_triangular(x, pb.asarray([1, 2, 3]))
    with pytest.raises(pb.LinearAlgebraError):
        L.solve_triangular(pb.asarray(np.zeros((2, 2))), pb.asarray(np.ones(2)))
    assert L.solve_triangular(pb.zeros((0, 0)), pb.zeros((0, 2))).shape == (0, 2)
    assert L.solve_triangular(pb.zeros((2, 3, 3)) + pb.eye(3), pb.zeros((3, 0))).shape == (2, 3, 0)


@every_device
@pytest.mark.parametrize("dtype", KINDS)
def test_cholesky_solve_solves(device: str, dtype: str) -> None:
    x = matrices(2, 3, 3, dtype=dtype)
    definite = x @ np.conj(x.swapaxes(-1, -2)) + np.eye(3)
    y = matrices(2, 3, 2, dtype=dtype)
    for upper in (False, True):
        factor = L.cholesky(on(device, definite), upper=upper)
        found = L.cholesky_solve(on(device, y), factor, upper=upper)
        np.testing.assert_allclose(host(found), np.linalg.solve(definite, y), rtol=1e-8)
    with pytest.raises(pb.ShapeError, match="do not fit"):
        L.cholesky_solve(pb.asarray(np.ones(2)), pb.asarray(np.eye(3)))


# -- factors ---------------------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 3), (1, 1), (70, 65), (0, 0), (0, 3), (2, 0)])
def test_lu_multiplies_back_with_the_largest_pivots(device: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = matrices(*shape, dtype=dtype)
    p, l, u = L.lu(on(device, x))
    np.testing.assert_allclose(host(p) @ host(l) @ host(u), x, atol=1e-12)
    assert p.shape == (*shape[:-1], shape[-2])
    assert (np.abs(host(l)) <= 1.5).all()  # of complex numbers LAPACK compares sums of parts
    assert (np.triu(host(l), 1) == 0).all()
    assert (np.tril(host(u), -1) == 0).all()
    if scipy_linalg and len(shape) == 2 and 0 not in shape:
        for found, expected in zip((p, l, u), scipy_linalg.lu(x)):
            np.testing.assert_allclose(host(found), expected, atol=1e-11)


def test_lu_of_a_singular_matrix() -> None:
    x = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 3.0, 4.0]])
    p, l, u = L.lu(pb.asarray(x))
    np.testing.assert_allclose(np.asarray(p @ l @ u), x)


@every_device
def test_a_triangle_of_a_hermitian_matrix_is_read(device: str) -> None:
    x = matrices(3, 3, dtype="complex128")
    for uplo in "LUlu":
        found = L.eigh(on(device, x), uplo)
        np.testing.assert_allclose(host(found.eigenvalues), np.linalg.eigvalsh(x, uplo.upper()), rtol=1e-10)
        np.testing.assert_allclose(host(L.eigvalsh(on(device, x), UPLO=uplo)), host(found.eigenvalues), rtol=1e-10)


def test_there_are_two_triangles() -> None:
    with pytest.raises(pb.ShapeError, match='"L" or "U"'):
        L.eigh(pb.asarray(np.eye(3)), "X")


# -- inverses and least squares --------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 3), (0, 3), (2, 0)])
@pytest.mark.parametrize("tolerances", [(None, None), (None, 0.5), (0.4, None), (0.1, 0.9), (0.0, 0.0), (None, 1e3)])
def test_pinv_with_tolerances_as_pytorch(device: str, dtype: str, shape: Any, tolerances: Any) -> None:
    require("torch:cpu")
    x = matrices(*shape, dtype=dtype)
    rtol, atol = tolerances
    found = L.pinv(on(device, x), rtol=rtol, atol=atol)
    np.testing.assert_allclose(host(found), torch.linalg.pinv(torch.tensor(x), rtol=rtol, atol=atol).numpy(), atol=1e-9)


def test_gradient_of_pinv_where_equal_singular_values_stay_and_others_are_left_out() -> None:
    """Differences see a smooth function here, which derivatives through singular vectors alone would miss."""
    q, _ = np.linalg.qr(matrices(4, 4))
    x = q[:, :3] @ np.diag([2.0, 2.0, 0.3]) @ np.linalg.qr(matrices(3, 3))[0]
    direction, weights, step = matrices(4, 3), matrices(3, 4), 1e-5

    def value(y: Any) -> Any:
        return (L.pinv(pb.asarray(y), atol=1.0) * weights).sum()

    slope = (float(value(x + step * direction)) - float(value(x - step * direction))) / (2 * step)
    gradient = np.asarray(pb.grad(value)(pb.asarray(x)))
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)


def test_bad_tolerances() -> None:
    with pytest.raises(pb.ShapeError, match="not negative"):
        L.pinv(pb.asarray(np.eye(2)), atol=-1.0)


@every_device
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("shape", "right"), [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 3), (3, 1)), ((2, 4), (2, 2))])
def test_least_squares_as_numpy(device: str, dtype: str, shape: Any, right: Any) -> None:
    x, y = matrices(*shape, dtype=dtype), matrices(*right, dtype=dtype)
    for found, expected in zip(L.lstsq(on(device, x), on(device, y)), np.linalg.lstsq(x, y, None)):
        assert host(found).shape == np.shape(expected)
        np.testing.assert_allclose(host(found), expected, atol=1e-10)


def test_least_squares_of_lower_rank_stacks_and_cut_off_values() -> None:
    x = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    y = matrices(3)
    found, expected = L.lstsq(pb.asarray(x), pb.asarray(y)), np.linalg.lstsq(x, y, None)
    np.testing.assert_allclose(host(found.solution), expected[0], atol=1e-12)
    assert int(found.rank) == expected[2] == 1
    x, y = matrices(4, 3), matrices(4)
    cut = float(np.linalg.svd(x)[1][1] / np.linalg.svd(x)[1][0]) + 1e-3
    np.testing.assert_allclose(
        host(L.lstsq(pb.asarray(x), pb.asarray(y), cut).solution), np.linalg.lstsq(x, y, cut)[0], atol=1e-12
    )
    stack, right = matrices(2, 4, 3), matrices(4, 1)
    solution = L.lstsq(pb.asarray(stack), pb.asarray(right)).solution
    for i in range(2):
        np.testing.assert_allclose(host(solution)[i], np.linalg.lstsq(stack[i], right, None)[0], atol=1e-12)
    with pytest.raises(pb.ShapeError, match="do not fit"):
        L.lstsq(pb.asarray(stack), pb.asarray(np.ones(3)))


# -- exponential and norms -------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("dtype", [*KINDS, "float32"])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 12.0])
def test_exponential_as_scipy(device: str, dtype: str, size: float) -> None:
    x = (matrices(3, 4, 4, dtype=dtype) * np.array([1.0, 0.1, 0.0])[:, None, None] * size).astype(dtype)
    found, expected = host(L.matrix_exp(on(device, x))), scipy_linalg.expm(x.astype(np.result_type(x, "float64")))
    assert found.dtype == x.dtype
    np.testing.assert_allclose(
        found, expected, rtol=2e-3 if dtype == "float32" else 1e-9, atol=1e-9 * abs(expected).max()
    )


def test_exponential_at_its_edges() -> None:
    assert L.matrix_exp(pb.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert (L.matrix_exp(pb.zeros((3, 3))) == pb.eye(3)).all()
    np.testing.assert_allclose(np.asarray(L.matrix_exp(pb.asarray([[2.0]], dtype="float64"))), np.exp([[2.0]]))
    assert pb.isnan(L.matrix_exp(pb.asarray([[np.nan]]))).all()
    with pytest.raises(pb.ShapeError, match="square"):
        L.matrix_exp(pb.zeros((2, 3)))
    nilpotent = pb.asarray(np.diag([3.0, 5.0], 1))
    np.testing.assert_allclose(np.asarray(L.matrix_exp(nilpotent)), [[1, 3, 7.5], [0, 1, 5], [0, 0, 1]], atol=1e-13)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
def test_gradient_of_the_exponential_for_cotangents_of_any_size(size: float) -> None:
    x, direction, weights = matrices(3, 3), matrices(3, 3), matrices(3, 3) * size
    both = np.block([[x, direction], [np.zeros((3, 3)), x]])
    expected = np.sum(scipy_linalg.expm(both)[:3, 3:] * weights)
    gradient = pb.grad(lambda y: (L.matrix_exp(y) * weights).sum())(pb.asarray(x))
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * direction), expected, rtol=1e-11)
    at_zero = pb.grad(lambda y: (L.matrix_exp(y) * weights).sum())(pb.zeros((3, 3), dtype="float64"))
    np.testing.assert_allclose(np.asarray(at_zero), weights, rtol=1e-14)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "orders", "axis"),
    [
        ((3,), (None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf), None),
        ((3, 2), (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf), None),
        ((2, 3, 2), (None,), None),
        ((2, 3, 2), (None, 1, np.inf, 3), -2),
        ((2, 3, 2), (None, "fro", "nuc", 1, 2, -np.inf), (0, -1)),
        ((2, 3, 2), (None, "nuc", -1, np.inf), (2, 1)),
    ],
)
def test_norms_as_numpy(shape: Any, orders: Any, axis: Any, keepdims: bool) -> None:
    x = matrices(*shape)
    for order in orders:
        found, expected = L.norm(pb.asarray(x), order, axis, keepdims), np.linalg.norm(x, order, axis, keepdims)
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(host(found), expected, rtol=1e-12)


def test_norms_of_nothing_known() -> None:
    with pytest.raises(pb.ShapeError, match="`axis`"):
        L.norm(pb.zeros((2, 2, 2)), 1)
    with pytest.raises(pb.ShapeError, match="'fro' is a norm of matrices"):
        pb.linalg.norm(np.ones(2), "fro")
    with pytest.raises(pb.ShapeError, match="must be a number, got 'nuc'"):
        pb.linalg.vector_norm(np.ones(2), ord="nuc")
    with pytest.raises(pb.ShapeError, match="unknown ord"):
        L.norm(pb.zeros((2, 2)), 3)
    with pytest.raises(pb.DtypeError, match="floating-point"):
        L.norm(pb.asarray([1, 2]))
    with pytest.raises(pb.AxisError):
        L.norm(pb.zeros((2,)), axis=1)


# -- where they run --------------------------------------------------------------------------------


def test_they_are_compiled() -> None:
    @pb.compile
    def step(x: pb.Tensor, y: pb.Tensor) -> Any:
        def loss(x: Any) -> Any:
            _, l, u = L.lu(x)
            parts = L.solve_triangular(x, y, lower=True), L.matrix_exp(x), l, u, L.pinv(x, atol=0.5), L.lstsq(x, y)[0]
            return sum((part**2).sum() for part in parts)

        return pb.value_and_grad(loss)(x)

    x, y = pb.asarray(matrices(3, 3) + 3 * np.eye(3)), pb.asarray(matrices(3, 2))
    for scale in (1.0, 2.0):  # the second call is a program's
        found, expected = step(x * scale, y), step.__wrapped__(x * scale, y)
        np.testing.assert_allclose(float(found[0]), float(expected[0]), rtol=1e-10)
        np.testing.assert_allclose(host(found[1]), host(expected[1]), rtol=1e-8)


def test_only_public_names_are_listed() -> None:
    assert set(dir(L)) == set(L.__all__)
