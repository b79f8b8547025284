"""The functions of the array API standard over CuPy, which has NumPy's names and arguments."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import cupy
import numpy as np

Array = Any  # a cupy.ndarray

_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "atan2": "arctan2", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "concat": "concatenate", "conj": "conjugate", "permute_dims": "transpose",
    "pow": "power",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(cupy, _NAMES.get(name, name))


# -- making --------------------------------------------------------------------------------------


def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    with device or cupy.cuda.Device():
        return cupy.array(data, dtype=dtype, order="C") if copy else cupy.asarray(data, dtype=dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    with device or cupy.cuda.Device():
        return cupy.zeros(shape, dtype)


def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    with device or cupy.cuda.Device():
        return cupy.full(shape, value, dtype)


def arange(start: Any, stop: Any, step: Any, *, dtype: Any = None, device: Any = None) -> Array:
    with device or cupy.cuda.Device():
        return cupy.arange(start, stop, step, dtype)


def astype(x: Array, dtype: Any) -> Array:
    return x.astype(dtype, copy=False)


# -- shape ---------------------------------------------------------------------------------------


def reshape(x: Array, shape: Any) -> Array:
    return cupy.reshape(x, tuple(shape))


def matrix_transpose(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def unstack(x: Array, *, axis: int = 0) -> tuple[Array, ...]:
    return tuple(cupy.moveaxis(x, axis, 0))


# -- reductions, sorting, totals -----------------------------------------------------------------


def count_nonzero(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return cupy.sum(x != 0, axis=axis, keepdims=keepdims)


def sort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    found = cupy.sort(x, axis)
    return cupy.flip(found, axis) if descending else found


def argsort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    if not descending:
        return cupy.argsort(x, axis)
    backwards = cupy.argsort(cupy.flip(x, axis), axis)  # keeps the order of equal elements
    return (x.shape[axis] - 1) - cupy.flip(backwards, axis)


def _cumulative(function: Any, first: Any) -> Any:
    def cumulate(x: Array, *, axis: int = -1, include_initial: Any = False) -> Array:
        found = function(x, axis)
        if not include_initial:
            return found
        shape = list(x.shape)
        shape[axis] = 1
        return cupy.concatenate([cupy.full(shape, first, found.dtype), found], axis)

    return cumulate


cumulative_sum, cumulative_prod = _cumulative(cupy.cumsum, 0), _cumulative(cupy.cumprod, 1)


# -- products ------------------------------------------------------------------------------------


def vecdot(x: Array, y: Array, *, axis: int = -1) -> Array:
    return cupy.sum(cupy.conj(x) * y, axis=axis)


# -- extensions ----------------------------------------------------------------------------------


def _vector_norm(x: Array, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Array:
    size = cupy.abs(x)
    if math.isinf(ord):
        return (cupy.max if ord > 0 else cupy.min)(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return cupy.sum(size != 0, axis=axis, keepdims=keepdims).astype(size.dtype)
    return cupy.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def _solve(x: Array, y: Array) -> Array:
    """CuPy does not broadcast stacks of systems."""
    columns = y[:, None] if y.ndim == 1 else y
    stack = np.broadcast_shapes(x.shape[:-2], columns.shape[:-2])
    x = cupy.broadcast_to(x, (*stack, *x.shape[-2:]))
    found = cupy.linalg.solve(x, cupy.broadcast_to(columns, (*stack, *columns.shape[-2:])))
    return found[..., 0] if y.ndim == 1 else found


linalg = SimpleNamespace(
    cholesky=lambda x: cupy.linalg.cholesky(x),
    cross=lambda x, y, *, axis=-1: cupy.cross(*cupy.broadcast_arrays(x, y), axis=axis),
    det=lambda x: cupy.linalg.det(x),
    diagonal=lambda x, *, offset=0: cupy.diagonal(x, offset, -2, -1),
    eig=lambda x: tuple(cupy.linalg.eig(x)),
    eigh=lambda x: tuple(cupy.linalg.eigh(x)),
    eigvals=lambda x: cupy.linalg.eigvals(x),
    eigvalsh=lambda x: cupy.linalg.eigvalsh(x),
    inv=lambda x: cupy.linalg.inv(x),
    pinv=lambda x, *, rtol: cupy.linalg.pinv(x, rcond=rtol),
    qr=lambda x, *, mode="reduced": tuple(cupy.linalg.qr(x, mode)),
    slogdet=lambda x: tuple(cupy.linalg.slogdet(x)),
    solve=_solve,
    svd=lambda x, *, full_matrices=True: tuple(cupy.linalg.svd(x, full_matrices)),
    svdvals=lambda x: cupy.linalg.svd(x, compute_uv=False),
    vector_norm=_vector_norm,
)
fft = cupy.fft
