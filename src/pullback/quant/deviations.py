"""What quantization has changed, layer by layer."""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import float64
from ..errors import ConfigurationError, ShapeError
from ..modes import no_grad
from ..nn.linear import Linear
from ..nn.module import Module
from ..tensors.tensor import Tensor
from .layer import QuantizedLinear


class Deviation(NamedTuple):
    """How far a quantized weight is from what it was made of.

    `relative` is the length of the difference by that of the weight, `largest` the largest difference of one value,
    `bits` the memory for a value. See `deviations`.

    >>> import pullback as pb
    >>> pb.quant.Deviation(relative=0.004, largest=0.0003, bits=8.125).bits
    8.125
    """

    relative: float  #: the length of the difference by that of the weight
    largest: float  #: the largest difference of one value
    bits: float  #: of memory for a value, scales and all


def deviations(model: Module, reference: Module) -> dict[str, Deviation]:
    """How far the weights of quantized layers are from those of the same layers in another model, by their names.

    Parameters
    ----------
    model : Module
        With quantized layers.
    reference : Module
        The same model before, or another one with layers of the same names.

    Returns
    -------
    dict of str to Deviation
        For each layer its error relative to the weights (`relative`), the `largest` one, and the `bits` per weight.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.random.using(0):
    ...     reference = pb.nn.Sequential(pb.nn.Linear(256, 64))
    >>> model = pb.nn.Sequential(pb.nn.Linear.from_weight(reference[0].weight, reference[0].bias))
    >>> found = pb.quant.deviations(pb.quant.quantize(model, "int8"), reference)["0"]
    >>> round(found.relative, 4), round(found.largest, 5), found.bits
    (0.0039, 0.00025, 8.125)
    """
    there = {name: module for name, module in reference.named_modules() if isinstance(module, Linear)}
    quantized = [(name, module) for name, module in model.named_modules() if isinstance(module, QuantizedLinear)]
    if not quantized:
        raise ConfigurationError(f"deviations: {type(model).__name__} has no quantized layers.")
    found: dict[str, Deviation] = {}
    for name, layer in quantized:
        if name not in there:
            raise ConfigurationError(f"deviations: the reference has no linear layer {name!r}.")
        found[name] = _deviation(name, layer, there[name].weight.detach())
    return found


def _deviation(name: str, layer: QuantizedLinear, weight: Tensor) -> Deviation:
    with no_grad():
        values = layer.stored_weight
        if values.shape != weight.shape:
            raise ShapeError(f"deviations: {name!r} has shape {values.shape}, and {weight.shape} in the reference.")
        wide = weight.to_device("numpy").astype(float64)
        difference = abs(layer.weight.to_device("numpy").astype(float64) - wide)
        length = (wide * wide).sum().item() ** 0.5
        error = (difference * difference).sum().item() ** 0.5
        bits = 8 * sum(part.nbytes for part in values.parts) / weight.size
        return Deviation(error / length if length else 0.0, difference.max().item(), bits)
