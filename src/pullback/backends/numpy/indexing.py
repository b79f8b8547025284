"""Reading and writing parts of arrays."""

from __future__ import annotations

from typing import Any

import numpy as _np


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def setitem(x: Any, value: Any, index: Any) -> Any:
    """A copy of `x` with `value` at `index`."""
    out = _np.array(x)
    out[index] = value
    return out


def index_add(x: Any, value: Any, index: Any) -> Any:
    """A copy of `x` with `value` added at `index`, once for each time that a position is named."""
    out = _np.array(x)
    if _is_basic(index):
        out[index] += value
    else:
        _np.add.at(out, index, value)
    return out


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(isinstance(part, (int, _np.integer, slice)) or part is None or part is Ellipsis for part in parts)
