"""What a program means on PyTorch's tensors: its instructions by the kernels of PyTorch's backend, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...backends.torch_memory import on_host, torch_dtype
from ...targets.cuda.operations import CREATION
from ..host import HOST
from ..interpreter import arrays_in
from ..iteration import ITERATE, Iteration
from ..program import Program, Value, mapped

_BY_HOST = frozenset(("draw", "moved_on"))


def evaluate(program: Program, inputs: list[Any], xp: Any, device: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of a program, and the new values of the inputs that it updates, in new tensors."""
    arrays: dict[Value, Any] = {}
    given = [*inputs, *[program.constants[value] for value in program.inputs[len(inputs) :]]]
    for value, array in zip(program.inputs, given):
        arrays[value] = array

    def on_device(value: Value) -> Any:
        array = arrays[value]
        return on_host(np.array(array, order="C")).to(device) if isinstance(array, np.ndarray) else array

    def on_processor(value: Value) -> Any:
        array = arrays[value]
        return array if isinstance(array, np.ndarray) else array.cpu().numpy()

    for instruction in program.instructions:
        try:
            if instruction.op == ITERATE:
                made = _iterated(xp, device, *mapped(instruction.args, on_device))
            elif instruction.op in _BY_HOST:
                made = getattr(HOST, instruction.op)(*mapped(instruction.args, on_processor))
            elif instruction.op == "call_custom":
                made = HOST.call_custom(*mapped(instruction.args, on_device))
            else:
                args = _translated(mapped(instruction.args, on_device))
                if instruction.op in CREATION and args[-1] is None:
                    args = (*args[:-1], torch.empty(0, device=device))  # beside which it is made
                made = getattr(xp, instruction.op)(*args)
        except Exception as error:
            error.add_note(f"in {instruction!r}" + (f", {instruction.site}" if instruction.site else ""))
            raise
        arrays.update(zip(instruction.results, arrays_in(made)))

    def result(value: Value) -> Any:
        made = on_device(value)
        return torch.empty(value.shape, dtype=torch_dtype(value.dtype), device=device).copy_(made)

    return [result(value) for value in program.outputs], [result(value) for _, value in program.updates]


def _iterated(xp: Any, device: Any, iteration: Iteration, constants: Any, carry: Any, xs: Any) -> list[Any]:
    """What a loop makes, one step after the other."""
    state, size = list(carry), iteration.carry
    outputs: list[list[Any]] = [[] for _ in iteration.body.outputs[size:]]
    for step in iteration.order():
        made, _ = evaluate(iteration.body, [*constants, *state, *[x[step] for x in xs]], xp, device)
        state = made[:size]
        for column, output in zip(outputs, made[size:]):
            column.append(output)
    return [*state, *[torch.stack(column[::-1] if iteration.reverse else column) for column in outputs]]


def _translated(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with PyTorch's dtypes for NumPy's."""
    return tuple(
        [
            torch_dtype(arg) if isinstance(arg, np.dtype) else _translated(arg) if type(arg) is tuple else arg
            for arg in args
        ]
    )  # fmt: skip
