"""Tables of text in aligned columns, and sizes in them."""

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


def size(count: int) -> str:
    """A number of bytes.

    >>> from pullback.cli.tables import size
    >>> size(3 << 29), size(1 << 19)
    ('1.50 GiB', '0.5 MiB')
    """
    return f"{count / 2**30:.2f} GiB" if count >= 1 << 28 else f"{count / 2**20:.1f} MiB"
