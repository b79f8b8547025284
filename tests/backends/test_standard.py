"""Backends over array API namespaces: indexing, promotion, registration."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.tables import TENSORS
from pullback.backends.standard import StandardBackend

from . import strict
from .installed import optional, require

array_api_strict = optional("array_api_strict")

RNG = np.random.default_rng(0)
X = RNG.random((4, 5))
INDICES = {
    "integer": 0,
    "negative integer": -1,
    "slice beyond the end": (slice(None, 9), 2),
    "empty slice": slice(3, 3),
    "backwards": (slice(3, 0, -2), 0),
    "all backwards": slice(None, None, -1),
    "new axis": (Ellipsis, None, 1),
    "repeated": np.asarray([0, 0, 3, 0, 0, 3]),
    "two arrays": (np.asarray([[0, 1], [0, 1]]), np.asarray([2, 2])),
    "array and slice": (np.asarray([1, 1]), slice(None, None, -2)),
    "list": [2, 0],
    "mask": X > 0.5,
    "mask of rows": np.asarray([True, False, True, False]),
    "everything": Ellipsis,
}
DEVICES = [strict.DEVICE, "jax:cpu", "torch:cpu"]


@pytest.fixture(params=DEVICES)
def device(request):
    require(request.param)
    return request.param


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
class TestIndexing:
    def test_reading(self, device, index):
        x = pb.asarray(X, device=device)
        np.testing.assert_array_equal(TENSORS.getitem(x, index).numpy(), X[index])

    def test_writing_a_number(self, device, index):
        expected = X.copy()
        expected[index] = 7.0
        x = pb.asarray(X, device=device)
        np.testing.assert_array_equal(TENSORS.setitem(x, 7.0, index).numpy(), expected)
        np.testing.assert_array_equal(x.numpy(), X)

    def test_writing_an_array(self, device, index):
        values = RNG.random(X[index].shape)
        if index is INDICES["repeated"] or index is INDICES["array and slice"] or index is INDICES["two arrays"]:
            values[...] = values[:1]  # which of several values stays is not promised
        expected = X.copy()
        expected[index] = values
        written = TENSORS.setitem(pb.asarray(X, device=device), pb.asarray(values, device=device), index)
        np.testing.assert_array_equal(written.numpy(), expected)

    def test_adding(self, device, index):
        values = RNG.random(X[index].shape)
        expected = X.copy()
        np.add.at(expected, index, values)
        added = TENSORS.index_add(pb.asarray(X, device=device), pb.asarray(values, device=device), index)
        np.testing.assert_allclose(added.numpy(), expected, rtol=1e-14)


def test_the_last_of_several_values_stays():
    require(strict.DEVICE)
    x = pb.tensor([0.0, 0.0], device=strict.DEVICE)
    written = TENSORS.setitem(x, pb.tensor([1.0, 2.0, 3.0], device=strict.DEVICE), np.asarray([1, 0, 1]))
    assert written.tolist() == [2.0, 3.0]


def test_many_values_for_one_place_are_added_exactly():
    require(strict.DEVICE)
    values = pb.asarray(np.ones(1000), device=strict.DEVICE)
    added = TENSORS.index_add(pb.asarray(np.zeros(3), device=strict.DEVICE), values, np.ones(1000, np.int64))
    assert added.tolist() == [0.0, 1000.0, 0.0]


def test_out_of_range_is_an_index_error(device):
    x = pb.asarray(X, device=device)
    with pytest.raises(IndexError):
        TENSORS.getitem(x, np.asarray([7]))


SCALARS = [2, 2.5, True]


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "pow", "maximum", "less", "logical_and", "atan2"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_python_numbers_and_mixed_kinds_as_numpy_has_them(device, name, scalar, dtype):
    x = np.asarray([1, 2, 3]).astype(dtype)
    here, there = pb.asarray(x), pb.asarray(x, device=device)
    expected, result = getattr(TENSORS, name)(here, scalar), getattr(TENSORS, name)(there, scalar)
    assert result.device == device
    if not device.startswith("jax"):
        assert result.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)


def test_integers_and_floats_together(device):
    result = pb.asarray(np.asarray([1, 2]), device=device) * pb.asarray(np.asarray([0.5, 0.5]), device=device)
    assert result.dtype == pb.float64
    assert result.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "any", "all"])
def test_reductions_of_booleans(device, name):
    values = np.asarray([[True, False], [True, True]])
    for axis in (None, (-1,), (-2, -1), ()):
        expected = getattr(TENSORS, name)(pb.asarray(values), axis, False)
        result = getattr(TENSORS, name)(pb.asarray(values, device=device), axis, False)
        np.testing.assert_array_equal(result.numpy(), expected.numpy())


def test_dtypes_that_a_library_lacks_are_refused():
    require(strict.DEVICE)
    with pytest.raises(pb.DtypeError, match="strict has no dtype float16; it has bool, int8"):
        pb.tensor([1.0], dtype="float16", device=strict.DEVICE)


def test_arrays_stay_on_their_device():
    require(strict.DEVICE)
    x = pb.tensor([1.0, 2.0], device=strict.DEVICE, requires_grad=True)
    y = pb.sum(pb.where(x > 1, x * x, 0) + pb.zeros_like(x) + 1)
    assert y.device == pb.backward(y)[x].device == strict.DEVICE
    assert type(x.data) is type(array_api_strict.asarray(0.0))


def test_a_third_party_adds_a_backend_in_a_few_lines():
    class Array(np.ndarray):
        """Somebody's arrays."""

    class Mine(StandardBackend):
        def _from_host(self, data, dtype, device):
            return np.array(data, dtype).view(Array)

        def kernels(self):
            return {"sin": lambda x: np.sin(x) + 100}

        def from_scalar(self, value):
            return np.asarray(value).view(Array)

    namespace = type("namespace", (), dict(vars(np), astype=staticmethod(lambda x, dtype: x.astype(dtype))))
    pb.backends.register(Mine(namespace, "mine", (Array,)))
    try:
        w = pb.tensor([1.0, 2.0], device="mine", requires_grad=True)
        assert w.device == "mine"
        assert "mine" in pb.backends.devices()
        assert pb.backward(pb.sum(w * w))[w].tolist() == [2.0, 4.0]
        np.testing.assert_allclose(TENSORS.sin(w).detach().tolist(), np.sin([1.0, 2.0]) + 100, rtol=1e-6)
    finally:
        del pb.backends._by_name["mine"]
        pb.backends.register(pb.backends.NUMPY)  # forgets the types of what is no longer registered
