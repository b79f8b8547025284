"""`pb.cond`: which function runs, what it may be given, and where gradients go."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional

jax = optional("jax")
jnp = optional("jax.numpy")


def branches(x: pb.Tensor, y: pb.Tensor) -> pb.Tensor:
    return pb.cond(x.sum() > 0, lambda a, b: pb.sin(a) * b, lambda a, b: a * a - b, x, y)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_derivatives_of_every_kind(form: str, sign: float) -> None:
    x, y = sign * np.array([0.5, 1.0, 2.0]), np.array([1.5, -0.5, 0.7])
    assert pb.gradcheck(branches, (x, y), order=2)
    np.testing.assert_allclose(pb.hessian(lambda x: branches(x, pb.asarray(y)).sum())(x).diagonal(), {
        1.0: -np.sin(x) * y, -1.0: np.full(3, 2.0)
    }[sign])  # fmt: skip


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_agrees_with_jax(form: str, sign: float) -> None:
    x = sign * np.array([0.5, 1.0, 2.0])

    def choose(lib, cond):
        def loss(x):
            value, other = cond(
                lib.sum(x) > 0,
                lambda t: (lib.exp(t["a"]), t["b"][0] * 2),
                lambda t: (t["a"] * 3, lib.tanh(t["b"][0])),
                {"a": x, "b": (x * x,)},
            )
            return lib.sum(value * other)

        return loss

    expected = jax.value_and_grad(choose(jnp, jax.lax.cond))(x)
    found = pb.value_and_grad(choose(pb, pb.cond))(x)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_gradients_reach_captured_tensors(form: str) -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    v = pb.tensor([3.0, 5.0], requires_grad=True)
    out = pb.cond(pb.asarray(True), lambda: w * v, lambda: w + v)
    grads = pb.backward(out.sum())
    np.testing.assert_array_equal(grads[w].numpy(), [3.0, 5.0])
    np.testing.assert_array_equal(grads[v].numpy(), [1.0, 2.0])


def test_only_the_chosen_function_is_called() -> None:
    called = []
    pb.cond(pb.asarray(False), lambda: called.append("true") or 1.0, lambda: called.append("false") or 2.0)
    assert called == ["false"]


@pytest.mark.parametrize(
    "predicate",
    [
        *(True, 1, 0.5, float("nan"), np.bool_(True), np.float32(2.0), np.array([-1]), np.array(float("nan"))),
        *(pb.asarray([[True]]), pb.tensor(-3.0)),
    ],
    ids=repr,
)
def test_predicates(form: str, predicate: object) -> None:
    out = pb.cond(predicate, lambda: 1.0, lambda: 0.0)
    assert (out.item(), out.shape) == (1.0, ())
    assert pb.cond(pb.logical_not(pb.asarray(predicate)), lambda: 1.0, lambda: 0.0).item() == 0.0


def test_predicate_that_needs_a_gradient_decides_and_has_none(form: str) -> None:
    x = pb.tensor(2.0, requires_grad=True)
    assert pb.backward(pb.cond(x, lambda x: x * x, lambda x: -x, x))[x].item() == 4.0
    value, tangent = pb.jvp(lambda x: pb.cond(x > 1, lambda x: x * x, lambda x: -x, x), (2.0,), (1.0,))
    assert (value, tangent) == (4.0, 4.0)


@pytest.mark.parametrize(
    ("predicate", "error", "message"),
    [
        (pb.asarray([True, False]), pb.ShapeError, r"predicate has shape \(2,\); expected one element.*`pb.where`"),
        (np.zeros((0,)), pb.ShapeError, r"shape \(0,\)"),
        ("yes", pb.DtypeError, "predicate is of type str: 'yes'; expected a bool"),
        (None, pb.DtypeError, "NoneType"),
        ([True], pb.DtypeError, "list"),
    ],
    ids=repr,
)
def test_what_is_no_predicate(form: str, predicate: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pb.cond(predicate, lambda: 1.0, lambda: 0.0)


def test_what_is_no_function() -> None:
    with pytest.raises(pb.DtypeError, match=r"cond: `false_function` must be a function, got float: 2.0.*lambda"):
        pb.cond(True, lambda: 1.0, 2.0)  # type: ignore[arg-type]


def test_results_are_tensors(form: str) -> None:
    def result():
        return {"a": 1.0, "b": np.ones(2), "c": None}

    out = pb.cond(pb.asarray(True), result, result)
    assert isinstance(out["a"], pb.Tensor) and isinstance(out["b"], pb.Tensor) and out["c"] is None
    assert (out["a"].dtype, out["b"].dtype) == (pb.float32, pb.float64)
    with pytest.raises(pb.DtypeError, match=r"cond: the result of true_function at `\[1\]` is of type str"):
        pb.cond(pb.asarray(True), lambda: (1.0, "a"), lambda: (1.0, "b"))


def test_writing_to_an_operand_does_not_change_the_callers(form: str) -> None:
    def double(x: pb.Tensor) -> pb.Tensor:
        x *= 2
        return x

    x = pb.tensor([1.0, 2.0])
    np.testing.assert_array_equal(pb.cond(pb.asarray(True), double, double, x).numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


def test_operands_that_are_no_arrays_are_handed_over_as_they_are(form: str) -> None:
    layer, words = pb.nn.Linear(2, 2), ["some", "words"]

    def apply(f, given, x):
        assert f is layer and given == words
        return f(x)

    x = pb.asarray([[1.0, 2.0], [3.0, 6.0]])
    found = pb.cond(pb.asarray(True), apply, apply, layer, words, x)
    np.testing.assert_array_equal(found.detach().numpy(), layer(x).detach().numpy())


# -- both computed, one selected -------------------------------------------------------------------


def test_both_functions_are_called(inline: None) -> None:
    called = []
    pb.cond(pb.asarray(False), lambda: called.append("true") or 1.0, lambda: called.append("false") or 2.0)
    assert called == ["true", "false"]


@pytest.mark.parametrize("x", [0.0, -1.0])
def test_nothing_comes_from_the_function_that_was_not_chosen(inline: None, x: float) -> None:
    def safe(x: pb.Tensor) -> pb.Tensor:
        return pb.cond(x > 0, lambda x: pb.log(x) * pb.sqrt(x), lambda x: 3 * x, x)

    with np.errstate(all="ignore"):
        assert pb.grad(safe)(x) == 3.0
        assert pb.grad(pb.grad(safe))(x) == 0.0
        assert pb.jvp(safe, (x,), (1.0,))[1] == 3.0


def test_a_number_takes_the_dtype_of_the_other_result(inline: None) -> None:
    x = pb.asarray(2.0, dtype=pb.float64)
    for true, false in ((lambda x: x, lambda x: 0), (lambda x: 0.1, lambda x: x)):
        assert pb.cond(pb.asarray(True), true, false, x).dtype == pb.float64
    assert pb.cond(pb.asarray(True), lambda x: 0.1, lambda x: x, x).item() == 0.1


@pytest.mark.parametrize(
    ("true", "false", "error", "message"),
    [
        (lambda: np.ones(3), lambda: np.ones(()), pb.ShapeError, r"test_cond.py:\d+: the functions give .*"
         r"shapes: true_function \(3,\), false_function \(\).*`pb.broadcast_to"),
        (lambda: [np.ones(3)], lambda: [np.ones(3, np.float32)], pb.DtypeError, r"at `\[0\]`.*float64, false_function "
         r"float32.*`.astype\(pb.float64\)`"),
        (lambda: 1, lambda: pb.asarray(True), pb.DtypeError, "true_function int64, false_function bool"),
        (lambda: 1, lambda: 1.5, pb.DtypeError, "true_function int64, false_function float32"),
        (lambda: (1.0, 2.0), lambda: [1.0, 2.0], pb.ShapeError, "structure.*same structure from both"),
    ],
)  # fmt: skip
def test_results_that_do_not_agree(inline: None, true, false, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pb.cond(pb.asarray(True), true, false)


def test_inside_a_program_that_jax_traces() -> None:
    def f(x):
        return pb.cond(pb.asarray(x).sum() > 0, lambda x: x * x, lambda x: -x, pb.asarray(x))._raw

    compiled = jax.jit(f)
    for x in (np.array([1.0, 2.0]), np.array([1.0, -2.0])):
        np.testing.assert_allclose(compiled(x), x * x if x.sum() > 0 else -x)
