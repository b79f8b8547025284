"""Reductions and statistics."""

from __future__ import annotations

__all__: list[str] = []
