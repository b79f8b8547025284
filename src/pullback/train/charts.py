"""Line charts as SVG text: round numbers on the axes, gaps where a value was not finite, light and dark."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Iterable, Sequence

from ..markup import escaped
from .curves import Curve, Points

__all__ = ["CHART_STYLE", "Line", "line_chart", "number_text", "standalone", "ticks"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 46, 40  # margins around the plot, for the labels
_CHARACTER = 6.6  # the width of a character of a legend, near enough to place the next entry
_MOST_POINTS = 1200  # in a line; a longer one is given to a Curve first
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")

# Colours are written out, not named by variables: pictures are also looked at with programs that know no variables.
_LIGHT = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#ca8a04", "#0891b2")
_DARK = ("#60a5fa", "#fb923c", "#34d399", "#c084fc", "#facc15", "#22d3ee")


def _colours(palette: Sequence[str], paper: str, ink: str, soft: str, grid: str, bad: str) -> str:
    lines = "".join(
        f".chart .c{index}{{stroke:{colour}}}.chart .d{index}{{fill:{colour}}}" for index, colour in enumerate(palette)
    )
    return (
        f".chart .paper{{fill:{paper}}}.chart text{{fill:{soft}}}.chart .title{{fill:{ink}}}"
        f".chart .grid{{stroke:{grid}}}.chart .axis,.chart .cursor{{stroke:{soft}}}"
        f".chart .bad{{stroke:{bad}}}.chart text.note{{fill:{bad}}}{lines}"
    )


CHART_STYLE = (
    ".chart text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    ".chart .title{font-size:13px;font-weight:600}.chart .x{text-anchor:middle}.chart .y{text-anchor:end}"
    ".chart .grid{stroke-width:1}.chart .axis{stroke-width:1}"
    ".chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}"
    ".chart .faint{stroke-width:1;opacity:.4}.chart .key{stroke-width:2.4}"
    ".chart .bad{stroke-width:1.4}.chart .cursor{stroke-dasharray:3 3}"
    + _colours(_LIGHT, "#ffffff", "#111827", "#6b7280", "#e5e7eb", "#dc2626")
    + "@media (prefers-color-scheme:dark){"
    + _colours(_DARK, "#16191f", "#f3f4f6", "#9ca3af", "#2b303a", "#f87171")
    + "}"
)


@dataclass(frozen=True)
class Line:
    """A line of a chart: (step, value) points in the order of their steps. A value that is not finite is a gap.

    `name` is what the legend calls it. `colour` counts from 0 to 5; a `faint` line is drawn thin, behind the others; a
    `dotted` one shows its points.

    >>> from pullback.train import Line
    >>> Line("train", [(1, 0.9), (2, 0.5)]).name
    'train'
    """

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    faint: bool = False
    dotted: bool = False


@dataclass(frozen=True)
class _Axis:
    """A range of values, the ticks in it, and the pixels it is drawn on."""

    low: float
    high: float
    marks: Sequence[float]
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        value, low, high = (
            (math.log10(value), math.log10(self.low), math.log10(self.high))
            if self.logarithmic
            else (value, self.low, self.high)
        )
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def line_chart(
    lines: Iterable[Line],
    *,
    title: str,
    unit: str = "",
    horizontal: str = "step",
    width: int = 720,
    height: int = 320,
    logarithmic: bool = False,
    span: tuple[float, float] | None = None,
) -> str:
    """A chart of some lines as SVG text to put into a page; `standalone` makes a file of it.

    `lines` are `Line` objects, `unit` and `horizontal` what the axes are called, `width` and `height` the size in
    pixels. `logarithmic` allows a logarithmic scale; it is used if the values are positive and span two decades or
    more. `span` gives the steps the horizontal axis reaches from and to, where it shall be the same as another chart's.

    >>> from pullback.train import Line, line_chart
    >>> svg = line_chart([Line("train", [(1, 0.9), (2, 0.5), (3, 0.4)])], title="Loss")
    >>> svg.startswith("<svg") and ">Loss<" in svg
    True
    """
    drawn = [(line, _bounded(line.points)) for line in lines]
    drawn = [(line, points) for line, points in drawn if points]
    head = (
        f'{_OPENING} viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escaped(title)}"'
    )
    heading = f'<rect class="paper" width="{width}" height="{height}" rx="8"/>' + _heading(title, unit)
    finite = [value for _, points in drawn for _, value in points if math.isfinite(value)]
    if not finite:
        note = "no finite value yet" if drawn else "nothing to show yet"
        return f'{head}>{heading}<text class="x" x="{width / 2:g}" y="{height / 2:g}">{note}</text></svg>'

    steps = [step for _, points in drawn for step, _ in points]
    x = _horizontal_axis(*(span or (min(steps), max(steps))), _LEFT, width - _RIGHT)
    y = _vertical_axis(min(finite), max(finite), height - _BOTTOM, _TOP, logarithmic)
    body = [heading, *_frame(x, y, horizontal, width, height)]
    drawn.sort(key=lambda pair: not pair[0].faint)
    body += [_drawn_line(line, points, x, y) for line, points in drawn]
    body += _bad_marks([points for _, points in drawn], x, y)
    body += _legend([line for line, _ in drawn], width)
    return f"{head} {_hover_data(drawn, x, y)}>{''.join(body)}</svg>"


_OPENING = '<svg xmlns="http://www.w3.org/2000/svg" class="chart"'
STANDALONE_BEGINNING = _OPENING.encode()  # by which a file of ours is known


def standalone(svg: str) -> str:
    """A chart as the text of a file of its own, from the text of `line_chart`.

    `svg` is that text; the file has its style, which is light or dark as the viewer is.

    >>> from pullback.train import Line, line_chart, standalone
    >>> standalone(line_chart([Line("train", [(1, 0.9), (2, 0.5)])], title="Loss")).startswith("<svg")
    True
    """
    opening = svg.index(">") + 1
    return f"{svg[:opening]}<style>{CHART_STYLE}</style>{svg[opening:]}\n"


# -- axes --------------------------------------------------------------------------------------------


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` multiples of 1, 2 or 5 times a power of ten, from one at or below `low` to one at or above `high`.

    >>> from pullback.train.charts import ticks
    >>> ticks(0.13, 0.92)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    step = (high - low) / count
    power = math.floor(math.log10(step))
    base = 10.0**power
    unit = next(unit for unit in (1, 2, 5, 10) if unit * base >= 0.9 * step)
    first, last = math.floor(low / (unit * base) + 1e-9), math.ceil(high / (unit * base) - 1e-9)
    return [round(index * unit * base, max(0, -power)) for index in range(first, last + 1)]


def _vertical_axis(low: float, high: float, start: float, end: float, logarithmic: bool) -> _Axis:
    if logarithmic and low > 0 and high / low >= 100:
        marks = _decades(low, high)
        return _Axis(marks[0], marks[-1], marks, start, end, True)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value, or the same again and again
        around = 0.5 * abs(high) or 1.0
        low, high = low - around, high + around
    marks = ticks(low, high)
    return _Axis(marks[0], marks[-1], marks, start, end)


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten around a range; with twice and five times them if there are few, not each if there are many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    if last - first <= 3:
        fine = [float(f"{unit}e{power}") for power in range(first, last + 1) for unit in (1, 2, 5)]
        below = max(mark for mark in fine if mark <= low * (1 + 1e-9))
        above = min(mark for mark in fine if mark >= high * (1 - 1e-9))
        return [mark for mark in fine if below <= mark <= above]
    every = -(-(last - first) // 6)
    return [float(f"1e{power}") for power in range(first, last + every, every)]


def _horizontal_axis(low: float, high: float, start: float, end: float) -> _Axis:
    if low == high:
        return _Axis(low - 1, high + 1, [low], start, end)
    marks = ticks(low, high, max(2, round((end - start) / 110)))
    whole = high - low >= 1  # there is no half a step
    return _Axis(low, high, [mark for mark in marks if low <= mark <= high and not (whole and mark % 1)], start, end)


def number_text(value: float) -> str:
    """A number as a label: `0.25`, `1,500`, `20k`, `1.5M`, `3e-5`.

    >>> from pullback.train.charts import number_text
    >>> [number_text(value) for value in (0.25, 1500.0, 20_000.0, 1.5e6, 3e-5, 0.0)]
    ['0.25', '1,500', '20k', '1.5M', '3e-5', '0']
    """
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size >= 1e15 or 0 < size < 1e-3:
        return _scientific(value)
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if suffix == 'k' else limit):.4g}{suffix}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def _scientific(value: float) -> str:
    mantissa, _, power = f"{value:.3e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}" if value else "0"


def _mark_text(value: float, axis: _Axis) -> str:
    power = round(math.log10(value)) if axis.logarithmic else 0
    if abs(power) > 3 and math.isclose(value, 10.0**power):
        return f"10{str(power).translate(_SUPERSCRIPTS)}"
    small = not axis.logarithmic and max(abs(axis.low), abs(axis.high)) <= 2e-3
    return _scientific(value) if small else number_text(value)


# -- parts of a chart --------------------------------------------------------------------------------


def _bounded(points: Sequence[tuple[float, float]]) -> Points:
    return list(points) if len(points) <= _MOST_POINTS else Curve(points).points()


def _heading(title: str, unit: str) -> str:
    text = f'<text class="title" x="14" y="22">{escaped(title)}'
    return f"{text}<tspan font-weight='400'>, {escaped(unit)}</tspan></text>" if unit else f"{text}</text>"


def _frame(x: _Axis, y: _Axis, horizontal: str, width: int, height: int) -> list[str]:
    left, right, bottom = _LEFT, width - _RIGHT, height - _BOTTOM
    parts = []
    for mark in y.marks:
        at = f"{y(mark):.1f}"
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="y" x="{left - 8}" y="{y(mark) + 4:.1f}">{_mark_text(mark, y)}</text>')
    parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    for mark in x.marks:
        at = f"{x(mark):.1f}"
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{bottom}" y2="{bottom + 4}"/>')
        text = _mark_text(mark, x)
        middle = min(x(mark), width - 4 - len(text) * _CHARACTER / 2)  # none is cut off at the edge
        parts.append(f'<text class="x" x="{middle:.1f}" y="{bottom + 17}">{text}</text>')
    parts.append(f'<text class="x" x="{(left + right) / 2:g}" y="{height - 7}">{escaped(horizontal)}</text>')
    return parts


def _drawn_line(line: Line, points: Points, x: _Axis, y: _Axis) -> str:
    path, dots, pen = [], [], "M"
    for index, (step, value) in enumerate(points):
        if not math.isfinite(value):
            pen = "M"
            continue
        path.append(f"{pen}{x(step):.1f} {y(value):.1f}")
        alone = pen == "M" and (index + 1 == len(points) or not math.isfinite(points[index + 1][1]))
        if alone or (line.dotted and len(points) <= 60):
            dots.append(f'<circle class="d{line.colour}" cx="{x(step):.1f}" cy="{y(value):.1f}" r="2.6"/>')
        pen = "L"
    faint = " faint" if line.faint else ""
    return f'<path class="line c{line.colour}{faint}" d="{"".join(path)}"/>{"".join(dots)}'


def _bad_marks(lines: Iterable[Points], x: _Axis, y: _Axis) -> list[str]:
    """A cross at the upper edge wherever values stop being finite, with words at the first."""
    places = sorted(
        {
            step
            for points in lines
            for index, (step, value) in enumerate(points)
            if not math.isfinite(value) and (index == 0 or math.isfinite(points[index - 1][1]))
        }
    )
    crosses = "".join(f"M{x(p) - 4:.1f} {y.end + 4:.1f}l8 8m0 -8l-8 8" for p in places)
    if not places:
        return []
    at, side = x(places[0]), "end" if x(places[0]) > (x.start + x.end) / 2 else "start"
    text = (
        f'<text class="note" style="text-anchor:{side}" x="{at + (-9 if side == "end" else 9):.1f}" '
        f'y="{y.end + 12:.1f}">not finite at step {places[0]:,.0f}</text>'
    )
    return [f'<path class="bad" fill="none" d="{crosses}"/>', text]


def _legend(lines: Sequence[Line], width: int) -> list[str]:
    """The lines' names at the upper right; a single line is named by the title."""
    if len(lines) < 2:
        return []
    parts, right = [], float(width - _RIGHT)
    for line in reversed(lines):
        name = line.name if len(line.name) <= 28 else line.name[:27] + "\u2026"
        left = right - len(name) * _CHARACTER
        faint = " faint" if line.faint else ""
        parts.append(
            f'<path class="line c{line.colour}{faint} key" d="M{left - 22:.1f} 18h16"/>'
            f'<text x="{left:.1f}" y="22">{escaped(name)}</text>'
        )
        right = left - 36
    return parts


def _hover_data(drawn: Iterable[tuple[Line, Points]], x: _Axis, y: _Axis) -> str:
    """What the page's script needs to show the values under the pointer."""
    lines = [
        {
            "name": line.name,
            "colour": line.colour,
            "steps": [step for step, _ in points],
            "values": [float(f"{value:.5g}") if math.isfinite(value) else None for _, value in points],
        }
        for line, points in drawn
    ]
    data = {
        "lines": lines,
        "x": [x.low, x.high, x.start, x.end],
        "y": [y.low, y.high, y.start, y.end],
        "log": y.logarithmic,
    }
    return f'data-chart="{escaped(json.dumps(data, separators=(",", ":"), allow_nan=False))}"'
