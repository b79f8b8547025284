"""Portable kernels: losses."""

from __future__ import annotations

from typing import Any
