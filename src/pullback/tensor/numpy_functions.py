"""NumPy's functions in terms of Pullback's, for tensors that need a gradient: NumPy's names, arguments and defaults.

The functions themselves are in `numpy_reductions`, `numpy_selection`, `numpy_shapes` and `numpy_linalg`, by the name
that they have in NumPy.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..errors import DtypeError
from . import numpy_linalg, numpy_reductions, numpy_selection, numpy_shapes

_NO_VALUE = np._NoValue

#: Functions whose results carry no gradient, so that NumPy may compute them from the values alone.
WITHOUT_GRADIENT = frozenset((
    "all", "allclose", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "array2string", "array_equal",
    "array_equiv", "array_repr", "array_str", "can_cast", "common_type", "count_nonzero", "digitize", "flatnonzero",
    "isclose", "iscomplex", "iscomplexobj", "isin", "isneginf", "isposinf", "isreal", "isrealobj", "lexsort",
    "linalg.matrix_rank", "may_share_memory", "nanargmax", "nanargmin", "ndim", "nonzero", "result_type",
    "searchsorted", "shape", "shares_memory", "size", "tril_indices_from", "triu_indices_from",
))  # fmt: skip

#: Functions that change an argument: they come here even if no tensor needs a gradient.
WRITING = frozenset(("copyto", "fill_diagonal", "put", "put_along_axis", "putmask", "place"))


def name_of(function: Any) -> str:
    """How a NumPy function is written after `np.`."""
    module = (getattr(function, "__module__", None) or "numpy").partition(".")[2].lstrip("_")
    return f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__


def find(name: str) -> Callable[..., Any] | None:
    """The implementation of a NumPy function, or None."""
    package, _, short = name.rpartition(".")
    if package:
        return numpy_linalg.find(package, short)
    for module in (numpy_reductions, numpy_selection, numpy_shapes):
        found = vars(module).get("numpy_" + name)
        if found is not None:
            return found
    return None


def call(function: Any, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an implementation; arguments of NumPy's that it does not have are refused by name."""
    code = implementation.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    args, kwargs = _by_name(function, code, args, kwargs)
    name = name_of(function)
    for key, value in kwargs.items():
        if key not in known and not _says_nothing(key, value):
            raise DtypeError(f"np.{name}: `{key}=` is not supported on a tensor that requires a gradient.")
    result = implementation(*args, **{key: value for key, value in kwargs.items() if key in known})
    out = kwargs.get("out")
    if out is None:
        return result
    from .numpy_protocols import written

    return written(out, result, f"np.{name}(..., out=)")


def _by_name(function: Any, own: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Arguments given by position under the names that they have in NumPy."""
    code = getattr(getattr(function, "_implementation", None), "__code__", own)  # NumPy's C functions have none
    if code.co_flags & 4:  # it takes any number of arguments
        return args, kwargs
    return (), {**dict(zip(code.co_varnames[: code.co_argcount], args)), **kwargs}


def _says_nothing(key: str, value: Any) -> bool:
    """Whether an argument that is not supported has no meaning, or is `out=`, which `call` takes care of."""
    if key == "out" or value is None or value is _NO_VALUE:
        return True
    return (key == "where" and value is True) or key in ("casting", "subok", "overwrite_input", "copy", "kind")
