"""Where PyTorch's tensors keep what native code looks at.

Nothing of this is promised by PyTorch: all of it is found by looking for what was put there. `torch_rows.py` tries out
what is written with it, on tensors of which it is known whether they fit; where one is taken for what it is not, native
code does not look at tensors, and Python does.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Callable, NamedTuple

import numpy as np
import torch

from .... import dtypes
from .object_layout import word

INLINE = 5  # axes whose lengths and steps are in the tensor itself; those of more are elsewhere, one after the other
_OF_TENSOR, _OF_STORAGE = 192, 96  # bytes that are looked at
_LOW_HALF = 0xFFFFFFFF
_ATTEMPTS = 8
_DTYPES = [getattr(torch, dtype.name) for dtype in dtypes.ALL]


class TorchLayout(NamedTuple):
    """Offsets in bytes: of a Python object, of the tensor behind it, of its storage; and what is found there."""

    tensor: int  # in the Python object, as all addresses are those of other things
    keys: int  # what kind of tensor it is: not conjugated, not sparse, not on another device
    plain_keys: int
    dtype: int  # half a word, with the device
    codes: dict[str, int]  # what is there, by the dtype's name
    axes: int
    lengths: int
    steps: int
    users: int  # half a word
    storage: int
    offset: int
    data: int  # from here on in the storage
    storage_users: int
    own: int  # a byte: whether it may be resized, as only memory that nobody else knows may be
    wrapper: int
    freed: int  # who frees it: memory that is shared by processes or copied late has somebody else for that
    plainly_freed: int


def _words(address: int, size: int) -> list[int]:
    return [word(address, at) for at in range(0, size, 8)]


def _place(address: int, size: int, pattern: list[int]) -> int | None:
    """Where words come one after the other; None if that is not in one place."""
    words = _words(address, size)
    found = [i for i in range(len(words) - len(pattern) + 1) if words[i : i + len(pattern)] == pattern]
    return 8 * found[0] if len(found) == 1 else None


def _bytes(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size)


@cache
def torch_layout(device: str = "cpu") -> TorchLayout | None:
    """Where things are, and what is there in tensors on a device; None where they are not found."""
    if device != "cpu":
        layout = torch_layout()
        return None if layout is None else _on_device(layout, device)
    held = []  # so that each attempt looks at other memory: past an object's end it may hold what is looked for
    for attempt in range(_ATTEMPTS):
        found = _in_tensors(), _in_storages()
        if found[0] is not None and found[1] is not None:
            return TorchLayout(*found[0], *found[1])
        held += [torch.empty(2) for _ in range(attempt + 1)]
    return None


def _on_device(layout: TorchLayout, device: str) -> TorchLayout | None:
    """The same places, with what tensors on a device have there."""
    many = [torch.empty(shape, dtype=dtype, device=device) for dtype in _DTYPES for shape in ((2,), (3, 4, 7))]
    large = [torch.empty(count, device=device) for count in (1, 5000, 1 << 20)]
    storages = [one.untyped_storage() for one in (*many, *large)]
    if any([word(storage._cdata, layout.data) != storage.data_ptr() for storage in storages]):
        return None
    keys = {word(one._cdata, layout.keys) for one in (*many, *large)}
    freed = {word(storage._cdata, layout.freed) for storage in storages}
    if len(keys) != 1 or len(freed) != 1:
        return None
    codes = {dtypes.get(one.dtype).name: word(one._cdata, layout.dtype) & _LOW_HALF for one in many}
    return layout._replace(plain_keys=keys.pop(), codes=codes, plainly_freed=freed.pop())


def _in_tensors() -> tuple[Any, ...] | None:
    lengths, steps, offset = [3, 5, 7], [211, 31, 3], 13
    sample = torch.empty(1000).as_strided(lengths, steps, offset)
    address = sample._cdata
    places = [
        _place(id(sample), type(sample).__basicsize__, [address]),
        _place(address, _OF_TENSOR, [len(lengths), *lengths]),
        _place(address, _OF_TENSOR, steps),
        _place(address, _OF_TENSOR, [sample.untyped_storage()._cdata]),
        _place(address, _OF_TENSOR, [offset]),
    ]
    many = [torch.empty(shape, dtype=dtype) for dtype in _DTYPES for shape in ((), (2,), (3, 4, 0))]
    other = [torch.empty(2, dtype=torch.complex64).conj(), torch.empty(2, device="meta")]
    keys = _same(many, other)
    dtype = _telling_dtypes()
    users = _counting(torch.empty(2))
    if keys is None or dtype is None or users is None or any(place is None for place in places):
        return None
    tensor, axes, steps_at, storage, offset_at = places
    codes = {dtypes.get(one.dtype).name: word(one._cdata, dtype) & _LOW_HALF for one in many}
    plain = word(many[0]._cdata, keys)
    return tensor, keys, plain, dtype, codes, axes, axes + 8, steps_at, users, storage, offset_at  # type: ignore[operator]


def _same(many: list[Any], other: list[Any]) -> int | None:
    """A word that many tensors have in common, and that others have differently."""
    found = [
        at
        for at in range(0, _OF_TENSOR, 8)
        if len({word(one._cdata, at) for one in many}) == 1
        and all(word(one._cdata, at) != word(many[0]._cdata, at) for one in other)
    ]
    return found[0] if len(found) == 1 else None


def _telling_dtypes() -> int | None:
    """Half a word that differs between any two dtypes, and never else."""
    groups = [[torch.empty(shape, dtype=one) for shape in ((2,), (3, 4, 0))] for one in _DTYPES]
    groups[0].append(torch.empty((5, 6), dtype=_DTYPES[0]).T[1:])

    def halves(at: int) -> list[set[int]]:
        return [{word(one._cdata, at) & _LOW_HALF for one in group} for group in groups]

    found = [
        at
        for at in range(0, _OF_TENSOR - 4, 4)
        if all(len(half) == 1 for half in halves(at)) and len(set.union(*halves(at))) == len(groups)
    ]
    return found[0] if len(found) == 1 else None


def _counting(raw: Any) -> int | None:
    """Half a word with the number of those who hold a tensor in C++: one who does it as a gradient is counted."""
    leaf = torch.zeros(2, requires_grad=True)
    alone = _halves(raw._cdata)
    leaf.grad = raw
    held = _halves(raw._cdata)
    leaf.grad = None
    found = [4 * i for i, (one, two) in enumerate(zip(alone, held)) if (one, two) == (1, 2)]
    return found[0] if len(found) == 1 else None


def _halves(address: int) -> list[int]:
    return np.frombuffer(_bytes(address, 24), np.int32).tolist()


def _in_storages() -> tuple[Any, ...] | None:
    raw = torch.empty(4)
    storage = raw.untyped_storage()
    address = storage._cdata
    data = next((8 * i for i, one in enumerate(_words(address, _OF_STORAGE)) if one == storage.data_ptr()), None)
    wrapper = _place(address, _OF_STORAGE, [id(storage)])
    before = _halves(address)
    view = raw[:2]
    held = _halves(address)
    del view
    users = [4 * i for i, (one, two) in enumerate(zip(before, held)) if two == one + 1]
    own = _changed(address, lambda: raw.numpy())  # afterwards memory counts as seen by others
    freed = _telling_memory()
    if data is None or wrapper is None or len(users) != 1 or own is None or freed is None:
        return None
    return data, users[0], own, wrapper, freed, word(address, freed)


def _telling_memory() -> int | None:
    """A word that all memory of PyTorch's own has in common, unlike that of others or such as is copied late."""
    own = [torch.empty(count).untyped_storage() for count in (1, 7, 100, 5000)]
    late = torch.empty(3)
    other = [torch.from_numpy(np.empty(count, np.float32)).untyped_storage() for count in (2, 300)]
    other += [torch._lazy_clone(late).untyped_storage(), late.untyped_storage()]
    found = [
        at
        for at in range(0, _OF_STORAGE, 8)
        if len({word(one._cdata, at) for one in own}) == 1
        and all(word(one._cdata, at) != word(own[0]._cdata, at) for one in other)
    ]
    return found[0] if found else None


def _changed(address: int, act: Callable[[], Any]) -> int | None:
    """A byte that is 1 before something is done, and 0 after that."""
    before = _bytes(address, _OF_STORAGE)
    act()
    after = _bytes(address, _OF_STORAGE)
    found = [i for i in range(_OF_STORAGE) if (before[i], after[i]) == (1, 0)]
    return found[0] if len(found) == 1 else None
