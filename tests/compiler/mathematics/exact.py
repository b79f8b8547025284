"""Exact values of functions by mpmath, and distances from them in units in the last place."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...backends.installed import optional

mpmath = optional("mpmath")

#: Enough for tan of the largest float64 next to a multiple of pi/2, and for differences that cancel all but a few bits.
_PRECISION = 180
_ANGLE_PRECISION = 1300

UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": mpmath.log10,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "pow": mpmath.power,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
    "logaddexp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
}


def errors(name: str, got: Any, *arguments: Any) -> Any:
    """How many units in the last place each result is off; NaN where the exact value is not a normal number."""
    function: Any = UNARY.get(name) or BINARY[name]
    angle = name in ("sin", "cos", "tan")
    limits = np.finfo(got.dtype)
    out = np.full(got.shape, np.nan)
    with mpmath.workprec(_ANGLE_PRECISION if angle and np.abs(arguments[0]).max() > 1e6 else _PRECISION):
        for i in range(got.size):
            exact = function(*(mpmath.mpf(float(argument[i])) for argument in arguments))
            if not isinstance(exact, mpmath.mpf) or not limits.tiny <= abs(exact) <= limits.max:
                continue
            unit = mpmath.ldexp(1, mpmath.frexp(abs(exact))[1] - limits.nmant - 1)
            out[i] = abs(mpmath.mpf(float(got[i])) - exact) / unit if np.isfinite(got[i]) else np.inf
    return out
