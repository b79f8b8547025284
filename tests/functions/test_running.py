"""Running maxima, minima and sums of exponentials: ties, infinities, NaN, and the portable kernel."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import optional
from .portable_namespace import PORTABLE

torch = optional("torch")

TIES = np.array([[1.0, 3.0, 3.0, 2.0, 3.0], [np.nan, 1.0, np.nan, 0.0, 5.0], [-np.inf, -np.inf, 0.0, np.inf, 1.0]])


def gradient(function, x: np.ndarray) -> np.ndarray:
    variable = pb.tensor(x, requires_grad=True)
    out = function(variable)
    with pb.guard("off"):
        return pb.backward(out, gradient=np.ones(out.shape))[variable]._raw


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_places_of_equal_elements_are_pytorchs(name: str, axis: int) -> None:
    for x in (TIES, TIES.astype(np.float32), np.array([[2, 1, 2], [3, 3, 1]])):
        expected = getattr(torch, name)(torch.tensor(x), axis)
        values, indices = getattr(pb, name)(x, axis)
        np.testing.assert_array_equal(values, expected.values)
        np.testing.assert_array_equal(indices, expected.indices)
        assert values.dtype == x.dtype and indices.dtype == pb.int64
        portable = PORTABLE.running_indices(x, (axis % 2 - 2,), name == "cummax")
        np.testing.assert_array_equal(portable, NUMPY.xp.running_indices(x, (axis % 2 - 2,), name == "cummax"))


def test_gradients_go_to_the_last_of_equal_elements() -> None:
    np.testing.assert_array_equal(gradient(lambda x: pb.cummax(x, 1)[0], TIES[:1]), [[1, 1, 2, 0, 1]])
    np.testing.assert_array_equal(gradient(lambda x: pb.cummin(x)[0], np.array([2.0, 1.0, 1.0])), [1, 1, 1])


def test_logcumsumexp_of_any_size() -> None:
    x = np.array([-np.inf, -np.inf, -800.0, 0.0, 800.0, 800.0, -800.0])
    with np.errstate(all="raise", under="ignore"):
        found = pb.logcumsumexp(x)
        slopes = gradient(pb.logcumsumexp, x)
    np.testing.assert_allclose(found, np.logaddexp.accumulate(x), rtol=1e-15)
    np.testing.assert_allclose(slopes, [0, 0, 1, 1, 2, 1, 0], rtol=1e-15)
    np.testing.assert_array_equal(pb.logcumsumexp(np.array([1.0, np.inf, 2000.0]))[1:], [np.inf, np.inf])
    np.testing.assert_array_equal(pb.logcumsumexp(np.array([-np.inf, np.nan, 2000.0])), [-np.inf, np.nan, np.nan])
    falling = np.linspace(700, -700, 50)
    np.testing.assert_allclose(pb.logcumsumexp(falling), np.logaddexp.accumulate(falling), rtol=1e-15)
    rising = falling[::-1].copy()
    np.testing.assert_allclose(pb.logcumsumexp(rising), np.logaddexp.accumulate(rising), rtol=1e-14)


def test_half_precision_is_summed_in_single_precision() -> None:
    out = pb.logcumsumexp(pb.zeros(5000, dtype=pb.float16))
    assert out.dtype == pb.float16
    assert abs(out[-1].item() - np.log(5000)) < 0.01


def test_small_arrays_and_what_is_refused() -> None:
    assert pb.logcumsumexp([0, 0]).dtype == pb.float64
    for function in (pb.cummax, pb.cummin, lambda x, axis=None: (pb.logcumsumexp(x, axis),)):
        assert function(np.zeros((2, 0)), 1)[0].shape == (2, 0)
        assert function(np.zeros((0, 2)), 1)[0].shape == (0, 2)
        assert function(np.array([3.0]))[0].tolist() == [3]
        with pytest.raises(pb.ShapeError, match="needs `axis=`"):
            function(np.zeros((2, 2)))
        with pytest.raises(pb.ShapeError):
            function(np.array(1.0))
        with pytest.raises(pb.DtypeError, match="no order"):
            function(np.zeros(3, complex))
