"""Dtypes: promotion, limits, conversion; what this namespace can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends, dtypes
from ..autodiff.creation import asarray, default_complex_dtype, default_dtype, dtype_of
from ..autodiff.tables import TENSORS
from ..dtypes import DType
from ..errors import DtypeError

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
]

__array_api_version__ = "2025.12"

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """`x` in another dtype; the gradient comes back in the dtype of `x`.

    Parameters
    ----------
    x : array
        Numbers of any dtype.
    dtype : dtype
        The new one, such as `pb.float64`. Floats become integers by cutting off what is behind the point.
    copy : bool
        With False `x` itself is returned if it has that dtype already.
    device : str, optional
        By default that of `x`.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.astype(pb.asarray([1.5, 2.5]), pb.int32)
    tensor([1, 2], dtype=int32)
    """
    x = asarray(x)
    wanted = dtypes.get(dtype)
    if x.dtype.kind == "complex" and wanted.kind != "complex" and wanted != dtypes.bool_:
        raise DtypeError(
            f"astype: {x.dtype.name} does not fit into {wanted.name}. Write `pb.real(x)` or `pb.abs(x)` first."
        )
    if wanted == x.dtype:
        result = x.clone() if copy else x
    else:
        result = TENSORS.astype(x, x._backend.raw_dtype(wanted))
    return result if device is None else asarray(result, device=device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion can lead from the dtype `from_` (or that of a tensor) to the dtype `to`.

    >>> import pullback as pb
    >>> pb.can_cast(pb.int8, pb.float32), pb.can_cast(pb.float64, pb.float32)
    (True, False)
    """
    return bool(np.can_cast(dtypes.numpy_dtype(dtype_of(from_)), dtypes.numpy_dtype(dtypes.get(to))))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind: a dtype, a name such as "real floating" or "integral", or a tuple of these.

    >>> import pullback as pb
    >>> pb.isdtype(pb.float32, "real floating"), pb.isdtype(pb.int8, (pb.int16, "unsigned integer"))
    (True, False)
    """
    wanted = dtypes.get(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(wanted, part) for part in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise DtypeError(f"isdtype: unknown kind {kind!r}; use one of {', '.join(_KINDS)}.")
        return wanted.kind in _KINDS[kind]
    return wanted == dtypes.get(kind)


class finfo:
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    `type` is the dtype, a tensor or an array of it. The result has `bits`, `eps`, `max`, `min`, `smallest_normal`,
    `dtype`.

    >>> import pullback as pb
    >>> pb.finfo(pb.float32).bits, pb.finfo(pb.float64).eps
    (32, 2.220446049250313e-16)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal", "tiny")

    def __init__(self, type: Any, /) -> None:
        dtype = dtype_of(type)
        if dtype.kind not in ("float", "complex"):
            raise DtypeError(f"finfo: expected a floating-point dtype, got {dtype.name}. Use `pb.iinfo` for integers.")
        if dtype == dtypes.bfloat16:
            import ml_dtypes

            limits: Any = ml_dtypes.finfo(dtypes.numpy_dtype(dtype))
        else:
            limits = np.finfo(dtypes.numpy_dtype(dtype))
        self.bits = int(limits.bits)
        self.dtype = dtypes.from_numpy(limits.dtype)
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.smallest_normal = self.tiny = float(limits.smallest_normal)

    def __repr__(self) -> str:
        return f"finfo({self.dtype.name}: min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:
    """The limits of an integer dtype.

    `type` is the dtype, a tensor or an array of it. The result has `bits`, `max`, `min`, `dtype`.

    >>> import pullback as pb
    >>> pb.iinfo(pb.int8).min, pb.iinfo(pb.uint8).max
    (-128, 255)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any, /) -> None:
        dtype = dtype_of(type)
        if dtype.kind not in ("int", "uint"):
            raise DtypeError(f"iinfo: expected an integer dtype, got {dtype.name}. Use `pb.finfo` for floats.")
        limits = np.iinfo(dtypes.numpy_dtype(dtype))
        self.bits, self.dtype = int(limits.bits), dtype
        self.max, self.min = int(limits.max), int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo({self.dtype.name}: min={self.min}, max={self.max})"


class Info:
    """What `pullback` can do, in the words of the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return backends.for_device(None)[1]

    def devices(self) -> tuple[str, ...]:
        return backends.devices()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        return {
            "real floating": default_dtype(),
            "complex floating": default_complex_dtype(),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of the standard, by name; of the given kinds only."""
        standard = [d for d in dtypes.ALL if d not in (dtypes.float16, dtypes.bfloat16)]
        return {d.name: d for d in standard if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:  # noqa: N807
    """What this namespace can do: its devices, dtypes and capabilities.

    >>> import pullback as pb
    >>> pb.__array_namespace_info__().default_device()
    'numpy'
    """
    return Info()
