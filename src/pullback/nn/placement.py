"""Moving a model's tensors to another device or dtype while they stay the same objects."""

from __future__ import annotations

from typing import Any, Iterable

from .. import dtypes, modes
from ..autodiff.creation import asarray
from ..errors import DtypeError, GradientError
from ..tensors.tensor import Tensor
from ..tensors.writing import separate


def move(tensors: Iterable[Tensor], *, dtype: Any = None, device: str | None = None) -> None:
    """Give `tensors` and their gradients another device, or, to the floating-point ones, another dtype."""
    if dtype is not None and (dtype := dtypes.get(dtype)).kind != "float":
        raise DtypeError(f"astype: a model can only be converted to a floating-point dtype, got {dtype.name}.")
    modes.refuse_in_trace("Moving or converting a model gives its tensors other arrays. Do it before the call.")
    planned = []
    for tensor in tensors:
        if not tensor.is_leaf:
            raise GradientError("a model whose parameters are results of operations cannot be moved or converted.")
        if dtype is None or tensor.dtype.kind == "float":
            gradient = tensor.grad
            moved = asarray(tensor.detach(), dtype=dtype, device=device)
            planned.append((tensor, moved, None if gradient is None else asarray(gradient, dtype=dtype, device=device)))
    for tensor, moved, gradient in planned:  # nothing can fail from here on
        tracked, cell = tensor.requires_grad, tensor.grad_cell
        separate(tensor)
        tensor.set_requires_grad(False)
        tensor._raw, tensor._origin = moved._raw, None
        cell.value = gradient
        tensor.set_requires_grad(tracked)  # a new leaf, which knows the new dtype
