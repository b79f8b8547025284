"""Integrals of what is known at some places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..keywords import hide_others, unexpected
from .axes import negative_axis
from .manipulation import moveaxis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["trapezoid"]


@hide_others
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, /, dx: Any = 1.0, *, axis: int = -1, **other: Never) -> Tensor:
    """The integral of `y` along an axis, taken as straight from each value to the next.

    Parameters
    ----------
    y : array
        The values.
    x : array, optional
        The places where they are: along one axis, or in the shape of `y`. They are `dx` apart without it.
    dx : float or array
        How far apart they are: a number, or one for each step.
    axis : int
        Along which axis.

    Returns
    -------
    Tensor
        The integrals, without that axis; gradients reach `y`, `x` and `dx`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.trapezoid(pb.asarray([0.0, 1.0, 2.0]), pb.asarray([0.0, 1.0, 3.0]))
    tensor(3.5)
    """
    if other:
        raise unexpected("trapezoid", other)
    values = asarray(y)
    position = negative_axis("trapezoid", axis, values.ndim)
    values = moveaxis(values, position, -1)
    steps: Any = dx
    if x is not None:
        places = asarray(x)
        if places.ndim == 0 or (places.ndim < -position and places.ndim != 1):
            raise ShapeError(
                f"trapezoid: x of shape {places.shape} has no axis {axis} of y, of shape {asarray(y).shape}."
            )
        places = places if places.ndim == 1 else moveaxis(places, position, -1)
        if places.shape[-1] != values.shape[-1]:
            raise ShapeError(
                f"trapezoid: x has {places.shape[-1]} places along the axis (shape {asarray(x).shape}), y has "
                f"{values.shape[-1]} values (shape {asarray(y).shape})."
            )
        steps = TENSORS.subtract(_from(places, 1, None), _from(places, 0, -1))
    pairs = TENSORS.add(_from(values, 1, None), _from(values, 0, -1))
    return TENSORS.sum(TENSORS.divide(TENSORS.multiply(steps, pairs), 2.0), (-1,), False)


def _from(x: Any, start: int, end: int | None) -> Any:
    return TENSORS.getitem(x, (..., slice(start, end)))
