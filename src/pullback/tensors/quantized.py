"""Tensors of quantized arrays: frozen weights in a fraction of the memory."""

from __future__ import annotations

from typing import Any, Self

from .. import backends
from ..autodiff.apply import apply
from ..autodiff.base import created, resolved, values_of
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import asarray
from ..autodiff.tables import TENSORS
from ..backends.quantized import QUANTIZED, QuantizedArray, quantize as quantize_raw
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS, Operation
from .printing import laid_out
from .tensor import Tensor

_CONSTANT = (
    "a quantized tensor cannot be written: its values share scales. Write to `t.dequantize()`, and quantize that again."
)


class QuantizedTensor(Tensor):
    """A constant stored in a few bits per element. It prints, moves, and is multiplied with; it has no gradient.

    In a matrix product with a tensor that needs a gradient only the quantized data is kept, and expanded again
    for the gradient. Everything else takes `t.dequantize()`.

    >>> import pullback as pb
    >>> pb.quantize(pb.tensor([[1.27, -0.5]])).dequantize()
    tensor([[ 1.27, -0.5 ]])
    """

    __slots__ = ()

    @classmethod
    def of_raw(cls, raw: QuantizedArray) -> QuantizedTensor:
        """A quantized tensor of `raw`, the array that a scheme made."""
        tensor = cls()
        tensor._raw = raw
        tensor._node = None
        return tensor

    def _moved(self, device: str, copy: bool | None) -> Tensor:
        return self.of_raw(backends.transfer(self._raw, device, copy))

    @property
    def axis(self) -> int | None:
        """The axis whose indices have scales of their own, counted from the last; None for one scale."""
        return self._raw.axis

    @property
    def nbytes(self) -> int:
        """The bytes really held, scales included."""
        return self._raw.nbytes

    def dequantize(self) -> Tensor:
        """The values as a floating-point tensor."""
        return created(self._raw._backend.from_scalar(self._raw.dequantize()))

    def set_requires_grad(self, flag: bool) -> Self:
        if flag:
            raise DtypeError(
                "a quantized tensor cannot require a gradient. Train a floating-point tensor beside it (an adapter), "
                "or `t.dequantize().set_requires_grad(True)`."
            )
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        raise DtypeError(_CONSTANT)

    def data_mut(self) -> Any:
        raise DtypeError(_CONSTANT)

    def detach(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return self.of_raw(self._raw)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.clone()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return QuantizedTensor.of_raw, (self._raw,)

    def __repr__(self) -> str:
        notes = [f"dtype={self.dtype.name}", f"axis={self.axis}"]
        if self.device != "numpy":
            notes.append(f"device={self.device!r}")
        return laid_out("tensor(", QUANTIZED.to_numpy(self._raw), notes)

    __str__ = __repr__

    def _apply(self, operation: Operation, inputs: Any, static: Any) -> Any:
        if operation.name == "matmul":
            return _product(*inputs)
        raise DtypeError(
            f"{operation.name}: an input of shape {self.shape} is quantized. "
            "Write `t.dequantize()` to compute with its values."
        )


QUANTIZED.tensor_class = QuantizedTensor
backends.register(QUANTIZED)


def _product(x: Any, y: Any) -> Tensor:
    """A matrix product with one quantized factor, a matrix."""
    if isinstance(x, QuantizedTensor) and isinstance(y, QuantizedTensor):
        raise DtypeError("matmul: both factors are quantized; write `.dequantize()` on one of them.")
    weight = x if isinstance(x, QuantizedTensor) else y
    if weight.ndim != 2:
        raise ShapeError(f"matmul: a quantized factor must be a matrix, this one has shape {weight.shape}.")
    operation = OPERATIONS["quantized_matmul"]
    if weight is y:
        return apply(operation, (x,), (weight._raw, False))
    if y.ndim == 1:
        return apply(operation, (y,), (weight._raw, True))
    transpose = TENSORS.matrix_transpose
    return transpose(apply(operation, (transpose(y),), (weight._raw, True)))


def quantize(t: Any, scheme: str = "int8", axis: int | None = 0) -> QuantizedTensor:
    """The values of `t` in a storage format of few bits, with scales.

    Parameters
    ----------
    t : array
        Floating-point numbers.
    scheme : str
        "int8", "int4", "nf4" or "fp8", as in `pb.quant.quantize`.
    axis : int or None
        The axis whose indices have scales of their own; None for one scale.

    Returns
    -------
    QuantizedTensor
        A constant: nothing flows back to `t`.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.quantize(pb.tensor([[1.27, -0.5], [0.01, 0.02]]), "int8", axis=0)
    >>> w.nbytes, w.dtype.name
    (12, 'qint8')
    >>> x = pb.tensor([[1.0, 1.0]], requires_grad=True)
    >>> pb.backward((x @ w).sum())[x].shape
    (1, 2)
    """
    x = resolved(asarray(t))
    raw = x._raw if x._backend.is_concrete(x._raw) else values_of(x)
    while type(raw) is Stack:
        raw = raw.shared("pb.quantize")
    return QuantizedTensor.of_raw(quantize_raw(raw, scheme, axis))
