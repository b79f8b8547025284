"""NumPy's own values with Pullback's derivatives.

A NumPy function on tensors that need a gradient is written in terms of Pullback's functions, which say what the
derivative is, to any order. Where these cannot be NumPy's to the last bit, on NaN, infinities, huge values and empty
arrays, and with NumPy's errors for wrong arguments, NumPy computes the values beside them from the raw arrays.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from .. import tree
from ..autodiff.base import resolved
from ..autodiff.custom import custom_op
from ..errors import GradientError
from .numpy_protocols import in_numpy, in_tensors, needs_gradient
from .tensor import Tensor

_of_numpy = custom_op(
    lambda x, value: value, name="numpy_value", x=lambda g: g, jvp=lambda primals, tangents: tangents[0]
)


def have_values(arguments: Any) -> bool:
    """Whether NumPy could be called with these: all tensors among them are NumPy's, and none is being traced."""
    return all(type(resolved(x)._raw) is np.ndarray for x in _tensors_in(arguments))


def _tensors_in(x: Any) -> Iterator[Any]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for part in x:
            yield from _tensors_in(part)
    elif type(x) is dict:
        yield from _tensors_in(tuple(x.values()))


def valued(function: Callable[..., Any], composed: Callable[[], Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    """The values (or the error) of NumPy's `function`, with the derivative of what `composed` computes."""
    if not have_values((args, kwargs)):
        return composed()
    values = in_tensors(function(*in_numpy(args), **in_numpy(kwargs)))
    if not any(x.size for x in _tensors_in(values) if x.dtype.kind in ("float", "complex")):
        return values  # nothing that could have a derivative
    if not any(x.size for x in _tensors_in((args, kwargs)) if needs_gradient(x)):
        return values
    with np.errstate(all="ignore"):  # NumPy has given its warnings already
        try:
            result = composed()
        except np.linalg.LinAlgError:  # where NumPy has a value, but there is no derivative
            undefined = sum(pb.sum(x * math.nan) for x in _tensors_in((args, kwargs)) if needs_gradient(x))
            result = tree.map(lambda value: undefined, values)
        return _joined(result, values)


def _joined(result: Any, values: Any) -> Any:
    if isinstance(values, (tuple, list)):
        parts = [_joined(part, value) for part, value in zip(result, values, strict=True)]
        return type(values)(*parts) if hasattr(values, "_fields") else type(values)(parts)
    if not isinstance(values, Tensor) or not needs_gradient(result) or values.dtype.kind not in ("float", "complex"):
        return values
    if result.dtype != values.dtype:
        result = pb.real(result) if (result.dtype.kind, values.dtype.kind) == ("complex", "float") else result
        result = pb.astype(result, values.dtype)
    if result.shape != values.shape:
        result = pb.broadcast_to(result, values.shape)
    return _of_numpy(result, values)


def as_numpys(error: Exception, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Exception:
    """An error of ours, or the one that NumPy's `function` raises, where ours is not of its class."""
    theirs = _error_of(function, args, kwargs) if have_values((args, kwargs)) else None
    return error if theirs is None or isinstance(error, (GradientError, _public_class(theirs))) else theirs


def rehearse(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
    """Let NumPy's `function` write to a copy of its first argument, which raises its errors."""
    if have_values((args, kwargs)):
        function(*in_numpy(_with_copy(args)), **in_numpy(_with_copy(kwargs)))


def _with_copy(arguments: Any) -> Any:
    """Arguments with a copy of the first of them."""
    if isinstance(arguments, dict):
        return {key: np.array(in_numpy(x)) if key in ("a", "arr", "dst") else x for key, x in arguments.items()}
    return (np.array(in_numpy(arguments[0])), *arguments[1:]) if arguments else arguments


def _error_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Exception | None:
    try:
        with np.errstate(all="ignore"):
            function(*in_numpy(args), **in_numpy(kwargs))
    except Exception as error:
        return error
    return None


def _public_class(error: Exception) -> type:
    """The class by which an error can be caught: NumPy's ufuncs raise private ones."""
    return next(kind for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
