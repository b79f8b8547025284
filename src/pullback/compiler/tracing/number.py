"""Numbers of Python's that keep changing, as inputs of a program.

While a function is traced, such a number is a tensor without axes that behaves as the number would: it takes the dtype
of the tensors it meets, and among numbers it stays one. Where a program needs its value (a choice, a range, an index)
there is none, and the trace fails.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...autodiff.apply import apply
from ...autodiff.base import make
from ...autodiff.sites import user_site
from ...errors import TraceError
from ...tensors.tensor import Tensor
from .symbol import Symbol

_INTEGERS = frozenset(("add", "subtract", "multiply", "negative", "positive", "abs", "floor_divide", "remainder"))


class Number(Tensor):
    """A number that is an input. For other threads, which may meet it at its place, it is the number it stands for."""

    __slots__ = ()

    @property
    def _about(self) -> Any:
        """The thread that traces, the number, and whether it is an integer."""
        return self._cell

    def __hash__(self) -> int:
        raise self._raw.refusal("looking something up by a number")

    def _apply(self, operation: Any, inputs: Any, static: Any) -> Any:
        if self._about[0] != threading.get_ident():
            plain = tuple([x._about[1] if type(x) is Number else x for x in inputs])
            return apply(operation, plain, static)
        tensors = [x for x in inputs if isinstance(x, Tensor) and type(x) is not Number]
        if not tensors:
            return self._among_numbers(operation, inputs, static)
        widest = max(tensors, key=lambda x: (x.dtype.kind in ("float", "complex"), x.dtype.itemsize))
        return apply(operation, tuple([_as(x, widest) if type(x) is Number else x for x in inputs]), static)

    def _among_numbers(self, operation: Any, inputs: Any, static: Any) -> Any:
        plain = tuple([make(x._raw, None) if type(x) is Number else x for x in inputs])
        result = apply(operation, plain, static)
        if not isinstance(result, Tensor) or result.dtype.kind != "float" or result.shape:
            return result
        numbers = [x for x in inputs if x is not None]
        whole = operation.name in _INTEGERS and all(_is_whole(x) for x in numbers)
        return number(result._raw, 0.0, whole)


def _unless_repeating(name: str) -> Any:
    """An operator of tensors, but for lists and texts, which a number repeats."""
    operator = getattr(Tensor, name)

    def method(self: Number, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)):
            raise self._raw.refusal("repeating")
        return operator(self, other)

    return method


for _name in ("__mul__", "__rmul__", "__add__", "__radd__"):
    setattr(Number, _name, _unless_repeating(_name))


def _as(x: Any, other: Tensor) -> Tensor:
    """A number as a tensor of the dtype that it takes beside another tensor."""
    kind = other.dtype.kind
    if kind not in ("float", "complex") and not (x._about[2] and kind in ("int", "uint")):
        raise TraceError(f"{user_site()}: a number that changes meets a tensor of {other.dtype.name} here.")
    return make(x._raw, None).astype(other.dtype)


def _is_whole(x: Any) -> bool:
    return x._about[2] if type(x) is Number else type(x) is int


def number(symbol: Symbol, value: float, whole: bool) -> Number:
    """The number that a symbol of float64 without axes stands for."""
    made = Number()
    made._raw = symbol
    made._node = None
    made._cell = (threading.get_ident(), value, whole)  # type: ignore[assignment]
    return made


def feed_dtype(recorder: Any) -> Any:
    """The dtype in which a program is given a number of Python's: the widest there is."""
    library = recorder.library
    return np.dtype(np.float64) if library is None else library.raw_dtype(library.widest_float())


class Feed:
    """The memory from which a program reads a number, and the place where calls find it."""

    __slots__ = ("place", "array")

    def __init__(self, place: Any) -> None:
        self.place = place
        self.array = np.zeros((), np.float64)

    def refresh(self) -> None:
        """Take the number as it is now."""
        self.array[()] = self.place.get()

    def stand_in(self, trace: Any) -> Number:
        """What the traced function finds at the place."""
        value = self.place.get()
        self.array = self.array.astype(feed_dtype(trace.recorder), copy=False)
        symbol = trace.lift(self.array)
        trace.unreadable.add(symbol.value)
        return number(symbol, value, type(value) is int)
