"""Rows that look at tensors of PyTorch's: their form, whose they are, and where their memory is."""

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
    rows: Rows,
    register: int,
    dtype: Any,
    shape: Any,
    is_written: bool = False,
    references: int = 0,
    base: int = -1,
    device: str = "cpu",
) -> None:
    """That a register holds a plain contiguous tensor of this form on a device; its address goes to a base.

    If it `is_written`, nobody else may see its memory; `references` are how many it then has in Python.
    """
    layout: Any = torch_layout(device)
    is_written = is_written and 0 not in shape
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
        dtype.itemsize, dtype.alignment - 1, layout.freed, layout.plainly_freed,
    ]  # fmt: skip
    rows.storage(tensor, np.array(places, np.int64), is_written, base)


@cache
def is_possible(device: str = "cpu") -> bool:
    """Whether tensors lie in memory as native code expects: it is right about tensors of all sorts."""
    if not object_layout.is_possible():
        return False
    try:
        with torch.inference_mode(False), torch.device("cpu"):
            return torch_layout(device) is not None and _is_right(device)
    except (AttributeError, RuntimeError, TypeError):  # another version, without some of what is asked here
        return False


def _is_right(device: str) -> bool:
    """Whether rows find tensors of a form and nothing else, and to write to those that nobody else sees."""
    others: list[Any] = []  # who hold them
    with torch.device(device):
        alone, seen, strange = _alone(), _seen(others, device == "cpu"), _other()
        of_many_axes = torch.empty(2, 1, 3, 1, 2, 4, dtype=torch.float16)
        fitting = [*alone, *seen, of_many_axes, torch.empty((), dtype=torch.bool), _empty(4, 0).T, _empty(1, 3).T]
    if device == "cpu":
        late = _empty()
        others.append(torch._lazy_clone(late))
        seen.append(late)
    else:
        strange.append(_empty())
    if not all(_finds(raw, _FORM, True, device) for raw in alone):
        return False
    if any(_finds(raw, _FORM, True, device) for raw in seen):
        return False
    if not all(_finds(raw, (np.dtype(str(raw.dtype)[6:]), tuple(raw.shape)), False, device) for raw in fitting):
        return False
    halves = np.dtype(np.float16), tuple(of_many_axes.shape)
    return not any(_finds(raw, form, False, device) for raw in strange for form in (_FORM, halves))


_FORM = np.dtype(np.float32), (2, 3)


def _empty(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape or (2, 3), dtype=dtype)


def _alone() -> list[Any]:
    """Tensors that nobody else holds, of which some have been looked at."""
    made = [_empty(), _empty(), _empty()]
    made[1].untyped_storage()
    made[2][:1].detach()
    return made


def _seen(others: list[Any], by_numpy: bool) -> list[Any]:
    """Tensors whose memory somebody else sees."""

    def held_as_gradient(raw: Any) -> Any:
        leaf = torch.zeros(2, 3, dtype=torch.float32, requires_grad=True)
        leaf.grad = raw
        return leaf

    ways: list[Any] = [
        lambda raw: raw[:1], torch.Tensor.detach, torch.Tensor.untyped_storage, torch.Tensor.__dlpack__,
        held_as_gradient,
    ]  # fmt: skip
    if by_numpy:
        ways.append(torch.Tensor.numpy)
    made = [_empty() for _ in range(2 * len(ways))]
    for i, raw in enumerate(made):
        if i >= len(ways):
            raw.untyped_storage()  # which leaves a mark
        others.append(ways[i % len(ways)](raw))
    made.append(_empty(4, 3)[1:3])
    if by_numpy:
        lent = _empty()
        lent.numpy()
        made += [lent, torch.from_numpy(np.empty((2, 3), np.float32))]
    return made


def _other() -> list[Any]:
    """Tensors of another form or layout, or that are not what they seem."""
    return [
        _empty(3, 2).T, _empty(2, 6)[:, ::2], _empty(3, 2), _empty(6), _empty(2, 3, 1), _empty(dtype=torch.float64),
        _empty(dtype=torch.int32), _empty().to_sparse(), torch.empty(2, 3, device="meta", dtype=torch.float32),
        _empty(dtype=torch.complex64).conj().imag, torch.nn.Parameter(_empty()), np.empty((2, 3), np.float32),
        _empty(2, 1, 3, 1, 4, 2, dtype=torch.float16).transpose(-1, -2),
    ]  # fmt: skip


def _finds(raw: Any, form: tuple[Any, tuple[int, ...]], is_written: bool, device: str) -> bool:
    """Whether rows take something for a tensor of this form, and find its memory."""
    rows, bases = Rows(), np.full(1, -1, np.int64)
    emit_tensor(rows, rows.given(0), *form, is_written, 0, 0, device)
    record = Record(rows.simplified(), rows.registers, bases.ctypes.data)
    return record.check()(raw) is None and (raw.numel() == 0 or bases[0] == raw.data_ptr())
