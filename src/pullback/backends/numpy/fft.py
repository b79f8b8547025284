"""Discrete Fourier transforms."""

from __future__ import annotations

from typing import Any

from numpy import fft as _fft


def fft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _fft.fft(x, n, axis, norm)


def ifft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _fft.ifft(x, n, axis, norm)


def rfft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _fft.rfft(x, n, axis, norm)


def irfft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _fft.irfft(x, n, axis, norm)
