"""Steps of time for linear systems that are given in continuous time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..autodiff.creation import given as asarray
from ..errors import ConfigurationError, DtypeError
from .elementwise import exp, expm1
from .rounding import abs
from .sorting import where

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["discretize", "exprel"]

_METHODS = ("zoh", "bilinear", "euler")
_NEAR = 0.5  # where a series is used, of so many terms that nothing is lost in float64
_TERMS = 16


def exprel(x: ArrayLike) -> Tensor:
    """(exp(x) - 1) / x, which is 1 at zero; digits and gradients of any order stay there, for complex numbers too.

    >>> import pullback as pb
    >>> pb.exprel(pb.tensor([0.0, 1e-10, -0.5], dtype=pb.float64))
    tensor([1.        , 1.        , 0.78693868], dtype=float64)
    """
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"exprel: expected floating-point or complex numbers, got {x.dtype.name}.")
    is_near = abs(x) < _NEAR
    near, far = where(is_near, x, 0.0), where(is_near, 1.0, x)
    series = near / math.factorial(_TERMS) + 1 / math.factorial(_TERMS - 1)
    for order in range(_TERMS - 2, -1, -1):
        series = series * near + 1 / math.factorial(order + 1)
    return where(is_near, series, expm1(far) / far)


def discretize(
    A: Any,
    B: Any,
    delta: Any,
    method: str = "zoh",
) -> tuple[Tensor, Tensor]:
    """The factors of h[t] = a h[t-1] + b x[t] that go on by `delta` in h' = A h + B x, where A is diagonal.

    Parameters
    ----------
    A, B, delta : array
        Real or complex; they are broadcast. `A` are the numbers on the diagonal.
    method : str
        "zoh": the input stays the same during a step, and the rest is exact, also where A is zero or near. "bilinear":
        the rule of trapezoids, which keeps what is stable stable. "euler": by the slope before the step.

    Returns
    -------
    tuple of Tensor
        a and b, for `pb.ssm_scan`.

    Examples
    --------
    >>> import pullback as pb
    >>> a, b = pb.discretize(pb.tensor([-1.0, 0.0]), pb.ones(2), 0.5)
    >>> a, b
    (tensor([0.60653067, 1.        ]), tensor([0.39346933, 0.5       ]))
    """
    if method not in _METHODS:
        raise ConfigurationError(f"discretize: unknown method {method!r}; known: {', '.join(map(repr, _METHODS))}.")
    A, B, delta = (x if isinstance(x, (int, float, complex)) else asarray(x) for x in (A, B, delta))
    step = asarray(delta * A)
    if method == "zoh":
        return exp(step), exprel(step) * delta * B
    if method == "euler":
        return 1.0 + step, delta * B
    rest = 1.0 - step / 2
    return (1.0 + step / 2) / rest, delta / rest * B
