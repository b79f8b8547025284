"""The fourth document's `AutodiffBackend`, row by row of what must hold."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import pullback as pb

from ..backends import strict
from ..backends.installed import require

INNER = ["numpy", strict.DEVICE, "torch:cpu", "jax:cpu"]


@pytest.fixture(params=INNER)
def autodiff(request):
    require(request.param)
    return pb.Autodiff(request.param)


def values(autodiff, array):
    """An array of the inner level as NumPy's."""
    backend = autodiff.inner_backend
    return np.asarray(backend.to_numpy(array))


# -- Autodiff<B, C> ------------------------------------------------------------------------------


def test_autodiff_decorates_any_registered_backend(autodiff):
    x = autodiff.tensor([1.0, 2.0], requires_grad=True)
    assert x.device == autodiff.device
    y = autodiff.exp(autodiff.multiply(x, x))
    gradient = autodiff.grad(x, autodiff.backward(y))
    assert pb.backends.of(gradient) is autodiff.inner_backend
    expected = 2 * np.array([1.0, 2.0]) * np.exp(np.array([1.0, 4.0]))
    np.testing.assert_allclose(values(autodiff, gradient), expected, rtol=1e-6)


def test_autodiff_nests(autodiff):
    second = pb.Autodiff(autodiff)
    x = autodiff.tensor([1.0, 2.0], requires_grad=True)
    y = second.from_inner(x)
    slope = second.grad(y, second.backward(y * y * y))
    np.testing.assert_allclose(values(autodiff, autodiff.inner(slope)), [3.0, 12.0])
    np.testing.assert_allclose(values(autodiff, autodiff.grad(x, autodiff.backward(slope))), [6.0, 12.0])


# -- backward, grad, grad_remove, grad_replace ---------------------------------------------------


def test_backward_and_grad_give_inner_arrays_and_none_where_there_is_none(autodiff):
    x = autodiff.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    unused = autodiff.tensor([1.0], requires_grad=True)
    constant = autodiff.tensor([1.0])
    grads = autodiff.backward(x * x)
    gradient = autodiff.grad(x, grads)
    assert not isinstance(gradient, pb.Tensor)
    np.testing.assert_allclose(values(autodiff, gradient), [[2.0, 4.0], [6.0, 8.0]])
    np.testing.assert_allclose(values(autodiff, grads[x].data), [[2.0, 4.0], [6.0, 8.0]])  # the mapping form
    for other in (unused, constant):
        assert autodiff.grad(other, grads) is None
        assert autodiff.grad_remove(other, grads) is None
        assert grads.get(other) is None and grads.pop(other) is None and other not in grads


def test_grad_remove_frees(autodiff):
    x = autodiff.tensor([1.0, 2.0], requires_grad=True)
    y = autodiff.tensor([3.0, 4.0], requires_grad=True)
    grads = autodiff.backward(x * y)
    assert len(grads) == 2
    removed = autodiff.grad_remove(x, grads)
    np.testing.assert_allclose(values(autodiff, removed), [3.0, 4.0])
    assert x not in grads and y in grads and len(grads) == 1
    assert autodiff.grad_remove(x, grads) is None
    assert grads.pop(y).tolist() == [1.0, 2.0]
    assert len(grads) == 0


def test_grad_remove_frees_the_memory():
    autodiff = pb.Autodiff("numpy")
    x = autodiff.tensor(np.zeros(1_000_000), requires_grad=True)
    tracemalloc.start()
    try:
        grads = autodiff.backward(x * 2.0)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        removed = autodiff.grad_remove(x, grads)
        reference = weakref.ref(removed)
        del removed
        freed, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reference() is None  # the container held it alone
    assert held - freed > 0.99 * x.nbytes


def test_grad_replace_replaces_and_registers_if_absent(autodiff):
    x = autodiff.tensor([1.0, 2.0], requires_grad=True)
    y = autodiff.tensor([5.0], requires_grad=True)
    grads = autodiff.backward(x * x)
    autodiff.grad_replace(x, grads, autodiff.inner(autodiff.tensor([7.0, 8.0])))
    autodiff.grad_replace(y, grads, autodiff.inner(autodiff.tensor([9.0])))
    np.testing.assert_allclose(values(autodiff, autodiff.grad(x, grads)), [7.0, 8.0])
    np.testing.assert_allclose(values(autodiff, autodiff.grad(y, grads)), [9.0])
    grads[y] = autodiff.tensor([10.0])  # the mapping form
    np.testing.assert_allclose(values(autodiff, autodiff.grad(y, grads)), [10.0])
    with pytest.raises(pb.ShapeError):
        autodiff.grad_replace(x, grads, autodiff.inner(autodiff.tensor([9.0])))
    np.testing.assert_allclose(values(autodiff, autodiff.grad(x, grads)), [7.0, 8.0])


# -- inner and from_inner ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_inner_and_from_inner_for_float_int_and_bool(autodiff, dtype):
    backend = autodiff.inner_backend
    raw = backend.asarray(np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype), pb.dtypes.get(dtype), autodiff.device, None)
    tensor = autodiff.from_inner(raw)
    again = autodiff.inner(tensor)
    assert isinstance(tensor, pb.Tensor)
    assert tensor.dtype.name == dtype
    assert again.dtype == raw.dtype
    assert tensor.device == backend.device_of(again) == autodiff.device
    assert values(autodiff, again).tobytes() == values(autodiff, raw).tobytes()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_inner_and_from_inner_for_quantized(autodiff, axis):
    raw = pb.quantize(autodiff.tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)), axis=axis).data
    tensor = autodiff.from_inner(raw)
    again = autodiff.inner(tensor)
    assert tensor.device == autodiff.device
    assert tensor.dtype.name == "qint8"
    assert len(raw.parts) == len(again.parts)
    for a, b in zip(raw.parts, again.parts):
        assert a.dtype == b.dtype
        assert values(autodiff, a).tobytes() == values(autodiff, b).tobytes()


def test_inner_cuts_and_from_inner_starts_anew(autodiff):
    x = autodiff.tensor([2.0, 3.0], requires_grad=True)
    constant = autodiff.from_inner(autodiff.inner(x * x))
    assert not constant.requires_grad
    np.testing.assert_allclose(values(autodiff, autodiff.grad(x, autodiff.backward(constant * x))), [4.0, 9.0])


def test_inner_shares_memory():
    autodiff = pb.Autodiff("numpy")
    x = autodiff.tensor(np.zeros(3), requires_grad=True)
    assert np.shares_memory(autodiff.inner(x), x.data)
    array = np.zeros(3)
    assert np.shares_memory(autodiff.from_inner(array).data, array)


# -- InnerBackend --------------------------------------------------------------------------------


def test_inner_backend_has_the_same_device_and_element_types(autodiff):
    backend = autodiff.inner_backend
    assert isinstance(backend, pb.backends.Backend)
    assert backend.devices() == autodiff.devices()
    for dtype in (pb.float32, pb.float64, pb.int64):
        tensor = autodiff.tensor([1, 2], dtype=dtype)
        raw = autodiff.inner(tensor)
        assert backend.device_of(raw) == autodiff.device_of(tensor)
        assert backend.dtype_of(raw) == autodiff.dtype_of(tensor) == dtype
    assert pb.Autodiff(autodiff).inner_backend is autodiff


# -- Gradients: Send -----------------------------------------------------------------------------


def test_gradients_send_between_threads(autodiff):
    x = autodiff.tensor([1.0, 2.0], requires_grad=True)
    with ThreadPoolExecutor(1) as pool:
        grads = pool.submit(lambda: autodiff.backward(x * x)).result()
        np.testing.assert_allclose(values(autodiff, autodiff.grad(x, grads)), [2.0, 4.0])
        removed = pool.submit(autodiff.grad_remove, x, grads).result()
    np.testing.assert_allclose(values(autodiff, removed), [2.0, 4.0])
    assert len(grads) == 0


def test_independent_graphs_run_in_parallel_threads():
    autodiff = pb.Autodiff("numpy")
    count = 6
    barrier = threading.Barrier(count, timeout=60)

    def work(seed):
        x = autodiff.tensor(np.random.default_rng(seed).normal(size=(4, 4)), requires_grad=True)
        gradients = []
        for _ in range(20):
            barrier.wait()
            y = autodiff.tanh(autodiff.matmul(x, x))
            barrier.wait()  # all graphs are half built
            gradients.append(autodiff.grad(x, autodiff.backward(y)).tobytes())
        return set(gradients)

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(work, range(count)))
    for seed, gradients in enumerate(found):
        x = pb.tensor(np.random.default_rng(seed).normal(size=(4, 4)), requires_grad=True)
        assert gradients == {pb.backward(pb.sum(pb.tanh(x @ x)))[x].numpy().tobytes()}


# -- balanced checkpointing ----------------------------------------------------------------------


def network(backend, x, weights):
    """Each layer's product is expensive, what follows cheap."""
    for weight in weights:
        x = backend.matmul(x, weight)
        for cheap in (backend.sigmoid, backend.silu, backend.exp, backend.sin, backend.gelu, backend.tanh):
            x = cheap(backend.multiply(x, 1.5))
    return x


def gradients_and_bytes_kept(backend, strategy=None):
    """Gradients of the network, and the bytes that its graph keeps after the forward pass."""
    rng = np.random.default_rng(0)
    weights = [backend.tensor(rng.normal(size=(32, 32)) / 6, requires_grad=True) for _ in range(4)]
    x = backend.tensor(rng.normal(size=(1024, 32)))
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        with nullcontext() if strategy is None else pb.checkpointing(strategy):
            out = network(backend, x, weights)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    grads = backend.backward(out)
    return [backend.grad(w, grads).tobytes() for w in weights], kept


@pytest.mark.parametrize("form", ["backend", "block"])
def test_balanced_checkpointing_saves_memory_and_gradients_are_bit_for_bit_the_same(form):
    plain, kept = gradients_and_bytes_kept(pb.Autodiff("numpy"))
    strategy = pb.BalancedCheckpointing()
    if form == "backend":
        balanced, kept_balanced = gradients_and_bytes_kept(pb.Autodiff("numpy", checkpointing=strategy))
    else:
        balanced, kept_balanced = gradients_and_bytes_kept(pb.Autodiff("numpy"), strategy)
    assert balanced == plain
    assert kept_balanced < 0.5 * kept
