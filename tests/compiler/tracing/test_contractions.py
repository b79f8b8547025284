"""Sums of products over chosen axes become matrix products, with the values that they have eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(6)

EINSUMS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "ijk,kjl->il": ((3, 4, 5), (5, 4, 2)),
    "ij,kj->ijk": ((3, 4), (5, 4)),
    "i,j->ji": ((3,), (4,)),
    "ij,ij->": ((3, 4), (3, 4)),
    "ij,ij->j": ((3, 4), (3, 4)),
    "ij->ji": ((3, 4),),
    "ij->i": ((3, 4),),
    "ii->i": ((3, 3),),
    "ij,jk,kl->li": ((3, 4), (4, 5), (5, 2)),
    "bhqd,bkhd->bhqk": ((2, 3, 4, 5), (2, 6, 3, 5)),
    "ab,bc->ac": ((0, 3), (3, 2)),
    "ab,ba->": ((0, 3), (3, 0)),
}


def _inputs(shapes: Any, dtype: str = "float32") -> list[Any]:
    return [pb.tensor(RNG.normal(size=shape).astype(dtype)) for shape in shapes]


def _same(function: Any, inputs: list[Any], rtol: float = 1e-5) -> Any:
    """Values and gradients, eagerly and compiled; gives the kernels of the compiled program that are not native."""

    def loss(*xs: Any) -> Any:
        out = function(*xs)
        return (out * out).sum(), out

    differentiated = pb.value_and_grad(loss, argnums=tuple(range(len(inputs))), has_aux=True)
    compiled = pb.compile(differentiated)
    (_, expected), gradients = differentiated(*inputs)
    (_, got), got_gradients = compiled(*inputs)
    for one, other in zip((got, *got_gradients), (expected, *gradients), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=rtol, atol=rtol)
    return [kernel.kernel for kernel in compiled.kernels if kernel.how == "numpy"]


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts: str) -> None:
    assert _same(lambda *xs: pb.einsum(subscripts, *xs), _inputs(EINSUMS[subscripts])) == []


@pytest.mark.parametrize(("axes", "shapes"), [
    (1, ((3, 4), (4, 5))), (2, ((2, 3, 4), (3, 4, 5))), (0, ((2, 3), (4,))), (((0, 2), (2, 1)), ((4, 3, 5), (2, 5, 4))),
    (((-1,), (0,)), ((3, 4), (4,))), (2, ((3, 4), (3, 4))),
])  # fmt: skip
def test_tensordot(axes: Any, shapes: Any) -> None:
    assert _same(lambda x, y: pb.tensordot(x, y, axes=axes), _inputs(shapes)) == []


def test_half_precision_and_mixed_dtypes() -> None:
    assert _same(lambda x, y: pb.einsum("ij,jk->ik", x, y), _inputs(((3, 4), (4, 5)), "float16"), 1e-2) == []
    mixed = [*_inputs(((3, 4),)), *_inputs(((4, 5),), "float64")]
    assert _same(lambda x, y: pb.tensordot(x, y, axes=1), mixed) == []


def test_integers_and_complex_numbers_are_left_to_numpy() -> None:
    x = np.arange(6).reshape(2, 3)
    for given in (x, x + 1j * x):
        compiled = pb.compile(lambda x, y: (pb.einsum("ij,jk->ik", x, y), pb.tensordot(x, y, axes=1)))
        for got in compiled(pb.asarray(given), pb.asarray(given.T)):
            np.testing.assert_array_equal(got.numpy(), given @ given.T)


@pytest.mark.parametrize(("axis", "shapes"), [(-1, ((3, 4), (3, 4))), (-1, ((2, 3, 4), (4,))), (0, ((3, 4), (3, 4)))])
def test_vecdot(axis: int, shapes: Any) -> None:
    assert _same(lambda x, y: pb.vecdot(x, y, axis=axis), _inputs(shapes)) == []


@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_euclidean_norms(axis: Any, keepdims: bool) -> None:
    norm = pb.linalg.vector_norm
    assert _same(lambda x: norm(x, axis=axis, keepdims=keepdims), _inputs(((3, 4, 2),))) == []
    _same(lambda x: norm(x, axis=axis, keepdims=keepdims, ord=1), _inputs(((3, 4, 2),)))  # no sum of squares


AVERAGES = {
    "touching": lambda x: pb.avg_pool2d(x, (2, 3)),
    "with a divisor": lambda x: pb.avg_pool2d(x, (2, 3), divisor_override=5),
    "of everything": lambda x: pb.adaptive_avg_pool2d(x, 1),
    "adaptive": lambda x: pb.adaptive_avg_pool2d(x, (3, 2)),
}
OTHER_AVERAGES = {
    "overlapping": lambda x: pb.avg_pool2d(x, 3, 1),
    "padded": lambda x: pb.avg_pool2d(x, 2, padding=1),
    "elements left over": lambda x: pb.avg_pool2d(x, 4),
    "of different lengths": lambda x: pb.adaptive_avg_pool2d(x, 4),
}


@pytest.mark.parametrize("case", AVERAGES)
def test_averages_of_windows_side_by_side_are_sums(case: str) -> None:
    assert _same(AVERAGES[case], _inputs(((2, 3, 6, 6),))) == []


@pytest.mark.parametrize("case", OTHER_AVERAGES)
def test_other_averages_are_left_to_numpy(case: str) -> None:
    assert _same(OTHER_AVERAGES[case], _inputs(((2, 3, 6, 6),)))
