"""What a program means on JAX: its instructions by the kernels of JAX's backend, one after the other.

Called on arrays it computes them; called by `jax.jit` it is what XLA compiles.
"""

from __future__ import annotations

from typing import Any, Iterable

import jax

from ..host import HOST
from ..interpreter import arrays_in
from ..program import Instruction, Value, mapped


def evaluate(instructions: Iterable[Instruction], arrays: dict[Value, Any], xp: Any) -> None:
    """Run instructions on what is in `arrays`, where their results are put too."""
    find = arrays.__getitem__
    for instruction in instructions:
        args = mapped(instruction.args, find)
        try:
            if instruction.op == "call_custom":
                made = _called_back(instruction, args)
            else:
                made = getattr(xp, instruction.op)(*args)
        except Exception as error:
            error.add_note(f"in {instruction!r}" + (f", {instruction.site}" if instruction.site else ""))
            raise
        arrays.update(zip(instruction.results, arrays_in(made)))


def _called_back(instruction: Instruction, args: tuple[Any, ...]) -> Any:
    """An operation of the user's own, which is called as it is, on the host, in the middle of the program."""
    forms = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in instruction.results]
    positions = [i for i, arg in enumerate(args) if isinstance(arg, jax.Array)]

    def call(*arrays: Any) -> list[Any]:
        filled = list(args)
        for position, array in zip(positions, arrays):
            filled[position] = array
        return [jax.numpy.asarray(part, form.dtype) for part, form in zip(arrays_in(HOST.call_custom(*filled)), forms)]

    return jax.pure_callback(call, forms, *[args[position] for position in positions])
