"""NumPy's functions that choose, sort and write elements, in terms of Pullback's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback as pb

from ..errors import DtypeError
from .core import Tensor
from .numpy_shapes import _tensor
from .numpy_ufuncs import operand as _operand


def _given(value: Any, default: Any = None) -> Any:
    return default if value is np._NoValue or value is None else value


# -- choosing --------------------------------------------------------------------------------------


def numpy_where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = _tensor(condition)
    if x is None and y is None:
        return tuple(pb.asarray(part) for part in np.nonzero(np.asarray(mask.detach())))
    mask = mask if mask.dtype.kind == "bool" else pb.not_equal(mask, 0)
    return pb.where(mask, _operand(x), _operand(y))


def numpy_select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = _operand(default)
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = numpy_where(condition, choice, result)
    return result


def numpy_clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = _given(a_min, _given(min)), _given(a_max, _given(max))
    result = pb.clip(_tensor(a), None if low is None else _operand(low), None if high is None else _operand(high))
    return result


def numpy_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = _tensor(x)
    limits = np.finfo(pb.dtypes.numpy_dtype(x.dtype))
    x = pb.where(pb.isnan(x), nan, x)
    x = pb.where(pb.equal(x, math.inf), float(limits.max) if posinf is None else posinf, x)
    return pb.where(pb.equal(x, -math.inf), float(limits.min) if neginf is None else neginf, x)


def numpy_take(a: Any, indices: Any, axis: Any = None) -> Any:
    x, places = _tensor(a), _tensor(indices)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis % x.ndim)
    return x[(slice(None),) * axis + (places,)]


def numpy_take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x = _tensor(arr)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    return pb.take_along_axis(x, _tensor(indices), axis=axis)


def numpy_compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return numpy_take(a, np.flatnonzero(np.asarray(condition)), axis)


def numpy_extract(condition: Any, arr: Any) -> Any:
    return pb.ravel(_tensor(arr))[np.flatnonzero(np.asarray(condition))]


def numpy_sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    x = _tensor(a)
    return pb.sort(pb.ravel(x)) if axis is None else pb.sort(x, axis=axis)


def numpy_partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    x = _tensor(a)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    return pb.take_along_axis(x, pb.asarray(np.argpartition(np.asarray(x.detach()), kth, axis=axis)), axis=axis)


def numpy_unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    x = _tensor(ar)
    _, index, *rest = np.unique(
        np.asarray(x.detach()), True, return_inverse, return_counts, axis=axis, equal_nan=equal_nan
    )
    values = numpy_take(x, index, axis)
    found = [values, *([pb.asarray(index)] if return_index else []), *map(pb.asarray, rest)]
    return found[0] if len(found) == 1 else tuple(found)


# -- writing ---------------------------------------------------------------------------------------


def _target(name: str, x: Any) -> Tensor:
    """The tensor to write to; a NumPy array could not keep the gradient."""
    if not isinstance(x, Tensor):
        from .numpy_protocols import refuse_output

        refuse_output(x, f"np.{name}")
    return x


def numpy_copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    target = _target("copyto", dst)
    target[...] = _operand(src) if where is True else numpy_where(where, src, target)


def numpy_putmask(a: Any, mask: Any, values: Any) -> None:
    target = _target("putmask", a)
    values = _tensor(values)
    if values.shape != target.shape and values.ndim:
        values = pb.reshape(pb.ravel(values)[np.arange(target.size) % values.size], target.shape)
    target[...] = numpy_where(mask, values, target)


def numpy_place(arr: Any, mask: Any, vals: Any) -> None:
    """`vals` in turn at the places where the mask holds."""
    numpy_put(_target("place", arr), np.flatnonzero(np.asarray(mask)), vals)


def numpy_put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    target = _target("put", a)
    if mode != "raise":
        raise DtypeError(f"np.put: mode={mode!r} is not supported on a tensor.")
    places, values, flat = np.ravel(np.asarray(ind)), pb.ravel(_tensor(v)), pb.ravel(target)
    if places.size:
        flat[places] = values[np.arange(places.size) % values.size]
        target[...] = pb.reshape(flat, target.shape)


def numpy_put_along_axis(arr: Any, indices: Any, values: Any, axis: int) -> None:
    target = _target("put_along_axis", arr)
    places = _tensor(indices)
    values = pb.broadcast_to(pb.astype(_tensor(values), target.dtype), places.shape)
    target[...] = pb.put_along_axis(target, places, values, axis=axis)


def numpy_fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    target = _target("fill_diagonal", a)
    places = np.arange(min(target.shape))
    target[(places,) * target.ndim] = _operand(val)
