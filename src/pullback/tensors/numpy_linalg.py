"""The functions of `np.linalg` and `np.fft` in terms of Pullback's, with NumPy's arguments and defaults."""

from __future__ import annotations

from functools import reduce
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError, ShapeError
from .numpy_protocols import in_numpy
from .numpy_reductions import numpy_tensordot
from .numpy_shapes import _tensor, numpy_trace
from .numpy_values import have_values


def find(module: str, name: str) -> Callable[..., Any] | None:
    """The implementation of `np.linalg.NAME` or `np.fft.NAME`, or None."""
    if module == "fft":
        return _transform(name) if name in _ONE_AXIS | _SEVERAL_AXES else None
    return globals().get("linalg_" + name)


# -- np.fft ----------------------------------------------------------------------------------------

_ONE_AXIS = {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"}
_SEVERAL_AXES = {"fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"}


def _transform(name: str) -> Callable[..., Any]:
    if name in _ONE_AXIS:

        def along_one(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
            return getattr(pb.fft, name)(_tensor(a), n=n, axis=axis, norm=norm or "backward")

        return along_one
    default = (-2, -1) if name.endswith("2") else None

    def along_several(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Any:
        x, norm, kind = _tensor(a), norm or "backward", name.replace("2", "n")
        if axes is None:
            axes = range(-x.ndim if s is None else -len(s), 0)
        axes = [axes] if isinstance(axes, int) else list(axes)
        sizes = [None if n == -1 else n for n in ([None] * len(axes) if s is None else s)]
        sizes[:-1] = [x.shape[axis] if n is None else n for n, axis in zip(sizes[:-1], axes)]
        if kind in ("fftn", "ifftn", "rfftn"):
            if sizes and sizes[-1] is None:
                sizes[-1] = x.shape[axes[-1]]
            pairs = list(zip(sizes, axes))[::-1]  # one after the other, as NumPy does: an axis may come twice
            for i, (n, axis) in enumerate(pairs):
                along = "rfft" if kind == "rfftn" and i == 0 else "ifft" if kind == "ifftn" else "fft"
                x = getattr(pb.fft, along)(x, n=n, axis=axis, norm=norm)
            return x
        for n, axis in list(zip(sizes, axes))[:-1]:
            x = pb.fft.ifft(x, n=n, axis=axis, norm=norm)
        return pb.fft.irfft(x, n=sizes[-1], axis=axes[-1], norm=norm)

    return along_several


# -- np.linalg -------------------------------------------------------------------------------------


def linalg_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axis = axis if axis is None or isinstance(axis, tuple) else int(axis)
    return pb.linalg.norm(_tensor(x), ord, axis, keepdims)


def linalg_vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    axis = int(axis) if isinstance(axis, float) else axis
    return pb.linalg.vector_norm(_tensor(x), axis=axis, keepdims=keepdims, ord=ord)


def linalg_matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return pb.linalg.matrix_norm(_tensor(x), keepdims=keepdims, ord=ord)


def linalg_solve(a: Any, b: Any) -> Any:
    return pb.linalg.solve(_tensor(a), _tensor(b))


def linalg_inv(a: Any) -> Any:
    return pb.linalg.inv(_tensor(a))


def linalg_pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    tolerance = rcond if rtol is np._NoValue else rtol
    x = _tensor(a)
    if hermitian:
        x = (x + pb.conj(pb.matrix_transpose(x))) / 2
    return pb.linalg.pinv(x, rtol=tolerance)


def linalg_det(a: Any) -> Any:
    return pb.linalg.det(_tensor(a))


def linalg_slogdet(a: Any) -> Any:
    return pb.linalg.slogdet(_tensor(a))


def linalg_cholesky(a: Any, *, upper: bool = False) -> Any:
    if upper:
        return pb.conj(pb.matrix_transpose(pb.linalg.cholesky(pb.conj(pb.matrix_transpose(_tensor(a))))))
    return pb.linalg.cholesky(_tensor(a))


def linalg_qr(a: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return pb.linalg.qr(_tensor(a), mode="reduced")[1]
    if mode in ("raw", "economic"):
        raise DtypeError(f"np.linalg.qr: mode={mode!r} has no gradient here; write mode='reduced' or 'r'.")
    return pb.linalg.qr(_tensor(a), mode="reduced" if mode in ("full", "f") else mode)


def linalg_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        values, vectors = pb.linalg.eigh(_tensor(a))
        order = pb.asarray(np.argsort(np.abs(in_numpy(values)), axis=-1)[..., ::-1].copy())
        values = pb.take_along_axis(values, order, axis=-1)
        if not compute_uv:
            return pb.abs(values)
        vectors = pb.take_along_axis(vectors, order[..., None, :], axis=-1)
        signs = pb.asarray(np.sign(in_numpy(values)))[..., None, :]
        return vectors, pb.abs(values), pb.conj(pb.matrix_transpose(vectors * signs))
    if not compute_uv:
        return pb.linalg.svdvals(_tensor(a))
    return pb.linalg.svd(_tensor(a), full_matrices=full_matrices)


def linalg_svdvals(x: Any) -> Any:
    return pb.linalg.svdvals(_tensor(x))


def linalg_eigh(a: Any, UPLO: str = "L") -> Any:
    values, vectors = pb.linalg.eigh(_tensor(a), UPLO)
    if UPLO.upper() != "L" and have_values(a):  # of the other triangle LAPACK may give vectors of another sign
        theirs = np.linalg.eigh(in_numpy(a), UPLO)[1]
        inner = np.sum(np.conj(in_numpy(vectors)) * theirs, axis=-2, keepdims=True)
        vectors = vectors * pb.asarray(inner / np.abs(inner))
    return values, vectors


def linalg_eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return pb.linalg.eigvalsh(_tensor(a), UPLO)


def linalg_eig(a: Any) -> Any:
    return pb.linalg.eig(_tensor(a))


def linalg_eigvals(a: Any) -> Any:
    return pb.linalg.eigvals(_tensor(a))


def linalg_matrix_power(a: Any, n: int) -> Any:
    return pb.linalg.matrix_power(_tensor(a), n)


def linalg_multi_dot(arrays: Any) -> Any:
    return reduce(pb.dot, [_tensor(x) for x in arrays])


def linalg_cond(x: Any, p: Any = None) -> Any:
    x = _tensor(x)
    if p in (None, 2, -2):
        values = pb.linalg.svdvals(x)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    return pb.linalg.matrix_norm(x, ord=p) * pb.linalg.matrix_norm(pb.linalg.pinv(x), ord=p)


def linalg_lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """(solution, residuals, rank, singular values), for matrices of full rank."""
    x, y = _tensor(a), _tensor(b)
    if x.ndim != 2:
        raise ShapeError(f"np.linalg.lstsq: expected a matrix, got shape {x.shape}.")
    rank = int(np.linalg.lstsq(in_numpy(x), in_numpy(y), rcond)[2])  # of what `rcond` leaves
    if rank < min(x.shape):
        raise DtypeError(
            f"np.linalg.lstsq: a matrix of shape {x.shape} has rank {rank} with rcond={rcond!r}; a gradient needs full "
            "rank. Write `np.linalg.pinv(a) @ b` for the solution of least norm."
        )
    found = pb.linalg.lstsq(x, y, rcond)
    return found.solution, found.residuals, rank, found.singular_values


def linalg_matmul(x1: Any, x2: Any) -> Any:
    return pb.matmul(_tensor(x1), _tensor(x2))


def linalg_vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    return pb.vecdot(_tensor(x1), _tensor(x2), axis=axis)


def linalg_tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    return numpy_tensordot(x1, x2, axes)


def linalg_tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = _tensor(a), _tensor(b)
    for axis in () if axes is None else axes:
        x = pb.moveaxis(x, axis, -1)
    shape = x.shape[y.ndim :]
    return pb.reshape(pb.linalg.solve(pb.reshape(x, (y.size, -1)), pb.ravel(y)), shape)


def linalg_tensorinv(a: Any, ind: int = 2) -> Any:
    x = _tensor(a)
    rows = int(np.prod(x.shape[ind:]))
    return pb.reshape(pb.linalg.inv(pb.reshape(x, (rows, -1))), x.shape[ind:] + x.shape[:ind])


def linalg_outer(x1: Any, x2: Any) -> Any:
    return pb.outer(_tensor(x1), _tensor(x2))


def linalg_cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    return pb.linalg.cross(_tensor(x1), _tensor(x2), axis=axis)


def linalg_trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Any:
    return numpy_trace(x, offset, -2, -1, dtype)


def linalg_matrix_transpose(x: Any) -> Any:
    return pb.matrix_transpose(_tensor(x))
