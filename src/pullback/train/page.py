"""A page of HTML that needs nothing but itself: tiles, charts and tables, light or dark as the reader likes."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Sequence

from ..markup import escaped
from .charts import CHART_STYLE

__all__ = ["Chart", "Table", "page"]

_REFRESH_SECONDS = 10
_MOST_ROWS = 400
_OPENING = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
BEGINNING = _OPENING.encode()  # by which a page of ours is known


@dataclass(frozen=True)
class Chart:
    """A chart of a page as SVG text; one with a `narrow` form takes the whole width, and has that form on phones."""

    svg: str
    narrow: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of a page. Columns whose names begin with a space hold numbers; a `folded` one opens at a click."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False


def page(
    *,
    title: str,
    status: str,
    tone: str,
    note: str,
    written: float,
    tiles: Sequence[tuple[str, str]],
    charts: Sequence[Chart],
    tables: Sequence[Table],
    error: str | None = None,
) -> str:
    """The text of the page. All words are escaped.

    `tone` is "running", "good", "warning" or "bad"; a page of a run that goes on reloads itself, and tells how long ago
    it was `written`, in seconds since 1970: a run that was killed cannot say that it does not go on.
    """
    from hashlib import sha256

    script = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    # The policy is a second wall: should a name get past the escaping, the browser would still run and load nothing.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; img-src data:"
    age = f' data-written="{written:.0f}"' if tone == "running" else ""
    reload = f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">' if tone == "running" else ""
    failure = f'<pre class="error">{escaped(error)}</pre>' if error else ""
    shown = "".join(_figure(chart) for chart in charts)
    numbers = "".join(
        f'<div class="card tile"><span>{escaped(label)}</span><b>{escaped(value)}</b></div>' for label, value in tiles
    )
    return (
        f'{_OPENING} content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{reload}'
        f"<title>{escaped(title)}</title><style>{_STYLE}{CHART_STYLE}</style></head><body><main>"
        f'<header><h1>{escaped(title)}</h1><span class="badge {tone}">{escaped(status)}</span>'
        f"<p{age}>{escaped(note)}</p></header>{failure}"
        f'<section class="tiles">{numbers}</section><section class="charts">{shown}</section>'
        f"{''.join(_table(table) for table in tables)}</main>"
        f'<div id="values" hidden></div><script>{_SCRIPT}</script></body></html>\n'
    )


def _figure(chart: Chart) -> str:
    if chart.narrow is None:
        return f'<figure class="card">{chart.svg}</figure>'
    return (
        f'<figure class="card wide broad">{chart.svg}</figure><figure class="card wide narrow">{chart.narrow}</figure>'
    )


def _table(table: Table) -> str:
    numeric = [name.startswith(" ") for name in table.columns]

    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if is_number else ''}>{escaped(cell.strip())}</{tag}>"
            for cell, is_number in zip(cells, numeric)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in table.rows[:_MOST_ROWS])
    if len(table.rows) > _MOST_ROWS:
        body += f'<tr><td colspan="{len(numeric)}">and {len(table.rows) - _MOST_ROWS:,} more</td></tr>'
    return (
        f'<details class="card"{"" if table.folded else " open"}><summary>{escaped(table.title)}</summary>'
        f'<div class="scroll"><table><thead><tr>{row(table.columns, "th")}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


_STYLE = """
:root{--paper:#f3f4f6;--card:#fff;--ink:#111827;--soft:#6b7280;--rule:#e5e7eb;
--good:#047857;--bad:#b91c1c;--warning:#b45309;--running:#1d4ed8}
@media (prefers-color-scheme:dark){:root{--paper:#0d0f13;--card:#16191f;--ink:#f3f4f6;--soft:#9ca3af;--rule:#2b303a;
--good:#34d399;--bad:#f87171;--warning:#fbbf24;--running:#60a5fa}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1032px;margin:0 auto;padding:28px 16px 48px}
header{margin:0 4px 18px}
h1{display:inline;font-size:22px;font-weight:650;margin:0 12px 0 0;overflow-wrap:anywhere}
header p{margin:4px 0 0;color:var(--soft)}
.badge{display:inline-block;padding:1px 10px;border-radius:11px;border:1px solid currentColor;font-size:12px;
font-weight:600;vertical-align:3px;overflow-wrap:anywhere}
.good{color:var(--good)}.bad{color:var(--bad)}.warning{color:var(--warning)}.running{color:var(--running)}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-bottom:16px}
.tile{padding:10px 14px}
.tile span{display:block;color:var(--soft);font-size:12px;overflow-wrap:anywhere}
.tile b{font-size:19px;font-weight:600;font-variant-numeric:tabular-nums}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px;margin-bottom:16px}
figure{margin:0;overflow-x:auto}
figure svg{display:block;width:100%;height:auto}
.wide{grid-column:1/-1}
.narrow{display:none}
svg[data-chart]{touch-action:pan-y}
details.card{margin-bottom:12px;padding:0 16px}
summary{cursor:pointer;padding:11px 0;font-weight:600}
.scroll{overflow-x:auto;padding-bottom:12px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:5px 18px 5px 0;border-top:1px solid var(--rule);vertical-align:top;
overflow-wrap:break-word}
th{color:var(--soft);font-weight:500;font-size:12px}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.error{background:var(--card);border:1px solid var(--bad);border-left-width:5px;border-radius:8px;padding:12px 16px;
overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace}
#values{position:fixed;pointer-events:none;background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:6px 10px;font-size:12px;box-shadow:0 4px 16px #0003;font-variant-numeric:tabular-nums;z-index:1}
#values div{display:flex;gap:14px;justify-content:space-between}
#values div:first-child{color:var(--soft)}
@media (max-width:720px){main{padding:18px 12px 40px}.charts{grid-template-columns:minmax(0,1fr);gap:12px}
.broad{display:none}.narrow{display:block}.chart text{font-size:12px}.chart .title{font-size:14px}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:8px}.tile{padding:8px 12px}.tile b{font-size:17px}
details.card{padding:0 12px}h1{display:block;margin-bottom:4px}th,td{padding-right:12px;font-size:13px}
th:first-child,td:first-child{position:sticky;left:0;background:var(--card)}}
@media print{body{background:none}.card{break-inside:avoid}}
"""

# How old the page of a run is that goes on; and the values under the pointer: the nearest step of any line, and what
# each line has there.
_SCRIPT = """
"use strict";
const box = document.getElementById("values"), space = "http://www.w3.org/2000/svg";
const shown = value => value === null ? "not finite" : String(Number(value.toPrecision(5)));
const nearest = (steps, step) => {
  let low = 0, high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1; else high = middle;
  }
  return low && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
};
const row = (left, right) => {
  const line = document.createElement("div");
  for (const text of [left, right]) {
    const part = document.createElement("span"); part.textContent = text; line.append(part);
  }
  return line;
};
for (const note of document.querySelectorAll("p[data-written]")) {
  const minutes = (Date.now() / 1000 - note.dataset.written) / 60;
  const [count, unit] = minutes < 120 ? [minutes, "minutes"] : minutes < 2880 ? [minutes / 60, "hours"]
    : [minutes / 1440, "days"];
  if (minutes >= 2) note.append(` That was ${Math.floor(count)} ${unit} ago.`);
}
for (const chart of document.querySelectorAll("svg[data-chart]")) {
  const data = JSON.parse(chart.dataset.chart), [x0, x1, left, right] = data.x, [y0, y1, bottom, top] = data.y;
  const scale = data.log ? Math.log10 : value => value;
  const across = step => left + (right - left) * (step - x0) / (x1 - x0);
  const up = value => bottom + (top - bottom) * (scale(value) - scale(y0)) / (scale(y1) - scale(y0));
  const marks = document.createElementNS(space, "g"); chart.append(marks);
  const mark = (name, attributes) => {
    const part = document.createElementNS(space, name);
    for (const key in attributes) part.setAttribute(key, attributes[key]);
    marks.append(part);
  };
  const show = event => {
    const place = chart.getBoundingClientRect(), zoom = chart.viewBox.baseVal.width / place.width;
    const step = x0 + ((event.clientX - place.left) * zoom - left) / (right - left) * (x1 - x0);
    const found = data.lines.map(line => nearest(line.steps, step));
    const at = data.lines.map((line, i) => line.steps[found[i]])
      .reduce((best, other) => Math.abs(other - step) < Math.abs(best - step) ? other : best);
    marks.replaceChildren(); box.replaceChildren(row("step", at.toLocaleString("en")));
    mark("line", {"class": "cursor", x1: across(at), x2: across(at), y1: top, y2: bottom});
    data.lines.forEach((line, i) => {
      const index = nearest(line.steps, at), value = line.values[index];
      const away = line.steps[index] === at ? "" : ` (step ${line.steps[index]})`;
      box.append(row(line.name + away, shown(value)));
      if (value === null) return;
      mark("circle", {"class": "d" + line.colour, cx: across(line.steps[index]), cy: up(value), r: 3});
    });
    box.hidden = false;
    const beside = event.clientX + 16 + box.offsetWidth > innerWidth ? -16 - box.offsetWidth : 16;
    box.style.left = Math.max(4, event.clientX + beside) + "px"; box.style.top = event.clientY + 12 + "px";
  };
  chart.addEventListener("pointermove", show);
  chart.addEventListener("pointerdown", show);
  chart.addEventListener("pointerleave", () => { marks.replaceChildren(); box.hidden = true; });
}
"""
