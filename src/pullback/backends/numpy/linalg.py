"""Linear algebra: decompositions, solvers, determinants."""

from __future__ import annotations

import math as _math
from functools import wraps as _wraps
from typing import Any, Callable

import numpy as _np
from numpy import linalg as _linalg

from ...dtypes import lost_squares as _lost_squares
from ...errors import LinearAlgebraError as _LinearAlgebraError
from .precision import in_float32 as _in_float32
from .scaling import all_between as _all_between, in_units as _in_units

_BLOCK = 32  # columns that `lu` eliminates before it looks at those to their right


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raise LAPACK's complaints as one of our errors; refuse bfloat16, which NumPy would take for float64."""

    @_wraps(function)
    def kernel(x: Any, *args: Any) -> Any:
        if x.dtype.kind == "V":
            raise TypeError(f"array type {x.dtype.name} is unsupported in linalg")
        try:
            return function(x, *args)
        except _linalg.LinAlgError as error:
            raise _LinearAlgebraError(f"{function.__name__} of shape {x.shape}: {error}.") from error

    return kernel


@_checked
def inv(x: Any) -> Any:
    return _linalg.inv(x)


@_checked
def solve(x: Any, y: Any) -> Any:
    return _linalg.solve(x, y)


@_checked
def cholesky(x: Any) -> Any:
    return _linalg.cholesky(x)


@_checked
def det(x: Any) -> Any:
    return _linalg.det(x)


@_checked
def slogdet(x: Any) -> Any:
    return tuple(_linalg.slogdet(x))


@_checked
def eigh(x: Any) -> Any:
    return tuple(_linalg.eigh(x))


@_checked
def eigvalsh(x: Any) -> Any:
    return _linalg.eigvalsh(x)


@_checked
def eig(x: Any) -> Any:
    dtype = _np.result_type(x, _np.complex64)
    values, vectors = _linalg.eig(x)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


@_checked
def eigvals(x: Any) -> Any:
    return _linalg.eigvals(x).astype(_np.result_type(x, _np.complex64), copy=False)


@_checked
def svd(x: Any, full_matrices: bool) -> Any:
    return tuple(_linalg.svd(x, full_matrices))


@_checked
def svdvals(x: Any) -> Any:
    return _linalg.svd(x, compute_uv=False)


@_checked
def qr(x: Any, mode: str) -> Any:
    return tuple(_linalg.qr(x, mode))


@_checked
def lu(x: Any) -> Any:
    """(p, l, u), one block of columns after the other: what is right of a block is one product."""
    if x.dtype.itemsize < 4:
        raise TypeError(f"array type {x.dtype.name} is unsupported in linalg")
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    left = _np.array(x).reshape(_math.prod(x.shape[:-2]), rows, columns)
    stack = _np.arange(left.shape[0])
    order = _np.tile(_np.arange(rows), (left.shape[0], 1))
    for start in range(0, count, _BLOCK):
        end = min(start + _BLOCK, count)
        for i in range(start, end):
            size = _np.abs(left[:, i:, i].real)
            if left.dtype.kind == "c":
                size = size + _np.abs(left[:, i:, i].imag)  # what LAPACK compares
            pivot = i + size.argmax(1)
            for array in (left, order):
                array[stack, pivot], array[:, i] = array[:, i].copy(), array[stack, pivot]
            found = left[:, i, i, None]
            below = left[:, i + 1 :, i]
            _np.divide(below, found, out=below, where=found != 0)
            left[:, i + 1 :, i + 1 : end] -= below[:, :, None] * left[:, i, None, i + 1 : end]
        for i in range(start, end):
            left[:, i + 1 : end, end:] -= left[:, i + 1 : end, i, None] * left[:, i, None, end:]
        left[:, end:, end:] -= left[:, end:, start:end] @ left[:, start:end, end:]
    p = _np.zeros((left.shape[0], rows, rows), x.dtype)
    p[stack[:, None], order, _np.arange(rows)] = 1
    l = _np.tril(left[..., :count], -1)
    l[:, _np.arange(count), _np.arange(count)] = 1
    u = _np.triu(left[:, :count])
    return tuple([part.reshape(*x.shape[:-2], *part.shape[1:]) for part in (p, l, u)])


@_checked
def matrix_exp(x: Any) -> Any:
    from .. import NUMPY, portable

    return portable.bind("matrix_exp", NUMPY.xp)(x)


@_checked
def pinv(x: Any, rtol: Any, atol: float) -> Any:
    if not atol:
        return _linalg.pinv(x, rtol=rtol)
    u, s, vh = _linalg.svd(x, full_matrices=False)
    kept = s > _np.maximum(_np.asarray(rtol)[..., None] * s.max(-1, initial=0, keepdims=True), s.dtype.type(atol))
    inverses = _np.divide(1, s, where=kept, out=_np.zeros_like(s))
    return (vh.conj().swapaxes(-1, -2) * inverses[..., None, :]) @ u.conj().swapaxes(-1, -2)


@_checked
def matrix_rank(x: Any, rtol: Any) -> Any:
    singular_values = _linalg.svd(x, compute_uv=False)
    largest = singular_values.max(-1, initial=0, keepdims=True)
    return _np.count_nonzero(singular_values > _np.asarray(rtol)[..., None] * largest, axis=-1)


@_checked
def cofactor(x: Any) -> Any:
    """The gradient of the determinant: det(x) inv(x).T, and what that tends to where x is singular."""
    try:
        out = _linalg.det(x)[..., None, None] * _linalg.inv(x).swapaxes(-1, -2)
        if _np.isfinite(out).all():
            return out
    except _linalg.LinAlgError:
        pass  # some matrix is singular
    u, s, vh = _linalg.svd(x)
    sign = (_linalg.det(u) * _linalg.det(vh))[..., None, None]
    return sign * (u.conj() * _products_without(s)[..., None, :]) @ vh.conj()


@_checked
def cofactor_product(g: Any, x: Any) -> Any:
    """The second derivative of the determinant, a symmetric bilinear form, applied to `g`; for singular x too."""
    u, s, vh = _linalg.svd(x)
    n = s.shape[-1]
    pairs = _np.zeros((*s.shape, n), s.dtype)  # the product of all singular values but two
    for i in range(n):
        others = _np.delete(s, i, -1)
        pairs[..., i, _np.arange(n) != i] = _products_without(others)
    w = u.conj().swapaxes(-1, -2) @ g @ vh.conj().swapaxes(-1, -2)
    inside = -(pairs * w).swapaxes(-1, -2)
    diagonal = _np.diagonal(w, 0, -2, -1)
    i = _np.arange(n)
    inside[..., i, i] = (pairs @ diagonal[..., None])[..., 0]
    sign = (_linalg.det(u) * _linalg.det(vh))[..., None, None]
    return sign * (u.conj() @ inside @ vh.conj())


def _products_without(s: Any) -> Any:
    """For each element of the last axis the product of the others."""
    n = s.shape[-1]
    ones = _np.ones((*s.shape[:-1], 1), s.dtype)
    before = _np.cumprod(_np.concatenate((ones, s[..., : n - 1]), -1), -1)[..., :n]
    after = _np.cumprod(_np.concatenate((ones, s[..., :0:-1]), -1), -1)[..., :n][..., ::-1]
    return before * after


@_in_float32
def vector_norm(x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    if axis is not None and len(axis) == 0:
        return _np.abs(x) if ord != 0 else (x != 0).astype(_np.abs(x).dtype)
    if ord in (0, 1) or _math.isinf(ord) or not x.size:
        return _linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    with _np.errstate(all="ignore"):
        out = _np.asarray(_linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord))
    if x.dtype.kind in "fc":
        lost = _lost_squares(out.dtype) ** (1 / max(abs(ord), 1))
        if not _all_between(out, lost):
            return _in_units(
                x, axis, keepdims, lambda part: _linalg.vector_norm(part, axis=axis, keepdims=True, ord=ord), 1
            )
    return out


def cross(x: Any, y: Any, axis: int) -> Any:
    return _linalg.cross(x, y, axis=axis)
