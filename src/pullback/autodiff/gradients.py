"""`backward`, and the container it returns."""

from __future__ import annotations

import math
import os
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any, Iterable, Iterator, overload

import numpy as np

from .. import backends, modes, tree
from ..dtypes import REAL
from ..errors import DtypeError, GradientError, ShapeError
from . import base, guard
from .base import make, resolved
from .creation import asarray
from .engine import walk
from .graph import Node
from .tables import TENSORS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import A

_ndarray = np.ndarray
_is_exclusive = backends.NUMPY.is_exclusive


class Gradients:
    """Gradients by tensor, as `pb.backward` returns them.

    Entries are owned by the container: no view, no buffer shared by two of them. `w in grads`, `len(grads)` and
    iteration work; an optimizer's `step` takes it as it is.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> grads = pb.backward((w * w).sum())
    >>> grads[w]
    tensor([2., 4.])
    >>> grads.clip_global_norm(1.0).item() > 4
    True
    """

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[Node, Tensor] = {}

    @staticmethod
    def _key(tensor: Tensor) -> Node:
        node = resolved(tensor)._node
        if node is None:
            raise KeyError("this tensor does not require a gradient, so it has none.")
        return node

    def __getitem__(self, tensor: Tensor) -> Tensor:
        try:
            return self._by_node[self._key(tensor)]
        except KeyError as error:
            detail = error.args[0] if isinstance(error.args[0], str) else "the result does not depend on this tensor."
            raise KeyError(f"no gradient: {detail} Use `.get(tensor)` to get None instead.") from None

    @overload
    def get(self, tensor: Tensor) -> Tensor | None: ...
    @overload
    def get(self, tensor: Tensor, default: A) -> Tensor | A: ...
    def get(self, tensor: Tensor, default: Any = None) -> Any:
        """The gradient of `tensor`, or `default` if there is none."""
        node = resolved(tensor)._node
        return default if node is None else self._by_node.get(node, default)

    @overload
    def pop(self, tensor: Tensor) -> Tensor | None: ...
    @overload
    def pop(self, tensor: Tensor, default: A) -> Tensor | A: ...
    def pop(self, tensor: Tensor, default: Any = None) -> Any:
        """Remove and return the gradient of `tensor`, or `default` if there is none; its memory is now the caller's."""
        node = resolved(tensor)._node
        return default if node is None else self._by_node.pop(node, default)

    def __setitem__(self, tensor: Tensor, gradient: Any) -> None:
        self._by_node[self._key(tensor)] = tensor._fitting_gradient("Gradients", gradient)

    def __delitem__(self, tensor: Tensor) -> None:
        del self._by_node[self._key(tensor)]

    def __contains__(self, tensor: Tensor) -> bool:
        node = resolved(tensor)._node
        return node is not None and node in self._by_node

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> Iterator[Tensor]:
        """The gradients themselves, in the order in which they were put in."""
        return iter(self._by_node.values())

    def __repr__(self) -> str:
        return f"Gradients({len(self)} tensors)"

    # -- all of them together ----------------------------------------------------------------------

    def global_norm(self) -> Tensor:
        """The L2 norm of all gradients together, as a 0-d tensor; right for very large and very small values.

        >>> import pullback as pb
        >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
        >>> pb.backward((w * w / 2).sum()).global_norm()
        tensor(5.)
        """
        lists = in_lists(self._by_node.values(), written=False)
        if lists is not None and len(lists) == 1:
            ((backend, raws),) = lists
            return make(backend.lists.norm(raws), None)
        return _global_norm([g.detach() for g in self])

    def clip_global_norm(self, max_norm: float) -> Tensor:
        """Scale all gradients so that their joint L2 norm is at most `max_norm`; return the norm before.

        Parameters
        ----------
        max_norm : float
            The largest norm allowed, positive.

        Returns
        -------
        Tensor
            The norm before, 0-d. Nothing is scaled if it is small enough.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
        >>> grads = pb.backward((w * w).sum() / 2)
        >>> grads.clip_global_norm(1.0)
        tensor(5.)
        >>> grads[w]
        tensor([0.6, 0.8])
        """
        if not max_norm > 0:
            raise ValueError(f"clip_global_norm: max_norm must be positive, got {max_norm!r}.")
        norm = self.global_norm()
        if len(self):
            xp = TENSORS
            scale = xp.minimum(max_norm / xp.maximum(norm, max_norm), 1.0)
            lists = in_lists(self._by_node.values())
            if lists is None:
                self._write(lambda g: g * xp.astype(scale, g._raw.dtype))
            for backend, raws in lists or ():
                backend.lists.multiply_by(raws, backend.xp.astype(scale._raw, raws[0].dtype))
        return norm

    def clip_value(self, limit: float) -> None:
        """Clip every element of every gradient to [-limit, limit].

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 4.0], requires_grad=True)
        >>> grads = pb.backward((w * w / 2).sum())
        >>> grads.clip_value(2.0)
        >>> grads[w]
        tensor([1., 2.])
        """
        if not limit > 0:
            raise ValueError(f"clip_value: the limit must be positive, got {limit!r}.")
        lists = in_lists(self._by_node.values())
        for backend, raws in lists or ():
            backend.lists.clip(raws, -float(limit), float(limit))
        if lists is None:
            self._write(lambda g: TENSORS.maximum(TENSORS.minimum(g, float(limit)), -float(limit)))

    def scale(self, factor: float) -> None:
        """Multiply every gradient by the finite number `factor`.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 4.0], requires_grad=True)
        >>> grads = pb.backward(w.sum())
        >>> grads.scale(0.5)
        >>> grads[w]
        tensor([0.5, 0.5])
        """
        if not math.isfinite(factor):
            raise ValueError(f"scale: the factor must be finite, got {factor!r}.")
        lists = in_lists(self._by_node.values())
        for backend, raws in lists or ():
            backend.lists.multiply_by(raws, float(factor))
        for g in self if lists is None else ():
            g *= float(factor)

    def zero(self) -> None:
        """Set every gradient to zero, keeping the memory.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 4.0], requires_grad=True)
        >>> grads = pb.backward(w.sum())
        >>> grads.zero()
        >>> grads[w]
        tensor([0., 0.])
        """
        lists = in_lists(self._by_node.values())
        for backend, raws in lists or ():
            backend.lists.fill_with_zeros(raws)
        for g in self if lists is None else ():
            g[...] = 0.0

    def add(self, other: Gradients) -> None:
        """Add the gradients in `other`, entry by entry; entries that are only there are taken over.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> total = pb.backward(w.sum())
        >>> total.add(pb.backward((w * w).sum()))
        >>> total[w]
        tensor([3., 5.])
        """
        for node, g in other._by_node.items():
            mine = self._by_node.get(node)
            if mine is not None and (mine.shape != g.shape or mine.dtype != g.dtype):
                raise ShapeError(f"add: gradients of shapes {mine.shape} and {g.shape} for the same tensor.")
        for node, g in other._by_node.items():
            if node in self._by_node:
                self._by_node[node] += g
            else:
                self._by_node[node] = g.clone()

    def _write(self, change: Any) -> None:
        for g in self:
            g[...] = change(g)


def _from_tree(nodes: Any, children: list[Any]) -> Gradients:
    grads = Gradients()
    grads._by_node.update(zip(nodes, children))
    return grads


tree.register(Gradients, lambda grads: (grads._by_node.values(), tuple(grads._by_node)), _from_tree)


def in_lists(tensors: Iterable[Tensor], written: bool = True) -> list[tuple[Any, list[Any]]] | None:
    """The arrays of untracked tensors in lists of one dtype and device, with the backend of each.

    To be `written` they are made each tensor's own first. None where there are no functions of lists.
    """
    if modes.tracing() is not None:
        return None
    found = list(tensors)
    groups: dict[Any, tuple[Any, list[Tensor]]] = {}
    for tensor in found:
        backend: Any = backends.of(tensor._raw)
        if (
            type(tensor) is not base.Tensor
            or backend.lists is None
            or tensor._node is not None
            or tensor._raw.dtype not in REAL
        ):
            return None
        groups.setdefault((backend.device_of(tensor._raw), tensor._raw.dtype), (backend, []))[1].append(tensor)
    for tensor in found if written else ():
        backend = backends.of(tensor._raw)
        if not backend.is_exclusive(tensor, "_raw"):
            tensor._raw = backend.copy(tensor._raw)
        tensor._origin = None
    return [(backend, [tensor._raw for tensor in group]) for backend, group in groups.values()]


def _global_norm(gradients: list[Tensor]) -> Tensor:
    """The joint norm, scaled by the largest magnitude so that squares neither overflow nor vanish."""
    if not gradients:
        return asarray(0.0)
    xp = TENSORS
    sizeable = [g for g in gradients if g.size]
    largest: Any = 0.0
    for g in sizeable:
        magnitude = xp.max(xp.abs(g))
        largest = magnitude if isinstance(largest, float) else xp.maximum(largest, magnitude)
    if isinstance(largest, float):
        return xp.zeros((), gradients[0]._raw.dtype, gradients[0])
    divisor = xp.where(xp.logical_and(xp.greater(largest, 0.0), xp.isfinite(largest)), largest, xp.ones_like(largest))
    total: Any = None
    for g in sizeable:
        scaled = xp.abs(g) / divisor
        part = xp.sum(scaled * scaled)
        total = part if total is None else total + part
    return divisor * xp.sqrt(total)


def backward(
    loss: Tensor,
    gradient: Any = None,
    wrt: Tensor | Iterable[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> Gradients:
    """The gradients of `loss` with respect to the variables it depends on, or to the tensors `wrt`.

    No tensor's `.grad` is touched; `loss.backward()` adds to it instead.

    Parameters
    ----------
    loss : Tensor
        What to differentiate: a real number, or any tensor with `gradient`.
    gradient : array, optional
        The cotangent to start from, in the shape of `loss`. A scalar needs none.
    wrt : Tensor or iterable of Tensor, optional
        By which tensors; by default by all variables. Results of operations can be named too.
    retain_graph : bool
        Whether to keep what the walk needs, so that the graph can be walked again.
    create_graph : bool
        Whether the gradients can be differentiated in turn.

    Returns
    -------
    Gradients
        The gradient of a tensor `w` is `grads[w]`.

    Raises
    ------
    GradientError
        If `loss` depends on no variable.
    GraphConsumedError
        If the graph was walked before without `retain_graph`.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> grads = pb.backward((w * w).sum())
    >>> grads[w]
    tensor([2., 4.])
    """
    loss = resolved(loss)
    node, seed = starting_point(loss, gradient, create_graph)
    guarded = guard.check_root(loss, node)
    targets = None
    dtypes: dict[Node, Any] = {}  # a gradient has its tensor's, also where rules compute in a wider one
    if wrt is not None:
        wanted = (wrt,) if isinstance(wrt, base.Tensor) else tuple(wrt)
        for t in wanted:
            if not isinstance(t, base.Tensor):
                raise DtypeError(f"backward: wrt must be a tensor or several of them, got {type(t).__name__}.")
        dtypes = {Gradients._key(t): t._raw.dtype for t in wanted}
        targets = frozenset(dtypes)
    cotangents = walk([(node, seed)], targets, retain_graph, create_graph, guarded)
    del seed
    _check_when_run(loss, cotangents)
    grads = Gradients()
    if create_graph:
        for key, g in cotangents.items():
            dtype = dtypes.get(key, getattr(key, "dtype", None))
            if dtype is not None and g._raw.dtype != dtype:
                g = TENSORS.astype(g, dtype)
            grads._by_node[key] = _conj(g)
    else:
        for key in list(cotangents):
            grads._by_node[key] = owned(cotangents.pop(key), dtypes.get(key, getattr(key, "dtype", None)))
    return grads


def starting_point(loss: Tensor, gradient: Any, create_graph: bool) -> tuple[Node, Any]:
    """The node to start a walk from and its cotangent, after checking what was given."""
    if type(loss) is not base.Tensor:
        if not isinstance(loss, base.Tensor):
            raise DtypeError(f"backward: expected a tensor, got {type(loss).__name__}: {loss!r:.60}")
        if isinstance(loss, base.DualTensor):
            raise GradientError(
                "backward: inside a forward-mode derivative (jvp, jacfwd, hessian) a walk would lose the tangents. "
                "Use `pb.grad` or `pb.vjp` there, which keep them."
            )
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
        if loss.dtype.kind == "complex":
            raise DtypeError(
                "backward: the tensor is complex, and a complex number cannot be minimised. Make it real, for "
                "example with `pb.abs(...)` or `pb.real(...)`, or pass `gradient=`."
            )
        if create_graph:
            return loss._node, TENSORS.ones_like(loss)
        return loss._node, loss._backend.xp.ones_like(loss._raw)
    plain = isinstance(gradient, (int, float, complex, list, tuple))  # numbers take the tensor's dtype
    seed = asarray(gradient, dtype=loss.dtype if plain else None, device=loss.device)
    if seed.shape != loss.shape:
        raise ShapeError(f"backward: gradient has shape {seed.shape}, tensor has shape {loss.shape}.")
    if seed.dtype != loss.dtype:
        raise DtypeError(f"backward: gradient is {seed.dtype.name}, tensor is {loss.dtype.name}.")
    seed = _conj(seed)
    return loss._node, seed if create_graph else resolved(seed)._raw


def _conj(tensor: Tensor) -> Tensor:
    """Rules are plain transposes; a gradient is the conjugate of that, so that descending along it descends."""
    if tensor.dtype.kind != "complex":
        return tensor
    return TENSORS.conj(tensor)


def owned(raw: Any, dtype: Any = None) -> Tensor:
    """A gradient that nobody else holds a part of: `raw` itself if that is so already, else a copy.

    It gets `dtype`: the rules of operations on half precision may compute in float32.
    """
    if type(raw) is _ndarray and raw.dtype is dtype and dtype.kind != "c":
        tensor = make(raw, None)
        del raw
        if not (_is_exclusive(tensor, "_raw") and tensor._raw.flags.c_contiguous):
            tensor._raw = backends.NUMPY.copy(tensor._raw)
        return tensor
    backend: Any = backends.of(raw)
    tensor = make(backend.from_scalar(raw), None)
    del raw
    kept = tensor._raw.dtype
    if kept is not dtype or kept not in REAL:
        if dtype is not None and kept is not dtype and kept != dtype:
            tensor._raw = backend.xp.astype(tensor._raw, dtype)
        if backend.is_complex(tensor._raw):
            tensor = _conj(tensor)
    if not (backend.is_exclusive(tensor, "_raw") and backend.is_contiguous(tensor._raw)):
        tensor._raw = backend.copy(tensor._raw)
    return tensor


def accumulate(loss: Any, gradient: Any = None, retain_graph: bool = False) -> None:
    """Add the gradients of `loss` into the cells of its variables: all of them, or on an error none."""
    loss = resolved(loss)
    node, seed = starting_point(loss, gradient, False)
    guarded = guard.check_root(loss, node)
    cotangents = walk([(node, seed)], None, retain_graph, False, guarded)
    del seed
    _check_when_run(loss, cotangents)
    grads: dict[Any, Tensor] = {}
    leaf: Any
    for leaf in list(cotangents):
        grads[leaf] = owned(cotangents.pop(leaf), leaf.dtype)
    trace = modes.tracing()
    with _adding:
        for leaf, grad in grads.items():
            cell = leaf.cell if trace is None else trace.cell(leaf.cell)
            if cell._value is None:
                cell._value = grad
            else:
                cell._value += grad


def _check_when_run(loss: Tensor, cotangents: dict[Node, Any]) -> None:
    """While a function is traced gradients have no values: have them looked at when its program has run."""
    trace = modes.tracing()
    if trace is not None and not trace.arguments.isdisjoint(cotangents):
        raise GradientError("a walk inside a compiled function goes on to what its arguments were made of.")
    if trace is not None and guard.is_on(loss._node):
        guard.check_when_run([getattr(resolved(g), "_raw", g) for g in cotangents.values()])


_adding = allocate_lock()  # threads may share variables; only the last step of a walk writes to them


def _in_child() -> None:
    global _adding
    _adding = allocate_lock()  # a thread that had the other one is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
