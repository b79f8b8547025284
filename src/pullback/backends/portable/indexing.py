"""Portable kernels: reading and writing parts."""

from __future__ import annotations

from typing import Any
