"""A step length that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from math import isfinite, nan, sqrt
from typing import Any, Callable, NamedTuple

_DECREASE = 1e-4  # the share of the decrease promised by the slope that is asked for
_CURVATURE = 0.9  # the share of the slope that may be left


class Point(NamedTuple):
    """A place on the line: how far along, the loss, the gradient, and the slope along the line."""

    at: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, first: float, turns: int, resolution: float
) -> tuple[Point, int]:
    """A point with enough decrease and a flat enough slope, and how often `evaluate` was called to find it.

    From `first` on steps grow until two points enclose a minimum, which cubic interpolation then narrows down, until
    they are closer than `resolution`. After `turns` attempts the best point is returned as it is.
    """
    previous, point = start, evaluate(first)
    for turn in range(turns):
        risen = _is_too_high(point, start) or (turn > 1 and point.loss >= previous.loss)
        if not risen and _is_flat(point, start):
            return point, turn + 1
        if risen or point.slope >= 0:
            point, turn = _narrowed(evaluate, start, [previous, point], turn, turns, resolution)
            return point, turn + 1
        nearest, farthest = point.at + 0.01 * (point.at - previous.at), 10.0 * point.at
        previous, point = point, evaluate(_lowest(previous, point, nearest, farthest))
    return min(start, point, key=lambda end: end.loss), turns + 1


def _is_too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + _DECREASE * point.at * start.slope


def _is_flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -_CURVATURE * start.slope


def _narrowed(
    evaluate: Callable[[float], Point], start: Point, ends: list[Point], turn: int, turns: int, resolution: float
) -> tuple[Point, int]:
    """The best point between two `ends` that enclose a minimum, and the turn at which it was found."""
    low = 0 if ends[0].loss <= ends[1].loss else 1
    stalled = False
    while turn < turns:
        left, right = sorted((ends[0].at, ends[1].at))
        if right - left < resolution:
            break
        at, margin = _lowest(ends[0], ends[1], left, right), 0.1 * (right - left)
        if min(right - at, at - left) >= margin:
            stalled = False
        elif stalled or at >= right or at <= left:  # twice at an end, or on it: step away from it
            at = right - margin if abs(at - right) < abs(at - left) else left + margin
            stalled = False
        else:
            stalled = True
        point = evaluate(at)
        turn += 1
        if _is_too_high(point, start) or point.loss >= ends[low].loss:
            ends[1 - low] = point
            low = 0 if ends[0].loss <= ends[1].loss else 1
            continue
        if not _is_flat(point, start) and point.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
        if _is_flat(point, start):
            break
    return ends[low], turn


def _lowest(a: Point, b: Point, nearest: float, farthest: float) -> float:
    """Where the cubic through two points with their slopes is lowest, within bounds; their middle if nowhere."""
    if a.at > b.at:
        a, b = b, a
    mean = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.at - b.at)
    square = mean * mean - a.slope * b.slope
    if square >= 0.0:
        root = sqrt(square)
        span = b.slope - a.slope + 2.0 * root
        lowest = b.at - (b.at - a.at) * ((b.slope + root - mean) / span) if span else nan
        if isfinite(lowest):
            return min(max(lowest, nearest), farthest)
    return (nearest + farthest) / 2.0
