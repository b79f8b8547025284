"""Unsigned integers of 16, 32 and 64 bits in PyTorch, which stores and moves them, but computes little with them.

A function that PyTorch refuses to run on them runs on signed integers: on wider ones, or, for 64 bits, on the same
bits. Sums, products and bits are then right as they are; where the order of numbers counts, 64 bits have their first
one turned round on the way in and out. PyTorch is asked first, so that other numbers pay nothing.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

_SIGNED = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
_LOWEST = -(1 << 63)


def on_bits(function: Any) -> Any:
    """`function`, whose result has the dtype of its tensors, for unsigned ones too."""
    return _with_signed(function, ordered=False, back=True)


def on_order(function: Any, back: bool = True) -> Any:
    """The same where the result depends on which number is larger; without `back` the result has a dtype of its own."""
    return _with_signed(function, ordered=True, back=back)


def _with_signed(function: Any, ordered: bool, back: bool) -> Any:
    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except NotImplementedError:
            dtype = _unsigned_dtype(args)
            if dtype is None:
                raise
        turn = ordered and dtype == torch.uint64
        result = function(*[_signed(x, turn) for x in args], **options)
        return _unsigned(result, dtype, turn) if back else result

    run.plain = function  # type: ignore[attr-defined]  # for what is known to be no unsigned integer
    return run


def _unsigned_dtype(args: Any) -> Any:
    """The dtype of the first unsigned tensor, also inside of lists."""
    for x in args:
        found = _unsigned_dtype(x) if isinstance(x, (list, tuple)) else getattr(x, "dtype", None)
        if found in _SIGNED:
            return found
    return None


def _signed(x: Any, turn: bool) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_signed(part, turn) for part in x)
    if not isinstance(x, torch.Tensor) or x.dtype not in _SIGNED:
        return x
    signed = x.to(_SIGNED[x.dtype])
    return signed ^ _LOWEST if turn and x.dtype == torch.uint64 else signed


def _unsigned(x: Any, dtype: Any, turn: bool) -> Any:
    if isinstance(x, tuple):
        return tuple(_unsigned(part, dtype, turn) for part in x)
    return (x ^ _LOWEST if turn else x).to(dtype)


# -- division and shifts of 64 bits ------------------------------------------------------------------


def _is_less(x: Any, y: Any) -> Any:
    """Whether the bits of `x`, taken as an unsigned number, are the smaller one."""
    return (x ^ _LOWEST) < (y ^ _LOWEST)


def shift_right(x: Any, y: Any) -> Any:
    """`x >> y`, with zeros coming in from the left, also of signed numbers that hold the bits of unsigned ones."""
    places = y.clamp(0, 63)
    moved = (x >> places) & ~(torch.full_like(x, _LOWEST) >> places << 1)
    return torch.where((y < 0) | (y > 63), torch.zeros_like(x), moved)


def quotient(x: Any, y: Any) -> Any:
    """`x // y` of uint64, both given as int64 of the same bits; `y` is not zero."""
    half = shift_right(x, torch.ones_like(x))
    small = torch.where(y < 0, torch.ones_like(y), y)
    found = (half // small) << 1
    found = found + (~_is_less(x - found * small, small)).to(torch.int64)
    return torch.where(y < 0, (~_is_less(x, y)).to(torch.int64), found)


def divided(function: Any) -> Any:
    """`function`, one of division, for unsigned integers; "floor_divide", "remainder"."""
    wants_rest = function is torch.remainder

    @wraps(function)
    def run(x: Any, y: Any) -> Any:
        if x.dtype not in _SIGNED:
            return function(x, y)
        a, b = _signed(x, False), _signed(y, False)
        if x.dtype != torch.uint64:
            return function(a, b).to(x.dtype)
        whole = quotient(a, b)
        return (a - whole * b if wants_rest else whole).to(x.dtype)

    return run


def shifted_right(x: Any, y: Any) -> Any:
    """`x >> y` for unsigned integers."""
    if x.dtype not in _SIGNED:
        return torch.bitwise_right_shift(x, y)
    shift = shift_right if x.dtype == torch.uint64 else torch.bitwise_right_shift
    return shift(_signed(x, False), _signed(y, False)).to(x.dtype)
