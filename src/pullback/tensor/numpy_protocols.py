"""NumPy's own functions on tensors: `np.sin(t)` is recorded and differentiated as `pb.sin(t)` is.

A call in which no tensor needs a gradient is NumPy's, on the raw arrays; its arrays come back as tensors. Otherwise
the function is looked up in `numpy_ufuncs` and `numpy_functions`, which give NumPy's names and defaults in terms of
Pullback's functions. What is not there raises: a gradient is never lost silently.
"""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from .. import backends, modes, tree
from ..autodiff.forward import Dual
from ..errors import DtypeError, GradientError
from .conversion import refuse_tracked
from .core import Tensor, make


def needs_gradient(x: Any) -> bool:
    """Whether a derivative flows through `x` now."""
    if not isinstance(x, Tensor):
        return False
    return isinstance(x, Dual) or (x._node is not None and modes.is_recording())


def in_numpy(x: Any) -> Any:
    """A tree of arguments for NumPy, with raw arrays for tensors."""
    return tree.map(lambda leaf: leaf._backend.to_numpy(leaf._data) if isinstance(leaf, Tensor) else leaf, x)


def in_tensors(result: Any) -> Any:
    """A tree of NumPy's results, with tensors for arrays of numbers."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "biufcV" and leaf.dtype.names is None:
            return make(np.asarray(leaf), None)
        return leaf

    return tree.map(one, result)


def is_plain(arguments: Iterable[Any]) -> bool:
    """Whether NumPy may compute with these: no tensor among them needs a gradient, and all are NumPy's."""
    return not any(isinstance(x, Tensor) and (needs_gradient(x) or x._backend is not backends.NUMPY) for x in arguments)


def refuse_output(out: Any, what: str) -> None:
    """Refuse to write a tensor that needs a gradient into a NumPy array, which cannot remember where it came from."""
    raise GradientError(
        f"{what}: a tensor that requires a gradient cannot be written into a NumPy array of shape {np.shape(out)}. "
        "Make that array a tensor (`np.zeros_like(t)`, `pb.zeros(...)`), or write `x = x + t` instead of `x += t`."
    )


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """A NumPy ufunc, or a method of one such as `np.add.reduce`, on tensors."""
    out = kwargs.pop("out", None)
    targets = out if isinstance(out, tuple) else () if out is None else (out,)
    if is_plain(tree.leaves((inputs, kwargs))):
        if method == "at":
            return _plain_at(ufunc, inputs)
        result = getattr(ufunc, method)(*in_numpy(inputs), **in_numpy(kwargs))
        results = result if isinstance(result, tuple) else (result,)
    else:
        from . import numpy_ufuncs

        try:
            result = numpy_ufuncs.call(ufunc, method, inputs, kwargs)
        except NotImplementedError as error:
            raise DtypeError(str(error)) from None
        if method == "at":
            return None
        results = result if isinstance(result, tuple) else (result,)
    results = in_tensors(results)
    if targets:
        results = tuple(
            result if target is None else _written(target, result, f"np.{ufunc.__name__}(..., out=)")
            for target, result in zip(targets, results)
        )
    return results[0] if len(results) == 1 else results


def _plain_at(ufunc: Any, inputs: tuple[Any, ...]) -> None:
    target, *rest = inputs
    if isinstance(target, Tensor):
        changed = np.array(in_numpy(target))
        ufunc.at(changed, *in_numpy(rest))
        target[...] = changed  # type: ignore[index]
    else:
        ufunc.at(target, *in_numpy(rest))


def _written(target: Any, result: Any, what: str) -> Any:
    """Write a result into `out`: a tensor is written as by `out[...] = result`, gradient included."""
    if isinstance(target, Tensor):
        target[...] = result  # type: ignore[index]
    elif needs_gradient(result):
        refuse_output(target, what)
    else:
        np.copyto(target, in_numpy(result), casting="same_kind")
    return target


def array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A NumPy function that is no ufunc, on tensors."""
    from . import numpy_functions

    name = numpy_functions.name_of(function)
    if name in numpy_functions.WRITING or not is_plain(tree.leaves((args, kwargs))):
        implementation = numpy_functions.find(name)
        if implementation is not None:
            return numpy_functions.call(name, implementation, args, kwargs)
        if name not in numpy_functions.WITHOUT_GRADIENT:
            raise DtypeError(
                f"np.{name} has no gradient here. Write it with functions that have one (see docs/numpy.md), or pass "
                "`t.detach()` if its result is meant to be a constant."
            )
    out = kwargs.get("out")
    if isinstance(out, Tensor):
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        return _written(out, array_function(self, function, types, args, kwargs), f"np.{name}(..., out=)")
    return in_tensors(function(*in_numpy(args), **in_numpy(kwargs)))


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The values for `np.asarray`: read-only where they share the tensor's memory."""
    refuse_tracked(self, "numpy.asarray")
    values = self._backend.to_numpy(self._data)
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ValueError(f"cannot convert {values.dtype} to {np.dtype(dtype)} without a copy, and copy=False.")
        return values.astype(dtype)
    return values.copy() if copy else backends.NUMPY.read_only(values)


Tensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
Tensor.__array_function__ = array_function  # type: ignore[attr-defined]
Tensor.__array__ = array  # type: ignore[attr-defined]
