"""Shapes and dtypes of what kernels make: by rule for the frequent ones, else by running NumPy's kernel on an example.

An example has the shapes and dtypes of the arguments and takes no memory: one element, repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, modes
from ...errors import TraceError
from ...functions.shapes import broadcast_shapes
from ...operations import MOST_AXES, OPERATIONS
from ..host import HOST
from ..program import Value, mapped, values_in
from .forms import FORMS, Form

_found: dict[Any, Form] = {}
_LIMIT = 20_000  # forms remembered


def form_of(op: str, args: tuple[Any, ...]) -> Form:
    """The shape and dtype of what kernel `op` makes of `args`."""
    key = (op, _key(args))
    try:
        return _found[key]
    except KeyError:
        form = _found_anew(op, args)
    if len(_found) > _LIMIT:
        _found.clear()
    _found[key] = form
    return form


def library_form_of(library: Any, op: str, args: tuple[Any, ...]) -> Form:
    """The same of a library's own kernel: what the library says without computing it."""
    key = (library.name, library.widest_float(), op, _key(args))
    try:
        return _found[key]
    except KeyError:
        pass
    if op in _BY_HOST:
        form = _found_anew(op, args)
        form = form if type(form) is list else (form[0], library.raw_dtype(dtypes.from_numpy(form[1])))
    else:
        _refuse_unknown_shapes(op, args)
        form = _form_of_examples(library.abstract(getattr(library.xp, op), mapped(args, library.example)))
    if len(_found) > _LIMIT:
        _found.clear()
    _found[key] = form
    return form


#: Kernels that run on the host, whatever the device.
_BY_HOST = frozenset(("draw", "call_custom"))


def _form_of_examples(made: Any) -> Form:
    """The form of what a kernel made of examples."""
    if made is None:
        return None
    if isinstance(made, (tuple, list)):
        return [_form_of_examples(part) for part in made]
    return tuple(made.shape), np.dtype(made.dtype)


def _key(arg: Any) -> Any:
    kind = type(arg)
    if kind is Value:
        return (arg.shape, arg.dtype)
    if kind is tuple:
        return tuple([_key(part) for part in arg])
    if kind is slice:
        return ("slice", arg.start, arg.stop, arg.step)
    return (kind, arg)  # 1, 1.0 and True are different operands


def _refuse_unknown_shapes(op: str, args: tuple[Any, ...]) -> None:
    operation = OPERATIONS.get(op)
    if operation is not None and operation.instead:
        raise TraceError(f"`{op}` has a result whose shape depends on values. Write {operation.instead}.")
    if op in ("getitem", "setitem", "place", "index_add") and any(v.dtype == bool for v in values_in((args[-1],))):
        raise TraceError(
            f"`{op}` with a boolean mask has a result whose shape depends on values. Write `pb.where(mask, x, other)`."
        )


def _found_anew(op: str, args: tuple[Any, ...]) -> Form:
    _refuse_unknown_shapes(op, args)
    operation = OPERATIONS.get(op)
    if op == "call_custom":
        return args[0].form(args[1:])
    known = FORMS[op](*args) if op in FORMS else None
    if known is not None:
        return known
    if operation is None:
        return _by_example(op, args)
    if operation.elementwise and not operation.static:
        return _broadcast([v.shape for v in values_in(args)]), _example_dtype(op, args)
    if operation.reduces:
        x, axis, keepdims = (*args, None, False)[:3] if len(args) < 3 else args[:3]
        return _reduced(x.shape, axis, keepdims), _example_dtype(op, (Value((1,), x.dtype), None, False))
    shape = operation.shape and operation.shape(*[v.shape for v in values_in(args)])
    if shape is None:
        return _by_example(op, args)  # which raises what NumPy's kernel says where nothing fits
    return shape, _example_dtype(op, tuple([Value((1, 1), arg.dtype) for arg in args]))


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    few = max(map(len, shapes), default=0) <= MOST_AXES
    return np.broadcast_shapes(*shapes) if few else broadcast_shapes(*shapes)


def _reduced(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else [a % len(shape) for a in (axis if type(axis) is tuple else (axis,))]
    if keepdims:
        return tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _example_dtype(op: str, args: tuple[Any, ...]) -> Any:
    """The dtype of a result that does not depend on shapes: from an example of one element each."""
    small = tuple([Value((1,) * min(a.ndim, 2), a.dtype) if type(a) is Value else a for a in args])
    return np.asarray(_example_call(op, small)).dtype


def _by_example(op: str, args: tuple[Any, ...]) -> Form:
    return _form(_example_call(op, args))


def _form(result: Any) -> Form:
    if result is None:
        return None
    if isinstance(result, (tuple, list)):
        return [_form(part) for part in result]
    array = np.asarray(result)
    return array.shape, array.dtype


def _example_call(op: str, args: tuple[Any, ...]) -> Any:
    with modes.changed(tracing=None), np.errstate(all="ignore"):  # a kernel may use generators, as `draw` does
        return getattr(HOST, op)(*[_example(arg, _is_of_matrices(op)) for arg in args])


def _is_of_matrices(op: str) -> bool:
    """Whether an example must be an invertible matrix."""
    operation = OPERATIONS.get(op)
    return operation is not None and operation.standard == "linalg" and operation.dtypes == "floating"


def _example(arg: Any, matrix: bool) -> Any:
    if type(arg) is Value:
        if matrix and arg.ndim > 1:
            return np.broadcast_to(np.eye(*arg.shape[-2:], dtype=arg.dtype), arg.shape)
        number = 0 if arg.dtype.kind in "iu" else 1  # an index must be in range
        return np.broadcast_to(np.asarray(number).astype(arg.dtype), arg.shape)
    if type(arg) is tuple:
        return tuple([_example(part, matrix) for part in arg])
    return arg
