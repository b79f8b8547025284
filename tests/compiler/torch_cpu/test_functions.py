"""Functions of tensors on PyTorch's processor, compiled: results, gradients taken outside, random numbers, refusals."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DeviceError, TraceError

from ...backends.installed import optional, require

DEVICE = "torch:cpu"
torch = optional("torch")


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require(DEVICE)


def tensor(values: Any, dtype: Any = np.float32, **options: Any) -> pb.Tensor:
    return pb.tensor(np.asarray(values, dtype), device=DEVICE, **options)


def test_results_are_those_of_the_function_in_any_container() -> None:
    def function(x: Any, options: Any) -> Any:
        return {"sum": x.sum(0) * options["factor"], "same": x, "number": 3}

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    compiled = pb.compile(function)
    for _ in range(3):
        found = compiled(x, {"factor": 2.0})
    assert found["sum"].device == found["same"].device == DEVICE
    assert found["number"] == 3
    assert found["sum"].tolist() == [8.0, 12.0] and found["same"].tolist() == x.tolist()
    assert compiled.traces == 1


def test_another_device_shape_or_dtype_is_another_program() -> None:
    compiled = pb.compile(lambda x: x * 2)
    for device in ("numpy", DEVICE, "numpy", DEVICE):
        assert compiled(pb.tensor([1.0, 2.0], device=device)).device == device
    assert compiled(tensor([1.0])).shape == (1,)
    assert compiled(tensor([1.0], np.float64)).dtype == pb.float64
    assert compiled.recompilations == [
        "argument 0 was on 'numpy' and is on 'torch:cpu'",
        "argument 0 had shape (2,) and has (1,)",
        "argument 0 was float32 and is float64",
    ]


def test_what_is_found_outside_may_change_its_form() -> None:
    w = tensor([1.0, 2.0])
    total = pb.compile(lambda: (w * w).sum())
    assert total().item() == 5.0
    w._raw = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert total().item() == 14.0 and total().dtype == pb.float64
    w._raw = np.ones(2, np.float32)
    assert total().device == "numpy"
    assert total.recompilations[0] == "`w` had shape (2,) and has (3,)"


def test_numpy_arrays_and_numbers_among_the_arguments() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    compiled = pb.compile(lambda x, factor: (w * x * factor).sum())
    for factor in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0):  # a number that keeps changing becomes an input
        assert compiled(np.array([3.0, 4.0], np.float32), factor).item() == 11.0 * factor
    assert compiled.traces == 4


def test_gradients_are_taken_outside() -> None:
    generator = np.random.default_rng(0)
    w = tensor(generator.standard_normal((3, 5)), np.float64, requires_grad=True)

    def function(x: Any) -> Any:
        return pb.tanh(x @ w), (x * x).sum()

    compiled = pb.compile(function)
    for _ in range(2):
        values, seed = generator.standard_normal((4, 3)), tensor(generator.standard_normal((5, 4)), np.float64).T
        x, y = tensor(values, np.float64, requires_grad=True), tensor(values, np.float64, requires_grad=True)
        found = [pb.backward(g, seed.reshape(20)) for g in [sum_of(compiled(x.T.T * 1.0)), sum_of(function(y * 1.0))]]
        for ours, theirs in ((found[0][w], found[1][w]), (found[0][x], found[1][y])):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)
            assert ours.device == DEVICE
    assert pb.backward(compiled(x * 1.0)[1]).get(w) is None
    assert compiled.traces == 1


def sum_of(pair: Any) -> Any:
    return (pair[0] * 2.0 + pair[1]).reshape(20)


def test_what_a_gradient_needs_is_kept_when_a_parameter_is_written() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    square = pb.compile(lambda x: (w * w * x).sum())
    loss = square(tensor([1.0, 1.0]))
    with pb.no_grad():
        w[...] = tensor([10.0, 10.0])
    assert pb.backward(loss)[w].tolist() == [2.0, 4.0]


def test_a_result_found_outside_passes_its_gradient_on() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    squared = w * w
    compiled = pb.compile(lambda x: squared * x + w)
    compiled(tensor([3.0, 4.0])).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2 * 3.0 + 1, 4 * 4.0 + 1]


def test_second_derivatives_are_taken_inside_and_refused_outside() -> None:
    x = tensor([0.3, 0.5], np.float64)

    def function(x: Any) -> Any:
        v = x.detach().set_requires_grad(True)
        first = pb.backward((pb.sin(v) ** 2).sum(), create_graph=True)[v]
        return pb.backward(first.sum())[v]

    compiled = pb.compile(function)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).numpy(), 2 * np.cos(2 * x.numpy()), rtol=1e-12)
    w = tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match="inside one compiled function"):
        pb.backward(pb.compile(lambda: (w**3).sum())(), create_graph=True)


def test_buffers_and_state_of_objects_are_carried() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = tensor([0.0, 0.0])

        def __call__(self, x: Any) -> Any:
            self.total = self.total + x
            return self.total * 2

    counter = Counter()
    step = pb.compile(counter)
    for i in range(1, 5):
        assert step(tensor([1.0, 2.0])).tolist() == [2.0 * i, 4.0 * i]
    assert counter.total.tolist() == [4.0, 8.0] and counter.total.device == DEVICE
    assert step.traces == 1


def test_random_numbers_are_those_of_the_eager_function_and_of_numpy() -> None:
    def function(x: Any) -> Any:
        noise = pb.random.normal(x.shape, device=x.device)
        return pb.dropout(x, 0.5) + noise, pb.random.integers(0, 9, (3,), device=x.device)

    compiled, state = pb.compile(function), pb.random.get_state()
    expected = [function(tensor(np.ones((5, 7)))) for _ in range(3)]
    after = pb.random.get_state()
    pb.random.set_state(state)
    on_numpy = [pb.compile(function)(pb.ones((5, 7))) for _ in range(1)]
    pb.random.set_state(state)
    found = [compiled(tensor(np.ones((5, 7)))) for _ in range(3)]
    assert pb.random.get_state() == after
    for ours, theirs in zip([*found, found[0]], [*expected, *on_numpy]):
        for one, other in zip(ours, theirs):
            assert one.device == DEVICE
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert compiled.traces == 1


def test_kernels_without_a_native_form_run_on_the_same_memory() -> None:
    generator = np.random.default_rng(0)
    x = tensor(generator.standard_normal((4, 4)) + 4 * np.eye(4), np.float64, requires_grad=True)

    def function() -> Any:
        value = (pb.linalg.solve(x, x.mT) * pb.sort(x, axis=0)).sum() + pb.linalg.det(x)
        return value, pb.backward(value)[x]

    compiled = pb.compile(function)
    for _ in range(2):
        for ours, theirs in zip(compiled(), function()):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10)
    assert "numpy" in {kernel.how for kernel in compiled.kernels}


def test_an_operation_of_the_users_own_is_given_tensors_of_pytorch() -> None:
    def forward(x: Any) -> Any:
        assert isinstance(x, torch.Tensor)
        return torch.special.erfcx(x)

    erfcx = pb.custom_op(
        forward, name="erfcx", shape=lambda x: x, x=lambda g, out, x: g * (2 * x * out - 2 / np.pi**0.5)
    )
    x = tensor([0.5, 1.0], requires_grad=True)

    def function() -> Any:
        out = (erfcx(x * 1.0) * 2).sum()
        return out, pb.backward(out)[x]

    compiled, expected = pb.compile(function), function()
    for _ in range(2):
        for ours, theirs in zip(compiled(), expected):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)


def test_choices_and_loops() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)

    def chosen(x: Any) -> Any:
        return pb.cond(x.sum() > 0, lambda x: (x * w).sum(), lambda x: (x * x).sum(), x)

    compiled = pb.compile(chosen)
    assert pb.backward(compiled(tensor([3.0, 4.0])))[w].tolist() == [3.0, 4.0]
    assert pb.backward(compiled(tensor([-1.0, -2.0]))).get(w) is None  # the other way has none
    doubled = pb.compile(lambda x: pb.while_loop(lambda s: s.sum() < 100.0, lambda s: s * 2, x, max_steps=20))
    assert doubled(tensor([1.0, 2.0])).tolist() == [64.0, 128.0]


def test_arrays_of_numpy_from_outside_are_read_at_every_call() -> None:
    table = np.zeros((120, 120), np.float32)
    view = table[::2, 1::3]
    compiled = pb.compile(lambda x: x * view)
    for value in (1.0, 2.0, 3.0):
        table[...] = value
        np.testing.assert_array_equal(compiled(tensor(np.ones(view.shape))).numpy(), np.full(view.shape, value))
    assert compiled.traces == 1


def test_constants_are_made_on_the_default_device() -> None:
    compiled = pb.compile(lambda x: x + pb.arange(3, dtype="float32") * pb.tensor([1.0, 2.0, 3.0]))
    with pb.device(DEVICE):
        for _ in range(2):
            assert compiled(tensor([1.0, 1.0, 1.0])).tolist() == [1.0, 3.0, 7.0]
        made = pb.compile(lambda: pb.ones((2,)) * 3)
        assert made().device == DEVICE and made().tolist() == [3.0, 3.0]


@pytest.mark.parametrize("count", [4, 300_000])
def test_several_threads_may_call_one_program(count: int) -> None:
    w = tensor(np.zeros(count), requires_grad=True)
    optimizer = pb.optim.SGD([w], 1.0)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimizer.step(pb.backward(loss))
        return loss

    x = tensor(np.ones(count))
    step(x)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: step(x), range(40)))
    assert (w.detach().numpy() == -41.0).all()
    assert step.traces == 1


def test_values_that_decide_are_read_and_looked_at() -> None:
    rate = tensor(2.0)
    compiled = pb.compile(lambda x: x * rate if rate.item() > 1 else x)
    for _ in range(2):
        assert compiled(tensor([1.0])).tolist() == [2.0]
    with pb.no_grad():
        rate[...] = 0.5
    assert compiled(tensor([1.0])).tolist() == [1.0]


def test_an_index_out_of_bounds_is_the_error_of_the_eager_function() -> None:
    table = tensor(np.arange(6.0).reshape(3, 2))
    compiled = pb.compile(lambda i: table[i])
    assert compiled(tensor([2, 0], np.int64)).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    with pytest.raises(IndexError):
        compiled(tensor([3, 0], np.int64))
    assert compiled(tensor([1, 1], np.int64)).tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_tensors_on_two_devices_are_refused() -> None:
    w, x = tensor([1.0, 2.0], requires_grad=True), pb.tensor([1.0, 1.0])
    with pytest.raises(DeviceError, match="one device, here 'torch:cpu', and found a tensor on 'numpy'"):
        pb.compile(lambda y: (w * y).sum() + x.sum())(tensor([1.0, 1.0]))
    with pytest.raises(DeviceError, match="got tensors on 'numpy' and on 'torch:cpu'"):
        pb.compile(lambda x, y: x + y)(x, tensor([1.0, 1.0]))
    with pytest.raises(DeviceError, match="one device, here 'numpy', and found a tensor on 'torch:cpu'"):
        pb.compile(lambda x: (w * x).sum())(x)


def test_tensors_of_pytorch_itself_are_refused_with_what_to_write() -> None:
    theirs, x = torch.ones(3), tensor([1.0, 2.0, 3.0])
    with pytest.raises(DeviceError, match=r"pb.asarray\(x\)"):
        pb.compile(lambda x: x)(theirs)
    for function in (lambda x: x * theirs, lambda x: x * pb.asarray(torch.rand(3)), lambda x: x[torch.tensor([0, 2])]):
        with pytest.raises(TraceError, match=r"test_functions.py:\d+.*torch.Tensor of shape.*pb.asarray\(x\)"):
            pb.compile(function)(x)


def test_what_needs_values_is_refused_with_the_line() -> None:
    with pytest.raises(TraceError, match=r"test_functions.py:\d+: a choice .* needs the values"):
        pb.compile(lambda x: x if x.sum() > 0 else -x)(tensor([1.0]))
    with pytest.raises(TraceError, match="depends on values"):
        pb.compile(lambda x: x[x > 0])(tensor([1.0]))


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
    assert {kernel.how for kernel in compiled.kernels} == {"native"}
    assert compiled.memory["inputs"] == 8 and compiled.memory["outputs"] == 4


def test_a_compiled_function_as_a_function_of_pytorch() -> None:
    w = tensor([2.0, 3.0], requires_grad=True)
    product = pb.to_torch(pb.compile(lambda x: x * x * w))
    for _ in range(2):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        product(x).sum().backward()
        assert x.grad.tolist() == [4.0, 12.0]


def test_modes_of_pytorch_change_nothing() -> None:
    compiled, x = pb.compile(lambda x: x * 2), tensor([1.0, 2.0])
    for _ in range(2):
        with torch.inference_mode():
            inside = compiled(x)
        with torch.device("meta"):
            assert compiled(x).tolist() == [2.0, 4.0]
        assert compiled(inside).tolist() == [4.0, 8.0]
    assert compiled.traces == 1


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
    monkeypatch.setattr(type(step), "_long_way", lambda *args: pytest.fail("a call went the long way"))
    before = w.tolist()
    for values in (np.ones(4), np.ones((3, 4))[1], np.full(4, 2.0)):
        step(tensor(values))
    step(pb.asarray(torch.ones(3, 4))[1])  # a part of a larger tensor
    assert all(now < then for now, then in zip(w.tolist(), before))
    assert step.traces == 1
