"""NumPy's functions that move elements, and small elementwise ones, in terms of Pullback's."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError
from .numpy_protocols import in_numpy
from .numpy_ufuncs import _in_dtype, operand as _operand
from .tensor import Tensor


def _tensor(x: Any) -> Tensor:
    """An argument as a tensor; numbers and lists have NumPy's dtypes."""
    return pb.asarray(np.asarray(x)) if isinstance(x, (int, float, complex)) else pb.asarray(_operand(x))


def _all(arrays: Any) -> list[Tensor]:
    return [_tensor(x) for x in arrays]


def _only_c_order(name: str, order: Any) -> None:
    if order != "C":
        raise DtypeError(f"np.{name}: order={order!r} is not supported on a tensor; transpose it instead.")


# -- shapes ----------------------------------------------------------------------------------------


def numpy_reshape(a: Any, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    _only_c_order("reshape", order)
    return pb.reshape(_tensor(a), shape)


def numpy_shape(a: Any) -> tuple[int, ...]:
    return _tensor(a).shape


def numpy_ndim(a: Any) -> int:
    return _tensor(a).ndim


def numpy_size(a: Any, axis: Any = None) -> int:
    x = _tensor(a)
    return x.size if axis is None else math.prod(x.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def numpy_ravel(a: Any, order: Any = "C") -> Any:
    _only_c_order("ravel", order)
    return pb.ravel(_tensor(a))


def numpy_copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    return pb.positive(_tensor(a))  # a clone of a variable would be the variable itself, which must not be written


def _atleast(ndim: int, x: Any) -> Tensor:
    x = _tensor(x)
    while x.ndim < ndim:
        x = pb.expand_dims(x, axis=-1 if ndim == 3 and x.ndim == 2 else 0)
    return x


def _every(arrays: tuple[Any, ...], ndim: int) -> Any:
    found = tuple(_atleast(ndim, x) for x in arrays)
    return found[0] if len(found) == 1 else found


def numpy_atleast_2d(*arys: Any) -> Any:
    return _every(arys, 2)


def numpy_diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    x = _tensor(a)
    return pb.diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


def numpy_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    found = pb.sum(numpy_diagonal(a, offset, axis1, axis2), axis=-1)
    return _in_dtype(found, dtype)


def numpy_diag(v: Any, k: int = 0) -> Any:
    return pb.diag(_tensor(v), k)


def _triangle(name: str) -> Callable[..., Any]:
    def function(m: Any, k: int = 0) -> Any:
        x = _tensor(m)
        return getattr(pb, name)(pb.broadcast_to(x, (x.shape[0],) * 2) if x.ndim == 1 else x, k=k)

    return function


def _like(value: Any) -> Callable[..., Any]:
    """`np.zeros_like` and its like: a tensor, so that results can be written into it with their gradients."""

    def function(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> Any:
        x = _tensor(a)
        target = x.dtype if dtype is None else pb.dtypes.get(np.dtype(dtype))
        shape = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        return pb.full(shape, value, dtype=target, device=x.device)

    return function


numpy_zeros_like = numpy_empty_like = _like(0)
numpy_ones_like = _like(1)


# -- joining and splitting -------------------------------------------------------------------------


def numpy_concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None) -> Any:
    joined = pb.concat(_all(arrays), axis=axis)
    return _in_dtype(joined, dtype)


def numpy_stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Any:
    joined = pb.stack(_all(arrays), axis=axis)
    return _in_dtype(joined, dtype)


def numpy_hstack(tup: Any, *, dtype: Any = None) -> Any:
    parts = [_atleast(1, x) for x in tup]
    return numpy_concatenate(parts, axis=0 if parts[0].ndim == 1 else 1, dtype=dtype)


def numpy_vstack(tup: Any, *, dtype: Any = None) -> Any:
    return numpy_concatenate([_atleast(2, x) for x in tup], axis=0, dtype=dtype)


def numpy_dstack(tup: Any) -> Any:
    return numpy_concatenate([_atleast(3, x) for x in tup], axis=2)


def numpy_column_stack(tup: Any) -> Any:
    parts = _all(tup)
    return numpy_concatenate([_atleast(1, x)[:, None] if x.ndim < 2 else x for x in parts], axis=1)


def numpy_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return list(pb.split(_tensor(ary), indices_or_sections, axis=axis))


def numpy_linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    start, stop = _tensor(start), _tensor(stop)
    sections = max(num - 1 if endpoint else num, 1)
    share = np.arange(num) / sections
    share = pb.asarray(share.reshape((-1,) + (1,) * max(start.ndim, stop.ndim)))
    points = pb.moveaxis(start * (1.0 - share) + stop * share, 0, axis)
    points = _in_dtype(points, dtype)
    return (points, (stop - start) / sections) if retstep else points


def numpy_logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    if np.ndim(in_numpy(base)):
        start = _tensor(start) + pb.zeros_like(_tensor(base))
    points = pb.pow(_operand(base), numpy_linspace(start, stop, num, endpoint, axis=axis))
    return _in_dtype(points, dtype)


def numpy_vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = _tensor(x)
    powers = range(len(x) if N is None else N)
    return pb.stack([x**power for power in (powers if increasing else reversed(powers))], axis=-1)


def numpy_real_if_close(a: Any, tol: Any = 100) -> Any:
    x = _tensor(a)
    return pb.real(x) if x.dtype.kind == "complex" and not np.iscomplexobj(np.real_if_close(in_numpy(x), tol)) else x


def numpy_geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    start, stop = _tensor(start), _tensor(stop)
    share = np.arange(num) / max(num - 1 if endpoint else num, 1)
    share = pb.asarray(share.reshape((-1,) + (1,) * max(start.ndim, stop.ndim)))
    return pb.moveaxis(start * pb.pow(stop / start, share), 0, axis)


# -- elementwise functions that are no ufuncs --------------------------------------------------------


def numpy_sinc(x: Any) -> Any:
    x = _tensor(x)
    angle = math.pi * pb.where(pb.equal(x, 0), 1.0, x)
    series = 1.0 - (math.pi * x) ** 2 / 6.0  # right to second order at zero, where the quotient has no value
    return pb.where(pb.equal(x, 0), series, pb.sin(angle) / angle)


def numpy_polyval(p: Any, x: Any) -> Any:
    x = _operand(x)
    coefficients = pb.unstack(_tensor(p))
    if not coefficients:
        return pb.zeros_like(pb.asarray(x))
    result = 0.0 * x + coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def numpy_angle(z: Any, deg: bool = False) -> Any:
    found = pb.angle(_tensor(z))
    return found * (180 / math.pi) if deg else found


def numpy_round(a: Any, decimals: int = 0) -> Any:
    x = _tensor(a)
    with np.errstate(over="ignore"):
        scale = float(np.float64(10.0) ** decimals)
    return pb.round(x) if decimals == 0 else pb.round(x * scale) / scale


def _of_first(name: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return getattr(pb, name)(_tensor(x))

    return function


# -- what is one call ------------------------------------------------------------------------------

numpy_around = numpy_round
numpy_astype = lambda x, dtype: _in_dtype(_tensor(x), dtype)
numpy_broadcast_to = lambda array, shape: pb.broadcast_to(_tensor(array), (shape,) if isinstance(shape, int) else shape)
numpy_expand_dims = lambda a, axis: pb.expand_dims(_tensor(a), axis=axis)
numpy_fix = _of_first("trunc")
numpy_flip = lambda m, axis=None: pb.flip(_tensor(m), axis=axis)
numpy_i0 = _of_first("i0")
numpy_imag = lambda val: pb.imag(_tensor(val)) if _tensor(val).dtype.kind == "complex" else pb.zeros_like(_tensor(val))
numpy_matrix_transpose = lambda x: pb.matrix_transpose(_tensor(x))
numpy_moveaxis = lambda a, source, destination: pb.moveaxis(_tensor(a), source, destination)
numpy_real = lambda val: pb.real(_tensor(val)) if _tensor(val).dtype.kind == "complex" else _tensor(val)
numpy_roll = lambda a, shift, axis=None: pb.roll(_tensor(a), shift, axis=axis)
numpy_squeeze = lambda a, axis=None: pb.squeeze(_tensor(a), axis=axis)
numpy_swapaxes = lambda a, axis1, axis2: pb.swapaxes(_tensor(a), axis1, axis2)
numpy_transpose = lambda a, axes=None: pb.transpose(_tensor(a), axes)
numpy_tril = _triangle("tril")
numpy_triu = _triangle("triu")
