"""One call of an operation on stacks, as forms see it: tensors of the level below, which may have a first axis more."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType
from ...operations import OPERATIONS, Operation
from .. import base, fast
from ..apply import apply
from ..base import resolved
from ..tables import TENSORS
from .stack import Level, Stack


class Call:
    """`xs` are tensors of the level below, numbers and None; those in `stacked` have the examples along axis 0.

    The shape that one example sees is without that axis. `static` is as one example sees it, and may hold stacks in an
    index.
    """

    __slots__ = ("operation", "level", "size", "xs", "stacked", "static", "is_stacked", "has_stacks_inside")

    def __init__(self, operation: Operation, raws: Any, static: Any) -> None:
        parts = [part for value in static for part in (value if type(value) is tuple else (value,))]
        stacks = [x for x in (*raws, *parts) if type(x) is Stack]
        self.level: Level = stacks[0].level
        for stack in stacks:
            stack.check_open()
        self.has_stacks_inside = any([type(part) is Stack for part in parts])
        self.operation = operation
        self.size = self.level.size
        self.xs = [x.tensor if type(x) is Stack else x for x in raws]
        self.stacked = tuple([type(x) is Stack and x.is_stacked for x in raws])
        self.is_stacked = any([stack.is_stacked for stack in stacks]) or self.draws(static)
        if not self.is_stacked:
            static = tuple([without_stacks(value) for value in static])
        if any([type(value) is DType for value in static]):
            raw_dtype = stacks[0].tensor._backend.raw_dtype
            static = tuple([raw_dtype(value) if type(value) is DType else value for value in static])
        if "axis" in operation.static:
            static = self._with_negative_axis(static)
        self.static = static

    def _with_negative_axis(self, static: tuple[Any, ...]) -> tuple[Any, ...]:
        """The static arguments with an axis that is counted from the end, so that it is the same on a stack."""
        place = self.operation.static.index("axis")
        axis = static[place]
        if axis is None or (type(axis) is int and axis < 0):
            return static
        rank = self.rank(0)
        if type(axis) is int:
            axis -= rank + (self.operation.name == "stack")
        else:
            rank += len(axis) if self.operation.name == "expand_dims" else 0
            axis = tuple([n - rank if n >= 0 else n for n in axis])
        return (*static[:place], axis, *static[place + 1 :])

    @classmethod
    def like(cls, call: Call, xs: Any) -> Call:
        """The same call with other inputs, stacked where those were."""
        new = cls.__new__(cls)
        for name in cls.__slots__:
            setattr(new, name, getattr(call, name))
        new.xs = xs
        return new

    def draws(self, static: Any) -> bool:
        """Whether it draws random numbers, which every example has of its own."""
        if "key" not in self.operation.static or self.level.randomness != "different":
            return False
        chances = [value for name, value in zip(self.operation.static, static) if name in ("p", "dropout")]
        return any(chances)

    def run(self, xs: Any, static: Any) -> Any:
        """The operation on tensors of the level below."""
        operation = self.operation
        if operation.variadic or OPERATIONS.get(operation.name) is not operation:
            return apply(operation, tuple(xs), tuple(static))
        return _function(operation.name)(*xs, *static)

    def stacks_of(self, result: Any, is_stacked: bool) -> Any:
        if type(result) is tuple:
            return tuple([Stack(out, self.level, is_stacked) for out in result])
        return Stack(result, self.level, is_stacked)

    # -- inputs as forms need them -------------------------------------------------------------------

    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of an input that one example sees; () for a number."""
        x = self.xs[i]
        if not isinstance(x, base.Tensor):
            return ()
        return x.shape[1:] if self.stacked[i] else x.shape

    def rank(self, i: int) -> int:
        return len(self.shape(i))

    def aligned(self, i: int, rank: int) -> Any:
        """An input that broadcasts against inputs of `rank` axes, as one example sees them."""
        x = self.xs[i]
        if not self.stacked[i] or x.ndim == rank + 1:
            return x
        return TENSORS.reshape(x, (self.size, *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))

    def spread(self, i: int) -> Any:
        """An input with the examples along its first axis; None stays None."""
        x = self.xs[i]
        if x is None or self.stacked[i]:
            return x
        if not isinstance(x, base.Tensor):
            like = next(x for x in self.xs if isinstance(x, base.Tensor))
            x = TENSORS.full((), x, like._raw.dtype, like)
        return TENSORS.broadcast_to(x, (self.size, *x.shape))

    def example(self, number: int) -> tuple[list[Any], tuple[Any, ...]]:
        """The inputs and static arguments of one example."""
        inputs = [TENSORS.getitem(x, (number,)) if flag else x for x, flag in zip(self.xs, self.stacked)]
        return inputs, tuple([without_stacks(value, number) for value in self.static])


def without_stacks(value: Any, number: int | None = None) -> Any:
    """A static argument with raw arrays of the level below in place of stacks: those of one example, if it is said."""
    if type(value) is tuple:
        return tuple([without_stacks(part, number) for part in value])
    if type(value) is not Stack:
        return value
    tensor = TENSORS.getitem(value.tensor, (number,)) if value.is_stacked else value.tensor
    return resolved(tensor)._raw


_functions: dict[str, Any] = {}


def _function(name: str) -> Any:
    found = _functions.get(name)
    if found is None:
        found = _functions[name] = fast.call_for(name)
    return found
