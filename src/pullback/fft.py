"""Discrete Fourier transforms: the array API extension `fft`."""

from __future__ import annotations
