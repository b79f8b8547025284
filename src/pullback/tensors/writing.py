"""Writing in place, always right: a write copies first if anybody else still needs the old values.

Whether anybody does is read off the reference counts of the raw arrays (see `Backend.is_exclusive`):
clones, views, exports and the graph all hold the raw array itself or a view of it.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from .. import backends, modes
from ..autodiff import base
from ..autodiff.apply import apply, as_operand, kept_arrays, list_on_tapes, new_node, record, without_list
from ..autodiff.base import PYTHON_SCALARS, TensorBase, resolved
from ..autodiff.engine import IDENTITY
from ..autodiff.forward import adopt
from ..autodiff.graph import GradCell, Leaf
from ..autodiff.tables import NUMPY_TABLE, TENSORS
from ..errors import DtypeError, GradientError, ShapeError
from ..functions.indexing import canonical_index
from ..operations import OPERATIONS, Operation

if TYPE_CHECKING:
    from ..typing import ArrayLike
    from .tensor import Tensor

_ndarray = np.ndarray
_is_exclusive = backends.NUMPY.is_exclusive


def is_copy_of_variable(tensor: Any, recording: bool) -> bool:
    """Whether a recorded write is to a clone of a variable. To the variable itself it is refused."""
    leaf = tensor._node
    if not recording or not isinstance(leaf, Leaf):
        return False
    if any(reference() is tensor for reference in leaf.clones):
        return True
    raise GradientError(
        "writing in place to a variable that requires a gradient. To update it, write inside "
        "`with pb.no_grad():`; to go on with a changed copy of it, write to `u = w.clone()`."
    )


@contextmanager
def as_value(tensor: Any) -> Iterator[None]:
    """Have a clone of a variable go on as a value of its own, made from the variable; not if what is inside fails."""
    leaf: Any = tensor._node
    tensor._node = new_node(IDENTITY, (leaf,), ())
    try:
        yield
    except BaseException:
        tensor._node = leaf
        raise
    leaf.clones = [reference for reference in leaf.clones if reference() is not tensor]


def separate(tensor: Any) -> None:
    """Make a variable that has changed independent of its clones: they get a leaf of their own, or it if it is one."""
    leaf = tensor._node
    if not isinstance(leaf, Leaf) or not leaf.clones:
        return
    alive = [clone for reference in leaf.clones if (clone := reference()) is not None and clone._node is leaf]
    is_clone = any(clone is tensor for clone in alive)
    leaving = [tensor] if is_clone else alive
    if leaving:
        cell = GradCell()
        cell.value = None if leaf.cell.value is None else leaf.cell.value.clone()
        new_leaf = Leaf(leaf.shape, leaf.dtype, cell)
        for clone in leaving:  # several of them stay one variable
            clone._node = new_leaf
        new_leaf.clones = [weakref.ref(clone) for clone in leaving[1:]]
    leaf.clones = [reference for reference in leaf.clones if is_clone and reference() is not tensor]


def _is_replayed(mode: modes.Mode | None) -> bool:
    """Whether a checkpointing strategy wants to know of operations, which then run on arrays that stay as they are."""
    return mode is not None and mode.checkpointing is not None and mode.tracing is None


def _lay_out(result: Tensor, like: Any) -> None:
    """Give what a strategy had computed elsewhere the layout that writing in place would have left.

    Sums add up in the order of memory: without this a strategy would change their last digit.
    """
    if result._raw.strides != like.strides:
        raw = np.empty_like(like)
        raw[...] = result._raw
        result._raw = raw
        result._origin = None  # which would make it in the other layout


def _nothing_to_record(x: Tensor, y: Tensor) -> bool:
    """Whether writing to `x` needs no look at the graph: neither is tracked, or `x` is a variable under `no_grad`."""
    node = x._node
    if modes.current() is modes.NO_GRAD:
        return node is None or (type(node) is Leaf and not node._clones)
    return node is None and y._node is None and modes.current() is None


def _check_fits(operation: Operation, tensor: Any, result: Tensor) -> None:
    if result.shape != tensor.shape:
        raise ShapeError(
            f"in-place {operation.name}: the result has shape {result.shape}, the tensor has shape {tensor.shape}."
        )
    if result.dtype != tensor.dtype:
        raise DtypeError(
            f"in-place {operation.name}: the result is {result.dtype.name}, the tensor is {tensor.dtype.name}. "
            "Write it as `x = x ...`, or convert the other operand first."
        )


def _write(tensor: Any, name: str, other: Any) -> bool:
    """Have a library compute into an untracked tensor's own array; False, with nothing changed, if it does not."""
    backend = tensor._backend
    return (
        backend.lists is not None and backend.is_exclusive(tensor, "_raw") and backend.write(name, tensor._raw, other)
    )


def in_place(name: str) -> Callable[[Any, ArrayLike], Tensor]:
    """The in-place operator of an operation with two inputs."""
    operation = OPERATIONS[name]
    kernel = getattr(NUMPY_TABLE.xp, operation.name)
    is_ufunc = isinstance(kernel, np.ufunc)

    def method(self: Any, other: Any) -> Any:
        if is_ufunc and type(other) is base.Tensor and type(self) is base.Tensor and _nothing_to_record(self, other):
            # the short way for what an optimizer does: variables and their gradients, written in place
            if type(self._raw) is _ndarray and type(other._raw) is _ndarray and _is_exclusive(self, "_raw"):
                if _compute_into(self._raw, other._raw):
                    self._origin = None
                    return self
        mode = modes.current()
        if mode is not None and mode.tracing is not None and (stand_in := resolved(self)) is not self:
            return self if method(stand_in, other) is stand_in else NotImplemented
        recording = mode is None or mode.recording
        if is_copy_of_variable(self, recording):
            with as_value(self):
                return method(self, other)
        if type(other) is not base.Tensor:
            try:
                other = as_operand(kept_arrays((self, other))[1], operation)
            except TypeError:
                pair = without_list(self, other)
                if pair is None:
                    return NotImplemented
                other = pair[1]
        traced = mode is not None and mode.check_every_operation  # `apply` looks at the result
        relaid = False
        if type(self) is base.Tensor and type(self._raw) is _ndarray and not traced:
            b = other._raw if type(other) is base.Tensor else other
            if (type(b) is _ndarray or type(b) in PYTHON_SCALARS) and _is_exclusive(self, "_raw"):
                nodes = (self._node, other._node if type(other) is base.Tensor else None)
                tracked = recording and nodes != (None, None)
                needed = tracked and _keeps_old_values(self._raw, b, nodes)
                if tracked and not needed and _is_replayed(mode):
                    needed = relaid = True
                if not needed and _compute_into(self._raw, b):
                    if tracked:
                        self._node = record(backends.NUMPY, operation, (self._raw, b), nodes, (), (self._raw,))
                        if mode is not None and mode.tapes:
                            list_on_tapes(mode, operation, (self._raw, b), (self._raw,))
                    elif not isinstance(self._node, Leaf):
                        self._node = None
                    self._origin = None
                    separate(self)
                    return self
        elif type(self) is base.Tensor and (
            _nothing_to_record(self, other) if type(other) is base.Tensor else _nothing_to_record(self, self)
        ):
            if _write(self, name, other._raw if type(other) is base.Tensor else other):
                self._origin = None
                return self
        if mode is not None and mode.autocast is not None:  # a tensor that is written keeps its dtype
            with modes.changed(autocast=None):
                result = apply(operation, (self, other))
        else:
            result = apply(operation, (self, other))
        _check_fits(operation, self, result)
        if relaid:
            _lay_out(result, self._raw)
        adopt(self, result)
        separate(self)
        return self

    def _keeps_old_values(a: Any, b: Any, nodes: Any) -> bool:
        """Whether the rule needs the values that would be written over."""
        recipe = operation.recipe_for(NUMPY_TABLE, (nodes[0] is not None, nodes[1] is not None))
        return "x" in recipe.names or a is b or np.result_type(a, b) != a.dtype

    def _compute_into(a: Any, b: Any) -> bool:
        """Compute into `a`; False, with nothing changed, if the result does not fit."""
        if type(b) is _ndarray and b.dtype is not a.dtype and np.result_type(a, b) != a.dtype:
            return False  # NumPy would narrow the result silently
        try:
            if is_ufunc:
                kernel(a, b, a)
                return True
            out = kernel(a, b)
        except (TypeError, ValueError):
            return False
        if out.shape != a.shape or out.dtype != a.dtype:
            return False
        np.copyto(a, out)
        return True

    return method


def _value_for(tensor: Any, value: Any) -> Any:
    """The value to write, in the tensor's dtype; refuses what loses its kind: float into int, complex into float."""
    kinds = ("bool", "uint", "int", "float", "complex")
    dtype = tensor.dtype
    if not isinstance(value, base.Tensor):
        kind = type(value).__name__
        if kinds.index(kind) > kinds.index("int" if dtype.kind == "uint" else dtype.kind):
            raise DtypeError(f"setitem: cannot write a Python {kind} into a tensor of {dtype.name}.")
        return value
    if value.dtype == dtype:
        return value
    source, target = value.dtype.kind, dtype.kind
    if kinds.index(source) > kinds.index("int" if target == "uint" else target):
        raise DtypeError(
            f"setitem: cannot write {value.dtype.name} into a tensor of {dtype.name}. "
            f"Convert it first: `value.astype(pb.{dtype.name})`."
        )
    return TENSORS.astype(value, tensor._backend.raw_dtype(dtype))


class Writing(TensorBase):
    """What writes to a tensor."""

    __slots__ = ()

    __iadd__ = in_place("add")
    __isub__ = in_place("subtract")
    __imul__ = in_place("multiply")
    __itruediv__ = in_place("divide")
    __ifloordiv__ = in_place("floor_divide")
    __imod__ = in_place("remainder")
    __ipow__ = in_place("pow")
    __iand__ = in_place("bitwise_and")
    __ior__ = in_place("bitwise_or")
    __ixor__ = in_place("bitwise_xor")
    __ilshift__ = in_place("bitwise_left_shift")
    __irshift__ = in_place("bitwise_right_shift")
    __imatmul__ = in_place("matmul")

    def __setitem__(self, index: Any, value: Any) -> None:
        """`x[index] = value`: recorded if a gradient flows through either; copies only if somebody else holds `x`."""
        mode = modes.current()
        if mode is not None and mode.tracing is not None and (stand_in := resolved(self)) is not self:
            stand_in[index] = value
            return
        recording = mode is None or mode.recording
        if is_copy_of_variable(self, recording):
            with as_value(self):
                self[index] = value
            return
        operation = OPERATIONS["setitem"]
        index = canonical_index(self, index)
        value = _value_for(self, as_operand(value, operation))
        tracked = recording and (self._node is not None or getattr(value, "_node", None) is not None)
        raw_value = value._raw if type(value) is base.Tensor else value
        writable = type(raw_value) is _ndarray or type(raw_value) in PYTHON_SCALARS
        replayed = tracked and _is_replayed(mode)
        if replayed or (mode is not None and (mode.check_every_operation or mode.mapping is not None)):
            writable = False  # `apply` looks at the result, or keeps what it takes to make it again
        if type(self) is base.Tensor and type(self._raw) is _ndarray and writable and _is_exclusive(self, "_raw"):
            try:
                self._raw[index] = raw_value
            except ValueError as error:
                raise ShapeError(f"setitem: {error}") from error
            if tracked:
                nodes = (self._node, value._node if type(value) is base.Tensor else None)
                raws = (self._raw, raw_value)
                self._node = record(backends.NUMPY, operation, raws, nodes, (index,), (self._raw,))
                if mode is not None and mode.tapes:
                    list_on_tapes(mode, operation, raws, (self._raw,))
            elif not isinstance(self._node, Leaf):
                self._node = None
            self._origin = None
        else:
            relaid = (
                replayed and type(self) is base.Tensor and type(self._raw) is _ndarray and _is_exclusive(self, "_raw")
            )
            result = apply(operation, (self, value), (index,))
            if relaid:
                _lay_out(result, self._raw)
            adopt(self, result)
        separate(self)

    def data_mut(self) -> Any:
        """The raw array, writable: its own memory if nobody else holds it, else a copy made now.

        Returns
        -------
        array
            An array of the backend's library, for example of NumPy's. What is written to it is the tensor's.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.tensor([1.0, 2.0])
        >>> y = x.clone()
        >>> y.data_mut()[0] = 5.0
        >>> x, y
        (tensor([1., 2.]), tensor([5., 2.]))
        """
        if self._node is not None and not isinstance(self._node, Leaf):
            raise GradientError(
                "data_mut: writing to the raw array of a result would make its gradient wrong. "
                "Write `x[...] = ...`, which is recorded, or `x.detach().data_mut()`."
            )
        backend = resolved(self)._backend
        if not backend.writable:
            raise GradientError(f"data_mut: arrays on {self.device} cannot be written. Write `x[...] = ...`.")
        if not backend.is_exclusive(self, "_raw"):
            self._raw = backend.copy(self._raw)
        self._origin = None
        separate(self)
        return self._raw


#: The names of what writes to a tensor
WRITES = ("__setitem__", *(name for name in vars(Writing) if name.startswith("__i")))
