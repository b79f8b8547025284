"""vmap: axes, trees, nesting with the other transforms, writes, control flow, random numbers, mistakes."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import Any

import numpy as np
import pytest

import pullback as pb


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def looped(f: Any, *columns: Any) -> Any:
    """What a loop over the first axes gives, stacked."""
    return np.stack([np.asarray(f(*row)) for row in zip(*columns)])


# -- axes and trees --------------------------------------------------------------------------------


def test_arrays_give_arrays_and_tensors_tensors() -> None:
    x = rng().normal(size=(4, 3))
    found = pb.vmap(lambda x: x * x.sum())(x)
    assert type(found) is np.ndarray and found.dtype == np.float64
    np.testing.assert_allclose(found, x * x.sum(1, keepdims=True))
    assert isinstance(pb.vmap(lambda x: x * 2)(pb.asarray(x)), pb.Tensor)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("out", [0, 1, 2, -1])
def test_examples_may_be_along_any_axis(axis: int, out: int) -> None:
    x = rng().normal(size=(2, 3, 4))
    found = pb.vmap(lambda x: x - x[0], in_axes=axis, out_axes=out)(x)
    moved = np.moveaxis(x, axis, 0)
    np.testing.assert_allclose(np.moveaxis(found, out, 0), moved - moved[:, :1])


def test_axes_are_trees_like_the_arguments_or_the_upper_part_of_one() -> None:
    model = {"w": rng().normal(size=(3, 4)), "b": {"one": rng().normal(size=4), "two": rng().normal(size=(4, 3))}}

    def f(model: Any, x: Any) -> Any:
        return {"sum": x * model["b"]["one"] + model["b"]["two"].sum(), "other": (model["w"], x)}

    x = rng().normal(size=(4, 2))
    in_axes = ({"w": None, "b": 0}, 0)
    found = pb.vmap(f, in_axes=in_axes, out_axes={"sum": 0, "other": (None, 1)})(model, x)
    expected = x * model["b"]["one"][:, None] + model["b"]["two"].sum(1)[:, None]
    np.testing.assert_allclose(found["sum"], expected)
    np.testing.assert_allclose(found["other"][0], model["w"])
    np.testing.assert_allclose(found["other"][1], x.T)


def test_shared_arguments_keywords_and_numbers() -> None:
    x = rng().normal(size=5)
    found = pb.vmap(lambda a, x, scale=1.0: (a * x * scale, 3.0, np.arange(2)), in_axes=(None, 0))(2.0, x, scale=10.0)
    np.testing.assert_allclose(found[0], 20 * x)
    assert found[1].shape == (5,) and found[2].shape == (5, 2)
    np.testing.assert_array_equal(pb.vmap(lambda x: 0.1)(x), np.full(5, 0.1))


def test_no_examples() -> None:
    f = pb.vmap(lambda x, w: (pb.softmax(x @ w), pb.sort(x), x[x.argmax()], pb.linalg.inv(w)), in_axes=(0, None))
    first, second, third, fourth = f(np.zeros((0, 3)), np.eye(3))
    assert (first.shape, second.shape, third.shape, fourth.shape) == ((0, 3), (0, 3), (0,), (0, 3, 3))
    grads = pb.vmap(pb.grad(lambda w, x: pb.tanh(w @ x).sum()), in_axes=(None, 0))(np.ones((2, 3)), np.zeros((0, 3)))
    assert grads.shape == (0, 2, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda a, i: pb.linalg.solve(a, a[0]).sum(),
        lambda a, i: pb.linalg.inv(a).sum(),
        lambda a, i: pb.linalg.cholesky(a).sum(),
        lambda a, i: a[i].sum(),
        lambda a, i: pb.median(a),
        lambda a, i: pb.index_add(a, i, 1.0).sum(),
        lambda a, i: pb.scaled_dot_product_attention(a, a, a).sum(),
    ],
)
def test_derivatives_of_no_examples(f: Any) -> None:
    a, i = np.zeros((0, 3, 3)), np.zeros((0, 2), int)
    assert pb.vmap(f)(a, i).shape == (0,)
    assert pb.vmap(pb.grad(f))(a, i).shape == (0, 3, 3)
    assert pb.vmap(pb.hessian(f))(a, i).shape == (0, 3, 3, 3, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pb.vmap(lambda x, y: x)(np.ones(3), np.ones(4)), "argument 0 has 3 examples .* argument 1 has 4"),
        (lambda: pb.vmap(lambda x: x, in_axes=1)(np.ones(3)), r"axis 1 for argument 0, which has shape \(3,\)"),
        (lambda: pb.vmap(lambda x: x)(2.0), "which has no axes. Write None"),
        (lambda: pb.vmap(lambda x: x, in_axes=None)(np.ones(3)), "no argument has an axis of examples"),
        (lambda: pb.vmap(lambda x: x, in_axes=(0, 0))(np.ones(3)), "in_axes has 2 entries"),
        (lambda: pb.vmap(lambda x: x, in_axes=({"a": 0},))({"b": np.ones(3)}), "in_axes has"),
        (lambda: pb.vmap(lambda x: x, out_axes=None)(np.ones(3)), "out_axes is None for result 0"),
        (lambda: pb.vmap(lambda x: x, out_axes=2)(np.ones((3, 2))), "out_axes says axis 2"),
        (lambda: pb.vmap(lambda x: x, out_axes=(0, 0))(np.ones(3)), "out_axes has"),
        (lambda: pb.vmap(lambda x: "no")(np.ones(3)), "returned str"),
        (lambda: pb.vmap(lambda s, x: x)("no", np.ones(3)), "argument 0 is 'no'"),
        (lambda: pb.vmap(lambda x: x, randomness="other")(np.ones(3)), "randomness must be one of"),
        (lambda: pb.vmap(np.ones(3)), "expected a function"),
    ],
)
def test_mistakes_are_explained(call: Any, said: str) -> None:
    with pytest.raises((pb.PullbackError, ValueError), match=said):
        call()


# -- with the other transforms ---------------------------------------------------------------------


def loss(w: Any, x: Any) -> Any:
    return (pb.tanh(w["a"] @ x) * w["b"]).sum() ** 2


def weights() -> Any:
    return {"a": rng().normal(size=(2, 3)), "b": rng().normal(size=2)}


def test_per_example_gradients_of_shared_weights() -> None:
    w, x = weights(), rng().normal(size=(5, 3))
    found = pb.vmap(pb.grad(loss), in_axes=(None, 0))(w, x)
    for key in w:
        np.testing.assert_allclose(found[key], np.stack([pb.grad(loss)(w, row)[key] for row in x]))


def test_gradient_of_a_mapped_function_and_captured_variables() -> None:
    w, x = weights(), rng().normal(size=(5, 3))
    total = lambda w: np.sum(pb.vmap(lambda x: loss(w, x))(x))
    expected = pb.grad(lambda w: sum(loss(w, row) for row in x))(w)
    found = pb.grad(total)(w)
    for key in w:
        np.testing.assert_allclose(found[key], expected[key])
    captured = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    out = pb.vmap(lambda x: x @ captured)(np.ones((3, 2)))
    assert isinstance(out, pb.Tensor) and out.requires_grad
    np.testing.assert_allclose(pb.backward(out.sum())[captured].numpy(), [3.0, 3.0])


def test_nested_maps() -> None:
    x, y = rng().normal(size=(3, 4)), rng().normal(size=(5, 4))
    table = pb.vmap(lambda a: pb.vmap(lambda b: a @ b)(y))(x)
    np.testing.assert_allclose(table, x @ y.T)
    table = pb.vmap(pb.vmap(lambda a, b: (a * b).sum(), in_axes=(None, 0)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(table, x @ y.T)
    slopes = pb.vmap(pb.vmap(pb.grad(lambda a, b: pb.sin(a @ b)), in_axes=(None, 0)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(slopes, np.cos(x @ y.T)[:, :, None] * y[None])


def test_gradient_through_a_map_of_gradients() -> None:
    w, x = weights(), rng().normal(size=(4, 3))

    def sharpness(w: Any) -> Any:
        grads = pb.vmap(pb.grad(loss), in_axes=(None, 0))(w, x)
        return sum((g * g).sum() for g in grads.values())

    def by_loop(w: Any) -> Any:
        return sum((g * g).sum() for row in x for g in pb.grad(loss)(w, row).values())

    found, expected = pb.grad(sharpness)(w), pb.grad(by_loop)(w)
    for key in w:
        np.testing.assert_allclose(found[key], expected[key])


@pytest.mark.parametrize("size", [3, 14])
@pytest.mark.parametrize(
    "inside",
    [
        lambda f, x: pb.jacfwd(f)(x),
        lambda f, x: pb.jacrev(f)(x),
        lambda f, x: pb.jacfwd(pb.jacfwd(f))(x),
        lambda f, x: pb.hessian(f)(x),
        lambda f, x: pb.jvp(f, (x,), (x,)),
        lambda f, x: pb.vjp(f, x)[1](x),
        lambda f, x: pb.hvp(lambda x: f(x).sum(), (x,), (x,)),
        lambda f, x: pb.jacfwd(lambda x: (f(x), f(2 * x)), has_aux=True)(x),
    ],
)
def test_gradients_flow_through_derivatives_of_examples(inside: Any, size: int) -> None:
    x, w = rng().normal(size=(3, size)), rng().normal(size=(size, size))

    def sum_of_squares(parts: Any) -> Any:
        return sum(((part**2).sum() for part in pb.tree.leaves(parts)), 0.0)

    def total(w: Any) -> Any:
        return sum_of_squares(pb.vmap(lambda x: inside(lambda x: pb.sin(w @ x), x))(x))

    def in_a_loop(w: Any) -> Any:
        return sum(sum_of_squares(inside(lambda x: pb.sin(w @ x), pb.asarray(row))) for row in x)

    np.testing.assert_allclose(pb.grad(total)(w), pb.grad(in_a_loop)(w), rtol=1e-9, atol=1e-9)


def test_second_order_per_example() -> None:
    x = rng().normal(size=(4, 3))
    f = lambda x: pb.sin(x).prod() + (x**3).sum()
    np.testing.assert_allclose(pb.vmap(pb.hessian(f))(x), looped(pb.hessian(f), x), atol=1e-12)
    np.testing.assert_allclose(pb.vmap(pb.jacfwd(pb.grad(f)))(x), looped(pb.hessian(f), x), atol=1e-12)
    np.testing.assert_allclose(pb.vmap(pb.jacrev(pb.tanh))(x), looped(pb.jacrev(pb.tanh), x), atol=1e-12)
    v = rng().normal(size=(4, 3))
    np.testing.assert_allclose(
        pb.vmap(lambda x, v: pb.hvp(f, (x,), (v,))[0])(x, v), looped(lambda x, v: pb.hvp(f, (x,), (v,))[0], x, v)
    )
    np.testing.assert_allclose(pb.vmap(pb.grad(pb.grad(lambda t: t**4)))(x[:, 0]), 12 * x[:, 0] ** 2)


def test_forward_mode_inside_and_outside() -> None:
    x, v = rng().normal(size=(4, 3)), rng().normal(size=(4, 3))
    f = lambda x: pb.tanh(x) * x.sum()
    push = lambda x, v: pb.jvp(f, (x,), (v,))[1]
    expected = looped(push, x, v)
    np.testing.assert_allclose(pb.vmap(push)(x, v), expected)
    np.testing.assert_allclose(pb.jvp(pb.vmap(f), (x,), (v,))[1], expected)
    _, tangent = pb.jvp(pb.vmap(pb.grad(lambda x: f(x).sum())), (x,), (v,))
    np.testing.assert_allclose(tangent, looped(lambda x, v: pb.hvp(lambda x: f(x).sum(), (x,), (v,))[0], x, v))
    # a tangent that all examples share, and one that none has
    shared = pb.vmap(lambda x: pb.jvp(lambda a: a * x, (np.ones(3),), (np.ones(3),))[1])(x)
    np.testing.assert_allclose(shared, x)


def test_pullbacks_take_cotangents_of_examples() -> None:
    x, c = rng().normal(size=3), rng().normal(size=(5, 3))
    _, pullback = pb.vjp(pb.sin, x)
    (rows,) = pb.vmap(pullback)(c)
    np.testing.assert_allclose(rows, c * np.cos(x))


def test_derivatives_do_not_mix_with_examples() -> None:
    """d/dx (x d/dy (x + y)) = 1, also where both are mapped."""
    inner = lambda x: x * pb.grad(lambda y: x + y)(1.0)
    np.testing.assert_allclose(pb.vmap(pb.grad(inner))(np.arange(3.0)), np.ones(3))
    np.testing.assert_allclose(
        pb.vmap(lambda x: pb.jvp(lambda y: pb.jvp(lambda z: z * y, (x,), (x * 0 + 1,))[1], (x,), (x * 0 + 1,))[1])(
            np.arange(3.0)
        ),
        np.ones(3),
    )


def test_compiled() -> None:
    w, x = weights(), rng().normal(size=(5, 3))
    grads = pb.vmap(pb.grad(loss), in_axes=(None, 0))
    expected, found = grads(w, x), pb.compile(grads)(w, x)
    for key in w:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-12)
    inside = pb.vmap(pb.compile(lambda x: pb.tanh(x).sum()))  # runs as it is, on all examples
    np.testing.assert_allclose(inside(x), np.tanh(x).sum(1))


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_libraries(device: str) -> None:
    pytest.importorskip(device.partition(":")[0])
    x = pb.asarray(rng().normal(size=(5, 3)).astype(np.float32)).to_device(device)
    w = pb.asarray(rng().normal(size=(2, 3)).astype(np.float32)).to_device(device).set_requires_grad(True)
    out = pb.vmap(lambda x: pb.softmax(pb.tanh(w @ x)))(x)
    assert out.device == x.device
    gradient = pb.backward((out * out).sum())[w]
    moved = pb.vmap(lambda x: x.to_device("numpy") * 2)(x)
    assert moved.device == "numpy"
    there = w.detach().to_device("numpy").set_requires_grad(True)
    rows = x.to_device("numpy")
    expected = pb.backward(sum((pb.softmax(pb.tanh(there @ row)) ** 2).sum() for row in rows))[there]
    np.testing.assert_allclose(gradient.to_device("numpy").numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
@pytest.mark.parametrize(
    "f",
    [
        lambda a: tuple(pb.linalg.svd(a, full_matrices=False)),
        lambda a: tuple(pb.linalg.qr(a)),
        lambda a: tuple(pb.linalg.eigh(a @ a.T)),
        lambda a: tuple(pb.linalg.slogdet(a)),
        pb.grad(lambda a: pb.linalg.svdvals(a).sum()),
    ],
)
def test_results_with_names_in_other_libraries(f: Any, device: str) -> None:
    pytest.importorskip(device.partition(":")[0])
    a = pb.asarray(rng().normal(size=(2, 3, 3)).astype(np.float32), device=device)
    found, expected = pb.tree.leaves(pb.vmap(f)(a)), [pb.tree.leaves(f(example)) for example in a]
    for k, out in enumerate(found):
        wanted = pb.stack([leaves[k] for leaves in expected])
        np.testing.assert_allclose(*[x.to_device("numpy").numpy() for x in (out, wanted)], rtol=1e-4, atol=1e-5)


# -- writes, choices, loops ------------------------------------------------------------------------


def test_writing_in_place() -> None:
    x, place = rng().normal(size=(4, 3)), np.array([0, 2, 1, 0])

    def f(x: Any, i: Any) -> Any:
        y = pb.zeros(3, dtype=pb.float64)
        y[i] = x[0]
        y[:2] += x[1:]
        x *= y
        x[-1] = 5.0
        return x

    before = x.copy()
    expected = []
    for row, i in zip(x, place):
        y = np.zeros(3)
        y[i] = row[0]
        y[:2] += row[1:]
        out = row * y
        out[-1] = 5.0
        expected.append(out)
    np.testing.assert_allclose(pb.vmap(f)(x, place), expected)
    np.testing.assert_array_equal(x, before)
    tensor = pb.asarray(x.copy())
    pb.vmap(f)(tensor, place)
    np.testing.assert_array_equal(tensor.numpy(), before)
    slope = pb.vmap(pb.grad(lambda x, i: (f(x.clone(), i) ** 2).sum()), in_axes=(0, 0))(x, place)
    np.testing.assert_allclose(slope, looped(pb.grad(lambda x, i: (f(x.clone(), int(i)) ** 2).sum()), x, place))


def test_tensors_from_outside_take_what_all_examples_share() -> None:
    count, other = pb.zeros(2), pb.zeros(3, dtype=pb.float64)

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return x + count.sum()

    np.testing.assert_allclose(pb.vmap(f)(np.zeros(3)), [2.0, 2.0, 2.0])
    np.testing.assert_allclose(count.numpy(), [1.0, 1.0])
    for write in (lambda x: other.__setitem__(0, x), lambda x: other.__iadd__(x)):
        with pytest.raises(pb.VmapError, match=r"outside of pb.vmap.*t.clone\(\)"):
            pb.vmap(write)(np.ones(3))
        np.testing.assert_array_equal(other.numpy(), np.zeros(3))


def test_control_flow() -> None:
    x = rng().normal(size=6)
    chosen = pb.vmap(lambda x: pb.cond(x > 0, lambda x: pb.log(x), lambda x: -x, x))
    expected = np.where(x > 0, np.log(np.abs(x)), -x)
    np.testing.assert_allclose(chosen(x), expected)
    np.testing.assert_allclose(pb.vmap(pb.grad(chosen_alone))(x), np.where(x > 0, 1 / x, -1.0))
    doubled = pb.vmap(lambda x: pb.while_loop(lambda y: pb.abs(y) < 10, lambda y: 2 * y, x))
    np.testing.assert_allclose(doubled(x), [v * 2 ** np.ceil(np.log2(10 / abs(v))) for v in x])
    np.testing.assert_allclose(
        pb.vmap(pb.grad(lambda x: pb.while_loop(lambda y: pb.abs(y) < 10, lambda y: 2 * y, x)))(x),
        [2 ** np.ceil(np.log2(10 / abs(v))) for v in x],
    )
    rows = rng().normal(size=(4, 5))
    total, partial = pb.vmap(lambda r: pb.scan(lambda c, x: (c + x, c * x), 0.0, r))(rows)
    np.testing.assert_allclose(total, rows.sum(1))
    np.testing.assert_allclose(partial, (np.cumsum(rows, 1) - rows) * rows)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.softmax(pb.log(x)).max(),
        lambda x: pb.layer_norm(1 / x, 3)[0],
        lambda x: (1 / x) @ pb.log(x),
        lambda x: pb.cumprod(1 / x).sum(),
    ],
)
@pytest.mark.parametrize("loops", [False, True])
def test_gradients_of_examples_that_do_not_take_a_choice_stay_out_of_it(f: Any, loops: bool) -> None:
    def choice(x: Any) -> Any:
        if loops:
            return pb.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[2]), c[2]), (1.0 * (x[0] <= 0), x[1], x))[
                1
            ]
        return pb.cond(x[0] > 0, f, lambda x: x[1], x)

    x = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    slopes = np.stack([pb.grad(f)(x[0]), [0.0, 1.0, 0.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(pb.vmap(pb.grad(choice))(x), slopes)
        np.testing.assert_allclose(pb.grad(lambda x: pb.vmap(choice)(x).sum())(x), slopes)


def backward_alone(x: Any) -> Any:
    x = x.detach().set_requires_grad(True)
    pb.sqrt(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("gradient", [pb.grad(lambda x: pb.sqrt(x).sum()), backward_alone])
def test_guards_say_where_gradients_of_examples_are_not_finite(gradient: Any) -> None:
    x = np.array([[1.0, 2.0], [0.0, 1.0]])
    with pb.guard("raise"), pytest.raises(pb.NumericalInstabilityError, match=r"gradient of `sqrt` is inf.*\(2, 2\)"):
        pb.vmap(gradient)(x)
    with pb.guard("raise"):
        np.testing.assert_allclose(pb.vmap(gradient)(x + 1), 0.5 / np.sqrt(x + 1))


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_numbers_that_are_chosen_are_where_the_predicate_is(device: str) -> None:
    pytest.importorskip(device.partition(":")[0])
    x = pb.asarray([1.0, -1.0], device=device)
    chosen = pb.vmap(lambda x: pb.cond(x > 0, lambda: 1.0, lambda: 2.0))(x)
    assert chosen.device == x.device
    assert chosen.tolist() == [1.0, 2.0]


def chosen_alone(x: Any) -> Any:
    return pb.cond(x > 0, lambda x: pb.log(x), lambda x: -x, x)


def test_values_of_one_example_are_refused() -> None:
    for f in (lambda x: x if x > 0 else -x, lambda x: float(x), lambda x: x.item(), lambda x: range(x.astype(int))):
        with pytest.raises(pb.VmapError, match="stands for 3 examples at once"):
            pb.vmap(f)(np.ones(3))
    for f in (lambda x: x.numpy(), lambda x: np.asarray(x), lambda x: x.tolist(), lambda x: x.data):
        with pytest.raises(pb.PullbackError):
            pb.vmap(f)(np.ones(3))
    with pytest.raises(pb.VmapError, match=r"pb\.where"):
        pb.vmap(lambda x: x[x > 0])(np.ones((3, 2)))
    with pytest.raises(pb.VmapError, match="shape depends on values"):
        pb.vmap(lambda x: pb.unique_values(x))(np.ones((3, 2)))
    # what all examples share has values
    assert pb.vmap(lambda x, y: x * (2 if y.sum() > 3 else 1), in_axes=(0, None))(np.ones(2), pb.ones(5)).tolist() == [
        2,
        2,
    ]


def test_tensors_that_outlive_the_map_are_refused() -> None:
    kept: list[Any] = []
    pb.vmap(lambda x: kept.append(x * 2) or x)(np.ones(3))
    with pytest.raises(pb.VmapError, match=r"made inside of pb\.vmap"):
        kept[0] + 1
    with pytest.raises(pb.VmapError, match=r"made inside of pb\.vmap"):
        pb.vmap(lambda x: x + kept[0])(np.ones(3))
    assert "3 examples" in repr(kept[0])


def test_a_failed_call_leaves_nothing_behind() -> None:
    with pytest.raises(ZeroDivisionError):
        pb.vmap(lambda x: 1 / 0)(np.ones(3))
    assert (pb.ones(2) + 1).tolist() == [2.0, 2.0]


# -- indices ---------------------------------------------------------------------------------------

X = np.arange(3 * 4 * 5 * 2, dtype=np.float64).reshape(3, 4, 5, 2)
I = np.array([[0, 2], [1, -1], [3, 0]])
J = np.array([[1, 1], [0, 3], [2, -2]])
MASK = np.array([True, False, True, True])


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[i, :, 1],
        lambda x, i, j: x[i, :, j % 2],
        lambda x, i, j: x[..., i % 2],
        lambda x, i, j: x[i[:, None], j],
        lambda x, i, j: x[None, i, 1:, j % 2],
        lambda x, i, j: x[i[0]],
        lambda x, i, j: x[1, i],
        lambda x, i, j: x[np.array([1, 0]), i],
        lambda x, i, j: x[np.array([1, 0])],
        lambda x, i, j: x[:, np.array([1, 0]), 1],
        lambda x, i, j: x[0, :, np.array([1, 0])],
        lambda x, i, j: x[MASK],
        lambda x, i, j: x[MASK, 1:3],
        lambda x, i, j: x[1:, ::2, -1],
        lambda x, i, j: x[..., None, 0],
        lambda x, i, j: x[True],
    ],
)
@pytest.mark.parametrize("shares", ["nothing", "array", "index"])
def test_reading_and_writing_at_indices(read: Any, shares: str) -> None:
    axes = {"nothing": (0, 0, 0), "array": (None, 0, 0), "index": (0, None, None)}[shares]
    x, i, j = [given[0] if axis is None else given for given, axis in zip((X, I, J), axes)]
    rows = [tuple(given if axis is None else given[n] for given, axis in zip((x, i, j), axes)) for n in range(3)]
    expected = np.stack([read(*row) for row in rows])
    np.testing.assert_array_equal(pb.vmap(read, in_axes=axes)(x, i, j), expected)

    def written(x: Any, i: Any, j: Any) -> Any:
        """Reads positions to find which elements `read` takes, and writes there."""

        class Place:
            def __getitem__(self, index: Any) -> Any:
                self.index = index
                return self

        place = Place()
        read(place, i, j)
        y = x.clone() if isinstance(x, pb.Tensor) else pb.asarray(x.copy())
        y[place.index] = y[place.index] * 2 + 1
        added = pb.index_add(y, place.index, 0.5)
        return y, added

    def by_numpy(x: Any, i: Any, j: Any) -> Any:
        index: Any = None

        class Place:
            def __getitem__(self, given: Any) -> Any:
                nonlocal index
                index = given
                return self

        read(Place(), i, j)
        y = x.copy()
        y[index] = y[index] * 2 + 1
        added = y.copy()
        np.add.at(added, index, 0.5)
        return y, added

    found = pb.vmap(written, in_axes=axes)(x, i, j)
    for part, wanted in zip(found, zip(*[by_numpy(*row) for row in rows])):
        np.testing.assert_array_equal(part, np.stack(wanted))
    weight = rng().normal(size=expected.shape[1:])
    slope = pb.vmap(pb.grad(lambda x, i, j: (pb.sin(read(x, i, j)) * weight).sum()), in_axes=axes)(x, i, j)
    wanted = [pb.grad(lambda x, i, j: (pb.sin(read(x, i, j)) * weight).sum())(*row) for row in rows]
    np.testing.assert_allclose(slope, np.stack(wanted))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("shares", ["array", "values"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, i, y: (x * y)[i],
        lambda x, i, y: pb.index_add(x, i, y[0]) * y,
        lambda x, i, y: written(x * y[0], i, y[:2]),
        lambda x, i, y: pb.grad(lambda x: (written(x, i, y[:2]) ** 3 * y).sum())(x),
        lambda x, i, y: pb.jacfwd(pb.grad(lambda x: (pb.index_add(x, i, y[:2]) ** 3).sum()))(x),
    ],
)
def test_indices_of_an_outer_map_are_shared_by_the_inner_one(f: Any, shares: str, count: int) -> None:
    generator = rng()
    x, i, y = generator.normal(size=(3, 4)), np.array([[0, 2], [1, -1], [3, 0]]), generator.normal(size=(count, 4))

    def inner(x: Any, i: Any) -> Any:
        return pb.vmap(lambda y: f(x, i, y) if shares == "array" else f(y, i, x))(y)

    expected = [[f(*((a, j, b) if shares == "array" else (b, j, a))) for b in y] for a, j in zip(x, i)]
    np.testing.assert_allclose(pb.vmap(inner)(x, i), expected)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, z: x * y * z,
        lambda x, y, z: x @ y + z,
        lambda x, y, z: pb.where(x > y, x, z),
        lambda x, y, z: z[pb.argsort(x)] * y[pb.argmax(x)],
        lambda x, y, z: (z * y)[pb.argsort(x)],
        lambda x, y, z: y[pb.argsort(x)] * z,
    ],
)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_inner_maps_see_arrays_of_all_outer_ones(f: Any, order: tuple[int, ...]) -> None:
    arrays = rng().normal(size=(3, 2, 13))  # so many that the directions of a Jacobian go together

    def inside(g: Any, given: tuple[Any, ...], depth: int = 0) -> Any:
        if depth == 3:
            return g(*given)
        here = order[depth]
        return pb.vmap(lambda a: inside(g, (*given[:here], a, *given[here + 1 :]), depth + 1))(given[here])

    def in_loops(g: Any) -> np.ndarray:
        rows = [[[g(x, y, z) for z in arrays[2]] for y in arrays[1]] for x in arrays[0]]
        return np.transpose(rows, (*order, *range(3, np.ndim(rows))))

    for g in (f, pb.grad(lambda x, y, z: (f(x, y, z) ** 2).sum(), 2), pb.jacfwd(f, 1), pb.jacrev(f, 2)):
        np.testing.assert_allclose(inside(g, tuple(arrays)), in_loops(g), rtol=1e-12, atol=1e-12)


def written(x: Any, i: Any, y: Any) -> pb.Tensor:
    x = pb.tensor(x) if isinstance(x, np.ndarray) else x.clone()
    x[i] = y
    return x


def test_masks_of_an_outer_map_are_refused() -> None:
    x = np.ones((3, 4))
    with pytest.raises(pb.VmapError, match="boolean mask"):
        pb.vmap(lambda x: pb.vmap(lambda y: (x * y)[x > 0])(np.ones((2, 4))))(x)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize(
    ("f", "error", "said"),
    [
        (lambda x: x[4], pb.IndexingError, r"getitem\(\(4,\) float32"),
        (lambda x: x[0, 0], pb.IndexingError, r"getitem\(\(4,\) float32"),
        (lambda x: x.__setitem__(slice(2), x), pb.ShapeError, r"setitem\(\(4,\) float32, \(4,\) float32"),
        (lambda x: pb.index_add(x, slice(2), x), pb.ShapeError, r"index_add\(\(4,\) float32, \(4,\) float32"),
    ],
)
def test_errors_of_kernels_show_what_one_example_gives(f: Any, error: Any, said: str, device: str) -> None:
    if device != "numpy":
        pytest.importorskip(device.partition(":")[0])
    with pytest.raises(error, match=said):
        pb.vmap(f)(pb.ones((3, 4), device=device))


# -- random numbers --------------------------------------------------------------------------------


DRAWS = [
    lambda: pb.random.normal((3,)),
    lambda: pb.random.uniform(()),
    lambda: pb.random.exponential((2,), 2.0),
    lambda: pb.random.integers(0, 1000, (2, 2)),
    lambda: pb.random.bernoulli(0.5, (20,)),
    lambda: pb.random.bernoulli(np.full(20, 0.5)),
    lambda: pb.random.permutation(8),
    lambda: pb.random.choice(100, (5,)),
    lambda: pb.random.choice(100, (5,), replace=False),
    lambda: pb.dropout(pb.ones(20), 0.5),
]


@pytest.mark.parametrize("number", range(len(DRAWS)))
def test_randomness(number: int) -> None:
    draw = DRAWS[number]
    x = np.zeros(4)
    with pb.random.using(3):
        one = np.asarray(draw().numpy())
        after_one = pb.random.get_state()
    with pb.random.using(3):
        same = pb.vmap(lambda x: draw() + 0 * x, randomness="same")(x)
        assert pb.random.get_state() == after_one
    with pb.random.using(3):
        different = pb.vmap(lambda x: draw() + 0 * x)(x)
        after = pb.random.get_state()
    with pb.random.using(3):
        again = pb.vmap(lambda x: draw() + 0 * x)(x)
    np.testing.assert_array_equal(same, np.stack([one] * 4))
    np.testing.assert_array_equal(different, again)
    assert different.shape == same.shape
    assert len({row.tobytes() for row in different}) == 4
    assert after["offset"] >= 4 * ((after_one["offset"] // 4) - 1)
    with pb.random.using(3):
        nested = pb.vmap(lambda x: pb.vmap(lambda x: draw() + 0 * x)(x))(np.zeros((2, 3)))
    assert len({row.tobytes() for row in nested.reshape(6, -1)}) == 6


def test_chances_of_examples() -> None:
    p = np.array([0.0, 1.0, 0.5])
    for randomness in ("same", "different"):
        drawn = pb.vmap(lambda p: pb.random.bernoulli(p, (50,)), randomness=randomness)(p)
        assert not drawn[0].any() and drawn[1].all() and 5 < drawn[2].sum() < 45


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_numbers_to_draw_with_are_the_same_for_all_examples(randomness: str) -> None:
    for draw in (lambda x: pb.random.normal((2,), x), lambda x: pb.random.uniform((2,), 0.0, x)):
        with pytest.raises(pb.VmapError, match="is one number"):
            pb.vmap(draw, randomness=randomness)(np.ones(3))


def test_dropout_of_examples_and_its_gradient() -> None:
    x = np.ones((6, 40))
    with pb.random.using(1):
        value, slope = pb.vmap(pb.value_and_grad(lambda x: pb.dropout(x, 0.5).sum()))(x)
    assert len({row.tobytes() for row in slope}) == 6
    np.testing.assert_allclose(slope.sum(1), value)
    assert set(np.unique(slope)) == {0.0, 2.0}


# -- operations of the user's own ------------------------------------------------------------------


def test_custom_operations_run_in_a_loop_with_a_notice_or_by_their_rule() -> None:
    calls = []

    def kernel(x: Any, y: Any, *, power: int = 2) -> Any:
        calls.append(x.shape)
        return x**power * y

    rules: Any = {"x": lambda g, x, y, power: g * power * x ** (power - 1) * y, "y": lambda g, x, power: g * x**power}
    slow = pb.custom_op(kernel, name="slow_power", **rules)
    x, y = rng().normal(size=(4, 3)), rng().normal(size=3)
    with pytest.warns(UserWarning, match="`slow_power` has no batch rule and runs 4 times"):
        found = pb.vmap(lambda x: slow(x, y, power=3))(x)
    np.testing.assert_allclose(found, x**3 * y)
    assert calls == [(3,)] * 4
    calls.clear()

    def batch(stacked: Any, x: Any, y: Any, *, power: int) -> Any:
        if stacked[1] and not stacked[0]:
            x = x[None]
        return fast(x, y, power=power) if stacked[0] or stacked[1] else None

    fast = pb.custom_op(kernel, name="fast_power", batch=batch, **rules)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(pb.vmap(lambda x: fast(x, y, power=3))(x), x**3 * y)
        assert calls == [(4, 3)]
        slope = pb.vmap(pb.grad(lambda x, y: fast(x, y, power=3).sum(), (0, 1)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(slope[0], 3 * x**2 * y)
    np.testing.assert_allclose(slope[1], x**3)
    outer = pb.grad(lambda y: pb.vmap(pb.grad(lambda x: fast(x, y, power=3).sum()))(x).sum())(y)
    np.testing.assert_allclose(outer, (3 * x**2).sum(0))
    wrong = pb.custom_op(lambda x: x * 2, name="wrong", batch=lambda stacked, x: x.sum(0), x=lambda g: 2 * g)
    with pytest.raises(pb.ShapeError, match=re.escape("expected the 4 examples along the first axis")):
        pb.vmap(wrong)(x)


def test_custom_operations_with_residuals() -> None:
    op = pb.custom_op(lambda x: (np.maximum(x, 0), x > 0), name="kept", residuals="mask", x=lambda g, mask: g * mask)
    x = rng().normal(size=(4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(pb.vmap(pb.grad(lambda x: (op(x) ** 2).sum()))(x), 2 * np.maximum(x, 0))


def test_residuals_of_custom_operations_inside_of_nested_maps() -> None:
    op = pb.custom_op(
        lambda x, y: (x * y, 2 * x * y), name="doubled", residuals="twice",
        x=lambda g, y, twice: g * y, y=lambda g, y, twice: g * twice / (2 * y),
    )  # fmt: skip
    x, y = rng().normal(size=(2, 3, 13))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slope = pb.jacrev(lambda x, y: op(x, y), 1)
        found = pb.vmap(lambda x: pb.vmap(lambda y: slope(x, y))(y))(x)
        pushed = pb.vmap(lambda x: pb.vmap(lambda y: pb.jacfwd(lambda y: op(x, y))(y))(y))(x)
    expected = np.broadcast_to([np.diag(row) for row in x], (3, 3, 13, 13)).swapaxes(0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(pushed, expected, atol=1e-12)


# -- networks --------------------------------------------------------------------------------------


def test_modules() -> None:
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.LayerNorm(4), pb.nn.GELU(), pb.nn.Linear(4, 2))
    x = pb.random.normal((5, 3))
    out = pb.vmap(model)(x)
    np.testing.assert_allclose(out.detach().numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    target = pb.asarray(np.array([0, 1, 1, 0, 1]))
    losses = pb.vmap(lambda x, t: pb.cross_entropy(model(x), t))(x, target)
    losses.mean().backward()
    found = [p.grad.numpy() for p in model.parameters()]
    model.zero_grad()
    pb.cross_entropy(model(x), target).backward()
    for a, p in zip(found, model.parameters()):
        np.testing.assert_allclose(a, p.grad.numpy(), rtol=1e-4, atol=1e-6)
