"""Portable kernels: convolutions."""

from __future__ import annotations

from typing import Any
