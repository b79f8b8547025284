"""Special functions."""

from __future__ import annotations

import math
from typing import Any

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
NORMAL_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def rules(xp: Any, op: Any) -> None:
    def unary(name: str, x: Any, **marks: Any) -> None:
        op(name, "x", elementwise=True, x=x, **marks)

    unary("erf", lambda g, x: g * (TWO_OVER_ROOT_PI * xp.exp(-x * x)))
    unary("erfc", lambda g, x: g * (-TWO_OVER_ROOT_PI * xp.exp(-x * x)))
    unary("erfcx", lambda g, x, out: g * (2 * x * out - TWO_OVER_ROOT_PI))
    unary("ndtr", lambda g, x: g * (NORMAL_DENSITY_AT_0 * xp.exp(-0.5 * x * x)))
    unary("log_ndtr", lambda g, x, out: g * (NORMAL_DENSITY_AT_0 * xp.exp(-0.5 * x * x - out)))

    unary("gammaln", lambda g, x: g * xp.digamma(x), singular=True)
    unary("digamma", lambda g, x: g * xp.polygamma(x, 1), singular=True)
    op("polygamma", "x", "n", elementwise=True, singular=True, x=lambda g, x, n: g * xp.polygamma(x, n + 1))

    def over_x(value: Any, x: Any) -> Any:
        """value / x, and its limit 1/2 at zero, for a function that begins x/2."""
        at_zero = xp.equal(x, 0)
        return xp.where(at_zero, 0.5 * xp.ones_like(x), value / xp.where(at_zero, xp.ones_like(x), x))

    unary("i0", lambda g, x: g * xp.i1(x))
    unary("i1", lambda g, x, out: g * (xp.i0(x) - over_x(out, x)))
    unary("i0e", lambda g, x, out: g * (xp.i1e(x) - xp.sign(x) * out))
    unary("i1e", lambda g, x, out: g * (xp.i0e(x) - xp.sign(x) * out - over_x(out, x)))

    def xlogy_y(g: Any, x: Any, y: Any) -> Any:
        both_zero = xp.logical_and(xp.equal(x, 0), xp.equal(y, 0))
        return g * (x / xp.where(both_zero, xp.ones_like(y), y))

    op("xlogy", "x y", elementwise=True, singular=True, x=lambda g, y: g * xp.log(y), y=xlogy_y)
