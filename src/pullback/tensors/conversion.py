"""Tensors to and from other things: NumPy, Python numbers, devices, DLPack, pickles, copies."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from .. import backends, dtypes, modes
from ..autodiff import base, pending
from ..autodiff.apply import new_node
from ..autodiff.base import TensorBase, created, make, python_values, refuse_result, refuse_tracked, resolved, values_of
from ..autodiff.forward import Dual
from ..autodiff.recipe import Recipe
from ..errors import GradientError, ShapeError
from ..operations import Operation
from .gradient import GradientMethods

if TYPE_CHECKING:
    from .tensor import Tensor


def _move_back(g: Any, source: str) -> tuple[Any]:
    return (g._moved(source, None) if isinstance(g, base.Tensor) else backends.transfer(g, source),)


_MOVE = Recipe.of_function(
    Operation("to_device", "x", "source", linear="x", cheap=True),
    (True,),
    ("source",),
    _move_back,
)


def refuse_intermediate(tensor: TensorBase, what: str) -> None:
    if isinstance(tensor, Dual) or not tensor.is_leaf:
        made_by = "" if isinstance(tensor, Dual) else f" of `{tensor._node.recipe.operation.name}`"  # type: ignore[union-attr]
        raise GradientError(
            f"{what}: this tensor is a result{made_by} that still needs its graph, and a graph is not {what}. "
            "Write `t.detach()` first."
        )


def unpickled(content: Any, dtype: str, shape: tuple[int, ...], device: str, requires_grad: bool) -> Tensor:
    """A tensor from what `__reduce_ex__` gave."""
    values = np.frombuffer(content, dtypes.numpy_dtype(dtypes.get(dtype))).reshape(shape)
    tensor = created(backends.transfer(values, device))
    return tensor.set_requires_grad(True) if requires_grad else tensor


class Conversions(GradientMethods):
    """Other things than tensors."""

    __slots__ = ()

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only NumPy array that shares memory with the tensor where it can.

        Later writes to the tensor do not show in it. For an array of your own write `numpy.array(t.numpy())`.

        Returns
        -------
        numpy.ndarray

        Raises
        ------
        GradientError
            If a gradient flows through it: write `t.detach().numpy()`.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        refuse_tracked(self, "numpy()")
        return backends.NUMPY.read_only(values_of(self))

    def item(self) -> float:
        """The only element as a Python number, also of a tensor that requires a gradient.

        Returns
        -------
        int, float, complex or bool

        Raises
        ------
        ShapeError
            If there is not exactly one element.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor(2.5, requires_grad=True).item()
        2.5
        """
        if self.size != 1:
            raise ShapeError(
                f"item: a tensor of shape {self.shape} has {self.size} elements, not one. Use `t.tolist()`."
            )
        return python_values(self, "item")

    def tolist(self) -> Any:
        """The values as Python numbers in nested lists, also of a variable; a plain number for a tensor without axes.

        Of a result that a gradient flows through they are refused: numbers that are computed with would lose it.

        Returns
        -------
        list or number

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        refuse_result(self, "tolist()")
        return python_values(self, "tolist")

    @property
    def data(self) -> Any:
        """The backend's own array, also of a variable; read-only where the library has read-only arrays; never copied.

        Of a result that a gradient flows through it is refused: code that takes arrays by this name would lose it.

        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0], requires_grad=True).data
        array([1., 2.], dtype=float32)
        """
        refuse_result(self, "data")
        tensor = resolved(self)
        return tensor._backend.read_only(tensor._raw)

    @data.setter
    def data(self, values: Any) -> Never:
        raise AttributeError(
            "`data` of a tensor is read-only. Write `with pb.no_grad(): t[...] = values`.", name="data"
        )

    # -- devices -----------------------------------------------------------------------------------

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """The same values on `device`, which may be another library's; differentiable. Itself if it is there.

        Parameters
        ----------
        device : str
            Such as "numpy" or "torch:cuda"; see `pb.device`.
        stream : None
            Not supported: moves are ordered by the library that does them.

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> t = pb.tensor([1.0, 2.0])
        >>> t.to_device("numpy") is t
        True
        """
        if stream is not None:
            raise ValueError("to_device: `stream` is not supported; moves are ordered by the library that does them.")
        device = backends.for_device(device)[1]
        tensor: Any = self
        return tensor if device == self.device else self._moved(device, None)

    def _moved(self, device: str, copy: bool | None) -> Tensor:
        """The same values on another device, recorded so that the gradient comes back to this one."""
        tensor = resolved(self)
        if pending.checks and device == "numpy":
            pending.look()
        raw = backends.transfer(tensor._raw, device, copy)
        if tensor._node is None or not modes.is_recording():
            return make(raw, None)
        return make(raw, new_node(_MOVE, (tensor._node,), (tensor.device,)))

    # -- DLPack ------------------------------------------------------------------------------------

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Share the memory with another library, read-only; while it is shared, a write to the tensor copies first.

        Memory that a graph, a clone or a view holds too is copied, unless copy=False: PyTorch is told that it is
        read-only, but lets its users write all the same. Consumers that speak only the first protocol cannot be told:
        they get a copy, or with copy=False memory that this tensor has for itself.
        """
        refuse_tracked(self, "DLPack export")
        if modes.tracing() is not None:  # what the other library computes is not seen
            return np.array(values_of(self)).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        backend = self._backend
        if max_version is None or max_version[0] < 1:
            if copy is not False:
                return backend.copy(backend.exported(self._raw)).__dlpack__(stream=stream)
            if backend.writable and not backend.is_exclusive(self, "_raw"):
                self._raw = backend.copy(self._raw)  # what the consumer writes shows in this tensor, and in no other
            self._origin = None
            return backend.exported(self._raw).__dlpack__(stream=stream)
        is_shared = copy is None and backend.writable and not backend.is_exclusive(self, "_raw")
        raw = backend.exported(self._raw)
        if copy or is_shared:
            return backend.copy(raw).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        shared = backend.read_only(raw)
        return shared.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._backend.exported(self._raw).__dlpack_device__()

    # -- pickles and copies ------------------------------------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as bytes, dtype name, shape, device and `requires_grad`; the gradient is not pickled."""
        refuse_intermediate(self, "pickled")
        values = np.ascontiguousarray(values_of(self)).reshape(-1).view(np.uint8)
        content = pickle.PickleBuffer(values) if protocol >= 5 else values.tobytes()
        return unpickled, (content, self.dtype.name, self.shape, self.device, self.requires_grad)

    def __copy__(self) -> Tensor:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A variable of its own with its own gradient; memory is shared until one of the two is written."""
        refuse_intermediate(self, "copied deeply")
        copy = self.detach()
        if self.requires_grad:
            copy.set_requires_grad(True)
        if self.grad is not None:
            copy.grad = self.grad.detach()
        memo[id(self)] = copy
        return copy
