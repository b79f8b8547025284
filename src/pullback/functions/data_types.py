"""Dtypes: promotion, limits, conversion; what this namespace can do."""

from __future__ import annotations

__all__: list[str] = []
