"""Portable kernels: pooling and interpolation."""

from __future__ import annotations

from typing import Any
