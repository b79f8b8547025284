"""A linear layer with an adapter."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ..backends.portable.packed import Packed
from ..dtypes import BY_NAME, float32
from ..functions.filled import empty, zeros
from ..functions.linear import linear
from ..functions.low_rank import Projection, low_rank_linear, row_norms
from ..modes import no_grad
from ..nn import init
from ..nn.linear import Linear
from ..nn.module import Parameter
from ..quant.layer import QuantizedLinear
from ..quant.quantizing import become_plain
from ..random import Generator
from ..tensors.tensor import Tensor
from .config import LoraConfig

ADAPTER = ("lora_A", "lora_B", "lora_magnitude_vector")


class LoraLinear(Linear):
    """A linear layer with a product of two thin matrices beside its weight; `pb.peft.add_lora` makes layers these.

    `weight` and `bias` are the layer's own, under their names: (out_features, in_features) and (out_features,).
    `lora_A` is (rank, in_features), `lora_B` (out_features, rank); `lora_magnitude_vector` (out_features,) has the
    lengths of rows that DoRA learns, and is None otherwise.

    >>> import pullback as pb
    >>> model = pb.nn.Sequential(pb.nn.Linear(4, 8))
    >>> pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="0"))[0].lora_A.shape
    (2, 4)
    """

    config: LoraConfig
    rank: int
    alpha: float
    lora_A: Tensor  # noqa: N815 (PEFT's name, as is the next one)
    lora_B: Tensor  # noqa: N815
    lora_magnitude_vector: Tensor | None
    original_weight: Tensor  # while the adapter is merged

    @property
    def scale(self) -> float:
        """What the product B A is multiplied with."""
        return self.config.scale(self.rank, self.alpha)

    @property
    def merged(self) -> bool:
        """Whether the adapter is a part of the weight now."""
        return "original_weight" in vars(self)

    def forward(self, x: Any) -> Tensor:
        return self.project_all(x, [self])[0]

    @classmethod
    def project_all(cls, x: Any, layers: Sequence[LoraLinear]) -> tuple[Tensor, ...]:
        """What several layers make of one input, as one operation."""
        if any(layer.merged for layer in layers):
            return tuple([layer.without_adapter(x) for layer in layers])
        return low_rank_linear(x, [layer._projection() for layer in layers])

    def _projection(self) -> Projection:
        chance = float(self.config.dropout) if self.training else 0.0
        factor = self._factor()
        return Projection(self.stored_weight, self.bias, self.lora_A, self.lora_B, factor, self.scale, chance)

    def _factor(self) -> Tensor | None:
        """What DoRA multiplies the outputs with; the lengths that it divides by count as constants."""
        if self.lora_magnitude_vector is None:
            return None
        return self.lora_magnitude_vector / row_norms(self.weight, self.lora_A, self.lora_B, self.scale)

    def adapted_weight(self) -> Tensor:
        """The weight of a layer without an adapter that computes the same."""
        weight = self.weight.detach()
        wide = weight.astype(self.lora_A.dtype) + (self.lora_B.detach() * self.scale) @ self.lora_A.detach()
        factor = self._factor()
        if factor is not None:
            wide = wide * factor.detach()[:, None]
        return wide.astype(weight.dtype)

    def merge(self) -> None:
        """Write the adapter into the weight."""
        if not self.merged:
            merged = self.adapted_weight()
            # A part of the state: one that is merged does not fit a model whose adapters are beside its weights.
            self.register_buffer("original_weight", self.weight.detach().clone())
            with no_grad():
                self.weight[...] = merged

    def unmerge(self) -> None:
        """Give the weight the values back that it had."""
        if self.merged:
            with no_grad():
                self.weight[...] = self.original_weight
            del self.original_weight

    def take_out(self) -> None:
        """Make the layer a plain one, whose weight is what it is now."""
        for name in ("config", "rank", "alpha", *ADAPTER, *(["original_weight"] if self.merged else [])):
            delattr(self, name)
        self.__class__ = _WITHOUT[type(self)]

    def extra_repr(self) -> str:
        kind = "DoRA" if self.lora_magnitude_vector is not None else "LoRA"
        return f"{super().extra_repr()}, {kind} of rank {self.rank}"


class QuantizedLoraLinear(LoraLinear, QuantizedLinear):
    """The same of a quantized layer; while it is merged it has a weight that is not quantized beside the other."""

    merged_weight: Tensor  # what the adapter is merged with has the values that the quantized weight stands for

    @property
    def merged(self) -> bool:
        return "merged_weight" in vars(self)

    def without_adapter(self, x: Any) -> Tensor:
        return linear(x, self.merged_weight, self.bias) if self.merged else super().without_adapter(x)

    def merge(self) -> None:
        if not self.merged:
            self.register_buffer("merged_weight", self.adapted_weight())

    def unmerge(self) -> None:
        if self.merged:
            del self.merged_weight

    def take_out(self) -> None:
        weight = self.merged_weight if self.merged else None
        self.unmerge()
        super().take_out()
        if weight is not None:
            become_plain(self, weight)


_WITH: dict[type, type] = {Linear: LoraLinear, QuantizedLinear: QuantizedLoraLinear}
_WITHOUT = {adapted: plain for plain, adapted in _WITH.items()}


def attach(layer: Linear, config: LoraConfig, rank: int, alpha: float, generator: Generator | None) -> None:
    """Give a layer an adapter; it stays the same object, in all places where it is.

    Adapters of weights in half precision are in float32: their steps are too small for less.
    """
    stored = layer.stored_weight
    kept = stored.parts[0] if isinstance(stored, Packed) else stored
    dtype, device = BY_NAME[stored.form.dtype] if isinstance(stored, Packed) else kept.dtype, kept.device
    dtype = float32 if dtype.itemsize == 2 else dtype
    down = Parameter(empty((rank, layer.in_features), dtype=dtype, device=device))
    init.kaiming_uniform_(down, a=math.sqrt(5), generator=generator)
    layer.__class__ = _WITH[type(layer)]
    assert isinstance(layer, LoraLinear)
    layer.config, layer.rank, layer.alpha = config, rank, alpha
    layer.lora_A = down
    layer.lora_B = Parameter(zeros((layer.out_features, rank), dtype=dtype, device=device))
    layer.lora_magnitude_vector = None
    if config.dora:
        layer.lora_magnitude_vector = Parameter(row_norms(layer.weight, down, layer.lora_B, 1.0), dtype)
