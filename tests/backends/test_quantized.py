"""The quantized kind: int8 with a scale per channel."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.backends.quantization import SCHEMES, Scheme, register_scheme
from pullback.backends.quantized import QuantizedArray
from pullback.dtypes import DType

from . import strict
from .installed import require

RNG = np.random.default_rng(1)
W = RNG.standard_normal((6, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_values_are_within_half_a_step(axis):
    q = pb.quantize(W, "int8", axis=axis)
    other = None if axis is None else tuple(a for a in range(2) if a != axis % 2)
    step = np.max(np.abs(W), axis=other, keepdims=True) / 127
    values = q.dequantize()
    assert values.dtype == pb.float32
    assert values.shape == W.shape
    assert np.all(np.abs(values.numpy() - W) <= step / 2 * 1.0001)


def test_quantizing_again_gives_the_same_bytes():
    q = pb.quantize(W)
    again = pb.quantize(q.dequantize())
    for a, b in zip(q.data.parts, again.data.parts):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert q.data.parts[0].tobytes() == again.data.parts[0].tobytes()


def test_what_it_is():
    q = pb.quantize(W, axis=0)
    assert q.shape == (6, 4)
    assert q.ndim == 2
    assert q.size == 24
    assert q.dtype.name == "qint8"
    assert q.dtype.kind == "quantized"
    assert q.nbytes == 24 + 6 * 4
    assert q.device == "numpy"
    assert not q.requires_grad
    assert repr(q).startswith("tensor([[")
    assert repr(q).endswith("dtype=qint8, axis=-2)")


def test_zeros_and_edges():
    assert pb.quantize(np.zeros((2, 2), np.float32)).dequantize().tolist() == [[0, 0], [0, 0]]
    assert pb.quantize(np.asarray(2.5, np.float32), axis=None).dequantize().item() == 2.5
    np.testing.assert_allclose(pb.quantize(np.asarray([1e-30, -1e-30])).dequantize().numpy(), [1e-30, -1e-30])


@pytest.mark.parametrize(
    ("values", "options", "error", "match"),
    [
        ([1, 2], {}, pb.DtypeError, "floating-point array, got int64"),
        ([1.0], {"scheme": "nf9"}, pb.DtypeError, "unknown scheme 'nf9'"),
        ([1.0], {"axis": 1}, pb.ShapeError, "axis 1 is out of range"),
        ([], {}, pb.ShapeError, "no values"),
        ([np.nan], {}, ValueError, "NaN or infinity"),
    ],
)
def test_bad_input(values, options, error, match):
    with pytest.raises(error, match=match):
        pb.quantize(values, **options)


def test_it_cannot_require_a_gradient():
    q = pb.quantize(W)
    for function in (
        lambda: q.set_requires_grad(True),
        lambda: setattr(q, "requires_grad", True),
        lambda: pb.tensor(q, requires_grad=True),
    ):
        with pytest.raises(pb.DtypeError, match="cannot require a gradient"):
            function()
    assert not q.requires_grad


@pytest.mark.parametrize("write", [lambda t: t.__setitem__(0, 1.0), lambda t: t.data_mut()])
def test_it_cannot_be_written(write):
    quantized = pb.quantize(W)
    with pytest.raises(pb.DtypeError, match=r"cannot be written.*dequantize"):
        write(quantized)


def test_operations_say_to_dequantize():
    q = pb.quantize(W)
    for function in (lambda: q + 1, lambda: pb.tensor(1.0) * q, lambda: pb.sum(q), lambda: q[0]):
        with pytest.raises(pb.DtypeError, match=r"t\.dequantize\(\)"):
            function()


def test_a_product_has_a_gradient_for_the_other_factor_and_keeps_only_the_quantized_data():
    q = pb.quantize(W)
    x = pb.asarray(RNG.standard_normal((2, 3, 6)).astype(np.float32)).set_requires_grad(True)
    values = q.dequantize().numpy()
    y = x @ q
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy() @ values, rtol=1e-5)
    assert [s for s in y._node.saved if isinstance(s, QuantizedArray)] == [q._raw]
    assert not any(isinstance(s, np.ndarray) for s in y._node.saved)
    g = RNG.standard_normal(y.shape).astype(np.float32)
    np.testing.assert_allclose(pb.backward(y, g)[x].numpy(), g @ values.T, rtol=1e-5, atol=1e-6)


def test_products_from_the_left_and_with_vectors():
    q = pb.quantize(W)
    values = q.dequantize().numpy()
    for shape in ((4,), (4, 2), (3, 4, 2)):
        y = pb.asarray(RNG.standard_normal(shape).astype(np.float32)).set_requires_grad(True)
        product = q @ y
        np.testing.assert_allclose(product.detach().numpy(), values @ y.detach().numpy(), rtol=1e-5, atol=1e-6)
        g = np.ones(product.shape, np.float32)
        expected = values.T @ g
        np.testing.assert_allclose(pb.backward(product, g)[y].numpy(), expected, rtol=1e-5, atol=1e-6)
    v = pb.asarray(np.ones(6, np.float32))
    np.testing.assert_allclose((v @ q).numpy(), np.ones(6, np.float32) @ values, rtol=1e-5)


def test_products_can_be_differentiated_twice_and_forward():
    q = pb.quantize(W)
    x = pb.asarray(np.ones((1, 6), np.float32)).set_requires_grad(True)
    y = x @ q
    g = pb.backward(pb.sum(y * y), create_graph=True)[x]
    values = q.dequantize().numpy()
    second = pb.backward(pb.sum(g))[x].numpy()
    np.testing.assert_allclose(second, 2 * np.ones((1, 6)) @ values @ values.T, rtol=1e-5)
    _, tangent = pb.jvp(lambda t: t @ q, (x.detach(),), (np.ones((1, 6), np.float32),))
    np.testing.assert_allclose(tangent.numpy(), np.ones((1, 6)) @ values, rtol=1e-5)


def test_both_factors_quantized_is_refused():
    with pytest.raises(pb.DtypeError, match="both factors"):
        pb.quantize(W) @ pb.quantize(W.T)


def test_the_expanded_values_are_not_kept_alive():
    q = pb.quantize(W)
    x = pb.asarray(np.ones((1, 6), np.float32)).set_requires_grad(True)
    expanded = []
    original = type(q.data).dequantize

    class Watched(np.ndarray):
        pass

    def watched(self):
        values = original(self).view(Watched)
        expanded.append(weakref.ref(values))
        return values

    type(q.data).dequantize = watched
    try:
        y = x @ q
    finally:
        type(q.data).dequantize = original
    gc.collect()
    assert y.requires_grad
    assert expanded[0]() is None


def test_copies_pickles_and_moves_keep_the_bytes():
    q = pb.quantize(W)
    for again in (
        copy.deepcopy(q),
        copy.copy(q),
        pickle.loads(pickle.dumps(q)),
        q.detach(),
        q.clone(),
        pb.asarray(q.data),
    ):
        assert type(again) is type(q)
        assert again.axis == q.axis
        assert [p.tobytes() for p in again.data.parts] == [p.tobytes() for p in q.data.parts]
    require(strict.DEVICE)
    there = q.to_device(strict.DEVICE)
    assert there.device == strict.DEVICE
    assert there.dequantize().device == strict.DEVICE
    back = there.to_device("numpy")
    assert [p.tobytes() for p in back.data.parts] == [p.tobytes() for p in q.data.parts]
    np.testing.assert_array_equal(there.numpy(), q.numpy())


def test_quantizing_elsewhere_gives_the_same_numbers():
    require(strict.DEVICE)
    there = pb.quantize(pb.asarray(W, device=strict.DEVICE))
    np.testing.assert_array_equal(there.numpy(), pb.quantize(W).numpy())


def test_dequantize_of_an_ordinary_tensor_is_itself():
    t = pb.tensor([1.0])
    assert t.dequantize() is t


def test_other_schemes_can_be_added():
    class Signs(Scheme):
        name = "signs"
        dtype = DType("qsign", "quantized", 1, None)

        def encode(self, xp, values, axis):
            return (xp.greater_equal(values, 0), xp.mean(xp.abs(values), None, False))

        def decode(self, xp, parts, axis, shape):
            return xp.where(parts[0], parts[1], -parts[1])

    register_scheme(Signs())
    try:
        q = pb.quantize(np.asarray([1.0, -3.0], np.float32), "signs", axis=None)
        assert q.dequantize().tolist() == [2.0, -2.0]
        assert q.nbytes == 2 + 4
    finally:
        del SCHEMES["signs"]
