"""Changing shapes and moving elements."""

from __future__ import annotations

__all__: list[str] = []
