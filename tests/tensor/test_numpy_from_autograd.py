"""What people who come from autograd look for: values, and derivatives of both orders."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

_random = np.random.default_rng(5)
V, W, M, N = _random.normal(size=4), _random.normal(size=4), _random.normal(size=(3, 4)), _random.normal(size=(4, 3))
POSITIVE = _random.uniform(0.5, 2.0, size=4)
COUNTS = np.array([1, 2, 1, 3])
PAD_MODES = ("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")

CASES = {
    "reductions of lists of tensors, stacked": (lambda t, u: np.sum(np.stack([t, u]) ** 2, axis=0), (V, W)),
    "np.full(shape, t, like=t)": (lambda t: np.full((3, 4), t, like=t) ** 2, (V,)),
    "np.append": (lambda t, u: np.append(t * t, u), (M, V)),
    "np.append along an axis": (lambda t, u: np.append(t * t, u, axis=0), (M, M[:2])),
    "real_if_close": (lambda t: np.real_if_close(t * t + 0j), (V,)),
    "einsum's sublist form": (lambda t, u: np.einsum(t, [0, 1], u, [1, 2], [2, 0]), (M, N)),
    "einsum's sublist form without output": (lambda t, u: np.einsum(t, [0, 1], u, [1, 2]), (M, N)),
    "einsum's sublist form with an ellipsis": (lambda t: np.einsum(t * t, [..., 0], [0, ...]), (M,)),
    "reshape, order F": (lambda t: np.reshape(t * t, (2, 6), order="F") * np.arange(12.0).reshape(2, 6), (M,)),
    "method reshape, order F": (lambda t: (t * t).reshape((2, 6), order="F") * np.arange(12.0).reshape(2, 6), (M,)),
    "ravel, order F": (lambda t: np.ravel(t * t, "F") * np.arange(12.0), (M,)),
    "method ravel, order F": (lambda t: (t * t).ravel(order="F") * np.arange(12.0), (M,)),
    "method flatten, order F": (lambda t: (t * t).flatten("F") * np.arange(12.0), (M,)),
    "np.std, ddof": (lambda t: np.std(t, axis=1, ddof=1), (M,)),
    "method std, ddof": (lambda t: t.std(1, ddof=1), (M,)),
    "method var, ddof": (lambda t: t.var(ddof=2), (M,)),
    "gradient, edge_order 2": (lambda t: np.gradient(t**2, edge_order=2)[1], (M,)),
    "gradient, edge_order 2, uneven": (lambda t, x: np.gradient(t**2, np.cumsum(x), edge_order=2), (V, POSITIVE)),
    "cov, fweights": (lambda t: np.cov(t, fweights=COUNTS), (M,)),
    "cov, aweights": (lambda t, w: np.cov(t, aweights=w), (M, POSITIVE)),
    "cov, both weights": (lambda t, w: np.cov(t, fweights=COUNTS, aweights=w, ddof=2), (M, POSITIVE)),
    "cov, bias, columns": (lambda t: np.cov(t, rowvar=False, bias=True), (M,)),
    "divmod": (lambda t, u: divmod(t, u)[1] * divmod(t, u)[0], (V, POSITIVE)),
    "divmod of a number": (lambda t: divmod(7.0, t)[1], (POSITIVE,)),
    "round(t)": (lambda t: round(t) * t, (V,)),
    "round(t, 2)": (lambda t: round(t, 2) * t, (V,)),
    "t.flat": (lambda t: t.flat[5] * t.flat[2:4], (M,)),
    "where= of reductions": (lambda t: np.mean(t**2, axis=0, where=M > -0.8), (np.abs(M),)),
    "nanquantile": (lambda t: np.nanquantile(t * t, [0.2, 0.7], axis=1, method="hazen"), (M,)),
    "ufunc.reduceat": (lambda t: np.multiply.reduceat(t, [0, 2, 1], axis=1), (M,)),
    "ufunc.reduce without a name of its own": (lambda t: np.hypot.reduce(t, axis=(0, 1)), (M,)),
    "take, mode wrap": (lambda t: np.take(t * t, [0, 7, -9], axis=1, mode="wrap"), (M,)),
    "choose": (lambda t, u: np.choose([0, 1, 1, 0], [t * t, u]), (V, W)),
    "tensorsolve": (lambda t, u: np.linalg.tensorsolve(t, u), (_random.normal(size=(4, 2, 2)), V)),
    "tensorinv": (lambda t: np.linalg.tensorinv(t, 1), (_random.normal(size=(4, 2, 2)),)),
    "geomspace": (lambda t, u: np.geomspace(t, u, 5), (POSITIVE, POSITIVE[::-1].copy())),
    "interp, period": (lambda t: np.interp([-1.0, 0.3, 5.0], [0.0, 1.0, 2.0, 2.5], t * t, period=3.0), (V,)),
    **{f"pad, {mode}": (lambda t, m=mode: np.pad(t * t, ((2, 1), (0, 3)), m), (M,)) for mode in PAD_MODES},
    "pad, odd": (lambda t: np.pad(t * t, 6, "reflect", reflect_type="odd"), (M,)),
    "pad, odd, symmetric": (lambda t: np.pad(t * t, ((0, 5), (7, 2)), "symmetric", reflect_type="odd"), (M,)),
    "pad, constants of one's own": (lambda t, c: np.pad(t * t, 2, constant_values=c), (M, V[:2])),
    "pad, ends of one's own": (lambda t, c: np.pad(t * t, 2, "linear_ramp", end_values=c), (M, V[:2])),
    "pad, a few for the statistic": (lambda t: np.pad(t * t, 2, "mean", stat_length=((1, 2), (3, 1))), (M,)),
}


@pytest.mark.parametrize(("function", "arguments"), CASES.values(), ids=CASES)
def test_what_autograd_has_works_with_both_derivatives(function, arguments):
    result = function(*[pb.tensor(x, requires_grad=True) for x in arguments])
    assert result.requires_grad
    rounded = [pb.asarray(x) if "round" in function.__code__.co_names else x for x in arguments]  # arrays cannot be
    np.testing.assert_allclose(result.detach().numpy(), np.asarray(function(*rounded)), rtol=1e-14)
    assert pb.gradcheck(function, arguments, order=2)
