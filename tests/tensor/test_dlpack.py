"""DLPack, both ways."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


class Foreign:
    """An array of a library nobody knows, with nothing but DLPack."""

    def __init__(self, values, device=None):
        self.values, self.device = values, device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.values.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "bool", "complex64"])
def test_numpy_takes_our_memory_read_only(dtype):
    tensor = pb.asarray(np.ones(3, dtype))
    array = np.from_dlpack(tensor)
    assert array.dtype == dtype
    assert np.shares_memory(array, tensor.data)
    assert not array.flags.writeable


def test_a_live_export_makes_a_write_copy():
    tensor = pb.tensor([1.0, 2.0])
    array = np.from_dlpack(tensor)
    tensor += 1
    np.testing.assert_array_equal(array, [1.0, 2.0])
    np.testing.assert_array_equal(tensor.numpy(), [2.0, 3.0])


def test_a_copy_belongs_to_the_consumer():
    tensor = pb.tensor([1.0, 2.0])
    array = np.from_dlpack(tensor, copy=True)
    assert array.flags.writeable
    assert not np.shares_memory(array, tensor.data)
    array[0] = 5.0
    assert tensor.tolist() == [1.0, 2.0]


def test_the_first_protocol_cannot_say_read_only_so_it_gets_a_copy():
    tensor = pb.tensor([1.0, 2.0])
    torch = pytest.importorskip("torch")
    taken = torch.utils.dlpack.from_dlpack(tensor.__dlpack__())
    taken[0] = 5.0
    assert tensor.tolist() == [1.0, 2.0]


def test_the_first_protocol_without_a_copy_shares_with_this_tensor_alone():
    torch = pytest.importorskip("torch")
    tensor = pb.tensor([1.0, 2.0])
    clone = tensor.clone()
    taken = torch.utils.dlpack.from_dlpack(tensor.__dlpack__(copy=False))
    taken[0] = 5.0
    assert tensor.tolist() == [5.0, 2.0]
    assert clone.tolist() == [1.0, 2.0]
    tensor += 1.0  # copies first: the memory is shared
    assert taken.tolist() == [5.0, 2.0]


def test_device():
    assert tuple(pb.tensor([1.0]).__dlpack_device__()) == (1, 0)


def test_exports_refuse_to_lose_a_gradient():
    w = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"t\.detach\(\)"):
        np.from_dlpack(w)
    assert np.from_dlpack(w.detach()).tolist() == [1.0]


@pytest.mark.parametrize("take", [pb.from_dlpack, pb.asarray])
def test_foreign_memory_is_borrowed_and_never_changed(take):
    values = np.asarray([1.0, 2.0])
    tensor = take(Foreign(values))
    assert np.shares_memory(tensor.data, values)
    tensor += 1
    np.testing.assert_array_equal(values, [1.0, 2.0])
    assert tensor.tolist() == [2.0, 3.0]


def test_foreign_memory_is_copied_on_request():
    values = np.asarray([1.0, 2.0])
    assert not np.shares_memory(pb.from_dlpack(Foreign(values), copy=True).data, values)


def test_from_dlpack_of_a_tensor_keeps_it():
    tensor = pb.tensor([1.0])
    assert pb.from_dlpack(tensor) is tensor


def test_from_dlpack_refuses_what_it_cannot_take():
    with pytest.raises(pb.DtypeError, match="__dlpack__"):
        pb.from_dlpack([1.0])
    with pytest.raises(pb.DeviceError, match="device type 2"):
        pb.from_dlpack(Foreign(np.ones(1), device=(2, 0)))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_an_export_of_memory_that_a_graph_or_a_clone_needs_is_a_copy(device):
    torch = pytest.importorskip("torch")
    w = pb.tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
    x = pb.tensor([4.0, 5.0, 6.0], device=device)
    loss = (w * x).sum()
    torch.from_dlpack(x)[:] = 100.0
    torch.from_dlpack(w.detach())[:] = 100.0
    loss.backward()
    assert w.grad.tolist() == [4.0, 5.0, 6.0] and w.tolist() == [1.0, 2.0, 3.0]
    clone, view = x.clone(), x[:2]
    for exported in (x, clone, view):
        torch.from_dlpack(exported)[:] = 100.0
    assert clone.tolist() == x.tolist() == [4.0, 5.0, 6.0] and view.tolist() == [4.0, 5.0]


def test_an_export_of_memory_that_nobody_else_needs_is_shared():
    torch = pytest.importorskip("torch")
    x = pb.tensor([1.0, 2.0])
    assert torch.from_dlpack(x).data_ptr() == x._raw.ctypes.data
