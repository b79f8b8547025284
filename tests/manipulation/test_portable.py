"""The portable kernels give what NumPy's own kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends import NUMPY, portable

xp = NUMPY.xp
generator = np.random.default_rng(0)
ROWS = np.array([2, 0, 2, -1])
ALONG = np.array([[2, 0], [1, 1], [-1, 0]])


def draw(*shape: int) -> np.ndarray:
    return generator.normal(size=shape)


CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "pad": ("pad", (draw(2, 3), ((1, 0), (2, 1)), 1.5)),
    "split": ("split", (draw(2, 4), (1, 0, 3), -1)),
    "place-slice": ("place", (draw(2, 2), (3, 4), (slice(1, 3), slice(None, None, 2)))),
    "place-rows": ("place", (draw(4, 2), (3, 2), ROWS)),
    "place-points": ("place", (draw(4), (3, 5), (ROWS, np.array([1, 1, 1, 0])))),
    "place-mixed": ("place", (draw(2, 4), (2, 3), (slice(None), ROWS))),
    "place-mask": ("place", (draw(2), (3,), np.array([True, False, True]))),
    "index_add": ("index_add", (draw(3, 2), draw(4, 2), ROWS)),
    "overwritten": ("overwritten", (draw(3, 2), ROWS)),
    "take_transposed": ("take_transposed", (draw(2, 4), ROWS, 3, -1)),
    "take_transposed-first": ("take_transposed", (draw(4, 2), ROWS, 3, -2)),
    "take_along_axis_transposed": ("take_along_axis_transposed", (draw(3, 2), ALONG, 3, -1)),
    "take_along_axis_transposed-first": ("take_along_axis_transposed", (draw(3, 2), ALONG, 4, -2)),
    "take_along_axis_transposed-broadcast": ("take_along_axis_transposed", (draw(1, 2), ALONG, 3, -1)),
    "put_along_axis": ("put_along_axis", (draw(3, 3), draw(3, 2), ALONG, -1)),
    "put_along_axis-first": ("put_along_axis", (draw(4, 2), draw(2), ALONG, -2)),
    "put_along_axis-number": ("put_along_axis", (draw(3, 3), 0.5, ALONG, -1)),
    "linear": ("linear", (draw(2, 3), draw(4, 3), draw(4))),
    "linear-no-bias": ("linear", (draw(2, 3), draw(4, 3), None)),
    "einsum": ("einsum", ([draw(2, 3), draw(3, 4), draw(4)], "ij,jk,k->i")),
    "einsum-batch": ("einsum", ([draw(2, 3, 4), draw(2, 4, 3)], "bij,bjk->kbi")),
    "place_diagonal-above": ("place_diagonal", (draw(2, 3), (2, 3, 5), 1)),
    "place_diagonal-below": ("place_diagonal", (draw(2), (4, 2), -1)),
    "cofactor": ("cofactor", (draw(2, 3, 3),)),
    "cofactor_product": ("cofactor_product", (draw(2, 3, 3), draw(2, 3, 3))),
}


@pytest.mark.parametrize("case", CASES)
def test_portable_kernel(case: str) -> None:
    name, arguments = CASES[case]
    found = portable.bind(name, xp)(*arguments)
    expected = getattr(xp, name)(*arguments)
    parts = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in parts:
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=1e-12)
