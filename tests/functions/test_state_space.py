"""Scans of state-space models: values by plain loops, gradients by differences, memory, compiled, other devices."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import BFLOAT16, needs_llvmlite, require

RNG = np.random.default_rng(3)
LENGTHS = [0, 1, 2, 3, 7, 64, 65, 130]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 7 * len(shape)).standard_normal(shape)


def compose(first: Any, second: Any) -> Any:
    return first[0] * second[0], second[0] * first[1] + second[1]


# -- associative_scan -------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 8, 9, 31, 100])
def test_any_associative_operator(length: int, axis: int, reverse: bool) -> None:
    shape = [2, 3, 4]
    shape[axis] = length
    a, b = normal(*shape), normal(*shape, 1)[..., 0]
    found = pb.associative_scan(compose, (a, b), axis, reverse)
    np.testing.assert_allclose(
        found[1].numpy(), pb.ssm_scan(b, a, axis=axis, reverse=reverse).numpy(), rtol=1e-12, atol=1e-12
    )
    turned = np.flip(a, axis) if reverse else a
    expected = np.cumprod(turned, axis)
    np.testing.assert_allclose(found[0].numpy(), np.flip(expected, axis) if reverse else expected, rtol=1e-12)


def test_operators_that_do_not_commute() -> None:
    """Products of matrices: earlier ones on the left, or, in reverse, later ones."""
    x = normal(6, 2, 2)
    forward, backward = x.copy(), x.copy()
    for t in range(1, 6):
        forward[t] = forward[t - 1] @ x[t]
        backward[5 - t] = backward[6 - t] @ x[5 - t]
    np.testing.assert_allclose(pb.associative_scan(pb.matmul, x).numpy(), forward, rtol=1e-10)
    np.testing.assert_allclose(pb.associative_scan(pb.matmul, x, reverse=True).numpy(), backward, rtol=1e-10)


def test_derivatives_of_associative_scans() -> None:
    a, b = normal(9, 2), normal(9, 2, 1)[..., 0]
    scanned = lambda a, b: pb.associative_scan(compose, (a, b))[1]
    assert pb.gradcheck(scanned, (a, b), order=2)
    loss = lambda a, b: pb.sum(pb.sin(scanned(a, b)))
    expected = pb.grad(lambda a, b: pb.sum(pb.sin(pb.ssm_scan(b, a))), argnums=(0, 1))(a, b)
    for one, other in zip(pb.grad(loss, argnums=(0, 1))(a, b), expected):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@needs_llvmlite
def test_associative_scans_compile() -> None:
    a, b = (pb.asarray(normal(13, 3)) for _ in range(2))
    function = pb.grad(lambda a, b: pb.sum(pb.associative_scan(compose, (a, b))[1] ** 2), argnums=(0, 1))
    for one, other in zip(pb.compile(function)(a, b), function(a, b)):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.associative_scan(3, pb.ones(3)), pb.DtypeError, "expected a function of two slices, got int"),
        (lambda: pb.associative_scan(compose, ()), pb.ShapeError, "no arrays"),
        (lambda: pb.associative_scan(pb.add, pb.ones(())), pb.ShapeError, "a number, which has no slices"),
        (lambda: pb.associative_scan(compose, (pb.ones(3), pb.ones(4))), pb.ShapeError, r"got \[3, 4\]"),
        (lambda: pb.associative_scan(lambda a, b: a.sum(), pb.ones((4, 2))), pb.ShapeError, r"the function made \(\)"),
        (lambda: pb.associative_scan(lambda a, b: (a, b), pb.ones(4)), pb.DtypeError, "expected the same structure"),
        (lambda: pb.associative_scan(pb.add, pb.ones(4), axis=1), pb.AxisError, "axis 1"),
    ],
)
def test_what_cannot_be_scanned(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# -- factors of ssm_scan ----------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_factors_may_lack_the_axis_of_time(axis: int) -> None:
    x = normal(5, 4, 3)
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    a, b = normal(*rest), normal(*rest, 1)[..., 0]
    found = pb.ssm_scan(x, a, b, axis=axis)
    expected = pb.ssm_scan(x, np.expand_dims(a, axis), np.expand_dims(b, axis), axis=axis)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_factors_that_can_be_read_in_two_ways_are_refused() -> None:
    x = normal(4, 4, 3)
    np.testing.assert_array_equal(pb.ssm_scan(x, x[0]).numpy(), pb.ssm_scan(x, x[:1]).numpy())
    with pytest.raises(pb.ShapeError, match="can be constant in time or not"):
        pb.ssm_scan(x, x[0], axis=1)


# -- selective_scan ---------------------------------------------------------------------------------


def selective_by_steps(u, delta, a, b, c, d=None, z=None, bias=None, is_soft=False, state=None) -> Any:
    samples, channels, length = u.shape
    delta = delta if bias is None else delta + bias[:, None]
    delta = np.log1p(np.exp(delta)) if is_soft else delta
    state = np.zeros((samples, *a.shape)) if state is None else state

    def at(factor: Any, t: int) -> Any:
        if factor.ndim == 2:
            return factor
        if factor.ndim == 3:
            return factor[:, None, :, t]
        return np.repeat(factor[..., t], channels // factor.shape[1], axis=1)

    out = np.zeros(u.shape)
    for t in range(length):
        moved = (delta[:, :, t] * u[:, :, t])[..., None] * at(b, t)
        state = np.exp(delta[:, :, t, None] * a) * state + moved
        out[:, :, t] = (state * at(c, t)).sum(-1)
    out = out if d is None else out + u * d[:, None]
    return out if z is None else out * z / (1 + np.exp(-z)), state


def operands(length: int, b: str = "varying", c: str = "varying", samples: int = 2, channels: int = 6) -> Any:
    states = 3
    shapes = {
        "varying": (samples, states, length), "constant": (channels, states), "one": (samples, 1, states, length),
        "groups": (samples, 2, states, length), "each": (samples, channels, states, length),
    }  # fmt: skip
    rng = np.random.default_rng(length)
    draw = lambda *shape: rng.standard_normal(shape)
    return (
        draw(samples, channels, length), draw(samples, channels, length), -np.exp(draw(channels, states)),
        draw(*shapes[b]), draw(*shapes[c]), draw(channels), draw(samples, channels, length), draw(channels), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("b", "c"),
    [("varying", "varying"), ("constant", "groups"), ("groups", "constant"), ("each", "each"), ("one", "groups"),
     ("constant", "constant"), ("groups", "varying")],
)  # fmt: skip
@pytest.mark.parametrize("length", LENGTHS)
def test_selective_scans_are_those_of_a_loop(length: int, b: str, c: str) -> None:
    arguments = operands(length, b, c)
    state = normal(2, 6, 3)
    out, last = pb.selective_scan(*arguments, return_last_state=True, initial_state=state)
    expected, expected_last = selective_by_steps(*arguments, state)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(last.numpy(), expected_last, rtol=1e-10, atol=1e-12)
    plain = pb.selective_scan(*arguments[:5]).numpy()
    np.testing.assert_allclose(plain, selective_by_steps(*arguments[:5])[0], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("length", [1, 3, 70])
def test_gradients_of_selective_scans(length: int) -> None:
    u, delta, a, b, c, d, z, bias, _ = operands(length, "varying", "groups", samples=1, channels=2)
    state = normal(1, 2, 3)
    assert pb.gradcheck(
        lambda *xs: pb.selective_scan(*xs[:-1], True, True, xs[-1]), (u, delta, a, b, c, d, z, bias, state),
        order=2 if length < 70 else 1,
    )  # fmt: skip


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(10_000)])
def test_strategies_give_the_same_bits(strategy: Any) -> None:
    arguments = operands(130)
    gradient = pb.grad(
        lambda u, delta, a, b, c: pb.sum(pb.selective_scan(u, delta, a, b, c) ** 2), argnums=(0, 1, 2, 3, 4)
    )
    expected = gradient(*arguments[:5])
    with pb.checkpointing(strategy):
        found = gradient(*arguments[:5])
    assert all((one == other).all() for one, other in zip(found, expected))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_selective_scans_on_every_device(compiled: bool, device: str) -> None:
    require(device)
    arrays = [x.astype(np.float32) for x in operands(150)[:8]]
    function = pb.value_and_grad(
        lambda *xs: pb.mean(pb.selective_scan(*xs, delta_softplus=True) ** 2), argnums=tuple(range(8))
    )
    value, expected = function(*(pb.asarray(x.astype(np.float64)) for x in arrays))
    found_value, found = (pb.compile(function) if compiled else function)(
        *(pb.asarray(x, device=device) for x in arrays)
    )
    np.testing.assert_allclose(found_value.item(), value.item(), rtol=1e-4)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=2e-5 * np.abs(other.numpy()).max())


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_half_precision_is_computed_in_float32(dtype: Any) -> None:
    arrays = operands(70)
    half = [pb.asarray(x).astype(dtype) for x in arrays[:8]]
    out = pb.selective_scan(*half, delta_softplus=True)
    assert out.dtype == half[0].dtype
    wide = pb.selective_scan(*(x.astype("float32") for x in half), delta_softplus=True)
    assert bool((out == wide.astype(dtype)).all())


@pytest.mark.plain_graph
def test_states_are_never_there_as_a_whole() -> None:
    """Forward and backward take less than the states of all steps would alone."""
    samples, channels, states, length = 1, 128, 32, 2048
    u, delta = (pb.asarray(normal(samples, channels, length).astype(np.float32)) for _ in range(2))
    a = pb.asarray(-np.exp(normal(channels, states)).astype(np.float32))
    b, c = (pb.asarray(normal(samples, states, length).astype(np.float32)) for _ in range(2))
    step = pb.value_and_grad(lambda *xs: pb.sum(pb.selective_scan(*xs, delta_softplus=True)), argnums=tuple(range(5)))
    step(u[..., :200], delta[..., :200], a, b[..., :200], c[..., :200])
    tracemalloc.start()
    step(u, delta, a, b, c)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = 4 * samples * channels * states * length
    assert peak < 0.6 * whole


def test_operands_of_selective_scans_that_do_not_fit() -> None:
    u, delta, a, b, c, *_ = operands(5)
    for arguments, message in (
        ((u[0], delta, a, b, c), r"u must have 3 axes, got the shape \(6, 5\)"),
        ((u, delta[:, :, :4], a, b, c), r"delta has shape \(2, 6, 4\), expected \(2, 6, 5\)"),
        ((u, delta, a[:5], b, c), r"A has shape \(5, 3\), expected \(6, 3\)"),
        ((u, delta, a, b[:1], c), r"B has shape \(1, 3, 5\), expected \(2, 3, 5\) or \(6, 3\) or \(2, 1, 3, 5\)"),
        ((u, delta, a, np.zeros((2, 4, 3, 5)), c), "6 channels are not divided by 4 groups"),
        ((u, delta, a, b, c, np.zeros(5)), r"D has shape \(5,\), expected \(6,\)"),
    ):
        with pytest.raises(pb.ShapeError, match=message):
            pb.selective_scan(*arguments)
    with pytest.raises(pb.DtypeError, match="u must be floating-point, got int64"):
        pb.selective_scan(u.astype(np.int64), delta, a, b, c)
    with pytest.raises(pb.DtypeError, match="A must be floating-point, got complex128"):
        pb.selective_scan(u, delta, a + 1j, b, c)


# -- state_space_dual -------------------------------------------------------------------------------


def dual_operands(length: int, heads: int = 4, groups: int = 2, samples: int = 2) -> Any:
    rng = np.random.default_rng(length)
    draw = lambda *shape: rng.standard_normal(shape)
    x, delta = draw(samples, length, heads, 5), np.abs(draw(samples, length, heads))
    b, c = (draw(samples, length, groups, 3) for _ in range(2))
    return x, delta, -np.exp(draw(heads)), b, c, draw(heads)


def dual_by_steps(x, delta, a, b, c, d, state) -> Any:
    heads, groups = x.shape[2], b.shape[2]
    out = np.zeros(x.shape)
    for t in range(x.shape[1]):
        b_now, c_now = (np.repeat(factor[:, t], heads // groups, axis=1) for factor in (b, c))
        moved = (delta[:, t, :, None] * x[:, t])[..., None] * b_now[:, :, None]
        state = np.exp(delta[:, t] * a)[..., None, None] * state + moved
        out[:, t] = (state * c_now[:, :, None]).sum(-1)
    return out + x * d[:, None], state


@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("length", LENGTHS)
def test_dual_scans_are_those_of_a_loop(length: int, chunk: int) -> None:
    arguments = dual_operands(length)
    state = normal(2, 4, 5, 3)
    out, last = pb.state_space_dual(*arguments, chunk, True, state)
    expected, expected_last = dual_by_steps(*arguments, state)
    np.testing.assert_allclose(out.numpy(), expected if length else arguments[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(last.numpy(), expected_last, rtol=1e-9, atol=1e-11)


def test_gradients_of_dual_scans() -> None:
    arguments = [x[:1, ..., :2, :] if x.ndim == 4 else x for x in dual_operands(9, heads=2, groups=2, samples=1)]
    assert pb.gradcheck(lambda *xs: pb.state_space_dual(*xs, chunk=4), tuple(arguments), order=2)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_dual_scans_on_every_device(compiled: bool, device: str) -> None:
    require(device)
    arrays = [x.astype(np.float32) for x in dual_operands(100)]
    function = pb.grad(lambda *xs: pb.mean(pb.state_space_dual(*xs, chunk=16) ** 2), argnums=tuple(range(6)))
    expected = function(*(pb.asarray(x.astype(np.float64)) for x in arrays))
    found = (pb.compile(function) if compiled else function)(*(pb.asarray(x, device=device) for x in arrays))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=2e-5 * np.abs(other.numpy()).max())


def test_decays_that_vanish_leave_no_nan() -> None:
    x, delta, a, b, c, d = dual_operands(70)
    gradients = pb.grad(lambda *xs: pb.sum(pb.state_space_dual(*xs)), argnums=tuple(range(6)))(
        x, delta, 1e3 * a, b, c, d
    )
    assert all(np.isfinite(one).all() for one in gradients)


def test_what_comes_after_a_large_decay_keeps_its_digits() -> None:
    """A step that forgets everything stands among steps that forget nearly nothing."""
    x, delta, a, b, c, d = (array.astype(np.float32) for array in dual_operands(64))
    delta[:] = 1e-3
    delta[:, [0, 20]] = 10
    state = np.zeros((2, 4, 5, 3), np.float32)
    expected, _ = dual_by_steps(*(array.astype(np.float64) for array in (x, delta, 16 * a, b, c, d, state)))
    np.testing.assert_allclose(pb.state_space_dual(x, delta, 16 * a, b, c, d).numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("empty", ["samples", "width", "states"])
def test_scans_of_nothing(empty: str) -> None:
    samples, width, states = (
        0 if empty == name else size for name, size in (("samples", 2), ("width", 4), ("states", 3))
    )
    u, delta, b = np.ones((samples, width, 5)), np.ones((samples, width, 5)), np.ones((samples, states, 5))
    function = lambda *xs: pb.selective_scan(*xs).sum()
    arguments: Any = (u, delta, np.ones((width, states)), b, b)
    for argument, gradient in zip(arguments, pb.grad(function, argnums=tuple(range(5)))(*arguments)):
        np.testing.assert_array_equal(gradient, np.zeros(argument.shape))
    x, keys = np.ones((samples, 5, 2, width)), np.ones((samples, 5, 1, states))
    arguments = (x, np.ones((samples, 5, 2)), -np.ones(2), keys, keys)
    function = lambda *xs: pb.state_space_dual(*xs).sum()
    for argument, gradient in zip(arguments, pb.grad(function, argnums=tuple(range(5)))(*arguments)):
        np.testing.assert_array_equal(gradient, np.zeros(argument.shape))


def test_operands_of_dual_scans_that_do_not_fit() -> None:
    x, delta, a, b, c, d = dual_operands(5)
    for arguments, message in (
        ((x[0], delta, a, b, c), "x must have 4 axes"),
        ((x, delta[:, :4], a, b, c), r"delta has shape \(2, 4, 4\), expected \(2, 5, 4\)"),
        ((x, delta, a, b, c[:, :, :1]), r"C has shape \(2, 5, 1, 3\), expected \(2, 5, 2, 3\)"),
        ((x, delta, a, np.zeros((2, 5, 3, 3)), np.zeros((2, 5, 3, 3))), "4 heads are not divided by 3 groups"),
        ((x, delta, a, b, c, d, 0), "chunk must be a number of steps, got 0"),
    ):
        with pytest.raises(pb.ShapeError, match=message):
            pb.state_space_dual(*arguments)


# -- discretization ---------------------------------------------------------------------------------


def test_exprel_and_its_derivatives_have_all_digits() -> None:
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    points = [0.0, 1e-300, -1e-9, 1e-3, -0.3, 0.49999, 0.50001, -2.0, 30.0, -700.0]
    phi = lambda x: mpmath.expm1(x) / x if x else mpmath.mpf(1)
    third = pb.grad(pb.grad(pb.grad(lambda x: pb.sum(pb.exprel(x)))))
    for x in points:
        x = mpmath.mpf(x)
        found = [pb.exprel(np.float64(x)).item(), pb.grad(pb.exprel)(np.float64(x)).item(), third(np.float64(x)).item()]
        for order, one in zip((0, 1, 3), found):
            if abs(x) < 0.01:
                expected = mpmath.fsum(x**k / mpmath.factorial(k) / (k + order + 1) for k in range(30))
            else:
                expected = mpmath.diff(phi, x, order) if order else phi(x)
            np.testing.assert_allclose(one, float(expected), rtol={0: 1e-15, 1: 5e-15, 3: 1e-12}[order] * 4)
    z = np.array([0.1 + 0.2j, 3j, -0.4j, 1e-20j])
    np.testing.assert_allclose(pb.exprel(z).numpy(), [1 if abs(v) < 1e-15 else np.expm1(v) / v for v in z], rtol=1e-14)


@pytest.mark.parametrize("method", ["zoh", "bilinear", "euler"])
def test_small_steps_go_along_the_solution(method: str) -> None:
    """h' = A h + B x with x = 1, from 0: (exp(A t) - 1) / A B."""
    a, b, steps = np.array([-1.0, 0.0, 0.3, -0.5 + 2j]), np.array([1.0, 2.0, -1.0, 1j]), 400
    factor, gain = pb.discretize(a, b, 1 / steps, method)
    states = pb.ssm_scan(np.ones((steps, 4), complex), factor, gain)
    exact = np.where(a == 0, b, (np.exp(a) - 1) / np.where(a == 0, 1, a) * b)
    tolerance = {"zoh": 1e-13, "bilinear": 1e-2, "euler": 1e-2}[method]
    np.testing.assert_allclose(states[-1].numpy(), exact, rtol=tolerance)


@pytest.mark.parametrize("method", ["zoh", "bilinear", "euler"])
def test_derivatives_of_discretizations(method: str) -> None:
    function = lambda a, b, delta: pb.discretize(a, b, delta, method)
    real = np.array([-1.0, 0.0, 1e-9, -0.3]), np.array([1.0, 2.0, 3.0, -1.0]), np.array([0.1, 0.5, 0.3, 1.0])
    assert pb.gradcheck(function, real, order=2)
    assert pb.gradcheck(function, (real[0] + 0.7j, real[1] - 1j, real[2]))


def test_methods_that_are_not_known() -> None:
    with pytest.raises(pb.ConfigurationError, match="unknown method 'tustin'; known: 'zoh', 'bilinear', 'euler'"):
        pb.discretize(1.0, 1.0, 1.0, "tustin")
    with pytest.raises(pb.DtypeError, match="got int64"):
        pb.exprel(np.arange(3))
