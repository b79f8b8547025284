"""Rows that look at tensors of PyTorch's on the processor: their form, whose they are, and where their memory is."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch

from .native import object_layout, row_code as code
from .native.object_access import Record
from .native.torch_layout import INLINE, torch_layout
from .rows import Rows

_LOW_HALF = 0xFFFFFFFF


def emit_tensor(
    rows: Rows, register: int, dtype: Any, shape: Any, is_written: bool = False, references: int = 0, base: int = -1
) -> None:
    """That a register holds a plain contiguous tensor of this form; its address goes to a base.

    If it `is_written`, nobody else may see its memory; `references` are how many it then has in Python.
    """
    layout: Any = torch_layout()
    rows.of_type(register, torch.Tensor)
    if references:
        rows.word(register, code.REFERENCES, references, _LOW_HALF)
    tensor = rows.slot(register, layout.tensor)
    rows.word(tensor, layout.keys, layout.plain_keys)
    rows.word(tensor, layout.dtype, layout.codes[dtype.name], _LOW_HALF)
    rows.word(tensor, layout.axes, len(shape))
    lengths, first, steps, first_step = tensor, layout.lengths, tensor, layout.steps
    if len(shape) > INLINE:
        lengths = steps = rows.slot(tensor, layout.lengths)
        first, first_step = 0, 8 * len(shape)
    for axis, length in enumerate(shape):
        rows.word(lengths, first + 8 * axis, length)
        if length > 1 and 0 not in shape:  # else any step will do
            rows.word(steps, first_step + 8 * axis, math.prod(shape[axis + 1 :]))
    if is_written:
        rows.word(tensor, layout.users, 1, _LOW_HALF)
    places = [
        layout.storage, layout.offset, layout.data, layout.storage_users, layout.own, layout.wrapper,
        dtype.itemsize, dtype.alignment - 1,
    ]  # fmt: skip
    rows.storage(tensor, np.array(places, np.int64), is_written, base)


@cache
def is_possible() -> bool:
    """Whether tensors lie in memory as native code expects: it is right about tensors of all sorts."""
    return object_layout.is_possible() and torch_layout() is not None and _is_right()


def _is_right() -> bool:
    kept: list[Any] = []  # other holders

    def shared(raw: Any, hold: Any) -> Any:
        kept.append(hold(raw))
        return raw

    def empty() -> Any:
        return torch.empty(2, 3)

    def looked_at() -> Any:
        raw = empty()
        raw.untyped_storage()
        return raw

    def given_as_gradient(raw: Any) -> Any:
        leaf = torch.zeros(2, 3, requires_grad=True)
        leaf.grad = raw
        return leaf

    def after(raw: Any, act: Any) -> Any:
        act(raw)
        return raw

    sole = [empty(), looked_at(), after(empty(), lambda raw: raw[:1])]
    seen = [
        shared(empty(), lambda raw: raw[:1]), shared(looked_at(), lambda raw: raw[:1]),
        shared(empty(), lambda raw: raw.detach()), shared(empty(), lambda raw: raw.untyped_storage()),
        shared(empty(), lambda raw: raw.numpy()), shared(empty(), given_as_gradient),
        shared(empty(), lambda raw: raw.__dlpack__()), after(empty(), lambda raw: raw.numpy()),
        torch.from_numpy(np.empty((2, 3), np.float32)), torch.empty(4, 3)[1:3],
    ]  # fmt: skip
    other = [
        torch.empty(3, 2).T, torch.empty(2, 6)[:, ::2], torch.empty(3, 2), torch.empty(6), torch.empty(2, 3, 1),
        torch.empty(2, 3, dtype=torch.float64), torch.empty(2, 3, dtype=torch.int32), torch.empty(2, 3).to_sparse(),
        torch.empty(2, 3, device="meta"), torch.empty(2, 3, dtype=torch.complex64).conj().imag, np.empty((2, 3)),
        torch.nn.Parameter(empty()),
    ]  # fmt: skip
    form = np.dtype(np.float32), (2, 3)
    if not all(_finds(raw, *form, True) and _finds(raw, *form, False) for raw in sole):
        return False
    if any(_finds(raw, *form, True) for raw in seen) or not all(_finds(raw, *form, False) for raw in seen):
        return False
    many_axes = torch.empty(2, 1, 3, 1, 2, 4, dtype=torch.float16)
    fitting = [many_axes, torch.empty((), dtype=torch.bool), torch.empty((4, 0)).T, torch.empty((1, 3)).T]
    if not all(_finds(raw, np.dtype(str(raw.dtype)[6:]), tuple(raw.shape), False) for raw in fitting):
        return False
    other += [torch.empty(2, 1, 3, 1, 4, 2, dtype=torch.float16).transpose(-1, -2)]
    return not any(
        _finds(raw, np.dtype(np.float32), (2, 3), False) or _finds(raw, np.dtype(np.float16), many_axes.shape, False)
        for raw in other
    )


def _finds(raw: Any, dtype: Any, shape: tuple[int, ...], is_written: bool) -> bool:
    """Whether rows take something for a tensor of this form, and find its memory."""
    rows, bases = Rows(), np.full(1, -1, np.int64)
    emit_tensor(rows, rows.given(0), dtype, shape, is_written, 0, 0)
    record = Record(rows.simplified(), rows.registers, bases.ctypes.data)
    return record.check()(raw) is None and (raw.numel() == 0 or bases[0] == raw.data_ptr())
