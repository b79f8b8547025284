"""Random numbers that need not be kept: where their stream was is enough to draw them again."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ...dtypes import DType
from .recording import bytes_of
from .saved import Origin, Step

if TYPE_CHECKING:
    from ...random import Generator, State
    from ...tensors.tensor import Tensor


class _Drawing:
    """Numbers of a generator at some point of its stream, as an operation without inputs."""

    variadic = has_several_outputs = cheap = False
    residuals = ()

    def __init__(self, name: str, kernel: Callable[[], Any]) -> None:
        self.name = name
        self._kernel = kernel

    def kernel_for(self, backend: Any) -> Callable[[], Any]:
        return self._kernel


def drawn(
    strategy: Any, generator: Generator, method: Callable[..., Tensor], args: tuple[Any, ...], named: dict[str, Any]
) -> Tensor:
    """The numbers that a method of a generator gives, with their origin: the point of the stream they came from."""
    args = tuple([tuple(x) if isinstance(x, list) else x for x in args])
    named = {name: tuple(x) if isinstance(x, list) else x for name, x in named.items()}
    if not all([_is_fixed(x) for x in (*args, *named.values())]):
        return method(generator, *args, **named)
    moved = False
    while not moved:
        state = generator.state
        ahead = _at(generator, state)  # draws what `generator` would, and says how far that goes
        started = perf_counter()
        tensor = method(ahead, *args, **named)
        seconds = perf_counter() - started
        moved = generator._moved(state, ahead.state)
    named["device"] = tensor.device  # the defaults may be others when the numbers are drawn again
    if "dtype" in (method.__kwdefaults__ or ()):
        named["dtype"] = tensor.dtype
    operation: Any = _Drawing(method.__name__, lambda: method(_at(generator, state), *args, **named)._raw)
    step = Step(operation, tensor._backend, (), (), seconds, strategy.region)
    tensor._origin = Origin(step, 0, bytes_of(tensor._raw), tracked=False)
    return tensor


def _at(generator: Generator, state: State) -> Generator:
    """Another generator that goes on from `state`."""
    other = type(generator)(0)
    other.state = state
    return other


def _is_fixed(argument: Any) -> bool:
    """Whether an argument will be the same whenever numbers are drawn again: nothing that can be written to."""
    if isinstance(argument, tuple):
        return all([isinstance(x, (int, float, np.integer)) for x in argument])
    return argument is None or isinstance(argument, (int, float, str, np.generic, np.dtype, type, DType))
