"""Python's operators on tensors, and conversions to Python numbers."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator

from numpy import asarray, ndarray, round as round_to

from ..autodiff.apply import apply
from ..autodiff.fast import function_for, operate
from ..autodiff.tables import NUMPY_TABLE
from ..errors import DtypeError, GradientError, ShapeError
from ..modes import NO_GRAD, current as mode
from ..operations import OPERATIONS
from .conversion import refuse_tracked
from .core import Tensor, make, resolved
from .printing import is_formatting

_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
Operator = Callable[[Tensor, Any], Any]
_UNTRACED = (None, NO_GRAD)  # modes in which an array has values and nobody wants to know of comparisons


def _plain(name: str) -> Operator:
    """The operator of an operation without a gradient, with a short way for NumPy arrays."""
    operation = OPERATIONS[name]
    kernel = getattr(NUMPY_TABLE.xp, name)

    def method(self: Tensor, other: Any, /) -> Any:
        if type(self) is Tensor and type(self._raw) is ndarray and mode() in _UNTRACED:
            a, kind = self._raw, type(other)
            b = other._raw if kind is Tensor else other
            if (kind is Tensor and type(b) is ndarray) or ((kind is float or kind is int) and a.dtype.kind != "V"):
                try:
                    out = kernel(a, b)
                except Exception:
                    return operate(operation, self, other)  # which says what is wrong
                return make(out if type(out) is ndarray else asarray(out), None)
        return NotImplemented if other is None else operate(operation, self, other)

    return method


def _reflected(operator: Operator) -> Operator:
    def method(self: Tensor, other: Any, /) -> Any:
        return operator(other, self)

    return method


def _install(name: str, function: Any) -> None:
    function.__name__ = name
    function.__qualname__ = f"Tensor.{name}"
    function.__module__ = __name__
    setattr(Tensor, name, function)


for _symbol, _operation in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow",
}.items():  # fmt: skip
    _install(f"__{_symbol}__", function_for(_operation, operator=True))
    _install(f"__r{_symbol}__", _reflected(getattr(Tensor, f"__{_symbol}__")))
for _symbol in ("add", "mul"):  # the order does not matter, so nothing need be called in between
    setattr(Tensor, f"__r{_symbol}__", getattr(Tensor, f"__{_symbol}__"))

for _symbol, _operation in {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}.items():  # fmt: skip
    _install(f"__{_symbol}__", _plain(_operation))
    _install(f"__r{_symbol}__", _reflected(getattr(Tensor, f"__{_symbol}__")))

for _symbol, _operation in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    _install(f"__{_symbol}__", _plain(_operation))

for _symbol, _operation in {"neg": "negative", "pos": "positive", "abs": "abs"}.items():
    _install(f"__{_symbol}__", function_for(_operation))


def _invert(self: Tensor, /) -> Tensor:
    return apply(OPERATIONS["bitwise_invert"], (self,))


_install("__invert__", _invert)


def _divmod(self: Tensor, other: Any, /) -> Any:
    return self // other, self % other


def _rdivmod(self: Tensor, other: Any, /) -> Any:
    return other // self, other % self


def _round(self: Tensor, digits: int | None = None, /) -> Tensor:
    """The nearest numbers of `digits` decimals; even ones in the middle, as NumPy's."""
    return round_to(self, 0 if digits is None else digits)


for _symbol, _method in {"divmod": _divmod, "rdivmod": _rdivmod, "round": _round}.items():
    _install(f"__{_symbol}__", _method)


# -- conversions ---------------------------------------------------------------------------------


def _number(self: Tensor, name: str) -> Any:
    """The one element as a Python number, which can carry no gradient."""
    try:
        refuse_tracked(self, f"{name}()", "use functions of NumPy or Pullback, not of `math`")
    except GradientError:
        if not is_formatting(sys._getframe(2)):  # a text has no gradient, as of `print(t)`: none is lost
            raise
    return _element(self, name)


def _element(self: Tensor, name: str) -> Any:
    if self.size != 1:
        raise ShapeError(f"{name}: only a tensor with one element can be converted, this one has shape {self.shape}.")
    tensor = resolved(self)
    if not tensor._backend.is_concrete(tensor._raw):
        return getattr(tensor._raw, f"__{name}__")()  # a symbol may say what it is not good for
    return tensor._backend.to_numpy(tensor._raw).item()


def _bool(self: Tensor, /) -> bool:
    # like a comparison it is flat almost everywhere, so no gradient is lost here
    if self.size != 1:
        raise ShapeError(
            f"bool: the truth of a tensor of shape {self.shape} is ambiguous. Write `pb.any(t)` or `pb.all(t)`."
        )
    return bool(_element(self, "bool"))


def _int(self: Tensor, /) -> int:
    return int(_number(self, "int"))


def _float(self: Tensor, /) -> float:
    return float(_number(self, "float"))


def _complex(self: Tensor, /) -> complex:
    return complex(_number(self, "complex"))


def _index(self: Tensor, /) -> int:
    if self.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"index: only an integer tensor can be an index, this one is {self.dtype.name}.")
    if self._raw.shape != ():
        raise DtypeError(f"index: only a 0-d tensor can be an index, this one has shape {self.shape}.")
    return int(_element(self, "index"))


# -- containers and namespaces ---------------------------------------------------------------------


def _len(self: Tensor, /) -> int:
    if self.ndim == 0:
        raise DtypeError("len: a 0-d tensor has no length.")
    return self._raw.shape[0]


def _iter(self: Tensor, /) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise DtypeError("iter: a 0-d tensor cannot be iterated over.")
    return (self[i] for i in range(self._raw.shape[0]))


def _contains(self: Tensor, value: Any, /) -> bool:
    return bool(apply(OPERATIONS["any"], (apply(OPERATIONS["equal"], (self, value)),), (None, False)))


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module `pullback`, which is an array API namespace."""
    namespace = sys.modules[__name__.partition(".")[0]]
    if api_version not in _API_VERSIONS:
        raise ValueError(f"array API version {api_version!r} is not supported; this is {_API_VERSIONS[-1]!r}.")
    return namespace


_METHODS: dict[str, Any] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "complex": _complex,
    "index": _index,
    "len": _len,
    "iter": _iter,
    "contains": _contains,
    "array_namespace": _array_namespace,
}
for _name, _method in _METHODS.items():
    _install(f"__{_name}__", _method)
