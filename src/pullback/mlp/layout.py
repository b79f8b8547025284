"""Where the weights and biases of each layer lie in one flat array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Sequence

import numpy as np

from .. import dtypes
from ..errors import ConfigurationError, DtypeError, IndexingError, ShapeError
from .activations import activation_named

__all__ = ["Layout", "positive"]


class Layout:
    """The sizes, activations and dtype of a network, and the views that cut a flat array into its layers."""

    __slots__ = ("sizes", "activations", "dtype", "starts", "size", "width")

    def __init__(self, sizes: Sequence[int], activations: Sequence[str], dtype: Any) -> None:
        self.sizes = tuple(positive("a layer's size", size) for size in sizes)
        if len(self.sizes) < 2:
            raise ConfigurationError(f"an Mlp needs at least its input's and its output's size, got {list(sizes)}.")
        if len(activations) != len(self.sizes) - 1:
            raise ConfigurationError(
                f"{len(self.sizes) - 1} layers ({'-'.join(map(str, self.sizes))}) need as many activations, "
                f"got {len(activations)}: {list(activations)}."
            )
        self.activations = tuple(activation_named(name) for name in activations)
        self.dtype = np.dtype(dtypes.numpy_dtype(dtypes.get(dtype)))
        if self.dtype.char not in "fd":
            raise DtypeError(f"an Mlp computes in float32 or float64, not in {self.dtype.name}.")
        self.starts: list[int] = []
        position = 0
        for inputs, outputs in pairwise(self.sizes):
            self.starts.append(position)
            position += outputs * inputs + outputs
        self.size = position
        self.width = sum(self.sizes[1:])  # outputs of all layers together

    @property
    def description(self) -> tuple[Any, ...]:
        """Enough to tell whether two networks have the same parameters."""
        return self.sizes, self.dtype

    def weights(self, flat: Any, layer: int) -> Any:
        """The (out, in) view of a layer's weights."""
        layer = self.checked(layer)
        outputs, inputs = self.sizes[layer + 1], self.sizes[layer]
        start = self.starts[layer]
        return flat[start : start + outputs * inputs].reshape(outputs, inputs)

    def biases(self, flat: Any, layer: int) -> Any:
        """The (out,) view of a layer's biases."""
        layer = self.checked(layer)
        end = self.starts[layer + 1] if layer + 1 < len(self.starts) else self.size
        return flat[end - self.sizes[layer + 1] : end]

    def views(self, flat: Any) -> list[Any]:
        """The weights and biases of every layer, one after the other."""
        return [view(flat, layer) for layer in range(len(self)) for view in (self.weights, self.biases)]

    def checked(self, layer: int) -> int:
        """The number of a layer; negative ones count from the end."""
        count = len(self)
        if not (hasattr(layer, "__index__") and -count <= layer < count):
            raise IndexingError(f"layer {layer!r} is not one of the {count} layers; they are numbered from 0.")
        return int(layer) % count

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        names = ", ".join(activation.name for activation in self.activations)
        return f"{'-'.join(map(str, self.sizes))}, {names}, {self.dtype.name}"


def positive(name: str, value: Any) -> int:
    """A positive integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConfigurationError(f"{name} must be a positive integer, got {type(value).__name__}: {value!r:.60}")
    number = int(value.__index__())
    if not 1 <= number < 1 << 40:
        raise ShapeError(f"{name} must be a positive integer, got {number}.")
    return number
