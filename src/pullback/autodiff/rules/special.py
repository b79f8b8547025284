"""Special functions. Factors are computed in float32 at least, and rounded to the precision of x."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
NORMAL_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def rules(xp: Any, op: Any) -> None:
    wide, narrowed, where = xp.widened, xp.narrowed, xp.where

    op = partial(op, elementwise=True, autocast="float32")

    def unary(name: str, x: Any, static: str = "", **marks: Any) -> None:
        op(name, "x", static, real=True, x=x, **{"scipy": name, **marks})

    def exp_of_square(x: Any, factor: float) -> Any:
        x = wide(x)
        return xp.exp(factor * x * x)

    native: Any = {"scalar": True, "dtypes": "floating"}
    unary("erf", lambda g, x, x_dtype: g * narrowed(TWO_OVER_ROOT_PI * exp_of_square(x, -1.0), x_dtype), **native)
    unary("erfc", lambda g, x, x_dtype: g * narrowed(-TWO_OVER_ROOT_PI * exp_of_square(x, -1.0), x_dtype), **native)

    unary("logit", lambda g, x: g / (x * (1 - x)), expands="floats")

    def erfcx_x(g: Any, x: Any, x_dtype: Any, out: Any) -> Any:
        x, out = wide(x), wide(out)
        far = x > 20
        nothing = xp.zeros_like(x)
        near = 2 * where(far, nothing, x) * where(far, nothing, out) - TWO_OVER_ROOT_PI
        # There the two terms cancel. Their asymptotic series is -2/sqrt(pi) (s - 3 s**2 + 3*5 s**3 - 3*5*7 s**4 + ...).
        root = 1 / where(far, x, xp.ones_like(x))
        s = root * root / 2
        series = xp.ones_like(s)
        for odd in range(17, 1, -2):
            series = 1 - odd * s * series
        return g * narrowed(where(far, -TWO_OVER_ROOT_PI * s * series, near), x_dtype)

    unary("erfcx", erfcx_x)
    unary(
        "ndtr", lambda g, x, x_dtype: g * narrowed(NORMAL_DENSITY_AT_0 * exp_of_square(x, -0.5), x_dtype), **native
    )  # fmt: skip

    def erfinv_x(g: Any, x_dtype: Any, out: Any) -> Any:
        out = wide(out)
        return g * narrowed(xp.exp(out * out) / TWO_OVER_ROOT_PI, x_dtype)

    unary("erfinv", erfinv_x)

    def log_ndtr_x(g: Any, x: Any, x_dtype: Any, out: Any) -> Any:
        x, out = wide(x), wide(out)
        negative = x < 0
        nothing = xp.zeros_like(x)
        below = 2 * NORMAL_DENSITY_AT_0 / xp.erfcx(where(negative, x, nothing) * -math.sqrt(0.5))
        right = where(negative, nothing, x)
        above = NORMAL_DENSITY_AT_0 * xp.exp(-0.5 * right * right - where(negative, nothing, out))
        return g * narrowed(where(negative, below, above), x_dtype)

    unary("log_ndtr", log_ndtr_x)

    unary("gammaln", lambda g, x: g * xp.digamma(x))
    unary("digamma", lambda g, x: g * xp.polygamma(x, 1), scipy="digamma psi")
    unary("polygamma", lambda g, x, n: g * xp.polygamma(x, n + 1), "n", scipy="")

    def zeta_q(g: Any, x: Any, q: Any, q_dtype: Any) -> Any:
        x = wide(x)
        return g * narrowed(-x * xp.zeta(x + 1, wide(q)), q_dtype)

    op("zeta", "x q", real=True, q=zeta_q)

    def over_x(value: Any, x: Any) -> Any:
        """value / x, and its limit 1/2 at zero, for a function that begins x/2."""
        at_zero = xp.equal(x, 0)
        ones = xp.ones_like(x)
        return where(at_zero, ones / 2, value / where(at_zero, ones, x))

    unary("i0", lambda g, x: g * xp.i1(x))
    unary("i1", lambda g, x, out: g * (xp.i0(x) - over_x(out, x)))
    unary("i0e", lambda g, x, out: g * (xp.i1e(x) - xp.sign(x) * out))
    unary("i1e", lambda g, x, out: g * (xp.i0e(x) - xp.sign(x) * out - over_x(out, x)))

    def xlogy_y(g: Any, x: Any, y: Any) -> Any:
        both_zero = xp.logical_and(xp.equal(x, 0), xp.equal(y, 0))
        return g * (x / where(both_zero, xp.ones_like(y), y))

    op("xlogy", "x y", expands="always", scipy="xlogy", x=lambda g, y: g * xp.log(y), y=xlogy_y)
