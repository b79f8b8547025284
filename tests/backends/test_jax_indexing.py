"""Array indices on JAX: as NumPy reads and writes, checked on processors, never waited for on other devices."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from .installed import optional, require

jax = optional("jax")
DEVICE = "jax:cpu"
X = np.arange(24.0).reshape(2, 3, 4)
INDICES = {
    "one array": np.array([1, 0, -1]),
    "two arrays": (np.array([1, 0]), np.array([2, -3])),
    "an array after a slice": (slice(None), np.array([2, 0, 2])),
    "arrays around a slice": (np.array([0, 1]), slice(1, None), np.array([-1, 2])),
    "after an ellipsis": (..., np.array([[3, 0], [0, -4]])),
    "with a new axis": (np.array([1]), None, np.array([0, 1])),
    "a mask": X > 7,
    "a mask of one axis": (slice(None), np.array([True, False, True])),
    "a mask and an array": (np.array([True, True]), np.array([0, 2])),
    "nothing": np.zeros(0, np.int64),
    "a number and an array": (1, np.array([0, 0])),
}


@pytest.fixture(autouse=True)
def _needs_jax():
    require(DEVICE)


@pytest.fixture
def kernels():
    from pullback.backends.jax_backend import BACKEND

    return BACKEND.xp


class HostRefused:
    """NumPy, but for bringing an array of JAX's to the host."""

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, thing, *args, **kwargs):
        assert not isinstance(thing, jax.Array), "an array was brought to the host"
        return np.asarray(thing, *args, **kwargs)


@pytest.fixture
def elsewhere(monkeypatch):
    """As on a device that one has to wait for: an array that is brought to the host is an error."""
    from pullback.backends import jax_backend, jax_indexing

    monkeypatch.setattr(jax_backend.BACKEND, "is_on_device", lambda raw: True)
    monkeypatch.setattr(jax_backend, "np", HostRefused())
    monkeypatch.setattr(jax_indexing, "np", HostRefused())


def on_device(index):
    parts = index if isinstance(index, tuple) else (index,)
    moved = tuple(jax.numpy.asarray(part) if isinstance(part, np.ndarray) else part for part in parts)
    return moved if isinstance(index, tuple) else moved[0]


@pytest.mark.parametrize("name", INDICES)
def test_parts_are_numpys(name, kernels):
    index, x = INDICES[name], jax.numpy.asarray(X)
    values = np.arange(100.0, 100.0 + X[index].size).reshape(X[index].shape)
    for operation, args in (("getitem", ()), ("setitem", (values,)), ("setitem", (7.0,)), ("index_add", (values,))):
        ours = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        found = getattr(kernels, operation)(x, *ours, on_device(index))
        np.testing.assert_array_equal(found, getattr(NUMPY.xp, operation)(X, *args, index))


BASIC = {
    "a number": 1,
    "from the end": (..., -1),
    "slices": (slice(None), slice(1, None), slice(-3, -1)),
    "an empty slice": (slice(None), slice(2, 1)),
    "a step": (slice(None), slice(None, None, 2), slice(1, None, 3)),
    "backwards": (slice(None, None, -1), 1, slice(3, None, -2)),
    "new axes": (None, 0, ..., None),
    "everything": (),
}


@pytest.mark.parametrize("name", [*BASIC, *INDICES])
def test_values_are_placed_among_zeros(name, kernels):
    index = BASIC[name] if name in BASIC else INDICES[name]
    values = np.arange(100, 100 + X[index].size).reshape(X[index].shape)
    for dtype in ("float32", "int32", "bool"):
        value = values.astype(dtype)
        if dtype == "bool" and name in INDICES:  # JAX adds no booleans
            continue
        found = kernels.place(jax.numpy.asarray(value), X.shape, on_device(index))
        np.testing.assert_array_equal(found, NUMPY.xp.place(value, X.shape, index))
        assert found.dtype == dtype


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1, 1, 1)])
def test_values_that_broadcast(shape, kernels):
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    index = np.array([0, 2, 0])
    found = kernels.setitem(jax.numpy.zeros(4), jax.numpy.asarray(values), on_device(index))
    np.testing.assert_array_equal(found, NUMPY.xp.setitem(np.zeros(4), values, index))


@pytest.mark.parametrize("operation", ["getitem", "setitem", "index_add"])
@pytest.mark.parametrize("index", [np.array([0, 2]), (slice(None), np.array([-4])), (..., np.array([4]))])
def test_positions_outside_raise_on_processors(operation, index, kernels):
    args = () if operation == "getitem" else (1.0,)
    with pytest.raises(IndexError, match="out of bounds"):
        getattr(kernels, operation)(jax.numpy.asarray(X), *args, on_device(index))


@pytest.mark.parametrize("name", [name for name in INDICES if "mask" not in name])
def test_positions_are_not_brought_to_the_host(name, kernels, elsewhere):
    index, x = on_device(INDICES[name]), jax.numpy.asarray(X)
    for operation, args in (("getitem", ()), ("setitem", (7.0,)), ("index_add", (1.0,))):
        found = getattr(kernels, operation)(x, *args, index)
        np.testing.assert_array_equal(found, getattr(NUMPY.xp, operation)(X, *args, INDICES[name]))


def test_what_is_read_outside_is_nan_where_positions_are_not_looked_at(elsewhere, kernels):
    x, far = jax.numpy.asarray(X), jax.numpy.asarray([0, 2])
    found = np.asarray(kernels.getitem(x, far))
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()
    np.testing.assert_array_equal(kernels.setitem(x, 1.0, jax.numpy.asarray([2, 5])), X)
    rows = np.asarray(kernels.embedding(far, jax.numpy.asarray(X[0, :2])))
    assert np.isfinite(rows[0]).all() and np.isnan(rows[1]).all()


def test_rows_and_classes_are_not_brought_to_the_host(elsewhere, kernels):
    indices, weight = jax.numpy.asarray([0, 1]), jax.numpy.asarray(X[0])
    np.testing.assert_array_equal(kernels.embedding(indices, weight), X[0, :2])
    np.testing.assert_array_equal(kernels.take(weight, indices, -2), X[0, :2])
    loss, *_ = kernels.cross_entropy(weight, jax.numpy.asarray([0, 3, 1]), None, -100, "mean", 0.0)
    assert np.isfinite(loss)


@pytest.mark.parametrize(("target", "least"), [([0, 4, 1], 4), ([0, -1, 1], -1)])
def test_targets_outside_raise_on_processors(target, least):
    logits = pb.asarray(X[0], device=DEVICE)
    with pytest.raises(pb.IndexingError, match=f"{least}"):
        pb.cross_entropy(logits, pb.asarray(np.array(target), device=DEVICE))
