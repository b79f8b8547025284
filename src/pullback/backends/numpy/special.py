"""NumPy kernels: special functions.

The portable formulas, run on blocks that fit a cache: dozens of passes over a block cost less than a few over memory.
Each formula is computed in the input's precision, or in double (`portable.special.IN_DOUBLE`).
"""

from __future__ import annotations

from functools import partial as _partial
from typing import Any

import numpy as _np

from ..portable import special as _formulas

_BLOCK = 8192


def _blockwise(formula: Any, native_single: bool, x: Any, *static: Any) -> Any:
    x = _np.asarray(x)
    result_dtype = x.dtype if x.dtype.kind in "fV" else _np.dtype(_np.float64)
    if x.dtype.itemsize == 2 and result_dtype == x.dtype:
        computed_in = _np.float32 if native_single else _np.float64
    else:
        computed_in = result_dtype if native_single else _np.float64
    if x.dtype.kind == "c":
        raise TypeError(f"there is no kernel for complex numbers ({x.dtype.name}).")
    with _np.errstate(all="ignore"):
        if x.size <= _BLOCK:
            return formula(_np, x.astype(computed_in, copy=False), *static).astype(result_dtype, copy=False)
        flat = x.reshape(-1)
        out = _np.empty(x.shape, result_dtype)
        flat_out = out.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK].astype(computed_in, copy=False)
            flat_out[start : start + _BLOCK] = formula(_np, block, *static)
        return out


for _name, _formula in vars(_formulas).items():
    if _name[0] != "_" and getattr(_formula, "__module__", None) == _formulas.__name__:
        globals()[_name] = _partial(_blockwise, _formula, _name not in _formulas.IN_DOUBLE)


def zeta(x: Any, q: Any) -> Any:
    dtype = _np.result_type(x, q)
    if dtype.kind == "c":
        raise TypeError("zeta is for real numbers.")
    x, q = _np.broadcast_arrays(x, q)
    with _np.errstate(all="ignore"):
        out = _formulas._zeta_of_positive(_np, x.astype(_np.float64), q.astype(_np.float64))
        others = ~(q > 0)
        if others.any():
            out = _np.asarray(out)
            out[others] = _formulas._zeta_of_others(_np, x[others].astype(_np.float64), q[others].astype(_np.float64))
        return out.astype(dtype)


def xlogy(x: Any, y: Any) -> Any:
    x, y = _np.asarray(x), _np.asarray(y)
    with _np.errstate(all="ignore"):
        product = x * _np.log(y)
    return _np.where((x == 0) & ~_np.isnan(y), product.dtype.type(0), product)
