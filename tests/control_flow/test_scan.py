"""`pb.scan`: values and derivatives against JAX, trees, lengths, errors, and what it costs."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import needs_ml_dtypes, optional

jax = optional("jax")
jnp = optional("jax.numpy")


def rnn(lib, scan, reverse: bool):
    """A gated recurrent network as a function of its weights and inputs; trees everywhere."""

    def loss(weights, xs):
        def cell(carry, x):
            h, (count,) = carry["h"], carry["more"]
            gate = 1 / (1 + lib.exp(-(x["data"] @ weights["gate"] + h @ weights["u"])))
            h = gate * h + (1 - gate) * lib.tanh(x["data"] @ weights["v"] + x["shift"])
            return {"h": h, "more": (count + 1,)}, (h, lib.sum(h * h))

        start = {"h": lib.zeros(4, dtype=lib.float64), "more": (lib.asarray(0),)}
        last, (states, squares) = scan(cell, start, xs, reverse=reverse)
        return lib.sum(states * states[::-1]) + lib.sum(last["h"]) * lib.mean(squares) + last["more"][0]

    return loss


def rnn_inputs() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    weights = {"gate": rng.normal(size=(3, 4)), "u": rng.normal(size=(4, 4)) / 2, "v": rng.normal(size=(3, 4))}
    return weights, {"data": rng.normal(size=(6, 3)), "shift": rng.normal(size=(6, 4))}


@pytest.mark.parametrize("reverse", [False, True])
def test_agrees_with_jax(form: str, reverse: bool) -> None:
    weights, xs = rnn_inputs()
    value, grads = pb.value_and_grad(rnn(pb, pb.scan, reverse), argnums=(0, 1))(weights, xs)
    expected, expected_grads = jax.jit(jax.value_and_grad(rnn(jnp, jax.lax.scan, reverse), argnums=(0, 1)))(weights, xs)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, wanted in zip(pb.tree.leaves(grads), jax.tree.leaves(expected_grads), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_second_derivatives_agree_with_jax(form: str) -> None:
    weights, xs = rnn_inputs()

    def of_u(loss):
        return lambda u: loss({**weights, "u": u}, xs)

    found = pb.hessian(of_u(rnn(pb, pb.scan, False)))(weights["u"])
    expected = jax.jit(jax.hessian(of_u(rnn(jnp, jax.lax.scan, False))))(weights["u"])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_every_kind(form: str, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    start, factors, xs = rng.normal(size=2), rng.normal(size=(3, 1)), rng.normal(size=(3, 2))

    def f(start, xs):
        return pb.scan(lambda h, x: (pb.sin(h * x[0]) + x[1], h * h), start, xs, reverse=reverse)

    assert pb.gradcheck(f, (start, (factors, xs)), order=2)


@pytest.mark.parametrize("reverse", [False, True])
def test_outputs_lie_where_their_slices_do(form: str, reverse: bool) -> None:
    last, (before, x) = pb.scan(lambda n, x: (n + 1, (n, x)), 0, np.arange(4) * 10, reverse=reverse)
    assert last.item() == 4
    assert before.tolist() == ([3, 2, 1, 0] if reverse else [0, 1, 2, 3])
    assert x.tolist() == [0, 10, 20, 30]


def test_without_xs(form: str) -> None:
    last, ys = pb.scan(lambda x, nothing: (x * 2, nothing), 1.0, length=5)
    assert last.item() == 32.0 and ys is None
    last, ys = pb.scan(lambda x, nothing: (x * 2, x), 1.0, None, np.int64(3))
    assert ys.tolist() == [1.0, 2.0, 4.0]


def test_no_slices(form: str) -> None:
    def f(h, x):
        return h * x["a"].sum(), {"y": pb.log(x["a"]) / 0.0, "n": x["b"], "one": 1.0}

    h = pb.tensor(2.0, requires_grad=True)
    xs = {"a": pb.tensor(np.ones((0, 3), np.float32), requires_grad=True), "b": np.zeros((0, 2), np.int8)}
    with warnings.catch_warnings(), pb.guard("trace"), pb.GradientTape() as tape:
        warnings.simplefilter("error")
        last, ys = pb.scan(f, h, xs)
    assert tape.ops == []
    assert pb.backward(last)[h].item() == 1.0
    shapes = {name: (y.shape, y.dtype) for name, y in ys.items()}
    assert shapes == {"y": ((0, 3), pb.float32), "n": ((0, 2), pb.int8), "one": ((0,), pb.float32)}
    assert not ys["y"].requires_grad
    assert pb.grad(lambda x: pb.scan(lambda h, x: (h, x), 0.0, x)[1].sum())(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(pb.ShapeError, match="step 0"):  # the function is checked even so
        pb.scan(lambda h, x: (pb.ones(2), None), 0.0, length=0)


def test_gradients_reach_captured_tensors(form: str) -> None:
    w = pb.tensor(3.0, requires_grad=True)
    last, ys = pb.scan(lambda h, x: (h * w + x, h), 1.0, pb.asarray([1.0, 2.0]))
    assert pb.backward(last, retain_graph=True)[w].item() == 2 * 3.0 + 1.0
    assert pb.backward(ys.sum())[w].item() == 1.0


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_number_takes_the_dtype_beside_it(dtype: type) -> None:
    last, _ = pb.scan(lambda h, x: (h + x, None), 0.1, np.ones(2, dtype))
    assert last.dtype == dtype and last.item() == dtype(0.1) + dtype(2)
    last, _ = pb.scan(lambda h, x: ((h[0] + h[1], h[1]), None), (0.1, np.ones((), dtype)), length=2)
    assert last[0].dtype == dtype
    last, _ = pb.scan(lambda h, x: (0, None), pb.asarray(1, dtype=dtype), length=1)  # on the way, too
    assert last.dtype == dtype
    assert pb.scan(lambda h, x: (h + x, None), 1j, np.ones(2, dtype))[0].dtype == np.result_type(dtype, np.complex64)
    assert pb.scan(lambda h, x: (h + x, None), 1j, np.ones(2, np.complex128))[0].dtype == np.complex128


def test_every_step_has_its_own_carry(form: str) -> None:
    """Also where the function writes to it in place: neither `initial` nor outputs change afterwards."""

    def f(total: pb.Tensor, x: pb.Tensor):
        total += x
        x *= 0
        return total, total

    start, xs = pb.asarray([1.0, 2.0]), pb.asarray([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    _, totals = pb.scan(f, start, xs)
    assert totals.tolist() == [[2.0, 3.0], [4.0, 5.0], [7.0, 8.0]]
    assert start.tolist() == [1.0, 2.0] and xs.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


@needs_ml_dtypes
def test_carry_keeps_its_dtype_where_autocast_shortens_it() -> None:
    w = pb.asarray(np.eye(2, dtype=np.float32))
    with pb.autocast(pb.bfloat16):
        last, ys = pb.scan(lambda h, x: ((h @ w), h @ w), pb.ones((2, 2)), length=2)
    assert last.dtype == pb.float32 and ys.dtype == pb.bfloat16
    with pb.no_grad(), pytest.raises(pb.DtypeError, match="returned a carry of dtype float64"):
        pb.scan(lambda h, x: (h.astype(pb.float64), None), pb.ones(2), length=1)


@pytest.mark.plain_graph
def test_a_carry_can_be_computed_again_under_checkpointing() -> None:
    """What the function is given knows its origin; else every step's state would be kept."""
    given = []
    with pb.checkpointing(pb.BalancedCheckpointing()):
        start = pb.exp(pb.tensor([0.5, 1.0], requires_grad=True))
        pb.scan(lambda h, x: given.append(h) or (h, None), start, length=1)
    assert given[0]._origin is start._origin is not None


def test_unused_outputs_and_slices() -> None:
    xs = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    _, ys = pb.scan(lambda h, x: (h, x * x), 0.0, xs)
    np.testing.assert_array_equal(pb.backward(ys[1])[xs].numpy(), [0.0, 4.0, 0.0])


# -- cost ------------------------------------------------------------------------------------------


def operations_behind(*tensors: pb.Tensor) -> Counter:
    """How many nodes of each operation lead to these tensors."""
    seen = {x._node for x in tensors}
    waiting = list(seen)
    while waiting:
        for parent in waiting.pop().inputs:
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return Counter("leaf" if node.recipe is None else node.recipe.operation.name for node in seen)


def graphs(length: int) -> tuple[Counter, Counter]:
    rng = np.random.default_rng(2)
    u, xs = (pb.tensor(rng.normal(size=shape), requires_grad=True) for shape in ((2, 2), (length, 2)))
    last, ys = pb.scan(lambda h, x: (pb.tanh(h @ u + x), h), pb.zeros(2, dtype=pb.float64), xs)
    loss = (ys * ys).sum() + last.sum()
    grads = pb.backward(loss, create_graph=True)
    return operations_behind(loss), operations_behind(grads[u], grads[xs])


@pytest.mark.plain_graph
def test_the_graph_is_linear_in_the_length_and_so_is_its_gradients() -> None:
    """No step has a node whose gradient is as large as all slices together (`getitem`, `place`)."""
    short, longer, longest = graphs(10), graphs(20), graphs(40)
    for a, b, c in zip(short, longer, longest):
        assert {op: 2 * (b[op] - a[op]) for op in c} == {op: c[op] - b[op] for op in c}
        assert not {"getitem", "place", "setitem", "index_add", "concat"} & set(c)
        assert c["unstack"] <= 4 and c["stack"] <= 4 and b["unstack"] == c["unstack"]
    assert longest[0]["unstack"] == longest[0]["stack"] == 1
    assert sum(longest[0].values()) - sum(longer[0].values()) == 20 * 4  # matmul, add, tanh, the slice


@pytest.mark.plain_graph  # recomputing so long a chain from nothing is quadratic by itself
def test_two_thousand_steps() -> None:
    xs = pb.tensor(np.full((2000, 3), 1e-3), requires_grad=True)
    last, _ = pb.scan(lambda h, x: (h * (1 + x), h), pb.ones(3, dtype=pb.float64), xs)
    np.testing.assert_allclose(last.detach().numpy(), 1.001**2000)
    grads = pb.backward(last.sum(), create_graph=True)
    np.testing.assert_allclose(grads[xs].detach().numpy(), np.full((2000, 3), 1.001**1999))
    second = pb.backward(grads[xs][0].sum())[xs].numpy()
    np.testing.assert_allclose(second[0], 0, atol=1e-12)
    np.testing.assert_allclose(second[1:], 1.001**1998)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1.0,), pb.ShapeError, "nothing to scan in `xs`.*`length=...`"),
        ((1.0, {"a": None}), pb.ShapeError, "nothing to scan"),
        ((1.0, {"a": 2.0}), pb.ShapeError, r"`xs\['a'\]` has no axis to scan"),
        ((1.0, (np.ones(3), np.ones((4, 2)))), pb.ShapeError, r"`xs\[1\]` of shape \(4, 2\) has 4 slices, "
         r"`xs\[0\]` says 3"),
        ((1.0, np.ones(3), 4), pb.ShapeError, "has 3 slices, `length` says 4"),
        ((1.0, None, -1), pb.ShapeError, "`length` is -1; it cannot be negative"),
        ((1.0, None, 2.0), pb.DtypeError, "`length` must be an integer.*got float: 2.0"),
        ((1.0, ["a"]), pb.DtypeError, r"`xs` at `\[0\]` is of type str"),
        (("h", np.ones(3)), pb.DtypeError, "`initial` is of type str: 'h'; expected a tensor"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(form: str, arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pb.scan(lambda h, x: (h, x), *arguments)


def later(step: int, early, late):
    """A function that returns `early` for the carry until `step`."""
    calls = iter(range(10))
    return lambda h, x: (late(h) if next(calls) >= step else early(h), None)


@pytest.mark.parametrize("step", [0, 2])
@pytest.mark.parametrize(
    ("start", "changed", "error", "message"),
    [
        (np.ones(2), lambda h: pb.ones((3, 2), dtype=pb.float64), pb.ShapeError, r"returned a carry of shape \(3, 2\), "
         r"it was \(2,\) before.*start with `initial` of shape \(3, 2\)"),
        ({"h": np.ones(2)}, lambda h: {"h": h["h"].astype(pb.float32)}, pb.DtypeError, r"with `\['h'\]` of dtype "
         r"float32, it was float64.*start with `initial\['h'\]`.*return `.astype\(pb.float64\)`"),
        (0, lambda h: h + 0.5, pb.DtypeError, r"of dtype float\d\d, the number 0 that it started from is int64.*start "
         r"from 0\.0, or return `.astype\(pb.int64\)`"),
        (0.5, lambda h: h.astype(pb.float64), pb.DtypeError, r"start from `pb.asarray\(0.5, dtype=pb.float64\)`"),
        (1, lambda h: 0.5, pb.DtypeError, "float32.*int64"),
        ((1.0, 2.0), lambda h: list(h), pb.ShapeError, r"a carry like `\[\*, \*\]`, `initial` is like `\(\*, \*\)`\. "
         "Return a carry with the structure"),
        (np.ones(2), lambda h: "h", pb.DtypeError, "the carry of `function` is of type str"),
    ],
)  # fmt: skip
def test_a_carry_that_changes(form: str, step: int, start, changed, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=rf"^scan: at step {step} .*{message}"):
        pb.scan(later(step, lambda h: h, changed), start, length=4)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda h: h, "returned Tensor: .*expected two things.*`return carry, y`"),
        (lambda h: (h, h, h), "returned a tuple of 3"),
        (lambda h: [h, h], "returned list"),
    ],
)
def test_what_is_no_pair(result, message: str) -> None:
    with pytest.raises(pb.ShapeError, match=f"scan: at step 0 the function {message}"):
        pb.scan(lambda h, x: result(h), 1.0, length=2)


@pytest.mark.parametrize(
    ("outputs", "error", "message"),
    [
        ((1.0, np.ones(2, np.float32)), pb.ShapeError, r"the output has shape \(2,\) and dtype float32, at the steps "
         r"before it had \(\) and float32"),
        (({"a": 1.0}, {"a": 1}), pb.DtypeError, r"the output at `\['a'\]` has shape \(\) and dtype int64"),
        ((1.0, (1.0,)), pb.ShapeError, "the output is like .* at the steps before it was like"),
        ((1.0, "a"), pb.DtypeError, "the output is of type str"),
    ],
)  # fmt: skip
def test_outputs_that_change(outputs: tuple, error: type[Exception], message: str) -> None:
    given = iter(outputs)
    with pytest.raises(error, match=f"scan: at step 1 {message}"):
        pb.scan(lambda h, x: (h, next(given)), 1.0, length=2)


def test_what_is_no_function() -> None:
    with pytest.raises(pb.DtypeError, match="scan: `function` must be a function, got float"):
        pb.scan(1.0, 2.0, length=3)  # type: ignore[arg-type]


# -- in a program ----------------------------------------------------------------------------------


def test_a_long_loop_in_a_program_warns_of_its_compile_time(inline: None) -> None:
    pb.scan(lambda h, x: (h, None), 1.0, length=128)
    with pytest.warns(RuntimeWarning, match="scan: all 129 steps become part of the compiled program") as caught:
        pb.scan(lambda h, x: (h, None), 1.0, length=129)
    assert caught[0].filename == __file__


def test_a_long_loop_outside_a_program_does_not_warn() -> None:
    pb.scan(lambda h, x: (h, None), 1.0, length=129)


def test_inside_a_program_that_jax_traces() -> None:
    def f(x):
        return [y._raw for y in pb.scan(lambda h, x: (h * x, h + x), 1.0, pb.asarray(x))]

    for found, expected in zip(jax.jit(f)(np.array([1.0, 2.0, 3.0])), (6.0, [2.0, 3.0, 5.0])):
        np.testing.assert_allclose(found, expected)
