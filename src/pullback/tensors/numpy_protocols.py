"""NumPy's own functions on tensors: `np.sin(t)` is recorded and differentiated as `pb.sin(t)` is.

A call in which no tensor needs a gradient is NumPy's, on the raw arrays; its arrays come back as tensors. Otherwise
the function is looked up in `numpy_ufuncs` and `numpy_functions`, which give NumPy's names and defaults in terms of
Pullback's functions. What is not there raises: a gradient is never lost silently.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Iterable

import numpy as np

from .. import backends, modes, tree
from ..autodiff import base
from ..autodiff.apply import kept_arrays
from ..autodiff.base import TensorBase, created, resolved, values_of
from ..autodiff.forward import Dual
from ..errors import DtypeError, GradientError
from .numpy_stepwise import method_of

if TYPE_CHECKING:
    pass


def needs_gradient(x: Any) -> bool:
    """Whether a derivative flows through `x` now."""
    if not isinstance(x, base.Tensor):
        return False
    return isinstance(x, Dual) or (resolved(x)._node is not None and modes.is_recording())


def in_numpy(x: Any) -> Any:
    """Arguments for NumPy, with raw arrays for tensors, in lists and dicts too."""
    if isinstance(x, base.Tensor):
        return values_of(x)
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([in_numpy(part) for part in x])
    return {key: in_numpy(value) for key, value in x.items()} if kind is dict else x


def in_tensors(result: Any) -> Any:
    """NumPy's results, with tensors for arrays of numbers, in tuples and named tuples too."""
    if isinstance(result, (np.ndarray, np.generic)):
        is_number = result.dtype.kind in "biufc" or result.dtype.name == "bfloat16"
        return created(np.asarray(result)) if is_number else result
    return tree.map(in_tensors, result) if isinstance(result, (tuple, list)) else result


def is_plain(arguments: Iterable[Any]) -> bool:
    """Whether NumPy may compute with these: no tensor among them needs a gradient, and all are NumPy's."""
    for x in arguments:
        kind = type(x)
        if kind is list or kind is tuple:
            if not is_plain(x):
                return False
        elif isinstance(x, base.Tensor) and (needs_gradient(x) or type(resolved(x)._raw) is not np.ndarray):
            return False
    return True


def refuse_output(out: Any, what: str) -> None:
    """Refuse to write a tensor that needs a gradient into a NumPy array, which cannot remember where it came from."""
    shape = np.shape(out)
    raise GradientError(
        f"{what}: a tensor that requires a gradient cannot be written into a NumPy array of shape {shape}. Make that "
        f"array a tensor, `np.zeros_like(t, shape={shape})`, or write `x = x + t` instead of `x += t`."
    )


def _plain_at(ufunc: Any, inputs: tuple[Any, ...]) -> None:
    target, *rest = inputs
    if isinstance(target, base.Tensor):
        changed = np.array(in_numpy(target))
        ufunc.at(changed, *in_numpy(rest))
        target[...] = changed
    else:
        ufunc.at(target, *in_numpy(rest))


def written(target: Any, result: Any, what: str) -> Any:
    """Write a result into `out`: a tensor is written as by `out[...] = result`, gradient included."""
    if isinstance(target, base.Tensor):
        target[...] = result
    elif needs_gradient(result):
        refuse_output(target, what)
    else:
        np.copyto(target, in_numpy(result), casting="same_kind")
    return target


class NumpyProtocols(TensorBase):
    """What NumPy calls."""

    __slots__ = ()
    __array_priority__ = 1000.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """A NumPy ufunc, or a method of one such as `np.add.reduce`, on tensors."""
        out = kwargs.pop("out", None)
        targets = out if isinstance(out, tuple) else () if out is None else (out,)
        if is_plain(inputs) and is_plain(kwargs.values()):
            if method == "at":
                return _plain_at(ufunc, inputs)
            if targets and "where" in kwargs:  # what is in `out` shows where the mask does not hold
                kwargs["out"] = tuple(None if target is None else np.array(in_numpy(target)) for target in targets)
            result = method_of(ufunc, method)(*in_numpy(inputs), **in_numpy(kwargs))
            results = result if isinstance(result, tuple) else (result,)
        else:
            from . import numpy_ufuncs

            try:
                result = numpy_ufuncs.call(ufunc, method, inputs, kwargs)
            except NotImplementedError as error:
                raise DtypeError(str(error)) from None
            if method == "at" or not targets:
                return result
            results = result if isinstance(result, tuple) else (result,)
        results = in_tensors(results)
        if targets:
            results = tuple(
                result if target is None else written(target, result, f"np.{ufunc.__name__}(..., out=)")
                for target, result in zip(targets, results)
            )
        return results[0] if len(results) == 1 else results

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A NumPy function that is no ufunc, on tensors."""
        from . import numpy_functions

        entry = numpy_functions.entry_of(function)
        name = entry.name
        writes = name in numpy_functions.WRITING and isinstance(args[0] if args else None, base.Tensor)
        if writes or not (is_plain(args) and is_plain(kwargs.values())):
            if entry.is_differentiable:
                kept = kept_arrays((*args, *kwargs.values()))  # arrays stay for the graph what they are now
                named = dict(zip(kwargs, kept[len(args) :]))
                return numpy_functions.call(entry, function, kept[: len(args)], named)
            if name not in numpy_functions.WITHOUT_GRADIENT:
                raise DtypeError(
                    f"np.{name} has no gradient here. Write it with functions that have one: see the page on NumPy "
                    "code in the documentation (docs/numpy.md). Pass `t.detach()` if its result is meant to be a "
                    "constant, without a gradient."
                )
        out = kwargs.get("out")
        if isinstance(out, base.Tensor):
            kwargs = {key: value for key, value in kwargs.items() if key != "out"}
            return written(out, self.__array_function__(function, types, args, kwargs), f"np.{name}(..., out=)")
        return in_tensors(function(*in_numpy(args), **in_numpy(kwargs)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The values for `np.asarray`: read-only where they share the tensor's memory."""
        if self._carries_derivative and modes.is_recording():
            from .lost_gradients import refuse_conversion

            refuse_conversion(self, "numpy.asarray", sys._getframe(1))
        values = values_of(self)
        if dtype is not None and values.dtype != dtype:
            if copy is False:
                raise ValueError(f"cannot convert {values.dtype} to {np.dtype(dtype)} without a copy, and copy=False.")
            return values.astype(dtype)
        return values.copy() if copy else backends.NUMPY.read_only(values)
