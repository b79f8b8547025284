"""Linear recurrences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.creation import asarray
from ..autodiff.fast import call_for
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS
from .axes import negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = ["ssm_scan"]

_ssm_scan = call_for("ssm_scan")


def ssm_scan(x: Any, a: Any, b: Any = None, h0: Any = None, axis: int = 0, reverse: bool = False) -> Tensor:
    """h[t] = a[t] h[t-1] + b[t] x[t] along `axis`: the states of a diagonal linear recurrence, at every step.

    `a` and `b` broadcast to `x`; leave their axis of time out, or at length 1, if they do not change. `h0`, the state
    before the first step, broadcasts to `x` without the axis of time; it is zero if it is not given. With `reverse`
    the last step is taken first.

    >>> import pullback as pb
    >>> pb.ssm_scan(pb.tensor([1.0, 1.0, 1.0]), pb.tensor(0.5))
    tensor([1.  , 1.5 , 1.75])
    >>> pb.ssm_scan(pb.tensor([1.0, 1.0, 1.0]), pb.tensor(0.5), h0=pb.tensor(8.0), reverse=True)
    tensor([2.75, 3.5 , 5.  ])
    """
    x = _operand("x", x)
    if x.ndim == 0:
        raise ShapeError("ssm_scan: x must have an axis of time, got a number.")
    axis = negative_axis("ssm_scan", axis, x.ndim)
    a = _operand("a", a)
    _check_broadcast("a", a, x.shape, "x")
    if b is not None:
        b = _operand("b", b)
        _check_broadcast("b", b, x.shape, "x")
        x = apply(OPERATIONS["multiply"], (b, x))
    if h0 is not None:
        h0 = _operand("h0", h0)
        _check_broadcast("h0", h0, x.shape[:axis] + x.shape[x.ndim + axis + 1 :], "x without its axis of time")
    return _ssm_scan(x, a, h0, axis, bool(reverse))


def _operand(label: str, value: Any) -> Tensor:
    value = asarray(value)
    if value.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"ssm_scan: {label} must be floating-point or complex, got {value.dtype.name}.")
    return value


def _check_broadcast(label: str, value: Tensor, shape: tuple[int, ...], of_what: str) -> None:
    aligned = zip(reversed(value.shape), reversed(shape))
    if value.ndim > len(shape) or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(
            f"ssm_scan: {label} of shape {value.shape} does not broadcast to {shape}, the shape of {of_what}."
        )
