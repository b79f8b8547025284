"""Functions at the edges of their dtypes: right wherever the result can be represented, eagerly and compiled."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

PATTERN = np.random.default_rng(0).uniform(-4, 4, (5, 6))
#: Functions that are homogeneous: f(s x) = s**degree f(x), and their gradients of degree - 1.
HOMOGENEOUS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "std": (lambda x: pb.std(x, axis=-1), 1),
    "std of all": (lambda x: pb.std(x, correction=1), 1),
    "std along the first axis": (lambda x: pb.std(x, axis=0, keepdims=True), 1),
    "vector_norm": (lambda x: pb.linalg.vector_norm(x, axis=-1), 1),
    "vector_norm of all": (lambda x: pb.linalg.vector_norm(x), 1),
    "vector_norm of order 3": (lambda x: pb.linalg.vector_norm(x, axis=-1, ord=3, keepdims=True), 1),
    "matrix_norm": (lambda x: pb.linalg.matrix_norm(x), 1),
}
LARGE: dict[str, tuple[Callable[[Any], Any], int]] = {
    **HOMOGENEOUS,
    "layer_norm": (lambda x: pb.layer_norm(x, axis=-1), 0),
    "layer_norm along the first axis": (lambda x: pb.layer_norm(x, axis=0), 0),
    "rms_norm": (lambda x: pb.rms_norm(x, axis=-1), 0),
    "batch_norm": (lambda x: pb.batch_norm(x, None, None, training=True)[0], 0),
    "group_norm": (lambda x: pb.group_norm(x, 2), 0),
}


def weighted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loss(x: Any) -> Any:
        out = function(x)
        return (out * pb.reshape(pb.arange(1, 1 + out.size, dtype=x.dtype) / 2048, out.shape)).sum()

    return pb.grad(loss)


def check(function: Callable[[Any], Any], degree: int, scale: float, dtype: Any) -> None:
    x = (PATTERN * scale).astype(dtype)
    reference = x.astype(np.longdouble) / np.longdouble(scale) * 1e10
    tolerance = 40 * float(np.finfo(dtype).eps)
    for run, power in ((function, degree), (weighted(function), degree - 1)):
        expected = np.asarray(run(pb.asarray(reference.astype(np.float64)))).astype(np.longdouble)
        expected = expected * (np.longdouble(scale) / 1e10) ** power
        size = np.abs(expected).max()
        for f in (run, pb.compile(run)):
            found = np.asarray(f(pb.asarray(x)))
            assert found.dtype == dtype
            room = tolerance * size + 40 * np.finfo(dtype).smallest_subnormal
            assert np.abs(found.astype(np.longdouble) - expected).max() <= room


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float16, 4e3), (np.float32, 1e20), (np.float32, 2e37), (np.float64, 1e200), (np.float64, 1e307)],
)
def test_squares_that_overflow(name: str, dtype: Any, scale: float) -> None:
    check(*LARGE[name], scale, dtype)


@pytest.mark.parametrize("name", HOMOGENEOUS)
@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e-25), (np.float64, 1e-200), (np.float64, 1e-155)])
def test_squares_that_vanish(name: str, dtype: Any, scale: float) -> None:
    check(*HOMOGENEOUS[name], scale, dtype)


@pytest.mark.parametrize("function", [pb.var, pb.std, pb.linalg.vector_norm, lambda x: pb.layer_norm(x, axis=-1)])
def test_numbers_that_are_not_finite_stay_so(function: Any) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        x = np.array([1.0, bad, 3.0])
        results = [np.asarray(f(pb.asarray(x))) for f in (function, pb.compile(function))]
        assert not np.isfinite(results[0]).all()
        assert np.array_equal(*results, equal_nan=True)


def test_compiled_deviations_of_float16() -> None:
    x = np.linspace(-1000, 1200, 64).astype(np.float16)
    for run in (pb.std, lambda x: pb.var(x / 16), lambda x: pb.std(x, correction=1), lambda x: pb.std(x) * 2 + 1):
        eager, compiled = run(pb.asarray(x)), pb.compile(run)(pb.asarray(x))
        assert compiled.dtype == pb.float16 and np.array_equal(np.asarray(eager), np.asarray(compiled))
    assert abs(float(pb.compile(pb.std)(pb.asarray(x))) - x.astype(float).std()) < 0.5


def test_a_variance_of_constants_and_of_one_element() -> None:
    for x in (np.full(7, 1e8), np.full(7, 1e8, np.float32), np.array([3e38], np.float32)):
        for f in (pb.std, pb.var):
            assert float(f(pb.asarray(x))) == float(pb.compile(f)(pb.asarray(x))) == 0
        assert np.array_equal(np.asarray(pb.grad(pb.std)(pb.asarray(x))), np.zeros_like(x))


def test_a_compiled_step_goes_on_after_numbers_that_overflowed() -> None:
    step = pb.compile(lambda x: pb.layer_norm(x, axis=-1) + 1)
    plain, huge = pb.asarray(PATTERN), pb.asarray(PATTERN * 1e200)
    for x in (plain, huge, plain, huge):
        assert np.allclose(np.asarray(step(x)), np.asarray(pb.layer_norm(x, axis=-1)) + 1, rtol=1e-12)
    assert step.traces == 1


LOGITS = np.array([[1.0, -1.0, 0.0], [0.5, 0.25, 1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, -1.0]])
TARGET = np.array([0, 2, 1, 0])


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float32, 3e38), (np.float64, 1.7e308), (np.float32, 1e9), (np.float64, 1e18)]
)
@pytest.mark.parametrize("soft", [False, True], ids=["classes", "shares"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_cross_entropy_of_huge_logits(dtype: Any, scale: float, soft: bool, compiled: bool) -> None:
    x = pb.asarray((LOGITS * scale).astype(dtype))
    target = pb.asarray(np.eye(3, dtype=dtype)[TARGET] if soft else TARGET)
    loss = lambda x: pb.cross_entropy(x, target, reduction="none")
    gradient = pb.grad(lambda x: pb.cross_entropy(x, target, reduction="sum"))
    if compiled:
        loss, gradient = pb.compile(loss), pb.compile(gradient)
    assert np.allclose(np.asarray(loss(x)), [0, 0, np.log(3), np.log(2)], rtol=1e-6, atol=0)
    expected = [[0, 0, 0], [0, 0, 0], [1 / 3, -2 / 3, 1 / 3], [-0.5, 0.5, 0]]
    assert np.allclose(np.asarray(gradient(x)), expected, rtol=1e-6, atol=1e-7)


EXTREMES = np.array([3e38, -3e38, 1e20, -1e20, 200.0, -200.0, 0.0, np.inf, -np.inf], np.float32)
LIMITS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "gelu": (pb.gelu, lambda x: np.maximum(x, 0), lambda x: (x > 0) + 0.5 * (x == 0)),
    "gelu by tanh": (
        lambda x: pb.gelu(x, approximate="tanh"), lambda x: np.maximum(x, 0), lambda x: (x > 0) + 0.5 * (x == 0)
    ),
    "silu": (pb.silu, lambda x: np.maximum(x, 0), lambda x: (x > 0) + 0.5 * (x == 0)),
    "softplus": (pb.softplus, lambda x: np.maximum(x, 0) + np.log(2) * (x == 0), lambda x: (x > 0) + 0.5 * (x == 0)),
    "sigmoid": (pb.sigmoid, lambda x: (x > 0) + 0.5 * (x == 0), lambda x: 0.25 * (x == 0)),
    "tanh": (pb.tanh, np.sign, lambda x: 1.0 * (x == 0)),
    "logaddexp": (lambda x: pb.logaddexp(x, -x), lambda x: np.abs(x) + np.log(2) * (x == 0), np.sign),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")  # of NumPy's, on the way to a result that is right
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_activations_far_out(name: str, compiled: bool) -> None:
    function, values, slopes = LIMITS[name]
    x = EXTREMES[:7]
    slope = pb.grad(lambda x: function(x).sum() if function(x).size == 1 else pb.sum(function(x) * 1e-3))
    if compiled:
        function, slope = pb.compile(function), pb.compile(slope)
    assert np.allclose(np.asarray(function(pb.asarray(x))), values(x), rtol=1e-6)
    assert np.allclose(np.asarray(slope(pb.asarray(x))), 1e-3 * slopes(x), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_reciprocal_of_integers_is_numpys(dtype: Any) -> None:
    x = np.array([1, 2, 3, 5, 100, 1, 1] * 9).astype(dtype)
    if np.dtype(dtype).kind == "i":
        x = np.concatenate([x, -x])
    for function in (pb.reciprocal, lambda x: pb.reciprocal(x) + x, lambda x: pb.reciprocal(x + x - x) * 2):
        expected = function(pb.asarray(x))
        found = pb.compile(function)(pb.asarray(x))
        assert expected.dtype == found.dtype == dtype and np.array_equal(np.asarray(found), np.asarray(expected))
    assert np.array_equal(np.asarray(pb.reciprocal(pb.asarray(x))), np.reciprocal(x))
