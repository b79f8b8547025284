"""What a program means on JAX: its instructions by the kernels of JAX's backend, one after the other.

Called on arrays it computes them; called by `jax.jit` it is what XLA compiles.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

import jax

from ..host import HOST
from ..interpreter import arrays_in
from ..iteration import ITERATE, Iteration
from ..program import Instruction, Value, mapped


def evaluate(instructions: Iterable[Instruction], arrays: dict[Value, Any], xp: Any) -> None:
    """Run instructions on what is in `arrays`, where their results are put too."""
    find = arrays.__getitem__
    later: dict[tuple[Value, Value], Any] = {}  # what is given to be computed with again, after something else
    again: set[Value] = set()
    for instruction in instructions:
        if instruction.after is None:
            args = mapped(instruction.args, find)
        else:
            args = mapped(instruction.args, _waiting(instruction.after, arrays, later, again))
            again.update(instruction.results)
        try:
            if instruction.op == ITERATE:
                made = _iterated(xp, *args)
            elif instruction.op == "call_custom":
                made = _called_back(instruction, args)
            else:
                made = getattr(xp, instruction.op)(*args)
        except Exception as error:
            error.add_note(f"in {instruction!r}" + (f", {instruction.site}" if instruction.site else ""))
            raise
        arrays.update(zip(instruction.results, arrays_in(made)))


def _waiting(
    token: Value, arrays: dict[Value, Any], later: dict[tuple[Value, Value], Any], again: set[Value]
) -> Callable[[Value], Any]:
    """How an instruction that computes something `again` finds its arguments: not before `token` is there.

    XLA would find that the same was computed before; it takes what has gone through a barrier for something else.
    """

    def find(value: Value) -> Any:
        if value in again:
            return arrays[value]
        if (value, token) not in later:
            later[value, token] = jax.lax.optimization_barrier((arrays[value], arrays[token]))[0]
        return later[value, token]

    return find


def _iterated(xp: Any, iteration: Iteration, constants: Any, carry: Any, xs: Any) -> list[Any]:
    """What a loop makes: one loop of XLA's."""
    *_, next_carry, outputs = iteration.split()
    body = iteration.body

    def step(state: Any, slices: Any) -> Any:
        arrays = dict(zip(body.inputs, (*constants, *state, *slices)))
        arrays.update(body.constants)
        evaluate(body.instructions, arrays, xp)
        return tuple([arrays[value] for value in next_carry]), tuple([arrays[value] for value in outputs])

    last, stacked = jax.lax.scan(step, tuple(carry), tuple(xs), iteration.steps, iteration.reverse)
    return [*last, *stacked]


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
