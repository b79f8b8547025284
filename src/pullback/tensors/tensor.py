"""The tensor: an array with a gradient, and everything that one can do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autodiff.base import complete
from ..autodiff.forward import Dual, dual
from ..pytorch_names import present, tell_of_missing
from .conversion import Conversions
from .gradient import GradientMethods
from .methods import (
    ComparisonMethods,
    ElementwiseMethods,
    IndexMethods,
    LinearMethods,
    ReductionMethods,
    ShapeMethods,
    SpecialMethods,
)
from .numpy_protocols import NumpyProtocols
from .operators import Arithmetic, Comparisons, Container, PythonNumbers
from .printing import Printing
from .writing import Writing


class Tensor(
    Arithmetic,
    Comparisons,
    Writing,
    Printing,
    Conversions,
    GradientMethods,
    ElementwiseMethods,
    ComparisonMethods,
    SpecialMethods,
    ReductionMethods,
    ShapeMethods,
    LinearMethods,
    IndexMethods,
    Container,
    PythonNumbers,
    NumpyProtocols,
):
    """An array with value semantics that can be differentiated. Make one with `pullback.tensor` or `asarray`.

    Operators and NumPy's functions work on it, and the functions of `pullback` are methods too: `x.sum(axis=0)` is
    `pb.sum(x, axis=0)`. Clones and views share memory with what they were made from; a write copies first if anybody
    else still needs the old values, so no tensor ever changes through another one.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (w**2).sum()
    >>> loss.backward()
    >>> w.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    if TYPE_CHECKING:  # which know a class with `__eq__` to have none, and its subclasses too

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__

    def __dir__(self) -> list[str]:
        return present(self, super().__dir__())

    def dequantize(self) -> Tensor:
        """A floating-point tensor as it is; a quantized one with the values that it stands for.

        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0]).dequantize()
        tensor([1., 2.])
        """
        return self


class DualTensor(Dual, Tensor):
    """A tensor that carries a tangent, inside forward-mode derivatives."""

    __slots__ = ()

    def __repr__(self) -> str:
        primal, tangent = repr(self.primal), repr(self.tangent)
        if "\n" in primal + tangent or len(primal + tangent) > 80:
            return f"dual(\n{primal},\n{tangent},\nlevel={self.level})"
        return f"dual({primal}, {tangent}, level={self.level})"

    __str__ = __repr__

    def _moved(self, device: str, copy: bool | None) -> Tensor:
        primal, tangent = self.primal._moved(device, copy), self.tangent._moved(device, copy)
        return dual(primal, tangent, self.level)


complete(Tensor, DualTensor)
tell_of_missing(Tensor)
