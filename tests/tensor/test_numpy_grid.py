"""Every NumPy function that is accepted on tensors, against the same on arrays: values, errors and derivatives."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import pullback as pb
from pullback.tensors import numpy_functions

from .numpy_grid import derivatives
from .numpy_grid.comparison import difference
from .numpy_grid.exceptions import EXCEPTIONS, excepted
from .numpy_grid.grid import functions

FUNCTIONS = list(functions())
pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's, of what is at the edge on purpose


def _differences(function, calls, stride=1):
    return [
        (text, arguments) for arguments in islice(calls(), 0, None, stride) if (text := difference(function, arguments))
    ]


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(7, id="some")])
@pytest.mark.parametrize(("name", "function", "calls"), FUNCTIONS, ids=[name for name, *_ in FUNCTIONS])
def test_numpy_functions_on_tensors_are_numpys(name, function, calls, stride):
    """Values within 4 ulp, and errors of the same class, where any of the arrays is a tensor."""
    assert calls is not None, f"np.{name} is accepted on tensors: write calls of it in tests/tensor/numpy_grid"
    found = [row for row in _differences(function, calls, stride) if excepted(name, row[0]) is None]
    assert not found, f"{len(found)} differences of np.{name}: {found[0]}"


_OTHERS = {*numpy_functions.WITHOUT_GRADIENT, *derivatives.CONVENTIONS}
DIFFERENTIABLE = [row for row in FUNCTIONS if row[0] not in _OTHERS]


@pytest.mark.parametrize(("name", "function", "calls"), DIFFERENTIABLE, ids=[name for name, *_ in DIFFERENTIABLE])
def test_derivatives_on_the_grid_are_those_of_numpys_values(name, function, calls):
    """Reverse mode along random cotangents against differences of what NumPy computes."""
    found = [
        (text, arguments)
        for arguments in derivatives.ordinary(calls(), 12)
        if (text := derivatives.difference(function, arguments)) is not None
    ]
    assert not found, f"{len(found)} derivatives of np.{name} differ: {found[0]}"


@pytest.mark.slow
def test_every_exception_has_a_reason_and_is_needed():
    needed = set()
    for name, function, calls in FUNCTIONS:
        if any(entry.matches(name) and entry not in needed for entry in EXCEPTIONS):
            needed.update(excepted(name, text) for text, _ in _differences(function, calls))
    assert [entry for entry in EXCEPTIONS if entry not in needed] == []
    assert all(entry.reason for entry in EXCEPTIONS)


def test_a_second_order_through_numpys_values():
    x = np.array([0.7, 1.3, 2.1])
    for function in (np.cbrt, np.logaddexp2.reduce, lambda t: np.quantile(t, 0.3), lambda t: np.pad(t, 2, "mean") ** 2):
        assert pb.gradcheck(lambda t, f=function: f(t) * t[0], (x,), order=2)


@pytest.mark.parametrize("rows", [3, 5])
def test_least_squares_has_the_rank_that_rcond_leaves(rows):
    a, b = np.eye(rows, 3) * [1.0, 0.05, 2.0], np.arange(1.0, rows + 1)
    with pytest.raises(pb.DtypeError, match=r"has rank 2 with rcond=0\.1"):
        pb.grad(lambda x: np.linalg.lstsq(x, b, 0.1)[0].sum())(a)
    for rcond in (None, 0.01, -1):
        assert pb.gradcheck(lambda x, r=rcond: np.linalg.lstsq(x, b, r)[0], (a,))
