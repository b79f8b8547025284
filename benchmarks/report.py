"""Measurements as a table for people, with Pullback's ratio to each peer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from .measure import Measurement


def table(measurements: Iterable[Measurement], baseline: str | None = None) -> str:
    """A block per workload and metric: a line per system, best first, and what Pullback takes compared with it.

    With a `baseline`, each system is compared with that one instead.
    """
    rows: list[tuple[str, str, str]] = []
    blocks: dict[tuple[str, str], list[Measurement]] = {}
    for m in measurements:
        blocks.setdefault((m.workload, m.metric), []).append(m)
    for (workload, metric), block in blocks.items():
        reference = baseline or "pullback"
        own = next((m.value for m in block if m.system == reference), None)
        rows.append((workload, metric, f"/ {baseline}" if baseline else "pullback /"))
        for m in sorted(block, key=lambda m: m.value):
            ratio = ""
            if own is not None and m.system != reference and m.unit != "ratio" and m.value > 0:
                ratio = f"{m.value / own if baseline else own / m.value:.2f}"
            rows.append(("  " + m.system, readable(m.value, m.unit), ratio))
    return _aligned(rows)


def readable(value: float, unit: str) -> str:
    if unit == "us":
        return f"{value / 1000:.2f} ms" if value >= 10_000 else f"{value:.1f} us"
    if unit == "bytes":
        return f"{value / 2**20:.2f} MiB" if value >= 2**20 else f"{value / 1024:.1f} KiB"
    if unit == "ratio":
        return f"{value:.3f}"
    return f"{value:g} {unit}"


def _aligned(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = []
    for is_title, group in groupby(rows, key=lambda row: not row[0].startswith("  ")):
        for name, value, ratio in group:
            if is_title and lines:
                lines.append("")
            lines.append(f"{name:<{widths[0]}}  {value:>{widths[1]}}  {ratio:>{widths[2]}}".rstrip())
    return "\n".join(lines)
