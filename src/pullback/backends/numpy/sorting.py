"""Sorting, searching and sets. `axis` is a tuple with one negative integer."""

from __future__ import annotations

from typing import Any

import numpy as _np


def sort(x: Any, axis: Any, descending: bool = False, stable: bool = True) -> Any:
    out = _np.sort(x, axis[0])  # equal elements cannot be told apart
    return _np.flip(out, axis) if descending else out


def argsort(x: Any, axis: Any, descending: bool = False, stable: bool = True) -> Any:
    kind: Any = "stable" if stable else None
    if not descending:
        return _np.argsort(x, axis[0], kind=kind)
    backwards = _np.argsort(_np.flip(x, axis), axis[0], kind=kind)  # keeps the order of equal elements
    return (x.shape[axis[0]] - 1) - _np.flip(backwards, axis)


def running_indices(x: Any, axis: Any, largest: bool = True) -> Any:
    best = (_np.maximum if largest else _np.minimum).accumulate(x, axis[0])
    places = _np.arange(x.shape[axis[0]]).reshape((-1,) + (1,) * (-1 - axis[0]))
    records = _np.where((x == best) | (x != x), places, 0)
    return _np.maximum.accumulate(records, axis[0])


def nonzero(x: Any) -> Any:
    return _np.nonzero(x)


def searchsorted(x: Any, values: Any, sorter: Any, side: str) -> Any:
    return _np.searchsorted(x, values, side=side, sorter=sorter)


def unique(x: Any) -> Any:
    _, indices, inverse, counts = _np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return indices, _np.reshape(inverse, x.shape), counts


def isin(x: Any, values: Any, invert: bool = False) -> Any:
    return _np.isin(x, values, invert=invert)
