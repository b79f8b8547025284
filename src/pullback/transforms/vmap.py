"""`vmap`: a function of one example, run on many at once."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Iterator, Never, overload

import numpy as np

from .. import backends, modes, tree
from ..autodiff.base import resolved
from ..autodiff.batching.stack import Level, Stack
from ..autodiff.creation import asarray
from ..autodiff.forward import Dual
from ..autodiff.tables import TENSORS
from ..dtypes import complex128, float64
from ..errors import DtypeError, GradientError, ShapeError, VmapError
from ..keywords import hide_others, unexpected
from ..tensors.tensor import Tensor
from .lifting import Function, check_function, lowered, owned, without_shape

if TYPE_CHECKING:
    from ..typing import NumPyFunction, P, R, SameArguments

__all__ = ["vmap"]

RANDOMNESS = ("different", "same")
DTYPES = {float: float64, complex: complex128}  # of Python numbers, in every transform


@overload
def vmap(
    f: NumPyFunction, in_axes: Any = 0, out_axes: Any = 0, randomness: str = "different"
) -> SameArguments[..., Any]: ...
@overload
def vmap(
    f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, randomness: str = "different"
) -> SameArguments[P, R]: ...
@hide_others
def vmap(f: Function, in_axes: Any = 0, out_axes: Any = 0, randomness: str = "different", **other: Never) -> Function:
    """The function that runs `f`, which is written for one example, on many at once.

    Parameters
    ----------
    f : callable
        A function of arrays, numbers and trees of them. Inside it they are tensors with the shape of one example.
    in_axes : int, None, tuple or tree
        Which axis of the arguments the examples are along: a number for all arguments, or a tuple with an entry for
        each positional one, which is a number, None for what all examples share, or a tree like the argument (or
        the upper part of one) of these. Keyword arguments are shared.
    out_axes : int, None or tree
        Where the examples are to be in the results: a number, or a tree like the result (or the upper part of one).
        None for a result that is the same for all examples, which is returned once.
    randomness : str
        Whether `pb.random` and dropout draw "different" numbers for every example, or the "same" for all.

    Returns
    -------
    callable
        A function with the same arguments. Arrays give arrays of the same library; tensors, and what depends on
        variables, give tensors, through which gradients flow.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.vmap(np.dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([1., 4.])
    >>> slope = pb.grad(lambda w, x: np.tanh(w * x))
    >>> pb.vmap(slope, in_axes=(None, 0))(0.5, np.array([0.0, 1.0, 2.0]))
    array([0.        , 0.78644773, 0.83994868])
    """
    if other:
        raise unexpected("vmap", other)
    check_function("vmap", f)
    if hasattr(in_axes, "shape"):
        raise DtypeError(
            f"vmap: in_axes says which axes are the examples, it is an array of shape {tuple(in_axes.shape)}. What the "
            "function is to be called with comes after: `pb.vmap(f)(x)`."
        )
    if randomness not in RANDOMNESS:
        raise ValueError(f"vmap: randomness must be one of {', '.join(map(repr, RANDOMNESS))}, got {randomness!r}.")

    @wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        examples = Examples(args, in_axes)
        with Running(examples.size, randomness) as level:
            result = f(*examples.stacked(level), **kwargs)
            leaves, structure = tree.flatten_variables(result)
            axes = axes_of("out_axes", out_axes, result)
            wholes = [level_result(level, leaf, place) for place, leaf in enumerate(leaves)]
        del result, leaves  # what was made for the results alone need not be copied
        outs = [joined(level, whole, axis, place) for place, (whole, axis) in enumerate(zip(wholes, axes))]
        are_own = [has_axis for _, has_axis in wholes]
        del wholes
        stays = any([isinstance(out, Dual) or resolved(out)._node is not None for out in outs])
        has_tensors = examples.has_tensors or level.outer is not None
        if not (stays or has_tensors):
            outs = [owned(out) if is_own else owned(out.detach()) for out, is_own in zip(outs, are_own)]
            return tree.unflatten(structure, [without_shape(out._raw) for out in outs])
        return lowered(tree.unflatten(structure, outs), stays, has_tensors)

    return mapped


class Running:
    """Run a function on stacks: what it makes is known to belong to this `vmap`, and not used after it."""

    def __init__(self, size: int, randomness: str = "different", is_quiet: bool = False) -> None:
        self.level = Level(size, randomness, modes.mapping(), is_quiet)

    def __enter__(self) -> Level:
        self._token = modes.enter(mapping=self.level, inlining=True)
        return self.level

    def __exit__(self, *error: object) -> None:
        modes.leave(self._token)
        self.level.is_open = False


class Examples:
    """The arguments of a mapped function: their leaves, along which axis each has the examples, and how many."""

    def __init__(self, args: tuple[Any, ...], in_axes: Any) -> None:
        parts = list(matched("in_axes", _for_arguments(args, in_axes), args))
        shared = [x for axis, part in parts if axis is None for x in tree.leaves(part, is_leaf=tree.holds_variables)]
        as_they_are = {id(x) for x in shared if tree.holds_variables(x)}

        def is_leaf(x: Any) -> bool:
            return id(x) in as_they_are

        self.leaves, self.structure = tree.flatten_variables(args, is_leaf)
        self.axes = [axis for axis, part in parts for _ in tree.leaves(part, is_leaf)]
        self.has_tensors = any([isinstance(leaf, Tensor) or tree.holds_variables(leaf) for leaf in self.leaves])
        self.size = -1
        first = 0
        for i, axis in enumerate(self.axes):
            if axis is None:
                continue
            shape = self._shape(i)
            self.axes[i] = axis = self._checked(i, axis, len(shape))
            if self.size < 0:
                self.size, first = shape[axis], i
            elif shape[axis] != self.size:
                raise ShapeError(
                    f"vmap: {self._name(first)} has {self.size} examples (axis {self.axes[first]} of shape "
                    f"{self._shape(first)}), {self._name(i)} has {shape[axis]} (axis {axis} of shape {shape}). Write "
                    "None in in_axes for what all examples share."
                )
        if self.size < 0:
            raise ShapeError(
                "vmap: no argument has an axis of examples: in_axes is None everywhere, or there are no positional "
                "arguments. Call the function itself, or say which axis."
            )

    def _name(self, i: int) -> str:
        number, _, rest = self.structure._paths()[i][1:].partition("]")
        return f"argument {number}{rest}"

    def _shape(self, i: int) -> tuple[int, ...]:
        leaf = self.leaves[i]
        if not isinstance(leaf, Tensor) and backends.of(leaf) is None:
            shown = f"{leaf!r:.40}, of type {type(leaf).__name__}"
            if isinstance(leaf, (int, float, complex)):
                raise ShapeError(f"vmap: {self._name(i)} is {shown}, which has no axes. Write None for it in in_axes.")
            raise DtypeError(
                f"vmap: {self._name(i)} is {shown}, which is no array. Write None for it in in_axes, or pass it by "
                "keyword."
            )
        return tuple(leaf.shape)

    def _checked(self, i: int, axis: int, ndim: int) -> int:
        if not -ndim <= axis < ndim:
            raise ShapeError(
                f"vmap: in_axes says axis {axis} for {self._name(i)}, which has shape {self._shape(i)}. Write None in "
                "in_axes for what all examples share."
            )
        return axis % ndim

    def stacked(self, level: Level) -> tuple[Any, ...]:
        """The arguments of one example, inside of a level."""
        below = level.below()
        try:
            leaves = [
                leaf if axis is None else _first(asarray(leaf), axis) for leaf, axis in zip(self.leaves, self.axes)
            ]
        finally:
            modes.leave(below)
        return tree.unflatten(self.structure, [_of_example(level, x, axis) for x, axis in zip(leaves, self.axes)])


def _of_example(level: Level, x: Any, axis: int | None) -> Any:
    """An argument as one example has it; arrays that all examples share are tensors, too."""
    if axis is not None:
        return level.stacked(x)
    return level.lift(asarray(x)) if isinstance(x, Tensor) or backends.of(x) is not None else x


def _first(x: Tensor, axis: int) -> Tensor:
    if axis == 0:
        return x.clone()  # which may be written, and the caller's may change
    order = [axis, *[i for i in range(x.ndim) if i != axis]]
    return TENSORS.permute_dims(x, tuple([i - x.ndim for i in order]))


def _for_arguments(args: tuple[Any, ...], in_axes: Any) -> Any:
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ShapeError(
                f"vmap: in_axes has {len(in_axes)} entries, but the function was called with {len(args)} positional "
                "arguments. Write one for each; None for what all examples share, which may also be passed by keyword."
            )
        return tuple(in_axes)
    return in_axes


def axes_of(what: str, axes: Any, of: Any) -> list[int | None]:
    """An axis or None for every leaf of a tree, given those of the leaves or of whole parts of it."""
    return [axis for axis, part in matched(what, axes, of) for _ in tree.leaves(part)]


def matched(what: str, axes: Any, of: Any) -> Iterator[tuple[int | None, Any]]:
    """The parts of a tree for which there is one axis, or None, and that axis."""
    waiting = [(axes, of, "")]
    while waiting:
        axis, part, path = waiting.pop()
        if axis is None or (isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)):
            yield (None if axis is None else int(axis)), part
            continue
        axis_parts, axis_structure = _children(axis)
        parts, structure = _children(part)
        if axis_structure is None or axis_structure != structure:
            raise ShapeError(
                f"vmap: {what} has {axis!r:.60} where the {'arguments have' if what == 'in_axes' else 'result has'} "
                f"{_shown(part)}{' at ' + path if path else ''}. Write a number, None, or a tree like it of these."
            )
        steps = structure._paths()
        waiting += [(a, p, path + step) for a, p, step in zip(axis_parts, parts, steps)][::-1]


def _children(x: Any) -> tuple[list[Any], Any]:
    """The entries of a container and what it is without them; no structure for a leaf."""
    children, structure = tree.flatten(x, is_leaf=lambda part: part is not x)
    return children, None if len(children) == 1 and children[0] is x else structure


def _shown(part: Any) -> str:
    shape = getattr(part, "shape", None)
    return f"{part!r:.40}" if shape is None else f"an array of shape {tuple(shape)}"


def level_result(level: Level, leaf: Any, place: int) -> tuple[Any, bool]:
    """A leaf of a function's result as a tensor of the level below, and whether it has an axis of examples."""
    if not isinstance(leaf, Tensor) and backends.of(leaf) is None and not isinstance(leaf, (bool, int, float, complex)):
        raise DtypeError(
            f"vmap: the function returned {type(leaf).__name__}: {leaf!r:.60} (result {place}), which is no array. "
            "Return arrays, numbers and trees of them."
        )
    tensor = asarray(leaf, dtype=DTYPES.get(type(leaf)))
    own = resolved(tensor)
    if own._node is not None and not isinstance(own, Dual) and type(own._raw) is Stack and own._raw.level is level:
        raise GradientError(
            "vmap: a result requires a gradient with respect to a variable that was made inside of the function, which "
            "would be lost. Differentiate inside, `pb.vmap(pb.grad(f))`, or return `.detach()` of it."
        )
    return level.whole(tensor)


def joined(level: Level, whole: tuple[Any, bool], axis: int | None, place: int) -> Tensor:
    """A result with the examples where they are wanted."""
    x, has_axis = whole
    if axis is None:
        if has_axis:
            raise VmapError(
                f"vmap: out_axes is None for result {place}, of shape {x.shape[1:]}, which may differ from example to "
                "example. Say along which axis they are to be, or reduce it outside."
            )
        return x
    x = level.spread(x, has_axis)
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(
            f"vmap: out_axes says axis {axis} for result {place}, which has shape {x.shape[1:]} for one example: with "
            f"the examples it has {x.ndim} axes."
        )
    if axis % x.ndim == 0:
        return x
    order = list(range(1, x.ndim))
    order.insert(axis % x.ndim, 0)
    return TENSORS.permute_dims(x, tuple([i - x.ndim for i in order]))
