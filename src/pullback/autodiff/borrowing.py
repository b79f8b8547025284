"""NumPy arrays that meet variables in the user's own code, and may be filled anew before the graph is walked.

A rule keeps its operands until the walk. Of an array that the user has passed to an operation, rather than made a
tensor of, nobody has promised that it stays as it is. A small one is copied for the graph, once for each content. A
large one is shared, and the walk looks whether it still has the elements that it had.
"""

from __future__ import annotations

import weakref
from typing import Any, Iterable

import numpy as np

from ..errors import GradientError

#: Bytes up to which arrays are copied.
LARGEST_COPY = 1 << 20
_SAMPLES = 256  # elements of a large array that are looked at, about

_copies: dict[int, tuple[Any, Any]] = {}  # by the identity of an array: references to it and to its last copy
_shared: dict[int, tuple[Any, bytes]] = {}  # by the identity of a view in a graph: a reference to it, and its elements


def kept(array: Any) -> Any:
    """An array for a graph in place of the user's: a copy, or a view that `refuse_changes` looks at."""
    if type(array) is not np.ndarray or (array.flags.owndata and not array.flags.writeable):
        return array
    if array.nbytes > LARGEST_COPY:
        view, key = array.view(), 0
        key = id(view)
        _shared[key] = (weakref.ref(view, lambda _: _shared.pop(key, None)), sample(view))
        return view
    key = id(array)
    known = _copies.get(key)
    if known is not None and known[0]() is array:
        copy = known[1]()
        if copy is not None and _is_same(array, copy):
            return copy
    copy = np.array(array)
    _copies[key] = (weakref.ref(array, lambda _: _copies.pop(key, None)), weakref.ref(copy))
    return copy


def _is_same(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


def sample(array: np.ndarray) -> bytes:
    """Some elements from everywhere in an array."""
    most = max(int(_SAMPLES ** (1 / array.ndim)), 2)
    return bytes(array[tuple([slice(None, None, -(-length // most)) for length in array.shape])].tobytes())


def refuse_changes(nodes: Iterable[Any]) -> None:
    """Raise if a large array that these nodes of a graph have kept is not what it was."""
    changed = [view for reference, before in list(_shared.values())
               if (view := reference()) is not None and sample(view) != before]  # fmt: skip
    if not changed:
        return
    suspects = {id(view) for view in changed}
    for node in nodes:
        for value in node.saved or ():
            if id(value) in suspects:
                raise GradientError(
                    f"the gradient needs an array of shape {value.shape} as it was when it met a tensor, in "
                    f"`{node.recipe.operation.name}`, but it was written in place since. Write into a new array at "
                    "every step, or pass `pb.tensor(array)`, which copies."
                )


def has_shared() -> bool:
    """Whether there is anything to look at."""
    return bool(_shared)
