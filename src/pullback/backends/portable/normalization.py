"""Portable kernels: normalisation layers, dropout and embedding."""

from __future__ import annotations

from typing import Any
