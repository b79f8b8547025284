"""The linear recurrence: against a plain loop, dtypes, lengths, errors, and the portable kernels."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import is_installed
from .portable_namespace import PORTABLE


def loop(x: np.ndarray, a: np.ndarray, h0: np.ndarray | float, axis: int, reverse: bool) -> np.ndarray:
    steps = np.moveaxis(x, axis, 0), np.moveaxis(np.broadcast_to(a, x.shape), axis, 0)
    states, state = [], h0
    for x_now, a_now in list(zip(*steps))[:: -1 if reverse else 1]:
        state = a_now * state + x_now
        states.append(state)
    return np.moveaxis(np.array(states[:: -1 if reverse else 1]), 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 300, 7), (5, 40, 300)])
def test_values(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=shape), rng.uniform(-1, 1, shape)
    h0 = rng.normal(size=np.delete(shape, axis))
    for factor, start in ((a, h0), (a, None), (a[0], None), (np.array(0.9), h0)):
        found = pb.ssm_scan(x, factor, h0=start, axis=axis, reverse=reverse)._raw
        np.testing.assert_allclose(found, loop(x, factor, 0 if start is None else start, axis, reverse), rtol=1e-12)


def test_b_multiplies_x() -> None:
    rng = np.random.default_rng(1)
    x, a, b = rng.normal(size=(6, 4)), rng.uniform(size=4), rng.normal(size=(6, 1))
    np.testing.assert_allclose(pb.ssm_scan(x, a, b)._raw, loop(b * x, a, 0, 0, False), rtol=1e-12)


def test_growing_factors_stay_exact() -> None:
    x, a = np.zeros((2000, 3)), np.full((2000, 3), 1e3)
    x[-5] = 1.0
    out = pb.ssm_scan(x, a)._raw
    np.testing.assert_allclose(out[-1], 1e12)
    assert np.isfinite(out).all()


def test_no_steps() -> None:
    x, a, h0 = (pb.tensor(np.ones(shape), requires_grad=True) for shape in ((0, 3), (0, 3), (3,)))
    out = pb.ssm_scan(x, a, h0=h0)
    gradients = pb.backward(out, gradient=np.ones((0, 3)))
    assert out.shape == gradients[x].shape == gradients[a].shape == (0, 3)
    np.testing.assert_array_equal(gradients[h0]._raw, np.zeros(3))


def test_single_precision_stays_single_and_half_is_computed_in_single() -> None:
    x = np.full((4000, 2), 0.25)
    for dtype in (pb.float32, pb.float16, *([pb.bfloat16] if is_installed("ml_dtypes") else [])):
        tensors = [pb.asarray(v, dtype=dtype).set_requires_grad(True) for v in (x, np.full(2, 0.9990234375))]
        out = pb.ssm_scan(*tensors)
        assert out.dtype == dtype
        expected = loop(x, np.asarray(tensors[1]._raw, np.float64), 0, 0, False)
        np.testing.assert_allclose(out._raw.astype(np.float64), expected, rtol=1e-2)
        with pb.guard("off"), np.errstate(over="ignore"):  # the sum for `a` is beyond float16
            gradients = pb.backward(out, gradient=np.ones(out.shape, out._raw.dtype))
        assert all(gradients[t].dtype == dtype for t in tensors)


def test_errors_say_what_was_given() -> None:
    with pytest.raises(pb.ShapeError, match=r"a of shape \(3,\) does not broadcast to \(5, 4\)"):
        pb.ssm_scan(np.zeros((5, 4)), np.zeros(3))
    with pytest.raises(pb.ShapeError, match="h0 of shape"):
        pb.ssm_scan(np.zeros((5, 4)), np.zeros(4), h0=np.zeros((5, 4)))
    with pytest.raises(pb.ShapeError, match="axis 2"):
        pb.ssm_scan(np.zeros((5, 4)), np.zeros(4), axis=2)
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.ssm_scan(np.zeros(5, int), np.zeros(5))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("a_shape", [(2, 5, 3), (5, 1), ()])
def test_portable_kernels_agree(a_shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(2)
    shape = (2, 5, 3)
    x, a, g = rng.normal(size=shape), rng.uniform(-1, 1, a_shape), rng.normal(size=shape)
    for h0 in (None, rng.normal(size=np.delete(shape, axis))):
        out = NUMPY.xp.ssm_scan(x, a, h0, axis, reverse)
        np.testing.assert_allclose(PORTABLE.ssm_scan(x, a, h0, axis, reverse), out, rtol=1e-12, atol=1e-13)
        needs = True, True, h0 is not None
        arguments = (g, a, h0, out, a_shape, None if h0 is None else h0.shape, axis, reverse, needs)
        for found, expected in zip(PORTABLE.ssm_scan_gradient(*arguments), NUMPY.xp.ssm_scan_gradient(*arguments)):
            if expected is not None:
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
