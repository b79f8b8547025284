"""Tensors that a compiled function finds outside of it are inputs by reference."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb


def test_a_new_value_of_a_tensor_is_seen() -> None:
    w = pb.tensor([1.0, 2.0])
    scaled = pb.compile(lambda x: w * x)
    x = pb.tensor([1.0, 1.0])
    assert scaled(x).tolist() == [1.0, 2.0]
    w[0] = 5.0
    assert scaled(x).tolist() == [5.0, 2.0]
    w._raw = np.array([7.0, 8.0], np.float32)  # as loading or moving does
    assert scaled(x).tolist() == [7.0, 8.0]
    assert scaled.traces == 1


def test_a_tensor_read_through_detach_is_by_reference_too() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    doubled = pb.compile(lambda: w.detach() * 2)
    assert doubled().tolist() == [2.0, 4.0]
    with pb.no_grad():
        w += 1.0
    assert doubled().tolist() == [4.0, 6.0]


def test_writing_reaches_the_tensor_and_not_its_clones() -> None:
    count = pb.tensor([0.0])
    before = count.clone()

    @pb.compile
    def step() -> None:
        count[...] = count + 1

    step()
    step()
    kept = count.clone()
    step()
    assert (before.item(), kept.item(), count.item()) == (0.0, 2.0, 3.0)


def test_a_parameter_that_is_cloned_between_steps_keeps_its_old_value_in_the_clone() -> None:
    w = pb.tensor([1.0], requires_grad=True)
    optimizer = pb.optim.SGD([w], 0.25)

    @pb.compile
    def step() -> None:
        optimizer.step(pb.backward((w * w).sum()))

    step()
    saved = w.clone()
    step()
    step()
    assert saved.item() == 0.5
    assert w.item() == 0.125


def test_a_tensor_of_another_shape_makes_a_new_program() -> None:
    w = pb.tensor([1.0, 2.0])
    total = pb.compile(lambda: w.sum())
    assert total().item() == 3.0
    w._raw = np.ones(5, np.float32)
    assert total().item() == 5.0
    assert "shape (2,)" in total.recompilations[0]


def test_tensors_that_share_memory_and_part_are_told_apart() -> None:
    a = pb.tensor([1.0])
    b = a.clone()

    @pb.compile
    def step() -> Any:
        a[...] = a + b
        return a + 0, b + 0

    assert [t.item() for t in step()] == [2.0, 1.0]
    assert [t.item() for t in step()] == [3.0, 1.0]
    assert [t.item() for t in step()] == [4.0, 1.0]


def test_an_array_from_outside_is_an_input() -> None:
    table = np.array([1.0, 2.0], np.float32)
    scaled = pb.compile(lambda x: x * table)
    assert scaled(pb.tensor([1.0, 1.0])).tolist() == [1.0, 2.0]
    table[0] = 9.0
    assert scaled(pb.tensor([1.0, 1.0])).tolist() == [9.0, 2.0]


def test_a_variable_given_as_an_argument_gets_its_gradient() -> None:
    @pb.compile
    def step(w: Any, x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss

    w, v = pb.tensor([1.0, 2.0], requires_grad=True), pb.tensor([3.0, 4.0], requires_grad=True)
    x = pb.tensor([5.0, 6.0])
    for _ in range(3):
        step(w, x)
    step(v, x)
    assert w.grad is not None and w.grad.tolist() == [15.0, 18.0]
    assert v.grad is not None and v.grad.tolist() == [5.0, 6.0]


def test_an_argument_that_is_written_to_is_changed_as_it_is_eagerly() -> None:
    @pb.compile
    def push(x: Any, y: Any) -> Any:
        x += y
        return x * 2

    x, y = pb.tensor([1.0, 2.0]), pb.tensor([1.0, 1.0])
    other = x.clone()
    assert push(x, y).tolist() == [4.0, 6.0]
    assert x.tolist() == [2.0, 3.0] and other.tolist() == [1.0, 2.0] and y.tolist() == [1.0, 1.0]


def test_the_same_tensor_as_argument_and_from_outside() -> None:
    t = pb.tensor([1.0])
    add = pb.compile(lambda x: x + t)
    assert add(t).item() == 2.0
    assert add(pb.tensor([10.0])).item() == 11.0


@pytest.mark.parametrize("view", [lambda a: a[::2], lambda a: a.T, lambda a: a[::-1], lambda a: a[1:, 1:]])
def test_arguments_need_not_be_contiguous(view: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    double = pb.compile(lambda x: x * 2)
    np.testing.assert_array_equal(double(pb.asarray(view(array))).numpy(), 2 * view(array))
    np.testing.assert_array_equal(double(pb.tensor(view(array))).numpy(), 2 * view(array))


def test_a_trace_that_fails_leaves_everything_as_it_was() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.SGD([w], 0.1, momentum=0.9)
    raw = w._raw

    @pb.compile
    def step() -> Any:
        loss = (w * w).sum()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    with pytest.raises(pb.TraceError, match=r"test_tensors_from_outside.py:\d+"):
        step()
    assert w._raw is raw and w.tolist() == [1.0, 2.0] and w.grad is None
    assert optimizer._slots[0][0].step == 0


def test_a_tensor_with_a_graph_replaced_before_each_call_beside_a_compiled_function_inside() -> None:
    """When it has become an input, the function runs once beside the program: what is compiled in it as it is."""
    weight = pb.tensor([0.5, 0.2, -0.3], requires_grad=True)
    place = SimpleNamespace(mix=None)

    def losses(inner: Callable[..., Any], compile: Callable[..., Any]) -> Iterator[Any]:
        @compile
        def step(x: pb.Tensor) -> Any:
            return pb.value_and_grad(lambda x: inner(pb.logaddexp(x, place.mix)).sum())(x)

        for scale in (0.93, 0.83, 0.83, 0.52, 0.3, 0.2, 0.1):
            place.mix = pb.tanh(weight * scale)
            value, gradient = step(pb.tensor([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]]))
            yield [value.item()]
            yield gradient.detach().tolist()
            yield pb.backward(pb.sum(gradient * gradient) + value)[weight].tolist()

    def product(v: pb.Tensor) -> pb.Tensor:
        return v * pb.tanh(v)

    for ours, theirs in zip(losses(pb.compile(product), pb.compile), losses(product, lambda f: f), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
