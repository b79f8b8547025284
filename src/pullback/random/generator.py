"""The generator: a stream, what can be drawn from it, and streams that come from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes, modes
from ..backends.numpy.random import joined, philox_uint32
from .arguments import as_tensor, integer
from .discrete import Choices
from .stream import KEYS, State

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_SPLITTING = 1  # the domain of the streams that keys for `split` are taken from


class Generator(Choices):
    """A stream of random numbers. Equal seeds give equal numbers, on every device.

    Parameters
    ----------
    seed : int or None
        Where the stream begins; None for a place that nobody knows.

    Examples
    --------
    >>> import pullback as pb
    >>> generator = pb.random.Generator(7)
    >>> state = generator.state
    >>> first = generator.uniform((3,))
    >>> generator.state = state
    >>> bool((generator.uniform((3,)) == first).all())
    True
    """

    __slots__ = ()

    def split(self, count: int = 2) -> list[Generator]:
        """New generators, `count` of them, whose numbers have nothing to do with each other's nor with this one's.

        Equal generators split into equal ones, on every device. A compiled function splits anew in every call, and
        may use what it gets in that call only.

        >>> import pullback as pb
        >>> left, right = pb.random.Generator(0).split()
        >>> bool((left.uniform((4,)) == right.uniform((4,))).any())
        False
        """
        count = integer("count", count, 0, KEYS)
        trace = modes.tracing()
        if trace is not None:
            return trace.split(self, count)
        return [Generator(int(key)) for key in self._keys_of_parts(count)]

    def _keys_of_parts(self, count: int) -> Any:
        words = philox_uint32(*self._reserved(4 * count), 4 * count, _SPLITTING).reshape(-1, 4)
        return joined(words.T)

    def _split_keys(self, count: int, in_halves: bool) -> Tensor:
        """The keys of `split` for a program, which may have to take them in halves, the lower one first."""
        keys = self._keys_of_parts(count)
        if in_halves:
            return as_tensor(keys.view(np.uint32).reshape(count, 2), dtypes.uint32, "numpy")
        return as_tensor(keys, dtypes.uint64, "numpy")

    def __repr__(self) -> str:
        return f"Generator(key={self._key}, offset={self._offset})"

    def __reduce__(self) -> Any:
        return at_state, (self.state,)


def at_state(state: State) -> Generator:
    """A generator that goes on from `state`."""
    generator = Generator(0)
    generator.state = state
    return generator
