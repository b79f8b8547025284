"""Matrix products."""

from __future__ import annotations

from operator import index as as_index
from typing import TYPE_CHECKING, Any, Never

from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for, fast_path
from ..autodiff.tables import TENSORS
from ..dtypes import get as get_dtype
from ..errors import ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import negative_axes, negative_axis
from .shapes import moveaxis
from .subscripts import einsum

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = [
    "diag", "diag_embed", "diagonal", "dot", "einsum", "inner", "kron", "linear", "matmul", "matrix_transpose", "outer",
    "tensordot", "trace", "vdot", "vecdot",
]  # fmt: skip


@fast_path
def matmul(x: Operand, y: Operand) -> Tensor:
    """The matrix product of matrices, vectors and broadcast stacks of matrices, as the operator @.

    Parameters
    ----------
    x : array
        (..., rows, inner), or a vector (inner,).
    y : array
        (..., inner, columns), or a vector (inner,). The axes in front are broadcast.

    Returns
    -------
    Tensor
        (..., rows, columns); without rows or columns where there was a vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matmul(pb.asarray([[1, 2], [3, 4]]), pb.asarray([1, 1]))
    tensor([3, 7])
    """
    return apply(OPERATIONS["matmul"], (x, y))


def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, /) -> Tensor:
    """x @ weight.T + bias in one operation.

    Parameters
    ----------
    x : array
        (..., inputs).
    weight : array
        (outputs, inputs).
    bias : array, optional
        (outputs,).

    Returns
    -------
    Tensor
        (..., outputs).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linear(pb.asarray([1.0, 2.0]), pb.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), pb.asarray([0.0, 0.0, 1.0]))
    tensor([1., 2., 4.])
    """
    x, weight = asarray(x), asarray(weight)
    given, expected = x._raw.shape, weight._raw.shape
    if len(expected) != 2 or not given or given[-1] != expected[1]:
        raise ShapeError(
            f"linear: x has shape {x.shape} and weight {weight.shape}; expected (..., inputs) and (outputs, inputs)."
        )
    if bias is not None:
        bias = asarray(bias)
        if bias._raw.shape != expected[:1]:
            raise ShapeError(f"linear: bias has shape {bias.shape}; expected {weight.shape[:1]}, one per output.")
    dual = base.DualTensor
    if type(x) is dual or type(weight) is dual or type(bias) is dual:
        product = matmul(x, matrix_transpose(weight))  # products of tangents are cheaper than the rule's
        return product if bias is None else TENSORS.add(product, bias)
    return _linear(x, weight, bias)


_linear = call_for("linear")


def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes of `x` exchanged: the transpose of a matrix, or of each of a stack.

    Parameters
    ----------
    x : array
        (..., rows, columns).

    Returns
    -------
    Tensor
        (..., columns, rows), a view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matrix_transpose(pb.asarray([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    return _matrix_transpose(_matrices("matrix_transpose", x))


_matrix_transpose = call_for("matrix_transpose")


def _matrices(name: str, x: Any) -> Tensor:
    x = asarray(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: expected a matrix or a stack of matrices, got shape {x.shape}.")
    return x


@hide_others
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, **other: Never) -> Tensor:
    """The sum of conj(x1) * x2 along an axis; the other axes are broadcast.

    >>> import pullback as pb
    >>> pb.vecdot(pb.asarray([[1, 2], [3, 4]]), pb.asarray([1, 1]))
    tensor([3, 7])
    """
    if other:
        raise unexpected("vecdot", other)
    x, y = asarray(x1), asarray(x2)
    position = negative_axis("vecdot", axis, min(x.ndim, y.ndim) if axis < 0 else max(x.ndim, y.ndim))
    if x.shape[position] != y.shape[position]:
        raise ShapeError(f"vecdot: axis {axis} has different sizes in shapes {x.shape} and {y.shape}.")
    return apply(OPERATIONS["vecdot"], (x, y), (position,))


@hide_others
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, **other: Never) -> Tensor:
    """The product of all elements of `x1` and `x2`, summed over pairs of axes.

    Parameters
    ----------
    x1, x2 : array
        Of any shapes that fit along the summed axes.
    axes : int or pair of sequences of int
        A number n: the last n axes of `x1` with the first n of `x2`. Or the axes of each of the two.

    Returns
    -------
    Tensor
        With the other axes of `x1`, then the other axes of `x2`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensordot(pb.asarray([[1, 2], [3, 4]]), pb.asarray([1, 10]), axes=([0], [0]))
    tensor([31, 42])
    """
    if other:
        raise unexpected("tensordot", other)
    x, y = asarray(x1), asarray(x2)
    left: Any
    right: Any
    if isinstance(axes, (tuple, list)):
        left, right = (tuple(a) if isinstance(a, (tuple, list)) else (a,) for a in axes)
    else:
        count = as_index(axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot: {count} axes cannot be summed over in shapes {x.shape} and {y.shape}.")
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    left, right = negative_axes("tensordot", left, x.ndim), negative_axes("tensordot", right, y.ndim)
    if [x.shape[a] for a in left] != [y.shape[a] for a in right]:
        raise ShapeError(f"tensordot: axes {left} of shape {x.shape} do not fit axes {right} of shape {y.shape}.")
    return apply(OPERATIONS["tensordot"], (x, y), ((left, right),))


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """All products of an element of the vector `x1` with one of the vector `x2`.

    Parameters
    ----------
    x1, x2 : array
        Vectors.

    Returns
    -------
    Tensor
        (length of x1, length of x2).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.outer(pb.asarray([1, 2]), pb.asarray([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    x, y = asarray(x1), asarray(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"outer: expected two vectors, got shapes {x.shape} and {y.shape}.")
    return TENSORS.multiply(TENSORS.expand_dims(x, (-1,)), y)


def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The Kronecker product: every element of `x1` replaced by itself times `x2`.

    >>> import pullback as pb
    >>> pb.kron(pb.asarray([1, 10]), pb.asarray([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    x, y = asarray(x1), asarray(x2)
    ndim = max(x.ndim, y.ndim)
    a = (1,) * (ndim - x.ndim) + x.shape
    b = (1,) * (ndim - y.ndim) + y.shape
    left = TENSORS.reshape(x, tuple(n for size in a for n in (size, 1)))
    right = TENSORS.reshape(y, tuple(n for size in b for n in (1, size)))
    return TENSORS.reshape(TENSORS.multiply(left, right), tuple(m * n for m, n in zip(a, b)))


def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """NumPy's dot: the sum over the last axis of `x1` and the last but one of `x2` (its only one, for a vector).

    Parameters
    ----------
    x1, x2 : array
        Vectors, matrices or more. For two matrices this is `matmul`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dot(pb.asarray([1, 2]), pb.asarray([3, 4]))
    tensor(11)
    """
    x, y = asarray(x1), asarray(x2)
    if x.ndim == 0 or y.ndim == 0:
        return TENSORS.multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((-1,), (-2 if y.ndim > 1 else -1,)))


def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sum of products over the last axes of both, without conjugation.

    >>> import pullback as pb
    >>> pb.inner(pb.asarray([1, 2]), pb.asarray([3, 4]))
    tensor(11)
    """
    x, y = asarray(x1), asarray(x2)
    return TENSORS.multiply(x, y) if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, axes=((-1,), (-1,)))


def vdot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sum of conj(x1) * x2 over all elements of two arrays of the same size.

    >>> import pullback as pb
    >>> pb.vdot(pb.asarray([1j, 2.0]), pb.asarray([1j, 2.0]))
    tensor(5.+0.j, dtype=complex64)
    """
    x, y = asarray(x1), asarray(x2)
    if x.size != y.size:
        raise ShapeError(f"vdot: shapes {x.shape} and {y.shape} have different numbers of elements.")
    return vecdot(TENSORS.reshape(x, (x.size,)), TENSORS.reshape(y, (y.size,)))


def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """NumPy's diag: a matrix with the vector `x` on its diagonal, or the diagonal of the matrix `x`.

    Parameters
    ----------
    x : array
        A vector or a matrix; for stacks there are `diag_embed` and `diagonal`.
    k : int
        Which diagonal: so far above the main one, or below it if negative.

    Returns
    -------
    Tensor
        A square matrix or a vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diag(pb.asarray([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> pb.diag(pb.asarray([[1, 2], [3, 4]]), k=1)
    tensor([2])
    """
    x = asarray(x)
    if x.ndim not in (1, 2):
        raise ShapeError(
            f"diag: expected a vector or a matrix, got shape {x.shape}. For stacks use diag_embed or diagonal."
        )
    return diagonal(x, offset=k) if x.ndim == 2 else diag_embed(x, offset=k)


@hide_others
def diag_embed(x: ArrayLike, /, offset: int = 0, axis1: int = -2, axis2: int = -1, **other: Never) -> Tensor:
    """Matrices with the vectors along the last axis of `x` on their diagonal.

    Parameters
    ----------
    x : array
        Vectors, (..., N).
    offset : int
        Which diagonal: so far above the main one, or below it if negative.
    axis1, axis2 : int
        Where rows and columns of the matrices lie in the result.

    Returns
    -------
    Tensor
        Square matrices of N + abs(offset) rows, zero elsewhere.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diag_embed(pb.asarray([[1, 2], [3, 4]]))
    tensor([[[1, 0],
             [0, 2]],
    <BLANKLINE>
            [[3, 0],
             [0, 4]]])
    """
    if other:
        raise unexpected("diag_embed", other)
    x, offset = asarray(x), as_index(offset)
    if x.ndim == 0:
        raise ShapeError("diag_embed: a zero-dimensional array has no vectors to put on a diagonal.")
    axes = negative_axes("diag_embed", (axis1, axis2), x.ndim + 1)
    size = x.shape[-1] + abs(offset)
    placed = apply(OPERATIONS["place_diagonal"], (x,), ((*x.shape[:-1], size, size), offset))
    return placed if axes == (-2, -1) else moveaxis(placed, (-2, -1), axes)


@hide_others
def diagonal(x: ArrayLike, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1, **other: Never) -> Tensor:
    """The diagonal of a matrix or of a stack of matrices, `offset` above (or below) the main one.

    Rows and columns lie along the last two axes, as in the array API standard, unless `axis1` and `axis2` say where.

    >>> import pullback as pb
    >>> pb.diagonal(pb.asarray([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if other:
        raise unexpected("diagonal", other)
    x = _matrices("diagonal", x)
    axes = negative_axes("diagonal", (axis1, axis2), x.ndim)
    x = x if axes == (-2, -1) else moveaxis(x, axes, (-2, -1))
    return apply(OPERATIONS["diagonal"], (x,), (as_index(offset),))


@hide_others
def trace(
    x: ArrayLike, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1, dtype: Any = None, **other: Never
) -> Tensor:
    """The sum along a diagonal of a matrix or of a stack of matrices; small integers are summed in 64 bits.

    Parameters
    ----------
    x : array
        A matrix or a stack of matrices.
    offset : int
        Which diagonal: so far above the main one, or below it if negative.
    axis1, axis2 : int
        Where rows and columns lie: along the last two axes, as in the array API standard. Of stacks, NumPy's `trace`
        takes the first two, which is `axis1=0, axis2=1`.
    dtype : dtype, optional
        In which dtype to add.

    Returns
    -------
    Tensor
        The traces, without the two axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.trace(pb.asarray([[1, 2], [3, 4]]))
    tensor(5)
    """
    if other:
        raise unexpected("trace", other)
    entries = diagonal(x, offset=offset, axis1=axis1, axis2=axis2)
    if dtype is not None and get_dtype(dtype) != entries.dtype:
        entries = TENSORS.astype(entries, entries._backend.raw_dtype(get_dtype(dtype)))
    total = TENSORS.sum(entries, (-1,), False)
    if dtype is not None and total.dtype != get_dtype(dtype):
        total = TENSORS.astype(total, total._backend.raw_dtype(get_dtype(dtype)))
    return total
