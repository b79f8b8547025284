"""Reading, writing and adding to parts of PyTorch's arrays: as NumPy does, and into the memory that is there."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from .installed import optional, require

torch = optional("torch")
SHAPE = (2, 3, 4)
INDICES = {
    "a number": 1,
    "from the end": (..., -1),
    "numbers alone": (1, 0, 3),
    "slices": (slice(None), slice(1, None)),
    "beyond the ends": (slice(-9, 9), slice(2, 77)),
    "an empty slice": (slice(None), slice(2, 1)),
    "a step": (slice(None), slice(None, None, 2)),
    "backwards": (slice(None, None, -1), 1, slice(3, None, -2)),
    "new axes": (None, 0, ..., None),
    "numbers of NumPy's": (np.int64(1), slice(np.int64(1), None)),
    "everything": (),
    "an ellipsis": ...,
    "positions": (slice(None), np.array([2, 0, 2])),
    "positions backwards": (slice(None, None, -1), np.array([0, 0])),
    "a mask": np.arange(24).reshape(SHAPE) % 3 == 0,
}


@pytest.fixture(autouse=True)
def _needs_torch():
    require("torch:cpu")


@pytest.fixture
def xp():
    from pullback.backends.torch_backend import BACKEND

    return BACKEND.xp


def arrays(index, layout):
    """An array and a value for `index` in it; `layout` is an order of the axes in memory."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal(SHAPE).transpose(layout).copy().transpose(np.argsort(layout))
    return x, generator.standard_normal(x[index].shape)


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_parts_are_those_of_numpy(xp, index, layout):
    x, value = arrays(index, layout)
    x_there, value_there = torch.from_numpy(x), torch.from_numpy(value)
    np.testing.assert_array_equal(xp.getitem(x_there, index), x[index])
    for name in ("setitem", "index_add"):
        found, expected = getattr(xp, name)(x_there, value_there, index), getattr(NUMPY.xp, name)(x, value, index)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    np.testing.assert_allclose(xp.index_add(x_there, 2.0, index), NUMPY.xp.index_add(x, 2.0, index), rtol=1e-15)
    np.testing.assert_array_equal(x_there, arrays(index, layout)[0])  # it was not written to
    placed = xp.place(value_there, SHAPE, index)
    np.testing.assert_allclose(placed, NUMPY.xp.place(value, SHAPE, index), rtol=1e-15)
    total = x_there.clone()
    xp.place_into(total, value_there, index)
    np.testing.assert_allclose(total, x_there + placed, rtol=1e-15)


@pytest.mark.parametrize("index", [2, -3, (0, 3), (0, 0, 0, 0), (..., 0, ...), 10**30])
def test_what_is_not_there_is_said_in_the_words_of_numpy(index):
    x = np.zeros(SHAPE)
    with pytest.raises(IndexError) as expected:
        pb.asarray(x)[index]
    with pytest.raises(type(expected.value)) as found:
        pb.asarray(torch.from_numpy(x))[index]
    if index != (..., 0, ...):
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint16", "uint64", "int8", "bool", "complex64"])
def test_placing_keeps_the_dtype(xp, dtype):
    value = torch.ones(4).to(getattr(torch, dtype))
    out = xp.place(value, SHAPE, (1, 2))
    assert out.dtype == value.dtype
    assert torch.equal(out[1, 2], value) and torch.equal(out[0], torch.zeros_like(out[0]))
