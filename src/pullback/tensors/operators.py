"""Python's operators on tensors, and conversions to Python numbers."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar, cast

from numpy import asarray, ndarray, round as round_to

from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.base import TensorBase, make, python_values
from ..autodiff.fast import fast_operator, operate
from ..autodiff.tables import NUMPY_TABLE
from ..errors import DtypeError, ShapeError
from ..modes import NO_GRAD, current as mode, is_recording
from ..operations import OPERATIONS
from .printing import is_formatting

if TYPE_CHECKING:
    from ..typing import ArrayLike
    from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_UNTRACED = (None, NO_GRAD)  # modes in which an array has values and nobody wants to know of comparisons


class Arithmetic(TensorBase):
    """What has a gradient."""

    __slots__ = ()

    @fast_operator("add")
    def __add__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["add"], self, other)

    __radd__ = __add__  # the order does not matter, so nothing need be called in between

    @fast_operator("subtract")
    def __sub__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["subtract"], self, other)

    def __rsub__(self, other: Any, /) -> Tensor:
        return Arithmetic.__sub__(other, self)

    @fast_operator("multiply")
    def __mul__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["multiply"], self, other)

    __rmul__ = __mul__  # the order does not matter, so nothing need be called in between

    @fast_operator("divide")
    def __truediv__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["divide"], self, other)

    def __rtruediv__(self, other: Any, /) -> Tensor:
        return Arithmetic.__truediv__(other, self)

    @fast_operator("floor_divide")
    def __floordiv__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["floor_divide"], self, other)

    def __rfloordiv__(self, other: Any, /) -> Tensor:
        return Arithmetic.__floordiv__(other, self)

    @fast_operator("remainder")
    def __mod__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["remainder"], self, other)

    def __rmod__(self, other: Any, /) -> Tensor:
        return Arithmetic.__mod__(other, self)

    @fast_operator("pow")
    def __pow__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["pow"], self, other)

    def __rpow__(self, other: Any, /) -> Tensor:
        return Arithmetic.__pow__(other, self)

    @fast_operator("matmul")
    def __matmul__(self, other: ArrayLike) -> Tensor:
        return operate(OPERATIONS["matmul"], self, other)

    def __rmatmul__(self, other: Any, /) -> Tensor:
        return Arithmetic.__matmul__(other, self)

    @fast_operator("negative")
    def __neg__(self) -> Tensor:
        return apply(OPERATIONS["negative"], (self,))

    @fast_operator("positive")
    def __pos__(self) -> Tensor:
        return apply(OPERATIONS["positive"], (self,))

    @fast_operator("abs")
    def __abs__(self) -> Tensor:
        return apply(OPERATIONS["abs"], (self,))

    def __divmod__(self, other: ArrayLike, /) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Any, /) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def __round__(self, digits: int | None = None, /) -> Tensor:
        """The nearest numbers of `digits` decimals; even ones in the middle, as NumPy's."""
        return round_to(self, 0 if digits is None else digits)


def plain_operator(name: str) -> Callable[[F], F]:
    """Give the operator of an operation without a gradient the short way for NumPy arrays."""
    kernel = getattr(NUMPY_TABLE.xp, name)

    def short(method: F) -> F:
        @wraps(method)
        def function(self: Any, other: Any, /) -> Any:
            Tensor = base.Tensor
            if type(self) is Tensor and type(self._raw) is ndarray and mode() in _UNTRACED:
                a, kind = self._raw, type(other)
                b = other._raw if kind is Tensor else other
                if (kind is Tensor and type(b) is ndarray) or ((kind is float or kind is int) and a.dtype.kind != "V"):
                    try:
                        out = kernel(a, b)
                    except Exception:
                        return method(self, other)  # which says what is wrong
                    return make(out if type(out) is ndarray else asarray(out), None)
            return NotImplemented if other is None else method(self, other)

        return cast(F, function)

    return short


class Comparisons(TensorBase):
    """Comparisons and bits, which have none."""

    __slots__ = ()

    @plain_operator("equal")
    def __eq__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return operate(OPERATIONS["equal"], self, other)

    @plain_operator("not_equal")
    def __ne__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return operate(OPERATIONS["not_equal"], self, other)

    @plain_operator("less")
    def __lt__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["less"], self, other)

    @plain_operator("less_equal")
    def __le__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["less_equal"], self, other)

    @plain_operator("greater")
    def __gt__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["greater"], self, other)

    @plain_operator("greater_equal")
    def __ge__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["greater_equal"], self, other)

    @plain_operator("bitwise_and")
    def __and__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["bitwise_and"], self, other)

    def __rand__(self, other: Any, /) -> Tensor:
        return operate(OPERATIONS["bitwise_and"], other, self)

    @plain_operator("bitwise_or")
    def __or__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["bitwise_or"], self, other)

    def __ror__(self, other: Any, /) -> Tensor:
        return operate(OPERATIONS["bitwise_or"], other, self)

    @plain_operator("bitwise_xor")
    def __xor__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["bitwise_xor"], self, other)

    def __rxor__(self, other: Any, /) -> Tensor:
        return operate(OPERATIONS["bitwise_xor"], other, self)

    @plain_operator("bitwise_left_shift")
    def __lshift__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["bitwise_left_shift"], self, other)

    def __rlshift__(self, other: Any, /) -> Tensor:
        return operate(OPERATIONS["bitwise_left_shift"], other, self)

    @plain_operator("bitwise_right_shift")
    def __rshift__(self, other: ArrayLike, /) -> Tensor:
        return operate(OPERATIONS["bitwise_right_shift"], self, other)

    def __rrshift__(self, other: Any, /) -> Tensor:
        return operate(OPERATIONS["bitwise_right_shift"], other, self)

    def __invert__(self) -> Tensor:
        return apply(OPERATIONS["bitwise_invert"], (self,))


def _number(tensor: TensorBase, name: str) -> Any:
    """The one element as a Python number, which can carry no gradient."""
    if tensor._carries_derivative and is_recording():
        frame = sys._getframe(2)
        if not is_formatting(frame):  # a text has no gradient, as of `print(t)`: none is lost
            from .lost_gradients import refuse_conversion

            refuse_conversion(tensor, f"{name}()", frame)
    return _element(tensor, name)


def _element(tensor: TensorBase, name: str) -> Any:
    if tensor.size != 1:
        raise ShapeError(f"{name}: only a tensor with one element can be converted, this one has shape {tensor.shape}.")
    return python_values(tensor, f"__{name}__")


class PythonNumbers(TensorBase):
    """A tensor with one element as a number."""

    __slots__ = ()

    def __bool__(self) -> bool:
        # like a comparison it is flat almost everywhere, so no gradient is lost here
        if self.size != 1:
            raise ShapeError(
                f"bool: the truth of a tensor of shape {self.shape} is ambiguous. Write `pb.any(t)` or `pb.all(t)`."
            )
        return bool(_element(self, "bool"))

    def __int__(self) -> int:
        return int(_number(self, "int"))

    def __float__(self) -> float:
        return float(_number(self, "float"))

    def __complex__(self) -> complex:
        return complex(_number(self, "complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in ("int", "uint"):
            raise DtypeError(f"index: only an integer tensor can be an index, this one is {self.dtype.name}.")
        if self._raw.shape != ():
            raise DtypeError(f"index: only a 0-d tensor can be an index, this one has shape {self.shape}.")
        return int(_element(self, "index"))


class Container(TensorBase):
    """A tensor as a sequence of its parts, and its namespace."""

    __slots__ = ()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise DtypeError("len: a 0-d tensor has no length.")
        return self._raw.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise DtypeError("iter: a 0-d tensor cannot be iterated over.")
        tensor: Any = self
        return (tensor[i] for i in range(self._raw.shape[0]))

    def __contains__(self, value: Any, /) -> bool:
        return bool(apply(OPERATIONS["any"], (apply(OPERATIONS["equal"], (self, value)),), (None, False)))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `pullback`, which is an array API namespace."""
        namespace = sys.modules[__name__.partition(".")[0]]
        if api_version not in _API_VERSIONS:
            raise ValueError(f"array API version {api_version!r} is not supported; this is {_API_VERSIONS[-1]!r}.")
        return namespace
