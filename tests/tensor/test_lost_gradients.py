"""Where a gradient would be lost: the error names who asked for plain numbers, and says what to write instead."""

from __future__ import annotations

import math
import re
from math import cos

import numpy as np
import pytest

import pullback as pb
from pullback.tensors import lost_gradients

W = pb.tensor(np.array([1.0, 4.0]), requires_grad=True)
A = pb.tensor(np.array([[2.0, 1.0], [1.0, 3.0]]), requires_grad=True)


def _assign(value, index=0, shape=(2,)):
    out = np.zeros(shape)
    out[index] = value


def _assign_to_attribute(value):
    class Holder:
        out = np.zeros(2)

    Holder.out[:] = value


def _rows(value):
    table = np.zeros((3, 2))
    for row in range(3):
        table[row : row + 1] = value


ARRAY = np.ones(2)
CASES = [
    (lambda: float(W[0]), "float(): this tensor", "leave `float()` out"),
    (lambda: int(W[0]), "int(): this tensor", "leave `int()` out"),
    (lambda: list(map(float, W)), "float(): this tensor", "functions of NumPy or Pullback"),
    (lambda: math.sin(W[0]), "math.sin: ", "write `np.sin(t)`"),
    (lambda: cos(W[0]), "math.cos: ", "write `np.cos(t)`"),
    (lambda: math.lgamma(W[0]), "math.lgamma: ", "write `pb.gammaln(t)`"),
    (lambda: _assign(W, slice(None)), "out[...] = t: ", "write `out = np.zeros_like(t, shape=n)`"),
    (lambda: _assign(W, 0, (2, 2)), "out[...] = t: ", "write `out = np.zeros_like(t, shape=n)`"),
    (lambda: _assign([W[0], W[1]], slice(None)), "out[...] = t: ", "write `out = np.zeros_like(t, shape=n)`"),
    (lambda: _assign_to_attribute(W), "array[...] = t: ", "write `out = np.zeros_like(t, shape=n)`"),
    (
        lambda: _rows(W),
        "table[...] = t: ",
        "write `table = np.zeros_like(t, shape=n)` instead of `table = np.zeros(n)`",
    ),
    (lambda: np.array([W[0], W[1]]), "np.array: ", "join tensors with `np.stack` or `pb.asarray`"),
    (lambda: np.asarray(W, dtype=float), "np.asarray: ", "join tensors with `np.stack` or `pb.asarray`"),
    (lambda: W.__array__(), "numpy.asarray: ", "join tensors with `np.stack` or `pb.asarray`"),
    (lambda: np.full(3, W[0]), "np.full: ", "write `np.full(shape, t, like=t)`"),
    (lambda: np.arange(W[0]), "np.arange: ", "write `start + step * np.arange(n)`"),
    (lambda: np.vectorize(lambda x: x * x)(W), "np.vectorize: ", "write the function for whole arrays"),
    (lambda: np.float64(W[0]), "np.float64: ", "leave `np.float64()` out, or write `t.astype(np.float64)`"),
    (lambda: ARRAY.dot(W), "ndarray.dot: ", "write `np.dot(a, t)` or `a @ t`"),
    (lambda: np.ones(2).dot(W), "ndarray.dot: ", "write `np.dot(a, t)` or `a @ t`"),
    (lambda: np.sum([W[0], W[1]]), "np.sum: ", "pass `np.stack([t, u])` to `np.sum`"),
    (lambda: np.mean([W[0], W[1]]), "np.mean: ", "pass `np.stack([t, u])` to `np.mean`"),
    (lambda: np.diag([W[0], W[1]]), "np.diag: ", "pass `np.stack([t, u])` to `np.diag`"),
    (lambda: np.add([W[0], 1.0], 2.0), "np.add: ", "pass `np.stack([t, u])` to `np.add`"),
    (lambda: np.maximum.reduce([W[0], W[1]]), "np.maximum.reduce: ", "pass `np.stack([t, u])`"),
    (lambda: np.r_[W, W], "np.r_: ", "write `np.concatenate([t, u])`"),
    (lambda: np.fill_diagonal(np.zeros((2, 2)), W), "np.fill_diagonal: ", "np.zeros_like(t, shape="),
    (lambda: np.pad(ARRAY, 1, constant_values=W[0]), "np.pad: ", "`pb.asarray(a)`"),
    (lambda: np.random.normal(W[0]), "np.random.normal: ", "mean + std * np.random.normal(size=n)"),
    (lambda: np.random.default_rng(0).normal(W[0]), "np.random.normal: ", "mean + std"),
    (lambda: np.testing.assert_allclose(W, W), "np.testing.assert_allclose: ", "docs/numpy.md"),
]


@pytest.mark.parametrize(("call", "who", "instead"), CASES)
def test_the_error_names_who_asked_and_what_to_write(call, who, instead):
    with pytest.raises(pb.GradientError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(who)
    assert instead in text
    assert "constant" in text and "without a gradient" in text and "`t.detach()`" in text


@pytest.mark.parametrize(
    "assign",
    [lambda: _assign(W[0]), lambda: np.zeros(2).fill(W[0]), lambda: np.zeros(2).__setitem__(0, W[0])],
)
def test_behind_numpys_error_of_an_assigned_element_is_what_to_write(assign):
    with pytest.raises(ValueError, match="setting an array element with a sequence") as caught:
        assign()
    assert isinstance(caught.value.__cause__, pb.GradientError)
    assert "write `out = np.zeros_like(t, shape=n)`" in str(caught.value.__cause__)


SCIPY = [
    ("linalg", "cholesky", (A,), "write `np.linalg.cholesky` (the lower triangle"),
    ("linalg", "solve", (A, W), "write `np.linalg.solve`."),
    ("linalg", "cho_solve", ((np.eye(2), True), W), "write `pb.linalg.cholesky_solve`."),
    ("linalg", "solve_triangular", (A, W), "write `pb.linalg.solve_triangular`."),
    ("linalg", "expm", (A,), "write `pb.linalg.matrix_exp`."),
    ("linalg", "sqrtm", (A,), "`pb.custom_op`"),
    ("fft", "fft", (W,), "write `np.fft.fft`."),
    ("fft", "dct", (W,), "`pb.custom_op`"),
    ("special", "logsumexp", (W,), "write `pb.logsumexp`."),
    ("special", "softmax", (W,), "write `pb.softmax`."),
    ("special", "polygamma", (1, W), "write `pb.polygamma`."),
    ("integrate", "trapezoid", (W,), "write `np.trapezoid`"),
    ("integrate", "quad", (lambda x: x * W[0], 0, 1), "leggauss"),
    ("integrate", "solve_ivp", (lambda t, y: -W * y, (0, 1), [1.0, 2.0]), "a loop of steps"),
    ("spatial.distance", "cdist", (A, A), "write `pb.cdist`."),
    ("signal", "convolve", (W, W), "write `np.convolve`."),
    ("ndimage", "gaussian_filter", (W, 1), "`pb.custom_op`"),
    ("interpolate", "CubicSpline", ([0, 1], W), "`pb.custom_op`"),
    ("stats", "norm.logpdf", (W,), "its formula"),
    ("stats", "multivariate_normal.logpdf", (W, np.zeros(2), np.eye(2)), "`pb.custom_op`"),
    ("optimize", "minimize", (lambda x: np.sum(x * W), np.zeros(2)), "must return plain numbers"),
]


@pytest.mark.parametrize(("package", "name", "arguments", "instead"), SCIPY)
def test_functions_of_scipys_are_named_with_what_to_use_instead(package, name, arguments, instead):
    module = pytest.importorskip(f"scipy.{package}")
    owner, _, method = name.rpartition(".")
    with pytest.raises(pb.GradientError) as caught:
        if owner == "norm":
            module.norm.logpdf(*arguments)
        elif owner:
            module.multivariate_normal.logpdf(*arguments)
        else:
            function = getattr(module, method)
            function(*arguments)
    assert str(caught.value).startswith(f"scipy.{package}.{name}: ")
    assert instead in str(caught.value)


def test_products_with_sparse_matrices_are_named():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.eye(2).tocsr()
    for multiply in (lambda: matrix @ W, lambda: W @ matrix):
        with pytest.raises(pb.GradientError, match=r"^scipy\.sparse\.\w+: .*`a\.toarray\(\) @ x`"):
            multiply()


def test_pictures_are_made_of_detached_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for draw in (lambda: plt.plot(W), lambda: plt.scatter(W, W)):
        with pytest.raises(pb.GradientError, match=r"^matplotlib\.pyplot\.\w+: .*`t\.detach\(\)`") as caught:
            draw()
        assert "To keep it" not in str(caught.value)
    plt.close("all")


def test_scikit_learn_is_named():
    metrics = pytest.importorskip("sklearn.metrics")
    with pytest.raises(pb.GradientError, match=r"^sklearn\.metrics\.mean_squared_error: .*`pb\.custom_op`"):
        metrics.mean_squared_error(W, W)


def test_what_is_recommended_exists():
    for text in [*lost_gradients._SCIPY.values(), *lost_gradients._NUMPY.values(), *lost_gradients._MATH.values()]:
        for root, path in re.findall(r"\b(np|pb)\.([a-z_.]+[a-z])", text):
            found = {"np": np, "pb": pb}[root]
            for part in path.split("."):
                found = getattr(found, part)
    for name in ("trapezoid", "interp", "cumsum", "convolve", "linalg.cholesky", "linalg.svdvals"):
        assert lost_gradients._takes_tensors(name)


def test_what_is_recommended_for_assignments_keeps_dtype_and_gradient():
    out = np.zeros_like(W, shape=(3, 2))
    out[1] = W
    out[2, 0] = W[1] ** 2
    assert out.dtype == pb.float64 and out.requires_grad
    assert pb.grad(lambda w: _total(w))(np.array([1.0, 4.0])).tolist() == [1.0, 9.0]


def _total(w):
    out = np.zeros_like(w, shape=(3, 2))
    out[1] = w
    out[2, 0] = w[1] ** 2
    return np.sum(out)
