"""Recurrences: linear ones, and those of any associative operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .. import tree
from ..autodiff.creation import given as asarray, result_type
from ..autodiff.fast import call_for
from ..errors import DtypeError, ShapeError
from .axes import negative_axis
from .manipulation import concat, expand_dims, flip, reshape, stack

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, R

__all__ = ["associative_scan", "ssm_scan"]

_ssm_scan = call_for("ssm_scan")


def ssm_scan(x: ArrayLike, a: Any, b: Any = None, h0: Any = None, axis: int = 0, reverse: bool = False) -> Tensor:
    """h[t] = a[t] h[t-1] + b[t] x[t] along `axis`: the states of a diagonal linear recurrence, at every step.

    Parameters
    ----------
    x : array
        Real or complex, with an axis of time.
    a : array
        The factors of the state; they broadcast to `x`. Constant ones have length 1 along the axis of time, or the
        shape of `x` without that axis, or are a number.
    b : array, optional
        The factors of `x`, likewise; by default 1.
    h0 : array, optional
        The state before the first step, which broadcasts to `x` without the axis of time; by default zero.
    axis : int
        That of time.
    reverse : bool
        Whether the last step is taken first.

    Returns
    -------
    Tensor
        The states, in the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ssm_scan(pb.tensor([1.0, 1.0, 1.0]), pb.tensor(0.5))
    tensor([1.  , 1.5 , 1.75])
    >>> pb.ssm_scan(pb.tensor([1.0, 1.0, 1.0]), pb.tensor(0.5), h0=pb.tensor(8.0), reverse=True)
    tensor([2.75, 3.5 , 5.  ])
    """
    x = _operand("x", x)
    if x.ndim == 0:
        raise ShapeError("ssm_scan: x must have an axis of time, got a number.")
    axis = negative_axis("ssm_scan", axis, x.ndim)
    a = _with_time("a", _operand("a", a, x), x.shape, axis)
    if b is not None:
        factor = _with_time("b", _operand("b", b, x), x.shape, axis)
        x = factor * x
    if h0 is not None:
        h0 = _operand("h0", h0, x)
        _check_broadcast("h0", h0, x.shape[:axis] + x.shape[x.ndim + axis + 1 :], "x without its axis of time")
    return _ssm_scan(x, a, h0, axis, bool(reverse))


def _operand(label: str, value: Any, x: Tensor | None = None) -> Tensor:
    """An argument as a tensor; a number takes the dtype and the device of `x`."""
    if x is not None and type(value) in (int, float, complex):
        value = asarray(value, dtype=result_type(x, value), device=x.device)
    value = asarray(value)
    if value.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"ssm_scan: {label} must be floating-point or complex, got {value.dtype.name}.")
    return value


def _with_time(label: str, value: Tensor, shape: tuple[int, ...], axis: int) -> Tensor:
    """A factor with an axis of time, which it may lack if it has all the others."""
    rest = shape[:axis] + shape[len(shape) + axis + 1 :]
    if value.shape == rest and len(rest) and -axis <= len(rest):  # else broadcasting puts the axis in where it belongs
        if _broadcasts(value.shape, shape):
            if value.shape[axis] != 1:
                raise ShapeError(
                    f"ssm_scan: {label} of shape {value.shape} can be constant in time or not, as its axis {axis} is "
                    f"as long as that of time: give it both axes, with length 1 for time if it is constant."
                )
        else:
            value = expand_dims(value, axis)
    _check_broadcast(label, value, shape, "x")
    return value


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))


def _check_broadcast(label: str, value: Tensor, shape: tuple[int, ...], of_what: str) -> None:
    if not _broadcasts(value.shape, shape):
        raise ShapeError(
            f"ssm_scan: {label} of shape {value.shape} does not broadcast to {shape}, the shape of {of_what}."
        )


def associative_scan(function: Callable[[Any, Any], R], elements: Any, axis: int = 0, reverse: bool = False) -> R:
    """What an associative operator makes of the first, the first two, the first three, ... slices of some arrays.

    It takes about log2(length) rounds, in each of which `function` gets many slices at once.

    Parameters
    ----------
    function : callable
        `function(earlier, later)` of trees like `elements`, of slices that lie along `axis`: it computes each with the
        one in its place, and must be associative.
    elements : tree of arrays
        All as long along `axis`.
    axis : int
        Along which slices lie.
    reverse : bool
        Whether to begin with the last slice: `function(those behind it, a slice)`.

    Returns
    -------
    tree of Tensor
        As `elements`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.associative_scan(pb.maximum, pb.tensor([1.0, 3.0, 2.0, 5.0, 4.0]))
    tensor([1., 3., 3., 5., 5.])
    >>> def compose(first, second):  # of x -> a x + b
    ...     return first[0] * second[0], second[0] * first[1] + second[1]
    >>> pb.associative_scan(compose, (pb.full(3, 0.5), pb.ones(3)))[1]
    tensor([1.  , 1.5 , 1.75])
    """
    if not callable(function):
        raise DtypeError(f"associative_scan: expected a function of two slices, got {type(function).__name__}.")
    leaves, structure = tree.flatten_variables(elements)
    arrays = [asarray(leaf) for leaf in leaves]
    if not arrays:
        raise ShapeError("associative_scan: there are no arrays in the elements.")
    for array in arrays:
        if array.ndim == 0:
            raise ShapeError("associative_scan: an element is a number, which has no slices.")
    axes = [negative_axis("associative_scan", axis, array.ndim) for array in arrays]
    lengths = [array.shape[at] for array, at in zip(arrays, axes)]
    if len(set(lengths)) > 1:
        raise ShapeError(f"associative_scan: expected arrays of the same length along axis {axis}, got {lengths}.")

    def combined(earlier: list[Tensor], later: list[Tensor]) -> list[Tensor]:
        made = function(tree.unflatten(structure, earlier), tree.unflatten(structure, later))
        found, other = tree.flatten_variables(made)
        if other != structure:
            raise DtypeError(
                f"associative_scan: the function made {other} of {structure}: expected the same structure."
            )
        for one, before in zip(found, later):
            if getattr(one, "shape", None) != before.shape:
                raise ShapeError(
                    f"associative_scan: of slices of shape {before.shape} the function made "
                    f"{getattr(one, 'shape', type(one).__name__)}: expected the same shape."
                )
        return [asarray(one) for one in found]

    if reverse:
        arrays = [flip(array, axis=at) for array, at in zip(arrays, axes)]
    done = _all_prefixes(combined, arrays, axes)
    if reverse:
        done = [flip(array, axis=at) for array, at in zip(done, axes)]
    return tree.unflatten(structure, done)


def _all_prefixes(combined: Callable[..., list[Tensor]], arrays: list[Tensor], axes: list[int]) -> list[Tensor]:
    """Those of pairs of slices are the ones at odd places; the others are those with one slice more."""
    length = arrays[0].shape[axes[0]]
    if length < 2:
        return arrays

    def part(of: list[Tensor], begin: int, end: int | None, step: int = 1) -> list[Tensor]:
        return [array[(..., slice(begin, end, step), *[slice(None)] * (-1 - at))] for array, at in zip(of, axes)]

    odd = _all_prefixes(combined, combined(part(arrays, 0, length - 1, 2), part(arrays, 1, None, 2)), axes)
    first, rest = part(arrays, 0, 1), part(arrays, 2, None, 2)
    if length > 2:
        first = _joined(first, combined(part(odd, 0, (length - 1) // 2), rest), axes)
    pairs = [_interleaved(a, b, at) for a, b, at in zip(part(first, 0, length // 2), odd, axes)]
    return _joined(pairs, part(first, length // 2, None), axes) if length % 2 else pairs


def _joined(first: list[Tensor], rest: list[Tensor], axes: list[int]) -> list[Tensor]:
    return [concat([a, b], axis=at) for a, b, at in zip(first, rest, axes)]


def _interleaved(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """The slices of two arrays by turns."""
    shape = list(a.shape)
    shape[axis] *= 2
    return reshape(stack([a, b], axis=axis), tuple(shape))
