"""NumPy's functions that choose, sort and write elements, in terms of Pullback's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback as pb

from .numpy_protocols import in_numpy
from .numpy_shapes import _tensor
from .numpy_ufuncs import operand as _operand


def _given(value: Any, default: Any = None) -> Any:
    return default if value is np._NoValue or value is None else value


# -- choosing --------------------------------------------------------------------------------------


def numpy_where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = _tensor(condition)
    if x is None and y is None:
        return tuple(pb.asarray(part) for part in np.nonzero(in_numpy(mask)))
    mask = mask if mask.dtype.kind == "bool" else pb.not_equal(mask, 0)
    return pb.where(mask, _operand(x), _operand(y))


def numpy_clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None, dtype: Any = None
) -> Any:
    low, high = _given(a_min, _given(min)), _given(a_max, _given(max))
    x = _tensor(a)
    if x.dtype.kind != "complex":
        return pb.clip(x, None if low is None else _operand(low), None if high is None else _operand(high))
    for bound, is_beyond in ((low, np.less), (high, np.greater)):  # which NumPy orders by their real parts first
        if bound is not None:
            x = pb.where(pb.asarray(is_beyond(in_numpy(x), in_numpy(bound))), _operand(bound), x)
    return x


def numpy_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = _tensor(x)
    limits = np.finfo(pb.dtypes.numpy_dtype(x.dtype))
    x = pb.where(pb.isnan(x), nan, x)
    x = pb.where(pb.equal(x, math.inf), float(limits.max) if posinf is None else posinf, x)
    return pb.where(pb.equal(x, -math.inf), float(limits.min) if neginf is None else neginf, x)


def numpy_sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    x = _tensor(a)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    if x.dtype.kind != "complex":
        return pb.sort(x, axis=axis)
    return pb.take_along_axis(x, pb.asarray(np.argsort(in_numpy(x), axis=axis)), axis=axis)


def numpy_partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    x = _tensor(a)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    return pb.take_along_axis(x, pb.asarray(np.argpartition(in_numpy(x), kth, axis=axis)), axis=axis)


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
    _, index, *rest = np.unique(in_numpy(x), True, return_inverse, return_counts, axis=axis, equal_nan=equal_nan)
    values = pb.ravel(x)[index] if axis is None else pb.take(x, pb.asarray(index), axis=axis)
    found = [values, *([pb.asarray(index)] if return_index else []), *map(pb.asarray, rest)]
    return found[0] if len(found) == 1 else tuple(found)
