"""Products with packed weights, for `quant`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..backends import portable
from ..backends.portable.packed import Packed
from ..errors import DtypeError, GradientError, ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


def check_constant(caller: str, weight: Packed) -> None:
    """Refuse parts that somebody wants to learn: nothing would come of it."""
    if any([part.requires_grad for part in weight.parts]):
        raise GradientError(
            f"{caller}: a part of a quantized weight requires a gradient, and it is a constant. Learn an adapter "
            f"beside it (pb.peft.add_lora), or a weight that is not quantized (pb.quant.dequantize)."
        )


def packed_linear(x: Any, weight: Packed, bias: Tensor | None = None) -> Tensor:
    """x weight^T + bias, as one operation that keeps the parts of the weight for the gradient of `x`.

    >>> import pullback as pb
    >>> from pullback.functions.packed import packed_linear
    >>> packed_linear(pb.asarray([1.0, 2.0]), pb.quant.packed(pb.eye(2)))
    tensor([1., 2.])
    """
    x = asarray(x)
    if x.dtype.kind != "float":
        raise DtypeError(f"packed_linear: expected floating-point numbers, got {x.dtype.name}.")
    check_constant("packed_linear", weight)
    outputs, inputs = weight.shape
    if not x.ndim or x.shape[-1] != inputs or (bias is not None and bias.shape != (outputs,)):
        raise ShapeError(
            f"packed_linear: x {x.shape}, weight {weight.shape} and bias {None if bias is None else bias.shape} do not "
            f"fit: expected (..., inputs), (outputs, inputs) and (outputs,)."
        )
    tensors = (x, bias, *weight.parts)
    if type(x) is base.DualTensor or type(bias) is base.DualTensor:
        made: Tensor = portable.bind("packed_linear", TENSORS)(tensors, weight.form)
        return made
    return apply(OPERATIONS["packed_linear"], tensors, (weight.form,))
