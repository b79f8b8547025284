"""From a caller's arguments to tensors that a transform can follow, and back to what the caller understands.

Arrays come back as arrays of the same library, Python floats as floats, tensors as tensors. If a result depends on
the variable of a transform further out, it stays a tensor, so that the outer transform can see through this one.
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any, Callable, ContextManager, Iterable

import numpy as np

from .. import backends, dtypes, modes, tree
from ..autodiff.base import created, make, resolved
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import asarray
from ..autodiff.engine import IDENTITY
from ..autodiff.forward import Dual
from ..autodiff.graph import Node
from ..errors import DtypeError, GradientError, PullbackError, ShapeError
from ..tensors.tensor import Tensor

Argnums = int | tuple[int, ...] | list[int]


def check_function(transform: str, f: Any) -> None:
    """Refuse what is no function, such as the tensor that PyTorch's `grad` takes."""
    if isinstance(f, Tensor):
        raise DtypeError(
            f"{transform}: expected a function, got a tensor of shape {f.shape}. Write the computation as a function, "
            f"`pb.{transform}(loss_of)(x)`, or `pb.backward(loss)[x]` for the gradient of a tensor that was computed "
            "already."
        )
    if not callable(f):
        raise DtypeError(f"{transform}: expected a function, got {type(f).__name__}: {f!r:.60}.")


def check_argnums(transform: str, argnums: Any) -> None:
    """Refuse what counts no arguments, such as an array that the gradient was meant to be taken at."""
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            shape = getattr(number, "shape", None)
            shown = f"{number!r:.60}" if shape is None else f"an array of shape {tuple(shape)}"
            raise DtypeError(
                f"{transform}: argnums must be an integer or a tuple of integers, got {shown}. It says by which "
                "arguments to differentiate. What the function is to be called with comes after: "
                f"`pb.{transform}(f)(x)`."
            )


def refuse_nothing(transform: str, output: Any) -> None:
    """Refuse the result of a function that returns nothing."""
    if output is None:
        raise DtypeError(f"{transform}: the function returned None. Did you forget `return`?")


class Arguments:
    """The arguments to differentiate by, as a flat list of tensors, and the others as they are."""

    def __init__(self, transform: str, args: tuple[Any, ...], argnums: Argnums) -> None:
        self.transform = transform
        self.args = args
        self.single = not isinstance(argnums, (tuple, list))
        self.positions = _positions(transform, len(args), (argnums,) if self.single else argnums)  # type: ignore[arg-type]
        if self.single:
            self.leaves, self.structure = tree.flatten(args[self.positions[0]])
        else:
            self.leaves, self.structure = tree.flatten(tuple([args[i] for i in self.positions]))
        self.tensors = [
            make(leaf, None)
            if type(leaf) is np.ndarray and dtypes.from_numpy(leaf.dtype).kind in ("float", "complex")
            else self._lifted(i, leaf)
            for i, leaf in enumerate(self.leaves)
        ]
        self.has_tensors = any([isinstance(leaf, Tensor) for leaf in self.leaves])

    def _lifted(self, i: int, leaf: Any) -> Tensor:
        if type(leaf) is float:
            return asarray(leaf, dtype=dtypes.float64)
        if type(leaf) is complex:
            return asarray(leaf, dtype=dtypes.complex128)
        if not isinstance(leaf, (Tensor, int)) and backends.of(leaf) is None:
            raise DtypeError(
                f"{self.transform}: {self.name_of(i)} is of type {type(leaf).__name__}, which is no array. "
                "Make a type of your own a container with `pb.tree.register`, or choose other `argnums`."
            )
        lifted = asarray(leaf)
        if lifted.dtype.kind not in ("float", "complex"):
            shown = f"{leaf!r}, an integer" if isinstance(leaf, int) else f"of dtype {lifted.dtype.name}"
            instead = f"{float(leaf)}" if isinstance(leaf, int) else "`.astype(float)`"
            raise DtypeError(
                f"{self.transform}: {self.name_of(i)} is {shown}; only floating-point and complex arguments have "
                f"derivatives. Write {instead}, or choose other `argnums`."
            )
        return lifted

    def name_of(self, i: int) -> str:
        """How to name leaf `i` in a message: "argument 0['w']"."""
        path = self.structure._paths()[i]
        if self.single:
            return f"argument {self.positions[0]}{path}"
        number, _, rest = path[1:].partition("]")
        return f"argument {self.positions[int(number)]}{rest}"

    def filled(self, tensors: Iterable[Any]) -> tuple[Any, ...]:
        """All arguments, with these in the place of the chosen ones' leaves."""
        args = list(self.args)
        filled = tree.unflatten(self.structure, tensors)
        for position, value in zip(self.positions, (filled,) if self.single else filled):
            args[position] = value
        return tuple(args)

    def result(self, values: Iterable[Any]) -> Any:
        """One value per leaf as a tree like the argument, or a tuple of them for several argnums."""
        return tree.unflatten(self.structure, values)


def _positions(transform: str, count: int, argnums: Iterable[int]) -> tuple[int, ...]:
    positions = []
    for number in argnums:
        if not -count <= number < count:
            raise ShapeError(
                f"{transform}: argnums={number}, but the function was called with {count} positional arguments. "
                "Pass by position what is to be differentiated."
            )
        positions.append(int(number) % count)
    if len(set(positions)) < len(positions):
        raise ShapeError(f"{transform}: argnums names argument {max(positions, key=positions.count)} twice.")
    return tuple(positions)


#: The variables of the transforms whose functions are running now.
_active: ContextVar[frozenset[Node]] = ContextVar("pullback_active_variables", default=frozenset())
#: How many of them are running inside each other.
nesting: ContextVar[int] = ContextVar("pullback_nested_transforms", default=0)


def recording() -> ContextManager[Any]:
    """Record, whatever the surroundings say: a transform inside `no_grad` works as everywhere."""
    return nullcontext() if modes.is_recording() else modes.changed(recording=True)


class running:
    """Run a transform's function: record, and let transforms inside know the variables `own`."""

    __slots__ = ("_own", "_active", "_depth", "_recording")

    def __init__(self, own: frozenset[Node]) -> None:
        self._own = own

    def __enter__(self) -> None:
        self._active = _active.set(_active.get() | self._own) if self._own else None
        self._depth = nesting.set(nesting.get() + 1)
        mode = modes.current()
        self._recording = None if mode is None else modes.enter(recording=True)

    def __exit__(self, *error: object) -> None:
        modes.leave(self._recording)
        nesting.reset(self._depth)
        if self._active is not None:
            _active.reset(self._active)


def explain(error: Exception, arguments: Arguments) -> None:
    """Add to an error from inside a transform's function what its reader cannot see there.

    NumPy and SciPy raise errors of their own instead of ours, and what the caller gave as a list is a list inside.
    """
    cause, notes = error.__cause__, []
    if isinstance(cause, GradientError) and not isinstance(error, PullbackError):
        notes.append(f"{type(cause).__name__}: {cause}")
    if isinstance(error, GradientError) or (isinstance(error, (AttributeError, TypeError)) and "'list'" in str(error)):
        for position in arguments.positions:
            given = arguments.args[position]
            if isinstance(given, list) and given and all(isinstance(x, (int, float, complex)) for x in given):
                notes.append(
                    f"Argument {position} is a list of {len(given)} numbers, and so the function gets a list of "
                    "tensors. If it is meant to be an array, pass `np.array([...])` as the argument."
                )
    for note in notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def separated(transform: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """A function's result as (output, aux)."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ShapeError(
            f"{transform}: with has_aux=True the function must return a pair (output, aux), "
            f"it returned {type(result).__name__}."
        )
    return result


def must_stay(results: Iterable[Any], has_tensors: bool) -> bool:
    """Whether results depend on the variables of a transform whose function is running: then they must stay tensors
    that know how they were made.

    A captured `requires_grad` tensor counts if the arguments are tensors as well; arrays in, arrays out otherwise.
    """
    if not modes.is_recording():
        return False
    results = list(results)
    if any([isinstance(x, Dual) for x in results]):
        return True
    active = _active.get()
    if not (active or has_tensors):
        return False
    stack = [node for x in results if isinstance(x, Tensor) and (node := resolved(x)._node) is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        # a root that is a bare identity is the variable of a transform that has ended
        if node in active or (has_tensors and not node.inputs and node.recipe is not IDENTITY):
            return True
        for parent in node.inputs:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return False


def unrecorded(x: Tensor) -> Tensor:
    """A result without what it is made from here; inside of `vmap`, what it is made from further out stays known."""
    return make(x._raw, None) if type(x._raw) is Stack else x.detach()


def lowered(result: Any, stays: bool, has_tensors: bool) -> Any:
    """A tree of results for the caller. Arrays are copies: they share nothing with a tensor that may be captured."""

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor) or stays:
            return x
        x = unrecorded(x)
        if type(x._raw) is Stack:
            return x
        return x if has_tensors else without_shape(x._backend.copy(x._raw))

    return tree.map(one, result)


def lowered_like(leaf: Any, value: Tensor, stays: bool) -> Any:
    """A gradient for the caller, of the kind of the argument `leaf`. It must be owned already."""
    if stays or isinstance(leaf, Tensor):
        return value
    raw = resolved(value)._raw
    if type(raw) is Stack:
        return value
    if len(raw.shape) > 0:
        return raw
    if type(leaf) in (float, complex):
        return raw.item() if value._backend.is_concrete(raw) else raw  # while it is traced it has no value
    return without_shape(raw) if isinstance(leaf, np.generic) else raw


def owned(x: Tensor) -> Tensor:
    """A result that shares no memory with anything: it itself if that is so already."""
    backend = x._backend
    if backend.is_exclusive(x, "_raw") and backend.is_contiguous(x._raw):
        return x
    return make(backend.copy(x._raw), None)


def without_shape(raw: Any) -> Any:
    """A NumPy array without axes as the scalar that NumPy's own functions return in its place."""
    return raw[()] if isinstance(raw, np.ndarray) and raw.ndim == 0 else raw


def fitting(transform: str, what: str, given: Any, like: Tensor) -> Tensor:
    """A cotangent or tangent as a tensor, after checking that it fits the value `like`."""
    if isinstance(given, (int, float, complex)) and not isinstance(given, (bool, np.generic)):
        given = asarray(given, dtype=like.dtype, device=like.device)
    elif not isinstance(given, Tensor) and backends.of(given) is None:
        raise DtypeError(f"{transform}: {what} must be an array or a number, got {type(given).__name__}.")
    else:
        given = asarray(given)
    if given.shape != like.shape:
        raise ShapeError(f"{transform}: {what} has shape {given.shape}, the value has shape {like.shape}.")
    if given.dtype != like.dtype:
        raise DtypeError(
            f"{transform}: {what} is {given.dtype.name}, the value is {like.dtype.name}. "
            f"Write `.astype({like.dtype.name!r})`."
        )
    return given


def one_hot(like: Tensor, position: int, value: Any = 1) -> Tensor:
    """A tensor like `like` of zeros, with `value` at one flat position."""
    flat = np.zeros(like.size, dtypes.numpy_dtype(like.dtype))
    flat[position] = value
    return created(backends.transfer(flat.reshape(like.shape), like.device))


def matched(transform: str, what: str, given: Any, structure: tree.Structure, of_what: str) -> list[Any]:
    """The leaves of a tree that must have a given structure."""
    leaves, found = tree.flatten(given)
    if found != structure:
        raise ShapeError(f"{transform}: the {what} have the structure {found!r}, {of_what} {structure!r}.")
    return leaves


Function = Callable[..., Any]
