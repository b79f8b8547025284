"""Every NumPy function that is accepted on tensors that require a gradient, with its calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.tensors import numpy_functions, numpy_ufuncs

from . import linalg_calls, shape_calls  # noqa: F401  # which register their calls
from .comparison import Call
from .function_calls import CALLS
from .ufunc_calls import accumulate_calls, outer_calls, reduce_calls, reduceat_calls, ufunc_calls

Row = tuple[str, Callable[..., Any], Callable[[], Iterator[Call]] | None]


def functions() -> Iterator[Row]:
    """(name, function, its calls) of what the tables accept; None for the calls that nobody wrote."""
    seen = set()
    for prefix, namespace in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for attribute in sorted(vars(namespace)):
            function = getattr(namespace, attribute)
            if attribute.startswith("_") or not callable(function) or isinstance(function, type) or function in seen:
                continue
            seen.add(function)
            if isinstance(function, np.ufunc):
                yield from _of_ufunc(function)
                continue
            if not hasattr(function, "_implementation") and prefix + attribute not in CALLS:
                continue  # not a function that NumPy asks tensors about
            entry = numpy_functions.entry_of(function)
            if entry.is_differentiable or entry.name in numpy_functions.WITHOUT_GRADIENT:
                writes = entry.name in numpy_functions.WRITING
                yield entry.name, shape_calls.written_by(entry.name) if writes else function, CALLS.get(entry.name)


def _of_ufunc(ufunc: Any) -> Iterator[Row]:
    name = ufunc.__name__
    if not numpy_ufuncs.is_accepted(ufunc):
        return
    yield name, ufunc, lambda: ufunc_calls(ufunc)
    if ufunc.signature is None and ufunc.nin == 2 and ufunc.nout == 1:
        yield f"{name}.outer", ufunc.outer, outer_calls
        yield f"{name}.accumulate", ufunc.accumulate, accumulate_calls
        yield f"{name}.reduce", _as_defined(ufunc) if name in ("power", "arctan2") else ufunc.reduce, reduce_calls
        yield f"{name}.reduceat", ufunc.reduceat, reduceat_calls


def _as_defined(ufunc: Any) -> Callable[..., Any]:
    """`ufunc.reduce` by its definition: on some processors NumPy sees the first element and the last alone."""

    def reduce(*args: Any, **kwargs: Any) -> Any:
        result = ufunc.reduce(*args, **kwargs)
        x, initial = args[0], kwargs.get("initial")
        if not isinstance(x, np.ndarray) or x.ndim == 0:
            return result
        axis = args[1] if len(args) > 1 else kwargs.get("axis", 0)
        axes = tuple(i % x.ndim for i in (range(x.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis))
        mask = np.broadcast_to(kwargs.get("where", True), x.shape)
        kept = np.array(np.reshape(result, [1 if i in axes else n for i, n in enumerate(x.shape)]))
        for place in np.ndindex(kept.shape):
            line = tuple(slice(None) if i in axes else slice(j, j + 1) for i, j in enumerate(place))
            values = ([] if initial is None else [initial]) + list(x[line][mask[line]])
            kept[place] = functools.reduce(ufunc, [np.full(1, v, kept.dtype) for v in values])[0]
        return kept.reshape(np.shape(result))[()]

    return reduce
