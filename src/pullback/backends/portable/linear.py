"""Portable kernels: matrix products."""

from __future__ import annotations

from typing import Any
