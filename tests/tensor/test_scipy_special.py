"""The ufuncs of scipy.special on tensors: SciPy's values, and derivatives to any order; which these are is said."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.tensors.numpy_ufuncs import _RELATIVES, _SPECIAL_COMPOSED, is_accepted

special = pytest.importorskip("scipy.special")

ACCEPTED = {
    name
    for name, ufunc in vars(special).items()
    if isinstance(ufunc, np.ufunc) and not name.startswith("_") and is_accepted(ufunc)
}
POSITIVE = {"entr", "gammaln", "huber", "kl_div", "rel_entr", "xlogy"}
UNIT = {"erfinv", "logit"}


def _arguments(name):
    random = np.random.default_rng(len(name))
    ranges = [(0.2, 0.8)] if name in UNIT else [(0.2, 3.0), (4.0, 9.0)] + [(-0.9, -0.1)] * (name not in POSITIVE)
    return [[random.uniform(*bounds, 3) for _ in range(getattr(special, name).nin)] for bounds in ranges]


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_values_are_scipys_and_derivatives_those_of_finite_differences(name):
    ufunc = getattr(special, name)
    for arguments in _arguments(name):
        tensors = [pb.tensor(x, requires_grad=True) for x in arguments]
        rtol = 0 if name in _SPECIAL_COMPOSED else 1e-11
        np.testing.assert_allclose(ufunc(*tensors).detach(), ufunc(*arguments), rtol=rtol)
        assert pb.gradcheck(ufunc, tuple(arguments), order=2)


@pytest.mark.parametrize("name", sorted(_SPECIAL_COMPOSED))
def test_numbers_beside_tensors_are_float64_as_scipys(name):
    ufunc = getattr(special, name)
    x = np.array([0.3, 0.7])
    if ufunc.nin == 2:
        for other in (1, 1.5, np.array(2)):
            found = pb.grad(lambda x: np.sum(ufunc(x, other)))(x)  # noqa: B023
            expected = pb.grad(lambda x: np.sum(ufunc(x, np.full(2, float(other)))))(x)  # noqa: B023
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    single = x.astype(np.float32)
    result = ufunc(*[pb.tensor(single, requires_grad=True)] * ufunc.nin)
    assert result.dtype == pb.float32 and result.requires_grad
    compiled = pb.compile(pb.grad(lambda x: np.sum(ufunc(*[x] * ufunc.nin))))
    np.testing.assert_allclose(compiled(x), pb.grad(lambda x: np.sum(ufunc(*[x] * ufunc.nin)))(x), rtol=1e-10)


def test_at_the_edges():
    assert pb.grad(special.entr)(0.0) == np.inf
    assert pb.grad(special.gamma)(200.0) == np.inf
    assert pb.grad(special.rel_entr)(0.0, 1.0) == -np.inf
    assert pb.grad(special.exprel)(0.0) == 0.5
    assert pb.grad(special.xlog1py)(1e-3, 1e-20) == 1e-20
    assert pb.grad(special.beta)(1.0, 1e6) == pytest.approx((special.psi(1.0) - special.psi(1e6 + 1)) / 1e6, rel=1e-8)


@pytest.mark.parametrize("name", sorted(_RELATIVES))
def test_others_name_a_relative_that_works(name):
    with pytest.raises(pb.DtypeError, match=rf"^scipy\.special\.{name} has no gradient.*pb\.custom_op") as caught:
        ufunc = getattr(special, name)
        ufunc(*[pb.tensor([0.5], requires_grad=True)] * ufunc.nin)
    assert set(re.findall(r"scipy\.special\.(\w+)", str(caught.value))) - {name} <= ACCEPTED


def test_the_page_on_numpy_code_has_the_list():
    page = Path(__file__).parents[2] / "docs" / "numpy.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    paragraph = next(p for p in page.read_text().split("\n\n") if p.startswith("**`scipy.special`**"))
    assert set(re.findall(r"`(\w+)`", paragraph.partition("ufuncs that work:")[2].partition(".")[0])) == ACCEPTED
