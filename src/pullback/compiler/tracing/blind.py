"""Arrays from outside that keep changing, as inputs of a program.

Small arrays are known by their values, because a function may read those in ways that nobody sees. One whose values
keep changing is hidden while the function is traced: in its place the function finds an array that operations of
Pullback take for it, but that has no values to read. Where a function reads values all the same, it fails, or finds
nonsense, and its first call tells: see `calling/compiled.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autodiff.sites import user_site
from ...errors import TraceError
from ...tensors.tensor import Tensor


class Blind(np.ndarray):
    """An array without values, in the place of one that is an input."""

    _real: Any = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented  # tensors know what to do
        raise _refusal()

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        raise _refusal()


def _refusal() -> TraceError:
    return TraceError(f"{user_site()}: the values of an array that keeps changing are read")


def _refuse(self: Any, *args: Any, **options: Any) -> Any:
    raise _refusal()


for _name in (
    "__getitem__", "__setitem__", "__iter__", "__contains__", "__bool__", "__int__", "__float__", "__complex__",
    "__index__", "item", "tolist", "tobytes", "copy", "astype", "fill", "put", "take", "nonzero", "sort", "argsort",
    "view", "reshape", "ravel", "flatten", "transpose", "T", "mT", "flat", "real", "imag", "data", "__buffer__",
):  # fmt: skip
    setattr(Blind, _name, property(_refuse) if _name in ("T", "mT", "flat", "real", "imag", "data") else _refuse)


class Blindfold:
    """An array that is an input, at its place."""

    def __init__(self, place: Any) -> None:
        self.place = place

    def stand_in(self, trace: Any) -> Any:
        """What the traced function finds at the place: its memory is full of other values than the array's."""
        real = self.place.get()
        made = np.frombuffer(np.random.default_rng(0).bytes(real.nbytes), np.uint8).copy().view(real.dtype)
        hidden = np.ndarray.view(made.reshape(real.shape), Blind)
        hidden._real = real
        return hidden
