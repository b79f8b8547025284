"""`backward`, and the container it returns."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from .. import backends
from ..errors import DtypeError, GradientError, ShapeError
from ..tensor.core import Tensor, make
from . import guard
from .engine import walk
from .graph import Leaf, Node


class Gradients:
    """Gradients by tensor. Entries are owned by the container: no view, no buffer shared by two of them.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> grads = pb.backward((w * w).sum())
    >>> grads[w]
    tensor([2., 4.])
    >>> grads.clip_global_norm(1.0).item() > 4
    True
    """

    __slots__ = ("_by_node", "_tensors")

    def __init__(self) -> None:
        self._by_node: dict[Node, Tensor] = {}
        self._tensors: dict[Node, Tensor] = {}  # the tensors asked for by the caller, for iteration

    @staticmethod
    def _key(tensor: Tensor) -> Node:
        if tensor._node is None:
            raise KeyError("this tensor does not require a gradient, so it has none.")
        return tensor._node

    def __getitem__(self, tensor: Tensor) -> Tensor:
        try:
            return self._by_node[self._key(tensor)]
        except KeyError as error:
            detail = error.args[0] if isinstance(error.args[0], str) else "the result does not depend on this tensor."
            raise KeyError(f"no gradient: {detail} Use `.get(tensor)` to get None instead.") from None

    def get(self, tensor: Tensor, default: Any = None) -> Any:
        return default if tensor._node is None else self._by_node.get(tensor._node, default)

    def pop(self, tensor: Tensor, default: Any = None) -> Any:
        """Remove and return the gradient of `tensor`; its memory is the caller's then."""
        return default if tensor._node is None else self._by_node.pop(tensor._node, default)

    def __setitem__(self, tensor: Tensor, gradient: Any) -> None:
        self._by_node[self._key(tensor)] = tensor._fitting_gradient("Gradients", gradient)

    def __delitem__(self, tensor: Tensor) -> None:
        del self._by_node[self._key(tensor)]

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor._node is not None and tensor._node in self._by_node

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> Iterator[Tensor]:
        """The gradients themselves, in the order in which they were put in."""
        return iter(self._by_node.values())

    def __repr__(self) -> str:
        return f"Gradients({len(self)} tensors)"


def backward(
    loss: Tensor,
    gradient: Any = None,
    wrt: Tensor | Iterable[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> Gradients:
    """The gradients of `loss` with respect to the variables it depends on, or to the tensors `wrt`.

    `gradient` is the cotangent to start from; a scalar needs none. No tensor's `.grad` is touched.
    With `create_graph` the gradients can be differentiated in turn.
    """
    node, seed = starting_point(loss, gradient, create_graph)
    guard.check_root(loss)
    targets = None
    if wrt is not None:
        wanted = (wrt,) if isinstance(wrt, Tensor) else tuple(wrt)
        targets = frozenset(Gradients._key(t) for t in wanted)
    cotangents = walk([(node, seed)], targets, retain_graph, create_graph)
    grads = Gradients()
    if create_graph:
        for key, g in cotangents.items():
            grads._by_node[key] = _conj(g)
    else:
        for key in list(cotangents):
            grads._by_node[key] = owned(cotangents.pop(key))
        guard.check_gradients(grads._by_node)
    return grads


def starting_point(loss: Tensor, gradient: Any, create_graph: bool) -> tuple[Node, Any]:
    """The node to start a walk from and its cotangent, after checking what was given."""
    if loss._node is None:
        raise GradientError(
            "backward: this tensor does not depend on any tensor that requires a gradient. "
            "Set `requires_grad=True` on the variables before computing it, outside `pb.no_grad()`."
        )
    if gradient is None:
        if loss.size != 1:
            raise ShapeError(
                f"backward: the tensor has shape {loss.shape}, not one element. "
                "Reduce it to a scalar, for example with `.sum()`, or pass `gradient=` of that shape."
            )
        seed: Any = make(loss._backend.xp.ones_like(loss._data), None)
    else:
        from ..functions.creation import asarray

        seed = asarray(gradient, device=loss.device)
        if seed.shape != loss.shape:
            raise ShapeError(f"backward: gradient has shape {seed.shape}, tensor has shape {loss.shape}.")
        if seed.dtype != loss.dtype:
            raise DtypeError(f"backward: gradient is {seed.dtype.name}, tensor is {loss.dtype.name}.")
    seed = _conj(seed)
    return loss._node, seed if create_graph else seed._data


def _conj(tensor: Tensor) -> Tensor:
    """Rules are plain transposes; a gradient is the conjugate of that, so that descending along it descends."""
    if tensor.dtype.kind != "complex":
        return tensor
    from .tables import TENSORS

    return TENSORS.conj(tensor)


def owned(raw: Any) -> Tensor:
    """A gradient that nobody else holds a part of: `raw` itself if that is so already, else a copy."""
    backend: Any = backends.of(raw)
    tensor = _conj(make(backend.from_scalar(raw), None))
    del raw
    if not (backend.is_exclusive(tensor, "_data") and backend.is_contiguous(tensor._data)):
        tensor._data = backend.copy(tensor._data)
    return tensor


def accumulate(loss: Tensor, gradient: Any = None, retain_graph: bool = False) -> None:
    """Add the gradients of `loss` into the cells of its variables: all of them, or on an error none."""
    node, seed = starting_point(loss, gradient, False)
    guard.check_root(loss)
    cotangents = walk([(node, seed)], None, retain_graph)
    del seed
    grads: dict[Any, Tensor] = {}
    for leaf in list(cotangents):
        grads[leaf] = owned(cotangents.pop(leaf))
    guard.check_gradients(grads)
    for leaf, grad in grads.items():
        cell = leaf.cell
        if cell.value is None:
            cell.value = grad
        else:
            cell.value += grad
