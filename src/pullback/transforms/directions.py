"""Many directions at once: the rows of a Jacobian by one walk, its columns by one run, with `vmap` inside."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from .. import backends, dtypes
from ..autodiff.base import created, resolved
from ..autodiff.engine import IDENTITY, in_order
from ..autodiff.hooks import hooks_of
from ..autodiff.tables import TENSORS
from ..operations import OPERATIONS
from ..tensors.tensor import Tensor
from .vmap import Running

LEAST = 12  # directions; up to there one after the other is as fast
MOST = 1 << 22  # elements of the arrays that all directions of one walk have


def unit_vectors(like: Tensor, places: range, value: Any = 1) -> Tensor:
    """Tensors like `like` of zeros with `value` at one flat position each, along a new first axis."""
    flat = np.zeros((len(places), like.size), dtypes.numpy_dtype(like.dtype))
    flat[np.arange(len(places)), places] = value
    return created(backends.transfer(flat.reshape(len(places), *like.shape), like.device))


def parts(count: int, elements: int) -> list[range]:
    """Directions that go together: as many as arrays of `elements` numbers each leave room for."""
    step = max(1, min(count, MOST // max(elements, 1)))
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def at_once(f: Callable[[Tensor], list[Any]], directions: Tensor) -> list[Tensor]:
    """What `f` gives for each direction, along a new first axis."""
    with Running(directions.shape[0], "same", is_quiet=True) as level:
        wholes = [level.whole(out) for out in f(level.stacked(directions))]
    return [level.spread(*whole) for whole in wholes]


def joined(parts: Sequence[Tensor]) -> Tensor:
    """What was found for some directions after the other, as one."""
    return TENSORS.concat(list(parts), -parts[0].ndim) if len(parts) > 1 else parts[0]


def are_walked_at_once(outputs: list[Tensor]) -> bool:
    """Whether no code of anybody else's would see many cotangents in place of one."""
    nodes = [node for out in outputs if (node := resolved(out)._node) is not None]
    order = in_order(nodes)
    operations = [node.recipe.operation for node in order if node.recipe not in (None, IDENTITY)]
    return not hooks_of(order) and all([OPERATIONS.get(operation.name) is operation for operation in operations])
