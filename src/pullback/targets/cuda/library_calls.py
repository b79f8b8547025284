"""Instructions that PyTorch's kernels run as a whole: attention, convolutions, and all that has no kernel here yet."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..kernels import Call, Hole, Host
from .memory import Memory, torch_dtype
from .operations import CAPTURED, CREATION


def can_be_captured(kernel: Host) -> bool:
    return kernel.op in CAPTURED


def run(call: Call, library: Any, memory: Memory) -> None:
    """Run once. What has memory of its own stays there, other results are copied to where they belong."""
    kernel: Host = call.kernel
    made = _made(call, library, memory)
    for array, location, (dtype, shape, strides) in zip(made, call.writes, kernel.writes):
        if location.buffer.kind == "library":
            memory.bind(location.buffer, _in_order(array.to(torch_dtype(dtype)), strides))
        else:
            memory.view(location, dtype, shape, strides).copy_(array)


def prepared(call: Call, library: Any, memory: Memory) -> Callable[[], None]:
    """A function that runs it on the memory of now."""
    kernel: Host = call.kernel
    function, args = _function(kernel.op, library), _arguments(call, memory)
    targets = [memory.view(location, *form) for location, form in zip(call.writes, kernel.writes)]

    def again() -> None:
        for array, target in zip(_results(kernel, function(*args)), targets):
            target.copy_(array)

    return again


def _made(call: Call, library: Any, memory: Memory) -> list[Any]:
    return _results(call.kernel, _function(call.kernel.op, library)(*_arguments(call, memory)))


def _function(op: str, library: Any) -> Any:
    return _call_custom if op == "call_custom" else getattr(library.xp, op)


def _call_custom(call: Any, *arrays: Any) -> Any:
    """An operation of the user's own, on tensors."""
    return call.operation.kernel(*arrays, *call.static)


def _results(kernel: Host, made: Any) -> list[Any]:
    """The arrays among what a kernel returned, in the order of those that are to be written."""
    if kernel.op == "attention_gradient":
        made = [gradient for gradient, needed in zip(made, kernel.args[7]) if needed]
    arrays = list(_arrays_in(made))
    if len(arrays) != len(kernel.writes):
        raise RuntimeError(f"{kernel.op} made {len(arrays)} arrays where a program has {len(kernel.writes)}")
    return arrays


def _arguments(call: Call, memory: Memory) -> tuple[Any, ...]:
    arrays = [memory.view(location, *form) for location, form in zip(call.reads, call.kernel.reads)]
    args = _filled(call.kernel.args, arrays)
    if call.kernel.op in CREATION and args[-1] is None:
        return (*args[:-1], memory.anything)  # beside which it is made
    return args


def _filled(args: Any, arrays: list[Any]) -> tuple[Any, ...]:
    made: list[Any] = []
    for arg in args:
        if type(arg) is Hole:
            made.append(arrays[arg.index])
        elif type(arg) is tuple:
            made.append(_filled(arg, arrays))
        elif isinstance(arg, np.dtype):
            made.append(torch_dtype(arg.name))
        else:
            made.append(arg)
    return tuple(made)


def _arrays_in(made: Any) -> Iterator[Any]:
    """The arrays among what a kernel returned; gradients that nobody needs are None, and are no results."""
    if isinstance(made, (tuple, list)):
        for part in made:
            yield from _arrays_in(part)
    elif made is not None:
        yield made


def _in_order(array: Any, strides: tuple[int, ...]) -> Any:
    """An array whose elements lie as strides say, copied if they do not."""
    if all(n == 1 or ours == theirs for n, ours, theirs in zip(array.shape, array.stride(), strides)):
        return array
    order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
    return array.permute(order).contiguous()
