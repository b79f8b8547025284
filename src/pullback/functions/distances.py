"""Distances between the points of two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from .shapes import broadcast_shapes

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["cdist"]


def cdist(x1: ArrayLike, x2: ArrayLike, /, p: float = 2.0) -> Tensor:
    """The distance of every point of `x1` to every point of `x2`.

    Parameters
    ----------
    x1 : array
        Points, one per row: floating-point numbers of shape (..., P, M).
    x2 : array
        Points of as many coordinates, (..., R, M). The leading axes of both are broadcast.
    p : float
        Which norm of the difference it is: 2 for Euclid's, 1 for the sum of absolute values, `math.inf` for the
        largest of them, 0 for the number of coordinates that differ, or any other positive number.

    Returns
    -------
    Tensor
        The distances, (..., P, R). Where two points are the same the gradient is zero. All differences are made, so
        that small distances are right: it takes memory for P * R * M numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cdist(pb.asarray([[0.0, 0.0], [3.0, 0.0]]), pb.asarray([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    x, y = asarray(x1), asarray(x2)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"cdist: expected points (..., P, M) and (..., R, M) of as many coordinates, got shapes {x.shape} and "
            f"{y.shape}."
        )
    for points in (x, y):
        if points.dtype.kind not in ("float", "complex"):
            raise DtypeError(f"cdist: expected floating-point numbers, got {points.dtype.name}.")
    if not p >= 0:
        raise ValueError(f"cdist: p must not be negative, got {p!r}.")
    stack = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if not x.shape[-1]:
        shape = (*stack, x.shape[-2], y.shape[-2])
        return TENSORS.zeros(shape, TENSORS.abs(TENSORS.multiply(x, 1.0))._raw.dtype, x)
    difference = TENSORS.subtract(TENSORS.expand_dims(x, (-2,)), TENSORS.expand_dims(y, (-3,)))
    return TENSORS.vector_norm(difference, (-1,), False, p)
