"""The program: what a traced function computes, as a list of instructions that each make values once.

An instruction names one of the kernels that every backend has under that name (see `backends/`), with its arguments
in the kernel's order: values, Python numbers, and whatever else the kernel takes (axes, shapes, slices, None). So the
meaning of a program is what NumPy's kernels compute (see `interpreter.py`), and nothing here knows how it is run.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np


class Value:
    """What an instruction makes or a program is given: an array of known shape and dtype."""

    __slots__ = ("shape", "dtype", "site")

    def __init__(self, shape: tuple[int, ...], dtype: Any, site: str = "") -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.site = site  # "file.py:41" of the user's line that asked for it

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<{described(self)}>"


class Mark(NamedTuple):
    """When an instruction was recorded, and what is to be kept of it (see `passes/rematerialization`)."""

    walk: int = 0  # the number of the walk over a graph that recorded it; 0 outside of walks
    strategy: Any = None  # the checkpointing strategy, or the region, that it was recorded under


PLAIN = Mark()


class Instruction:
    """A kernel's name, its arguments (with values in them, also inside tuples) and the values it makes.

    One that has a value in `after` must not run before that is made: what is computed again would else be joined with
    what has computed the same before.
    """

    __slots__ = ("op", "args", "results", "site", "mark", "after")

    def __init__(
        self,
        op: str,
        args: tuple[Any, ...],
        results: tuple[Value, ...],
        site: str = "",
        mark: Mark = PLAIN,
        after: Value | None = None,
    ) -> None:
        self.op = op
        self.args = args
        self.results = results
        self.site = site
        self.mark = mark
        self.after = after

    @property
    def result(self) -> Value:
        """The value of an instruction that makes one."""
        return self.results[0]

    def values(self) -> Iterator[Value]:
        """The values among the arguments, in order."""
        return values_in(self.args)

    def with_args(self, args: tuple[Any, ...]) -> Instruction:
        return Instruction(self.op, args, self.results, self.site, self.mark, self.after)

    def waiting_for(self, value: Value | None) -> Instruction:
        """The same, which does not run before `value` is made."""
        return Instruction(self.op, self.args, self.results, self.site, self.mark, value)

    def __repr__(self) -> str:
        return f"<{self.op}{tuple(self.args)!r} -> {self.results!r}>"


class Program:
    """Instructions in an order in which they can run.

    `inputs` are arrays given at each call. Those in `constants` never change: their contents are known.
    `outputs` are made anew by each call. `updates` are pairs (input, value): when all is computed, the memory of that
    input gets that value. An instruction sees every input as it was when the call began.
    """

    __slots__ = ("inputs", "constants", "instructions", "outputs", "updates")

    def __init__(
        self,
        inputs: list[Value],
        instructions: list[Instruction],
        outputs: list[Value],
        updates: list[tuple[Value, Value]] | None = None,
        constants: dict[Value, Any] | None = None,
    ) -> None:
        self.inputs = inputs
        self.instructions = instructions
        self.outputs = outputs
        self.updates = updates or []
        self.constants = constants or {}

    def wanted(self) -> list[Value]:
        """What the program is run for: outputs and the new values of inputs."""
        return [*self.outputs, *(value for _, value in self.updates)]

    def replaced(self, instructions: list[Instruction], substitutes: dict[Value, Value]) -> Program:
        """The same program with other instructions, and with `substitutes` for what it is run for."""
        return Program(
            self.inputs,
            instructions,
            [substitutes.get(value, value) for value in self.outputs],
            [(target, substitutes.get(value, value)) for target, value in self.updates],
            self.constants,
        )

    def __str__(self) -> str:
        return printed(self)


def values_in(args: Any) -> Iterator[Value]:
    """The values in nested tuples of arguments."""
    for arg in args:
        if type(arg) is Value:
            yield arg
        elif type(arg) is tuple:
            yield from values_in(arg)


def mapped(args: tuple[Any, ...], function: Callable[[Value], Any]) -> tuple[Any, ...]:
    """`args` with `function(value)` for every value in it."""
    return tuple(
        [
            function(arg) if type(arg) is Value else mapped(arg, function) if type(arg) is tuple else arg
            for arg in args
        ]
    )  # fmt: skip


# -- printing ------------------------------------------------------------------------------------


def described(value: Value) -> str:
    """A value's type, for example "float32[128, 10]"."""
    return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"


def printed(program: Program) -> str:
    """The program as text, one line per instruction: `%3 = multiply(%1, 2.0) : float32[4]  # model.py:41`.

    What a loop repeats is below it, with names that go on.
    """
    names: dict[Value, str] = {value: f"%{i}" for i, value in enumerate(program.inputs)}
    lines = [f"program({', '.join(f'{names[v]}: {described(v)}' for v in program.inputs)})"]
    counter = itertools.count(len(names))
    _print(program.instructions, names, lines, counter, "  ")
    for target, value in program.updates:
        lines.append(f"  {names[target]} <- {names[value]}")
    lines.append(f"  return {', '.join(names[value] for value in program.outputs)}")
    return "\n".join(lines)


def _print(
    instructions: list[Instruction], names: dict[Value, str], lines: list[str], counter: Iterator[int], indent: str
) -> None:
    for instruction in instructions:
        for value in instruction.results:
            names[value] = f"%{next(counter)}"
        made = ", ".join(names[value] for value in instruction.results)
        types = ", ".join(described(value) for value in instruction.results)
        where = f"  # {instruction.site}" if instruction.site else ""
        if instruction.after is not None:
            where += f"{', ' if where else '  # '}after {names[instruction.after]}"
        arguments = ", ".join(_argument(arg, names) for arg in instruction.args)
        lines.append(f"{indent}{made} = {instruction.op}({arguments}) : {types}{where}")
        body: Program | None = getattr(instruction.args[0], "body", None) if instruction.args else None
        if type(body) is Program:
            inside = {value: f"%{next(counter)}" for value in body.inputs}
            lines.append(f"{indent}  step({', '.join(f'{name}: {described(v)}' for v, name in inside.items())})")
            _print(body.instructions, inside, lines, counter, indent + "    ")
            lines.append(f"{indent}    return {', '.join(inside[value] for value in body.outputs)}")


def _argument(arg: Any, names: dict[Value, str]) -> str:
    if type(arg) is Value:
        return names[arg]
    if type(arg) is tuple:
        return f"({', '.join(_argument(part, names) for part in arg)}{',' if len(arg) == 1 else ''})"
    if type(arg) is slice:
        return ":".join("" if part is None else str(part) for part in (arg.start, arg.stop, arg.step))
    return getattr(arg, "name", None) or repr(arg)
