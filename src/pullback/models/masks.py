"""Who sees whom: masks of attention between tokens, True where a query sees a key."""

from __future__ import annotations

from ..functions.comparisons import logical_and
from ..functions.filled import arange, ones, tril
from ..tensors.tensor import Tensor


def of_segments(segments: Tensor) -> Tensor:
    """A mask (samples, 1, length, length): tokens see those before them in the same segment, by its number."""
    length = segments.shape[-1]
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return logical_and(same, tril(ones((length, length), dtype="bool", device=segments.device)))


def of_cache(places: Tensor, capacity: int) -> Tensor:
    """A mask (samples, 1, length, capacity): tokens at `places` (samples, length) see the rows up to their own."""
    rows = arange(capacity, dtype="int32", device=places.device)
    return rows <= places[:, None, :, None]
