"""Arrays with any strides as views of arrays that lie in order."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.backends import NUMPY
from pullback.compiler.eager.strides import base_of


def views():
    rng = np.random.default_rng(3)
    whole = np.arange(4 * 6 * 10 * 3.0).reshape(4, 6, 10, 3)
    yield whole
    yield whole[0, 0, 0, :1]
    yield whole[1:, ::2, 3:9:3, 1:]
    yield np.broadcast_to(whole[:, :1, :, 1:2], whole.shape)
    yield np.broadcast_to(np.float64(3.0), (2, 3))
    for _ in range(300):
        view = whole.transpose(rng.permutation(4))
        index = []
        for n in view.shape:
            start = int(rng.integers(0, n))
            index.append(slice(start, int(rng.integers(start + 1, n + 1)), int(rng.integers(1, 4))))
        view = view[tuple(index)]
        yield view[:, None] if rng.random() < 0.3 else view


def test_a_view_is_found_in_its_base():
    found = 0
    for view in views():
        base = base_of(view.shape, view.strides, view.itemsize)
        if base is None:
            continue
        found += 1
        last = sum((n - 1) * stride for n, stride in zip(view.shape, view.strides)) // view.itemsize
        strides = np.empty(base.shape).strides if base.shape else ()
        laid_out = np.lib.stride_tricks.as_strided(view, base.shape, strides)
        np.testing.assert_array_equal(base.taken(NUMPY.xp, laid_out), view)
        assert last < max(1, int(np.prod(base.shape)))
    assert found > 200


@pytest.mark.parametrize("make", [lambda x: x[::-1], lambda x: x[:, :0], lambda x: x.view(np.float32)[:, 1:3:1][:, :1]])
def test_what_has_no_base(make):
    array = make(np.arange(12.0).reshape(3, 4))
    assert base_of(array.shape, array.strides, 8) is None or array.itemsize == 4
