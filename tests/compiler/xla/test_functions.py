"""Functions of tensors on JAX, compiled: results, gradients taken outside, random numbers, refusals."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DeviceError, TraceError

from ...backends.installed import optional, require

DEVICE = "jax:cpu"
jax = optional("jax")


@pytest.fixture(autouse=True)
def needs_jax() -> None:
    require(DEVICE)


def tensor(values: Any, **options: Any) -> pb.Tensor:
    return pb.tensor(np.asarray(values, np.float32), device=DEVICE, **options)


def test_results_are_on_the_device_and_those_of_the_function() -> None:
    def function(x: Any, options: Any) -> Any:
        return {"sum": x.sum(0) * options["factor"], "same": x, "number": 3}

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    compiled = pb.compile(function)
    for _ in range(3):
        found = compiled(x, {"factor": 2.0})
    assert found["sum"].device == DEVICE
    assert found["number"] == 3
    np.testing.assert_array_equal(found["sum"].numpy(), [8.0, 12.0])
    np.testing.assert_array_equal(found["same"].numpy(), x.numpy())
    assert compiled.traces == 1


def test_numbers_and_arrays_are_integers_as_jax_has_them() -> None:
    compiled = pb.compile(lambda x: (pb.argmax(x), x.astype("int64") + 1))
    place, shifted = compiled(tensor([1.0, 5.0, 2.0]))
    eager = pb.argmax(tensor([1.0, 5.0]))
    assert place.item() == 1
    assert place.dtype == shifted.dtype == eager.dtype


def test_another_device_is_another_program() -> None:
    compiled = pb.compile(lambda x: x * 2)
    for device in ("numpy", DEVICE, "numpy", DEVICE):
        assert compiled(pb.tensor([1.0, 2.0], device=device)).device == device
    assert compiled.traces == 2
    assert compiled.recompilations == ["argument 0 was on 'numpy' and is on 'jax:cpu'"]


def test_numpy_arrays_among_the_arguments_are_moved() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    compiled = pb.compile(lambda x: (w * x).sum())
    assert compiled(np.array([3.0, 4.0], np.float32)).item() == 11.0
    assert compiled(np.array([1.0, 1.0], np.float32)).item() == 3.0
    assert compiled.traces == 1


def test_gradients_are_taken_outside() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)

    def function(x: Any) -> Any:
        return (pb.tanh(w * x)).sum(), (x * x).sum()

    compiled = pb.compile(function)
    for _ in range(2):
        x, y = tensor([0.3, 0.5], requires_grad=True), tensor([0.3, 0.5], requires_grad=True)
        first, second = compiled(x * 1.0)
        ours = pb.backward(first * 2.0 + second)
        first, second = function(y * 1.0)
        theirs = pb.backward(first * 2.0 + second)
        np.testing.assert_allclose(ours[w].numpy(), theirs[w].numpy(), rtol=1e-6)
        np.testing.assert_allclose(ours[x].numpy(), theirs[y].numpy(), rtol=1e-6)
        assert ours[w].device == DEVICE
    only_second = pb.backward(compiled(x * 1.0)[1])
    assert only_second.get(w) is None
    assert compiled.traces == 1


def test_second_derivatives_are_taken_inside() -> None:
    x = tensor([0.3, 0.5])

    def function(x: Any) -> Any:
        v = x.detach().set_requires_grad(True)
        first = pb.backward((pb.sin(v) ** 2).sum(), create_graph=True)[v]
        return pb.backward(first.sum())[v]

    np.testing.assert_allclose(pb.compile(function)(x).numpy(), 2 * np.cos(2 * x.numpy()), rtol=1e-5)


def test_buffers_and_state_of_objects_are_carried() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = tensor([0.0, 0.0])

        def __call__(self, x: Any) -> Any:
            self.total = self.total + x
            return self.total * 2

    counter = Counter()
    step = pb.compile(counter)
    for i in range(1, 4):
        assert step(tensor([1.0, 2.0])).tolist() == [2.0 * i, 4.0 * i]
    assert counter.total.tolist() == [3.0, 6.0]
    assert counter.total.device == DEVICE


def test_random_numbers_are_those_of_the_eager_function() -> None:
    def function(x: Any) -> Any:
        dropped = pb.dropout(x, 0.5)
        noise = pb.random.normal(x.shape, device=DEVICE)
        return dropped + noise, pb.dropout(x, 0.25)

    x = tensor(np.ones((5, 7)))
    compiled = pb.compile(function)
    for _ in range(3):
        state = pb.random.get_state()
        expected = function(x)
        after = pb.random.get_state()
        pb.random.set_state(state)
        found = compiled(x)
        assert pb.random.get_state() == after
        for ours, theirs in zip(found, expected):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert compiled.traces == 1


@pytest.mark.parametrize("offset", [0, 2**32 - 8, 2**34 - 4, 2**64 - 16])
def test_words_of_a_stream_are_the_hosts(offset: int) -> None:
    from pullback.backends.jax_random import moved_on, philox
    from pullback.backends.numpy.random import philox_uint32

    key = 0x1234_5678_9ABC_DEF1
    halves = [np.array([n & 0xFFFFFFFF, n >> 32], np.uint32) for n in (key, offset)]
    np.testing.assert_array_equal(jax.jit(philox, static_argnums=2)(*halves, 70), philox_uint32(key, offset, 70))
    further = jax.jit(moved_on, static_argnums=1)(halves[1], 2**33 + 4)
    assert int(further[0]) | int(further[1]) << 32 == (offset + 2**33 + 4) % 2**64


def test_attention_with_dropout_is_that_of_the_eager_function() -> None:
    q = tensor(np.random.default_rng(0).standard_normal((2, 3, 6, 4)), requires_grad=True)

    def function() -> Any:
        out = pb.scaled_dot_product_attention(q, q, q, is_causal=True, dropout_p=0.3)
        return out, pb.backward((out * out).sum())[q]

    state = pb.random.get_state()
    expected = function()
    pb.random.set_state(state)
    for ours, theirs in zip(pb.compile(function)(), expected):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_an_index_out_of_bounds_is_the_error_of_the_eager_function() -> None:
    table = tensor(np.arange(6.0).reshape(3, 2))
    compiled = pb.compile(lambda i: table[i])
    assert compiled(pb.tensor([2, 0], device=DEVICE)).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    with pytest.raises(IndexError):
        compiled(pb.tensor([3, 0], device=DEVICE))
    assert compiled(pb.tensor([1, 1], device=DEVICE)).tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_small_indices_may_be_of_short_integers() -> None:
    table = tensor(np.arange(600.0).reshape(300, 2))
    compiled = pb.compile(lambda i: pb.embedding(i, table))
    assert compiled(pb.tensor([255, 0], dtype="uint8", device=DEVICE)).tolist() == [[510.0, 511.0], [0.0, 1.0]]


def test_an_operation_of_the_users_own_is_called_in_the_program() -> None:
    cube = pb.custom_op(lambda x: np.asarray(x) ** 3, name="cube", shape=lambda x: x, x=lambda g, x: g * 3 * x**2)
    x = tensor([1.0, 2.0], requires_grad=True)

    def function() -> Any:
        out = (cube(x) * 2).sum()
        return out, pb.backward(out)[x]

    out, gradient = pb.compile(function)()
    assert out.item() == 18.0
    assert gradient.tolist() == [6.0, 24.0]


def test_choices_and_loops() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)

    def chosen(x: Any) -> Any:
        return pb.cond(x.sum() > 0, lambda x: (x * w).sum(), lambda x: (x * x).sum(), x)

    compiled = pb.compile(chosen)
    assert pb.backward(compiled(tensor([3.0, 4.0])))[w].tolist() == [3.0, 4.0]
    assert compiled(tensor([-1.0, -2.0])).item() == 5.0
    assert pb.backward(compiled(tensor([-1.0, -2.0]))).get(w) is None  # the other way has none
    doubled = pb.compile(lambda x: pb.while_loop(lambda s: s.sum() < 100.0, lambda s: s * 2, x, max_steps=20))
    assert doubled(tensor([1.0, 2.0])).tolist() == [64.0, 128.0]


def test_arrays_of_numpy_from_outside_are_read_at_every_call() -> None:
    table = np.zeros((120, 120), np.float32)
    view = table[::2, 1::3]
    compiled = pb.compile(lambda x: x * view)
    x = tensor(np.ones(view.shape))
    for value in (1.0, 2.0, 3.0):
        table[...] = value
        np.testing.assert_array_equal(compiled(x).numpy(), np.full(view.shape, value))
    assert compiled.traces == 1


def test_several_threads_may_call_one_program() -> None:
    from concurrent.futures import ThreadPoolExecutor

    w = tensor(np.zeros(4), requires_grad=True)
    optimizer = pb.optim.SGD([w], 1.0)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimizer.step(pb.backward(loss))
        return loss

    step(tensor(np.ones(4)))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: step(tensor(np.ones(4))), range(40)))
    np.testing.assert_array_equal(w.detach().numpy(), np.full(4, -41.0))
    assert step.traces == 1


def test_values_that_decide_are_read_and_looked_at() -> None:
    rate = tensor(2.0)
    compiled = pb.compile(lambda x: x * rate if rate.item() > 1 else x)
    assert compiled(tensor([1.0])).tolist() == [2.0]
    rate = tensor(0.5)
    assert compiled(tensor([1.0])).tolist() == [1.0]


def test_what_needs_values_is_refused_with_the_line() -> None:
    with pytest.raises(TraceError, match=r"test_functions.py:\d+: a choice .* needs the values"):
        pb.compile(lambda x: x if x.sum() > 0 else -x)(tensor([1.0]))
    with pytest.raises(TraceError, match="depends on values"):
        pb.compile(lambda x: x[x > 0])(tensor([1.0]))
    with pytest.raises(TraceError, match="NumPy array"):
        pb.compile(lambda x: np.sort(x.numpy()))(tensor([1.0]))


def test_arrays_of_jax_itself_are_refused_with_what_to_write() -> None:
    with pytest.raises(DeviceError, match=r"pb.asarray\(x\)"):
        pb.compile(lambda x: x)(jax.numpy.ones(3))


def test_a_program_is_verified() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.AdamW([w], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (w * x).square().sum()
        optimizer.step(pb.backward(loss))
        return loss

    with pb.compiled(verify=True):
        for _ in range(3):
            step(tensor([1.0, 2.0]))
    assert w.tolist() == pytest.approx([0.7, 1.7], abs=0.05)


def test_what_was_made_can_be_looked_at() -> None:
    compiled = pb.compile(lambda x: pb.tanh(x).sum())
    compiled(tensor([1.0, 2.0]))
    assert "tanh" in compiled.source
    assert "compiled by XLA" in repr(compiled.kernels)
    assert compiled.memory == {"inputs": 8, "outputs": 4, "saved": 0}


def test_all_is_freed_when_the_function_dies() -> None:
    w = tensor(np.ones(4), requires_grad=True)
    optimizer = pb.optim.SGD([w], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):
        step(tensor(np.ones(4)))
    made = step._latest()
    references = [weakref.ref(thing) for thing in (step, made, made.built.executable)]
    gc.collect()
    gc.disable()
    try:
        del step, made
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_a_later_call_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    w = tensor(np.ones(4), requires_grad=True)
    optimizer = pb.optim.AdamW([w], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    x = tensor(np.ones(4))
    step(x), step(x)  # the first call makes gradients that the next ones find
    step._programs[0].schedule.stop()  # no audits, which go the long way
    step(x)
    long_way = type(step)._long_way
    monkeypatch.setattr(type(step), "_long_way", lambda *args: pytest.fail("a call went the long way"))
    before = w.detach().numpy().copy()
    step(x)
    assert (w.detach().numpy() < before).all()
    monkeypatch.setattr(type(step), "_long_way", long_way)
    held = w._raw  # somebody else's: the long way copies it
    step(x)
    assert not held.is_deleted()
    assert step.traces == 1
