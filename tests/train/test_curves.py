"""Curves: the extremes of any number of values in little room."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import pullback as pb
from pullback.train.curves import Curve

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("count", [0, 1, 2, 399, 400, 401, 1000, 12_345])
def test_a_curve_keeps_the_extremes_and_few_points(count):
    values = np.random.default_rng(count).normal(size=count)
    curve = Curve((step, float(value)) for step, value in enumerate(values, 1))
    points = curve.points()
    assert len(points) <= 1000 and points == sorted(points)
    assert set(points) <= {(step, float(value)) for step, value in enumerate(values, 1)}
    if count:
        assert {min(values), max(values)} <= {value for _, value in points}
        assert curve.span == (1, count) and curve.last == values[-1]
    if count <= 400:
        assert points == list(enumerate(map(float, values), 1))


@pytest.mark.parametrize("count", [3, 500, 7000])
def test_smoothing_keeps_a_constant(count):
    flat = Curve((step, 2.5) for step in range(count)).smoothed()
    assert all(abs(value - 2.5) < 1e-12 for _, value in flat)


def test_smoothing_keeps_a_slope_and_removes_noise():
    noise = np.random.default_rng(0).normal(size=7000)
    noisy = Curve((step, step / 7000 + float(noise[step])) for step in range(7000)).smoothed()
    middle = noisy[len(noisy) // 10 : -len(noisy) // 10]
    assert max(abs(value - step / 7000) for step, value in middle) < 0.25


def test_smoothing_weighs_a_merged_bucket_by_its_values():
    """The last bucket of a long curve may hold one value where the others hold many."""
    curve = Curve((step, 0.0) for step in range(800))
    curve.add(800, 100.0)
    assert 1.0 < curve.smoothed()[-1][1] < 10.0


def test_values_that_are_not_finite_are_gaps_where_they_were():
    values = [1.0, NAN, 3.0, INF, 1e305, 2.0]
    points = Curve(enumerate(values)).points()
    assert [step for step, value in points if math.isnan(value)] == [1, 3, 4]
    assert [point for point in points if not math.isnan(point[1])] == [(0, 1.0), (2, 3.0), (5, 2.0)]
    long = Curve((step, NAN if step == 4321 else 1.0) for step in range(10_000))
    assert [step for step, value in long.points() if math.isnan(value)] == [4321]
    assert all(math.isclose(value, 1.0) for _, value in long.smoothed())
    assert Curve([(0, NAN)]).smoothed() == []


@pytest.mark.parametrize("cut", [0, 1, 399, 400, 401, 1111])
def test_a_curve_goes_on_from_its_state(cut):
    values = [float(value) for value in np.random.default_rng(1).normal(size=2000)]
    values[7], values[1500] = NAN, INF
    whole, first, second = Curve(enumerate(values)), Curve(list(enumerate(values))[:cut]), Curve()
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    for step in range(cut, 2000):
        second.add(step, values[step])
    assert second.state_dict() == whole.state_dict()


def test_a_curve_of_another_format_is_refused():
    curve = Curve([(1, 2.0)])
    with pytest.raises(pb.errors.FileFormatError, match="9 values"):
        curve.load_state_dict({"buckets": [[1, 2]], "width": 1, "held": 1, "last": None})
    assert curve.points() == [(1, 2.0)]


def test_smoothing_follows_a_steep_beginning():
    curve = Curve((step, math.exp(-step / 100)) for step in range(20_000))
    assert all(abs(value - math.exp(-step / 100)) < 0.15 for step, value in curve.smoothed())
