"""Random words and what is made of them, bit for bit those of NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy.normalization import dropout
from pullback.backends.numpy.random import philox_uint32, unit_of_two_words
from pullback.targets.custom_kernels import Philox
from pullback.targets.llvm.kernels import philox

from .native import run

KEY = 0x0123456789ABCDEF
OFFSETS = [0, 1, 2, 3, 4, 1021, 2**34 - 3, 2**63 + 5, 2**64 - 8]
COUNTS = [0, 1, 3, 17, 64, 1023, 1024, 1025, 5000]


def _made(kernel: Philox, key: int, offset: int, dtype: Any, parts: int = 1) -> Any:
    out = np.full(kernel.count + 64, 1, dtype)
    assert philox.supports(kernel)
    run(philox.emit, kernel, [np.array(key, np.uint64), np.array(offset, np.uint64), out], parts)
    np.testing.assert_array_equal(out[kernel.count :], np.ones(64, dtype))  # nothing is written behind the end
    return out[: kernel.count]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("count", COUNTS)
def test_words(count: int, offset: int) -> None:
    for key in (KEY, 0, 2**64 - 1):
        np.testing.assert_array_equal(
            _made(Philox("uint32", count), key, offset, np.uint32), philox_uint32(key, offset, count)
        )


def test_domains_are_streams_of_their_own() -> None:
    domain = 0xFEDCBA9800000007
    got = _made(Philox("uint32", 100, domain=domain), KEY, 5, np.uint32)
    np.testing.assert_array_equal(got, philox_uint32(KEY, 5, 100, domain))


@pytest.mark.parametrize("parts", [2, 3])
def test_work_can_be_shared(parts: int) -> None:
    got = _made(Philox("uint32", 5000), KEY, 3, np.uint32, parts)
    np.testing.assert_array_equal(got, philox_uint32(KEY, 3, 5000))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("count", [1, 17, 511, 512, 513, 3000])
def test_uniform_numbers(count: int, offset: int) -> None:
    expected = unit_of_two_words(philox_uint32(KEY, offset, 2 * count).reshape(count, 2).T)
    np.testing.assert_array_equal(_made(Philox("float64", count), KEY, offset, np.float64), expected)


@pytest.mark.parametrize("count", [1, 17, 1024, 3000])
def test_uniform_numbers_of_single_precision(count: int) -> None:
    expected = (philox_uint32(KEY, 6, count) >> np.uint32(8)) * np.float32(2.0**-24)
    np.testing.assert_array_equal(_made(Philox("float32", count), KEY, 6, np.float32), expected)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_dropout_keeps_what_numpy_keeps(p: float) -> None:
    x = np.zeros((40, 51), np.float32)
    kernel = Philox("bool", x.size, threshold=round(p * 2**32))
    got = _made(kernel, KEY, 7, np.uint8)
    np.testing.assert_array_equal(got.reshape(x.shape), dropout(x, p, KEY, 7)[1])
