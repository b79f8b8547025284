"""Portable kernels: discrete Fourier transforms."""

from __future__ import annotations

from typing import Any
