"""Portable kernels: moving elements."""

from __future__ import annotations

from typing import Any
