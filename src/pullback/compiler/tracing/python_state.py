"""What functions can change of Python's objects without anyone seeing: variables they share, lists, attributes."""

from __future__ import annotations

import functools
import types
from collections import deque
from typing import Any, Iterable
from weakref import ProxyTypes

from ...tensors.tensor import Tensor

_MOST = 20_000  # objects that are looked at
_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_WITHOUT_STATE = (Tensor, type, types.ModuleType, types.BuiltinFunctionType, str, bytes, int, float, complex)


class PythonState:
    """The objects behind some functions, and what each of them consists of; equal if nothing was replaced."""

    def __init__(self, things: Iterable[Any]) -> None:
        self._kept: list[Any] = []  # so that an identity is not another object's
        self.parts: dict[int, tuple[int, ...]] = {}
        waiting = list(things)
        while waiting and len(self.parts) < _MOST:
            thing = waiting.pop()
            if id(thing) in self.parts or type(thing) in ProxyTypes or isinstance(thing, _WITHOUT_STATE):
                continue
            parts = _parts_of(thing)
            self._kept.append(thing)
            self._kept += parts
            self.parts[id(thing)] = tuple(map(id, parts))
            waiting += parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonState) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]


def _parts_of(thing: Any) -> list[Any]:
    for kind in _CONTAINERS:
        if isinstance(thing, kind):
            return list(kind.__iter__(thing))  # whatever a class of the user's does instead
    if isinstance(thing, dict):
        return [*dict.keys(thing), *dict.values(thing)]
    if isinstance(thing, types.FunctionType):
        return [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    if isinstance(thing, types.CellType):
        try:
            return [thing.cell_contents]
        except ValueError:  # it is still empty
            return []
    if isinstance(thing, types.MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    state = getattr(thing, "__dict__", None)
    parts = list(state.values()) if type(state) is dict else []
    own: Any = type(thing)
    for slot in _slots_of(own):
        try:
            parts.append(slot.__get__(thing))
        except AttributeError:  # it is empty
            continue
    return parts


@functools.cache
def _slots_of(kind: Any) -> list[Any]:
    return [x for base in kind.__mro__ for x in vars(base).values() if isinstance(x, types.MemberDescriptorType)]
