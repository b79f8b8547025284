"""Every NumPy function that is accepted on tensors that require a gradient, with its calls."""

from __future__ import annotations

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
        yield f"{name}.reduce", ufunc.reduce, reduce_calls
        yield f"{name}.reduceat", ufunc.reduceat, reduceat_calls
