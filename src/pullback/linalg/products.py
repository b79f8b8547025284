"""Products and functions made of them: of vectors, powers, the exponential."""

from __future__ import annotations

from operator import index as as_index
from typing import TYPE_CHECKING, Never

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..functions.axes import negative_axes
from ..functions.linear import matmul
from ..keywords import hide_others, unexpected
from .arguments import matrices, run
from .solving import inv

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


@hide_others
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, **other: Never) -> Tensor:
    """The cross product of vectors of three elements along an axis; the other axes are broadcast.

    >>> import pullback as pb
    >>> pb.linalg.cross(pb.asarray([1, 0, 0]), pb.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if other:
        raise unexpected("cross", other)
    x, y = asarray(x1), asarray(x2)
    (position,) = negative_axes("cross", axis, min(x.ndim, y.ndim) if axis < 0 else max(x.ndim, y.ndim))
    if min(x.ndim, y.ndim) < -position or x.shape[position] != 3 or y.shape[position] != 3:
        raise ShapeError(f"cross: axis {axis} of shapes {x.shape} and {y.shape} must have size 3 in both.")
    return run("cross", x, y, static=(position,))


def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """A square matrix multiplied by itself, `n` factors; the inverse's power for negative `n`.

    >>> import pullback as pb
    >>> pb.linalg.matrix_power(pb.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    x, count = matrices("matrix_power", x, square=True), as_index(n)
    if count == 0:
        return TENSORS.identity_like(x)
    square = inv(x) if count < 0 else x
    count = abs(count)
    result: Tensor | None = None
    while True:
        if count % 2:
            result = square if result is None else matmul(result, square)
        count //= 2
        if not count:
            return result  # type: ignore[return-value]
        square = matmul(square, square)


def matrix_exp(x: ArrayLike, /) -> Tensor:
    """The exponential of a square matrix or of a stack: I + x + x @ x / 2 + x @ x @ x / 6 + ...

    Parameters
    ----------
    x : array
        Floating-point or complex numbers of shape (..., N, N).

    Returns
    -------
    Tensor
        Of the shape of `x`; scaling and squaring with a Padé approximant, with gradients of any order.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_exp(pb.asarray([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return run("matrix_exp", matrices("matrix_exp", x, square=True))
