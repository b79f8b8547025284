"""`Autodiff(backend)`: gradients on top of any backend, and on top of itself."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require

INNER = ["numpy", "strict:device1", "jax:cpu", "torch:cpu"]


@pytest.fixture(params=INNER)
def first(request):
    require(request.param)
    return pb.Autodiff(request.param)


def test_backward_and_grad(first):
    x = first.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    unused = first.tensor([1.0], requires_grad=True)
    grads = first.backward(x * x * x)  # ones are the seed: any shape will do
    grad = first.grad(x, grads)
    assert pb.backends.of(grad) is first.inner_backend
    np.testing.assert_allclose(first.inner_backend.to_numpy(grad), [3.0, 12.0])
    assert first.grad(unused, grads) is None
    assert first.grad(first.tensor([1.0]), grads) is None


def test_grad_remove_takes_it_out(first):
    x = first.tensor([1.0, 2.0], requires_grad=True)
    grads = first.backward(x * x)
    removed = first.grad_remove(x, grads)
    np.testing.assert_allclose(first.inner_backend.to_numpy(removed), [2.0, 4.0])
    assert x not in grads
    assert len(grads) == 0
    assert first.grad_remove(x, grads) is None


def test_grad_replace_replaces_or_registers(first):
    x = first.tensor([1.0, 2.0], requires_grad=True)
    y = first.tensor([5.0], requires_grad=True)
    grads = first.backward(x * x)
    first.grad_replace(x, grads, first.inner(first.tensor([7.0, 8.0])))
    first.grad_replace(y, grads, first.inner(first.tensor([9.0])))
    assert grads[x].tolist() == [7.0, 8.0]
    assert grads[y].tolist() == [9.0]
    with pytest.raises(pb.ShapeError, match=r"shape \(1,\), tensor has shape \(2,\)"):
        first.grad_replace(x, grads, first.inner(first.tensor([9.0])))
    assert grads[x].tolist() == [7.0, 8.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "uint8", "bool"])
def test_round_trip_of_every_kind(first, dtype):
    backend = first.inner_backend
    raw = backend.asarray(np.asarray([[1, 0, 3], [0, 5, 6]]).astype(dtype), pb.dtypes.get(dtype), first.device, None)
    tensor = first.from_inner(raw)
    assert isinstance(tensor, pb.Tensor)
    assert tensor.dtype.name == dtype
    assert tensor.device == first.device
    again = first.inner(tensor)
    assert again.dtype == raw.dtype
    assert backend.device_of(again) == first.device
    assert backend.to_numpy(again).tobytes() == backend.to_numpy(raw).tobytes()
    assert not tensor.requires_grad
    if dtype in ("float32", "float64", "complex64"):
        assert tensor.set_requires_grad(True).requires_grad


def test_round_trip_of_quantized_arrays(first):
    raw = pb.quantize(first.tensor([[1.0, 2.0], [3.0, 4.0]])).data
    tensor = first.from_inner(raw)
    assert tensor.dtype.name == "qint8"
    assert tensor.device == first.device
    again = first.inner(tensor)
    for a, b in zip(raw.parts, again.parts):
        assert first.inner_backend.to_numpy(a).tobytes() == first.inner_backend.to_numpy(b).tobytes()


def test_inner_shares_memory_read_only_over_numpy():
    first = pb.Autodiff()
    x = first.tensor([1.0, 2.0], requires_grad=True)
    assert np.shares_memory(first.inner(x), x.data)
    assert not first.inner(x).flags.writeable
    values = np.asarray([1.0, 2.0])
    y = first.from_inner(values)
    y += 1
    np.testing.assert_array_equal(values, [1.0, 2.0])


def test_removed_gradients_can_be_written():
    first = pb.Autodiff()
    x = first.tensor([1.0, 2.0], requires_grad=True)
    removed = first.grad_remove(x, first.backward(x * x))
    removed[0] = 5.0
    assert removed.tolist() == [5.0, 4.0]


def function(x):
    return x * x * x * x


def test_nested_levels_give_higher_derivatives(first):
    second = pb.Autodiff(first)
    third = pb.Autodiff(second)
    assert second.inner_backend is first
    assert third.inner_backend is second
    x = first.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    y = second.from_inner(x)
    z = third.from_inner(y)
    slope = third.grad(z, third.backward(function(z)))
    curvature = second.grad(y, second.backward(slope))
    result = first.grad(x, first.backward(curvature))
    values = np.asarray([1.0, 2.0, 3.0])
    np.testing.assert_allclose(slope.detach().numpy(), 4 * values**3)
    np.testing.assert_allclose(curvature.detach().numpy(), 12 * values**2)
    np.testing.assert_allclose(first.inner_backend.to_numpy(result), 24 * values)


def test_nested_equals_create_graph():
    first = pb.Autodiff("numpy")
    second = pb.Autodiff(first)
    values = np.random.default_rng(0).standard_normal((3, 3))
    w = first.from_inner(values).set_requires_grad(True)
    v = second.from_inner(w)
    nested = first.grad(w, first.backward(second.grad(v, second.backward(pb.tanh(v @ v)))))
    u = pb.asarray(values).set_requires_grad(True)
    g = pb.backward(pb.sum(pb.tanh(u @ u)), create_graph=True)[u]
    np.testing.assert_array_equal(nested, pb.backward(pb.sum(g))[u].numpy())


def test_inner_is_a_constant_of_its_own_level_only():
    first = pb.Autodiff("numpy")
    second = pb.Autodiff(first)
    x = first.tensor([2.0, 3.0], requires_grad=True)
    y = second.from_inner(x)
    constant = second.from_inner(second.inner(y * y))
    grads = second.backward(constant * y)
    np.testing.assert_allclose(second.grad(y, grads).detach().numpy(), [4.0, 9.0])  # not 3 y**2
    below = second.inner(y * y)  # the level below still knows where it comes from
    np.testing.assert_allclose(first.grad(x, first.backward(below)), [4.0, 6.0])


def test_a_variable_of_the_lower_level_is_a_constant_above():
    first = pb.Autodiff("numpy")
    second = pb.Autodiff(first)
    x = first.tensor(3.0, requires_grad=True)
    y = second.tensor(2.0, requires_grad=True)
    grads = second.backward(x * y)
    assert len(grads) == 1
    assert second.grad(x, grads) is None
    assert second.grad(y, grads).item() == 3.0
    assert first.grad(x, first.backward(second.grad(y, grads))) == 1.0


def test_nested_remove_and_replace():
    first = pb.Autodiff("numpy")
    second = pb.Autodiff(first)
    x = first.tensor([2.0], requires_grad=True)
    y = second.from_inner(x)
    grads = second.backward(y * y)
    second.grad_replace(y, grads, x * 5)
    removed = second.grad_remove(y, grads)
    np.testing.assert_allclose(first.grad(x, first.backward(removed)), [5.0])
    assert second.grad_remove(y, grads) is None


def test_integers_pass_through_nested_levels():
    second = pb.Autodiff(pb.Autodiff("numpy"))
    i = second.from_inner(pb.tensor([1, 2]))
    assert second.inner(i) is i
    assert i.dtype == pb.int64


def test_operations_are_attributes(first):
    x = first.tensor([1.0, 2.0], requires_grad=True)
    y = first.multiply(x, first.ones((2,)) * 3)
    assert y.device == first.device
    assert y.detach().tolist() == [3.0, 6.0]
    assert first.zeros((2,)).device == first.arange(3).device == first.device
    assert first.asarray([1.0], None, first.device, None).device == first.device
    np.testing.assert_allclose(first.linalg.vector_norm(first.tensor([3.0, 4.0])).item(), 5.0)
    with pytest.raises(AttributeError, match="no operation 'no_such_thing'"):
        first.no_such_thing  # noqa: B018


def test_it_is_a_backend(first):
    x = first.tensor([1.0, 2.0])
    assert isinstance(first, pb.backends.Backend)
    assert first.device_of(x) == first.device
    assert first.dtype_of(x) == pb.float32
    assert first.device in first.devices()
    np.testing.assert_array_equal(first.to_numpy(x), [1.0, 2.0])
    assert first.xp.multiply(x, x).tolist() == [1.0, 4.0]


def test_what_it_can_be_made_of():
    assert pb.Autodiff(pb.backends.NUMPY).inner_backend is pb.backends.NUMPY
    assert repr(pb.Autodiff(pb.Autodiff("numpy"))) == "Autodiff(Autodiff('numpy'))"
    with pytest.raises(pb.DtypeError, match="device name, a backend or an Autodiff, got int"):
        pb.Autodiff(3)
    with pytest.raises(pb.DeviceError, match="unknown device 'abacus'"):
        pb.Autodiff("abacus")


def test_the_device_of_a_backend_is_its_first():
    require("strict")
    assert pb.Autodiff(pb.backends.for_device("strict:device1")[0]).device == "strict:cpu"


def test_bad_input():
    first = pb.Autodiff("numpy")
    with pytest.raises(pb.DeviceError, match="expected an array of numpy, got list"):
        first.from_inner([1.0])
    with pytest.raises(pb.DtypeError, match="expected a tensor, got ndarray"):
        first.inner(np.ones(1))
    with pytest.raises(pb.GradientError, match="does not depend"):
        first.backward(first.tensor([1.0]))
    with pytest.raises(pb.DtypeError, match="only floating-point"):
        pb.Autodiff(first).tensor([1], requires_grad=True)
