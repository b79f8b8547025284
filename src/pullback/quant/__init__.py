"""Quantized models: frozen weights in a few bits each, with adapters or alone.

pb.quant.quantize(model, "int8")           # all linear layers but the output's
pb.peft.add_lora(model, pb.peft.LoraConfig(rank=16))
"""

from .layer import QuantizedLinear
from .quantizing import dequantize, packed, quantize

__all__ = ["QuantizedLinear", "dequantize", "packed", "quantize"]
