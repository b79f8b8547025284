"""Random numbers that need not be kept: where their stream was is enough to draw them again."""

from __future__ import annotations

from typing import Any, Callable

from ...tensor.core import Tensor
from .kept import Origin, Step
from .recording import bytes_of


class _Drawing:
    """Numbers of a generator at some point of its stream, as an operation without inputs."""

    variadic = has_several_outputs = cheap = False
    residuals = ()

    def __init__(self, name: str, kernel: Callable[[], Any]) -> None:
        self.name = name
        self._kernel = kernel

    def kernel_for(self, backend: Any) -> Callable[[], Any]:
        return self._kernel


def drawn(strategy: Any, name: str, tensor: Tensor, seconds: float, again: Callable[[], Tensor]) -> Tensor:
    """`tensor`, with the origin that `again` draws it, every time it is called."""
    operation: Any = _Drawing(name, lambda: again()._data)
    step = Step(operation, tensor._backend, (), (), seconds, strategy.region)
    tensor._origin = Origin(step, 0, bytes_of(tensor._data), tracked=False)
    return tensor
