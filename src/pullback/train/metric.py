"""What every metric is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..tensors.tensor import Tensor


class Metric:
    """What all metrics have; a metric of your own says what `update`, `compute` and `reset` do."""

    name = ""

    def __init__(self) -> None:
        self._rooms: dict[str, Any] = {}
        self.reset()

    def update(self, output: Any, target: Any) -> None:
        """Take a batch into account."""
        raise NotImplementedError(f"{type(self).__name__} needs an `update` method.")

    def compute(self) -> float:
        """The figure over everything since the last reset; an error if that is nothing."""
        raise NotImplementedError(f"{type(self).__name__} needs a `compute` method.")

    def reset(self) -> None:
        """Forget everything."""
        raise NotImplementedError(f"{type(self).__name__} needs a `reset` method.")

    def _room(self, role: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array to work in, of memory that is kept and grows to the largest size asked for."""
        size = 1
        for length in shape:
            size *= length
        room = self._rooms.get(role)
        if room is None or room.size < size or room.dtype != dtype:
            room = self._rooms[role] = np.empty(size, dtype)
        return room[:size].reshape(shape)

    def _counted(self, count: int) -> int:
        if not count:
            raise ShapeError(f"{self.name}: there were no samples since the last reset. Call `update` first.")
        return count


def as_array(name: str, value: Any) -> Any:
    """A tensor, an array of a known library or a list, as a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor) or type(value).__module__.partition(".")[0] in ("torch", "jax", "jaxlib", "cupy"):
        from ..files.tensors import as_numpy

        value = as_numpy(name, value.detach() if hasattr(value, "detach") else value)
    return np.asarray(value)
