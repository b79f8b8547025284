"""Calls of the host's kernels in the middle of a compiled program: for what has no native form."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence

import numpy as np

from .... import dtypes
from ...kernels import Call, Hole, Host, Location

#: The array at a location, given the addresses of inputs, then of outputs.
View = Callable[[Sequence[int]], np.ndarray]
Form = tuple[str, tuple[int, ...], tuple[int, ...]]


def prepare(call: Call, host: Any, memory: Callable[[Location], np.ndarray | int]) -> Callable[[Sequence[int]], None]:
    """A function of the addresses of inputs and outputs that does a host call.

    `host` has the kernels. `memory` gives a buffer's bytes where they stay the same, or the number of its address where
    they do not.
    """
    kernel: Host = call.kernel
    function = getattr(host, kernel.op)
    reads = [_view(form, location, memory(location)) for form, location in zip(kernel.reads, call.reads)]
    writes = [_view(form, location, memory(location)) for form, location in zip(kernel.writes, call.writes)]
    site = f" ({call.site})" if call.site else ""

    def run(bases: Sequence[int]) -> None:
        args = _filled(kernel.args, [view(bases) for view in reads])
        try:
            with np.errstate(all="ignore"):
                results = function(*args)
        except MemoryError as error:
            raise MemoryError(f"{kernel.op} in a compiled program{site}: {error}") from None
        except Exception as error:
            if site:
                error.add_note(f"In `{kernel.op}` of a compiled program{site}.")
            raise
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        results = [result for result in results if result is not None]  # what was not asked for
        if len(results) != len(writes):
            raise RuntimeError(f"{kernel.op}{site} gave {len(results)} results; the program has {len(writes)} for it.")
        for result, view in zip(results, writes):
            array, target = np.asarray(result), view(bases)
            if array.shape != target.shape or array.dtype != target.dtype:
                raise RuntimeError(
                    f"{kernel.op}{site} gave {array.dtype}{list(array.shape)}; "
                    f"the program expects {target.dtype}{list(target.shape)}."
                )
            target[...] = array

    return run


def _view(form: Form, location: Location, memory: np.ndarray | int) -> View:
    name, shape, strides = form
    dtype = dtypes.numpy_dtype(dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    steps = tuple(stride * dtype.itemsize for stride in strides)
    offset = location.offset
    if 0 in shape:
        empty: np.ndarray = np.empty(shape, dtype)
        return lambda bases: empty
    if isinstance(memory, int):
        number, kind = memory, ctypes.c_char * location.buffer.nbytes
        return lambda bases: np.ndarray(shape, dtype, kind.from_address(bases[number]), offset, steps)
    fixed: np.ndarray = np.ndarray(shape, dtype, memory.data, offset, steps)
    return lambda bases: fixed


def _filled(args: Any, arrays: list[np.ndarray]) -> tuple[Any, ...]:
    return tuple(
        [
            arrays[arg.index] if type(arg) is Hole else _filled(arg, arrays) if type(arg) is tuple else arg
            for arg in args
        ]
    )  # fmt: skip
