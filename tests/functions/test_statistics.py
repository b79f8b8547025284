"""Covariances, distances and integrals: against NumPy, SciPy and PyTorch, and at their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")
distance = optional("scipy.spatial.distance")
generator = np.random.default_rng(0)
every_device = pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu", "strict"])


def on(device: str, x: Any) -> pb.Tensor:
    require(device)
    return pb.asarray(np.asarray(x), device=device)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().to_device("numpy"))


FREQUENCIES, IMPORTANCES = np.array([1, 0, 2, 3, 1]), np.array([0.5, 1, 2, 0, 1], np.float32)
WEIGHTED = {"fweights": FREQUENCIES, "aweights": IMPORTANCES, "ddof": 0}
OPTIONS: list[dict[str, Any]] = [
    {}, {"bias": True}, {"ddof": 0}, {"ddof": 2}, {"rowvar": False}, {"fweights": FREQUENCIES},
    {"aweights": IMPORTANCES}, WEIGHTED,
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "options"),
    [("numpy", options) for options in OPTIONS] + [(device, WEIGHTED) for device in ("torch:cpu", "jax:cpu", "strict")],
)
def test_covariances_as_numpy(device: str, options: Any) -> None:
    x = generator.normal(size=(3, 5)).astype(np.float32)
    x = x.T if options.get("rowvar") is False else x
    given = {key: on(device, value) if isinstance(value, np.ndarray) else value for key, value in options.items()}
    np.testing.assert_allclose(host(pb.cov(on(device, x), **given)), np.cov(x, **options), rtol=1e-4, atol=1e-6)
    if "rowvar" not in options:
        one = pb.cov(on(device, x[0]), on(device, x), **given)
        np.testing.assert_allclose(host(one), np.cov(x[0], x, **options), rtol=1e-4, atol=1e-6)
        assert pb.cov(on(device, x[0]), **given).shape == ()


def test_too_few_observations_have_no_covariance() -> None:
    assert np.isnan(host(pb.cov(np.ones((2, 1))))).all()
    assert np.isnan(host(pb.cov(np.ones((2, 3)), ddof=3))).all()
    assert np.isnan(host(pb.cov(np.ones((2, 3)), aweights=np.zeros(3)))).all()
    assert np.isnan(host(pb.cov(np.ones((2, 0))))).all()
    assert pb.cov(np.ones((0, 3))).shape == (0, 0)


def test_bad_covariances() -> None:
    with pytest.raises(pb.ShapeError, match="vector or a matrix"):
        pb.cov(np.ones((2, 2, 2)))
    with pytest.raises(pb.ShapeError, match="observations"):
        pb.cov(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(pb.ShapeError, match=r"aweights has shape \(2,\)"):
        pb.cov(np.ones((2, 3)), aweights=np.ones(2))
    with pytest.raises(pb.DtypeError, match="floating-point"):
        pb.cov(pb.asarray([1, 2]))


@every_device
@pytest.mark.parametrize("p", [2, 1, math.inf, 0, 3, 0.5])
def test_distances_as_scipy(device: str, p: float) -> None:
    x, y = generator.integers(0, 3, (4, 3)).astype(np.float32), generator.integers(0, 3, (2, 5, 3)).astype(np.float32)
    found = host(pb.cdist(on(device, x), on(device, y), p))
    difference = np.abs(x[:, None] - y[:, None])
    with np.errstate(all="ignore"):
        expected = {0: (difference != 0).sum(-1), math.inf: difference.max(-1)}.get(
            p, (difference**p).sum(-1) ** (1 / max(p, 1e-9))
        )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if p >= 1:
        np.testing.assert_allclose(
            found[0], distance.cdist(x, y[0], "minkowski", p=p) if p < 9 else expected[0], rtol=1e-5
        )


@pytest.mark.parametrize("p", [2, 1, math.inf, 3, 1.5])
def test_gradients_of_distances_are_finite_where_points_are_the_same(p: float) -> None:
    x = pb.asarray(np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 5.0]]))
    gradient = np.asarray(pb.grad(lambda x: pb.cdist(x, x, p).sum())(x))
    np.testing.assert_allclose(gradient, [[0, -2], [0, -2], [0, 4]], atol=1e-12)
    second = pb.hessian(lambda x: (pb.cdist(x, x, p) ** 2).sum())(x)
    assert np.isfinite(np.asarray(second)).all()


def test_distances_of_nothing() -> None:
    assert pb.cdist(pb.zeros((0, 3)), pb.zeros((2, 3))).shape == (0, 2)
    assert pb.cdist(pb.zeros((4, 2, 0)), pb.zeros((3, 0))).tolist() == [[[0.0] * 3] * 2] * 4
    assert pb.cdist(pb.zeros((0, 1, 3)), pb.zeros((2, 3)), math.inf).shape == (0, 1, 2)
    with pytest.raises(pb.ShapeError, match="as many coordinates"):
        pb.cdist(pb.zeros((2, 3)), pb.zeros((2, 4)))
    with pytest.raises(pb.DtypeError, match="floating-point"):
        pb.cdist(pb.asarray([[1]]), pb.asarray([[1]]))
    with pytest.raises(ValueError, match="negative"):
        pb.cdist(pb.zeros((2, 3)), pb.zeros((2, 3)), -1)


@every_device
def test_integrals_as_numpy(device: str) -> None:
    y, x, xs = generator.normal(size=(2, 4, 3)), np.sort(generator.normal(size=4)), generator.normal(size=(2, 4, 3))
    y, x, xs = (a.astype(np.float32) for a in (y, x, xs))
    for axis in (0, 1, -1):
        found = pb.trapezoid(on(device, y), dx=0.5, axis=axis)
        np.testing.assert_allclose(host(found), np.trapezoid(y, dx=0.5, axis=axis), rtol=1e-5, atol=1e-6)
        found = pb.trapezoid(on(device, y), on(device, xs), axis=axis)
        np.testing.assert_allclose(host(found), np.trapezoid(y, xs, axis=axis), rtol=1e-4, atol=1e-5)
    found = pb.trapezoid(on(device, y), on(device, x), axis=1)
    np.testing.assert_allclose(host(found), np.trapezoid(y, x, axis=1), rtol=1e-4, atol=1e-5)


def test_integrals_at_their_edges() -> None:
    assert pb.trapezoid([1.0]).item() == 0.0
    assert pb.trapezoid(pb.zeros((0,))).item() == 0.0
    assert pb.trapezoid([1, 2]).item() == 1.5
    with pytest.raises(pb.ShapeError, match="x has 2 places"):
        pb.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0])
    with pytest.raises(pb.AxisError):
        pb.trapezoid(1.0)
    with pytest.raises(pb.ShapeError, match="no axis 0"):
        pb.trapezoid(pb.zeros((2, 2, 2)), pb.zeros((2, 2)), axis=0)
