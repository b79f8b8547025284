"""Charts: well formed whatever the values and names are, with round numbers on their axes."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pullback.markup import escaped
from pullback.train import Line, line_chart, standalone
from pullback.train.charts import number_text, ticks

NAN, INF = math.nan, math.inf
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 7.0, 12345.0, 1e12])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 17.0), (0.13, 0.92), (99.0, 101.0), (-1.0, -0.1)])
def test_ticks_are_few_round_numbers_around_the_range(low, high, scale):
    low, high = low * scale, high * scale
    marks = ticks(low, high)
    assert 3 <= len(marks) <= 8 and marks[0] <= low + 1e-9 * scale and marks[-1] >= high - 1e-9 * scale
    step = (marks[-1] - marks[0]) / (len(marks) - 1)
    assert f"{step:.3e}"[0] in "125" and f"{step:.3e}"[1:5] == ".000"
    assert np.allclose(np.diff(marks), step, rtol=1e-6)
    assert all(len(number_text(mark)) <= 8 for mark in marks)


def texts(svg):
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def hover_data(svg):
    return json.loads(ElementTree.fromstring(svg).get("data-chart"))


def paths(svg):
    return [e.get("d") for e in ElementTree.fromstring(svg).iter(f"{SVG}path") if "key" not in e.get("class")]


def test_a_chart_has_its_title_unit_labels_and_legend():
    lines = [Line("train", [(0, 0.0), (10, 1.0)]), Line("validation", [(0, 0.5), (10, 0.25)], 1, dotted=True)]
    svg = line_chart(lines, title="Loss", unit="bits", horizontal="epoch")
    assert texts(svg) == [
        "Loss, bits",
        "0", "0.2", "0.4", "0.6", "0.8", "1",
        "0", "2", "4", "6", "8", "10", "epoch",
        "validation", "train",
    ]  # fmt: skip
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))) == 2


@pytest.mark.parametrize(("last", "marks"), [(2, "1 2"), (4, "1 2 3 4"), (1001, "200 400 600 800 1,000")])
def test_steps_are_marked_by_whole_numbers(last, marks):
    labels = texts(line_chart([Line("a", [(1, 0.5), (last, 0.5)])], title=""))
    assert labels[labels.index("step") - len(marks.split()) : labels.index("step")] == marks.split()


def test_points_are_drawn_where_they_belong():
    svg = line_chart([Line("a", [(0, 0.0), (5, 1.0), (10, 0.5)])], title="", width=174, height=186)
    assert paths(svg) == ["M58.0 146.0L108.0 46.0L158.0 96.0"]  # a plot of 100 by 100 pixels


def test_a_logarithmic_chart_has_equal_distances_between_decades():
    svg = line_chart([Line("a", [(0, 1.0), (5, 0.1), (10, 0.01)])], title="", width=174, height=186, logarithmic=True)
    assert paths(svg) == ["M58.0 46.0L108.0 96.0L158.0 146.0"]
    assert "0.05" in texts(svg)


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [((1.0, 0.011), False), ((1.0, 0.01), True), ((1.0, 0.0), False), ((1.0, -5.0), False), ((1e-12, 1e12), True)],
)
def test_the_scale_is_logarithmic_only_over_decades_of_positive_values(values, logarithmic):
    assert (
        hover_data(line_chart([Line("a", list(enumerate(values)))], title="", logarithmic=True))["log"] is logarithmic
    )
    assert hover_data(line_chart([Line("a", list(enumerate(values)))], title=""))["log"] is False


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1, 3.0)],
        [(1, 0.0)],
        [(1, NAN)],
        [(1, 3.0), (2, 3.0)],
        [(1, 3.0), (1, 4.0)],
        [(1, NAN), (2, INF), (3, 1.0), (4, -INF)],
        [(1, 1e-310), (2, 1e-300)],
        [(1, -1e299), (2, 1e299)],
        [(step, 1.0 + 1e-15 * step) for step in range(5)],
    ],
)
@pytest.mark.parametrize("logarithmic", [False, True])
def test_degenerate_series_give_a_whole_chart(points, logarithmic):
    svg = standalone(line_chart([Line("a", points), Line("b", [])], title="x", logarithmic=logarithmic))
    root = ElementTree.fromstring(svg)
    numbers = [float(n) for path in paths(svg) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?|nan|inf", path)]
    assert all(-10 <= number <= 730 for number in numbers)
    finite = sum(math.isfinite(value) for _, value in points)
    drawn = sum(len(re.findall("[ML]", path)) for path in paths(svg)[:1])
    assert drawn == finite
    if finite == 1:
        assert len(list(root.iter(f"{SVG}circle"))) == 1  # a path of one point is invisible
    if not finite:
        assert texts(svg)[1] == ("no finite value yet" if points else "nothing to show yet")


def test_a_gap_is_a_gap_and_is_marked():
    svg = line_chart([Line("a", [(1, 1.0), (2, 2.0), (3, NAN), (4, NAN), (5, 1.0), (6, 2.0)])], title="")
    line, crosses = paths(svg)
    assert line.count("M") == 2 and line.count("L") == 2
    assert crosses.count("M") == 1 and "not finite at step 3" in texts(svg)


def test_a_chart_of_many_points_is_small_and_shows_the_spike():
    points = [(step, 1000.0 if step == 54_321 else math.sin(step)) for step in range(100_000)]
    svg = line_chart([Line("a", points)], title="")
    assert len(svg) < 60_000
    assert "54321" in svg and "1000" in svg


def test_the_values_under_the_pointer_are_those_given():
    svg = line_chart([Line("a", [(1, 1 / 3), (2, NAN)], colour=3)], title="")
    assert hover_data(svg)["lines"] == [{"name": "a", "colour": 3, "steps": [1, 2], "values": [0.33333, None]}]


@pytest.mark.parametrize("name", ["</text><script>alert(1)</script>", "\"'&<>", "a\x00b\x1bc\ufffe\ud800", "größe"])
def test_names_are_shown_as_they_are_but_for_what_xml_cannot_hold(name):
    shown = re.sub("[\x00\x1b\ufffe\ud800]", "\ufffd", name)
    svg = line_chart([Line(name, [(1, 1.0)]), Line("b", [(1, 2.0)])], title=name, unit=name)
    svg.encode()
    assert texts(svg)[0] == f"{shown}, {shown}" and hover_data(svg)["lines"][0]["name"] == name
    assert ElementTree.fromstring(f"<a b='{escaped(name)}'/>").get("b") == shown
