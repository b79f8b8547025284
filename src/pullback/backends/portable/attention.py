"""Portable kernels: attention and rotary embedding."""

from __future__ import annotations

from typing import Any
