"""The tensor: a raw array, and the node that made it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .. import backends, modes
from ..autodiff.graph import GradCell, Leaf, Node
from ..errors import DtypeError, GradientError, ShapeError

if TYPE_CHECKING:
    from ..dtypes import DType
    from .declarations import Attached as _Attached
else:
    _Attached = object


class Tensor(_Attached):
    """An array with value semantics that can be differentiated. Make one with `pullback.tensor` or `asarray`.

    Clones and views share memory with what they were made from; a write copies first if anybody
    else still needs the old values, so no tensor ever changes through another one.
    """

    __slots__ = ("_data", "_node", "_cell", "_origin", "__weakref__")

    _data: Any  # a backend's raw array; its reference count tells whether anybody else holds it
    _node: Node | None  # what made it; a Leaf for a variable; None if it needs no gradient
    _cell: GradCell  # only where a gradient was put on a tensor that is no variable
    _origin: Any  # only under a checkpointing strategy: the step that made it; None after a write

    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._data.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self._data.shape:
            size *= n
        return size

    @property
    def dtype(self) -> DType:
        """The type of the elements; compares equal to NumPy's, PyTorch's and JAX's."""
        return self._backend.dtype_of(self._data)

    @property
    def device(self) -> str:
        """The name of the device that holds the elements, for example "numpy"."""
        return self._backend.device_of(self._data)

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
        return backends.of(self._data)

    # -- gradients ---------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows through this tensor; settable on a tensor that no operation made."""
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.set_requires_grad(flag)

    def set_requires_grad(self, flag: bool) -> Tensor:
        """Turn tracking of a variable on or off; its gradient so far stays."""
        node = self._node
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
            self._node = Leaf(self.shape, self._data.dtype, self.grad_cell)
            self._origin = None
        elif not flag and node is not None:
            self._cell = node.cell
            self._node = None
        return self

    @property
    def _carries_derivative(self) -> bool:
        """Whether turning this tensor into plain numbers would lose a gradient (or, on a dual, a tangent)."""
        return self._node is not None

    @property
    def is_leaf(self) -> bool:
        """Whether no operation made this tensor: it is a variable, or needs no gradient."""
        return self._node is None or isinstance(self._node, Leaf)

    @property
    def grad_cell(self) -> GradCell:
        """The cell that holds the gradient, shared by the clones of a variable."""
        if isinstance(self._node, Leaf):
            return self._node.cell
        try:
            return self._cell
        except AttributeError:
            self._cell = GradCell()
            return self._cell

    @property
    def grad(self) -> Tensor | None:
        """The gradient added up by `backward`, or None."""
        cell = self._node.cell if isinstance(self._node, Leaf) else getattr(self, "_cell", None)
        if cell is None:
            return None
        note_cell(cell)
        return cell.value

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            value = self._fitting_gradient("grad", value)
        note_cell(self.grad_cell)
        self.grad_cell.value = value

    def _fitting_gradient(self, caller: str, gradient: Any) -> Tensor:
        """`gradient` as an untracked tensor, after checking that it fits this tensor."""
        from ..functions.creation import asarray

        gradient = asarray(gradient)
        if gradient.shape != self.shape:
            raise ShapeError(f"{caller}: gradient has shape {gradient.shape}, tensor has shape {self.shape}.")
        if gradient.dtype != self.dtype:
            raise DtypeError(f"{caller}: gradient is {gradient.dtype.name}, tensor is {self.dtype.name}.")
        return gradient.detach()

    def detach(self) -> Tensor:
        """The same values without gradient; shares memory until one of the two is written."""
        trace = modes.tracing()
        if trace is not None:
            trace.lift(self)
        return make(self._data, None)

    def clone(self) -> Tensor:
        """The same variable or value in O(1): memory and gradient are shared until one of the two is written.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (w.clone() * 3).sum().backward()
        >>> w.grad
        tensor([3., 3.])
        """
        trace = modes.tracing()
        if trace is not None:
            trace.lift(self)
        copy = make(self._data, self._node)
        if isinstance(self._node, Leaf):
            clones = self._node.clones
            if len(clones) > 8 and len(clones) & (len(clones) - 1) == 0:  # now and then forget the dead ones
                clones[:] = [reference for reference in clones if reference() is not None]
            clones.append(weakref.ref(copy))
        return copy

    def _apply(self, operation: Any, inputs: Any, static: Any) -> Any:
        """How a subclass takes part in an operation (forward-mode duals)."""
        raise NotImplementedError


def note_cell(cell: GradCell) -> None:
    """Tell the trace that is running, if any, that the gradient in `cell` is looked at or about to change."""
    trace = modes.tracing()
    if trace is not None:
        trace.note_cell(cell)


def make(raw: Any, node: Node | None) -> Tensor:
    """A tensor of a raw array, without any check."""
    tensor = Tensor()
    tensor._data = raw
    tensor._node = node
    return tensor
