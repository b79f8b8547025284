"""Portable kernels: special functions."""

from __future__ import annotations

from typing import Any
