"""Numbers rounded as a quantization scheme does, and learned as if they were not."""

from __future__ import annotations

from typing import Any

from ..autodiff.creation import asarray
from ..autodiff.tables import TENSORS
from ..backends.quantization import SCHEMES, Scheme
from ..dtypes import float32
from ..errors import DtypeError, ShapeError
from ..functions.rounding import straight_through
from ..tensors.tensor import Tensor


def fake_quantize(x: Any, scheme: str = "int8", axis: int | None = 0) -> Tensor:
    """The values that are left of `x` in a quantization scheme, with the gradient of `x` itself.

    Parameters
    ----------
    x : array
        Floating-point numbers; NaN and infinities stay what they are.
    scheme : str
        "int8", "int4", "nf4" or "fp8", as in `pb.quant.quantize`.
    axis : int or None
        The axis whose indices have scales of their own, for "int8" and "fp8"; None for one scale.

    Returns
    -------
    Tensor
        As `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.asarray([[1.27, -0.504]]).set_requires_grad(True)
    >>> rounded = pb.quant.fake_quantize(x)
    >>> rounded
    tensor([[ 1.27, -0.5 ]], requires_grad=True)
    >>> pb.backward((rounded * rounded).sum())[x]
    tensor([[ 2.54, -1.  ]])
    """
    tensor = asarray(x)
    if tensor.dtype.kind != "float":
        raise DtypeError(f"fake_quantize: expected floating-point numbers, got {tensor.dtype.name}.")
    found, axis = checked(scheme), None if axis is None else _negative(axis, tensor.ndim)
    if not tensor.size:
        return tensor
    values = tensor.detach()
    wide = values.astype(float32) if values.dtype.itemsize < 4 else values
    axis = axis if found.has_axis else None
    is_finite = TENSORS.isfinite(wide)
    clean = TENSORS.where(is_finite, wide, TENSORS.zeros_like(wide))
    rounded = found.decode(TENSORS, found.encode(TENSORS, clean, axis), axis, tensor.shape)
    kept = TENSORS.where(is_finite, rounded, wide)
    return straight_through(tensor, kept.astype(tensor.dtype))


def checked(scheme: str) -> Scheme:
    """The scheme of a name."""
    if scheme not in SCHEMES:
        raise DtypeError(f"quantize: unknown scheme {scheme!r}; known: {', '.join(map(repr, SCHEMES))}.")
    return SCHEMES[scheme]


def _negative(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"fake_quantize: axis {axis} is out of range for {ndim} axes. Use axis=None for one scale.")
    return axis if axis < 0 else axis - ndim
