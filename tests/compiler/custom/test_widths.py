"""The same results with the vectors of other machines."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
import pytest

from pullback.targets.llvm import strided

from . import native, test_attention, test_convolution, test_gathering, test_philox, test_running, test_scan


@pytest.fixture(params=[16, 32, 64])
def register_bytes(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Code for vector registers of so many bytes, which every machine can run."""
    monkeypatch.setattr(strided, "REGISTER_BYTES", request.param)
    native.compiled.cache_clear()
    yield request.param
    native.compiled.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel_at_every_width(register_bytes: int, dtype: str) -> None:
    test_attention.test_attention_is_that_of_numpy(((2,), 1, 2, 21, 37, 5, 9), True, dtype)
    test_scan.test_scan_is_that_of_numpy((3, 5, 21), 1, True, dtype)
    test_scan.test_scan_is_that_of_numpy((21, 37), 1, False, dtype)
    test_scan.test_gradient_is_that_of_numpy((21, 37), 1, False, dtype)
    test_gathering.test_take((7, 33), 0, dtype)
    test_gathering.test_take_transposed((7, 33), 0, dtype)
    test_convolution.test_convolutions_are_those_of_numpy(3, dtype)
    test_running.test_positions_of_extremes((3, 37), 1, "argmax", dtype)
    test_running.test_running_sums_and_products((20, 37), 1, False, dtype)


def test_random_numbers_at_every_width(register_bytes: int) -> None:
    test_philox.test_words(1025, 3)
    test_philox.test_uniform_numbers(513, 1)
    test_philox.test_dropout_keeps_what_numpy_keeps(0.5)
    assert strided.lanes(4) * 4 == register_bytes == np.zeros(strided.lanes(8)).nbytes
