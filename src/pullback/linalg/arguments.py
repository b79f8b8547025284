"""Checking matrices, and running the operations on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


def matrices(name: str, x: Any, square: bool = False) -> Tensor:
    """`x` as a tensor, if it is a stack of matrices of numbers that can have a gradient."""
    x = asarray(x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrix or a stack of square matrices" if square else "matrix or a stack of matrices"
        raise ShapeError(f"{name}: expected a {kind}, got shape {x.shape}.")
    return numbers(name, x)


def numbers(name: str, x: Any) -> Tensor:
    """`x` as a tensor, if it is made of numbers that can have a gradient."""
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        raise DtypeError(
            f"{name}: expected floating-point or complex numbers, got {x.dtype.name}. Use `.astype(pb.float64)`."
        )
    return x


def run(name: str, *inputs: Any, static: tuple[Any, ...] = ()) -> Any:
    return apply(OPERATIONS[name], inputs, static)
