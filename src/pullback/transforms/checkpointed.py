"""Tensors that bring their strategy with them, for `Autodiff(backend, checkpointing=...)`."""

from __future__ import annotations

from typing import Any

from .. import modes
from ..autodiff.apply import apply
from ..autodiff.base import make
from ..autodiff.checkpointing.strategies import Region, Strategy
from ..tensors.tensor import Tensor
from ..tensors.writing import WRITES


def tensors_under(strategy: Strategy) -> type[Tensor]:
    """A class of tensors: operations on them are recorded under `strategy`, and so are operations on what they give."""

    class Checkpointed(Tensor):
        """A tensor whose operations are recorded under its strategy."""

        __slots__ = ()

        def _apply(self, operation: Any, inputs: Any, static: Any) -> Any:
            with _recorded_under(strategy):
                result = apply(
                    operation, tuple([_plain(x) if isinstance(x, Checkpointed) else x for x in inputs]), static
                )
            for tensor in result if isinstance(result, tuple) else (result,):
                labelled(tensor, Checkpointed)
            return result

        def clone(self) -> Tensor:
            return labelled(super().clone(), Checkpointed)

        def detach(self) -> Tensor:
            return labelled(super().detach(), Checkpointed)

        def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
            return labelled(super().to_device(device, stream=stream), Checkpointed)

    def writing(name: str) -> Any:
        """The write of a plain tensor, which keeps its memory where it can."""
        write = getattr(Tensor, name)

        def method(self: Tensor, *given: Any) -> Any:
            given = tuple([_plain(x) if isinstance(x, Checkpointed) else x for x in given])
            self.__class__ = Tensor
            try:
                with _recorded_under(strategy):
                    return write(self, *given)
            finally:
                labelled(self, Checkpointed)

        return method

    for name in WRITES:
        setattr(Checkpointed, name, writing(name))
    return Checkpointed


def _recorded_under(strategy: Strategy) -> Any:
    """Record under `strategy`, unless in a `checkpoint` region, which says more."""
    mode = modes.current()
    is_region = mode is not None and isinstance(mode.checkpointing, Region)
    return modes.changed() if is_region else modes.changed(checkpointing=strategy)


def labelled(tensor: Tensor, kind: type[Tensor] | None) -> Tensor:
    """`tensor` as one of the class `kind`; duals stay what they are, as do all without a class."""
    if kind is not None and type(tensor) is Tensor:
        tensor.__class__ = kind
    return tensor


def _plain(tensor: Tensor) -> Tensor:
    """The same value and variable as a tensor without a strategy of its own."""
    plain = make(tensor._raw, tensor._node)
    plain._origin = getattr(tensor, "_origin", None)
    return plain
