"""Tables of text in aligned columns."""

from __future__ import annotations

from typing import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows, the first of them the heading, with every column as wide as its longest entry.

    >>> from pullback.cli.tables import aligned
    >>> print(aligned([["name", "size"], ["a", "10"]]))
    name  size
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
