"""An optimizer's formula for one parameter as native code: one pass over parameter, gradient and buffers, in place."""

from __future__ import annotations

from functools import reduce
from typing import Any, Callable

import numpy as np

from ..calling.building import PROCESSOR, Built
from ..program import Program, Value
from ..tracing.backend import TRACE
from ..tracing.recorder import Recorder
from ..tracing.symbol import Symbol
from .addresses import address_of
from .programs import PROGRAMS

#: `formula(backend, numbers, w, g, buffers)`, which gives the new parameter and the new buffers.
Formula = Callable[[Any, Any, Any, Any, Any], Any]


class UpdateProgram:
    """A compiled update of arrays of one size."""

    def __init__(self, program: Program) -> None:
        self._built = Built(program, PROCESSOR)
        self.nbytes: int = self._built.executable.arena_bytes

    def run(self, arrays: list[Any]) -> bool:
        """Update parameter and buffers; whether all that is new is finite."""
        flag = np.empty((), np.bool_)
        self._built.executable.run([*map(address_of, arrays), *[0] * self._built.folded], [address_of(flag)])
        return bool(flag)


def update_in_place(key: tuple[Any, ...], formula: Formula, numbers: Any, w: Any, g: Any, buffers: Any) -> bool | None:
    """Update `w` and `buffers`, contiguous arrays; whether they are finite. If there is no code, None: nothing is done.

    `key` says which formula it is. `numbers` are arrays without axes, which may differ from call to call.
    """
    key = ("update", *key, w.size, w.dtype.char, g.dtype.char, len(numbers), len(buffers))
    try:
        program = PROGRAMS.find(key)
    except KeyError:
        program = PROGRAMS.make(key, key[:2], lambda: _compiled(formula, numbers, w, g, len(buffers)))
    if program is None:
        return None
    result: bool = program.run([*numbers, w, g, *buffers])
    return result


def _compiled(formula: Formula, numbers: Any, w: Any, g: Any, buffers: int) -> UpdateProgram | None:
    recorder = Recorder("numpy")
    given = [Value((), number.dtype) for number in numbers]
    given += [Value((w.size,), array.dtype) for array in (w, g, *[w] * buffers)]
    symbols = [Symbol(value, recorder) for value in given]
    count = len(numbers)
    parameter, gradient, *old = symbols[count:]
    new = formula(TRACE, symbols[:count], parameter, gradient, old)
    xp = TRACE.xp
    flags = [xp.all(xp.isfinite(made), None, False) for made in new]
    finite = reduce(xp.logical_and, flags)
    targets = [given[count], *given[count + 2 :]]
    updates = [(target, made.value) for target, made in zip(targets, new) if made.value is not target]
    program = UpdateProgram(Program(given, recorder.instructions, [finite.value], updates))
    return program if program._built.executable.is_native else None
