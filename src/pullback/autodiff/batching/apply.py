"""Running an operation on stacks: as tensors that may be tracked at this level, and as raw arrays."""

from __future__ import annotations

from typing import Any

from ... import backends, modes
from ...backends import portable
from ...operations import OPERATIONS, Operation
from .. import base
from ..apply import as_operands, made_by, record, split
from ..base import make
from ..creation import asarray
from ..custom import CustomOperation
from ..explanation import explained
from ..forward import Dual, apply as apply_to_duals
from ..graph import origin, users_site
from ..tables import CREATION, TENSORS
from . import custom
from .call import Call
from .forms import HELPERS, KEEPING_RESIDUALS, form_for, form_for_none
from .stack import STACK_BACKEND, Level, Stack


def apply(level: Level, operation: Operation, inputs: Any, static: Any) -> Any:
    """Run an operation on tensors of a level, and record it if one of them is tracked there."""
    inputs = as_operands(inputs, operation)
    if any([isinstance(x, Dual) and x.level > level.number for x in inputs]):
        return apply_to_duals(operation, tuple(inputs), static)
    for x in inputs:
        if isinstance(x, base.Tensor) and type(x) is not base.Tensor and not isinstance(x, Dual):
            return x._apply(operation, tuple(inputs), static)
    mode = modes.current()
    assert mode is not None  # the level is a part of it
    if mode.autocast is not None:
        inputs = mode.autocast.cast(operation, inputs, static)
    if not any([isinstance(x, base.Tensor) for x in inputs]):
        inputs = [x if x is None else asarray(x) for x in inputs]
    tensors = [level.lift(x) for x in inputs]
    raws = [x._raw if isinstance(x, base.Tensor) else x for x in tensors]
    nodes = [x._node if isinstance(x, base.Tensor) else None for x in tensors]
    if not (mode.recording and any([node is not None for node in nodes])):
        result = on_stacks(operation, raws, static)
        return tuple([make(out, None) for out in result]) if type(result) is tuple else make(result, None)
    before = origin.site
    if before is None:
        origin.site = users_site()
    try:
        outputs, residuals = split(operation, with_residuals(operation, raws, static))
        node = record(STACK_BACKEND, operation, raws, nodes, static, outputs, residuals)
    finally:
        origin.site = before
    if node is not None:
        return made_by(node, STACK_BACKEND, operation, outputs)
    made = tuple([make(out, None) for out in outputs])
    return made if operation.has_several_outputs else made[0]


def on_stacks(operation: Operation, raws: Any, static: Any) -> Any:
    """An operation's result, without residuals: stacks, of stacks, numbers and None."""
    call = Call(operation, raws, static)
    token = call.level.below()
    try:
        if not call.is_stacked:
            return call.stacks_of(call.run(call.xs, call.static), False)
        if isinstance(operation, CustomOperation):
            return call.stacks_of(custom.form(call), True)
        form = form_for(operation) if call.size or call.has_stacks_inside else form_for_none(operation)
        result = None if form is None else _explained(form, call, raws, static)
        if result is not None:
            return call.stacks_of(result, True)
    finally:
        modes.leave(token)
    kernel = portable.bind(operation.name, STACKS)
    result = kernel(list(raws), *static) if operation.variadic else kernel(*raws, *static)
    outputs = split(operation, result)[0]
    return outputs if operation.has_several_outputs else outputs[0]


def _explained(form: Any, call: Call, raws: Any, static: Any) -> Any:
    """What a form gives; errors of the kernels that it calls name the operation, as one example sees it."""
    try:
        return form(call)
    except Exception as error:
        found = explained(call.operation, list(raws), static, error)
        if found is error:
            raise
        raise found from error


def with_residuals(operation: Operation, raws: Any, static: Any) -> Any:
    """What the kernel of an operation gives on stacks."""
    if not operation.residuals:
        return on_stacks(operation, raws, static)
    if isinstance(operation, CustomOperation):
        return custom.with_residuals(operation, raws, static)
    found = _by_kernel(operation, raws, static)
    if found is not None:
        return found
    return portable.bind(operation.name, STACKS)(*raws, *static)


def _by_kernel(operation: Operation, raws: Any, static: Any) -> Any:
    """Outputs and residuals of the kernel of the library, where they are those of the portable form; else None."""
    form = form_for(operation)
    if form is None or form not in KEEPING_RESIDUALS:
        return None
    call = Call(operation, raws, static)
    if not call.is_raw or not call.size or not backends.of(call.array).keeps_as_declared:
        return None
    call.keeps_residuals = True
    token = call.level.below()
    try:
        result = form(call) if call.is_stacked else call.run(call.xs, call.static)
        return None if result is None else call.stacks_of(result, call.is_stacked)
    finally:
        modes.leave(token)


class StackKernels:
    """Every operation under its name and with its kernel's signature, on stacks: what rules see at this level."""

    def dropout_mask(self, x: Stack, p: float, key: Any, offset: Any) -> Stack:
        """Which elements dropout keeps: those of ones that it does not make zero."""
        ones = self.ones_like(self.zeros_like(x))
        return self.not_equal(on_stacks(OPERATIONS["dropout"], (ones,), (p, key, offset)), 0)

    def __getattr__(self, name: str) -> Any:
        operation = OPERATIONS.get(name)
        if operation is not None:
            function = kernel_of(operation)
        elif name in HELPERS:
            function = kernel_of(HELPERS[name])
        elif name in CREATION:
            function = _creating(name)
        else:
            function = portable.bind(name, self)
        self.__dict__[name] = function
        return function


def kernel_of(operation: Operation) -> Any:
    def kernel(*args: Any, **named: Any) -> Any:
        inputs, static = operation.arguments(args, named)
        return with_residuals(operation, inputs, static)

    kernel.__name__ = operation.name
    return kernel


def _creating(name: str) -> Any:
    """A kernel that makes an array like its last argument: the same for every example."""

    def function(*args: Any) -> Any:
        like = args[-1]
        token = like.level.below()
        try:
            if name.endswith("_like"):
                value = 0 if name == "zeros_like" else 1
                made = TENSORS.full(like.shape, value, like.dtype, like.tensor)
            else:
                made = getattr(TENSORS, name)(*args[:-1], like.tensor)
        finally:
            modes.leave(token)
        return Stack(made, like.level, False)

    function.__name__ = name
    return function


STACKS: Any = StackKernels()
