"""Norms of vectors and of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Never, Sequence

from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..functions.axes import negative_axes
from ..functions.manipulation import moveaxis
from ..keywords import hide_others, unexpected
from .arguments import matrices, numbers, run
from .decompositions import svdvals

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


@hide_others
def norm(x: ArrayLike, /, ord: Any = None, axis: Any = None, keepdims: bool = False, **other: Never) -> Tensor:
    """The norm of vectors or of matrices, as NumPy's `norm` gives it; `vector_norm` and `matrix_norm` are its parts.

    Parameters
    ----------
    x : array
        Floating-point or complex numbers. Without `axis` and `ord` all its elements are one vector.
    ord : float or str, optional
        None for the root of the sum of squares. For vectors any number, inf and -inf (see `vector_norm`); for
        matrices "fro", "nuc", 1, -1, 2, -2, inf and -inf (see `matrix_norm`).
    axis : int or tuple of int, optional
        An integer for norms of vectors along that axis, a pair for norms of matrices whose rows and columns lie along
        these. Without it `x` must have one or two axes where `ord` is given.
    keepdims : bool
        Whether the axes stay, with size one.

    Returns
    -------
    Tensor
        The norms, real. At zero their gradient is zero.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.asarray([[3.0, 0.0], [4.0, 0.0]])
    >>> pb.linalg.norm(x), pb.linalg.norm(x, ord=1), pb.linalg.norm(x, axis=0)
    (tensor(5.), tensor(7.), tensor([5., 0.]))
    """
    if other:
        raise unexpected("norm", other)
    x = numbers("norm", x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = negative_axes("norm", tuple(range(x.ndim)) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ShapeError(
                f"norm: ord={ord!r} is a norm of matrices, but got one axis of shape {x.shape}: leave it out, or give "
                "a pair of axes."
            )
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(
            f"norm: ord={ord!r} is a norm of vectors or of matrices, along one or two axes, got {len(axes)} in shape "
            f"{x.shape}. Say which with `axis`."
        )
    result = matrix_norm(moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return TENSORS.expand_dims(result, tuple(sorted(axes))) if keepdims else result


@hide_others
def vector_norm(
    x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2, **other: Never
) -> Tensor:
    """The norm of vectors along one or more axes, or of all elements: sum(abs(x)**ord)**(1/ord).

    `ord` inf and -inf are the largest and the smallest absolute value, 0 counts what is not zero. The gradient at a
    zero vector is zero; elements that tie for the largest share it.

    Parameters
    ----------
    x : array
        Numbers of any shape.
    axis : int or tuple of int, optional
        Along which axes vectors lie; by default all of `x` is one vector.
    keepdims : bool
        Whether these axes stay, with size one.
    ord : float
        Which norm: 2 is the Euclidean length, 1 the sum of absolute values, `pb.inf` the largest of them.

    Returns
    -------
    Tensor
        Real, without these axes. At zero the gradient is zero.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.vector_norm(pb.asarray([3.0, 4.0]))
    tensor(5.)
    """
    if other:
        raise unexpected("vector_norm", other)
    x = numbers("vector_norm", x)
    if isinstance(ord, str):
        raise ShapeError(f"vector_norm: ord must be a number, got {ord!r}; norms of matrices have `matrix_norm`.")
    axes = None if axis is None else negative_axes("vector_norm", axis, x.ndim)
    return run("vector_norm", x, static=(axes, bool(keepdims), ord))


@hide_others
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro", **other: Never) -> Tensor:
    """The norm of matrices: "fro", "nuc", 1 and -1 (column sums), inf and -inf (row sums), 2 and -2 (singular values).

    >>> import pullback as pb
    >>> pb.linalg.matrix_norm(pb.asarray([[3.0, 0.0], [0.0, 4.0]]), ord="nuc")
    tensor(7.)
    """
    if other:
        raise unexpected("matrix_norm", other)
    x = matrices("matrix_norm", x)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord == "nuc":
        result = TENSORS.sum(svdvals(x), (-1,), False)
    elif ord in (2, -2):
        result = (TENSORS.max if ord > 0 else TENSORS.min)(svdvals(x), (-1,), False)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = TENSORS.sum(TENSORS.abs(x), (-2,) if abs(ord) == 1 else (-1,), False)
        result = (TENSORS.max if ord > 0 else TENSORS.min)(sums, (-1,), False)
    else:
        raise ShapeError(f"matrix_norm: unknown ord {ord!r}; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    return TENSORS.expand_dims(result, (-2, -1)) if keepdims else result
