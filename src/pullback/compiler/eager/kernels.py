"""A kernel or a rule on large arrays: traced for their shapes, compiled to a program of its own, and run.

Programs are found by what decides about them: shapes, dtypes and strides of the arrays, and all other arguments. A
program says whether it may be trusted (indices are in bounds, no square has overflowed); where it may not, and for
arguments that are out of the ordinary, the answer is NotImplemented, and NumPy's kernel computes it.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ...autodiff.tables import table_for
from ..calling.building import PROCESSOR, Built
from ..calling.checks import guarded
from ..program import Program, Value
from ..tracing.backend import TRACE
from ..tracing.recorder import Recorder
from ..tracing.symbol import Symbol
from .addresses import address_of
from .programs import PROGRAMS
from .strides import base_of

#: Puts a result together, as the kernel gives it, from the arrays given and those made.
Form = Callable[[list[Any], list[Any]], Any]

_ndarray = np.ndarray


def native_result(what: tuple[str, ...], args: tuple[Any, ...], places: Any = None) -> Any:
    """What a kernel or a rule gives for `args`, or NotImplemented if that is for NumPy.

    `places`, if given, has an array or None for each result, in their order: contiguous ones of its shape and dtype,
    which the result is written to then.
    """
    arrays: list[Any] = []
    try:
        key = (what, *[_key(arg, arrays) for arg in args])
        program = PROGRAMS.find(key)
    except KeyError:
        program = PROGRAMS.make(key, what, lambda: _compiled(what, args))
    except TypeError:  # not hashable, so nothing that a program could be found by
        return NotImplemented
    return NotImplemented if program is None else program.run(arrays, places)


def _key(arg: Any, arrays: list[Any]) -> Any:
    """What a program depends on of an argument; arrays are added to `arrays`."""
    kind = type(arg)
    if kind is _ndarray:
        arrays.append(arg)
        return arg.dtype, arg.shape, arg.strides
    if kind is tuple:
        return tuple([_key(part, arrays) for part in arg])
    if isinstance(arg, np.generic):
        return _key(np.asarray(arg), arrays)
    return (kind, arg.hex()) if kind is float else (kind, arg)  # 0.0 and -0.0, 1 and True are equal


class KernelProgram:
    """A compiled kernel for arrays of known shapes, dtypes and strides."""

    def __init__(self, program: Program, form: Form, copied: list[bool], is_guarded: bool) -> None:
        built = Built(program, PROCESSOR)
        self._run = built.executable.run
        self._constants = list(program.constants.values())
        self._more = [*map(address_of, self._constants), *[0] * built.folded]
        self._form = form
        self._copied = copied
        self._copies = any(copied)
        self._is_guarded = is_guarded
        self._results = [(value.shape, value.dtype) for value in program.outputs]
        self._misaligned = max([value.dtype.itemsize for value in program.inputs], default=1) - 1
        self.is_native: bool = built.executable.is_native  # else it calls NumPy's kernels, which is no gain
        self.nbytes: int = built.executable.arena_bytes

    def run(self, arrays: list[Any], places: Any = None) -> Any:
        """The kernel's results, or NotImplemented if they cannot be trusted: see `native_result`."""
        if self._copies:
            arrays = [np.ascontiguousarray(a) if copied else a for a, copied in zip(arrays, self._copied)]
        outputs = [np.empty(shape, dtype) for shape, dtype in self._results] if places is None else self._filled(places)
        inputs = [address_of(array) for array in arrays]
        for address in inputs:
            if address & self._misaligned:
                return NotImplemented
        self._run(inputs + self._more, [address_of(array) for array in outputs])
        if self._is_guarded and not outputs.pop():
            return NotImplemented
        return self._form(arrays, outputs)

    def _filled(self, places: Any) -> list[Any]:
        """An array for each result, of `places` where that has one that is fit."""
        given = [*places, *[None] * (len(self._results) - len(places))]
        return [
            np.empty(shape, dtype) if place is None or (place.shape, place.dtype) != (shape, dtype) else place
            for (shape, dtype), place in zip(self._results, given)
        ]


def _is_ordinary(arg: Any) -> bool:
    kind = type(arg)
    if kind is _ndarray or isinstance(arg, np.generic):
        return arg.dtype.char in "fd?bBhHiIlLqQ" and arg.dtype.isnative and arg.size > 0
    if kind is tuple:
        return all(map(_is_ordinary, arg))
    return math.isfinite(arg) if kind is float else True


def _compiled(what: tuple[str, ...], args: tuple[Any, ...]) -> KernelProgram | None:
    """The program of a kernel or a rule for such arguments; None if there is no native code for it."""
    if not all(map(_is_ordinary, args)):
        return None
    recorder = Recorder("numpy")
    inputs: list[Value] = []
    copied: list[bool] = []

    def symbol(arg: Any) -> Any:
        if type(arg) is tuple:
            return tuple([symbol(part) for part in arg])
        if isinstance(arg, np.generic):
            arg = np.asarray(arg)
        if type(arg) is not _ndarray:
            return arg
        base = None if arg.flags.c_contiguous else base_of(arg.shape, arg.strides, arg.itemsize)
        value = Value(arg.shape if base is None else base.shape, arg.dtype)
        inputs.append(value)
        copied.append(base is None and not arg.flags.c_contiguous)
        given = Symbol(value, recorder)
        return given if base is None else base.taken(TRACE.xp, given)

    given = [symbol(arg) for arg in args]
    if what[0] == "kernel":
        function = getattr(TRACE.xp, what[1])
    else:
        function = table_for(TRACE).rules[what[1]][what[2]]
    outputs: list[Value] = []
    form = _form(function(*given), inputs, outputs)
    if form is None or not outputs:
        return None
    constants = dict(recorder.arrays.values())
    program = Program([*inputs, *constants], recorder.instructions, outputs, constants=constants)
    is_guarded = bool(recorder.bounds or recorder.requirements)
    if is_guarded:
        program = guarded(program, [], list(recorder.bounds), list(recorder.requirements))
    made = KernelProgram(program, form, copied, is_guarded)
    return made if made.is_native else None


def _form(result: Any, inputs: list[Value], outputs: list[Value]) -> Form | None:
    """A function of inputs and outputs that puts a result together as the kernel gives it; adds to `outputs`."""
    if result is None:
        return lambda given, made: None
    if type(result) is tuple:
        forms = [_form(part, inputs, outputs) for part in result]
        parts = [part for part in forms if part is not None]
        return None if len(parts) < len(forms) else lambda given, made: tuple([part(given, made) for part in parts])
    if type(result) is not Symbol:
        return None
    if result.value in inputs:
        position = inputs.index(result.value)
        return lambda given, made: given[position]
    if result.value not in outputs:
        outputs.append(result.value)
    number = outputs.index(result.value)
    return lambda given, made: made[number]
