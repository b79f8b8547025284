"""What notebooks show of an object: small pieces of HTML that need no style of their own around them.

Colours are those of whatever is behind, and greys that can be seen on light and dark; all words are escaped.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any, Callable, Iterable, Sequence

__all__ = ["bytes_text", "card", "escaped", "folded", "heading", "preformatted", "shape_text", "shown_safely", "table"]

_FONT = "font:13px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
_FIXED = "font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_RULE = "1px solid #8884"  # to be seen on white and on black
_SOFT = "opacity:.7"
_LONGEST = 20_000  # characters of a text that is shown as it is
_SPECIAL = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#x27;"}
_TONES = {"good": "#059669", "bad": "#ef4444", "warning": "#d97706", "plain": "#7b8290"}


def escaped(text: object) -> str:
    """Text that is shown as it is wherever it stands in HTML or SVG; what XML cannot hold is replaced.

    >>> from pullback.markup import escaped
    >>> escaped("a < b")
    'a &lt; b'
    """
    cleaned = re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", str(text))
    return cleaned.translate(_SPECIAL)


def bytes_text(count: int) -> str:
    """A number of bytes in words.

    >>> from pullback.markup import bytes_text
    >>> [bytes_text(count) for count in (12, 2048, 5 << 20, 3 << 29)]
    ['12 B', '2 KiB', '5 MiB', '1.5 GiB']
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.4g} {unit}"
    return f"{count} B"


def shape_text(shape: Sequence[int]) -> str:
    """A shape in words.

    >>> from pullback.markup import shape_text
    >>> shape_text((64, 10)), shape_text(())
    ('64 \u00d7 10', 'scalar')
    """
    return " \u00d7 ".join(map(str, shape)) or "scalar"


def card(*parts: str) -> str:
    """What one object shows."""
    return (
        f'<div style="{_FONT};display:inline-block;box-sizing:border-box;max-width:100%;overflow-x:auto;'
        f'border:{_RULE};border-radius:8px;padding:8px 12px">{"".join(parts)}</div>'
    )


def heading(title: str, notes: Iterable[str], badge: str = "", tone: str = "plain") -> str:
    """The first line: what it is, and what is to be known of it in short."""
    words = " \u00b7 ".join(f'<span style="white-space:nowrap">{escaped(note)}</span>' for note in notes)
    mark = (
        f' <span style="color:{_TONES[tone]};border:1px solid;border-radius:9px;padding:0 7px;font-size:11px;'
        f'font-weight:600">{escaped(badge)}</span>'
        if badge
        else ""
    )
    return f'<div><b>{escaped(title)}</b>{mark} <span style="{_SOFT}">{words}</span></div>'


def preformatted(text: str) -> str:
    """Text in lines, as it is; a long one is cut off."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n... ({len(text) - _LONGEST:,} more characters)"
    return (
        f'<pre style="{_FIXED};margin:6px 0 0;padding:0;background:none;border:0;color:inherit;overflow-x:auto;'
        f'white-space:pre">{escaped(text)}</pre>'
    )


def folded(summary: str, body: str, is_open: bool = False) -> str:
    """Something to open by a click; `summary` is HTML."""
    return (
        f'<details style="margin:2px 0 0"{" open" if is_open else ""}><summary style="cursor:pointer">{summary}'
        f'</summary><div style="margin-left:7px;padding-left:12px;border-left:{_RULE}">{body}</div></details>'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Columns whose names begin with a space hold numbers; one without any names has no heading."""
    place = "padding:1px 14px 1px 0;border:0;background:none;vertical-align:top"
    sides = ["right" if name.startswith(" ") else "left" for name in columns]

    def row(cells: Sequence[str], tag: str, style: str) -> str:
        parts = zip(cells, sides)
        return "".join(f'<{tag} style="{place};text-align:{side}{style}">{escaped(c)}</{tag}>' for c, side in parts)

    heads = f"<tr>{row(columns, 'th', f';font-weight:500;{_SOFT}')}</tr>" if any(columns) else ""
    body = "".join(f'<tr style="background:none">{row(cells, "td", "")}</tr>' for cells in rows)
    style = f"{_FONT};font-size:12px;border-collapse:collapse;margin:4px 0 0;font-variant-numeric:tabular-nums"
    return f'<table style="{style};color:inherit;border:0">{heads}{body}</table>'


def shown_safely(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """A `_repr_html_` that does not raise: where it cannot be made, the object's text is shown."""

    @wraps(method)
    def show(self: Any) -> str:
        try:
            return method(self)
        except Exception:
            try:
                text = repr(self)
            except Exception:
                text = f"<{type(self).__name__}>"
            return preformatted(text)

    return show
