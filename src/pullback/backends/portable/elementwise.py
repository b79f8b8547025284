"""Portable kernels: elementwise operations."""

from __future__ import annotations

from typing import Any
