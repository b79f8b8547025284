"""The tensor's side of gradients: tracking, walking, accumulating, scaling, hooks, operations of one's own."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, Callable, Self

from .. import modes
from ..autodiff.base import TensorBase, make, resolved
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import asarray
from ..autodiff.custom import BackwardOp, attach, operation_behind
from ..autodiff.gradients import accumulate
from ..autodiff.graph import GradCell, Leaf
from ..autodiff.guard import note_size
from ..autodiff.hooks import HookHandle, register
from ..errors import DeviceError, DtypeError, GradientError, ShapeError

if TYPE_CHECKING:
    from .tensor import Tensor


class GradientMethods(TensorBase):
    """Gradients."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows through this tensor; settable on a tensor that no operation made."""
        return resolved(self)._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.set_requires_grad(flag)

    def set_requires_grad(self, flag: bool) -> Self:
        """Turn tracking of a variable on or off; its gradient so far stays.

        Parameters
        ----------
        flag : bool
            Whether `backward` shall compute this tensor's gradient from now on.

        Returns
        -------
        Tensor
            The tensor itself.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.zeros(2).set_requires_grad(True)
        tensor([0., 0.], requires_grad=True)
        """
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
        gradient = asarray(gradient)
        if gradient.shape != self.shape:
            raise ShapeError(f"{caller}: gradient has shape {gradient.shape}, tensor has shape {self.shape}.")
        if gradient.dtype != self.dtype:
            raise DtypeError(f"{caller}: gradient is {gradient.dtype.name}, tensor is {self.dtype.name}.")
        if type(gradient._raw) is not type(self._raw) and gradient.device != self.device:
            raise DeviceError(f"{caller}: gradient is on {gradient.device!r}, tensor on {self.device!r}.")
        note_size(gradient._raw)
        return gradient.detach()

    def detach(self) -> Tensor:
        """The same values without gradient; shares memory until one of the two is written.

        Returns
        -------
        Tensor
            A constant.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (w * 2).detach()
        tensor([2., 4.])
        """
        raw = resolved(self)._raw
        return make(raw.detached() if type(raw) is Stack else raw, None)

    def clone(self) -> Tensor:
        """The same variable or value in O(1): memory and gradient are shared until one of the two is written.

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (w.clone() * 3).sum().backward()
        >>> w.grad
        tensor([3., 3.])
        """
        tensor = resolved(self)
        mapping = modes.mapping()
        if mapping is not None:
            tensor = mapping.lift(tensor)  # from now on every example has its own
        copy = make(tensor._raw, tensor._node)
        if isinstance(tensor._node, Leaf):
            clones = tensor._node.clones
            if len(clones) > 8 and len(clones) & (len(clones) - 1) == 0:  # now and then forget the dead ones
                clones[:] = [reference for reference in clones if reference() is not None]
            clones.append(weakref.ref(copy))
        return copy

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Compute the gradients of this tensor and add them into `.grad` of the variables it depends on.

        Gradients add up over several calls until they are set to zero (`optimizer.zero_grad()`). `pb.backward` returns
        them instead.

        Parameters
        ----------
        gradient : array, optional
            The cotangent to start from, in this tensor's shape. A tensor with one element needs none.
        retain_graph : bool
            Whether to keep what the walk needs, so that the graph can be walked again.

        Raises
        ------
        GradientError
            If it depends on no variable.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> w.grad
        tensor([2., 4.])
        """
        accumulate(self, gradient, retain_graph)

    def accumulate_grad(self, gradient: Any) -> None:
        """Add `gradient`, which must have this tensor's shape and dtype, to `.grad`.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> w.accumulate_grad(pb.tensor([0.5, 0.5]))
        >>> w.grad
        tensor([0.5, 0.5])
        """
        gradient = self._fitting_gradient("accumulate_grad", gradient)
        cell = self.grad_cell
        if cell.value is None:
            cell.value = gradient
        else:
            cell.value += gradient

    def scale_grad(self, factor: float) -> None:
        """Multiply `.grad` by the finite number `factor`, in place unless somebody else holds its memory.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> w.sum().backward()
        >>> w.scale_grad(0.5)
        >>> w.grad
        tensor([0.5, 0.5])
        """
        if not math.isfinite(factor):
            raise ValueError(f"scale_grad: the factor must be finite, got {factor!r}.")
        cell = self.grad_cell
        if cell.value is not None:
            cell.value *= float(factor)

    def zero_grad(self) -> None:
        """Set `.grad` to zeros, keeping its memory; a tensor without gradient stays without.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> w.sum().backward()
        >>> w.zero_grad()
        >>> w.grad
        tensor([0., 0.])
        """
        cell = self.grad_cell
        if cell.value is not None:
            cell.value[...] = 0.0

    def register_hook(self, hook: Callable[[Tensor], Any]) -> HookHandle:
        """Call `hook` with this tensor's gradient in every walk; what it returns, if anything, replaces the gradient.

        Parameters
        ----------
        hook : callable
            It takes the gradient, a tensor, and returns another one or None.

        Returns
        -------
        HookHandle
            `handle.remove()` takes the hook away.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> y = w * 3
        >>> handle = y.register_hook(lambda g: 10 * g)
        >>> y.sum().backward()
        >>> w.grad
        tensor([30., 30.])
        >>> handle.remove()
        """
        node = resolved(self)._node
        if node is None:
            raise GradientError("register_hook: this tensor does not require a gradient, so no gradient reaches it.")
        return register(node, hook)

    def set_backward_op(self, op: BackwardOp) -> None:
        """Make this tensor the result of `op`, whose `backward` gives its inputs' gradients; see `pb.BackwardOp`."""
        attach(self, op)

    @property
    def backward_op(self) -> BackwardOp | None:
        """The operation whose result this tensor is, as a `BackwardOp`; None for variables."""
        return operation_behind(self)
