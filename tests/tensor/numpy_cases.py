"""NumPy code that must run unchanged on tensors: functions of float64 arrays, with arguments to differentiate at."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

Case = tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]
_random = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return _random.normal(size=shape)


def _positive(*shape: int) -> np.ndarray:
    return _random.uniform(0.3, 2.0, size=shape)


V, W, M, N, S, T = _normal(4), _normal(4), _normal(3, 4), _normal(4, 3), _normal(4, 4), _normal(2, 3, 4)
P, Q = _positive(4), _positive(3, 4)
U = _random.uniform(-0.9, 0.9, size=4)
SPD = S @ S.T + 4 * np.eye(4)
INDEX = np.array([2, 0, 3, 0])
MASK = np.array([True, False, True, True])
HOLES = np.where(_random.random((3, 4)) < 0.25, np.nan, 1.0)


def _filled(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(4):
        out[i] = x[i] * x[i - 1]
    return out


def _written_by(function: Callable[..., Any], *rest: Any, **options: Any) -> Callable[..., Any]:
    """A function that changes a copy of its argument."""

    def run(x: Any, *values: Any) -> Any:
        out = np.copy(x)
        function(out, *rest, *values, **options)
        return out

    return run


def _sum_with_out(x: Any) -> Any:
    out = np.zeros_like(x)
    np.multiply(x, x, out=out)
    np.sum(x * out[:, None], axis=0, out=out)
    return out


UNARY_UFUNCS: list[Case] = [
    (ufunc.__name__, ufunc, (argument,))
    for ufuncs, argument in (
        ((np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arctan, np.arcsinh, np.exp, np.exp2, np.expm1), V),
        ((np.negative, np.positive, np.square, np.absolute, np.fabs, np.conjugate, np.cbrt, np.reciprocal), V),
        ((np.degrees, np.radians, np.deg2rad, np.rad2deg), V),
        ((np.arcsin, np.arccos, np.arctanh), U),
        ((np.log, np.log2, np.log10, np.log1p, np.sqrt), P),
        ((np.arccosh,), P + 1.5),
        ((np.sign, np.floor, np.ceil, np.trunc, np.rint), V),
    )
    for ufunc in ufuncs
]

BINARY_UFUNCS: list[Case] = [
    (ufunc.__name__, ufunc, arguments)
    for ufuncs, arguments in (
        ((np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.hypot, np.arctan2), (M, V)),
        ((np.logaddexp, np.logaddexp2, np.fmax, np.fmin, np.copysign), (M, V)),
        ((np.power, np.float_power, np.remainder, np.fmod), (Q, P)),
        ((np.matmul,), (M, N)),
        ((np.vecdot,), (M, V)),
    )
    for ufunc in ufuncs
]

UFUNC_METHODS: list[Case] = [
    ("add.reduce", np.add.reduce, (M,)),
    ("add.reduce axis", lambda x: np.add.reduce(x, axis=(0, 1), keepdims=True), (M,)),
    ("add.reduce initial", lambda x: np.add.reduce(x, initial=2.0), (M,)),
    ("multiply.reduce", np.multiply.reduce, (M,)),
    ("maximum.reduce", lambda x: np.maximum.reduce(x, axis=1), (M,)),
    ("minimum.reduce", lambda x: np.minimum.reduce(x, axis=None), (M,)),
    ("logaddexp.reduce", lambda x: np.logaddexp.reduce(x, axis=1), (M,)),
    ("add.accumulate", np.add.accumulate, (M,)),
    ("multiply.accumulate", lambda x: np.multiply.accumulate(x, axis=1), (M,)),
    ("maximum.accumulate", lambda x: np.maximum.accumulate(x, axis=1), (M,)),
    ("add.outer", np.add.outer, (V, M)),
    ("subtract.outer", np.subtract.outer, (V, W)),
    ("power.outer", np.power.outer, (P, Q)),
    ("add.at", _written_by(np.add.at, INDEX), (V, W)),
    ("subtract.at", _written_by(np.subtract.at, INDEX), (V, W)),
    ("dtype=", lambda x: np.multiply(x, 2, dtype=np.float64), (V,)),
    ("out=", _sum_with_out, (V,)),
    ("divmod", lambda x, y: sum(np.divmod(x, y)), (Q, P)),
    ("modf", lambda x: np.modf(x)[0], (V,)),
    ("heaviside", lambda x, y: np.heaviside(x, y) * x, (V, W)),
    ("ldexp", lambda x: np.ldexp(x, np.array([1, 2, 3, -1])), (V,)),
    ("list operand", lambda x: np.multiply(x, [1.0, 2.0, 3.0, 4.0]), (V,)),
    ("array first", lambda x: np.arange(4.0) - x, (V,)),
    ("array power", lambda x: np.arange(1.0, 5.0) ** x, (V,)),
    ("array matmul", lambda x: N.T @ x, (V,)),
    ("numpy scalar first", lambda x: np.float64(2.0) / x, (P,)),
]

REDUCTIONS: list[Case] = [
    ("sum", np.sum, (M,)),
    ("sum axis", lambda x: np.sum(x, axis=1, keepdims=True), (M,)),
    ("sum negative axes", lambda x: np.sum(x, axis=(-1, 0)), (T,)),
    ("prod", lambda x: np.prod(x, axis=0), (M,)),
    ("max", lambda x: np.max(x, axis=1), (M,)),
    ("amin", lambda x: np.amin(x, axis=0, keepdims=True), (M,)),
    ("max initial", lambda x: np.max(x, initial=0.5), (V,)),
    ("mean", lambda x: np.mean(x, axis=(0, 2)), (T,)),
    ("var", lambda x: np.var(x, axis=1), (M,)),
    ("std ddof", lambda x: np.std(x, axis=0, ddof=1), (M,)),
    ("median", lambda x: np.median(x, axis=1), (M,)),
    ("average", lambda x, w: np.average(x, axis=1, weights=w), (M, P)),
    ("ptp", lambda x: np.ptp(x, axis=1), (M,)),
    ("cumsum", np.cumsum, (M,)),
    ("cumprod", lambda x: np.cumprod(x, axis=1), (M,)),
    ("nansum", lambda x: np.nansum(x * HOLES, axis=1), (M,)),
    ("nanmean", lambda x: np.nanmean(x * HOLES, axis=1), (M,)),
    ("quantile", lambda x: np.quantile(x, [0.1, 0.5, 0.9], axis=1), (M,)),
    ("percentile keepdims", lambda x: np.percentile(x, 30, axis=(0, 2), keepdims=True), (T,)),
    ("cov", np.cov, (M,)),
    ("cov of columns", lambda x: np.cov(x, rowvar=False, bias=True), (M,)),
    ("trapezoid", lambda y, x: np.trapezoid(y, np.cumsum(x), axis=1), (M, P)),
    ("trapezoid dx", lambda y: np.trapezoid(y, dx=0.1), (M,)),
    ("diff", lambda x: np.diff(x, n=2, axis=1), (M,)),
    ("diff prepend", lambda x: np.diff(x, prepend=0.0, append=x[:1]), (V,)),
    ("ediff1d", np.ediff1d, (M,)),
    ("nanmax", lambda x: np.nanmax(x * HOLES, axis=1), (M,)),
    ("nanmin", lambda x: np.nanmin(x * HOLES, axis=0), (M,)),
    ("nanprod", lambda x: np.nanprod(x * HOLES, axis=1), (M,)),
    ("nanvar", lambda x: np.nanvar(x * HOLES, axis=1, ddof=1), (M,)),
    ("nanstd", lambda x: np.nanstd(x * HOLES), (M,)),
    ("nancumsum", lambda x: np.nancumsum(x * HOLES, axis=1), (M,)),
    ("corrcoef", np.corrcoef, (M,)),
]

CALCULUS: list[Case] = [
    ("gradient", np.gradient, (V,)),
    ("gradient spacing", lambda x: np.gradient(x, 0.5, axis=1), (M,)),
    ("gradient axes", lambda x: np.gradient(x, 0.5, 2.0)[0], (M,)),
    ("gradient coordinates", np.gradient, (V, np.cumsum(P))),
    ("correlate", np.correlate, (V, W[:2])),
    ("correlate full", lambda x, y: np.correlate(x, y, "full"), (V, W[:3])),
    ("correlate same", lambda x, y: np.correlate(x, y, "same"), (V, W[:3])),
    ("correlate same longer", lambda x, y: np.correlate(x, y, "same"), (W[:3], V)),
    ("correlate same even", lambda x, y: np.correlate(x, y, "same"), (W[:2], V)),
    ("unwrap", lambda x: np.unwrap(3 * x), (V,)),
    ("bincount", lambda x: np.bincount(INDEX, x, 6), (V,)),
    ("piecewise", lambda x: np.piecewise(x, [x < 0, x > 0.5], [np.sin, lambda x: x * x, 2.0]), (V,)),
]

PRODUCTS: list[Case] = [
    ("dot vectors", np.dot, (V, W)),
    ("dot matrices", np.dot, (M, N)),
    ("dot chain", lambda x, y, v: np.dot(np.dot(x, y), np.dot(x, v)), (M, N, V)),
    ("dot scalar", lambda x: np.dot(x, 2.0), (V,)),
    ("vdot", np.vdot, (M, M + 1)),
    ("inner", np.inner, (M, T)),
    ("outer", np.outer, (V, M)),
    ("kron", np.kron, (V[:2], M)),
    ("tensordot", lambda x, y: np.tensordot(x, y, axes=([1], [0])), (M, N)),
    ("tensordot pairs", lambda x, y: np.tensordot(x, y, axes=((0, 1), (1, 0))), (M, N)),
    ("einsum", lambda x, y: np.einsum("ij,jk->ki", x, y), (M, N)),
    ("einsum trace", lambda x: np.einsum("ii", x), (S,)),
    ("cross", np.cross, (_normal(5, 3), _normal(3))),
    ("convolve", np.convolve, (V, W[:3])),
    ("convolve same", lambda x, y: np.convolve(x, y, mode="same"), (V, W[:2])),
    ("convolve valid", lambda x, y: np.convolve(x, y, mode="valid"), (W[:2], V)),
    ("multi_dot", lambda x, y: np.linalg.multi_dot([x, y, x]), (M, N)),
]

CHOOSING: list[Case] = [
    ("where", lambda x, y: np.where(x > y, x * x, y), (V, W)),
    ("where constant", lambda x: np.where(x > 0, x, 0.0), (V,)),
    ("select", lambda x: np.select([x > 1, x > 0], [x * 2, x**2], x), (V,)),
    ("clip", lambda x: np.clip(x, -0.5, 0.5), (V,)),
    ("clip one side", lambda x: np.clip(x, None, 0.5), (V,)),
    *([("clip names", lambda x: np.clip(x, min=0.1), (V,))] if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else []),
    ("clip bounds", lambda x, low: np.clip(x, low, low + 1), (V, W)),
    ("nan_to_num", lambda x: np.nan_to_num(x * np.array([1.0, np.nan, np.inf, 1.0]), posinf=3.0, neginf=-3.0), (V,)),
    ("interp", lambda x, f: np.interp(x, [-2.0, -0.5, 0.5, 2.0], f), (V, W)),
    ("take", lambda x: np.take(x, INDEX, axis=1), (M,)),
    ("take flat", lambda x: np.take(x, [[1, 5], [11, 5]]), (M,)),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), (M,)),
    ("compress", lambda x: np.compress(MASK, x, axis=1), (M,)),
    ("extract", lambda x: np.extract(x > 0, x), (V,)),
    ("sort", lambda x: np.sort(x, axis=0), (M,)),
    ("sort flat", lambda x: np.sort(x, axis=None), (M,)),
    ("partition", lambda x: np.sum(np.partition(x, 2)[..., :2]), (M,)),
    ("unique", lambda x: np.unique(x[INDEX]), (V,)),
    ("unique inverse", lambda x: np.unique(x[INDEX], return_inverse=True)[0], (V,)),
    ("index by mask", lambda x: x[MASK] * 2, (V,)),
    ("index by array", lambda x: x[:, INDEX], (M,)),
]

WRITING: list[Case] = [
    ("fill an array", _filled, (V,)),
    ("copyto", lambda x, y: _written_by(np.copyto)(x, y * y), (V, W)),
    ("copyto where", lambda x, y: _written_by(np.copyto, where=MASK)(x, y), (V, W)),
    ("putmask", lambda x, y: _written_by(np.putmask, MASK)(x, y), (V, W)),
    ("put_along_axis", lambda x: _written_by(np.put_along_axis, np.array([[0], [1], [2]]), 0.5, 1)(x), (M,)),
    ("fill_diagonal", lambda x, y: _written_by(np.fill_diagonal)(x, y), (S, V)),
    ("augmented", lambda x: _written_by(lambda out: out.__iadd__(out * 2))(x), (V,)),
]

SHAPES: list[Case] = [
    ("reshape", lambda x: np.reshape(x, (2, -1)), (M,)),
    ("ravel", np.ravel, (M,)),
    ("copy", np.copy, (M,)),
    ("transpose", np.transpose, (T,)),
    ("transpose axes", lambda x: np.transpose(x, (1, 2, 0)), (T,)),
    ("swapaxes", lambda x: np.swapaxes(x, 0, 2), (T,)),
    ("moveaxis", lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (T,)),
    ("rollaxis", lambda x: np.rollaxis(x, 2), (T,)),
    ("rot90", np.rot90, (M,)),
    ("rot90 three times", lambda x: np.rot90(x, 3), (M,)),
    ("squeeze", lambda x: np.squeeze(x[:1]), (M,)),
    ("expand_dims", lambda x: np.expand_dims(x, (0, 2)), (V,)),
    ("atleast_1d", lambda x: np.atleast_1d(x[0]), (V,)),
    ("atleast_2d", np.atleast_2d, (V,)),
    ("atleast_3d", np.atleast_3d, (M,)),
    ("atleast_3d of a vector", np.atleast_3d, (V,)),
    ("broadcast_to", lambda x: np.broadcast_to(x, (3, 4)), (V,)),
    ("broadcast_arrays", lambda x, y: np.add(*np.broadcast_arrays(x, y)), (M, V)),
    ("meshgrid", lambda x, y: np.multiply(*np.meshgrid(x, y)), (V, W[:3])),
    ("meshgrid ij", lambda x, y: np.multiply(*np.meshgrid(x, y, indexing="ij")), (V, W[:3])),
    ("flip", np.flip, (M,)),
    ("fliplr", np.fliplr, (M,)),
    ("flipud", np.flipud, (M,)),
    ("roll", lambda x: np.roll(x, 2), (M,)),
    ("roll axis", lambda x: np.roll(x, (1, -1), axis=(0, 1)), (M,)),
    ("tile", lambda x: np.tile(x, (2, 3)), (M,)),
    ("repeat", lambda x: np.repeat(x, 2), (M,)),
    ("repeat counts", lambda x: np.repeat(x, [1, 0, 2, 3], axis=1), (M,)),
    ("pad", lambda x: np.pad(x, ((1, 2), (0, 1))), (M,)),
    ("pad constant", lambda x: np.pad(x, 1, constant_values=2.0), (V,)),
    ("pad reflect", lambda x: np.pad(x, 2, mode="reflect"), (V,)),
    ("pad edge", lambda x: np.pad(x, (1, 0), mode="edge"), (V,)),
    ("diag of a vector", lambda x: np.diag(x, 1), (V,)),
    ("diag of a matrix", lambda x: np.diag(x, -1), (M,)),
    ("diagflat", np.diagflat, (M,)),
    ("diagonal", lambda x: np.diagonal(x, 1, 2, 0), (T,)),
    ("trace", np.trace, (M,)),
    ("trace axes", lambda x: np.trace(x, 0, 1, 2), (T,)),
    ("tril", np.tril, (M,)),
    ("triu", lambda x: np.triu(x, 1), (M,)),
    ("linspace", lambda x, y: np.linspace(x, y, 5), (V, W)),
    ("logspace", lambda x, y: np.logspace(x, y, 4, base=2.0), (V, W)),
    ("vander", np.vander, (V,)),
    ("vander increasing", lambda x: np.vander(x, 3, increasing=True), (V,)),
    ("resize", lambda x: np.resize(x, (2, 3)), (V,)),
    ("sinc", np.sinc, (np.array([0.0, 0.3, -1.2]),)),
    ("polyval", np.polyval, (V, M)),
    ("real", np.real, (V,)),
    ("round", lambda x: np.round(x, 1) * x, (V,)),
]

JOINING: list[Case] = [
    ("concatenate", lambda x, y: np.concatenate([x, y, x]), (V, W)),
    ("concatenate axis", lambda x, y: np.concatenate((x, y.T), axis=1), (M, N)),
    ("concatenate flat", lambda x, y: np.concatenate((x, y), axis=None), (M, V)),
    ("concatenate with an array", lambda x: np.concatenate([np.ones(2), x]), (V,)),
    ("stack", lambda x, y: np.stack([x, y], axis=-1), (V, W)),
    ("hstack", lambda x, y: np.hstack([x, y]), (V, W)),
    ("hstack matrices", lambda x, y: np.hstack([x, y.T]), (M, N)),
    ("vstack", lambda x, y: np.vstack([x, y]), (M, V)),
    ("dstack", lambda x, y: np.dstack([x, y]), (V, W)),
    ("column_stack", lambda x, y: np.column_stack([x, y]), (V, N)),
    ("block", lambda x, y: np.block([[x, x], [y.T, np.zeros((3, 4))]]), (M, N)),
    ("append", lambda x: np.append(x, [1.0, 2.0]), (V,)),
    ("append axis", lambda x, y: np.append(x, y, axis=1), (M, M[:, :1])),
    ("split", lambda x: np.split(x, 2, axis=1)[1], (M,)),
    ("split places", lambda x: np.split(x, [1, 3])[1], (V,)),
    ("array_split", lambda x: np.array_split(x, 3)[0], (V,)),
    ("hsplit", lambda x: np.hsplit(x, 2)[0], (M,)),
    ("vsplit", lambda x: np.vsplit(x, 3)[2], (M,)),
    ("delete", lambda x: np.delete(x, [1, 2], axis=1), (M,)),
    ("insert", lambda x: np.insert(x, 1, 5.0), (V,)),
    ("insert axis", lambda x, y: np.insert(x, 1, y, axis=0), (M, V)),
    ("insert several", lambda x, y: np.insert(x, [0, 2], y), (V, W[:2])),
]

LINALG: list[Case] = [
    ("norm", np.linalg.norm, (M,)),
    ("norm vector", lambda x: np.linalg.norm(x, 3), (V,)),
    ("norm axis", lambda x: np.linalg.norm(x, axis=1, keepdims=True), (M,)),
    ("norm matrix", lambda x: np.linalg.norm(x, "nuc"), (M,)),
    ("norm matrices", lambda x: np.linalg.norm(x, axis=(1, 2), keepdims=True), (T,)),
    ("norm one", lambda x: np.linalg.norm(x, 1), (M,)),
    ("solve", np.linalg.solve, (SPD, V)),
    ("solve matrices", np.linalg.solve, (SPD, N)),
    ("inv", np.linalg.inv, (SPD,)),
    ("pinv", np.linalg.pinv, (M,)),
    ("det", np.linalg.det, (S,)),
    ("slogdet", lambda x: np.linalg.slogdet(x)[1], (S,)),
    ("slogdet names", lambda x: np.linalg.slogdet(x).logabsdet, (S,)),
    ("cholesky", lambda x: np.linalg.cholesky(x @ x.T + 4 * np.eye(4)), (S,)),
    ("qr", lambda x: np.linalg.qr(x)[0], (S,)),
    ("qr r", lambda x: np.abs(np.linalg.qr(x, mode="r")), (S,)),
    ("svd values", lambda x: np.linalg.svd(x, compute_uv=False), (M,)),
    ("svd", lambda x: np.linalg.svd(x, full_matrices=False)[1], (M,)),
    ("svdvals", np.linalg.svdvals, (M,)),
    ("eigh", lambda x: np.linalg.eigh(x + x.T)[0], (S,)),
    ("eigvalsh", lambda x: np.linalg.eigvalsh(x + x.T, UPLO="U"), (S,)),
    ("matrix_power", lambda x: np.linalg.matrix_power(x, 3), (S,)),
    ("cond", np.linalg.cond, (SPD,)),
    ("lstsq", lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], (N, V)),
    ("lstsq residuals", lambda a, b: np.linalg.lstsq(a, b, rcond=None)[1], (N, V)),
    ("vector_norm", lambda x: np.linalg.vector_norm(x, axis=0, ord=1), (M,)),
    ("matrix_transpose", np.linalg.matrix_transpose, (T,)),
    ("linalg.outer", np.linalg.outer, (V, W)),
    ("linalg.trace", np.linalg.trace, (T,)),
]

FFT: list[Case] = [
    ("fft", lambda x: np.abs(np.fft.fft(x)) ** 2, (V,)),
    ("ifft", lambda x: np.real(np.fft.ifft(x, n=6)), (V,)),
    ("rfft", lambda x: np.fft.rfft(x, axis=0).real, (M,)),
    ("irfft", lambda x: np.fft.irfft(x, norm="ortho"), (V,)),
    ("fft2", lambda x: np.fft.fft2(x).imag, (M,)),
    ("rfftn", lambda x: np.abs(np.fft.rfftn(x)), (M,)),
    ("fftshift", lambda x: np.fft.fftshift(x), (M,)),
    ("filter", lambda x: np.fft.irfft(np.fft.rfft(x) * np.array([1.0, 0.5, 0.0]), 4), (V,)),
    ("angle", lambda x: np.angle(np.fft.fft(x))[1:2], (V,)),
]

CASES = [
    (f"{group}: {name}", function, arguments)
    for group, cases in (
        ("ufunc", UNARY_UFUNCS + BINARY_UFUNCS + UFUNC_METHODS),
        ("reduction", REDUCTIONS),
        ("calculus", CALCULUS),
        ("product", PRODUCTS),
        ("choosing", CHOOSING),
        ("writing", WRITING),
        ("shape", SHAPES),
        ("joining", JOINING),
        ("linalg", LINALG),
        ("fft", FFT),
    )
    for name, function, arguments in cases
]
