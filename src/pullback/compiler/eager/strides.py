"""Arrays that do not lie in memory in the order of their indices, as views of arrays that do.

Programs take the address of an input's first element and expect its elements in order. An array with other strides is
given as a larger one that it is a part of: axes in the order of their strides, each as long as the step of the one
before allows, of which the view takes a part. What the larger one has beyond the view is never read.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Base(NamedTuple):
    """An array in order, and how a view is taken from it: a part, then its axes in another order, then new axes."""

    shape: tuple[int, ...]
    part: tuple[Any, ...]  # slices, and 0 for an axis that is not in the view
    order: tuple[int, ...]  # of the axes that are left
    kept: tuple[int, ...]  # the view's shape, with 1 for axes along which it repeats itself
    view: tuple[int, ...]

    def taken(self, xp: Any, base: Any) -> Any:
        """The view of `base`, an array of this shape, by the kernels of `xp`."""
        taken = base if all(part == slice(None) for part in self.part) else xp.getitem(base, self.part)
        if self.order != tuple(range(len(self.order))):
            taken = xp.permute_dims(taken, self.order)
        return xp.broadcast_to(xp.reshape(taken, self.kept), self.view)


def base_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Base | None:
    """The array in order that an array with these strides (in bytes) is a view of, or None if there is none."""
    axes = [axis for axis, (n, stride) in enumerate(zip(shape, strides)) if n != 1 and stride]
    if 0 in shape or any([strides[axis] < 0 or strides[axis] % itemsize for axis in axes]):
        return None
    axes.sort(key=lambda axis: -strides[axis])
    steps = [strides[axis] // itemsize for axis in axes]
    lengths: list[int] = []
    part: list[Any] = []
    for position, axis in enumerate(axes):
        before = steps[position - 1] if position else shape[axis] * steps[position]
        if before % steps[position] or before < shape[axis] * steps[position]:
            return None
        lengths.append(before // steps[position])
        part.append(slice(None) if lengths[-1] == shape[axis] else slice(0, shape[axis]))
    if steps and steps[-1] > 1:
        lengths.append(steps[-1])
        part.append(0)
    in_order = sorted(axes)
    return Base(
        tuple(lengths),
        tuple(part),
        tuple([axes.index(axis) for axis in in_order]),
        tuple([n if axis in axes else 1 for axis, n in enumerate(shape)]),
        shape,
    )
