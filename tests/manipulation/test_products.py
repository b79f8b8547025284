"""Matrix products and einsum: values as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require

generator = np.random.default_rng(0)
SHAPES = {
    "i": (3,),
    "j": (4,),
    "ii": (3, 3),
    "ij": (3, 4),
    "ji": (4, 3),
    "jk": (4, 2),
    "kl": (2, 5),
    "bij": (2, 3, 4),
    "bjk": (2, 4, 2),
    "iij": (3, 3, 4),
    "ijk": (3, 4, 2),
    "": (),
    "...ij": (2, 3, 4),
    "...jk": (4, 2),
    "i...": (3, 2, 4),
    "...": (2, 1, 4),
    "...i": (1, 4, 3),
}
PATTERNS = [
    "ij->ji",
    "ii->i",
    "ii->",
    "ii",
    "ij",
    "ji",
    "ij->",
    "ij,jk->ik",
    "ij,jk",
    "ij,jk->ki",
    "bij,bjk->bik",
    "i,j->ij",
    "i,i->i",
    "i,i->",
    "i,i",
    "ij,ij->ij",
    "ij,j->i",
    "iij,j->i",
    "ijk,jk->i",
    "ij,jk,kl->il",
    "ij,jk,kl",
    "i,ij,jk,kl->l",
    ",ij->ij",
    "...ij,...jk->...ik",
    "i...->...i",
    "i...,i->...",
    "...,...->...",
    "...i,...->...",
    "ij,ij,ij->j",
    "bij,bjk,kl->bl",
    "ijk,ij->k",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_einsum(pattern: str) -> None:
    arrays = [generator.normal(size=SHAPES[term]) for term in pattern.partition("->")[0].split(",")]
    found = pb.einsum(pattern, *map(pb.asarray, arrays))
    expected = np.einsum(pattern, *arrays)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)


def test_einsum_of_integers_and_with_stretched_axes() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(4).reshape(1, 4)
    assert np.array_equal(
        np.asarray(pb.einsum("ij,jk->ik", pb.asarray(x[:, :1]), pb.asarray(np.arange(12).reshape(3, 4)))),
        x[:, :1] * np.arange(12).reshape(3, 4).sum(0),
    )
    found = pb.einsum("ij,ik->jk", pb.asarray(x), pb.asarray(y))
    assert np.array_equal(np.asarray(found), np.einsum("ij,ik->jk", x, y))
    assert found.dtype == pb.int64


@pytest.mark.parametrize(
    ("pattern", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (4, 2)]),
        ("ij->i", [(2,)]),
        ("ij->ii", [(2, 2)]),
        ("ij->k", [(2, 2)]),
        ("ij,jk", [(2, 3)]),
        ("i1->i", [(2, 2)]),
        ("ii->i", [(2, 3)]),
    ],
)
def test_einsum_errors_show_the_pattern(pattern: str, shapes: Any) -> None:
    with pytest.raises(pb.ShapeError, match="einsum"):
        pb.einsum(pattern, *(pb.asarray(np.zeros(shape)) for shape in shapes))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "complex64"])
def test_matmul_keeps_the_dtype(dtype: str) -> None:
    require("numpy", dtype)
    x = pb.asarray(np.ones((2, 3, 4), np.float32), dtype=dtype)
    assert pb.matmul(x, x[0].T).dtype == x.dtype
    assert pb.matmul(x, x[0].T).shape == (2, 3, 3)
    assert pb.tensordot(x, x, axes=3).dtype == x.dtype


@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3)), ((3,), (2,)), ((), (3,)), ((2, 2, 3), (3, 3, 2)), ((3, 0), (1, 3))]
)
def test_matmul_refuses_what_does_not_fit(shapes: Any) -> None:
    x, y = (pb.asarray(np.zeros(shape)) for shape in shapes)
    for call in (pb.matmul, lambda a, b: a @ b):
        with pytest.raises(pb.ShapeError, match="matmul"):
            call(x, y)


def test_operators_with_other_operands() -> None:
    x = pb.asarray(np.eye(2))
    assert isinstance(np.ones((2, 2)) @ x, pb.Tensor)
    assert isinstance(x @ np.ones(2), pb.Tensor)
    with pytest.raises(TypeError):
        x @ "a"


def test_linear_adds_its_bias_without_touching_it() -> None:
    x, w, b = (generator.normal(size=shape) for shape in ((5, 3), (2, 3), (2,)))
    kept = b.copy()
    np.testing.assert_allclose(np.asarray(pb.linear(x, w, b)), x @ w.T + b)
    assert np.array_equal(b, kept)
    assert pb.linear(pb.asarray(x), pb.asarray(w, dtype=pb.float32)).dtype == pb.float64
    for bad in ((x, w.T, b), (x, w, b[:1]), (x, w[0], b)):
        with pytest.raises(pb.ShapeError, match="linear"):
            pb.linear(*map(pb.asarray, bad))


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_linear_keeps_and_computes_nothing_for_frozen_inputs(frozen: str) -> None:
    values = {"x": np.ones((5, 3)), "weight": np.ones((2, 3)), "bias": np.ones(2)}
    tensors = {name: pb.tensor(value, requires_grad=name != frozen) for name, value in values.items()}
    out = pb.linear(*tensors.values())
    if frozen == "weight":
        assert not any(value is tensors["x"]._raw for value in out._node.saved)
    grads = pb.backward(pb.sum(out))
    assert {n for n, t in tensors.items() if t in grads} == set(values) - {frozen}


def test_products_as_numpy() -> None:
    x, y = generator.normal(size=(2, 3)), generator.normal(size=(2, 3))
    for ours, numpys in ((pb.inner, np.inner), (pb.kron, np.kron), (pb.vdot, np.vdot)):
        np.testing.assert_allclose(np.asarray(ours(x, y)), numpys(x, y))
    np.testing.assert_allclose(np.asarray(pb.dot(x, y.T)), x @ y.T)
    np.testing.assert_allclose(np.asarray(pb.outer(x[0], y[1])), np.outer(x[0], y[1]))
    np.testing.assert_allclose(np.asarray(pb.trace(x, offset=1)), np.trace(x, 1))
    assert pb.trace(pb.asarray(np.ones((2, 2), np.int8))).dtype == pb.int64
    assert pb.trace(pb.asarray(np.ones((2, 2), np.int8)), dtype=pb.float32).dtype == pb.float32
