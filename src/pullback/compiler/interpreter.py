"""What a program means: its instructions run one after the other by the kernels of a namespace.

Optimisation and native code are measured against this. It also computes, when a program is compiled, what depends on
constants alone. Inputs that are constants may be left out at the end of the list: their contents are in the program.
"""

from __future__ import annotations

from typing import Any, Iterator, Sequence

import numpy as np

from .host import HOST, provide
from .iteration import Iteration
from .program import Instruction, Program, Value, described, mapped


class ProgramError(Exception):
    """A program is not sound: a value is used before it is made, or is not what it was declared to be."""


def run(program: Program, inputs: Sequence[Any], xp: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of `program` for `inputs`, and the new values of the inputs that it updates, in new arrays."""
    arrays = dict(zip(program.inputs, inputs))
    if len(inputs) > len(program.inputs):
        raise ProgramError(f"{len(inputs)} arrays were given to a program of {len(program.inputs)} inputs.")
    for position, value in enumerate(program.inputs):
        if value not in arrays:
            if value not in program.constants:
                raise ProgramError(f"input {position} ({described(value)}) was not given and is no constant.")
            arrays[value] = program.constants[value]
        arrays[value] = _checked(arrays[value], value, f"input {position}")
    for instruction in program.instructions:
        arrays.update(zip(instruction.results, results_of(instruction, arrays, xp)))
    for value in program.wanted():
        if value not in arrays:
            raise ProgramError(f"the program is run for a value ({described(value)}) that nothing makes.")
    for target, value in program.updates:
        if target not in program.inputs or (target.shape, target.dtype) != (value.shape, value.dtype):
            raise ProgramError(f"{described(value)} cannot be the new value of {described(target)}.")
    return (
        [np.array(arrays[value]) for value in program.outputs],
        [np.array(arrays[value]) for _, value in program.updates],
    )


def results_of(instruction: Instruction, arrays: dict[Value, Any], xp: Any) -> list[Any]:
    """The arrays that an instruction makes of those in `arrays`, each as it was declared."""
    for value in instruction.values():
        if value not in arrays:
            raise ProgramError(f"{instruction.op} uses a value ({described(value)}) that is not made before it.")
    try:
        with np.errstate(all="ignore"):
            made = getattr(xp, instruction.op)(*mapped(instruction.args, arrays.__getitem__))
    except Exception as error:
        error.add_note(f"in {instruction!r}" + (f", {instruction.site}" if instruction.site else ""))
        raise
    results = list(arrays_in(made))
    if len(results) != len(instruction.results):
        raise ProgramError(
            f"{instruction.op} made {len(results)} arrays, not {len(instruction.results)} as declared: {instruction!r}"
        )
    return [_checked(array, value, instruction) for array, value in zip(results, instruction.results)]


def arrays_in(made: Any) -> Iterator[Any]:
    """The arrays among what a kernel returned; gradients that nobody needs are None, and are no results."""
    if isinstance(made, (tuple, list)):
        for part in made:
            yield from arrays_in(part)
    elif made is not None:
        yield made


def _checked(array: Any, value: Value, maker: Any) -> Any:
    array = np.asarray(array)
    if array.shape != value.shape or array.dtype != value.dtype:
        raise ProgramError(
            f"{described(value)} was declared, and {array.dtype.name}{list(array.shape)} was made by {maker!r}"
            + (f" ({value.site})" if value.site else "")
        )
    return array


def iterate(iteration: Iteration, constants: tuple[Any, ...], carry: tuple[Any, ...], xs: tuple[Any, ...]) -> Any:
    """What a loop makes, by the host's kernels, one step after the other."""
    body = iteration.body
    *_, next_carry, outputs = iteration.split()
    made = [np.empty((iteration.steps, *value.shape), value.dtype) for value in outputs]
    state = list(carry)
    for step in iteration.order():
        arrays = dict(zip(body.inputs, (*constants, *state, *[x[step] for x in xs])))
        arrays.update(body.constants)
        for instruction in body.instructions:
            arrays.update(zip(instruction.results, results_of(instruction, arrays, HOST)))
        state = [arrays[value] for value in next_carry]
        for stack, value in zip(made, outputs):
            stack[step] = arrays[value]
    return (*state, *made)


provide(iterate)
