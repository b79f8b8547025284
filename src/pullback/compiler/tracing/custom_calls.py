"""Operations of the user's own as a kernel: their `forward` is called as it is, in the middle of the program."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ... import backends, dtypes, modes
from ...errors import ShapeError
from ..host import provide
from ..program import Value
from .kernels import record


class CustomCall:
    """An operation made by `pb.custom_op`, its static arguments, and whose arrays it is called with."""

    __slots__ = ("operation", "static", "memory")

    def __init__(self, operation: Any, static: tuple[Any, ...], memory: Any = None) -> None:
        self.operation = operation
        self.static = static
        self.memory = memory  # None where a library's own arrays are given

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

    def kernel(*args: Any) -> Any:
        recorder = modes.tracing().recorder
        memory = recorder.memory if recorder.is_on_host else None
        return record("call_custom", (CustomCall(operation, args[count:], memory), *args[:count]))

    return kernel


def call_custom(call: CustomCall, *arrays: Any) -> Any:
    """What the operation's `forward` makes of arrays."""
    memory = call.memory
    if memory is None or memory is backends.NUMPY:
        return call.operation.kernel(*arrays, *call.static)
    given = [memory.on_host(array) if type(array) is np.ndarray else array for array in arrays]
    made = call.operation.kernel(*given, *call.static)
    if isinstance(made, (tuple, list)):
        return [_as_numpys(part, memory) for part in made]
    return _as_numpys(made, memory)


def _as_numpys(made: Any, memory: Any) -> Any:
    return memory.host_array(made) if isinstance(made, memory.array_types) else made


provide(call_custom)
