"""Changes of a rule that cannot change a gradient, with the reason: (family, before, after)."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "indexing",
        "xp.place_into(total, g, index)",
        "negated(xp.place_into(total, g, index), 0)",
    ): "it adds in place: nobody looks at what it returns",
}
