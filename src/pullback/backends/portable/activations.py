"""Portable kernels: activation functions."""

from __future__ import annotations

from typing import Any
