"""One call of an operation on stacks, as forms see it: arrays of the level below, which may have a first axis more."""

from __future__ import annotations

from typing import Any

from ... import backends, modes
from ...dtypes import DType
from ...operations import OPERATIONS, Operation
from .. import base, fast
from ..apply import apply, split
from ..base import make, resolved
from ..explanation import explained
from ..tables import TENSORS
from .stack import STACK_BACKEND, Level, Stack


class Call:
    """`xs` are arrays of the level below, numbers and None; those in `stacked` have the examples along axis 0.

    The arrays are raw ones, and `xp` has the kernels, where nothing further out has to be recorded; else they are
    tensors, as all that `xp` gives. The shape that one example sees is without the axis of examples. `static` is as one
    example sees it, and may hold stacks in an index.
    """

    __slots__ = ("operation", "level", "size", "xs", "stacked", "static", "is_stacked", "has_stacks_inside", "xp",
                 "keeps_residuals")  # fmt: skip

    def __init__(self, operation: Operation, raws: Any, static: Any) -> None:
        inside: Any = _stacks_inside(static) if _may_hold_arrays(operation) else ()
        stacks = [x for x in raws if type(x) is Stack]
        self.level: Level = (stacks or inside)[0].level
        if not self.level.is_open:
            (stacks or inside)[0].check_open()
        if any([x.level is not self.level for x in inside]):
            static = _of_level(static, self.level)
            inside = _stacks_inside(static)
        self.operation = operation
        self.size = self.level.size
        self.stacked = tuple([type(x) is Stack and x.is_stacked for x in raws])
        self.has_stacks_inside = bool(inside)
        self.is_stacked = True in self.stacked or any([x.is_stacked for x in inside]) or self.draws(static)
        if inside and not self.is_stacked:
            static = tuple([without_stacks(value) for value in static])
        if "dtype" in operation.static:
            raw_dtype = (stacks or inside)[0].tensor._backend.raw_dtype
            static = tuple([raw_dtype(value) if type(value) is DType else value for value in static])
        self.keeps_residuals = False
        self.xs = [x.tensor if type(x) is Stack else x for x in raws]
        self.xp: Any = TENSORS
        self._take_raw(inside)
        self.static = self._with_negative_axis(static) if "axis" in operation.static else static

    def _take_raw(self, inside: Any) -> None:
        """Have raw arrays instead of tensors where kernels alone are enough."""
        mode = modes.current()
        assert mode is not None
        if mode.tapes or mode.check_every_operation or type(self.operation) is not Operation:
            return
        if self.level.outer is not None and "key" in self.operation.static:
            return  # the level below may draw for every example of its own, too
        raws = []
        backend = None
        for x in self.xs:
            if isinstance(x, base.TensorBase):
                if type(x) is not base.Tensor:
                    return
                x = resolved(x)
                if x._node is not None and mode.recording:
                    return
                x = x._raw
                if type(x) is Stack and x.level is not self.level.outer:
                    return  # of a level further out: an operation on tensors lifts it
                if backend is None:
                    backend = backends.of(x)
                elif backends.of(x) is not backend:
                    return  # which an operation on tensors explains
            raws.append(x)
        if backend is None:
            return
        for stack in inside:
            if type(stack.tensor) is not base.Tensor:
                return
            if type(stack.tensor._raw) is Stack and backend is not STACK_BACKEND:
                return  # an index of examples further out, of an array that they share
        if any([type(x) in base.PYTHON_SCALARS for x in raws]):
            array = next(x for x in raws if hasattr(x, "shape"))
            raws = [backend.scalar_for(x, array) if type(x) in base.PYTHON_SCALARS else x for x in raws]
        self.xs, self.xp = raws, backend.xp

    @property
    def is_raw(self) -> bool:
        return self.xp is not TENSORS

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

    def like(self, xs: Any) -> Call:
        """The same call with other inputs, stacked where those were."""
        new = Call.__new__(Call)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        new.xs = xs
        return new

    def draws(self, static: Any) -> bool:
        """Whether it draws random numbers, which every example has of its own."""
        names = self.operation.static
        if "key" not in names or self.level.randomness != "different":
            return False
        return any([value for name, value in zip(names, static) if name in ("p", "dropout")])

    def run(self, xs: Any, static: Any) -> Any:
        """The operation on arrays of the level below."""
        operation = self.operation
        if self.is_raw:
            kernel = getattr(self.xp, operation.name)
            try:
                result = kernel(list(xs), *static) if operation.variadic else kernel(*xs, *static)
            except Exception as error:
                raise explained(operation, list(xs), static, error) from error
            if operation.residuals and not self.keeps_residuals:
                outputs = split(operation, result)[0]
                return outputs if operation.has_several_outputs else outputs[0]
            return tuple(result) if isinstance(result, (tuple, list)) else result  # without the library's names
        if operation.variadic or OPERATIONS.get(operation.name) is not operation:
            return apply(operation, tuple(xs), tuple(static))
        return _function(operation.name)(*xs, *static)

    def stacks_of(self, result: Any, is_stacked: bool) -> Any:
        if type(result) in (tuple, list):
            return tuple([self.stacks_of(out, is_stacked) for out in result])
        if not isinstance(result, base.TensorBase):
            result = make(backends.of(self.array).from_scalar(result), None)
        return Stack(result, self.level, is_stacked)

    @property
    def array(self) -> Any:
        """One of the inputs that are arrays."""
        return next(x for x in self.xs if hasattr(x, "shape"))

    # -- inputs as forms need them -------------------------------------------------------------------

    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of an input that one example sees; () for a number."""
        shape = tuple(getattr(self.xs[i], "shape", ()))
        return shape[1:] if self.stacked[i] else shape

    def rank(self, i: int) -> int:
        return len(getattr(self.xs[i], "shape", ())) - self.stacked[i]

    def dtype(self, i: int) -> Any:
        """The raw dtype of an input."""
        x = self.xs[i]
        return x._raw.dtype if isinstance(x, base.TensorBase) else x.dtype

    def aligned(self, i: int, rank: int) -> Any:
        """An input that broadcasts against inputs of `rank` axes, as one example sees them."""
        x = self.xs[i]
        if not self.stacked[i] or len(x.shape) == rank + 1:
            return x
        return self.xp.reshape(x, (self.size, *(1,) * (rank + 1 - len(x.shape)), *x.shape[1:]))

    def spread(self, i: int) -> Any:
        """An input with the examples along its first axis; None stays None."""
        x = self.xs[i]
        if x is None or self.stacked[i]:
            return x
        if not hasattr(x, "shape"):
            like = self.array
            x = self.xp.full((), x, getattr(like, "_raw", like).dtype, like)
        return self.xp.broadcast_to(x, (self.size, *x.shape))

    def example(self, number: int) -> tuple[list[Any], tuple[Any, ...]]:
        """The inputs and static arguments of one example."""
        inputs = [self.xp.getitem(x, (number,)) if flag else x for x, flag in zip(self.xs, self.stacked)]
        return inputs, tuple([without_stacks(value, number) for value in self.static])

    def on_tensors(self) -> Call:
        """The same call, on tensors."""
        if not self.is_raw:
            return self
        new = self.like([make(x, None) if hasattr(x, "shape") else x for x in self.xs])
        new.xp, new.keeps_residuals = TENSORS, False
        return new


def _may_hold_arrays(operation: Operation) -> bool:
    return "index" in operation.static or type(operation) is not Operation


def _stacks_inside(static: Any) -> list[Stack]:
    parts = [part for value in static for part in (value if type(value) is tuple else (value,))]
    return [part for part in parts if type(part) is Stack]


def _of_level(value: Any, level: Level) -> Any:
    """A static argument at a level: what examples of a level further out have is the same for all of its own."""
    if type(value) is tuple:
        return tuple([_of_level(part, level) for part in value])
    if type(value) is not Stack or value.level is level:
        return value
    value.check_open()
    return Stack(make(value, None), level, False)


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
