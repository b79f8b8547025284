"""In which dtype an operation computes on another library's arrays: what NumPy's function of that name answers.

NumPy is asked once for each combination of dtypes; the answer is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes

#: NumPy makes floats of integers here, which the array API standard keeps.
_KEEPING_INTEGERS = frozenset(("floor", "ceil", "trunc", "round"))


def ufunc_of(name: str) -> Any:
    """NumPy's ufunc in whose dtypes the operation `name` computes, or None."""
    found = None if name in _KEEPING_INTEGERS else getattr(np, name, None)
    return found if isinstance(found, np.ufunc) else None


class Promotion:
    """Brings the inputs of one operation to the dtypes in which NumPy computes it; Python numbers become arrays."""

    def __init__(self, backend: Any, xp: Any, ufunc: Any) -> None:
        self._arrays = backend.array_types
        self._backend = backend
        self._xp = xp
        self._ufunc = ufunc
        self._known: dict[Any, Any] = {}

    def __call__(self, inputs: Any) -> list[Any]:
        arrays = self._arrays
        key = tuple([x.dtype if isinstance(x, arrays) else type(x) for x in inputs])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._resolved(inputs)
        return [self._converted(x, dtype, inputs) for x, dtype in zip(inputs, found)]

    def _converted(self, x: Any, dtype: Any, inputs: Any) -> Any:
        if not isinstance(x, self._arrays):
            return self._number(x, dtype, inputs)
        return x if x.dtype == dtype else self._xp.astype(x, dtype)

    def _number(self, value: Any, dtype: Any, inputs: Any) -> Any:
        """A Python number as an array of `dtype` beside the others; one outside its range is none, as in NumPy."""
        like = next(x for x in inputs if isinstance(x, self._arrays))
        own = self._backend._dtypes[dtype]
        if type(value) is int and own.kind in ("int", "uint"):
            limits = np.iinfo(own.numpy)
            if not limits.min <= value <= limits.max:
                raise OverflowError(f"Python integer {value} out of bounds for {own.name}")
        return self._xp.full((), value, dtype, like)

    def _resolved(self, inputs: Any) -> tuple[Any, ...]:
        backend = self._backend
        given = [backend.dtype_of(x) if isinstance(x, self._arrays) else type(x) for x in inputs]
        own = {dtype for dtype in given if isinstance(dtype, dtypes.DType)}
        if own == {dtypes.bfloat16}:  # NumPy knows it by another package only, and Python's floats count as wider there
            if self._ufunc.resolve_dtypes((np.dtype("float32"),) * len(given) + (None,)) and complex not in given:
                return tuple([backend.raw_dtype(dtypes.bfloat16)] * len(given))
        parts: list[Any] = [dtypes.numpy_dtype(d) if isinstance(d, dtypes.DType) else d for d in given]
        parts = [np.dtype(bool) if part is bool else part for part in parts]
        if dtypes.bfloat16 in own:
            parts = [int if part is float else part for part in parts]
        resolved = self._ufunc.resolve_dtypes((*parts, *(None,) * self._ufunc.nout))[: len(parts)]
        wide = backend.widest_float()
        found = [dtypes.from_numpy(dtype) for dtype in resolved]
        if wide is not dtypes.float64 and dtypes.float64 not in own:  # a library without it computes in what it has
            found = [wide if dtype is dtypes.float64 else dtype for dtype in found]
        return tuple(backend.raw_dtype(dtype) for dtype in found)
