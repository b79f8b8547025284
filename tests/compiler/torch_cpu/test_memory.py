"""Programs work on the memory of PyTorch's tensors as it is: nothing is copied, and what somebody else sees stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import optional, require

DEVICE = "torch:cpu"
torch = optional("torch")


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require(DEVICE)


def tensor(values: Any, dtype: Any = np.float32, **options: Any) -> pb.Tensor:
    return pb.tensor(np.asarray(values, dtype), device=DEVICE, **options)


def step_of(w: pb.Tensor, **options: Any) -> tuple[Any, Any]:
    optimizer = pb.optim.SGD([w], 0.1, **options)

    @pb.compile
    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        optimizer.step(pb.backward(loss))
        return loss

    return step, optimizer


def address(tensor: Any) -> int:
    return tensor._raw.data_ptr()


@pytest.mark.parametrize("count", [5, 300_000])  # under Python's lock, and without it
def test_parameters_and_state_stay_where_they_are(count: int) -> None:
    w = tensor(np.ones(count), requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    x = tensor(np.full(count, 0.1))
    step(x)  # what NumPy lent to PyTorch is copied once
    (slot,) = optimizer._slots[0]
    places = address(w), address(slot.buffers[0])
    step._programs[0].schedule.stop()  # no audits, which go the long way
    for _ in range(4):
        step(x)
    assert (address(w), address(slot.buffers[0])) == places
    assert step.traces == 1


def test_memory_of_pytorchs_own_is_never_copied() -> None:
    w = pb.asarray(torch.ones(5)).set_requires_grad(True)
    place = address(w)
    step, _ = step_of(w)
    for _ in range(3):
        step(tensor(np.full(5, 0.1)))
    assert address(w) == place


def test_a_call_allocates_its_outputs_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    w = pb.asarray(torch.ones(50_000)).set_requires_grad(True)
    step, _ = step_of(w, momentum=0.9)
    x = tensor(np.full(50_000, 1e-3))
    for _ in range(3):
        step(x)
    made = step._programs[0]
    made.schedule.stop()
    from torch.profiler import ProfilerActivity, profile

    def measured(run: Any) -> int:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
            run()
        return max(event.self_cpu_memory_usage for event in found.key_averages())

    monkeypatch.setattr(type(step), "_long_way", lambda *args: pytest.fail("a call went the long way"))
    assert 0 < measured(lambda: step(x)) <= 64
    assert measured(lambda: pb.zeros(50_000, device=DEVICE)) >= 200_000  # and that would be seen


def test_what_somebody_else_holds_stays() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    x = tensor([1.0, 1.0])
    step(x), step(x)
    others: list[Any] = [
        w._raw, w._raw[:], w._raw.detach(), w.detach().clone(), w.detach()[:], w.detach().numpy(), w.detach().data,
        torch.from_dlpack(w.detach()), np.from_dlpack(w.detach()),
    ]  # fmt: skip
    others.append(optimizer.state_dict()["state"][0]["momentum_buffer"])
    before = [other.tolist() for other in others]
    for _ in range(3):
        step(x)
    assert [other.tolist() for other in others] == before
    assert w.tolist() != before[0]


@pytest.mark.parametrize(
    "hold",
    [
        lambda w: w._raw,
        lambda w: w._raw[1:],
        lambda w: w._raw.detach(),
        lambda w: w._raw.untyped_storage(),
        lambda w: w._raw.numpy(),
        lambda w: w.detach().numpy(),
        lambda w: w.clone(),
        lambda w: w.detach()[:1],
        lambda w: w * w,
        lambda w: torch.from_dlpack(w._raw),
        lambda w: w._raw.__dlpack__(),
        lambda w: torch.ones(2, requires_grad=True) * w._raw,  # PyTorch's own graph keeps it
    ],
    ids=range(12),
)
def test_each_way_to_hold_memory_is_noticed_in_the_middle_of_training(hold: Any) -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, _ = step_of(w)
    x = tensor([1.0, 1.0])
    step(x), step(x)
    place, before = address(w), w.tolist()
    held = hold(w)
    step(x)
    assert address(w) != place
    assert np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 2).from_address(place)).tolist() == before
    assert w.tolist() == pytest.approx([value * 0.8 for value in before])
    del held


@pytest.mark.parametrize(
    "borrowed",
    [
        lambda: torch.ones(2).share_memory_(),
        lambda: torch.from_numpy(np.ones(2, np.float32)),
        lambda: torch.frombuffer(bytearray(np.ones(2, np.float32).tobytes()), dtype=torch.float32),
    ],
    ids=["processes", "numpy", "bytes"],
)
def test_memory_that_others_may_see_is_copied_in_the_middle_of_training(borrowed: Any) -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, _ = step_of(w)
    x = tensor([1.0, 1.0])
    step(x), step(x)
    w._raw = borrowed()
    place = address(w)
    step(x)
    assert address(w) != place and w.tolist() == pytest.approx([0.8, 0.8])


def test_memory_that_is_copied_late_is_copied_in_time() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, _ = step_of(w)
    x = tensor([1.0, 1.0])
    step(x), step(x)
    late = torch._lazy_clone(w._raw)
    expected = w._raw.clone()
    step(x)
    assert late.tolist() == expected.tolist() != w.tolist()


def test_what_was_held_and_is_not_any_more_is_written_where_it_is() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, _ = step_of(w)
    x = tensor([1.0, 1.0])
    step(x)
    place = address(w)
    for look in (lambda: w.detach().numpy(), lambda: repr(w), lambda: w.clone(), lambda: (w * w).sum().item()):
        look()
        step(x)
        assert address(w) == place


def test_a_tensor_of_the_users_is_borrowed_and_never_changed() -> None:
    theirs = torch.tensor([1.0, 2.0])
    w = pb.asarray(theirs).set_requires_grad(True)
    step, _ = step_of(w)
    x = torch.ones(2)
    for _ in range(3):
        step(pb.asarray(x))
    assert theirs.tolist() == [1.0, 2.0] and x.tolist() == [1.0, 1.0]
    assert w.tolist() == pytest.approx([0.512, 1.024])


def test_a_borrowed_input_is_read_where_it_is() -> None:
    theirs = torch.tensor([1.0, 2.0])
    x = pb.asarray(theirs)
    total = pb.compile(lambda: (x * 2).sum())
    assert total().item() == 6.0
    theirs.mul_(2)
    for _ in range(2):
        assert total().item() == 12.0


def test_results_are_values_of_their_own_in_pytorchs_memory() -> None:
    double = pb.compile(lambda x: (x * 2, x))
    x = tensor([1.0, 2.0])
    results = [double(x) for _ in range(3)]
    first, same = results[0]
    assert first.device == same.device == DEVICE
    assert len({address(t) for pair in results for t in pair} | {address(x)}) == 7
    place = address(first)
    assert first.data_mut().data_ptr() == place  # nobody else's
    first += 1.0
    assert [pair[0].tolist() for pair in results] == [[3.0, 5.0], [2.0, 4.0], [2.0, 4.0]]
    same += 1.0
    assert x.tolist() == [1.0, 2.0]


def test_arguments_that_are_written_get_values_and_others_keep_theirs() -> None:
    @pb.compile
    def add(x: Any) -> None:
        x += 1.0

    raw = torch.tensor([1.0, 2.0])
    x = pb.asarray(raw)
    clone = x.clone()
    add(x), add(x)
    assert x.tolist() == [3.0, 4.0] and clone.tolist() == [1.0, 2.0] and raw.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "layout",
    [
        lambda: torch.arange(24.0).reshape(4, 6).T,
        lambda: torch.arange(24.0).reshape(4, 6)[1:, ::2],
        lambda: torch.arange(24.0).reshape(4, 6)[2:],
        lambda: torch.arange(3.0).expand(4, 3),
        lambda: torch.tensor(3.0),
        lambda: torch.empty(0, 3),
        lambda: torch.empty(3, 0).T,
        lambda: torch.arange(48.0).reshape(2, 1, 3, 2, 1, 4),
        lambda: torch.arange(48.0).reshape(2, 1, 3, 2, 1, 4).permute(5, 0, 1, 2, 3, 4),
        lambda: torch.frombuffer(bytearray(4 * 6 + 1), dtype=torch.float32, offset=1, count=6),
        lambda: torch.ones(3, dtype=torch.complex64).mul(1 + 2j).conj(),
        lambda: torch.ones(3, dtype=torch.complex64).mul(1 + 2j).conj().imag,
        lambda: torch.nn.Parameter(torch.ones(3), requires_grad=False),
    ],
    ids=range(13),
)
def test_layouts_of_arguments_and_of_what_is_found_outside(layout: Any) -> None:
    found = pb.asarray(layout())
    function = pb.compile(lambda x: (x * found + 1, x.sum()))
    for _ in range(3):
        for x in (pb.asarray(layout()), pb.asarray(layout().clone())):  # which need not lie in the same way
            product, total = function(x)
            np.testing.assert_allclose(product.numpy(), found.numpy() * found.numpy() + 1)
            np.testing.assert_allclose(total.numpy(), found.numpy().sum(), rtol=1e-6)
    assert function.traces == 1


@pytest.mark.parametrize("layout", [lambda: torch.ones(3, 4).T, lambda: torch.ones(6, 3)[1:5], lambda: torch.ones(())])
def test_parameters_of_any_layout_are_trained(layout: Any) -> None:
    w = pb.asarray(layout()).set_requires_grad(True)
    step, _ = step_of(w)
    for _ in range(3):
        step(pb.ones(w.shape, device=DEVICE))
    np.testing.assert_allclose(w.detach().numpy(), np.full(w.shape, 0.512), rtol=1e-6)
    assert step.traces == 1


def test_a_slice_of_a_larger_tensor_is_read_where_it_is() -> None:
    data = pb.asarray(torch.arange(12.0).reshape(6, 2))
    total = pb.compile(lambda x: x.sum())
    found = [total(data[i : i + 2]).item() for i in range(0, 6, 2)]
    assert found == [6.0, 22.0, 38.0]
    assert total.traces == 1


DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_that_of_the_numpy_device(name: str) -> None:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    values = np.array([[1, 0, 3], [2, 1, 0]])

    def function(x: Any) -> Any:
        return x[1:], pb.where(x > 1, x, 0) if x.dtype.kind != "complex" else x * 2, x.sum(), x.astype("complex128") / 2

    compiled = pb.compile(function)
    for _ in range(2):
        ours = compiled(pb.tensor(values, dtype=name, device=DEVICE))
    theirs = pb.compile(function)(pb.tensor(values, dtype=name))
    for one, other in zip(ours, theirs):
        assert one.device == DEVICE and one.dtype == other.dtype
        np.testing.assert_array_equal(one.to_device("numpy").numpy(), other.numpy())


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_parameters_of_other_widths_are_trained_in_place(name: str) -> None:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    found = {}
    for device in ("numpy", DEVICE):
        w = pb.tensor([1.0, 2.0], dtype=name, device=device, requires_grad=True)
        optimizer = pb.optim.AdamW([w], 0.1)

        @pb.compile
        def step(w: Any = w, optimizer: Any = optimizer) -> Any:
            loss = (w * w).sum()
            optimizer.step(pb.backward(loss))
            return loss

        step()
        place = w._raw.data_ptr() if device == DEVICE else 0
        step(), step()
        found[device] = w.detach().to_device("numpy").astype("float64").tolist()
        assert not place or address(w) == place
    assert found["numpy"] == found[DEVICE]
