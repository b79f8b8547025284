"""The public functions as methods of the tensor, by family, under the names they have in NumPy.

New functions are functions only, unless NumPy has a method of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from ..autodiff.base import TensorBase
from ..autodiff.forward import adopt, variable
from ..functions import (
    activations,
    comparisons,
    data_types,
    elementwise,
    indexing,
    linear,
    manipulation,
    reductions,
    rounding,
    sets,
    sorting,
    special,
    trigonometry,
)
from ..keywords import hide_others, unexpected
from ..modes import is_recording
from .writing import as_value, is_copy_of_variable, separate

if TYPE_CHECKING:
    from .tensor import Tensor


class ElementwiseMethods(TensorBase):
    """Arithmetic, powers and logarithms, angles, rounding."""

    __slots__ = ()

    add = elementwise.add
    angle = elementwise.angle
    clip = elementwise.clip
    conj = elementwise.conj
    divide = elementwise.divide
    exp = elementwise.exp
    expm1 = elementwise.expm1
    floor_divide = elementwise.floor_divide
    log = elementwise.log
    log10 = elementwise.log10
    log1p = elementwise.log1p
    log2 = elementwise.log2
    logaddexp = elementwise.logaddexp
    maximum = elementwise.maximum
    minimum = elementwise.minimum
    multiply = elementwise.multiply
    negative = elementwise.negative
    positive = elementwise.positive
    pow = elementwise.pow
    reciprocal = elementwise.reciprocal
    remainder = elementwise.remainder
    sqrt = elementwise.sqrt
    square = elementwise.square
    subtract = elementwise.subtract
    conjugate = elementwise.conj
    acos = trigonometry.acos
    acosh = trigonometry.acosh
    asin = trigonometry.asin
    asinh = trigonometry.asinh
    atan = trigonometry.atan
    atan2 = trigonometry.atan2
    atanh = trigonometry.atanh
    cos = trigonometry.cos
    cosh = trigonometry.cosh
    hypot = trigonometry.hypot
    sin = trigonometry.sin
    sinh = trigonometry.sinh
    tan = trigonometry.tan
    tanh = trigonometry.tanh
    abs = rounding.abs
    ceil = rounding.ceil
    copysign = rounding.copysign
    floor = rounding.floor
    nextafter = rounding.nextafter
    round = rounding.round
    sign = rounding.sign
    signbit = rounding.signbit
    trunc = rounding.trunc

    @property
    def real(self) -> Tensor:
        """The real part."""
        return elementwise.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return elementwise.imag(self)


class ComparisonMethods(TensorBase):
    """Comparisons, tests, logic and bits."""

    __slots__ = ()

    bitwise_and = comparisons.bitwise_and
    bitwise_invert = comparisons.bitwise_invert
    bitwise_left_shift = comparisons.bitwise_left_shift
    bitwise_or = comparisons.bitwise_or
    bitwise_right_shift = comparisons.bitwise_right_shift
    bitwise_xor = comparisons.bitwise_xor
    equal = comparisons.equal
    greater = comparisons.greater
    greater_equal = comparisons.greater_equal
    isfinite = comparisons.isfinite
    isinf = comparisons.isinf
    isnan = comparisons.isnan
    less = comparisons.less
    less_equal = comparisons.less_equal
    logical_and = comparisons.logical_and
    logical_not = comparisons.logical_not
    logical_or = comparisons.logical_or
    logical_xor = comparisons.logical_xor
    not_equal = comparisons.not_equal


class SpecialMethods(TensorBase):
    """Special functions and activations."""

    __slots__ = ()

    digamma = special.digamma
    erf = special.erf
    erfc = special.erfc
    erfcx = special.erfcx
    expit = special.expit
    gammaln = special.gammaln
    i0 = special.i0
    i0e = special.i0e
    i1 = special.i1
    i1e = special.i1e
    log_ndtr = special.log_ndtr
    ndtr = special.ndtr
    polygamma = special.polygamma
    xlogy = special.xlogy
    elu = activations.elu
    gelu = activations.gelu
    leaky_relu = activations.leaky_relu
    log_sigmoid = activations.log_sigmoid
    log_softmax = activations.log_softmax
    logsumexp = activations.logsumexp
    relu = activations.relu
    sigmoid = activations.sigmoid
    silu = activations.silu
    softmax = activations.softmax
    softplus = activations.softplus


class ReductionMethods(TensorBase):
    """Reductions, statistics and running totals."""

    __slots__ = ()

    all = reductions.all
    any = reductions.any
    argmax = reductions.argmax
    argmin = reductions.argmin
    count_nonzero = reductions.count_nonzero
    cumprod = reductions.cumprod
    cumsum = reductions.cumsum
    cumulative_prod = reductions.cumulative_prod
    cumulative_sum = reductions.cumulative_sum
    diff = reductions.diff
    max = reductions.max
    mean = reductions.mean
    median = reductions.median
    min = reductions.min
    prod = reductions.prod
    sum = reductions.sum

    @hide_others
    def var(
        self, axis: Any = None, *, correction: Any = 0.0, ddof: Any = None, keepdims: bool = False, **other: Never
    ) -> Tensor:
        """The variance as of `pb.var`, also with NumPy's name for the correction.

        Parameters
        ----------
        axis : int or tuple of int, optional
            Over which axes; by default all of them.
        correction : float
            Subtracted from the number of elements; 1 gives the unbiased variance of a sample.
        ddof : float, optional
            NumPy's name for `correction`.
        keepdims : bool
            Whether these axes stay, with size one.

        Returns
        -------
        Tensor
            Without these axes; 0-d by default.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0, 3.0]).var(correction=1)
        tensor(1.)
        """
        if other:
            raise unexpected("var", other)
        return reductions.var(self, axis=axis, correction=correction if ddof is None else ddof, keepdims=keepdims)

    @hide_others
    def std(
        self, axis: Any = None, *, correction: Any = 0.0, ddof: Any = None, keepdims: bool = False, **other: Never
    ) -> Tensor:
        """The standard deviation as of `pb.std`, also with NumPy's name for the correction.

        Parameters
        ----------
        axis : int or tuple of int, optional
            Over which axes; by default all of them.
        correction : float
            Subtracted from the number of elements that squares are divided by; 1 for a sample's.
        ddof : float, optional
            NumPy's name for `correction`.
        keepdims : bool
            Whether these axes stay, with size one.

        Returns
        -------
        Tensor
            Without these axes; 0-d by default.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0, 3.0]).std(correction=1)
        tensor(1.)
        """
        if other:
            raise unexpected("std", other)
        return reductions.std(self, axis=axis, correction=correction if ddof is None else ddof, keepdims=keepdims)


def _together(integers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several integers as one tuple of them: methods take either."""
    return integers if len(integers) < 2 else (integers,)


class ShapeMethods(TensorBase):
    """Shapes, axes and the order of elements. `t.reshape(2, 3)` is `t.reshape((2, 3))`."""

    __slots__ = ()

    array_split = manipulation.array_split
    expand_dims = manipulation.expand_dims
    flip = manipulation.flip
    moveaxis = manipulation.moveaxis
    pad = manipulation.pad
    repeat = manipulation.repeat
    roll = manipulation.roll
    split = manipulation.split
    squeeze = manipulation.squeeze
    swapaxes = manipulation.swapaxes
    unstack = manipulation.unstack
    astype = data_types.astype

    def reshape(self, *shape: Any, **options: Any) -> Tensor:
        """The elements in another shape, as of `pb.reshape`, also with NumPy's `order`.

        `t.reshape(2, -1)` and `t.reshape((2, -1))` are the same.

        Parameters
        ----------
        *shape : int, or one tuple of int
            The new sizes. One may be -1: it is worked out.
        **options : any
            `copy`, as in `pb.reshape`; `order`, as in NumPy.

        Returns
        -------
        Tensor
            A view of this one where possible.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        reshape = np.reshape if "order" in options else manipulation.reshape
        return reshape(self, *_together(shape), **options)

    def permute_dims(self, *axes: Any, **options: Any) -> Tensor:
        """The axes in another order, as of `pb.permute_dims`.

        `t.permute_dims(1, 0)` and `t.permute_dims((1, 0))` are the same; `options` may be `axes=` alone.
        """
        return manipulation.permute_dims(self, *_together(axes), **options)

    def transpose(self, *axes: Any, **options: Any) -> Tensor:
        """The axes in another order, or reversed if none is given, as of `pb.transpose`.

        `t.transpose(1, 0)` and `t.transpose((1, 0))` are the same; `options` may be `axes=` alone.
        """
        return manipulation.transpose(self, *_together(axes), **options)

    def broadcast_to(self, *shape: Any, **options: Any) -> Tensor:
        """The elements repeated to another shape without a copy, as of `pb.broadcast_to`.

        `options` are those of `pb.broadcast_to`; `t.broadcast_to(2, 3)` and `t.broadcast_to((2, 3))` are the same.
        """
        return manipulation.broadcast_to(self, *_together(shape), **options)

    def tile(self, *repetitions: Any, **options: Any) -> Tensor:
        """The whole tensor repeated along each axis, as of `pb.tile`.

        `t.tile(2, 3)` and `t.tile((2, 3))` are the same; there are no `options` beside `repetitions`.
        """
        return manipulation.tile(self, *_together(repetitions), **options)

    def ravel(self, *order: Any, **options: Any) -> Tensor:
        """All elements along one axis, as of `pb.ravel`, also with NumPy's `order`.

        `options` may have NumPy's `order`.
        """
        by_name = (order and isinstance(order[0], str)) or "order" in options
        return (np.ravel if by_name else manipulation.ravel)(self, *order, **options)

    def flatten(self, *order: Any, **options: Any) -> Tensor:
        """All elements along one axis, or some axes made one, as of `pb.flatten`, also with NumPy's `order`.

        `options` may have NumPy's `order`.
        """
        by_name = (order and isinstance(order[0], str)) or "order" in options
        return (np.ravel if by_name else manipulation.flatten)(self, *order, **options)

    @property
    def flat(self) -> Tensor:
        """All elements along one axis, to read: `t.flat[3]`, `for x in t.flat`. Write to `t.ravel()` and reshape it.

        >>> import pullback as pb
        >>> pb.tensor([[1.0, 2.0], [3.0, 4.0]]).flat[2]
        tensor(3.)
        """
        return manipulation.ravel(self)

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The axes reversed."""
        return manipulation.transpose(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two axes exchanged."""
        return linear.matrix_transpose(self)

    def copy(self) -> Tensor:
        """The same values as a tensor of its own, in O(1); its gradient reaches this one, and it can be written.

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> y = w.copy()
        >>> y[0] = 5.0
        >>> (y * y).sum().backward()
        >>> w.grad
        tensor([0., 4.])
        """
        tensor: Any = self
        return variable(tensor) if self._node is not None and is_recording() else tensor.clone()


class LinearMethods(TensorBase):
    """Products and diagonals."""

    __slots__ = ()

    diagonal = linear.diagonal
    dot = linear.dot
    inner = linear.inner
    kron = linear.kron
    matmul = linear.matmul
    matrix_transpose = linear.matrix_transpose
    outer = linear.outer
    tensordot = linear.tensordot
    trace = linear.trace
    vdot = linear.vdot
    vecdot = linear.vecdot
    linear = linear.linear


class IndexMethods(TensorBase):
    """Indexing, sorting, sets."""

    __slots__ = ()

    __getitem__ = indexing.getitem
    index_add = indexing.index_add
    put_along_axis = indexing.put_along_axis
    scatter_add = indexing.scatter_add
    take = indexing.take
    take_along_axis = indexing.take_along_axis
    argsort = sorting.argsort
    nonzero = sorting.nonzero
    searchsorted = sorting.searchsorted
    topk = sorting.topk
    isin = sets.isin
    unique_all = sets.unique_all
    unique_counts = sets.unique_counts
    unique_inverse = sets.unique_inverse
    unique_values = sets.unique_values

    @hide_others
    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True, **other: Never) -> None:
        """Sort in place, as NumPy's method does; `pb.sort` returns a sorted tensor.

        >>> import pullback as pb
        >>> x = pb.tensor([3.0, 1.0, 2.0])
        >>> x.sort()
        >>> x
        tensor([1., 2., 3.])
        """
        if other:
            raise unexpected("Tensor.sort", other)
        if is_copy_of_variable(self, is_recording()):
            with as_value(self):
                self.sort(axis, descending=descending, stable=stable)
            return
        adopt(self, sorting.sort(self, axis=axis, descending=descending, stable=stable))
        separate(self)
