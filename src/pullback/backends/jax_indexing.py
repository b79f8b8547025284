"""Reading and writing parts of JAX's arrays, where they are: positions are not brought to the host.

JAX itself has no error for a position outside of an array. On processors positions are looked at, which costs little
there. On other devices that would be waiting for the device; what is read outside is NaN there, which the guard finds,
and what is written outside is left out. A mask says how many elements there are: it is read, as JAX does itself.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .standard_indexing import Indexing, basic_index


def indexing_kernels(backend: Any, general: Indexing) -> dict[str, Any]:
    """The kernels; `general` fits values to the place that they are written to."""

    def getitem(x: Any, index: Any) -> Any:
        if basic_index(index, x.shape) is None and is_checked(x, index):
            return x.at[_native(index)].get(mode="fill")
        return x[_native(index)]

    def setitem(x: Any, value: Any, index: Any) -> Any:
        parts = _native(index)
        value = fitting(x, value, parts)
        if basic_index(index, x.shape) is None and is_checked(x, index) and _may_repeat(parts):
            return _set_last(x, value, parts)
        return x.at[parts].set(value)

    def index_add(x: Any, value: Any, index: Any) -> Any:
        if basic_index(index, x.shape) is None:
            is_checked(x, index)
        parts = _native(index)
        return x.at[parts].add(fitting(x, value, parts))

    def place(value: Any, shape: Any, index: Any) -> Any:
        """Zeros with `value` added at `index`; around slices it is padded, which is one pass over the result."""
        basic = basic_index(index, tuple(shape))
        if basic is None:
            return index_add(backend.xp.zeros(tuple(shape), value.dtype, value), value, index)
        lengths, padding, reversed_axes = _around(basic, tuple(shape))
        value = value.reshape(lengths)
        if reversed_axes:
            value = jax.lax.rev(value, reversed_axes)
        return jax.lax.pad(value, np.zeros((), value.dtype), padding)

    def is_checked(x: Any, index: Any) -> bool:
        """Whether the positions are known; those outside raise where the array is on a processor."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, jax.core.Tracer) for part in (x, *parts)):
            return False
        if not backend.is_on_device(x):
            check_bounds(x.shape, tuple(np.asarray(p) if isinstance(p, jax.Array) else p for p in parts))
        return True

    def fitting(x: Any, value: Any, parts: Any) -> Any:
        """A value without more axes than the place it is written to: JAX does not drop leading ones."""
        if not getattr(value, "ndim", 0):
            return value
        if value.shape[0] != 1:
            return value.astype(x.dtype)
        return general._fitting(value, x, x[parts].shape)

    return {"getitem": getitem, "setitem": setitem, "index_add": index_add, "place": place}


def _around(basic: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[list[int], list[tuple[int, int, int]], list[int]]:
    """How many elements a basic index names along each axis, how many lie before, after and between, which go back."""
    lengths, padding, reversed_axes = [], [], []
    parts = [part for part in basic if part is not None]
    for axis, (part, size) in enumerate(zip(parts, shape)):
        chosen = range(size)[part] if isinstance(part, slice) else range(part % size, part % size + 1)
        lengths.append(len(chosen))
        if chosen.step < 0:
            reversed_axes.append(axis)
            chosen = chosen[::-1]
        padding.append((chosen[0], size - 1 - chosen[-1], chosen.step - 1) if chosen else (0, size, 0))
    return lengths, padding, reversed_axes


def check_bounds(shape: tuple[int, ...], parts: tuple[Any, ...]) -> None:
    """Raise as NumPy does for positions outside of an array of `shape`; axes that are taken whole do not count."""
    used = sum(np.ndim(p) if _is_mask(p) else p is not None and p is not Ellipsis for p in parts)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    whole = [slice(None)] * max(len(shape) - used, 0)
    parts = (*parts[:at], *whole, *parts[at + 1 :])
    looked_at, axis = list(shape), 0
    for part in parts:
        if isinstance(part, slice) and part == slice(None):
            looked_at[axis] = 1
        axis += np.ndim(part) if _is_mask(part) else part is not None
    np.broadcast_to(np.int8(0), tuple(looked_at))[parts]


def _is_mask(part: Any) -> bool:
    return not isinstance(part, (slice, int)) and getattr(part, "dtype", None) == np.bool_


def _native(index: Any) -> tuple[Any, ...]:
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(np.asarray(part) if isinstance(part, list) else part for part in parts)


def _may_repeat(parts: tuple[Any, ...]) -> bool:
    """Whether an index can name a place twice."""
    return any(getattr(part, "size", 0) > 1 and not _is_mask(part) for part in parts)


def _set_last(x: Any, value: Any, parts: tuple[Any, ...]) -> Any:
    """`x` with a value at each place: of those for one place the last, which JAX does not promise."""
    places = jnp.arange(x.size).reshape(x.shape).at[parts].get(mode="fill", fill_value=x.size)
    values = jnp.broadcast_to(jnp.asarray(value, x.dtype), places.shape).reshape(-1)
    order = jnp.arange(1, places.size + 1)
    last = jnp.zeros(x.size, order.dtype).at[places.reshape(-1)].max(order, mode="drop")
    found = values.at[last - 1].get(mode="clip") if places.size else x.reshape(-1)
    return jnp.where(last > 0, found, x.reshape(-1)).reshape(x.shape)
