"""Calling a program that runs without Python's lock."""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np

from ...autodiff.base import make
from ...tensors.tensor import Tensor
from ..guards.rows import Path

_TEMPLATE = """
def call({objects}):
    ran[0] = 0
    try:
        arrays = [{objects}{arrays}]
    except (AttributeError, LookupError, TypeError):
        return False  # the arguments are in other containers
    if check(*arrays) is not None:
        return False
    ran[0] = 1  # nothing comes between this and the run
    if run(pointer):
        start_threads()
    return None if {is_well} else True
"""


class Held:
    """What a run without Python's lock uses, so that it stays: other threads may give a tensor another array meanwhile.

    Arrays are taken before they are looked at, and given with the call: those of tensors, and those that are found.
    """

    def __init__(self, made: Any) -> None:
        self.tensors = [entry.tensor for entry in made.inputs if entry.tensor is not None]
        self._objects = ["args", "kwargs", *(f"o{number}" for number in range(len(made.outputs)))]
        self._names: dict[str, Any] = {f"t{i}": tensor for i, tensor in enumerate(self.tensors)}
        self._found: list[str] = []

    def tensor(self, tensor: Tensor) -> int:
        """The number of the object that a tensor's array is."""
        return len(self._objects) + next(i for i, other in enumerate(self.tensors) if other is tensor)

    def argument(self, path: Path, is_tensor: bool) -> int:
        """The number of the object that an argument's array is."""
        if path.keys is None:
            text = f"{self._named(path.find)}((args, kwargs))"
        else:
            keys = [str(key) if type(key) is int else self._named(key) for key in path.keys[1:]]
            text = ("args", "kwargs")[path.keys[0]] + "".join(f"[{key}]" for key in keys)
        return self._place(f"{text}._raw" if is_tensor else text)

    def found(self, find: Callable[[], Tensor]) -> int:
        """The number of the object that the array of a tensor is, which is found by `find`."""
        return self._place(f"{self._named(find)}()._raw")

    def _named(self, thing: Any) -> str:
        name = f"n{len(self._names)}"
        self._names[name] = thing
        return name

    def _place(self, text: str) -> int:
        self._found.append(text)
        return len(self._objects) + len(self.tensors) + len(self._found) - 1

    def call(self, executable: Any, record: Any, bases: Any, finite: Any) -> Any:
        """Gather under Python's lock, run without it: other threads may run, so what is used is held meanwhile."""
        names = {
            **self._names, "check": record.check(), "run": executable.run_native, "pointer": bases.ctypes.data,
            "start_threads": executable.start_threads, "finite": finite, "ran": record.ran,
        }  # fmt: skip
        arrays = [*(f"t{i}._raw" for i in range(len(self.tensors))), *self._found]
        source = _TEMPLATE.format(
            objects=", ".join(self._objects),
            arrays="".join(f", {array}" for array in arrays),
            is_well="True" if finite is None else "finite[0]",
        )
        exec(compile(source, "<pullback>", "exec"), names)  # made of numbers alone
        return names.pop("call")


def _references_given() -> int:
    """How often an array is held that a tensor holds and that is given to a function as in `call` above."""
    tensor = make(np.empty(1, np.float32), None)
    arrays = [tensor._raw]
    return sys.getrefcount(*arrays)


REFERENCES_GIVEN = _references_given()
