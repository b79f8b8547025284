"""Gradients taken outside, through a call of a compiled function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


def variable(*values: float) -> pb.Tensor:
    return pb.tensor(list(values), requires_grad=True)


def test_variables_updated_inside_after_they_were_used_have_gradients_at_their_old_values() -> None:
    w = variable(1.0, 2.0)

    @pb.compile
    def run(x: Any) -> Any:
        loss = (w * w * x).sum()
        with pb.no_grad():
            w.__iadd__(1.0)
        return loss

    losses = [run(pb.tensor([1.0, 1.0])) for _ in range(3)]
    assert w.tolist() == [4.0, 5.0]
    gradients = []
    for loss in losses:
        w.grad = None
        loss.backward()
        assert w.grad is not None
        gradients.append(w.grad.tolist())
    assert gradients == [[2.0, 4.0], [4.0, 6.0], [6.0, 8.0]]


def test_a_result_that_does_not_depend_on_a_variable_leaves_it_without_gradient() -> None:
    w, v = variable(1.0, 2.0), variable(3.0, 1.0)
    both = pb.compile(lambda x: (w * x, v * w, x * 2))
    x = pb.tensor([1.0, 5.0])
    first, second, third = both(x)
    assert [t.requires_grad for t in (first, second, third)] == [True, True, False]
    first.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [1.0, 5.0] and v.grad is None
    assert v not in pb.backward(both(x)[0].sum())
    first, second, _ = both(x)
    (first.sum() + 2 * second.sum()).backward()
    assert w.grad.tolist() == [1.0 + 1.0 + 6.0, 5.0 + 5.0 + 2.0]
    assert v.grad is not None and v.grad.tolist() == [2.0, 4.0]


def test_a_result_found_outside_passes_its_gradient_on() -> None:
    w = variable(1.0, 2.0)
    squared = w * w
    run = pb.compile(lambda x: squared * x + w)
    (run(pb.tensor([3.0, 4.0]))).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2 * 3.0 + 1, 4 * 4.0 + 1]


def test_hooks_are_called_once() -> None:
    w = variable(1.0, 2.0)
    w.register_hook(lambda g: g * 10)
    total = pb.compile(lambda x: (w * w * x).sum())
    for _ in range(2):
        w.grad = None
        total(pb.tensor([1.0, 3.0])).backward()
        assert w.grad is not None and w.grad.tolist() == [20.0, 120.0]


def test_two_calls_before_a_gradient_and_retained_graphs() -> None:
    w = variable(1.0, 2.0)
    total = pb.compile(lambda x: (w * w * x).sum())
    first, second = total(pb.tensor([1.0, 1.0])), total(pb.tensor([0.0, 3.0]))
    first.backward(retain_graph=True)
    first.backward()
    second.backward()
    assert w.grad is not None and w.grad.tolist() == [4.0, 20.0]
    with pytest.raises(pb.GraphConsumedError):
        second.backward()


def test_second_derivatives_outside_are_refused() -> None:
    w = variable(1.0, 2.0)
    total = pb.compile(lambda: (w**3).sum())
    with pytest.raises(pb.GradientError, match="inside one compiled function"):
        pb.backward(total(), create_graph=True)


def test_a_result_with_a_graph_that_leads_to_no_variable_adds_nothing_to_the_program() -> None:
    held, w = pb.tensor(np.array([0.3, 0.7])), variable(1.0, 2.0)

    def function(y: Any) -> Any:
        (w * 2.0).sum().backward()  # makes a gradient: the first program is interpreted as it is
        slope = pb.grad(lambda t: (t * pb.sin(y).sum()).sum() + (t * t).mean())(held)
        return pb.where(held > 0.5, slope * 1.5, held)

    y = pb.tensor(np.array([0.1, 0.2, 0.4]), requires_grad=True)
    compiled = pb.compile(function)
    for _ in range(3):
        assert np.allclose(compiled(y).detach().numpy(), function(y).detach().numpy())


def test_what_is_kept_of_a_graph_that_was_walked_inside() -> None:
    class Box:
        last: Any = None

    box = Box()

    def function(y: Any) -> Any:
        def loss(t: Any) -> Any:
            inner = pb.exp(t) * 2.0
            box.last = pb.sin(inner)  # not on the way to the loss, but behind it is what is
            return (inner * inner).sum()

        return pb.value_and_grad(loss)(y)

    y = pb.tensor(np.array([0.1, 0.2]))
    compiled = pb.compile(function)
    for _ in range(3):
        value, gradient = compiled(y)
        assert np.allclose(box.last.detach().numpy(), np.sin(2 * np.exp(y.numpy())))
        assert np.allclose(gradient.numpy(), 8 * np.exp(2 * y.numpy())) and value.item() > 0


def test_what_was_not_chosen_leaves_its_variables_without_gradient() -> None:
    a, b, c, x = (variable(1.0, 2.0) for _ in range(4))

    def run(x: Any, sign: Any) -> Any:
        def inner(t: Any) -> Any:
            return pb.cond(sign.max() > 1, lambda t: t * b, lambda t: t * c, t)

        chosen = pb.cond(sign.sum() > 0, inner, lambda t: t * a, x)
        looped = pb.while_loop(
            lambda carry: carry.sum() < sign.sum(), lambda carry: carry * a + 1, c * 0.5, max_steps=3
        )
        return chosen, looped * x

    compiled = pb.compile(run)
    seen = set()
    for sign in ([-1.0, 0.0], [0.5, 0.6], [3.0, 4.0], [-9.0, 2.0]):
        for asked in (0, 1, None):
            found = []
            for function in (run, compiled):
                for t in (a, b, c, x):
                    t.grad = None
                results = function(x, pb.tensor(sign))
                (sum(map(pb.sum, results)) if asked is None else results[asked].sum()).backward()  # type: ignore[arg-type]
                found.append([None if t.grad is None else t.grad.tolist() for t in (a, b, c, x)])
            assert found[0] == found[1]
            seen.add(tuple(g is None for g in found[0]))
    assert len(seen) >= 4


def test_an_optimizer_leaves_what_was_not_chosen_alone() -> None:
    def after(wrap: Any) -> list[Any]:
        a, b = variable(1.0, 2.0), variable(1.0, 2.0)
        optimizer = pb.optim.AdamW([a, b], lr=0.1, weight_decay=0.5)
        loss = wrap(lambda x: pb.cond(x.sum() > 0, lambda x: x * a, lambda x: x * b, x).sum())
        for _ in range(2):
            loss(pb.tensor([1.0, 1.0])).backward()
            optimizer.step()
        return [a.tolist(), b.tolist()]

    assert after(pb.compile) == after(lambda function: function)
    assert after(pb.compile)[1] == [1.0, 2.0]
