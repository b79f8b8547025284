"""Discrete Fourier transforms: the `fft` part of the array API standard, with gradients.

`norm` says which direction is divided by the length: "backward" (the inverse), "forward", or both by its square
root, "ortho". An axis is cut off or filled up with zeros to the length asked for.
"""

from __future__ import annotations

from operator import index as _index
from typing import TYPE_CHECKING, Any, Never, Sequence

import numpy as _np

from . import dtypes as _dtypes
from .autodiff.apply import apply as _apply
from .autodiff.creation import default_dtype as _default_dtype, given as _asarray
from .autodiff.rules.fft import SWAPPED as _SWAPPED
from .autodiff.tables import TENSORS as _TENSORS
from .errors import DtypeError as _DtypeError, ShapeError as _ShapeError
from .functions.axes import all_axes as _all_axes, negative_axes as _negative_axes
from .functions.manipulation import roll as _roll
from .keywords import hide_others, unexpected
from .operations import OPERATIONS as _OPERATIONS

if TYPE_CHECKING:
    from .tensors.tensor import Tensor
    from .typing import ArrayLike

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def _complex(name: str, x: Any) -> Tensor:
    x = _asarray(x)
    if x.dtype.kind == "complex":
        return x
    if x.dtype.kind != "float":
        raise _DtypeError(f"{name}: expected complex or floating-point numbers, got {x.dtype.name}.")
    wanted = _dtypes.complex128 if x.dtype == _dtypes.float64 else _dtypes.complex64
    return _TENSORS.astype(x, x._backend.raw_dtype(wanted))


def _real(name: str, x: Any) -> Tensor:
    x = _asarray(x)
    if x.dtype.kind != "float":
        raise _DtypeError(f"{name}: expected real floating-point numbers, got {x.dtype.name}.")
    if x.dtype.itemsize == 2:
        return _TENSORS.astype(x, x._backend.raw_dtype(_dtypes.float32))
    return x


def _transform(name: str, x: Tensor, n: Any, axis: int, norm: str, default: int | None = None) -> Tensor:
    """One of the four transforms along one axis, after checking its arguments."""
    if norm not in _SWAPPED:
        raise _ShapeError(f'{name}: norm must be "backward", "ortho" or "forward", got {norm!r}.')
    (position,) = _negative_axes(name, axis, x.ndim)
    length = (x.shape[position] if default is None else default) if n is None else _index(n)
    if length < 1:
        raise _ShapeError(f"{name}: the transform's length must be at least 1, got {length} for shape {x.shape}.")
    return _apply(_OPERATIONS[name], (x,), (length, position, norm))


@hide_others
def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """The discrete Fourier transform of `x` along an axis.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.
    n : int, optional
        The length of the transform: the axis is cut off, or filled up with zeros. By default it is the axis's.
    axis : int
        Along which axis, by default the last one.
    norm : str
        "backward": the inverse divides by n. "forward": this one does. "ortho": both divide by sqrt(n).

    Returns
    -------
    Tensor
        Complex, with `n` frequencies along the axis, in the order of `fftfreq`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fft(pb.asarray([1.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    if other:
        raise unexpected("fft", other)
    return _transform("fft", _complex("fft", x), n, axis, norm)


@hide_others
def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """The inverse of `fft`; the arguments are those of `fft`.

    >>> import pullback as pb
    >>> pb.fft.ifft(pb.asarray([2.0, 0.0]))
    tensor([1.+0.j, 1.+0.j], dtype=complex64)
    """
    if other:
        raise unexpected("ifft", other)
    return _transform("ifft", _complex("ifft", x), n, axis, norm)


@hide_others
def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """`fft` of real numbers: the n // 2 + 1 frequencies that are not negative.

    `norm` is as in `fft`.

    >>> import pullback as pb
    >>> pb.fft.rfft(pb.asarray([1.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j], dtype=complex64)
    """
    if other:
        raise unexpected("rfft", other)
    return _transform("rfft", _real("rfft", x), n, axis, norm)


@hide_others
def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """The inverse of `rfft`; `n` is the length of the result, by default the even one.

    `norm` is as in `fft`.

    >>> import pullback as pb
    >>> pb.fft.irfft(pb.asarray([1.0, 1.0]), n=3)
    tensor([1., 0., 0.])
    """
    if other:
        raise unexpected("irfft", other)
    x = _complex("irfft", x)
    (position,) = _negative_axes("irfft", axis, x.ndim)
    return _transform("irfft", x, n, position, norm, default=2 * (x.shape[position] - 1))


@hide_others
def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """`fft` of a signal with Hermitian symmetry, of which `x` is the first half; the result is real and has length `n`.

    `norm` is as in `fft`.

    >>> import pullback as pb
    >>> pb.fft.hfft(pb.asarray([1.0, 0.0]), n=3)
    tensor([1., 1., 1.])
    """
    if other:
        raise unexpected("hfft", other)
    return irfft(_TENSORS.conj(_complex("hfft", x)), n=n, axis=axis, norm=_swapped("hfft", norm))


@hide_others
def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward", **other: Never) -> Tensor:
    """The inverse of `hfft`: the first half of a signal with Hermitian symmetry.

    `n` and `norm` are as in `fft`.

    >>> import pullback as pb
    >>> pb.fft.ihfft(pb.asarray([3.0, 0.0, 0.0]))
    tensor([1.-0.j, 1.-0.j], dtype=complex64)
    """
    if other:
        raise unexpected("ihfft", other)
    return _TENSORS.conj(rfft(x, n=n, axis=axis, norm=_swapped("ihfft", norm)))


def _swapped(name: str, norm: str) -> str:
    if norm not in _SWAPPED:
        raise _ShapeError(f'{name}: norm must be "backward", "ortho" or "forward", got {norm!r}.')
    return _SWAPPED[norm]


# -- along several axes --------------------------------------------------------------------------


def _lengths(name: str, x: Tensor, s: Any, axes: Any) -> tuple[list[int], list[int | None]]:
    """The axes to transform and the length along each; None where it was left open."""
    for what, given in (("s", s), ("axes", axes)):
        if isinstance(given, int):
            raise _DtypeError(f"{name}: {what} takes several numbers, got {given!r}. Write `{what}=({given!r},)`.")
    if axes is None:
        if s is not None and len(s) != x.ndim:
            raise _ShapeError(f"{name}: `axes` must be given with s={tuple(s)} for shape {x.shape}.")
        chosen = list(_all_axes(x.ndim))
    else:
        chosen = list(_negative_axes(name, tuple(axes), x.ndim))
    if s is None:
        return chosen, [None] * len(chosen)
    if len(s) != len(chosen):
        raise _ShapeError(f"{name}: {len(s)} lengths s={tuple(s)} for {len(chosen)} axes.")
    return chosen, [None if n == -1 else _index(n) for n in s]


@hide_others
def fftn(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """`fft` along several `axes`, or all; `s` are the lengths, and `norm` is as in `fft`.

    >>> import pullback as pb
    >>> pb.fft.fftn(pb.asarray([[1.0, 0.0], [0.0, 0.0]])).shape
    (2, 2)
    """
    if other:
        raise unexpected("fftn", other)
    x = _complex("fftn", x)
    for axis, n in zip(*_lengths("fftn", x, s, axes)):
        x = _transform("fft", x, n, axis, norm)
    return x


@hide_others
def ifftn(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """The inverse of `fftn`; the arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.ifftn(pb.asarray([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    if other:
        raise unexpected("ifftn", other)
    x = _complex("ifftn", x)
    for axis, n in zip(*_lengths("ifftn", x, s, axes)):
        x = _transform("ifft", x, n, axis, norm)
    return x


@hide_others
def rfftn(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """`fftn` of real numbers: the frequencies along the last transformed axis that are not negative.

    The arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.rfftn(pb.asarray([[1.0, 0.0, 0.0, 0.0]])).shape
    (1, 3)
    """
    if other:
        raise unexpected("rfftn", other)
    x = _real("rfftn", x)
    chosen, lengths = _lengths("rfftn", x, s, axes)
    if not chosen:
        raise _ShapeError("rfftn: expected at least one axis.")
    x = _transform("rfft", x, lengths[-1], chosen[-1], norm)
    for axis, n in zip(chosen[:-1], lengths[:-1]):
        x = _transform("fft", x, n, axis, norm)
    return x


@hide_others
def irfftn(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """The inverse of `rfftn`; `s` are the lengths of the result.

    The other arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.irfftn(pb.asarray([[1.0, 1.0, 1.0]]))
    tensor([[1., 0., 0., 0.]])
    """
    if other:
        raise unexpected("irfftn", other)
    x = _complex("irfftn", x)
    chosen, lengths = _lengths("irfftn", x, s, axes)
    if not chosen:
        raise _ShapeError("irfftn: expected at least one axis.")
    for axis, n in zip(chosen[:-1], lengths[:-1]):
        x = _transform("ifft", x, n, axis, norm)
    return irfft(x, n=lengths[-1], axis=chosen[-1], norm=norm)


@hide_others
def fft2(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """`fftn` along two axes, the last ones unless said; `s` are the lengths.

    The arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.fft2(pb.asarray([[[1.0, 0.0], [0.0, 0.0]]])).shape
    (1, 2, 2)
    """
    if other:
        raise unexpected("fft2", other)
    return fftn(x, s=s, axes=_two("fft2", x, axes), norm=norm)


@hide_others
def ifft2(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """The inverse of `fft2`.

    The arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.ifft2(pb.asarray([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    if other:
        raise unexpected("ifft2", other)
    return ifftn(x, s=s, axes=_two("ifft2", x, axes), norm=norm)


@hide_others
def rfft2(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """`fft2` of real numbers: the frequencies along the last transformed axis that are not negative.

    The arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.rfft2(pb.asarray([[1.0, 0.0, 0.0, 0.0]])).shape
    (1, 3)
    """
    if other:
        raise unexpected("rfft2", other)
    return rfftn(x, s=s, axes=_two("rfft2", x, axes), norm=norm)


@hide_others
def irfft2(
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str = "backward",
    **other: Never,
) -> Tensor:
    """The inverse of `rfft2`; `s` are the lengths of the result.

    The other arguments are those of `fftn`.

    >>> import pullback as pb
    >>> pb.fft.irfft2(pb.asarray([[1.0, 1.0, 1.0]]))
    tensor([[1., 0., 0., 0.]])
    """
    if other:
        raise unexpected("irfft2", other)
    return irfftn(x, s=s, axes=_two("irfft2", x, axes), norm=norm)


def _two(name: str, x: Any, axes: Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if len(chosen) != 2 or _asarray(x).ndim < 2:
        raise _ShapeError(f"{name}: expected two axes, got axes={axes!r} for shape {_asarray(x).shape}.")
    return chosen


# -- frequencies ---------------------------------------------------------------------------------


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft` of `n` samples that are `d` apart.

    >>> import pullback as pb
    >>> pb.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies("fftfreq", _np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft` of `n` samples that are `d` apart.

    >>> import pullback as pb
    >>> pb.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", _np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(name: str, function: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    wanted = _default_dtype() if dtype is None else _dtypes.get(dtype)
    if wanted.kind != "float":
        raise _DtypeError(f"{name}: expected a real floating-point dtype, got {wanted.name}.")
    if _index(n) < 1:
        raise _ShapeError(f"{name}: expected at least one sample, got {n}.")
    return _asarray(function(n, d).tolist(), dtype=wanted, device=device)


@hide_others
def fftshift(x: ArrayLike, /, *, axes: int | Sequence[int] | None = None, **other: Never) -> Tensor:
    """The zero frequency moved to the middle along `axes`, or all of them.

    >>> import pullback as pb
    >>> pb.fft.fftshift(pb.fft.fftfreq(4))
    tensor([-0.5 , -0.25,  0.  ,  0.25])
    """
    if other:
        raise unexpected("fftshift", other)
    x = _asarray(x)
    chosen = _all_axes(x.ndim) if axes is None else _negative_axes("fftshift", axes, x.ndim)
    return _roll(x, tuple(x.shape[a] // 2 for a in chosen), axis=chosen)


@hide_others
def ifftshift(x: ArrayLike, /, *, axes: int | Sequence[int] | None = None, **other: Never) -> Tensor:
    """The inverse of `fftshift`, along `axes` or all of them.

    >>> import pullback as pb
    >>> pb.fft.ifftshift(pb.asarray([-0.5, -0.25, 0.0, 0.25]))
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    if other:
        raise unexpected("ifftshift", other)
    x = _asarray(x)
    chosen = _all_axes(x.ndim) if axes is None else _negative_axes("ifftshift", axes, x.ndim)
    return _roll(x, tuple(-(x.shape[a] // 2) for a in chosen), axis=chosen)
