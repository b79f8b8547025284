"""Control flow under `pb.compile`: the same values, gradients and second derivatives as without it."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb


def differentiated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the value of `function`, its gradients, and the gradients of the sum of their squares."""

    def computed(*arguments: pb.Tensor) -> Any:
        variables = [x.detach().set_requires_grad(True) for x in arguments]
        value = function(*variables)
        first = pb.backward(value, create_graph=True)
        squares = sum((first[x] * first[x]).sum() for x in variables)
        second = pb.backward(squares)
        return value.detach(), [first[x].detach() for x in variables], [second[x] for x in variables]

    return computed


def check(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Compile once, and compare every call with the eager one."""
    eager = differentiated(function)
    compiled = pb.compile(eager, max_traces=1)
    for arguments in calls:
        tensors = [pb.asarray(np.asarray(x, np.float64)) for x in arguments]
        found, expected = pb.tree.leaves(compiled(*tensors)), pb.tree.leaves(eager(*tensors))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


def test_cond() -> None:
    def f(x: pb.Tensor, w: pb.Tensor) -> pb.Tensor:
        out = pb.cond(
            (x * w).sum() > 0,
            lambda x: {"a": pb.exp(x) * w, "b": x.sum()},
            lambda x: {"a": x * x * x, "b": 2 * w[0]},
            x,
        )
        return (out["a"] * out["b"]).sum()

    check(f, ([0.5, 1.0], [1.0, 2.0]), ([0.5, -1.0], [1.0, 2.0]), ([-3.0, 1.0], [1.0, 2.0]))


def test_cond_takes_nothing_from_the_other_function() -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        return pb.cond(x > 0, lambda x: pb.log(x) * pb.sqrt(x), lambda x: 3 * x * x, x)

    check(f, (2.0,), (0.0,), (-1.0,))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    def f(u: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def cell(carry: Any, x: Any) -> Any:
            h = pb.tanh(carry["h"] @ u + x[0])
            return {"h": h, "n": carry["n"] + 1}, (h * carry["n"], x[1])

        start = {"h": pb.zeros(3, dtype=pb.float64), "n": 0}
        last, (states, others) = pb.scan(cell, start, (xs, xs[:, :1]), reverse=reverse)
        return (states * states).sum() + (last["h"] * others).sum() * last["n"]

    rng = np.random.default_rng(0)
    check(f, *((rng.normal(size=(3, 3)), rng.normal(size=(5, 3))) for _ in range(2)))


def test_while_loop() -> None:
    def f(a: pb.Tensor) -> pb.Tensor:
        def newton(carry: Any) -> Any:
            x, _ = carry
            step = (x**3 + x - a) / (3 * x**2 + 1)
            return x - step, abs(step)

        return pb.while_loop(lambda carry: carry[1] > 1e-10, newton, (a, 1.0), max_steps=12)[0]

    check(f, (0.3,), (2.5,), (-7.0,))


def test_a_predicate_from_outside_is_read_at_every_call() -> None:
    flag, w = pb.asarray(True), pb.asarray([2.0, 3.0])
    step = pb.compile(lambda x: pb.cond(flag, lambda: x * w, lambda: x - w))
    assert step(pb.asarray([1.0, 1.0])).tolist() == [2.0, 3.0]
    flag[...] = False
    w[0] = 5.0
    assert step(pb.asarray([1.0, 1.0])).tolist() == [-4.0, -2.0]


def test_a_plain_predicate_is_decided_when_compiling() -> None:
    def f(x: pb.Tensor, double: bool) -> pb.Tensor:
        return pb.cond(double, lambda x: 2 * x, lambda x: pb.ones(7), x)

    step = pb.compile(f)
    assert step(pb.asarray([1.0]), True).tolist() == [2.0]
    assert step(pb.asarray([1.0]), False).shape == (7,)


def test_no_slices() -> None:
    step = pb.compile(lambda xs: pb.scan(lambda h, x: (h + x, pb.log(x)), pb.ones(2), xs))
    last, ys = step(pb.zeros((0, 2)))
    assert last.tolist() == [1.0, 1.0] and ys.shape == (0, 2)


def test_functions_may_write_to_what_they_are_given() -> None:
    def add(total: pb.Tensor, x: Any = 1.0) -> Any:
        total += x
        return total, total

    def f(start: pb.Tensor, xs: pb.Tensor) -> Any:
        scanned = pb.scan(add, start, xs)[1]
        counted = pb.while_loop(lambda n: n.sum() < 9, lambda n: add(n)[0], start, max_steps=9)
        return scanned, counted, pb.cond(start[0] > 0, lambda s: add(s)[0], lambda s: s, start), start

    arguments = pb.asarray([1.0, 2.0]), pb.asarray([[1.0, 1.0], [2.0, 2.0]])
    found = [x.tolist() for x in pb.compile(f)(*arguments)]
    assert found == [x.tolist() for x in f(*arguments)]
    assert found == [[[2.0, 3.0], [4.0, 5.0]], [4.0, 5.0], [2.0, 3.0], [1.0, 2.0]]


def test_while_loop_without_an_end() -> None:
    step = pb.compile(lambda x: pb.while_loop(lambda x: x < 10, lambda x: 2 * x, x))
    with pytest.raises(pb.PullbackError, match=r"test_compiled.py:\d+: the condition depends.*max_steps="):
        step(pb.asarray(1.0))


def test_results_that_do_not_agree() -> None:
    step = pb.compile(lambda x: pb.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), x))
    with pytest.raises(pb.ShapeError, match=r"test_compiled.py:\d+: the functions give results of different shapes"):
        step(pb.ones(3))


def test_one_inside_the_other() -> None:
    def f(x: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            h = pb.cond(h < x, lambda: h * x + 1, lambda: pb.sin(h) - x)
            h = pb.while_loop(lambda h: abs(h) > 1, lambda h: h / 2, h, max_steps=4)
            return h, pb.scan(lambda a, _: (a * h, a), pb.ones_like(h), length=3)[1]

        last, outputs = pb.scan(step, x, xs)
        return last + (outputs * outputs).sum()

    check(f, (0.5, [1.0, -2.0, 3.0, 0.25]), (-1.5, [-1.0, 4.0, 0.5, 9.0]))
