"""`pb.while_loop`: values and derivatives against JAX, how often it steps, errors."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional

jax = optional("jax")
jnp = optional("jax.numpy")


def newton(lib, while_loop, **options):
    """The root of x^3 + x = a, by Newton's method, as a function of a."""

    def root(a):
        def step(carry):
            x, count = carry["x"], carry["count"]
            new = x - (x**3 + x - a) / (3 * x**2 + 1)
            return {"x": new, "change": abs(new - x), "count": count + 1}

        start = {"x": 0 * a + 1.0, "change": 0 * a + 1.0, "count": lib.asarray(0)}
        out = while_loop(lambda carry: carry["change"] > 1e-9, step, start, **options)
        return out["x"], out["count"]

    return root


@pytest.mark.parametrize("a", [0.0, 2.5, -7.0])
def test_newton_agrees_with_jax(form: str, a: float) -> None:
    root = newton(pb, pb.while_loop, max_steps=16)
    expected, tangents = jax.jvp(newton(jnp, jax.lax.while_loop), (a,), (1.0,))
    found, moved = pb.jvp(lambda a: root(a)[0], (a,), (1.0,))
    np.testing.assert_allclose([found, moved], [expected[0], tangents[0]], rtol=1e-12, atol=1e-15)
    assert root(pb.asarray(a, dtype=pb.float64))[1].item() == expected[1]
    np.testing.assert_allclose(pb.grad(lambda a: root(a)[0])(a), tangents[0], rtol=1e-12)
    second = jax.jacfwd(jax.jacfwd(lambda a: newton(jnp, jax.lax.while_loop)(a)[0]))(a)
    np.testing.assert_allclose(pb.grad(pb.grad(lambda a: root(a)[0]))(a), second, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pb.hessian(lambda a: root(a)[0])(a), second, rtol=1e-9, atol=1e-12)


def test_derivatives_of_every_kind(form: str) -> None:
    def f(x, w):
        return pb.while_loop(
            lambda c: (c[0] ** 2).sum() < 40, lambda c: (c[0] * w + c[1], c[1] * c[0]), (x, w), max_steps=8
        )

    x, w = np.array([0.7, 1.1]), np.array([1.3, 1.2])
    assert pb.gradcheck(f, (x, w), order=2)


@pytest.mark.parametrize(("max_steps", "expected"), [(None, 16), (10, 16), (4, 16), (3, 8), (1, 2), (0, 1)])
def test_steps(max_steps: int | None, expected: int) -> None:
    assert pb.while_loop(lambda x: x < 10, lambda x: x * 2, 1, max_steps).item() == expected


@pytest.mark.parametrize(("max_steps", "expected"), [(10, 16), (4, 16), (3, 8), (1, 2), (0, 1)])
def test_steps_in_a_program(inline: None, max_steps: int, expected: int) -> None:
    calls = []
    out = pb.while_loop(lambda x: x < 10, lambda x: calls.append(x) or x * 2, 1, max_steps)
    assert out.item() == expected and len(calls) == max_steps


def test_a_condition_that_holds_again_does_not_start_the_loop_again(inline: None) -> None:
    answers = iter([True, False, True, True])
    out = pb.while_loop(lambda x: pb.asarray(next(answers)), lambda x: x + 1, 0, max_steps=4)
    assert out.item() == 1


def test_a_condition_that_becomes_known(inline: None) -> None:
    """A plain bool ends the unrolled loop for good, or lets it go on."""
    answers = iter([pb.asarray(True), True, False])
    assert pb.while_loop(lambda x: next(answers), lambda x: x + 1, 0, max_steps=9).item() == 2


def test_a_condition_that_becomes_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.functions import carry

    monkeypatch.setattr(carry, "is_symbolic", lambda x: True)
    answers = iter([True, True, *(pb.asarray(flag) for flag in (True, False, False))])
    assert pb.while_loop(lambda x: next(answers), lambda x: x + 1, 0, max_steps=5).item() == 3
    assert next(answers, None) is None  # two steps were taken, three more unrolled


def test_steps_after_the_last_contribute_nothing(inline: None) -> None:
    """Even where they divide by zero or take roots of negative numbers."""

    def f(x):
        def body(c):
            return c[0] * pb.sqrt(c[1]) / c[1], c[1] - 1

        return pb.while_loop(lambda c: c[1] > 0, body, (x, 1.0), max_steps=4)[0]

    with np.errstate(all="ignore"):
        assert f(pb.asarray(3.0)).item() == 3.0
        assert pb.grad(f)(3.0) == 1.0
        assert pb.jvp(f, (3.0,), (1.0,))[1] == 1.0
        assert pb.grad(pb.grad(f))(3.0) == 0.0


def test_gradients_reach_captured_tensors(form: str) -> None:
    w = pb.tensor(3.0, requires_grad=True)
    out = pb.while_loop(lambda x: x < 20, lambda x: x * w, 1.0, max_steps=5)
    assert out.item() == 27.0
    assert pb.backward(out)[w].item() == 27.0


def test_a_step_that_stops_the_gradient(form: str) -> None:
    def f(x):
        return pb.while_loop(
            lambda c: c[1] < 1, lambda c: (pb.stop_gradient(c[0]), c[1] + 1, c[2]), (x, 0, x), max_steps=3
        )

    assert pb.jvp(lambda x: f(x)[0] * x, (3.0,), (1.0,))[1] == 3.0
    assert pb.grad(lambda x: f(x)[0] * x)(3.0) == 3.0
    assert pb.jvp(lambda x: f(x)[2] * x, (3.0,), (1.0,))[1] == 6.0


def test_every_step_has_its_own_carry(form: str) -> None:
    def f(total: pb.Tensor) -> pb.Tensor:
        total += 1
        return total

    start = pb.asarray([1.0, 2.0])
    assert pb.while_loop(lambda x: x.sum() < 9, f, start, max_steps=9).tolist() == [4.0, 5.0]
    assert start.tolist() == [1.0, 2.0]


def test_nothing_to_carry() -> None:
    answers = iter([True, True, False])
    assert pb.while_loop(lambda _: next(answers), lambda _: None, None) is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((lambda x: x > 0, lambda x: x, np.ones(2), 3), pb.ShapeError, r"what the condition returned has shape \(2,\)"),
        ((lambda x: None, lambda x: x, 1.0, 3), pb.DtypeError, "what the condition returned is of type NoneType"),
        ((lambda x: x > 0, lambda x: (x, x), 1.0, 3), pb.ShapeError, r"at step 0 `body` returned a carry like"),
        ((lambda x: x > 0, lambda x: x + np.ones(2), 1.0, 3), pb.ShapeError, "at step 0 `body` returned a carry of sh"),
        ((lambda x: x > 0, lambda x: x - 0.5, 1, 3), pb.DtypeError, "the number 1 that it started from is int64"),
        ((lambda x: x > 0, lambda x: x, 1.0, -3), pb.ShapeError, "`max_steps` is -3"),
        ((lambda x: x > 0, lambda x: x, 1.0, 3.5), pb.DtypeError, "`max_steps` must be an integer.*float: 3.5"),
        ((lambda x: x > 0, None, 1.0), pb.DtypeError, "`body` must be a function, got NoneType"),
        ((True, lambda x: x, 1.0), pb.DtypeError, "`condition` must be a function, got bool"),
    ],
)  # fmt: skip
def test_errors(form: str, arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^while_loop: .*{message}"):
        pb.while_loop(*arguments)


def test_a_program_needs_max_steps(inline: None) -> None:
    place = r"test_while_loop.py:\d+"
    with pytest.raises(pb.PullbackError, match=f"while_loop: {place}: .*Pass the most that it can take.*max_steps="):
        pb.while_loop(lambda x: x < 10, lambda x: x * 2, 1)
    assert pb.while_loop(lambda x: False, lambda x: x * 2, 1).item() == 1  # known: nothing to ask for


def test_a_long_loop_in_a_program_warns_of_its_compile_time(inline: None) -> None:
    with pytest.warns(RuntimeWarning, match="while_loop: all 129 steps become part") as caught:
        pb.while_loop(lambda x: x < 10, lambda x: x * 2, 1, max_steps=129)
    assert caught[0].filename == __file__


def test_inside_a_program_that_jax_traces() -> None:
    def f(x):
        return pb.while_loop(lambda x: x < 100, lambda x: x * x, pb.asarray(x), max_steps=6)._raw

    compiled = jax.jit(f)
    assert [float(compiled(x)) for x in (2.0, 3.0, 200.0)] == [256.0, 6561.0, 200.0]
