"""Operations of the user's own on stacks: their `batch` rule, or one example after the other."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ... import backends, modes
from ...errors import ShapeError
from ..apply import apply, split
from ..base import TensorBase, make, resolved
from ..graph import user_frame
from ..tables import TENSORS
from .call import Call
from .forms import FORMS


def form(call: Call) -> Any:
    operation = call.operation
    if operation.batch is None:
        if not call.level.is_quiet:
            _note_loop(operation.name, call.size)
        return FORMS["examples"](call)
    static = dict(zip(operation.static, call.static))
    result = operation.batch(call.stacked, *call.xs, **static)
    for out in result if type(result) is tuple else (result,):
        if getattr(out, "shape", ())[:1] != (call.size,):
            raise ShapeError(
                f"the batch rule of `{operation.name}` returned shape {getattr(out, 'shape', None)}; expected the "
                f"{call.size} examples along the first axis."
            )
    return result


_noted: set[str] = set()


def _note_loop(name: str, size: int) -> None:
    if name in _noted:
        return
    _noted.add(name)
    frame = user_frame(sys._getframe(1)) or sys._getframe(1)
    warnings.warn_explicit(
        f"vmap: `{name}` has no batch rule and runs {size} times, example by example. Pass `batch=` to pb.custom_op.",
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )


def with_residuals(operation: Any, raws: Any, static: Any) -> Any:
    """Outputs and residuals, example by example; the latter are constants, whatever they were computed from."""
    call = Call(operation, raws, static)
    token = call.level.below()
    try:
        count = call.size if call.is_stacked else 1
        rows = [_all_results(operation, *call.example(number)) for number in range(count)]
        if not call.is_stacked:
            return call.stacks_of(rows[0], False)
        columns = zip(*rows) if rows else [[]] * (len(operation.outputs) + len(operation.residuals))
        return call.stacks_of(tuple([TENSORS.stack(list(column), -1 - column[0].ndim) for column in columns]), True)
    finally:
        modes.leave(token)


def _all_results(operation: Any, inputs: Any, static: Any) -> tuple[Any, ...]:
    outputs = apply(operation, tuple(inputs), static)
    outer = modes.mapping()
    tensors = [x if outer is None else outer.lift(x) for x in inputs]
    arrays = [resolved(x)._raw if isinstance(x, TensorBase) else x for x in tensors]
    backend = next(found for found in map(backends.of, arrays) if found is not None)
    residuals = split(operation, operation.kernel_for(backend)(*arrays, *static))[1]
    made = [make(backend.from_scalar(residual), None) for residual in residuals]
    return (*(outputs if isinstance(outputs, tuple) else (outputs,)), *made)
