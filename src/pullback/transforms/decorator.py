"""`Autodiff(backend)`: the same operations as the backend's, with gradients; a backend itself, so it nests."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any

from .. import backends
from ..autodiff import creation
from ..autodiff.base import resolved
from ..autodiff.engine import alias, walk
from ..autodiff.gradients import Gradients, _conj, backward, starting_point
from ..autodiff.graph import Node
from ..autodiff.tables import TENSORS
from ..backends.protocol import Backend
from ..dtypes import DType
from ..errors import DeviceError, DtypeError
from ..functions import filled
from ..tensors.tensor import Tensor


class Autodiff(Backend):
    """A backend whose arrays are tensors over the arrays of `inner`: a device name, a backend or another `Autodiff`.

    `inner` and `from_inner` go down and up one level. A float that comes up from a plain backend is a constant
    until `set_requires_grad(True)` is called on it. One that comes up from another `Autodiff` is a variable of the
    upper level at once, and what it was made from stays known to the lower one: gradients of the upper level are
    tensors of the lower one, ready to be differentiated there.

    With a `checkpointing` strategy, operations on tensors of this level are recorded under it, wherever they run but
    in a region of `pb.checkpoint`.

    Every operation of Pullback is an attribute: `Autodiff("numpy").multiply(x, y)`.

    Parameters
    ----------
    inner : str, backend or Autodiff
        What runs below: a device name such as "numpy", a backend, or another `Autodiff` for higher orders.
    checkpointing : strategy, optional
        Under which operations on tensors of this level are recorded, such as `pb.BudgetCheckpointing(bytes)`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> first = pb.Autodiff("numpy")
    >>> x = first.from_inner(np.asarray(3.0)).set_requires_grad(True)
    >>> first.grad(x, first.backward(x * x * x))
    array(27.)
    >>> second = pb.Autodiff(first)
    >>> y = second.from_inner(x)
    >>> slope = second.grad(y, second.backward(y * y * y))
    >>> first.grad(x, first.backward(slope))
    array(18.)
    """

    array_types = (Tensor,)
    xp = TENSORS
    device: str

    def __init__(self, inner: str | Backend | Autodiff = "numpy", checkpointing: Any = None) -> None:
        if isinstance(inner, Autodiff):
            self.inner_backend: Backend = inner
            self.device = inner.device
        elif isinstance(inner, Backend):
            self.inner_backend, self.device = inner, inner.full_device_name(inner.name)
        elif isinstance(inner, str):
            self.inner_backend, self.device = backends.for_device(inner)
        else:
            raise DtypeError(f"Autodiff: expected a device name, a backend or an Autodiff, got {type(inner).__name__}.")
        self.checkpointing = checkpointing
        self._tensor_class: type[Tensor] | None = None
        if checkpointing is not None:
            from ..autodiff.checkpointing.strategies import checked
            from .checkpointed import tensors_under

            strategy = checked(checkpointing, "Autodiff")
            if strategy is not None:
                self._tensor_class = tensors_under(strategy)
        self.name = f"autodiff({self.inner_backend.name})"
        self._variables: weakref.WeakSet[Node] = weakref.WeakSet()  # what came up from an inner Autodiff
        self._cuts: weakref.WeakSet[Node] = weakref.WeakSet()  # what went down to it

    def __repr__(self) -> str:
        inner = self.inner_backend
        return f"Autodiff({inner!r})" if self._is_nested else f"Autodiff({self.device!r})"

    @property
    def _is_nested(self) -> bool:
        return isinstance(self.inner_backend, Autodiff)

    # -- gradients ---------------------------------------------------------------------------------

    def backward(self, tensor: Tensor, retain_graph: bool = False) -> Gradients:
        """The gradients of the sum of `tensor` with respect to the variables of this level; any shape will do."""
        self._check(tensor)
        ones = TENSORS.ones_like(tensor.detach())
        if not self._is_nested:
            return backward(tensor, ones, retain_graph=retain_graph)
        node, seed = starting_point(tensor, ones, create_graph=True)
        stops = _reachable(node, (self._variables, self._cuts))
        found = walk([(node, seed)], frozenset(stops), create_graph=True, stop=True)
        grads = Gradients()
        for key, g in found.items():
            if key in self._variables:
                grads._by_node[key] = _conj(g)
        return grads

    def grad(self, tensor: Tensor, grads: Gradients) -> Any:
        """The gradient of `tensor` as an array of the inner level, or None if there is none."""
        found = grads.get(tensor)
        return found if found is None or self._is_nested else self.inner(found)

    def grad_remove(self, tensor: Tensor, grads: Gradients) -> Any:
        """Take the gradient of `tensor` out of `grads`, as an array of the inner level; None if there is none."""
        found = grads.pop(tensor)
        return found if found is None or self._is_nested else resolved(found)._raw

    def grad_replace(self, tensor: Tensor, grads: Gradients, gradient: Any) -> None:
        """Put `gradient`, an array of the inner level, in place of the gradient of `tensor`, or register it."""
        if not self._is_nested:
            grads[tensor] = self.from_inner(gradient)
            return
        tensor._fitting_gradient("grad_replace", gradient)
        grads._by_node[Gradients._key(tensor)] = gradient

    # -- one level down and up ---------------------------------------------------------------------

    def inner(self, tensor: Tensor) -> Any:
        """The value as an array of the inner level, of any kind (float, int, bool, quantized), sharing its memory.

        For this level it is a constant. Over NumPy it is read-only, so that no tensor changes through it.
        """
        self._check(tensor)
        if not self._is_nested:
            return tensor._backend.read_only(tensor._raw)
        if not tensor.requires_grad:
            return tensor
        below = alias(tensor)
        self._cuts.add(below._node)  # type: ignore[arg-type]
        return below

    def from_inner(self, array: Any) -> Tensor:
        """A tensor of this level of an array of the inner one, of any kind; memory is shared until a write."""
        if self._is_nested:
            self._check(array)
            if array.dtype.kind not in ("float", "complex"):
                return array
            above = alias(array)
            self._variables.add(above._node)  # type: ignore[arg-type]
            return self._own(above)
        backend = backends.of(array)
        if backend is not self.inner_backend and (backend is None or backend.tensor_class is None):
            raise DeviceError(
                f"from_inner: expected an array of {self.inner_backend.name}, got {type(array).__name__}."
            )
        return self._own(creation.asarray(array))

    def _own(self, tensor: Tensor) -> Tensor:
        """`tensor` as one of this level, which takes its checkpointing strategy with it."""
        if self._tensor_class is None:
            return tensor
        from .checkpointed import labelled

        return labelled(tensor, self._tensor_class)

    def _check(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise DtypeError(f"{self!r}: expected a tensor, got {type(tensor).__name__}. Use `from_inner` or `tensor`.")

    # -- operations --------------------------------------------------------------------------------

    def tensor(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        """A new tensor of this level on its device; with `requires_grad` a variable of this level."""
        if not self._is_nested:
            return self._own(creation.tensor(data, dtype, self.device, requires_grad))
        made = creation.tensor(data, dtype, self.device)
        if not requires_grad:
            return made
        made.set_requires_grad(True).set_requires_grad(False)  # refuses dtypes that have no gradient
        return self.from_inner(made)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        import pullback

        function = getattr(pullback, name, None)
        if function is None:
            function = getattr(TENSORS, name, None)
        if function is None:
            raise AttributeError(f"Autodiff: there is no operation {name!r}.")
        if name in creation.__all__ or name in filled.__all__:
            function = self._on_own_device(function)
        self.__dict__[name] = function
        return function

    def _on_own_device(self, function: Any) -> Any:
        @wraps(function)
        def created(*args: Any, **named: Any) -> Any:
            with backends.device(self.device):
                made = function(*args, **named)
            return self._own(made) if isinstance(made, Tensor) else made

        return created

    # -- as a backend ------------------------------------------------------------------------------

    def devices(self) -> tuple[str, ...]:
        return self.inner_backend.devices()

    def full_device_name(self, device: str) -> str:
        return self.inner_backend.full_device_name(device)

    def device_of(self, raw: Tensor) -> str:
        """The name of the device that holds a tensor."""
        return raw.device

    def dtype_of(self, raw: Tensor) -> DType:
        """The dtype of a tensor."""
        return raw.dtype

    def raw_dtype(self, dtype: DType) -> DType:
        return dtype

    def asarray(self, data: Any, dtype: DType | None, device: str, copy: bool | None) -> Tensor:
        return creation.asarray(data, dtype=dtype, device=device, copy=copy)

    def to_numpy(self, raw: Tensor) -> Any:
        return raw.numpy()

    def copy(self, raw: Tensor) -> Tensor:
        return raw.clone()


def _reachable(start: Node, groups: tuple[Any, ...]) -> list[Node]:
    """The nodes of `groups` that lead to `start`, not looking behind them."""
    found, seen, stack = [], {start}, [start]
    while stack:
        node = stack.pop()
        if any(node in group for group in groups):
            found.append(node)
            continue
        for parent in node.inputs:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return found
