"""Tensors that stay as they are from call to call, looked at as quickly as Python can.

There may be hundreds: a model's parameters and the state of its optimizer. To look at one after the other takes longer
than a small step does, so what was found of all of them is kept, and compared list by list.
"""

from __future__ import annotations

import weakref
from functools import cache
from operator import attrgetter, methodcaller
from sys import getrefcount
from typing import Any, Sequence

import torch

from .numpy.ownership import SOLE

_users_of_tensor = methodcaller("_use_count")
_users_of_storage = torch._C._storage_Use_Count
_storage = methodcaller("untyped_storage")
_place = attrgetter("_cdata")
_address = methodcaller("data_ptr")
_version = attrgetter("_version")


class Standing:
    """Holders of PyTorch's tensors (in `_raw`), of which nobody else may see those that are `owned`.

    Nothing here holds a tensor: whoever did would have to be counted by everybody who wants to write to it.
    """

    def __init__(self, owned: Sequence[Any], others: Sequence[Any]) -> None:
        self._owned, self._others = list(owned), list(others)
        self._known: set[bool] = set()  # empty if the tensors are not known
        self._found: list[list[int]] = []
        self._references: list[Any] = []

    def note(self) -> None:
        """Remember the tensors of now, which somebody has looked at: those owned are exclusive."""
        raws = [holder._raw for holder in (*self._owned, *self._others)]
        known: set[bool] = set()
        self._known = known
        if _alone() is not None and not any([raw.is_inference() for raw in raws]):
            known.add(True)
            # When a tensor goes, another one may come to have its number.
            self._references = [weakref.ref(raw, lambda _: known.clear()) for raw in raws]
            owned, others = raws[: len(self._owned)], raws[len(self._owned) :]
            self._found = [_numbers(owned), [*map(_place, map(_storage, owned))], _numbers(others), _addresses(others)]

    def holds(self) -> bool:
        """Whether the holders have the same tensors as then, which are as they were, and owned if they were."""
        if not self._known:
            return False
        numbers, places, others, addresses = self._found
        if numbers:
            counts = {getrefcount(holder._raw) for holder in self._owned}
            raws = [holder._raw for holder in self._owned]
            if counts != _SOLE or {*map(_users_of_tensor, raws)} != _ONE or _numbers(raws) != numbers:
                return False
            storages = [*map(_storage, raws)]
            if [*map(_place, storages)] != places or _users(storages) != _alone():
                return False
        raws = [holder._raw for holder in self._others]
        return _numbers(raws) == others and _addresses(raws) == addresses


_SOLE = {SOLE}
_ONE = {1}


def _numbers(raws: list[Any]) -> list[int]:
    """Which tensors they are, and how often PyTorch has written to each."""
    return [*map(id, raws), *map(_version, raws)]


def _addresses(raws: list[Any]) -> list[int]:
    return [*map(_address, raws)]


def _users(storages: list[Any]) -> tuple[set[int], set[int]]:
    """How many use storages, and the Python objects that stand for them: all numbers that there are."""
    return {*map(_users_of_storage, map(_place, storages))}, {*map(getrefcount, storages)}


@cache
def _alone() -> tuple[set[int], set[int]] | None:
    """What `_users` gives for storages of tensors that nobody else sees; None if somebody who does is not counted."""
    with torch.inference_mode(False):
        raws = [torch.empty(2) for _ in range(3)]

        def users() -> tuple[set[int], tuple[set[int], set[int]]]:
            counts, storages = {*map(_users_of_tensor, raws)}, [*map(_storage, raws)]
            return counts, _users(storages)

        alone = users()
        counts, (of_storages, of_objects) = alone
        if counts != _ONE or len(of_storages) != 1 or len(of_objects) != 1:
            return None
        for way in (_view, torch.Tensor.detach, _storage, torch.Tensor.__dlpack__):
            other = way(raws[1])
            is_counted = users() != alone
            del other
            if not is_counted or users() != alone:
                return None
    return of_storages, of_objects


def _view(raw: Any) -> Any:
    return raw[:1]
