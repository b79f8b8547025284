"""Stacks: one array per example, seen as the array of one example; and the backend whose arrays they are."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backends, dtypes, modes
from ...backends.protocol import Backend
from ...errors import VmapError
from .. import base
from ..base import SCALAR_OR_ABSENT, make, resolved
from ..forward import Dual, dual, next_level
from ..sites import user_site

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor


class Level:
    """One running `vmap`: how many examples, and what is around it.

    It has its place among the levels of forward mode, so that derivatives and examples nest in one order.
    """

    __slots__ = ("number", "size", "outer", "randomness", "is_quiet", "is_open", "entered")

    def __init__(self, size: int, randomness: str, outer: Level | None, is_quiet: bool = False) -> None:
        self.number = next_level()
        self.size = size
        self.outer = outer
        self.randomness = randomness
        self.is_quiet = is_quiet  # whether nobody asked for many examples, and is told of what runs one by one
        self.is_open = True
        self.entered: Any = None  # see `modes.enter_again`

    def below(self) -> Any:
        """Go to the level below, where stacks are tensors; give what is returned to `modes.leave`."""
        return modes.enter_again(self, mapping=self.outer, autocast=None)

    def lift(self, x: Any) -> Any:
        """`x` as a tensor of this level: itself, or one that is the same for every example."""
        if type(x) in SCALAR_OR_ABSENT:
            return x
        if isinstance(x, Dual) and x.level > self.number:
            return dual(self.lift(x.primal), self.lift(x.tangent), x.level)
        raw = x._raw
        if type(x) is not base.Tensor and not isinstance(x, Dual):
            return x  # it has its own way of taking part in operations
        if type(raw) is Stack and not isinstance(x, Dual):
            if raw.level is self:
                return x
            raw.check_open()
        tensor = resolved(x)
        if type(tensor) is base.Tensor:  # another object, which keeps the values that are there now
            origin = getattr(tensor, "_origin", None)
            tensor = make(tensor._raw, tensor._node)
            if origin is not None:
                tensor._origin = origin
        return make(Stack(tensor, self, False), None)

    def stacked(self, tensor: Tensor) -> Tensor:
        """A tensor of this level of one of the level below, whose first axis has the examples."""
        return make(Stack(tensor, self, True), None)

    def whole(self, x: Any) -> Any:
        """A tensor of this level as one of the level below with the examples along its first axis, and whether it has
        that axis: not if all examples have the same."""
        if isinstance(x, Dual) and x.level > self.number:
            primal, has_axis = self.whole(x.primal)
            tangent, tangent_has_axis = self.whole(x.tangent)
            if has_axis != tangent_has_axis:
                primal, tangent = self.spread(primal, has_axis), self.spread(tangent, tangent_has_axis)
            return dual(primal, tangent, x.level), has_axis or tangent_has_axis
        if type(x._raw) is Stack and not isinstance(x, Dual) and x._raw.level is self:
            return x._raw.tensor, x._raw.is_stacked
        return x, False

    def written(self, tensor: Tensor, value: Tensor) -> Tensor:
        """What a tensor becomes when `value` is written to it: one from outside takes only what all examples share."""
        raw = tensor._raw
        while type(value._raw) is Stack and not (type(raw) is Stack and raw.level is value._raw.level):
            if value._raw.is_stacked or value._node is not None or isinstance(value, Dual):
                raise VmapError(
                    f"{user_site()}: writing to a tensor of shape {tensor.shape} from outside of pb.vmap, which has "
                    f"one value for all of {value._raw.level.size} examples. Write to a copy, which every example has "
                    "of its own (`t = t.clone()`), and return it."
                )
            value = value._raw.tensor
        return value

    def spread(self, x: Tensor, has_axis: bool) -> Tensor:
        """A tensor of the level below with a first axis for the examples."""
        from ..tables import TENSORS

        return x if has_axis else TENSORS.broadcast_to(x, (self.size, *x.shape))

    def apply(self, operation: Any, inputs: Any, static: Any) -> Any:
        from .apply import apply

        return apply(self, operation, inputs, static)

    def drawn_at_once(self, count: int) -> int:
        """How many random numbers are drawn where one example draws so many."""
        count *= self.size if self.randomness == "different" else 1
        return count if self.outer is None else self.outer.drawn_at_once(count)

    def draw(self, generator: Any, method: Any, args: Any, named: Any) -> Any:
        from .drawing import draw

        return draw(self, generator, method, args, named)

    def dual(self, primal: Tensor, tangent: Tensor, number: int) -> Tensor:
        """A tensor with a tangent at a level that is further out: one of the level below has it."""
        p, has_axis = self.whole(primal)
        t, tangent_has_axis = self.whole(tangent)
        token = self.below()
        try:
            if has_axis != tangent_has_axis:
                p, t = self.spread(p, has_axis), self.spread(t, tangent_has_axis)
            return make(Stack(dual(p, t, number), self, has_axis or tangent_has_axis), None)
        finally:
            modes.leave(token)


class Stack:
    """What one example has, as a raw array; `tensor` holds all examples, or the one value that they share."""

    __slots__ = ("tensor", "level", "is_stacked", "__weakref__")

    __array_ufunc__ = None  # NumPy's arrays leave operators to the stack beside them

    def __init__(self, tensor: Tensor, level: Level, is_stacked: bool) -> None:
        self.tensor = tensor
        self.level = level
        self.is_stacked = is_stacked

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.tensor.shape
        return shape[1:] if self.is_stacked else shape

    @property
    def dtype(self) -> Any:
        return self.tensor._raw.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.tensor.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Stack(shape={self.shape}, examples={self.level.size if self.is_stacked else 1})"

    def detached(self) -> Stack:
        return Stack(self.tensor.detach(), self.level, self.is_stacked)

    def check_open(self) -> None:
        """Refuse an array that outlived the `vmap` it was made in."""
        if not self.level.is_open:
            raise VmapError(
                f"{user_site()}: this tensor was made inside of pb.vmap, where it stood for every example, and is used "
                "outside of it. Return it from the function instead of keeping it in a list or an attribute."
            )

    # -- what would need the values of one example ---------------------------------------------------

    def _value(self, what: str) -> Any:
        self.check_open()
        if self.is_stacked:
            raise self.refusal(what)
        return base.values_of(self.tensor.detach())

    def refusal(self, what: str) -> VmapError:
        return VmapError(
            f"{user_site()}: {what} needs the values of an array of shape {self.shape}, which stands for "
            f"{self.level.size} examples at once inside of pb.vmap. Choose values with `pb.where` or `pb.cond`, "
            "repeat with `pb.scan` or `pb.while_loop`; to see the values, return the tensor and look at it outside."
        )

    def __bool__(self) -> bool:
        return bool(self._value("a choice (`if`, `while`, `and`, `bool`)"))

    def __float__(self) -> float:
        return float(self._value("`float`"))

    def __int__(self) -> int:
        return int(self._value("`int`"))

    def __complex__(self) -> complex:
        return complex(self._value("`complex`"))

    def __index__(self) -> int:
        return self._value("a range or a Python index").__index__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._value("turning a tensor into a NumPy array"), dtype, copy=copy)

    __hash__ = object.__hash__

    def shared(self, what: str) -> Any:
        """The raw array of the level below that all examples share."""
        self.check_open()
        if self.is_stacked:
            raise self.refusal(what)
        return resolved(self.tensor)._raw

    def item(self) -> Any:
        return self._value("a number (`item`, a format like `{x:.3f}`)").item()

    def tolist(self) -> Any:
        return self._value("`tolist`").tolist()

    def __getitem__(self, index: Any) -> Any:
        return _stacks().getitem(self, index)


def _stacks() -> Any:
    from .apply import STACKS

    return STACKS


def _binary(op: str) -> Any:
    return lambda self, other: getattr(_stacks(), op)(self, other)


def _reflected(op: str) -> Any:
    return lambda self, other: getattr(_stacks(), op)(other, self)


for _name, _op in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor",
}.items():  # fmt: skip
    setattr(Stack, f"__{_name}__", _binary(_op))
    setattr(Stack, f"__r{_name}__", _reflected(_op))
for _name, _op in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(Stack, f"__{_name}__", _binary(_op))
for _name, _op in {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}.items():
    setattr(Stack, f"__{_name}__", lambda self, _op=_op: getattr(_stacks(), _op)(self))


class StackBackend(Backend):
    """Arrays that stand for one example of many; they live where the tensors below them live."""

    name = "vmap"
    array_types = (Stack,)
    writable = False
    lives_anywhere = True

    @property
    def xp(self) -> Any:
        return _stacks()

    def devices(self) -> tuple[str, ...]:
        return ()

    def device_of(self, raw: Stack) -> str:
        return raw.tensor.device

    def dtype_of(self, raw: Stack) -> dtypes.DType:
        return raw.tensor.dtype

    def raw_dtype(self, dtype: dtypes.DType) -> Any:
        return dtype  # made the library's own where an array of it is at hand

    def asarray(self, data: Any, dtype: dtypes.DType | None, device: str, copy: bool | None) -> Any:
        if device != data.tensor.device:
            token = data.level.below()
            try:
                data = Stack(data.tensor.to_device(device), data.level, data.is_stacked)
            finally:
                modes.leave(token)
        return data if dtype is None or self.dtype_of(data) == dtype else self.xp.astype(data, dtype)

    def adopt(self, raw: Any, source: Backend, device: str, copy: bool | None) -> Any:
        return raw  # constants are lifted where they are used

    def to_numpy(self, raw: Stack) -> Any:
        return raw.__array__()

    def is_concrete(self, raw: Stack) -> bool:
        return not raw.is_stacked and raw.tensor._backend.is_concrete(raw.tensor._raw)

    def values_in(self, raw: Stack) -> Any:
        inner = resolved(raw.tensor)._raw
        return backends.of(inner).values_in(inner)

    def copy(self, raw: Stack) -> Stack:
        return raw  # never written

    def read_only(self, raw: Stack) -> Any:
        raise raw.refusal("the raw array (`data`)")

    def custom_kernel(self, operation: Any) -> Any:
        from .apply import kernel_of

        return kernel_of(operation)


STACK_BACKEND = StackBackend()
backends.register(STACK_BACKEND)
