"""Random words in Triton's interpreter, bit for bit those of NumPy's kernels: the tests of the native kernel."""

from __future__ import annotations

import pytest

from ..custom import test_philox as native
from .custom import run


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "run", run)


@pytest.mark.parametrize("offset", native.OFFSETS)
def test_words(offset: int) -> None:
    native.test_words(17, offset)


@pytest.mark.parametrize("count", [0, 1, 2049])
def test_any_number_of_words(count: int) -> None:
    native.test_words(count, 3)


def test_domains_are_streams_of_their_own() -> None:
    native.test_domains_are_streams_of_their_own()


@pytest.mark.parametrize("offset", native.OFFSETS)
def test_uniform_numbers(offset: int) -> None:
    native.test_uniform_numbers(513, offset)


def test_uniform_numbers_of_single_precision() -> None:
    native.test_uniform_numbers_of_single_precision(3000)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_dropout_keeps_what_numpy_keeps(p: float) -> None:
    native.test_dropout_keeps_what_numpy_keeps(p)
