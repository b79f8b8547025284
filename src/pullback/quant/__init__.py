"""Quantized models: frozen weights in a few bits each, with adapters or alone.

pb.quant.quantize(model, "nf4")           # all linear layers but the output's
pb.peft.add_lora(model, pb.peft.LoraConfig(rank=16))
"""

from .deviations import Deviation, deviations
from .layer import QuantizationAwareLinear, QuantizedLinear
from .quantizing import dequantize, packed, prepare, quantize
from .rounding import fake_quantize

__all__ = [
    "Deviation", "QuantizationAwareLinear", "QuantizedLinear", "dequantize", "deviations", "fake_quantize", "packed",
    "prepare", "quantize",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
