"""Keys and values of the tokens so far, in memory of a fixed size: a step of generation allocates nothing for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ShapeError
from ..functions.filled import arange, zeros
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .config import DecoderConfig


class Cache:
    """Room for `capacity` tokens of each sample; `lengths` says how many of them are taken.

    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    >>> pb.models.Cache(config, samples=1, capacity=32)
    Cache(2 layers, 1 samples, 32 tokens, 16384 bytes)
    """

    def __init__(
        self, config: DecoderConfig, samples: int, capacity: int, dtype: Any = None, device: str | None = None
    ) -> None:
        if samples < 1 or capacity < 1:
            raise ShapeError(f"Cache: samples and capacity must be positive, got {samples} and {capacity}.")
        self.capacity = capacity
        shape = (samples, capacity, config.num_key_value_heads, config.head_dim)
        numbers = range(config.num_hidden_layers)
        self.keys = [zeros(shape, dtype=dtype, device=device) for _ in numbers]
        self.values = [zeros(shape, dtype=dtype, device=device) for _ in numbers]
        self.lengths = zeros(samples, dtype="int32", device=device)

    @property
    def nbytes(self) -> int:
        """The bytes of all keys and values."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def layer(self, number: int, places: Tensor) -> LayerCache:
        """The part of layer `number`, to append tokens at `places` (samples, length)."""
        return LayerCache(self, number, places)

    def __repr__(self) -> str:
        samples = self.lengths.shape[0]
        return f"Cache({len(self.keys)} layers, {samples} samples, {self.capacity} tokens, {self.nbytes} bytes)"


class LayerCache:
    """One layer's keys and values in a `Cache`."""

    def __init__(self, cache: Cache, number: int, places: Tensor) -> None:
        self._cache, self._number, self._places = cache, number, places

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write what new tokens (samples, length, heads, width) give; all keys and values, those of free rows too."""
        samples = arange(key.shape[0], dtype="int32", device=key.device)[:, None]
        keys, values = self._cache.keys[self._number], self._cache.values[self._number]
        keys[samples, self._places] = key
        values[samples, self._places] = value
        return keys, values
