"""Memory that NumPy's arrays and PyTorch's tensors share."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends import for_device

from .installed import optional, require

torch = optional("torch")
NAMES = [dtype.name for dtype in pb.dtypes.ALL]


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require("torch:cpu")


def backend() -> Any:
    return for_device("torch:cpu")[0]


@pytest.mark.parametrize("name", NAMES)
def test_an_array_and_a_tensor_share_memory_both_ways(name: str) -> None:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    raw = torch.ones(4, 3, dtype=getattr(torch, name))[1:, ::2].T
    array = backend().host_array(raw)
    assert array.dtype.name == name and array.shape == (2, 3)
    array[1, 2] = 0
    assert raw[1, 2].item() == 0
    back = backend().on_host(array)
    assert back.dtype == raw.dtype
    back[0, 0] = 0
    assert raw[0, 0].item() == 0 and array[0, 0] == 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_shapes_without_elements_or_axes(shape: tuple[int, ...]) -> None:
    raw = torch.zeros(shape)
    assert backend().host_array(raw).shape == shape
    made = backend().host_empty(shape, np.dtype(np.int8))
    assert tuple(made.shape) == shape and made.dtype == torch.int8


def test_an_array_keeps_the_memory_alive() -> None:
    array = backend().host_array(torch.full((1000,), 3.0))
    gc.collect()
    others = [torch.zeros(1000) for _ in range(10)]
    assert (array == 3.0).all() and len(others) == 10


def test_values_that_are_not_in_memory_as_they_are_seen_are_copied() -> None:
    raw = torch.tensor([1 + 2j]).conj()
    assert backend().host_array(raw).tolist() == [1 - 2j]
    assert backend().host_array(raw.imag).tolist() == [-2.0]


def test_an_array_that_cannot_be_a_tensor_is_copied() -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    for one in (array, np.arange(4.0)[::-1]):
        assert backend().on_host(one).tolist() == one.tolist()


def test_a_look_at_the_values_does_not_make_memory_shared_for_ever() -> None:
    w = pb.asarray(torch.ones(3))
    place = w._raw.data_ptr()
    array = w.numpy()
    assert w.data_mut().data_ptr() != place  # seen by the array
    w = pb.asarray(torch.ones(3))
    place = w._raw.data_ptr()
    for look in (lambda: w.numpy(), lambda: w.tolist(), lambda: repr(w), lambda: np.asarray(w)):
        look()
        assert w.data_mut().data_ptr() == place
    assert array.tolist() == [1.0, 1.0, 1.0]


def test_whoever_holds_the_storage_sees_the_memory() -> None:
    w = pb.asarray(torch.ones(3))
    storage = w._raw.untyped_storage()
    w += 1.0
    assert torch.tensor(storage.tolist(), dtype=torch.uint8).view(torch.float32).tolist() == [1.0, 1.0, 1.0]


def test_memory_of_several_processes_is_not_written() -> None:
    w = pb.asarray(torch.ones(3).share_memory_())
    place = w._raw.data_ptr()
    assert w.data_mut().data_ptr() != place


def test_memory_that_is_not_there() -> None:
    with pytest.raises(MemoryError):
        backend().host_empty((1 << 45, 1 << 10), np.dtype(np.float32))
