"""Pullback's own dtype objects. They compare equal to the dtypes of NumPy, PyTorch and JAX."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .errors import DtypeError


class DType:
    """An element type, the same on every backend.

    >>> import numpy as np, pullback as pb
    >>> pb.float32 == np.dtype("float32"), pb.float32.itemsize, pb.float32
    (True, 4, pullback.float32)
    """

    __slots__ = ("name", "kind", "itemsize", "numpy", "_hash")

    def __init__(self, name: str, kind: str, itemsize: int, numpy_dtype: Any) -> None:
        self.name = name
        self.kind = kind  # "float", "complex", "int", "uint", "bool"
        self.itemsize = itemsize
        self.numpy = numpy_dtype  # None for bfloat16 until it is used: that takes ml_dtypes
        self._hash = hash(name if numpy_dtype is None else numpy_dtype)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is not DType and _name_of(other) == self.name)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> Any:
        return get, (self.name,)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype, so that `numpy.dtype(pb.float32)` works."""
        return numpy_dtype(self)


def _name_of(dtype: object) -> str | None:
    """The name of any library's dtype object, or None."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, np.dtype):
        return dtype.name
    if isinstance(dtype, type) and (issubclass(dtype, np.generic) or dtype in (bool, int, float, complex)):
        return np.dtype(dtype).name  # NumPy's float64 is equal to `float`, too
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    inner = getattr(dtype, "dtype", None)  # jax.numpy.float32 and friends
    return inner.name if isinstance(inner, np.dtype) else None


def _make(name: str, kind: str) -> DType:
    numpy_dtype = np.dtype(name)
    return DType(name, kind, numpy_dtype.itemsize, numpy_dtype)


bool_ = _make("bool", "bool")
int8, int16, int32, int64 = (_make(n, "int") for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (_make(n, "uint") for n in ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = (_make(n, "float") for n in ("float16", "float32", "float64"))
complex64, complex128 = (_make(n, "complex") for n in ("complex64", "complex128"))
bfloat16 = DType("bfloat16", "float", 2, None)

ALL = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
BY_NAME = {d.name: d for d in ALL}
_BY_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}
BY_NUMPY: dict[Any, DType] = {d.numpy: d for d in ALL if d.numpy is not None}
#: Dtypes of other libraries that are known to be real floating-point: a quick answer, and not the only one.
REAL: set[Any] = set()


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The DType of a NumPy dtype."""
    found = BY_NUMPY.get(dtype)
    if found is None:
        found = BY_NAME.get(dtype.name)
        if found is None:
            raise DtypeError(f"Pullback has no dtype for NumPy's {dtype!r}; use one of {', '.join(BY_NAME)}.")
        BY_NUMPY[dtype] = found
    return found


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype for a DType; bfloat16 needs ml_dtypes."""
    if dtype.numpy is None:
        try:
            import ml_dtypes
        except ImportError:
            raise DtypeError("bfloat16 on NumPy needs the package ml_dtypes: pip install ml_dtypes") from None
        dtype.numpy = np.dtype(ml_dtypes.bfloat16)
        BY_NUMPY[dtype.numpy] = dtype
    return dtype.numpy


def _by_numpy_name(name: str) -> DType | None:
    """What NumPy means by a name such as "f4" or "double"."""
    try:
        return BY_NAME.get(np.dtype(name).name)
    except (TypeError, ValueError, SyntaxError):
        return None


def get(dtype: Any) -> DType:
    """The DType meant by `dtype`: one of ours, any library's, a name, or a Python number type."""
    if type(dtype) is DType:
        return dtype
    if isinstance(dtype, str):
        found = BY_NAME.get(dtype) or _by_numpy_name(dtype)
    elif isinstance(dtype, type) and dtype in _BY_PYTHON:
        found = _BY_PYTHON[dtype]
    else:
        name = _name_of(dtype)
        found = BY_NAME.get(name) if name else None
    if found is None:
        raise DtypeError(f"unknown dtype {dtype!r}; use one of {', '.join(BY_NAME)}.")
    return found


def lost_squares(dtype: Any) -> float:
    """A sum of squares up to which some of its terms may have vanished."""
    info = np.finfo(dtype)
    return float(info.tiny / info.eps**2)
