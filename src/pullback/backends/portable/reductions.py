"""Portable kernels: reductions."""

from __future__ import annotations

from typing import Any
