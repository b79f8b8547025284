"""The state that a case can see, as something that can be compared: has a refused call changed anything?"""

from __future__ import annotations

import io
import os
import random
import threading
from collections import deque
from operator import length_hint
from types import BuiltinFunctionType, FunctionType, GeneratorType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

import pullback as pb

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)


def snapshot(names: dict[str, Any], skip: tuple[type, ...], file: str) -> dict[str, Any]:
    """The state of everything that is reached from these names, by name."""
    names = {name: value for name, value in names.items() if not isinstance(value, skip)}
    states = {name: _Snapshot(skip, file).of(value) for name, value in names.items()}
    states["random"] = random.getstate()
    states["np.random"] = repr(np.random.get_state())
    states["pb.random"] = repr(pb.random.get_state())
    return states


class _Snapshot:
    """Goes through objects; one that is met again stands for itself by its number."""

    def __init__(self, skip: tuple[type, ...], file: str) -> None:
        self.skip = skip
        self.file = file
        self.met: dict[int, int] = {}
        self.alive: list[Any] = []

    def of(self, thing: Any) -> Any:
        if isinstance(thing, _PLAIN):
            return type(thing).__name__, repr(thing)
        if isinstance(thing, (ModuleType, BuiltinFunctionType, *self.skip)):
            return None
        if id(thing) in self.met:
            return "met", self.met[id(thing)]
        self.met[id(thing)] = len(self.met)
        self.alive.append(thing)
        return type(thing).__name__, self._inside(thing)

    def _inside(self, thing: Any) -> Any:
        if isinstance(thing, pb.Tensor):
            return self._tensor(thing)
        if isinstance(thing, np.ndarray):
            return str(thing.dtype), thing.shape, thing.tolist()
        if isinstance(thing, (dict, MappingProxyType)):
            return [(self.of(key), self.of(value)) for key, value in thing.items()]
        if isinstance(thing, (list, tuple, deque)):
            return [self.of(part) for part in thing], self._attributes(thing)
        if isinstance(thing, (set, frozenset)):
            return sorted(repr(self.of(part)) for part in thing)
        if isinstance(thing, pb.optim.Optimizer):
            return repr(thing.state_dict())
        if isinstance(thing, (random.Random, np.random.Generator, np.random.RandomState, pb.random.Generator)):
            return repr(thing.getstate() if isinstance(thing, random.Random) else _generator_state(thing))
        if isinstance(thing, io.StringIO):
            return thing.getvalue(), thing.tell()
        if isinstance(thing, io.IOBase):
            return None if thing.closed else thing.tell()
        if isinstance(thing, GeneratorType):
            frame = thing.gi_frame
            return None if frame is None else (frame.f_lasti, [self.of(value) for value in frame.f_locals.values()])
        if isinstance(thing, MethodType):
            return self.of(thing.__self__)
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._attributes(thing) if self._is_of_the_case(thing) else thing.__name__
        if isinstance(thing, threading.Thread) or type(thing).__module__.startswith("pullback.compiler"):
            return None
        if hasattr(type(thing), "__next__"):
            return length_hint(thing, -1), repr(thing) if type(thing).__module__ == "itertools" else None
        return self._attributes(thing), self.of(type(thing))

    def _tensor(self, tensor: pb.Tensor) -> Any:
        try:
            values = tensor.detach().numpy().tolist()
        except pb.TraceError:
            values = "left over from a trace"
        return str(tensor.dtype), tensor.shape, values, tensor.requires_grad, self.of(tensor.grad)

    def _function(self, function: FunctionType) -> Any:
        if os.path.basename(function.__code__.co_filename) != self.file:
            return function.__name__
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self.of(cell.cell_contents))
            except ValueError:
                cells.append("empty")
        return cells, self.of(function.__defaults__), self.of(function.__kwdefaults__), self.of(vars(function))

    def _attributes(self, thing: Any) -> Any:
        found = dict(getattr(thing, "__dict__", {}))
        for cls in type(thing).__mro__:
            slots = getattr(cls, "__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                    found[name] = getattr(thing, name)
        if isinstance(thing, pb.nn.Module):
            found = {name: value for name, value in found.items() if name not in ("_kinds", "_slots")}
        is_class = isinstance(thing, type)
        return [(name, self.of(value)) for name, value in found.items() if not (is_class and name.startswith("__"))]

    def _is_of_the_case(self, cls: type) -> bool:
        return f"{cls.__module__.rpartition('.')[2]}.py" == self.file


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.state
