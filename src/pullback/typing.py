"""Types to annotate with, and what type checkers know of functions that are made from functions.

Nothing here is needed when a program runs. `ArrayLike` is what most functions of `pullback` take in a tensor's place;
operations on single elements, which must be fast, take an `Operand`.

>>> import pullback as pb
>>> from pullback.typing import ArrayLike
>>> def half(x: ArrayLike) -> pb.Tensor:
...     return 0.5 * pb.asarray(x)
>>> half([1.0, 2.0])
tensor([0.5, 1. ])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from .tensors.tensor import Tensor

__all__ = [
    "Array", "ArrayLike", "Derivative", "HasForward", "NumPyFunction", "Operand", "SameArguments",
    "ValueAndDerivative",
]  # fmt: skip

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T", bound=Any)  # the bound lets a lambda do anything with its arguments
X = TypeVar("X", bound="Tensor | np.ndarray[Any, Any] | complex")  # with operators, for the same reason


class Array(Protocol):
    """An array of any library, or a tensor."""

    @property
    def shape(self) -> Any: ...


#: An array, a tensor or a number of Python's: what operations take. (`complex` stands for float, int and bool, too.)
Operand: TypeAlias = Array | complex
#: Any of these, or a (nested) list or tuple of them.
ArrayLike: TypeAlias = Operand | list[Any] | tuple[Any, ...]

if TYPE_CHECKING:
    OneArray: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic | complex  # not a tree of them


class HasForward(Protocol[P, R_co]):
    """A module: calling it is calling its `forward`."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class NumPyFunction(Protocol):
    """One of NumPy's functions like `np.sin`, whose many signatures are those for tensors, too."""

    @property
    def nin(self) -> int: ...

    @property
    def nout(self) -> int: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class SameArguments(Protocol[P, R_co]):
    """A function with the arguments of another one."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Derivative(Generic[T, P]):
    """A function with the arguments of another one, whose result is like the first of them: what `grad` gives.

    No protocol, so that other functions are never taken for one.
    """

    if TYPE_CHECKING:

        def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...


class ValueAndDerivative(Protocol[T, P, R_co]):
    """A function with the arguments of another one that gives its result, and one like the first of them."""

    def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, T]: ...


def __dir__() -> list[str]:
    return __all__
