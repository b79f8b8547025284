"""Random numbers as a kernel: those of a generator's method at a place of its stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...random import at_state
from ..host import provide


def draw(key: Any, offset: Any, method: str, options: Any, dtype: Any) -> Any:
    """What `Generator.<method>` gives at `offset` of the stream of `key`."""
    args, named = options
    generator = at_state({"key": _joined(key), "offset": _joined(offset)})
    made = getattr(generator, method)(*args, **dict(named))
    return made._backend.to_numpy(made._raw).astype(dtypes.numpy_dtype(dtype), copy=False)


def _joined(words: Any) -> int:
    """A number of 64 bits, which may be given in halves."""
    return int(words) if not words.shape else int(words[0]) | int(words[1]) << 32


def moved_on(words: Any, count: int) -> Any:
    """A place in a stream, in halves, `count` words further on."""
    return (words.view("<u8") + np.uint64(count)).view(np.uint32)


provide(draw)
provide(moved_on)
