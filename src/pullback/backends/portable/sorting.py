"""Portable kernels: sorting and searching."""

from __future__ import annotations

from typing import Any
