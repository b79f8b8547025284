"""The functions of the array API standard over PyTorch, whose own differ in names and arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import (  # noqa: F401
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bfloat16,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not as bitwise_invert,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    bool,
    ceil,
    complex64,
    complex128,
    copysign,
    cos,
    cosh,
    divide,
    eq as equal,
    exp,
    expm1,
    float16,
    float32,
    float64,
    floor,
    floor_divide,
    ge as greater_equal,
    gt as greater,
    hypot,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    le as less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt as less,
    matmul,
    maximum,
    minimum,
    multiply,
    ne as not_equal,
    negative,
    nextafter,
    ones_like,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sgn as sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    uint8,
    uint16,
    uint32,
    uint64,
    where,
    zeros_like,
)  # fmt: skip

Array = Any  # a torch.Tensor


# -- making --------------------------------------------------------------------------------------


def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    made = torch.as_tensor(data, dtype=dtype, device=device)
    return made.clone(memory_format=torch.contiguous_format) if copy and made is data else made


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return torch.zeros(shape, dtype=dtype, device=device)


def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return torch.full(shape, value, dtype=dtype, device=device)


def arange(start: Any, stop: Any, step: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def astype(x: Array, dtype: Any) -> Array:
    return x.to(dtype)


# -- elementwise ---------------------------------------------------------------------------------


def abs(x: Array) -> Array:
    return x if x.dtype in (torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64) else torch.abs(x)


def conj(x: Array) -> Array:
    return torch.conj(x).resolve_conj()


def imag(x: Array) -> Array:
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)


# -- reductions ----------------------------------------------------------------------------------


def _axes(x: Array, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _one_by_one(function: Any, x: Array, axis: Any, keepdims: Any) -> Array:
    """A reduction that torch has for one axis only."""
    axes = sorted(a % x.ndim for a in _axes(x, axis))
    for a in axes:
        x = function(x, a)
    return x if keepdims else torch.squeeze(x, tuple(axes)) if axes else x


def _reduction(function: Any) -> Any:
    def reduce(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
        axes = _axes(x, axis)
        return function(x, dim=axes, keepdim=keepdims) if axes else x  # for torch no axes are all axes

    return reduce


def _integer_sum(x: Array, dim: Any, keepdim: Any) -> Array:
    wide = torch.int64 if not (x.is_floating_point() or x.is_complex()) else None
    return torch.sum(x, dim=dim, keepdim=keepdim, dtype=wide)


sum, mean, max, min = (_reduction(f) for f in (_integer_sum, torch.mean, torch.amax, torch.amin))


def prod(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _one_by_one(lambda y, a: torch.prod(y, a, keepdim=True), x, axis, keepdims)


def any(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _one_by_one(lambda y, a: torch.any(y, a, keepdim=True), x.to(torch.bool), axis, keepdims)


def all(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _one_by_one(lambda y, a: torch.all(y, a, keepdim=True), x.to(torch.bool), axis, keepdims)


def count_nonzero(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return sum(x != 0, axis=axis, keepdims=keepdims)


def argmax(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return torch.argmax(x, dim=axis, keepdim=keepdims)


def argmin(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return torch.argmin(x, dim=axis, keepdim=keepdims)


def _cumulative(function: Any, first: float) -> Any:
    def cumulate(x: Array, *, axis: Any = None, include_initial: Any = False) -> Array:
        axis = -1 if axis is None else axis
        result = function(x, axis)
        if not include_initial:
            return result
        shape = list(x.shape)
        shape[axis] = 1
        return torch.cat([torch.full(shape, first, dtype=result.dtype, device=x.device), result], axis)

    return cumulate


cumulative_sum, cumulative_prod = _cumulative(torch.cumsum, 0), _cumulative(torch.cumprod, 1)


# -- shape ---------------------------------------------------------------------------------------


def reshape(x: Array, shape: Any) -> Array:
    return torch.reshape(x, tuple(shape))


def broadcast_to(x: Array, shape: Any) -> Array:
    return torch.broadcast_to(x, tuple(shape))


def permute_dims(x: Array, axes: Any) -> Array:
    return torch.permute(x, tuple(axes))


def matrix_transpose(x: Array) -> Array:
    return x.mT


def expand_dims(x: Array, axis: Any) -> Array:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in sorted(a % (x.ndim + len(axes)) for a in axes):
        x = torch.unsqueeze(x, a)
    return x


def squeeze(x: Array, axis: Any) -> Array:
    return torch.squeeze(x, axis if isinstance(axis, int) else tuple(axis))


def concat(xs: Any, *, axis: Any = 0) -> Array:
    return torch.cat([torch.reshape(x, (-1,)) for x in xs], 0) if axis is None else torch.cat(list(xs), axis)


def stack(xs: Any, *, axis: int = 0) -> Array:
    return torch.stack(list(xs), axis)


def unstack(x: Array, *, axis: int = 0) -> tuple[Array, ...]:
    return torch.unbind(x, axis)


def flip(x: Array, *, axis: Any = None) -> Array:
    return torch.flip(x, _axes(x, axis))


def roll(x: Array, shift: Any, *, axis: Any = None) -> Array:
    return torch.roll(x, shift, axis)


def repeat(x: Array, repeats: Any, *, axis: Any = None) -> Array:
    return torch.repeat_interleave(x, repeats, dim=axis)


def tile(x: Array, repetitions: Any) -> Array:
    return torch.tile(x, tuple(repetitions))


def tril(x: Array, *, k: int = 0) -> Array:
    return torch.tril(x, k)


def triu(x: Array, *, k: int = 0) -> Array:
    return torch.triu(x, k)


# -- looking up, sorting -------------------------------------------------------------------------


def take(x: Array, indices: Array, *, axis: int = 0) -> Array:
    if indices.ndim != 1:
        flat = torch.index_select(x, axis, indices.reshape(-1))
        axis %= x.ndim
        return flat.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return torch.index_select(x, axis, indices)


def take_along_axis(x: Array, indices: Array, *, axis: int = -1) -> Array:
    return torch.take_along_dim(x, indices, axis)


def sort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    return torch.sort(x, dim=axis, descending=descending, stable=stable).indices


def searchsorted(x: Array, values: Array, *, side: str = "left", sorter: Any = None) -> Array:
    return torch.searchsorted(x, values, side=side, sorter=sorter)


def nonzero(x: Array) -> tuple[Array, ...]:
    return torch.nonzero(x, as_tuple=True)


# -- products ------------------------------------------------------------------------------------


def tensordot(x: Array, y: Array, *, axes: Any = 2) -> Array:
    return torch.tensordot(x, y, dims=axes)


def vecdot(x: Array, y: Array, *, axis: int = -1) -> Array:
    return torch.linalg.vecdot(x, y, dim=axis)


# -- extensions ----------------------------------------------------------------------------------


class _Slogdet(NamedTuple):
    sign: Array
    logabsdet: Array


def _svd(x: Array, *, full_matrices: Any = True) -> Any:
    return torch.linalg.svd(x, full_matrices=full_matrices)


def _slogdet(x: Array) -> _Slogdet:
    return _Slogdet(*torch.linalg.slogdet(x))


def _cholesky(x: Array, *, upper: Any = False) -> Array:
    return torch.linalg.cholesky(x, upper=upper)


def _diagonal(x: Array, *, offset: int = 0) -> Array:
    return torch.diagonal(x, offset, -2, -1)


def _cross(x: Array, y: Array, *, axis: int = -1) -> Array:
    return torch.linalg.cross(*torch.broadcast_tensors(x, y), dim=axis)


def _solve(x: Array, y: Array) -> Array:
    if y.ndim == 1:
        return torch.linalg.solve(x, y.expand(*x.shape[:-2], -1).unsqueeze(-1)).squeeze(-1)
    return torch.linalg.solve(x, y)


def _vector_norm(x: Array, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Array:
    return torch.linalg.vector_norm(x, ord, axis, keepdims)


def _qr(x: Array, *, mode: str = "reduced") -> Any:
    return torch.linalg.qr(x, mode)


def _pinv(x: Array, *, rtol: Any = None) -> Array:
    return torch.linalg.pinv(x, rtol=rtol)


linalg = SimpleNamespace(
    cholesky=_cholesky, cross=_cross, det=torch.linalg.det, diagonal=_diagonal, eig=torch.linalg.eig,
    eigh=torch.linalg.eigh, eigvals=torch.linalg.eigvals, eigvalsh=torch.linalg.eigvalsh, inv=torch.linalg.inv,
    pinv=_pinv, qr=_qr, slogdet=_slogdet, solve=_solve, svd=_svd, svdvals=torch.linalg.svdvals,
    vector_norm=_vector_norm,
)  # fmt: skip


def _transform(function: Any) -> Any:
    """One of torch's transforms with the standard's names of arguments."""

    def transform(x: Array, *, n: Any = None, axis: int = -1, norm: str = "backward") -> Array:
        return function(x, n, axis, norm)

    return transform


fft = SimpleNamespace(
    fft=_transform(torch.fft.fft),
    ifft=_transform(torch.fft.ifft),
    rfft=_transform(torch.fft.rfft),
    irfft=_transform(torch.fft.irfft),
)
