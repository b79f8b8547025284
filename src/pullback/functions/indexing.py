"""Taking and placing elements."""

from __future__ import annotations

__all__: list[str] = []
