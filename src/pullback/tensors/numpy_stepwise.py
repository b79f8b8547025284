"""Reductions that NumPy's vector code gets wrong on some processors, one slice after the other."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

_MISREDUCED = frozenset((np.power, np.arctan2))  # of what lies between the first element and the last nothing is seen


def method_of(ufunc: Any, name: str) -> Callable[..., Any]:
    """A ufunc's method on arrays, with the values that it should have."""
    return partial(_reduce_by_steps, ufunc) if name == "reduce" and ufunc in _MISREDUCED else getattr(ufunc, name)


def _reduce_by_steps(
    ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """`ufunc.reduce` of a ufunc without an identity, one slice after the other; errors and dtypes are NumPy's."""
    given = {} if initial is None else {"initial": initial}
    result = ufunc.reduce(array, axis, dtype, out, keepdims, **given, where=where)
    array = np.asarray(array)
    if array.size == 0:
        return result
    axes = normalize_axis_tuple(range(array.ndim) if axis is None else axis if array.ndim else (), array.ndim)
    masks = np.broadcast_to(where, array.shape)
    rows, masks = (np.moveaxis(x, axes, range(len(axes))) for x in (array, masks))
    # Rows, also where there is one column: NumPy takes other ways for a number's power.
    rows, masks = (x.reshape(-1, result.size) for x in (rows.astype(result.dtype), masks))
    total, start = (rows[0], 1) if initial is None else (np.full(rows.shape[1:], initial, result.dtype), 0)
    for row, mask in zip(rows[start:], masks[start:]):
        total = np.where(mask, ufunc(total, row), total)
    return total.reshape(np.shape(result))[()]
