"""Derivatives where a function is not smooth: at zeros, ties and the ends of an interval.

Central differences say nothing there. What is right is written down, and is what PyTorch and JAX agree on or, where
they do not, the (sub)gradient of smallest norm or the even share among equals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from . import harness


class Boundary(NamedTuple):
    operation: str
    case: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    cotangent: np.ndarray
    expected: tuple[np.ndarray, ...]  # the gradients

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.case}"


def at(operation: str, case: str, function: Any, arguments: Sequence[Any], cotangent: Any, expected: Any) -> Boundary:
    def floats(x: Any) -> np.ndarray:
        return np.asarray(x, dtype=np.float64)

    return Boundary(
        operation, case, function, tuple(map(floats, arguments)), floats(cotangent), tuple(map(floats, expected))
    )


def check_boundary(boundary: Boundary) -> None:
    with np.errstate(all="ignore"), pb.guard("off"):  # the values themselves may be infinite
        found = harness.reverse(boundary.function, boundary.arguments, [boundary.cotangent])
    harness.assert_close(found, boundary.expected, 1e-12, "gradient at a boundary", 1e-14)


INF = np.inf
xp = TENSORS

BOUNDARIES: list[Boundary] = [
    # powers: 0**0 is flat in both, 0**1 is a straight line, and nothing is NaN
    at("pow", "zero base", xp.pow, ([0.0, 0.0, 0.0], [0.0, 1.0, 2.0]), [2.0, 3.0, 5.0], ([0.0, 3.0, 0.0], [0.0] * 3)),
    at("pow", "number 0", lambda x: xp.pow(x, 0), ([0.0, 2.0],), [2.0, 3.0], ([0.0, 0.0],)),
    at("pow", "number 1", lambda x: xp.pow(x, 1), ([0.0, 2.0],), [2.0, 3.0], ([2.0, 3.0],)),
    at("pow", "number 2", lambda x: xp.pow(x, 2), ([0.0, -2.0],), [2.0, 3.0], ([0.0, -12.0],)),
    at("pow", "number 3", lambda x: xp.pow(x, 3), ([0.0, -2.0],), [2.0, 3.0], ([0.0, 36.0],)),
    at("pow", "integer exponents", lambda x: xp.pow(x, pb.asarray([2, 3])), ([3.0, 2.0],), [2.0, 5.0], ([12.0, 60.0],)),
    at("pow", "integer bases", lambda y: xp.pow(pb.asarray([2, 3]), y), ([2.0, 1.0],), [1.0, 2.0],
       ([4 * np.log(2), 6 * np.log(3)],)),
    at("pow", "of the number 2", lambda y: xp.pow(2.0, y), ([3.0, 0.0],), [5.0, 1.0], ([40 * np.log(2), np.log(2)],)),
    at("pow", "of the number 0", lambda y: xp.pow(0.0, y), ([0.0, 2.0],), [2.0, 3.0], ([0.0, 0.0],)),
    # infinities of the same sign share, a larger one takes all
    at("logaddexp", "infinities", xp.logaddexp, ([-INF, INF, INF, -INF], [-INF, INF, 1.0, 1.0]), [2.0, 4.0, 3.0, 5.0],
       ([1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 0.0, 5.0])),
    at("logsumexp", "infinities", lambda x: xp.logsumexp(x, (-1,), False), ([[-INF, -INF], [-INF, 2.0]],), [2.0, 3.0],
       ([[0.0, 0.0], [0.0, 3.0]],)),
    # kinks: the subgradient of smallest norm
    at("abs", "zero", xp.abs, ([0.0, -2.0, 3.0],), [2.0, 3.0, 5.0], ([0.0, -3.0, 5.0],)),
    at("hypot", "origin", xp.hypot, ([0.0, 3.0], [0.0, 4.0]), [2.0, 5.0], ([0.0, 3.0], [0.0, 4.0])),
    at("hypot", "one zero", xp.hypot, ([0.0, -3.0], [4.0, 0.0]), [2.0, 5.0], ([0.0, -5.0], [2.0, 0.0])),
    at("atan2", "origin", xp.atan2, ([0.0], [0.0]), [2.0], ([0.0], [0.0])),
    at("sign", "zero", xp.sign, ([0.0, 2.0],), [2.0, 3.0], ([0.0, 0.0],)),
    # ties share
    at("maximum", "tie", xp.maximum, ([1.0, 2.0, 0.0], [1.0, 0.0, 2.0]), [2.0, 3.0, 5.0],
       ([1.0, 3.0, 0.0], [1.0, 0.0, 5.0])),
    at("minimum", "tie", xp.minimum, ([1.0, 2.0, 0.0], [1.0, 0.0, 2.0]), [2.0, 3.0, 5.0],
       ([1.0, 0.0, 5.0], [1.0, 3.0, 0.0])),
    at("max", "ties", lambda x: xp.max(x, (-1,), False), ([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]],), [4.0, 3.0],
       ([[0.0, 2.0, 2.0], [1.0, 1.0, 1.0]],)),
    at("min", "ties", lambda x: xp.min(x, None, False), ([[1.0, 3.0, 1.0]],), 4.0, ([[2.0, 0.0, 2.0]],)),
    # the ends of an interval belong to it; an empty interval is its upper end
    at("clip", "ends", xp.clip, ([1.0, 2.0, 0.0, 3.0], [1.0] * 4, [2.0] * 4), [2.0, 3.0, 5.0, 7.0],
       ([2.0, 3.0, 0.0, 0.0], [0.0, 0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 7.0])),
    at("clip", "only a lower end", lambda x, low: xp.clip(x, low, None), ([1.0, 0.0], [0.5, 0.5]), [2.0, 3.0],
       ([2.0, 0.0], [0.0, 3.0])),
    at("clip", "empty interval", xp.clip, ([1.0, 5.0], [3.0, 3.0], [2.0, 2.0]), [2.0, 3.0],
       ([0.0, 0.0], [0.0, 0.0], [2.0, 3.0])),
    # products are exact with zeros among the factors
    at("prod", "one zero", lambda x: xp.prod(x, None, False), ([2.0, 0.0, 3.0],), 2.0, ([0.0, 12.0, 0.0],)),
    at("prod", "two zeros", lambda x: xp.prod(x, (-1,), False), ([[2.0, 0.0, 0.0], [0.0, 4.0, 1.0]],), [2.0, 3.0],
       ([[0.0, 0.0, 0.0], [12.0, 0.0, 0.0]],)),
    at("cumulative_prod", "zeros", lambda x: xp.cumulative_prod(x, (-1,)), ([2.0, 0.0, 3.0, 0.0],),
       [1.0, 2.0, 5.0, 7.0], ([1.0, 34.0, 0.0, 0.0],)),
    # no spread: the standard deviation is flat in every direction that keeps the elements equal
    at("std", "equal elements", lambda x: xp.std(x, None, 0, False), ([2.0, 2.0, 2.0],), 2.0, ([0.0, 0.0, 0.0],)),
    # a masked singularity
    at("where", "sqrt at 0", lambda x: xp.where(xp.greater(x, 0), xp.sqrt(x), xp.zeros_like(x)), ([0.0, 4.0],),
       [2.0, 3.0], ([0.0, 0.75],)),
    at("where", "x log x at 0", lambda x: xp.where(xp.greater(x, 0), x * xp.log(x), xp.zeros_like(x)), ([0.0, 1.0],),
       [2.0, 3.0], ([0.0, 3.0],)),
    at("where", "division at 0", lambda x, y: xp.where(xp.greater(y, 0), xp.divide(x, y), x), ([1.0, 2.0], [0.0, 4.0]),
       [2.0, 4.0], ([2.0, 1.0], [0.0, -0.5])),
    at("where", "norm at 0", lambda x: xp.where(xp.greater(x, 1), xp.sqrt(x * x), x), ([0.0, 2.0],), [2.0, 3.0],
       ([2.0, 3.0],)),
]  # fmt: skip
