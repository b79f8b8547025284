"""Forms of reading and writing parts of arrays.

An index is what NumPy takes, with raw arrays in it: stacks where examples may have different ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import backends, dtypes
from ...errors import VmapError
from ..base import resolved
from ..sites import user_site
from ..tables import TENSORS
from .call import Call, without_stacks
from .forms import form
from .stack import Stack

_ALL = slice(None)


class Index:
    """An index of arrays of a shape, with every axis named: integers, slices, None, and arrays of integers."""

    def __init__(self, index: Any, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.parts = _full(index if type(index) is tuple else (index,), len(shape))
        self.has_arrays = any([hasattr(part, "shape") for part in self.parts])
        self.is_stacked = any([type(part) is Stack and part.is_stacked for part in self.parts])

    @property
    def advanced(self) -> list[int]:
        """Where the parts are that NumPy takes together: integers beside arrays are among them."""
        return [i for i, part in enumerate(self.parts) if hasattr(part, "shape") or type(part) is int]

    @property
    def rank(self) -> int:
        """How many axes the arrays broadcast to."""
        return max([len(part.shape) for part in self.parts if hasattr(part, "shape")], default=0)

    @property
    def are_together(self) -> bool:
        places = self.advanced
        return places[-1] - places[0] == len(places) - 1

    def read(self, x: Any, x_is_stacked: bool, size: int) -> Any:
        """The elements of a tensor of the level below, with the examples along its first axis."""
        before = (_ALL,) if x_is_stacked else ()
        if not self.has_arrays:
            return TENSORS.getitem(x, (*before, *self.parts))
        parts = [self._below(part, size) for part in self.parts]
        kept = sum([1 for part in self.parts[: self.advanced[0]] if type(part) is not int])  # axes before the arrays
        if not self.is_stacked:
            out = TENSORS.getitem(x, (*before, *parts))
            # arrays that are apart come first in the result
            return out if self.are_together else _first(out, self.rank)
        if not x_is_stacked:
            out = TENSORS.getitem(x, tuple(parts))
            return _first(out, kept) if self.are_together else out
        numbers = TENSORS.reshape(_numbers(size, x), (size, *(1,) * self.rank))
        out = TENSORS.getitem(x, (resolved(numbers)._raw, *parts))
        if self.are_together and self.advanced[0] > 0:  # beside the examples they are apart, and came first
            order = [0, *range(1 + self.rank, 1 + self.rank + kept), *range(1, 1 + self.rank)]
            order += range(1 + self.rank + kept, out.ndim)
            out = TENSORS.permute_dims(out, tuple([axis - out.ndim for axis in order]))
        return out

    def positions(self, size: int, like: Any) -> tuple[Any, bool]:
        """Where in the flat array of one example the index points, and whether that differs among examples."""
        count = math.prod(self.shape)
        numbers = TENSORS.reshape(_numbers(count, like), self.shape)
        found = self.read(numbers, False, size) if self.is_stacked else TENSORS.getitem(numbers, self.plain)
        return found, self.is_stacked

    @property
    def plain(self) -> Any:
        return tuple([without_stacks(part) for part in self.parts])

    def _below(self, part: Any, size: int) -> Any:
        """An entry of the index at the level below; arrays of examples get the axes that the others have."""
        if type(part) is not Stack or not part.is_stacked:
            return without_stacks(part)
        tensor = part.tensor
        if tensor.ndim - 1 < self.rank:
            ones = (1,) * (self.rank + 1 - tensor.ndim)
            tensor = TENSORS.reshape(tensor, (size, *ones, *tensor.shape[1:]))
        return resolved(tensor)._raw


def _full(parts: tuple[Any, ...], ndim: int) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        if hasattr(part, "dtype") and backends.of(part).dtype_of(part).kind == "bool":
            found += _nonzero(part)
        elif type(part) is bool or isinstance(part, np.bool_):
            _check_new_axis(part)
            found.append(None)
        else:
            found.append(int(part) if isinstance(part, np.integer) else part)
    taken = sum([1 for part in found if part is not None and part is not Ellipsis])
    rest = [_ALL] * (ndim - taken)
    places = [i for i, part in enumerate(found) if part is Ellipsis]
    if places:
        found[places[0] : places[0] + 1] = rest
        return found
    return found + rest


def _check_new_axis(flag: Any) -> None:
    if not flag:
        raise VmapError(f"{user_site()}: the index False selects nothing; inside of pb.vmap write `x[None][:0]`.")


def _nonzero(mask: Any) -> list[Any]:
    """A mask as arrays of integers, which select the same."""
    while type(mask) is Stack:  # of each level that is around
        if mask.is_stacked:
            raise VmapError(
                f"{user_site()}: indexing with a boolean mask selects so many elements, which may differ from example "
                "to example inside of pb.vmap. Write `pb.where(mask, x, y)`, or multiply by the mask."
            )
        mask = without_stacks(mask)
    backend = backends.of(mask)
    found = np.nonzero(backend.to_numpy(mask))
    return [backend.asarray(array, dtypes.int64, backend.device_of(mask), None) for array in found]


def _numbers(count: int, like: Any) -> Any:
    return TENSORS.arange(0, count, 1, like._backend.raw_dtype(dtypes.int64), like)


def _first(x: Any, axis: int) -> Any:
    """Move an axis to the front."""
    if axis == 0:
        return x
    order = [axis, *[i for i in range(x.ndim) if i != axis]]
    return TENSORS.permute_dims(x, tuple([i - x.ndim for i in order]))


@form
def getitem(call: Call) -> Any:
    index = Index(call.static[0], call.shape(0))
    if index.has_arrays:
        return index.read(call.on_tensors().xs[0], call.stacked[0], call.size)
    return call.xp.getitem(call.xs[0], (*((_ALL,) if call.stacked[0] else ()), *index.parts))


@form
def place(call: Call) -> Any:
    shape, given = call.static
    index = Index(given, tuple(shape))
    if not index.has_arrays:
        return call.xp.place(call.spread(0), (call.size, *shape), (_ALL, *index.parts))
    value = call.on_tensors().spread(0)
    where, size = _flat_index(index, call.size, value)
    count = math.prod(value.shape[1:])
    flat = TENSORS.reshape(value, (call.size * count,) if size is not None else (call.size, count))
    total = (size,) if size is not None else (call.size, math.prod(shape))
    return TENSORS.reshape(TENSORS.place(flat, total, where), (call.size, *shape))


@form
def setitem(call: Call) -> Any:
    return _written(call, "setitem")


@form
def index_add(call: Call) -> Any:
    return _written(call, "index_add")


def _written(call: Call, name: str) -> Any:
    shape = call.shape(0)
    index = Index(call.static[0], shape)
    if index.has_arrays:
        call = call.on_tensors()
    write = getattr(call.xp, name)
    x = call.spread(0)
    is_number = not hasattr(call.xs[1], "shape")
    if not index.has_arrays:
        value = call.xs[1] if is_number else _value(call, _result_rank(index.parts))
        return write(x, value, (_ALL, *index.parts))
    where, size = _flat_index(index, call.size, x)
    value = call.xs[1]
    if not is_number:
        wanted = index.positions(call.size, x)[0].shape[1 if index.is_stacked else 0 :]
        value = _value(call, len(wanted))
        full = (call.size, *wanted)
        value = TENSORS.broadcast_to(value, full) if value.shape != full else value
        value = TENSORS.reshape(value, (math.prod(full),) if size is not None else (call.size, math.prod(wanted)))
    flat = TENSORS.reshape(x, (size,) if size is not None else (call.size, math.prod(shape)))
    return TENSORS.reshape(write(flat, value, where), x.shape)


def _flat_index(index: Index, size: int, like: Any) -> tuple[Any, int | None]:
    """An index of flat examples, and None; or of all examples in one flat array, and its size."""
    positions, differs = index.positions(size, like)
    count = math.prod(index.shape)
    if not differs:
        return (_ALL, resolved(TENSORS.reshape(positions, (positions.size,)))._raw), None
    begins = TENSORS.multiply(_numbers(size, like), count)
    begins = TENSORS.reshape(begins, (size, *(1,) * (positions.ndim - 1)))
    flat = TENSORS.reshape(TENSORS.add(positions, begins), (positions.size,))
    return resolved(flat)._raw, size * count


def _result_rank(parts: list[Any]) -> int:
    return sum([1 for part in parts if type(part) is not int])


def _value(call: Call, rank: int) -> Any:
    """The value to write, with as many axes as what it is written to; it may have more that are 1."""
    value = call.xs[1]
    extra = call.rank(1) - rank
    if extra > 0:
        lead = (call.size,) if call.stacked[1] else ()
        return call.xp.reshape(value, lead + call.shape(1)[extra:])
    return call.aligned(1, rank)


# -- along one axis --------------------------------------------------------------------------------


@form
def take(call: Call) -> Any:
    if not call.stacked[1]:
        return call.run(call.xs, call.static)
    call = call.on_tensors()
    x, indices = call.xs
    (axis,) = call.static
    if call.stacked[0]:
        return TENSORS.take_along_axis(x, _along(indices, x.ndim - 1, axis), axis)
    count = indices.shape[1]
    taken = TENSORS.take(x, TENSORS.reshape(indices, (indices.size,)), axis)
    place = x.ndim + axis
    taken = TENSORS.reshape(taken, (*x.shape[:place], call.size, count, *x.shape[place + 1 :]))
    return _first(taken, place)


@form
def take_transposed(call: Call) -> Any:
    if not call.stacked[1]:
        return call.run(call.xs, call.static)
    call = call.on_tensors()
    indices = call.xs[1]
    size, axis = call.static
    where = _along(indices, call.rank(0), axis)
    return TENSORS.take_along_axis_transposed(call.spread(0), where, size, axis)


def _along(indices: Any, rank: int, axis: int) -> Any:
    """Indices (examples, n) as those of `take_along_axis` for arrays of `rank` axes."""
    shape = [1] * rank
    shape[axis] = indices.shape[1]
    return TENSORS.reshape(indices, (indices.shape[0], *shape))


@form
def along_axis(call: Call) -> Any:
    """Arrays of the same rank, which broadcast against each other but along one axis."""
    rank = max([call.rank(i) for i in range(len(call.xs))])
    xs = [call.aligned(i, rank) if hasattr(x, "shape") else x for i, x in enumerate(call.xs)]
    first = xs[0] if call.stacked[0] else call.xp.broadcast_to(xs[0], (call.size, *xs[0].shape))
    rest = [
        x if flag or not hasattr(x, "shape") else call.xp.expand_dims(x, (-len(x.shape) - 1,))
        for x, flag in zip(xs[1:], call.stacked[1:])
    ]
    return call.run([first, *rest], call.static)


@form
def searchsorted(call: Call) -> Any:
    if call.stacked[0] or call.stacked[2]:
        return examples_of(call)
    return call.run(call.xs, call.static)


@form
def isin(call: Call) -> Any:
    if not call.stacked[1]:
        return call.run(call.xs, call.static)
    return examples_of(call)


def examples_of(call: Call) -> Any:
    from .forms import FORMS

    return FORMS["examples"](call)
