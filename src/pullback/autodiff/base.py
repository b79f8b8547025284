"""What every tensor is: a raw array, and the node that made it.

The engine below knows no more of tensors. The class that people use, `Tensor`, is put together from this one and its
families of methods in `tensors/tensor.py`, and made known here as the class of what operations give.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends, modes
from ..dtypes import BY_NUMPY
from ..errors import GradientError
from . import pending
from .graph import GradCell, Leaf, Node

if TYPE_CHECKING:
    from ..dtypes import DType
    from ..tensors.tensor import Tensor

PYTHON_SCALARS = frozenset((float, int, bool, complex))
SCALAR_OR_ABSENT = PYTHON_SCALARS | {type(None)}

_ndarray = np.ndarray


class TensorBase:
    """A raw array and a node, and what they are."""

    __slots__ = ("_raw", "_node", "_cell", "_origin", "__weakref__")

    _raw: Any  # a backend's raw array; its reference count tells whether anybody else holds it
    _node: Node | None  # what made it; a Leaf for a variable; None if it needs no gradient
    _cell: GradCell  # only where a gradient was put on a tensor that is no variable
    _origin: Any  # only under a checkpointing strategy: the step that made it; None after a write

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
        return prod(self._raw.shape)

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

    # -- its place in the graph --------------------------------------------------------------------

    @property
    def is_leaf(self) -> bool:
        """Whether no operation made this tensor: it is a variable, or needs no gradient."""
        node = resolved(self)._node
        return node is None or isinstance(node, Leaf)

    @property
    def _carries_derivative(self) -> bool:
        """Whether turning this tensor into plain numbers would lose a gradient (or, on a dual, a tangent)."""
        return resolved(self)._node is not None

    def _apply(self, operation: Any, inputs: Any, static: Any) -> Any:
        """How a subclass takes part in an operation (forward-mode duals)."""
        raise NotImplementedError


if not TYPE_CHECKING:
    Tensor = TensorBase  # until `tensors/tensor.py` has put the complete class together
DualTensor: Any = None  # and that of tensors with a tangent


def complete(tensor_class: Any, dual_class: Any) -> None:
    """Say what the classes of tensors are: operations make these from now on."""
    globals().update(Tensor=tensor_class, DualTensor=dual_class)


def resolved(tensor: Any) -> Any:
    """The tensor in which to look for the array and the node of `tensor`: itself, unless a function is being traced.

    A trace leaves the tensors that it finds outside as they are, and has a stand-in for each (see `Trace.resolve`).
    """
    mode = modes.current()
    return tensor if mode is None or mode.tracing is None else mode.tracing.resolve(tensor)


def created(raw: Any) -> Tensor:
    """A tensor of a raw array that was made just now; while a function is traced, a constant of its program."""
    mode = modes.current()
    if mode is None:
        return make(raw, None)
    tensor = make(raw if mode.tracing is None else mode.tracing.constant(raw), None)
    return tensor if mode.mapping is None else mode.mapping.lift(tensor)


def make(raw: Any, node: Node | None) -> Tensor:
    """A tensor of a raw array, without any check."""
    tensor = Tensor()
    tensor._raw = raw
    tensor._node = node
    return tensor


def refuse_tracked(tensor: TensorBase, what: str, instead: str = "") -> None:
    """A gradient is never lost silently: exporting a tensor that needs one is an error, which names what keeps it."""
    if (tensor._carries_derivative) and modes.is_recording():
        raise GradientError(
            f"{what}: this tensor of shape {tensor.shape} requires a gradient, which would be lost. "
            + (f"To keep it, {instead}. " if instead else "")
            + (
                "For its value as a constant, without a gradient, write `t.detach()` or `t.item()`."
                if tensor.size == 1
                else "For its values as constants, without a gradient (to plot them, say), write `t.detach()`."
            )
        )


def refuse_result(tensor: TensorBase, what: str) -> None:
    """The same of what was computed; the values of a variable may be looked at."""
    if isinstance(tensor, DualTensor) or not tensor.is_leaf:
        refuse_tracked(tensor, what)


def python_values(tensor: Any, method: str) -> Any:
    """The values as Python numbers: what `method` ("item", "tolist") of NumPy's arrays gives.

    Arrays without values have a method of this name too, which may say why there are none.
    """
    raw = resolved(tensor)._raw
    if type(raw) is not _ndarray:
        backend = backends.of(raw)
        if not backend.is_concrete(raw):
            return getattr(raw, method)()
        if pending.checks:
            pending.look()
        raw = backend.to_numpy(raw)
    if raw.dtype.kind == "V":  # bfloat16, whose numbers are not Python's
        raw = raw.astype(np.float32)
    return getattr(raw, method if method in ("item", "tolist") else "item")()


def values_of(tensor: Any) -> Any:
    """The values as a NumPy array, which may share memory with the tensor and must not be written.

    While a function is traced, only small tensors from outside have values (see `Trace.read_values`).
    """
    tensor = resolved(tensor)
    if pending.checks and type(tensor._raw) is not _ndarray:
        pending.look()
    return tensor._backend.to_numpy(tensor._raw)
