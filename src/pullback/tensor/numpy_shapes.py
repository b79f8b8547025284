"""NumPy's functions that move elements, and small elementwise ones, in terms of Pullback's."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError, ShapeError
from .core import Tensor
from .numpy_ufuncs import operand as _operand


def _tensor(x: Any) -> Tensor:
    """An argument as a tensor; numbers and lists have NumPy's dtypes."""
    return pb.asarray(np.asarray(x)) if isinstance(x, (int, float, complex)) else pb.asarray(_operand(x))


def _all(arrays: Any) -> list[Tensor]:
    return [_tensor(x) for x in arrays]


def _only_c_order(name: str, order: Any) -> None:
    if order not in (None, "C", "K", "A"):
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
    return x.size if axis is None else x.shape[axis]


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


def numpy_rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    x = _tensor(a)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return pb.moveaxis(x, axis, start - 1 if axis < start else start)


def numpy_rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = _tensor(m)
    first, second = (axis % x.ndim for axis in axes)
    k %= 4
    if k == 2:
        return pb.flip(x, axis=(first, second))
    if k == 1:
        return pb.swapaxes(pb.flip(x, axis=second), first, second)
    return pb.flip(pb.swapaxes(x, first, second), axis=second) if k == 3 else x


def numpy_diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    x = _tensor(a)
    return pb.diagonal(pb.moveaxis(x, (axis1, axis2), (-2, -1)), offset=offset)


def numpy_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    found = pb.sum(numpy_diagonal(a, offset, axis1, axis2), axis=-1)
    return found if dtype is None else pb.astype(found, pb.dtypes.get(np.dtype(dtype)))


def numpy_diag(v: Any, k: int = 0) -> Any:
    x = _tensor(v)
    if x.ndim == 2:
        return pb.diagonal(x, offset=k)
    if x.ndim != 1:
        raise ShapeError(f"np.diag: expected a vector or a matrix, got shape {x.shape}.")
    size = x.shape[0] + abs(k)
    places = np.arange(x.shape[0])
    empty = pb.zeros((size, size), dtype=x.dtype, device=x.device)
    return pb.index_add(empty, (places + max(-k, 0), places + max(k, 0)), x)


def _triangle(name: str) -> Callable[..., Any]:
    def function(m: Any, k: int = 0) -> Any:
        x = _tensor(m)
        return getattr(pb, name)(pb.broadcast_to(x, (x.shape[0],) * 2) if x.ndim == 1 else x, k=k)

    return function


def numpy_broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    return tuple(pb.broadcast_arrays(*_all(args)))


def numpy_meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if sparse:
        raise DtypeError("np.meshgrid: sparse=True is not supported on a tensor that requires a gradient.")
    return tuple(pb.meshgrid(*_all(xi), indexing=indexing))


def _like(value: Any) -> Callable[..., Any]:
    """`np.zeros_like` and its like: a tensor, so that results can be written into it with their gradients."""

    def function(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> Any:
        return numpy_full_like(a, value, dtype, order, subok, shape)

    return function


def numpy_full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> Any:
    x = _tensor(a)
    target = x.dtype if dtype is None else pb.dtypes.get(np.dtype(dtype))
    shape = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    if isinstance(fill_value, (int, float, complex)):
        return pb.full(shape, fill_value, dtype=target, device=x.device)
    return pb.positive(pb.broadcast_to(pb.astype(_tensor(fill_value), target), shape))


numpy_zeros_like = numpy_empty_like = _like(0)
numpy_ones_like = _like(1)


# -- joining and splitting -------------------------------------------------------------------------


def numpy_concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None) -> Any:
    joined = pb.concat(_all(arrays), axis=axis)
    return joined if dtype is None else pb.astype(joined, pb.dtypes.get(np.dtype(dtype)))


def numpy_stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Any:
    joined = pb.stack(_all(arrays), axis=axis)
    return joined if dtype is None else pb.astype(joined, pb.dtypes.get(np.dtype(dtype)))


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


def numpy_block(arrays: Any) -> Any:
    """Nested lists of blocks: the innermost are joined along the last axis, the next along the one before."""

    def depth_of(x: Any) -> int:
        return 1 + depth_of(x[0]) if isinstance(x, list) else 0

    depth = depth_of(arrays)

    def joined(x: Any, level: int) -> Tensor:
        if not isinstance(x, list):
            return _atleast(depth, x) if depth < 3 else _tensor(x)
        return numpy_concatenate([joined(part, level - 1) for part in x], axis=-level)

    return joined(arrays, depth)


def numpy_append(arr: Any, values: Any, axis: Any = None) -> Any:
    return numpy_concatenate((arr, values), axis=axis)


def _parts(function: Callable[..., Any], axis: int | None = None) -> Callable[..., Any]:
    if axis is None:

        def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
            return list(function(_tensor(ary), indices_or_sections, axis=axis))

        return split

    def split_at(ary: Any, indices_or_sections: Any) -> Any:
        x = _tensor(ary)
        return list(function(x, indices_or_sections, axis=0 if axis == 1 and x.ndim == 1 else axis))

    return split_at


def numpy_delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x = _tensor(arr)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis % x.ndim)
    kept = np.delete(np.arange(x.shape[axis]), obj)
    return x[(slice(None),) * axis + (kept,)]


def numpy_insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Through the places that NumPy gives to the old and the new entries."""
    x = _tensor(arr)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis % x.ndim)
    places = np.arange(x.shape[axis])
    count = np.size(np.arange(x.shape[axis] + 1)[obj])
    values = _tensor(values)
    scalar_place = np.ndim(obj) == 0 and not isinstance(obj, slice)
    if scalar_place:
        if values.ndim == x.ndim:
            count = values.shape[axis] if axis else values.shape[0]
        elif x.ndim == 1:
            count = max(values.size, 1)
        new = values if values.ndim == x.ndim else pb.expand_dims(values, axis=axis) if values.ndim else values
    else:
        new = values
    shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
    new = pb.astype(pb.broadcast_to(new, shape), x.dtype)
    order = np.insert(places, obj, x.shape[axis] + np.arange(count))
    return pb.concat([x, new], axis=axis)[(slice(None),) * axis + (order,)]


def numpy_tile(A: Any, reps: Any) -> Any:
    return pb.tile(_tensor(A), (reps,) if isinstance(reps, (int, np.integer)) else tuple(reps))


def numpy_repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = _tensor(a)
    return pb.repeat(pb.ravel(x) if axis is None else x, repeats, axis=0 if axis is None else axis)


def numpy_pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    if isinstance(pad_width, dict):
        raise DtypeError("np.pad: write pad_width as pairs, not as a dict, on a tensor.")
    if not isinstance(mode, str) or (np.ndim(constant_values) and np.unique(constant_values).size > 1):
        raise DtypeError("np.pad: only named modes, and one constant value for all sides, are supported on a tensor.")
    value = np.ravel(constant_values)[0].item()
    return pb.pad(_tensor(array), pad_width, mode, constant_values=value)


def numpy_linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    start, stop = _tensor(start), _tensor(stop)
    sections = max(num - 1 if endpoint else num, 1)
    share = np.arange(num) / sections
    share = pb.asarray(share.reshape((-1,) + (1,) * max(start.ndim, stop.ndim)))
    points = pb.moveaxis(start * (1.0 - share) + stop * share, 0, axis)
    points = points if dtype is None else pb.astype(points, pb.dtypes.get(np.dtype(dtype)))
    return (points, (stop - start) / sections) if retstep else points


def numpy_logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    points = pb.pow(_operand(base), numpy_linspace(start, stop, num, endpoint, axis=axis))
    return points if dtype is None else pb.astype(points, pb.dtypes.get(np.dtype(dtype)))


def numpy_vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = _tensor(x)
    powers = range(len(x) if N is None else N)
    return pb.stack([x**power for power in (powers if increasing else reversed(powers))], axis=-1)


def numpy_resize(a: Any, new_shape: Any) -> Any:
    x = pb.ravel(_tensor(a))
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    return pb.reshape(x[np.arange(math.prod(shape)) % max(x.size, 1)], shape)


# -- elementwise functions that are no ufuncs --------------------------------------------------------


def numpy_sinc(x: Any) -> Any:
    x = _tensor(x)
    angle = math.pi * pb.where(pb.equal(x, 0), 1.0, x)
    series = 1.0 - (math.pi * x) ** 2 / 6.0  # right to second order at zero, where the quotient has no value
    return pb.where(pb.equal(x, 0), series, pb.sin(angle) / angle)


def numpy_polyval(p: Any, x: Any) -> Any:
    x = _operand(x)
    coefficients = pb.unstack(_tensor(p))
    result = 0.0 * x + coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def numpy_angle(z: Any, deg: bool = False) -> Any:
    found = pb.angle(_tensor(z))
    return found * (180 / math.pi) if deg else found


def numpy_round(a: Any, decimals: int = 0) -> Any:
    x = _tensor(a)
    return pb.round(x) if decimals == 0 else pb.round(x * 10.0**decimals) / 10.0**decimals


def _of_first(name: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return getattr(pb, name)(_tensor(x))

    return function


# -- what is one call ------------------------------------------------------------------------------

numpy_around = numpy_round
numpy_astype = lambda x, dtype: pb.astype(_tensor(x), pb.dtypes.get(np.dtype(dtype)))
numpy_array_split = _parts(lambda *args, **kwargs: pb.array_split(*args, **kwargs))
numpy_atleast_1d = lambda *arys: _every(arys, 1)
numpy_atleast_3d = lambda *arys: _every(arys, 3)
numpy_broadcast_to = lambda array, shape: pb.broadcast_to(_tensor(array), (shape,) if isinstance(shape, int) else shape)
numpy_diagflat = lambda v, k=0: numpy_diag(pb.ravel(_tensor(v)), k)
numpy_dsplit = _parts(lambda *args, **kwargs: pb.split(*args, **kwargs), 2)
numpy_expand_dims = lambda a, axis: pb.expand_dims(_tensor(a), axis=axis)
numpy_fix = _of_first("trunc")
numpy_flip = lambda m, axis=None: pb.flip(_tensor(m), axis=axis)
numpy_fliplr = lambda m: pb.flip(_tensor(m), axis=1)
numpy_flipud = lambda m: pb.flip(_tensor(m), axis=0)
numpy_hsplit = _parts(lambda *args, **kwargs: pb.split(*args, **kwargs), 1)
numpy_i0 = _of_first("i0")
numpy_imag = lambda val: pb.imag(_tensor(val)) if _tensor(val).dtype.kind == "complex" else pb.zeros_like(_tensor(val))
numpy_matrix_transpose = lambda x: pb.matrix_transpose(_tensor(x))
numpy_moveaxis = lambda a, source, destination: pb.moveaxis(_tensor(a), source, destination)
numpy_real = lambda val: pb.real(_tensor(val)) if _tensor(val).dtype.kind == "complex" else _tensor(val)
numpy_roll = lambda a, shift, axis=None: pb.roll(_tensor(a), shift, axis=axis)
numpy_split = _parts(lambda *args, **kwargs: pb.split(*args, **kwargs))
numpy_squeeze = lambda a, axis=None: pb.squeeze(_tensor(a), axis=axis)
numpy_swapaxes = lambda a, axis1, axis2: pb.swapaxes(_tensor(a), axis1, axis2)
numpy_transpose = lambda a, axes=None: pb.transpose(_tensor(a), axes)
numpy_tril = _triangle("tril")
numpy_triu = _triangle("triu")
numpy_unstack = lambda x, axis=0: pb.unstack(_tensor(x), axis=axis)
numpy_vsplit = _parts(lambda *args, **kwargs: pb.split(*args, **kwargs), 0)
