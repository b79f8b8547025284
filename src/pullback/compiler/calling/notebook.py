"""What a notebook shows of a compiled function: its kernels, its memory, and why there are several programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...markup import bytes_text, card, escaped, folded, heading, preformatted, table

if TYPE_CHECKING:
    from .compiled import Compiled

_MOST_KERNELS = 40
_MOST_LINES = 200
_MOST_REASONS = 8


def html(compiled: Compiled) -> str:
    """A card about a compiled function."""
    traces = compiled.traces
    notes = [f"{traces} program{'s' if traces != 1 else ''}"]
    if not compiled._programs:
        return card(heading(f"compiled {compiled._name}", ["no program yet: call it"]))
    latest = compiled._programs[0]
    notes += [] if latest.device == "numpy" else [latest.device]
    memory = compiled.memory
    parts = [
        heading(f"compiled {compiled._name}", [*notes, *[f"{n} {bytes_text(size)}" for n, size in memory.items()]])
    ]
    reasons = compiled.recompilations
    if reasons:
        why = [(str(number), reason) for number, reason in enumerate(reasons, 2)][-_MOST_REASONS:]
        parts.append(folded("why there is more than one program", table(["program", "because"], why), is_open=True))
    kernels = list(compiled.kernels)
    rows = [_row(use) for use in kernels[:_MOST_KERNELS]]
    more = len(kernels) - len(rows)
    rows += [(f"and {more:,} more", "", "", "")] if more > 0 else []
    calls = sum(getattr(use, "times", 1) for use in kernels)
    summary = f"{len(kernels):,} kernel{'s' if len(kernels) != 1 else ''}, {calls:,} call{'s' if calls != 1 else ''}"
    parts.append(folded(escaped(summary), table(["kernel", "how", " times", "of"], rows), is_open=True))
    guards = compiled.guards
    if guards:
        summary = f"{len(guards):,} guard{'s' if len(guards) != 1 else ''}: what it depends on beside its inputs"
        parts.append(folded(summary, preformatted(_lines(guards))))
    parts.append(folded("program", preformatted(_lines(compiled.source.splitlines()))))
    return card(*parts)


def _row(use: object) -> tuple[str, str, str, str]:
    text = repr(use)
    how = getattr(use, "how", "")
    sites = getattr(use, "sites", ())
    name = text.partition(f" ({how})")[0] if how else text
    return name, how, f"{getattr(use, 'times', 1):,}", ", ".join(sites[:2]) + (", ..." if len(sites) > 2 else "")


def _lines(lines: list[str]) -> str:
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([f"... ({more:,} more lines)"] if more > 0 else [])])
