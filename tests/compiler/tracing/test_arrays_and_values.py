"""Arrays that a traced function is handed are inputs by reference; where values decide, they are noted."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.tracing.trace import MOST_BYTES_READ, Trace

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def traced(function: Callable[..., Any]) -> Trace:
    trace = Trace()
    trace.run(function, (), {})
    trace.finish([], [])
    return trace


# -- by reference ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [
    lambda x, a: x * a, lambda x, a: pb.tensor(a) + x, lambda x, a: pb.asarray(a) @ x.T, lambda x, a: a - x,
    lambda x, a: pb.tensor(a, dtype=pb.float64) * 2, lambda x, a: pb.asarray(a, dtype="float64").sum() + x,
    lambda x, a: np.add(a, x), lambda x, a: pb.where(a > 1, x, 0.0) if isinstance(a, pb.Tensor) else x + a,
    lambda x, a: pb.grad(lambda y: (y * x * y).sum())(pb.asarray(a)), lambda x, a: pb.asarray([a[:2], a[2:]]) + x[0],
    lambda x, a: pb.full_like(x, 2.0) * a.T.T, lambda x, a: x + a[::-1], lambda x, a: pb.stack([pb.asarray(a), x]),
])  # fmt: skip
@pytest.mark.parametrize("outside", ["array", "tensor"])
def test_arrays_are_followed_when_they_change(function: Any, outside: str) -> None:
    if outside == "tensor" and function(pb.tensor(X), X) is None:
        pytest.skip()
    a = X.copy() if outside == "array" else pb.tensor(X)
    compiled = pb.compile(lambda x: function(x, a))
    for number, change in enumerate((0.0, 1.0, -3.0, 2.0, 5.0, 6.0)):
        a += change
        x = pb.tensor(X + change)
        try:
            ours, theirs = compiled(x), function(x, a)
        except pb.TraceError:
            assert outside == "array" and number > 3  # its values are read by NumPy, and keep changing
            break
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    assert compiled.traces == 1 if outside == "tensor" else compiled.traces <= 7


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("outside", ["array", "tensor"])
@pytest.mark.parametrize("function", [
    lambda x, i: x[i], lambda x, i: x[i, 1], lambda x, i: x[1:3, i], lambda x, i: pb.take(x, i, axis=0),
    lambda x, i: pb.take_along_axis(x[:2], i[:, None] if isinstance(i, pb.Tensor) else i.reshape(2, 1), axis=1),
    lambda x, i: pb.index_add(x, i, 1.0), lambda x, i: pb.grad(lambda x: (x[i] ** 2).sum())(x),
    lambda x, i: x[i][:, i], lambda x, i: pb.embedding(i, x), lambda x, i: x[i[0]],
])  # fmt: skip
def test_indices_are_followed_when_they_change(function: Any, outside: str, dtype: Any) -> None:
    i = np.array([0, 2], dtype)
    i = i if outside == "array" else pb.tensor(i)
    written = outside == "array" and function(pb.tensor(X), np.array([0, 2])).shape == (3,)
    compiled = pb.compile(lambda x: function(x, i))
    x = pb.tensor(X)
    for change in ([0, 2], [1, 1], [2, 0], [2, 2], [0, 1], [1, 2]):
        i[...] = np.array(change, dtype)
        if written and change != [0, 2]:
            break  # `i[0]` is NumPy's, and gives a number
        try:
            np.testing.assert_array_equal(compiled(x).numpy(), function(x, i).numpy())
        except pb.TraceError:
            assert outside == "array"  # its values are read by NumPy, and keep changing
            break
    assert compiled.traces == 1 if outside == "tensor" else compiled.traces <= 7


def test_writing_at_indices_from_outside_follows_them() -> None:
    i = np.array([0, 1])

    def function(x: Any) -> Any:
        y = x * 1
        y[i] = 7.0
        y[i, 0] += 1.0
        return y

    compiled = pb.compile(function)
    for places in ([0, 1], [2, 3]):
        i[:] = places
        np.testing.assert_array_equal(compiled(pb.tensor(X)).numpy(), function(pb.tensor(X)).numpy())
    assert compiled.traces == 2


def test_indices_out_of_bounds_are_found_in_an_array_that_changes() -> None:
    i = np.array([0, 1])
    compiled = pb.compile(lambda x: x[i])
    compiled(pb.tensor(X))
    i[1] = 9
    with pytest.raises(IndexError, match="9"):
        compiled(pb.tensor(X))


def test_a_tensor_that_shares_memory_with_an_array_is_told_apart() -> None:
    a = X.copy()
    t = pb.asarray(a)

    def function(x: Any) -> Any:
        with pb.no_grad():
            t[...] = t + 1
        return t + x, x * a

    compiled = pb.compile(function)
    for step in (1, 2, 3):
        ours = compiled(pb.tensor(X))
        np.testing.assert_array_equal(ours[0].numpy(), X + X + step)
        np.testing.assert_array_equal(ours[1].numpy(), X * X)


def test_clones_that_are_both_written_are_told_apart() -> None:
    a = pb.tensor([1.0])
    b = a.clone()

    @pb.compile
    def step() -> None:
        a[...] = a + 1
        b[...] = b * 10

    for expected in ((2.0, 10.0), (3.0, 100.0), (4.0, 1000.0)):
        step()
        assert (a.item(), b.item()) == expected


# -- values that decide ------------------------------------------------------------------------------

READS: list[Callable[[Any], Any]] = [
    float, int, bool, complex, lambda t: t.item(), lambda t: [t.tolist()], lambda t: t.numpy().item(),
    lambda t: 1 if t else 2, lambda t: f"{t:.2f}", lambda t: np.asarray(t).item(), lambda t: t.detach().item(),
    lambda t: t.clone().item(), lambda t: not t,
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_small_tensors_from_outside_have_values_which_are_noted(read: Any) -> None:
    t = pb.tensor(3.0)
    found: list[Any] = []
    trace = traced(lambda: found.append(read(t)))
    assert found == [read(t)]
    assert [(thing is t, content) for thing, content in trace.values_read] == [(True, np.float32(3).tobytes())]


def test_an_integer_from_outside_is_an_index_of_a_list() -> None:
    t = pb.tensor(2)
    found: list[Any] = []
    trace = traced(lambda: found.append(([5, 6, 7][t], [*range(t)])))
    assert found == [(7, [0, 1])]
    assert all(thing is t for thing, _ in trace.values_read)


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_a_mask_from_outside_is_noted(kind: str) -> None:
    array = np.array([True, False, True, False])
    mask = array if kind == "array" else pb.tensor(array)
    x = pb.tensor(X)
    shapes: list[Any] = []
    trace = traced(lambda: shapes.append((x[mask].shape, x[mask, 1:].shape)))
    assert shapes == [((2, 3), (2, 2))]
    assert {id(thing) for thing, _ in trace.values_read} == {id(mask)}
    compiled = pb.compile(lambda x: (x[mask], pb.grad(lambda x: (x[mask] ** 2).sum())(x)))
    for ours, theirs in zip(compiled(x), (x[mask], pb.grad(lambda x: (x[mask] ** 2).sum())(x))):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_large_ones_have_none() -> None:
    for size in (MOST_BYTES_READ // 4, MOST_BYTES_READ // 4 + 1):
        large = pb.ones(size)
        if size * 4 <= MOST_BYTES_READ:
            assert len(traced(lambda large=large: large.tolist()).values_read) == 1
        else:
            with pytest.raises(pb.TraceError, match="Compute with functions of Pullback"):
                traced(lambda large=large: large.tolist())
    mask = np.ones(MOST_BYTES_READ + 1, bool)
    with pytest.raises(pb.TraceError, match=r"pb\.where"):
        pb.compile(lambda x: x[mask])(pb.ones(mask.size))


def test_what_the_trace_computed_or_wrote_has_none() -> None:
    t = pb.tensor(3.0)

    def write() -> None:
        t[...] = t + 1

    for function in (lambda: float(t + 1), lambda: (write(), t.item()), lambda: float(pb.sin(pb.ones(())))):
        with pytest.raises(pb.TraceError, match="needs the values"):
            traced(function)
    with pytest.raises(pb.TraceError, match="needs the values"):
        pb.compile(lambda x: x * float(x.sum()))(pb.ones(2))


def test_values_that_every_call_changes_are_refused() -> None:
    count = pb.tensor(0)

    @pb.compile
    def step(x: Any) -> Any:
        n = count.item()
        with pb.no_grad():
            count[...] = count + 1
        return x * n

    with pytest.raises(pb.TraceError, match="a number"):
        step(pb.ones(2))
    assert count.item() == 0


def test_numpy_functions_of_tensors_from_outside_are_traced() -> None:
    w = pb.tensor([1.0, 2.0])
    f = pb.compile(lambda x: x * np.sin(w) + np.sum(w))
    for value in (1.0, 5.0):
        w[0] = value
        np.testing.assert_allclose(f(pb.ones(2)).numpy(), np.sin(w.numpy()) + w.numpy().sum(), rtol=1e-6)


def test_other_values_make_another_program() -> None:
    rate, mask = pb.tensor(2.0), np.array([True, False, True])
    f = pb.compile(lambda x: x[mask] * rate.item())
    x = pb.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        assert f(x).tolist() == [2.0, 6.0]
    rate[...] = 3.0
    assert f(x).tolist() == [3.0, 9.0]
    mask[1] = True
    assert f(x).tolist() == [3.0, 6.0, 9.0]
    assert f.traces == 3 and "`mask` has other values" in f.recompilations[-1]


# -- what is read of a tensor beside its values --------------------------------------------------------


def test_what_a_function_changed_about_a_tensor_is_what_it_reads() -> None:
    w, frozen = pb.tensor([1.0, 2.0], requires_grad=True), pb.tensor([1.0, 2.0])
    seen: list[Any] = []

    @pb.compile(ignore=["seen"])
    def function(x: Any) -> Any:
        seen.append((frozen.requires_grad, w.grad is None, w.is_leaf, w.shape, w.dtype.name))
        frozen.requires_grad = True
        (w * frozen * x).sum().backward()
        seen.append((frozen.requires_grad, w.grad is None, frozen.grad is None, frozen.is_leaf, repr(w)[:15]))
        gradient = frozen.grad
        frozen.grad = None
        frozen.requires_grad = False
        return gradient

    assert function(pb.ones(2)).tolist() == [1.0, 2.0]
    assert seen[:2] == [(False, True, True, (2,), "float32"), (True, False, False, True, "tensor(<traced,")]
    assert not frozen.requires_grad and frozen.grad is None and w.grad is not None


def test_requires_grad_cannot_be_left_changed() -> None:
    for flag in (True, False):
        w = pb.tensor([1.0, 2.0], requires_grad=not flag)
        with pytest.raises(pb.TraceError, match="Set it before the call"):
            pb.compile(lambda x, w=w, flag=flag: w.set_requires_grad(flag) * x)(pb.ones(2))
        assert w.requires_grad is not flag


def test_a_tensor_from_outside_cannot_become_a_result() -> None:
    w, buffer = pb.tensor([1.0, 2.0], requires_grad=True), pb.zeros(2)

    def function(x: Any) -> None:
        buffer[...] = w * x

    with pytest.raises(pb.TraceError, match="no_grad"):
        pb.compile(function)(pb.ones(2))
    assert not buffer.requires_grad and buffer.tolist() == [0.0, 0.0]


# -- randomness --------------------------------------------------------------------------------------


def test_a_generator_is_set_back_in_every_call() -> None:
    generator, other = pb.random.Generator(3), pb.random.Generator(3)
    other.uniform((4,))
    state = other.state
    f = pb.compile(lambda: (generator.uniform((2,)), setattr(generator, "state", state), generator.uniform((2,))))
    expected = other.uniform((2,)).tolist()
    before = generator.state
    with pytest.raises(pb.TraceError, match="Read it outside"):
        pb.compile(lambda: pb.zeros(generator.state["offset"]))()
    assert generator.state == before
    first = f()
    assert first[2].tolist() == expected
    assert f()[2].tolist() == expected and generator.state["offset"] > state["offset"]
    made_inside = pb.compile(lambda: pb.random.at_state(state).uniform((2,)))
    assert made_inside().tolist() == made_inside().tolist() == expected


def test_chances_from_outside_are_followed() -> None:
    p = pb.tensor([1.0, 0.0])
    f = pb.compile(lambda: pb.random.bernoulli(p))
    assert f().tolist() == [True, False]
    p[...] = pb.tensor([0.0, 1.0])
    assert f().tolist() == [False, True]
    with pytest.raises(pb.TraceError):
        pb.compile(lambda x: pb.random.bernoulli(x * 0.5))(p)
