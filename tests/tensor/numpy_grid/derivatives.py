"""Derivatives of NumPy functions on tensors against differences of the same functions on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pullback as pb

from .comparison import Call, _leaves, choices, outcome, with_tensors

_STEP = 1e-4

#: Where the derivative is by convention not that of a single difference.
CONVENTIONS = {
    "linalg.cholesky": "a matrix is taken to be symmetric: the gradient is the same in both triangles",
    "linalg.eigh": "the same",
    "linalg.eigvalsh": "the same",
    "linalg.eig": "vectors are determined up to a factor; the derivative is that of functions that do not depend on it",
    "linalg.qr": "the columns that mode='complete' adds are determined up to a rotation",
    "linalg.svd": "with hermitian=True the same; the columns that full matrices add are determined up to a rotation",
}


def _arrays(arguments: Call) -> list[Any]:
    return [x for x in _leaves(arguments) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


def ordinary(calls: Iterator[Call], count: int) -> list[Call]:
    """Some of the calls, those in which nothing is at the edge of anything: evenly taken from all."""
    fitting = []
    for arguments in calls:
        arrays, options = _arrays(arguments), arguments[1]
        numbers = [x for x in options.values() if isinstance(x, float)]
        if not arrays or options.get("hermitian") or not np.isfinite(numbers).all():
            continue
        if all(x.dtype == np.float64 and x.size and x.flags.c_contiguous for x in arrays):
            sizes = np.abs(np.concatenate([np.ravel(x) for x in arrays]))
            if np.isfinite(sizes).all() and 1e-2 < sizes.min() and sizes.max() < 10 and len(set(sizes)) == sizes.size:
                fitting.append(arguments)
    return fitting[:: max(1, len(fitting) // count)]


def difference(function: Callable[..., Any], arguments: Call) -> str | None:
    """What is different between the derivative along a random direction and NumPy's differences; None if nothing."""
    expected = outcome(function, arguments)
    values = [np.asarray(x) for x in _leaves(expected)]
    if isinstance(expected, Exception) or not all(x.dtype.char in "dD" and np.isfinite(x).all() for x in values):
        return None
    random = np.random.default_rng(3)
    directions = [random.normal(size=x.shape) for x in _arrays(arguments)]
    cotangents = [random.normal(size=x.shape) for x in values]

    def moved(step: float) -> float:
        found = outcome(function, _shifted(arguments, directions, step))
        if isinstance(found, Exception):
            return np.nan
        return sum(float(np.sum(np.real(c * x))) for c, x in zip(cotangents, _leaves(found)))

    wide = (moved(_STEP) - moved(-_STEP)) / (2 * _STEP)
    narrow = (moved(_STEP / 2) - moved(-_STEP / 2)) / _STEP
    scale = 1 + abs(narrow) + sum(float(np.sum(np.abs(x))) for x in values)
    if not abs(wide - narrow) < 1e-5 * scale:
        return None  # a jump or a kink is near
    tracked = with_tensors(arguments, choices(arguments)[0])
    result = outcome(function, tracked)
    if isinstance(result, Exception):
        return None  # which the comparison of values is about
    total = 0.0
    for c, x in zip(cotangents, _leaves(result)):
        if isinstance(x, pb.Tensor) and x.requires_grad:
            total = total + pb.sum(pb.real(x * pb.asarray(c)))
    slope = 0.0
    if isinstance(total, pb.Tensor):
        total.backward()
        tensors = [x for x in _leaves(tracked) if isinstance(x, pb.Tensor)]
        slope = sum(
            float(np.sum(d * x.grad.numpy())) for d, x in zip(directions, tensors, strict=True) if x.grad is not None
        )
    return None if abs(slope - narrow) < 1e-4 * scale else f"{narrow} by differences, {slope} of ours"


def _shifted(arguments: Call, directions: list[Any], step: float) -> Call:
    rest = iter(directions)

    def shifted(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)([shifted(part) for part in x])
        if isinstance(x, dict):
            return {key: shifted(value) for key, value in x.items()}
        return x + step * next(rest) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x

    return shifted(arguments)
