"""Linear layers whose weights are quantized, or rounded as if they were."""

from __future__ import annotations

from typing import Any, Iterable

from ..autodiff.tables import TENSORS
from ..backends.portable.packed import Form, Packed, expanded
from ..dtypes import BY_NAME, DType
from ..functions.linear import linear
from ..functions.packed import packed_linear
from ..nn.linear import Linear
from ..tensors.tensor import Tensor
from .rounding import fake_quantize


class QuantizedLinear(Linear):
    """A linear layer whose weight is kept in the parts of a quantization scheme, which are buffers: it is not learned.

    The weight is expanded where it is used, forward and backward, and not kept. `pb.quant.quantize` makes layers these.

    >>> import pullback as pb
    >>> layer = pb.nn.Linear(3, 2)
    >>> pb.quant.quantize(pb.nn.Sequential(layer))
    Sequential(
      (0): QuantizedLinear(in_features=3, out_features=2, bias=True, int8)
    )
    >>> layer.int8_codes.dtype.name, layer.int8_scales.shape
    ('int8', (2, 1))
    """

    form: Form

    def __init__(self, weight: Packed, bias: Tensor | None = None) -> None:
        self.register_parameter("bias", bias)
        self.hold(weight)

    def hold(self, weight: Packed) -> None:
        """Have this weight from now on."""
        for name in self.form.part_names if "form" in vars(self) else ():
            delattr(self, name)
        self.form = weight.form
        self.out_features, self.in_features = weight.shape
        for name, part in zip(weight.form.part_names, weight.parts):
            self.register_buffer(name, part)

    @property
    def stored_weight(self) -> Packed:
        return Packed(tuple([getattr(self, name) for name in self.form.part_names]), self.form)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The weight, expanded whenever it is asked for, in the dtype that it had: nobody sees it written."""
        values: Tensor = expanded(TENSORS, self.stored_weight, BY_NAME[self.form.dtype])
        return values

    def _exact_tensors(self) -> Iterable[Tensor]:
        return self.stored_weight.parts

    def _note_dtype(self, dtype: DType) -> None:
        self.form = self.form._replace(dtype=dtype.name)

    def reset_parameters(self) -> None:
        raise TypeError("QuantizedLinear: a quantized weight is not drawn. Quantize a layer that has its values.")

    def without_adapter(self, x: Any) -> Tensor:
        return packed_linear(x, self.stored_weight, self.bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.form.scheme}"


class QuantizationAwareLinear(Linear):
    """A linear layer that computes with its weight rounded; `pb.quant.prepare` makes layers these.

    >>> import pullback as pb
    >>> layer = pb.nn.Linear(3, 2)
    >>> pb.quant.prepare(pb.nn.Sequential(layer), "int4")
    Sequential(
      (0): QuantizationAwareLinear(in_features=3, out_features=2, bias=True, int4)
    )
    >>> layer.weight.requires_grad
    True
    """

    scheme: str

    def without_adapter(self, x: Any) -> Tensor:
        return linear(x, fake_quantize(self.weight, self.scheme), self.bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.scheme}"
