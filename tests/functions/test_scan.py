"""The linear recurrence: against a plain loop, dtypes, lengths, errors, and the portable kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY
from pullback.backends.portable.reductions import recurrence as by_doubling

from ..backends.installed import BFLOAT16, is_installed, needs_llvmlite, require
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


def sparse(device: str) -> list[pb.Tensor]:
    """Inputs and cotangents that are zero but for one step, and factors whose products are beyond all numbers."""
    factors = np.full((300, 3), 1e3, np.float32)
    factors[[90, 180]] = 0
    arrays = [np.zeros((300, 3), np.float32) for _ in range(2)]
    arrays[0][-5] = arrays[1][3] = 1
    return [pb.asarray(x, device=device) for x in (arrays[0], factors, arrays[1])]


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_factors_that_grow_leave_zeros_alone_on_every_device(device: str, compiled: bool) -> None:
    require(device)
    wrap = pb.compile if compiled else (lambda function: function)
    x, a, weights = sparse(device)
    np.testing.assert_allclose(wrap(pb.ssm_scan)(x, a).numpy()[-6:, 1], [0, 1, 1e3, 1e6, 1e9, 1e12], rtol=1e-6)
    gradients = wrap(pb.grad(lambda x, a: pb.sum(pb.ssm_scan(x, a) * weights), argnums=(0, 1)))(x, a)
    np.testing.assert_allclose(gradients[0].numpy()[:6, 1], [1e9, 1e6, 1e3, 1, 0, 0], rtol=1e-6)
    assert all(np.isfinite(gradient.numpy()).all() for gradient in gradients)


@pytest.mark.parametrize("reverse", [False, True])
def test_portable_scans_by_doubling_leave_zeros_alone(reverse: bool) -> None:
    x, a, _ = (array.numpy()[:: -1 if reverse else 1].copy() for array in sparse("numpy"))
    with np.errstate(over="ignore", invalid="ignore"):
        found = by_doubling(PORTABLE, x, a, (-2,), reverse), NUMPY.xp.recurrence(x, a, (-2,), reverse)
    assert np.isfinite(found[1]).all()
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    a[200], x[100] = np.inf, np.nan  # what is not finite itself is still seen
    with np.errstate(over="ignore", invalid="ignore"):
        bad = by_doubling(PORTABLE, x, a, (-2,), reverse)
    assert np.isnan(bad[[100, 200]]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", BFLOAT16, "complex64"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_numbers_take_the_dtype_and_the_device_of_x(device: str, dtype: Any) -> None:
    require(device)
    if device == "jax:cpu" and dtype == "float64":
        pytest.skip("JAX has no float64 as the tests configure it.")
    x = pb.ones((5, 2), device=device).astype(dtype)
    whole = pb.ones((5, 2), device=device).astype(dtype)
    out = pb.ssm_scan(x, 0.1, 3, 0.7)
    expected = pb.ssm_scan(x, whole * 0.1, whole * 3, whole[0] * 0.7)
    assert (out.dtype, out.device) == (expected.dtype, expected.device) == (x.dtype, x.device)
    np.testing.assert_array_equal(out.numpy(), expected.numpy())
    assert pb.ssm_scan(x, 0.1j).dtype == (pb.complex128 if dtype == "float64" else pb.complex64)


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


# -- derivatives over many steps -------------------------------------------------------------------

FACTORS = {
    "any": lambda rng, *shape: rng.uniform(-1, 1, shape),
    "near 0": lambda rng, *shape: rng.uniform(-1e-9, 1e-9, shape) * (rng.uniform(size=shape) < 0.7),
    "near 1": lambda rng, *shape: 1 - 1e-6 * rng.uniform(size=shape),
    "negative": lambda rng, *shape: -0.99 * np.ones(shape),
    "complex": lambda rng, *shape: 0.9999 * np.exp(1j * rng.uniform(-3, 3, shape)),
}


def slope(weights: np.ndarray, arrays: list[np.ndarray], number: int, direction: np.ndarray) -> float:
    """How the weighted sum of states changes with an array: with no cancellation, by a step into an imaginary unit.

    Real and imaginary parts of complex numbers are numbers of their own.
    """
    step, is_complex = 1e-30, np.iscomplexobj(weights)
    moved = [
        [part + 1j * step * (i == number) * turned for part, turned in zip((x.real, x.imag), (d.real, d.imag))]
        for i, (x, d) in enumerate((x, direction if i == number else np.zeros(1)) for i, x in enumerate(arrays))
    ]
    length = len(weights)
    (x, x_imag), (a, a_imag), (b, b_imag), (h, h_imag) = moved
    a, a_imag = (np.broadcast_to(part, (length, 3)) for part in (a, a_imag))
    x, x_imag = b * x - b_imag * x_imag, b * x_imag + b_imag * x
    total = 0j
    for t in range(length):
        if is_complex:
            h, h_imag = a[t] * h - a_imag[t] * h_imag + x[t], a[t] * h_imag + a_imag[t] * h + x_imag[t]
            total += weights[t].imag @ h_imag
        else:
            h = a[t] * h + x[t]
        total += weights[t].real @ h
    return float(total.imag / step)


@pytest.mark.parametrize(("length", "constant"), [(1, False), (2, True), (65, False), (4097, False), (4097, True)])
@pytest.mark.parametrize("kind", FACTORS)
def test_gradients_have_all_digits(kind: str, length: int, constant: bool) -> None:
    rng = np.random.default_rng(length)
    draw = lambda *shape: rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "complex" else 0)
    a = FACTORS[kind](rng, 1 if constant else length, 3)
    arrays = [draw(length, 3), a, draw(length, 3), draw(3)]
    weights = draw(length, 3)
    loss = lambda *xs: pb.sum(pb.real(pb.ssm_scan(*xs) * np.conj(weights)))
    for number, gradient in enumerate(pb.grad(loss, argnums=(0, 1, 2, 3))(*arrays)):
        direction = draw(*arrays[number].shape)
        found, expected = np.real(np.vdot(gradient, direction)), slope(weights, arrays, number, direction)
        assert abs(found - expected) <= 1e-8 * np.abs(gradient * direction).sum(), (number, found, expected)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("length", [1, 130])
def test_the_same_as_the_scan_of_jax(length: int, dtype: str) -> None:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(length)
    draw = lambda: rng.uniform(-1, 1, (length, 3)) + (0.5j * rng.uniform(-1, 1, (length, 3)) if "c" in dtype else 0)
    a, x, weights = draw(), draw(), draw()

    def loss_of(a: object, x: object) -> object:
        combine = lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1])
        return (jax.lax.associative_scan(combine, (a, x))[1] * weights).sum().real

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(loss_of, argnums=(0, 1)))(a, x)
    found = pb.grad(lambda a, x: pb.sum(pb.real(pb.ssm_scan(x, a) * weights)), argnums=(0, 1))(a, x)
    for one, other in zip(found, expected):
        other = np.conj(other)  # it gives the others
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(1000)])
@pytest.mark.parametrize("length", [1, 65, 4097])
def test_checkpointed_gradients_are_the_same_to_the_last_bit(length: int, strategy: object) -> None:
    rng = np.random.default_rng(length)
    x, a, b, h0 = (rng.uniform(-1, 1, shape) for shape in ((length, 5), (length, 5), (5,), (5,)))
    gradient = pb.grad(lambda *xs: pb.sum(pb.tanh(pb.ssm_scan(pb.tanh(xs[0]), *xs[1:])) ** 2), argnums=(0, 1, 2, 3))
    expected = gradient(x, a, b, h0)
    with pb.checkpointing(strategy):
        found = gradient(x, a, b, h0)
    assert all((one == other).all() for one, other in zip(found, expected))


# -- what grows without bounds ---------------------------------------------------------------------


@pytest.mark.parametrize(("width", "reverse"), [(2, False), (700, True)])
def test_the_guard_names_the_scan_and_its_first_bad_step(width: int, reverse: bool) -> None:
    x, a = (pb.asarray(np.full((3, 100, width), value, np.float32)).set_requires_grad(True) for value in (1.0, 1e6))
    step = 92 if reverse else 7  # h[7] is 1e42
    message = rf"`ssm_scan` made inf \(from step {step} of 100 on\): test_scan.py:\d+"
    with np.errstate(over="ignore"):
        with pytest.raises(pb.NumericalInstabilityError, match=message):
            pb.backward(pb.ssm_scan(x, a, axis=1, reverse=reverse).sum())
        with pb.guard("trace"), pytest.raises(pb.NumericalInstabilityError, match=message):
            pb.ssm_scan(x, a, axis=1, reverse=reverse)
        last = 0 if reverse else 99
        message = rf"gradient of `ssm_scan` is nan \(from step {last} of 100 on\)"  # 0 times inf
        with pytest.raises(pb.NumericalInstabilityError, match=message):
            pb.backward(pb.ssm_scan(x, a, axis=1, reverse=reverse)[:, -1 if reverse else 0].sum())


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_the_first_bad_step_is_named_where_the_input_is_not_known_any_more(compiled: bool) -> None:
    x, a = (pb.asarray(np.full(100, value, np.float32)).set_requires_grad(True) for value in (1.0, 1e6))
    step = lambda: pb.backward(pb.ssm_scan(2 * x, a).sum())[x]
    message = r"inf was made between .*`multiply`\) and .*`ssm_scan`\) \(from step 7 of 100 on\)"
    with np.errstate(over="ignore"), pytest.raises(pb.NumericalInstabilityError, match=message):
        (pb.compile(step) if compiled else step)()


def test_states_that_grow_are_right_as_long_as_there_are_numbers_for_them() -> None:
    """1.5 ** 1700 is 1e299."""
    x, a = np.ones((1700, 2)), np.full(2, 1.5)
    found = pb.ssm_scan(x, a).numpy()
    np.testing.assert_allclose(found, np.stack([2 * (1.5 ** np.arange(1.0, 1701) - 1)] * 2, 1), rtol=1e-9)
    gradient = pb.grad(lambda x: pb.sum(pb.ssm_scan(x, a)[-1]))(x)
    np.testing.assert_allclose(gradient[:, 0], 1.5 ** np.arange(1699.0, -1, -1), rtol=1e-9)
