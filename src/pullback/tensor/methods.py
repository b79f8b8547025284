"""The public functions as methods of the tensor, under the names they have in NumPy."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..autodiff.forward import variable
from ..functions import activations, elementwise, indexing, linear, manipulation, reductions, sets, sorting, special
from ..functions.data_types import astype
from ..modes import is_recording
from .core import Tensor
from .writing import adopt, as_value, is_copy_of_variable, separate

#: The functions that are methods, too. New ones are functions only, unless NumPy has a method of that name.
_METHODS: dict[Any, str] = {
    elementwise: """
        abs acos acosh add angle asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
        bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide
        greater greater_equal hypot isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and
        logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow
        reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc""",
    reductions: """
        all any argmax argmin count_nonzero cumulative_prod cumulative_sum diff max mean median min prod sum""",
    manipulation: "array_split expand_dims flip moveaxis pad repeat roll split squeeze swapaxes unstack",
    indexing: "index_add put_along_axis scatter_add take take_along_axis",
    linear: "diagonal dot inner kron linear matmul matrix_transpose outer tensordot trace vdot vecdot",
    sorting: "argsort nonzero searchsorted topk",
    sets: "isin unique_all unique_counts unique_inverse unique_values",
    activations: "elu gelu leaky_relu log_sigmoid log_softmax logsumexp relu sigmoid silu softmax softplus",
    special: "digamma erf erfc erfcx expit gammaln i0 i0e i1 i1e log_ndtr ndtr polygamma xlogy",
}
_PROPERTIES = ("imag", "real")

for _module, _names in _METHODS.items():
    for _name in _names.split():
        setattr(Tensor, _name, getattr(_module, _name))

for _name in _PROPERTIES:
    setattr(Tensor, _name, property(getattr(elementwise, _name)))


def _several(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes a tuple of integers, or the integers one by one."""

    def method(self: Tensor, *integers: Any, **options: Any) -> Tensor:
        integers = integers if len(integers) < 2 else (integers,)
        if function is manipulation.reshape and "order" in options:
            return np.reshape(self, *integers, **options)
        return function(self, *integers, **options)

    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


for _name in ("reshape", "permute_dims", "transpose", "broadcast_to", "tile"):
    setattr(Tensor, _name, _several(getattr(manipulation, _name)))


def _in_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """`ravel` and `flatten` with NumPy's order, too: the last axis runs fastest, or with "F" the first."""

    def method(self: Tensor, *order: Any, **options: Any) -> Tensor:
        if (order and isinstance(order[0], str)) or "order" in options:
            return np.ravel(self, *order, **options)
        return function(self, *order, **options)

    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _with_ddof(function: Callable[..., Any]) -> Callable[..., Any]:
    """`var` and `std` with NumPy's name for the correction, too."""

    def method(
        self: Tensor, axis: Any = None, *, correction: Any = 0.0, ddof: Any = None, keepdims: bool = False
    ) -> Tensor:
        return function(self, axis=axis, correction=correction if ddof is None else ddof, keepdims=keepdims)

    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _flat(self: Tensor) -> Tensor:
    """All elements along one axis, to read: `t.flat[3]`, `for x in t.flat`. Write to `t.ravel()` and reshape it.

    >>> import pullback as pb
    >>> pb.tensor([[1.0, 2.0], [3.0, 4.0]]).flat[2]
    tensor(3.)
    """
    return manipulation.ravel(self)


def _flattened(function: Callable[..., Any]) -> Callable[..., Any]:
    """A running total that goes over all elements if no axis is given, as NumPy's methods do."""

    def method(self: Tensor, axis: int | None = None, *, dtype: Any = None) -> Tensor:
        return function(self if axis is not None else manipulation.ravel(self), axis, dtype=dtype)

    method.__doc__ = function.__doc__
    return method


def _copy(self: Tensor) -> Tensor:
    """The same values as a tensor of its own, in O(1); its gradient reaches this one, and it can be written.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> y = w.copy()
    >>> y[0] = 5.0
    >>> (y * y).sum().backward()
    >>> w.grad
    tensor([0., 4.])
    """
    return variable(self) if self._node is not None and is_recording() else self.clone()


def _sort(self: Tensor, axis: int = -1, *, descending: bool = False, stable: bool = True) -> None:
    """Sort in place, as NumPy's method does; `pb.sort` returns a sorted tensor.

    >>> import pullback as pb
    >>> x = pb.tensor([3.0, 1.0, 2.0])
    >>> x.sort()
    >>> x
    tensor([1., 2., 3.])
    """
    if is_copy_of_variable(self, is_recording()):
        with as_value(self):
            _sort(self, axis, descending=descending, stable=stable)
        return
    adopt(self, sorting.sort(self, axis=axis, descending=descending, stable=stable))
    separate(self)


for _name, _attribute in {
    "cumsum": _flattened(reductions.cumulative_sum),
    "cumprod": _flattened(reductions.cumulative_prod),
    "std": _with_ddof(reductions.std),
    "var": _with_ddof(reductions.var),
    "ravel": _in_order(manipulation.ravel),
    "flatten": _in_order(manipulation.flatten),
    "flat": property(_flat),
    "astype": astype,
    "conjugate": elementwise.conj,
    "copy": _copy,
    "sort": _sort,
    "T": property(manipulation.transpose),
    "mT": property(linear.matrix_transpose),
}.items():
    setattr(Tensor, _name, _attribute)
