"""Axes of time and rows cut as if they were long: a fixture for the tests of kernels that do so."""

from __future__ import annotations

from typing import Iterator

import pytest

from pullback.targets.cuda.kernels import extreme, timeline
from pullback.targets.cuda.kernels.table import kernel_for


@pytest.fixture
def in_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(timeline, "_TILE", 32)
    monkeypatch.setattr(timeline, "_STEPS", 4)
    monkeypatch.setattr(timeline, "_MOST_STEPS", 4)
    monkeypatch.setattr(timeline, "_ROW", 64)
    monkeypatch.setattr(timeline, "_LONG", 1)
    monkeypatch.setattr(timeline, "_SPAN", 1)
    monkeypatch.setattr(timeline, "_MOST_CHUNKS", 4)
    monkeypatch.setattr(extreme, "_BLOCK", 16)
    monkeypatch.setattr(extreme, "_ROWS", 8)
    monkeypatch.setattr(extreme, "_LONG", 1)
    kernel_for.cache_clear()
    yield
    kernel_for.cache_clear()
