"""Discrete Fourier transforms. NumPy loads `np.fft` when it is first used, so it is named in full."""

from __future__ import annotations

from typing import Any

import numpy as _np


def fft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _np.fft.fft(x, n, axis, norm)


def ifft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _np.fft.ifft(x, n, axis, norm)


def rfft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _np.fft.rfft(x, n, axis, norm)


def irfft(x: Any, n: int, axis: int, norm: str) -> Any:
    return _np.fft.irfft(x, n, axis, norm)
