"""Operations of the user's own as a kernel: their `forward` is called as it is, in the middle of the program."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ... import dtypes
from ...errors import ShapeError
from ..host import provide
from ..program import Value
from .kernels import record


class CustomCall:
    """An operation made by `pb.custom_op`, and its static arguments."""

    __slots__ = ("operation", "static")

    def __init__(self, operation: Any, static: tuple[Any, ...]) -> None:
        self.operation = operation
        self.static = static

    def __repr__(self) -> str:
        return self.operation.name

    def form(self, args: tuple[Any, ...]) -> Any:
        """The shapes and dtypes of what it makes, by the function that was given for that."""
        operation = self.operation
        shapes = [getattr(arg, "shape", None if arg is None else ()) for arg in args]
        given = operation.shape_rule(*shapes, **dict(zip(operation.static, self.static)))
        first = next(arg.dtype for arg in args if type(arg) is Value)
        if isinstance(given, list):
            return [self._form(one, first) for one in given]
        return self._form(given, first)

    def _form(self, given: Any, dtype: Any) -> Any:
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], tuple):
            given, dtype = given[0], dtypes.numpy_dtype(dtypes.get(given[1]))
        if not isinstance(given, tuple) or not all(isinstance(n, (int, np.integer)) for n in given):
            raise ShapeError(
                f"{self.operation.name}: `shape` gives a tuple of lengths, (lengths, dtype), or a list with one of "
                f"these for each result; it gave {given!r:.60}."
            )
        return tuple(int(n) for n in given), dtype


def recording(operation: Any) -> Callable[..., Any]:
    """The kernel of `operation` for symbols."""
    count = len(operation.inputs)
    return lambda *args: record("call_custom", (CustomCall(operation, args[count:]), *args[:count]))


def call_custom(call: CustomCall, *arrays: Any) -> Any:
    """What the operation's `forward` makes of arrays."""
    return call.operation.kernel(*arrays, *call.static)


provide(call_custom)
