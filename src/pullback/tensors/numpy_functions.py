"""NumPy's functions in terms of Pullback's, for tensors that need a gradient: NumPy's names, arguments and defaults.

The functions themselves are in `numpy_reductions`, `numpy_calculus`, `numpy_selection`, `numpy_shapes` and
`numpy_linalg`, by the name that they have in NumPy.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from ..errors import DtypeError
from . import (
    numpy_calculus,
    numpy_linalg,
    numpy_padding,
    numpy_quantiles,
    numpy_reductions,
    numpy_selection,
    numpy_shapes,
)  # fmt: skip
from .numpy_movement import is_movement, moved
from .numpy_protocols import refuse_output, written
from .numpy_values import as_numpys, rehearse, valued
from .tensor import Tensor

_NO_VALUE = np._NoValue
MODULES = (numpy_calculus, numpy_padding, numpy_quantiles, numpy_reductions, numpy_selection, numpy_shapes)

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

#: Functions that are NumPy's to the last bit as they are if only shapes and axes are said, so that their values need
#: not be computed twice.
DIRECT = frozenset((
    "amax", "amin", "concatenate", "copy", "cumprod", "cumsum", "expand_dims", "hstack", "linalg.det", "linalg.inv",
    "linalg.slogdet", "linalg.solve", "linalg.svd", "linalg.svdvals", "linalg.qr", "matrix_transpose", "max", "mean",
    "min", "moveaxis", "outer", "piecewise", "prod", "ravel", "reshape", "squeeze", "stack", "std", "sum", "swapaxes",
    "trace", "transpose", "tril", "triu", "var", "vstack", "where",
))  # fmt: skip
_PLAIN = frozenset((Tensor, int, float, bool, type(None), type(_NO_VALUE), np.ndarray))


def _is_direct(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether all that is said beside the arrays is a number or a tuple of numbers: axes, shapes."""
    if name == "piecewise":
        return True  # its functions are for tensors, and must not be called twice
    if name not in DIRECT:
        return name == "dot" and not kwargs and _is_product_of_matrices(*args)
    if not _NO_WORDS.issuperset(kwargs):
        return False
    for i, x in enumerate((*args, *kwargs.values()) if kwargs else args):
        kind = type(x)
        if kind not in _PLAIN and not (kind is tuple and all([type(part) is int for part in x])):
            if i or kind not in (list, tuple):
                return False
    return not (args and type(args[0]) is Tensor and args[0].ndim == 0)


def _is_product_of_matrices(x: Any, y: Any, *rest: Any) -> bool:
    """Whether BLAS computes `np.dot` of these in one call, as it does for `pb.dot`."""
    if rest or getattr(x, "ndim", 0) not in (1, 2) or getattr(y, "ndim", 0) not in (1, 2):
        return False
    return x.dtype == y.dtype and isinstance(x, (Tensor, np.ndarray)) and isinstance(y, (Tensor, np.ndarray))


_NO_WORDS = frozenset(("a", "axis", "axes", "keepdims", "shape", "arrays"))


class Entry(NamedTuple):
    """What is known of a NumPy function."""

    name: str  # as it is written after `np.`
    implementation: Callable[..., Any] | None  # None if it has no gradient, or only moves elements
    is_differentiable: bool
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
        modules = MODULES
        implementation = next((vars(m)["numpy_" + name] for m in modules if "numpy_" + name in vars(m)), None)
    if implementation is None:
        return Entry(name, None, is_movement(name), None, frozenset())
    own = implementation.__code__
    theirs = getattr(getattr(function, "_implementation", None), "__code__", own)  # NumPy's C functions have none
    takes_any_number = theirs.co_flags & 4
    return Entry(
        name,
        implementation,
        True,
        None if takes_any_number else tuple(_RENAMED.get(n, n) for n in theirs.co_varnames[: theirs.co_argcount]),
        frozenset(own.co_varnames[: own.co_argcount + own.co_kwonlyargcount]),
    )


def call(entry: Entry, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an implementation, with the values and the errors of NumPy's `function`."""
    name = entry.name
    if len(args) == 1 and not kwargs and name in DIRECT and type(args[0]) is Tensor and args[0].ndim:
        try:
            return entry.implementation(args[0])  # type: ignore[misc]
        except Exception as error:
            raise as_numpys(error, function, args, kwargs) from error
    named = kwargs if entry.positions is None else {**dict(zip(entry.positions, args)), **kwargs}
    out = named.get("out")
    if out is None and _is_direct(name, args, kwargs):
        try:
            return entry.implementation(*(args if entry.positions is None else ()), **_known(entry, named))  # type: ignore[misc]
        except Exception as error:
            if not is_movement(name):
                raise as_numpys(error, function, args, kwargs) from error
    if out is not None:
        if "out" not in kwargs:  # by position
            args, kwargs = (), named
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}

    def composed() -> Any:
        if entry.implementation is None:
            return moved(name, function, args, kwargs)
        try:
            return entry.implementation(*(args if entry.positions is None else ()), **_known(entry, named))
        except Exception:
            if not is_movement(name):
                raise
        return moved(name, function, args, kwargs)  # the long way, for every argument that NumPy has

    if name in WRITING:
        return _write(name, function, composed, args, kwargs)
    result = valued(function, composed, args, kwargs)
    return result if out is None else written(out, result, f"np.{name}(..., out=)")


def _write(name: str, function: Any, composed: Any, args: Any, kwargs: Any) -> None:
    """Let NumPy write to a copy, which raises its errors; then write what it wrote, with the gradient."""
    target = args[0] if args else next(iter(kwargs.values()))
    if not isinstance(target, Tensor):
        refuse_output(target, f"np.{name}")
    rehearse(function, args, kwargs)
    target[...] = composed()


def _known(entry: Entry, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an implementation has; others of NumPy's are refused by name."""
    given = {}
    for key, value in arguments.items():
        key = _RENAMED.get(key, key)
        if key in entry.known or entry.implementation.__code__.co_flags & 8:  # type: ignore[union-attr]
            given[key] = value
        elif not _says_nothing(key, value):
            raise DtypeError(f"np.{entry.name}: `{key}=` is not supported on a tensor that requires a gradient.")
    return given


def _says_nothing(key: str, value: Any) -> bool:
    """Whether an argument that is not supported has no meaning for the derivative, or is one that `call` sees to."""
    if key == "out" or value is None or value is _NO_VALUE:
        return True
    return (key == "where" and value is True) or key in ("casting", "subok", "overwrite_input", "copy", "kind", "like")
