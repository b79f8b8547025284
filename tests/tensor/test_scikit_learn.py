"""Estimators of scikit-learn, as they are, on a variable: their results have gradients."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

sklearn = pytest.importorskip("sklearn")

from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    KernelCenterer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

X, Y = np.random.default_rng(0).normal(size=(12, 4)), np.random.default_rng(1).normal(size=12)
ESTIMATORS: dict[str, Callable[[Any], Any]] = {
    "StandardScaler": lambda x: StandardScaler().fit_transform(x),
    "StandardScaler and back": lambda x: (lambda s: s.inverse_transform(s.fit_transform(x) * 2))(StandardScaler()),
    "MinMaxScaler": lambda x: MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x: MaxAbsScaler().fit_transform(x),
    "Normalizer": lambda x: Normalizer().fit_transform(x),
    "Normalizer l1": lambda x: Normalizer("l1").fit_transform(x),
    "Normalizer max": lambda x: Normalizer("max").fit_transform(x),
    "PCA": lambda x: PCA(2, svd_solver="full").fit_transform(x),
    "PCA by covariance": lambda x: PCA(2, svd_solver="covariance_eigh").fit_transform(x),
    "PCA, whitened": lambda x: PCA(2, svd_solver="full", whiten=True).fit_transform(x),
    "Ridge": lambda x: Ridge(solver="svd").fit(x, pb.asarray(Y)).predict(x),
    "KernelCenterer": lambda x: KernelCenterer().fit_transform(x @ x.T),
    "PolynomialFeatures": lambda x: PolynomialFeatures(2).fit_transform(x),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # 0 / 0 before the first batch
@pytest.mark.parametrize("name", ESTIMATORS)
def test_gradients_equal_finite_differences(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")

    def total(x: Any) -> Any:
        out = ESTIMATORS[name](x)
        weights = np.random.default_rng(2).normal(size=out.shape)
        return (out * pb.asarray(weights)).sum()

    with sklearn.config_context(array_api_dispatch=True):
        variable = pb.tensor(X, requires_grad=True)
        gradient = pb.backward(total(variable))[variable].numpy()
        assert np.array_equal(variable.detach().numpy(), X)
        direction, h = np.random.default_rng(3).normal(size=X.shape), 1e-6
        ends = [total(pb.asarray(X + sign * h * direction)).item() for sign in (1, -1)]
    assert np.sum(gradient * direction) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-7)
