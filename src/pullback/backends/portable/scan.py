"""Portable kernels: linear recurrences."""

from __future__ import annotations

from typing import Any
