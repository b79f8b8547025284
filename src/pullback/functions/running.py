"""Running maxima and minima, and running sums of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..backends.axis_slice import axis_slice
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["cummax", "cummin", "logcumsumexp"]


def _along(name: str, x: Any, axis: int | None) -> tuple[Tensor, int]:
    x = asarray(x)
    if x.dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order.")
    if axis is None and x.ndim != 1:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} needs `axis=`; only with one axis it can be left out.")
    return x, negative_axis(name, -1 if axis is None else axis, x.ndim)


def _running(x: Tensor, along: int, largest: bool) -> tuple[Tensor, Tensor]:
    indices = apply(OPERATIONS["running_indices"], (x,), ((along,), largest))
    return TENSORS.take_along_axis(x, indices, along), indices


@hide_others
def cummax(x: ArrayLike, /, axis: int | None = None, **other: Never) -> tuple[Tensor, Tensor]:
    """The largest elements up to each one, that one included, and their places. NaN is larger than any number.

    Parameters
    ----------
    x : array of real numbers
    axis : int, optional
        It can be left out if there is only one.

    Returns
    -------
    values : Tensor
        In the shape of `x`. The gradient of each goes to the element at its place.
    indices : Tensor
        The places along the axis; that of the last one among equal elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cummax(pb.asarray([1.0, 3.0, 2.0, 3.0]))
    (tensor([1., 3., 3., 3.]), tensor([0, 1, 1, 3]))
    """
    if other:
        raise unexpected("cummax", other)
    return _running(*_along("cummax", x, axis), True)


@hide_others
def cummin(x: ArrayLike, /, axis: int | None = None, **other: Never) -> tuple[Tensor, Tensor]:
    """The smallest elements up to each one, that one included, and their places. NaN is smaller than any number.

    Parameters
    ----------
    x : array of real numbers
    axis : int, optional
        It can be left out if there is only one.

    Returns
    -------
    values : Tensor
        In the shape of `x`. The gradient of each goes to the element at its place.
    indices : Tensor
        The places along the axis; that of the last one among equal elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cummin(pb.asarray([3.0, 1.0, 2.0, 1.0]))
    (tensor([3., 1., 1., 1.]), tensor([0, 1, 1, 3]))
    """
    if other:
        raise unexpected("cummin", other)
    return _running(*_along("cummin", x, axis), False)


@hide_others
def logcumsumexp(x: Any, /, axis: int | None = None, **other: Never) -> Tensor:
    """log(cumsum(exp(x))), without overflow, and exact also where what comes later is much larger.

    Parameters
    ----------
    x : array of real numbers
    axis : int, optional
        It can be left out if there is only one.

    Returns
    -------
    Tensor
        In the shape of `x`. While all elements are -inf it is -inf, with a gradient of zero.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logcumsumexp(pb.asarray([-pb.inf, 1000.0, 2000.0, 0.0]))
    tensor([ -inf, 1000., 2000., 2000.])
    """
    if other:
        raise unexpected("logcumsumexp", other)
    x, along = _along("logcumsumexp", x, axis)
    if x.dtype.kind != "float":
        x = x * 1.0
    dtype, x = x._backend.raw_dtype(x.dtype), TENSORS.widened(x)
    # The sums are those of exp(x - largest so far), which shrink whenever there is a new largest element.
    largest = _running(x.detach(), along, True)[0]
    is_infinite = TENSORS.isinf(largest)
    shift = TENSORS.where(is_infinite, 0.0, largest)
    terms = TENSORS.exp(TENSORS.where(TENSORS.equal(largest, float("inf")), 0.0, x - shift))
    before = TENSORS.getitem(shift, axis_slice(along, None, -1))
    before = TENSORS.concat([TENSORS.getitem(shift, axis_slice(along, None, 1)), before], along)
    steps = TENSORS.where(is_infinite, 0.0, before - shift)
    factors = TENSORS.exp(TENSORS.where(TENSORS.greater(steps, 0), 0.0, steps))  # it was -inf: there is no sum yet
    sums = TENSORS.recurrence(terms, factors, (along,))
    logs = shift + TENSORS.log(TENSORS.where(is_infinite, 1.0, sums))
    return TENSORS.narrowed(TENSORS.where(is_infinite, largest, logs), dtype)
