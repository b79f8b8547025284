"""NumPy kernels: special functions.

The portable formulas, run on blocks that fit a cache: dozens of passes over a block cost less than a few over memory.
The error functions are computed in the input's precision, the others in double.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from ..portable import special as _formulas

_BLOCK = 8192


def _blockwise(formula: Any, x: Any, native_single: bool, *static: Any) -> Any:
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


def erf(x: Any) -> Any:
    return _blockwise(_formulas.erf, x, True)


def erfc(x: Any) -> Any:
    return _blockwise(_formulas.erfc, x, True)


def erfcx(x: Any) -> Any:
    return _blockwise(_formulas.erfcx, x, True)


def ndtr(x: Any) -> Any:
    return _blockwise(_formulas.ndtr, x, True)


def log_ndtr(x: Any) -> Any:
    return _blockwise(_formulas.log_ndtr, x, True)


def gammaln(x: Any) -> Any:
    return _blockwise(_formulas.gammaln, x, False)


def digamma(x: Any) -> Any:
    return _blockwise(_formulas.digamma, x, False)


def polygamma(x: Any, n: int) -> Any:
    return _blockwise(_formulas.polygamma, x, False, n)


def i0(x: Any) -> Any:
    return _blockwise(_formulas.i0, x, False)


def i0e(x: Any) -> Any:
    return _blockwise(_formulas.i0e, x, False)


def i1(x: Any) -> Any:
    return _blockwise(_formulas.i1, x, False)


def i1e(x: Any) -> Any:
    return _blockwise(_formulas.i1e, x, False)


def xlogy(x: Any, y: Any) -> Any:
    x, y = _np.asarray(x), _np.asarray(y)
    with _np.errstate(all="ignore"):
        product = x * _np.log(y)
    return _np.where((x == 0) & ~_np.isnan(y), product.dtype.type(0), product)
