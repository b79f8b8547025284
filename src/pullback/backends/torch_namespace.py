"""The functions of the array API standard over PyTorch, whose own differ in names and arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import (  # noqa: F401
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bfloat16,
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
    float16,
    float32,
    float64,
    floor,
    hypot,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    ne as not_equal,
    nextafter,
    ones_like,
    positive,
    real,
    signbit,
    sin,
    sinh,
    sqrt,
    tan,
    trunc,
    uint8,
    uint16,
    uint32,
    uint64,
    where,
    zeros_like,
)  # fmt: skip

from .complex_limits import with_limits
from .torch_unsigned import divided, on_bits, on_order, shifted_right

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
    if dtype in (torch.uint16, torch.uint32, torch.uint64):
        return torch.arange(start, stop, step, dtype=torch.int64, device=device).to(dtype)
    if dtype is not None and dtype.is_complex:
        return torch.arange(start, stop, step, dtype=torch.float64, device=device).to(dtype)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def astype(x: Array, dtype: Any) -> Array:
    return x.to(dtype)


# -- elementwise ---------------------------------------------------------------------------------

maximum, minimum = map(on_order, (torch.maximum, torch.minimum))
less, less_equal, greater, greater_equal = (on_order(f, back=False) for f in (torch.lt, torch.le, torch.gt, torch.ge))
multiply, square, pow, bitwise_and, bitwise_or, bitwise_xor, bitwise_invert, bitwise_left_shift = map(
    on_bits,
    (torch.multiply, torch.square, torch.pow, torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.bitwise_not,
     torch.bitwise_left_shift),
)  # fmt: skip
floor_divide, remainder = map(divided, (torch.floor_divide, torch.remainder))
bitwise_right_shift = shifted_right
_add, _subtract, _negative = map(on_bits, (torch.add, torch.subtract, torch.negative))


def _by_parts(function: Any) -> Any:
    """Sums of complex numbers by parts: torch multiplies by one on the way, which makes NaN of infinities."""

    def compute(*xs: Array) -> Array:
        if not xs[0].is_complex():
            return function(*xs)
        parts = [torch.view_as_real(x.resolve_conj()) for x in torch.broadcast_tensors(*xs)]
        return torch.view_as_complex(function(*parts).contiguous())

    return compute


add, subtract, negative = map(_by_parts, (_add, _subtract, _negative))


expm1, log1p, reciprocal, sign, tanh = (
    with_limits(torch, name, function, torch.complex, torch.is_complex)
    for name, function in {
        "expm1": torch.expm1, "log1p": torch.log1p, "reciprocal": torch.reciprocal, "sign": torch.sgn,
        "tanh": torch.tanh,
    }.items()
)  # fmt: skip


def acos(x: Array) -> Array:
    if not x.is_complex():
        return torch.acos(x)
    turned = torch.acosh(x)  # the same parts; torch's own loses a small angle, and a negative zero
    return torch.complex(turned.imag.abs(), torch.copysign(turned.real, -x.imag))


acos.plain = torch.acos  # type: ignore[attr-defined]


def round(x: Array) -> Array:
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.is_complex() else torch.round(x)


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
        if not axes:  # for torch no axes are all axes
            return torch.squeeze(function(torch.unsqueeze(x, 0), dim=(0,), keepdim=True), 0)
        return function(x, dim=axes, keepdim=keepdims)

    return reduce


_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def _widened(function: Any) -> Any:
    """A sum or product of small integers in 64 bits, unsigned where they are."""

    def compute(x: Array, *args: Any, **options: Any) -> Array:
        if x.is_floating_point() or x.is_complex():
            return function(x, *args, **options)
        total = function(x.to(torch.int64), *args, **options)  # wraps around like unsigned numbers
        return total.to(torch.uint64) if x.dtype in _UNSIGNED else total

    return compute


sum = _reduction(_widened(torch.sum))
mean = _reduction(torch.mean)
max, min = _reduction(on_order(torch.amax)), _reduction(on_order(torch.amin))


def prod(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _widened(lambda y: _one_by_one(lambda z, a: torch.prod(z, a, keepdim=True), y, axis, keepdims))(x)


def any(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _one_by_one(lambda y, a: torch.any(y, a, keepdim=True), x.to(torch.bool), axis, keepdims)


def all(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _one_by_one(lambda y, a: torch.all(y, a, keepdim=True), x.to(torch.bool), axis, keepdims)


def count_nonzero(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return sum(x != 0, axis=axis, keepdims=keepdims)


_argmax, _argmin = (on_order(f, back=False) for f in (torch.argmax, torch.argmin))


def argmax(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _argmax(x, dim=axis, keepdim=keepdims)


def argmin(x: Array, *, axis: Any = None, keepdims: Any = False) -> Array:
    return _argmin(x, dim=axis, keepdim=keepdims)


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


cumulative_sum = _cumulative(_widened(torch.cumsum), 0)
cumulative_prod = _cumulative(_widened(torch.cumprod), 1)


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


_flip, _tril, _triu = map(on_bits, (torch.flip, torch.tril, torch.triu))


def flip(x: Array, *, axis: Any = None) -> Array:
    return _flip(x, _axes(x, axis))


def roll(x: Array, shift: Any, *, axis: Any = None) -> Array:
    return torch.roll(x, shift, axis)


_repeat = on_bits(torch.repeat_interleave)


def repeat(x: Array, repeats: Any, *, axis: Any = None) -> Array:
    return _repeat(x, repeats, dim=axis)


def tile(x: Array, repetitions: Any) -> Array:
    return torch.tile(x, tuple(repetitions))


def tril(x: Array, *, k: int = 0) -> Array:
    return _tril(x, k)


def triu(x: Array, *, k: int = 0) -> Array:
    return _triu(x, k)


# -- looking up, sorting -------------------------------------------------------------------------


_index_select, _gather = map(on_bits, (torch.index_select, torch.gather))
_searchsorted = on_order(torch.searchsorted, back=False)


def take(x: Array, indices: Array, *, axis: int = 0) -> Array:
    if indices.ndim != 1:
        flat = _index_select(x, axis, indices.reshape(-1))
        axis %= x.ndim
        return flat.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return _index_select(x, axis, indices)


def take_along_axis(x: Array, indices: Array, *, axis: int = -1) -> Array:
    return _gather(x, axis, indices)  # `take_along_dim` takes any position, round and round


def sort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Array, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Array:
    return torch.sort(x, dim=axis, descending=descending, stable=stable).indices


def searchsorted(x: Array, values: Array, *, side: str = "left", sorter: Any = None) -> Array:
    if sorter is not None:
        x = take(x, sorter.to(torch.int64))
    if not x.is_floating_point():
        return _searchsorted(*(z.to(torch.uint8) if z.dtype == torch.bool else z for z in (x, values)), side=side)
    # NaN comes after all numbers, which torch's search cannot see.
    numbers = torch.sum(~torch.isnan(x))
    found = torch.searchsorted(torch.where(torch.isnan(x), torch.inf, x), values, side=side)
    among_nan = numbers if side == "left" else torch.full_like(numbers, x.shape[0])
    return torch.where(torch.isnan(values), among_nan, torch.minimum(found, numbers))


def nonzero(x: Array) -> tuple[Array, ...]:
    return torch.nonzero(x.to(torch.bool), as_tuple=True)


# -- products ------------------------------------------------------------------------------------


def _of_booleans(function: Any) -> Any:
    """Products of booleans: torch has sums of numbers only."""

    def compute(x: Array, y: Array, *args: Any, **options: Any) -> Array:
        if x.dtype != torch.bool:
            return function(x, y, *args, **options)
        return function(x.to(torch.int64), y.to(torch.int64), *args, **options).to(torch.bool)

    found = on_bits(compute)
    found.plain = function
    return found


matmul = _of_booleans(torch.matmul)
_tensordot = _of_booleans(torch.tensordot)


def tensordot(x: Array, y: Array, *, axes: Any = 2) -> Array:
    return _tensordot(x, y, dims=axes)


def vecdot(x: Array, y: Array, *, axis: int = -1) -> Array:
    if x.is_floating_point() or x.is_complex():
        return torch.linalg.vecdot(x, y, dim=axis)
    x, y = (torch.movedim(z, axis, -1) for z in torch.broadcast_tensors(x, y))
    return matmul(torch.unsqueeze(x, -2), torch.unsqueeze(y, -1))[..., 0, 0]


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
    x, y = torch.broadcast_tensors(x, y)
    if x.is_floating_point() or x.is_complex():
        return torch.linalg.cross(x, y, dim=axis)
    after, before = (torch.roll(torch.arange(3, device=x.device), -k) for k in (1, 2))
    first, second = (
        multiply(take(x, after, axis=axis), take(y, before, axis=axis)),
        multiply(take(x, before, axis=axis), take(y, after, axis=axis)),
    )
    return subtract(first, second)


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
    """One of torch's transforms with the standard's names of arguments, also of no rows at all."""

    def transform(x: Array, *, n: Any = None, axis: int = -1, norm: str = "backward") -> Array:
        if x.numel() or not x.shape[axis]:
            return function(x, n, axis, norm)
        one = function(torch.ones(x.shape[axis], dtype=x.dtype, device=x.device), n, -1, norm)
        shape = list(x.shape)
        shape[axis] = one.shape[0]
        return torch.zeros(shape, dtype=one.dtype, device=x.device)

    return transform


fft = SimpleNamespace(
    fft=_transform(torch.fft.fft),
    ifft=_transform(torch.fft.ifft),
    rfft=_transform(torch.fft.rfft),
    irfft=_transform(torch.fft.irfft),
)
