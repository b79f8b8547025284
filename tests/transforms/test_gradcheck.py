"""gradcheck finds wrong derivatives and says where they are."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(0).normal(size=(2, 3))


def wrong(x):
    """x**2 with half of its derivative."""
    return x * pb.stop_gradient(x)


def wrong_in_second_order(x):
    """The right first derivative, the wrong second one."""
    return pb.stop_gradient(x**2) + pb.stop_gradient(2 * x) * (x - pb.stop_gradient(x))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_derivatives_pass(order):
    assert pb.gradcheck(lambda x, y: np.sin(x) @ y, (X[:, :2], X[0, :2]), order=order)
    assert pb.gradcheck(lambda p: (p["a"] * p["b"], {"s": np.sum(p["a"])}), ({"a": X[0], "b": 2.0},), order=order)
    assert pb.gradcheck(lambda z: z * z * np.conj(z), (np.array([1 + 2j, 0.3j]),), order=order)
    assert pb.gradcheck(lambda x: x * 0, (np.zeros((0, 3)),), order=order)


@pytest.mark.parametrize("mode", ["rev", "fwd"])
def test_wrong_derivatives_are_named(mode):
    text = {"rev": "reverse mode", "fwd": "forward mode"}[mode]
    with pytest.raises(pb.GradientError) as caught:
        pb.gradcheck(lambda a, p: a + wrong(p["x"]), (1.0, {"x": X}), modes=(mode,))
    message = str(caught.value)
    largest = np.unravel_index(np.argmax(np.abs(X)), X.shape)
    where = f"[{largest[0]}, {largest[1]}]"
    assert f"{text}, order 1" in message
    assert f"the output{where} by argument 1['x']{where}" in message
    assert f"is {X[largest]:.6f}"[:8] in message
    assert "6 of 36 derivatives" in message


@pytest.mark.parametrize("mode", ["rev", "fwd"])
def test_second_order_is_looked_at(mode):
    assert pb.gradcheck(wrong_in_second_order, (X,), modes=(mode,))
    with pytest.raises(pb.GradientError, match="order 2"):
        pb.gradcheck(wrong_in_second_order, (X,), order=2, modes=(mode,))


def test_imaginary_parts_are_named():
    with pytest.raises(pb.GradientError, match=r"argument 0\[1\]"):
        pb.gradcheck(lambda z: z[:1] + wrong(z[1:]), (np.array([1.0 + 1j, 2.0 + 3j]),))


def test_one_of_several_outputs_is_named():
    with pytest.raises(pb.GradientError, match=r"output 1\[2\] by argument 0\[2\]"):
        pb.gradcheck(lambda x: (x * 2, wrong(x * np.array([0.0, 0.0, 1.0]))), (np.array([1.0, 2.0, 3.0]),))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pb.gradcheck(np.sin, X), pb.ShapeError, "args must be a tuple"),
        (lambda: pb.gradcheck(np.sin, (X.astype(np.float32),)), pb.DtypeError, "float32; central differences"),
        (lambda: pb.gradcheck(np.sin, (3,)), pb.DtypeError, "integer"),
        (lambda: pb.gradcheck(np.sin, (X,), modes=("backward",)), ValueError, "backward"),
        (lambda: pb.gradcheck(np.sin, (X,), order=0), ValueError, "order"),
        (lambda: pb.gradcheck(lambda x: x * np.random.random(), (X,)), pb.GradientError, "other values"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def wave(p, inner):
    u = np.zeros_like(p, shape=6)
    v = np.zeros_like(u)
    u[2] = p[0]
    for _ in range(4):
        v[1:-1] += p[1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        inner(u, v)
    return {"energy": np.sum(u**2), "u": u}


def through_a_view(u, v):
    inner = u[1:-1]
    inner += v[1:-1]


def in_place(u, v):
    u[1:-1] += v[1:-1]


def test_what_a_function_gives_for_arrays_it_must_give_for_tensors():
    p = np.array([1.0, 0.3])
    assert pb.gradcheck(lambda p: wave(p, in_place), (p,))
    with pytest.raises(
        pb.GradientError, match=r"result\['energy'\] of the function is 0\.22\S* for arrays and 1 for ten"
    ):
        pb.gradcheck(lambda p: wave(p, through_a_view), (p,))
    assert p.tolist() == [1.0, 0.3]


def test_a_function_of_tensors_alone_is_not_run_on_arrays():
    assert pb.gradcheck(lambda x: x.sin().sum(), (np.ones(3),))


def test_a_function_that_captures_a_variable():
    w = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    assert pb.gradcheck(lambda x: {"a": w * x, "b": x * 2}, (np.ones(3),))
