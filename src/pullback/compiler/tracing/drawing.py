"""Random numbers as a kernel: those of a generator's method at a place of its stream."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...random import at_state
from ..host import provide


def draw(key: Any, offset: Any, method: str, options: Any, dtype: Any) -> Any:
    """What `Generator.<method>` gives at `offset` of the stream of `key`."""
    args, named = options
    generator = at_state({"key": int(key), "offset": int(offset)})
    return getattr(generator, method)(*args, **dict(named))._raw.astype(dtypes.numpy_dtype(dtype), copy=False)


provide(draw)
