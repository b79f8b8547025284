"""The tensor: a raw array, and the node that made it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends, modes
from ..autodiff.graph import GradCell, Leaf, Node
from ..dtypes import BY_NUMPY
from ..errors import DtypeError, GradientError, ShapeError

if TYPE_CHECKING:
    from ..dtypes import DType
    from .declarations import Attached as _Attached
else:
    _Attached = object

_ndarray = np.ndarray


class Tensor(_Attached):
    """An array with value semantics that can be differentiated. Make one with `pullback.tensor` or `asarray`.

    Clones and views share memory with what they were made from; a write copies first if anybody
    else still needs the old values, so no tensor ever changes through another one.
    """

    __slots__ = ("_raw", "_node", "_cell", "_origin", "__weakref__")

    _raw: Any  # a backend's raw array; its reference count tells whether anybody else holds it
    _node: Node | None  # what made it; a Leaf for a variable; None if it needs no gradient
    _cell: GradCell  # only where a gradient was put on a tensor that is no variable
    _origin: Any  # only under a checkpointing strategy: the step that made it; None after a write

    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(self._raw.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._raw.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self._raw.shape:
            size *= n
        return size

    @property
    def dtype(self) -> DType:
        """The type of the elements; compares equal to NumPy's, PyTorch's and JAX's."""
        raw = self._raw
        found = BY_NUMPY.get(raw.dtype) if type(raw) is _ndarray else None
        return self._backend.dtype_of(raw) if found is None else found

    @property
    def device(self) -> str:
        """The name of the device that holds the elements, for example "numpy"."""
        return self._backend.device_of(self._raw)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def _backend(self) -> Any:
        return backends.of(self._raw)

    # -- gradients ---------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows through this tensor; settable on a tensor that no operation made."""
        return resolved(self)._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.set_requires_grad(flag)

    def set_requires_grad(self, flag: bool) -> Tensor:
        """Turn tracking of a variable on or off; its gradient so far stays."""
        tensor = resolved(self)
        node = tensor._node
        if node is not None and not isinstance(node, Leaf):
            if flag:
                return self
            raise GradientError(
                "requires_grad can only be turned off on a variable; this tensor is the result of "
                f"`{node.recipe.operation.name}`. Use `.detach()`."
            )
        if flag and node is None:
            if self.dtype.kind not in ("float", "complex"):
                raise DtypeError(
                    f"only floating-point and complex tensors can require a gradient, this one is {self.dtype.name}. "
                    f"Convert it first, for example with `.astype(pb.float32)`."
                )
            tensor._node = Leaf(self.shape, self._raw.dtype, self.grad_cell)
            tensor._origin = None
        elif not flag and node is not None:
            tensor._cell = node.cell
            tensor._node = None
        return self

    @property
    def _carries_derivative(self) -> bool:
        """Whether turning this tensor into plain numbers would lose a gradient (or, on a dual, a tangent)."""
        return self.requires_grad

    @property
    def is_leaf(self) -> bool:
        """Whether no operation made this tensor: it is a variable, or needs no gradient."""
        node = resolved(self)._node
        return node is None or isinstance(node, Leaf)

    @property
    def grad_cell(self) -> GradCell:
        """The cell that holds the gradient, shared by the clones of a variable."""
        tensor = resolved(self)
        if isinstance(tensor._node, Leaf):
            return tensor._node.cell
        try:
            return tensor._cell
        except AttributeError:
            tensor._cell = GradCell()
            return tensor._cell

    @property
    def grad(self) -> Tensor | None:
        """The gradient added up by `backward`, or None."""
        mode = modes.current()
        trace = None if mode is None else mode.tracing
        tensor = self if trace is None else trace.resolve(self)
        node = tensor._node
        cell = node.cell if type(node) is Leaf else getattr(tensor, "_cell", None)
        return None if cell is None else cell._value if trace is None else trace.cell(cell)._value

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            value = self._fitting_gradient("grad", value)
        self.grad_cell.value = value

    def _fitting_gradient(self, caller: str, gradient: Any) -> Tensor:
        """`gradient` as an untracked tensor, after checking that it fits this tensor."""
        from ..functions.creation import asarray

        gradient = asarray(gradient)
        if gradient.shape != self.shape:
            raise ShapeError(f"{caller}: gradient has shape {gradient.shape}, tensor has shape {self.shape}.")
        if gradient.dtype != self.dtype:
            raise DtypeError(f"{caller}: gradient is {gradient.dtype.name}, tensor is {self.dtype.name}.")
        from ..autodiff.guard import note_size

        note_size(gradient._raw)
        return gradient.detach()

    def detach(self) -> Tensor:
        """The same values without gradient; shares memory until one of the two is written."""
        return make(resolved(self)._raw, None)

    def clone(self) -> Tensor:
        """The same variable or value in O(1): memory and gradient are shared until one of the two is written.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (w.clone() * 3).sum().backward()
        >>> w.grad
        tensor([3., 3.])
        """
        tensor = resolved(self)
        copy = make(tensor._raw, tensor._node)
        if isinstance(tensor._node, Leaf):
            clones = tensor._node.clones
            if len(clones) > 8 and len(clones) & (len(clones) - 1) == 0:  # now and then forget the dead ones
                clones[:] = [reference for reference in clones if reference() is not None]
            clones.append(weakref.ref(copy))
        return copy

    def _apply(self, operation: Any, inputs: Any, static: Any) -> Any:
        """How a subclass takes part in an operation (forward-mode duals)."""
        raise NotImplementedError


def resolved(tensor: Any) -> Any:
    """The tensor in which to look for the array and the node of `tensor`: itself, unless a function is being traced.

    A trace leaves the tensors that it finds outside as they are, and has a stand-in for each (see `Trace.resolve`).
    """
    mode = modes.current()
    return tensor if mode is None or mode.tracing is None else mode.tracing.resolve(tensor)


def created(raw: Any) -> Tensor:
    """A tensor of a raw array that was made just now; while a function is traced, a constant of its program."""
    trace = modes.tracing()
    return make(raw if trace is None else trace.constant(raw), None)


def make(raw: Any, node: Node | None) -> Tensor:
    """A tensor of a raw array, without any check."""
    tensor = Tensor()
    tensor._raw = raw
    tensor._node = node
    return tensor
