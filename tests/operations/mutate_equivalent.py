"""Changes of a rule that cannot change a gradient, with the reason: (family, before, after)."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {}
