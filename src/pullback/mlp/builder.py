"""`MlpBuilder`: a network layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ConfigurationError
from .activations import activation_named
from .layout import Layout, positive
from .network import Mlp

__all__ = ["MlpBuilder"]


class MlpBuilder:
    """Collects layers; made by `Mlp.builder`. Every method but `build` returns the builder."""

    def __init__(self, input: int) -> None:
        self._sizes = [positive("input", input)]
        self._activations: list[str] = []
        self._seed: int | None = 0
        self._dtype: Any = np.float32

    def layer(self, size: int, activation: str = "identity") -> MlpBuilder:
        """Add a layer of `size` outputs."""
        activation_named(activation)
        self._sizes.append(positive("a layer's size", size))
        self._activations.append(activation)
        return self

    def seed(self, seed: int | None) -> MlpBuilder:
        """Start from the weights that `seed` determines; None: from others every time."""
        self._seed = seed
        return self

    def dtype(self, dtype: Any) -> MlpBuilder:
        """Compute in float32 or float64."""
        self._dtype = dtype
        return self

    def build(self) -> Mlp:
        """The network."""
        if not self._activations:
            raise ConfigurationError("Mlp.builder: there is no layer yet. Add one with `.layer(size, activation)`.")
        mlp = object.__new__(Mlp)
        mlp._start(Layout(self._sizes, self._activations, self._dtype), self._seed)
        return mlp
