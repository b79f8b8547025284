"""NumPy's functions in terms of Pullback's, for tensors that need a gradient: NumPy's names, arguments and defaults.

The functions themselves are in `numpy_reductions`, `numpy_calculus`, `numpy_selection`, `numpy_shapes` and
`numpy_linalg`, by the name that they have in NumPy.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from ..errors import DtypeError
from . import numpy_calculus, numpy_linalg, numpy_reductions, numpy_selection, numpy_shapes

_NO_VALUE = np._NoValue

#: Functions whose results carry no gradient, so that NumPy may compute them from the values alone.
WITHOUT_GRADIENT = frozenset((
    "all", "allclose", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "array2string",
    "array_equal", "array_equiv", "array_repr", "array_str", "can_cast", "common_type", "count_nonzero",
    "diag_indices_from", "digitize", "einsum_path", "flatnonzero", "isclose", "iscomplex", "iscomplexobj", "isin",
    "isneginf", "isposinf", "isreal", "isrealobj", "lexsort", "linalg.matrix_rank", "may_share_memory", "nanargmax",
    "nanargmin", "ndim", "nonzero", "result_type", "searchsorted", "shape", "shares_memory", "size",
    "tril_indices_from", "triu_indices_from",
))  # fmt: skip

#: Functions that change an argument: they come here even if no tensor needs a gradient.
WRITING = frozenset(("copyto", "fill_diagonal", "put", "put_along_axis", "putmask", "place"))


class Entry(NamedTuple):
    """What is known of a NumPy function."""

    name: str  # as it is written after `np.`
    implementation: Callable[..., Any] | None
    positions: tuple[str, ...] | None  # the names of arguments given by position; None if there may be any number
    known: frozenset[str]  # the arguments that the implementation has


_RENAMED = {"newshape": "shape"}  # NumPy 2.0's name for an argument that later versions call by another
_entries: dict[Any, Entry] = {}


def entry_of(function: Any) -> Entry:
    found = _entries.get(function)
    if found is None:
        found = _entries[function] = _entry(function)
    return found


def _entry(function: Any) -> Entry:
    package = (getattr(function, "__module__", None) or "numpy").partition(".")[2].lstrip("_")
    if package in ("linalg", "fft"):
        name = f"{package}.{function.__name__}"
        implementation = numpy_linalg.find(package, function.__name__)
    else:
        name = function.__name__
        modules = (numpy_calculus, numpy_reductions, numpy_selection, numpy_shapes)
        implementation = next((vars(m)["numpy_" + name] for m in modules if "numpy_" + name in vars(m)), None)
    if implementation is None:
        return Entry(name, None, None, frozenset())
    own = implementation.__code__
    theirs = getattr(getattr(function, "_implementation", None), "__code__", own)  # NumPy's C functions have none
    takes_any_number = theirs.co_flags & 4
    return Entry(
        name,
        implementation,
        None if takes_any_number else tuple(_RENAMED.get(n, n) for n in theirs.co_varnames[: theirs.co_argcount]),
        frozenset(own.co_varnames[: own.co_argcount + own.co_kwonlyargcount]),
    )


def call(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an implementation; arguments of NumPy's that it does not have are refused by name."""
    if entry.positions is not None:
        args, kwargs = (), {**dict(zip(entry.positions, args)), **kwargs}
    given = {}
    for key, value in kwargs.items():
        key = _RENAMED.get(key, key)
        if key in entry.known:
            given[key] = value
        elif not _says_nothing(key, value):
            raise DtypeError(f"np.{entry.name}: `{key}=` is not supported on a tensor that requires a gradient.")
    result = entry.implementation(*args, **given)  # type: ignore[misc]
    out = kwargs.get("out")
    if out is None:
        return result
    from .numpy_protocols import written

    return written(out, result, f"np.{entry.name}(..., out=)")


def _says_nothing(key: str, value: Any) -> bool:
    """Whether an argument that is not supported has no meaning, or is `out=`, which `call` takes care of."""
    if key == "out" or value is None or value is _NO_VALUE:
        return True
    return (key == "where" and value is True) or key in ("casting", "subok", "overwrite_input", "copy", "kind")
