"""An optimizer's own overflow, found before it is kept: squares of a finite gradient can be infinite.

The guard notes whether it has met a gradient so large that a formula might overflow. From then on each step's gradients
are looked at, and where one of them is large the step is made with copies of everything that it writes to, and taken
back if something in it is not finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff import guard
from ..backends import NUMPY

_ndarray = np.ndarray
_LIMIT, _LIMIT_64 = 2.0**49, 2.0**497  # squares of what is smaller are finite, and so are sums of many


def may_overflow(work: list[tuple[Any, Any, Any, Any]], is_listed: bool) -> bool:
    """Whether a gradient in `work` is so large, or not finite, that a step has to be looked at closely.

    What is not `is_listed` was looked at when it was made or assigned.
    """
    if not (is_listed or guard.Large.was_seen) or guard.mode()[0] == "off":
        return False
    together: dict[Any, list[Any]] = {}  # elsewhere than on torch:cpu a look would have to wait for a device
    for slot, _, _, gradient in work:
        if type(gradient) is _ndarray:
            if _is_large(gradient):
                return True
        elif slot.device == "torch:cpu" and slot.backend.lists is not None:
            together.setdefault((slot.backend, gradient.dtype), []).append(gradient)
    return any(
        not most < (_LIMIT_64 if dtype.itemsize == 8 else _LIMIT)
        for (backend, dtype), gradients in together.items()
        for most in backend.lists.largest(gradients)
    )


def _is_large(gradient: Any) -> bool:
    kind = gradient.dtype.char
    if kind == "f" or kind == "d":
        return not NUMPY.xp.sum_of_squares(gradient) < (_LIMIT if kind == "f" else _LIMIT_64) ** 2
    bits = (gradient.view(np.uint16) & 0x7FFF).max(initial=0)
    return bool(bits >= (0x7C00 if kind == "e" else 0x5800))


class Overflow:
    """What NumPy calls when a result of a step overflows."""

    def __init__(self) -> None:
        self.happened = False

    def __call__(self, kind: str, flag: int) -> None:
        self.happened = True


class Before:
    """Everything that a step is about to change, as it was."""

    def __init__(self, work: list[tuple[Any, Any, Any, Any]]) -> None:
        self._work = work
        self._parameters = [slot.backend.copy(slot.raw) for slot, *_ in work]
        self._buffers = [[slot.backend.copy(buffer._raw) for buffer in slot.buffers] for slot, *_ in work]

    def restore(self) -> None:
        for (slot, *_), parameter, buffers in zip(self._work, self._parameters, self._buffers):
            slot.step -= 1
            if slot.backend is NUMPY:
                slot.raw[...] = parameter
            else:
                slot.parameter._raw = parameter
            for buffer, before in zip(slot.buffers, buffers):
                buffer._raw = before


def refuse(name: str, work: list[tuple[Any, Any, Any, Any]], before: Before | None) -> None:
    """After a step: if something in it is not finite, report that, and take all of it back if that raises."""
    for slot, _, _, gradient in work:
        made = {"parameter": slot.raw, **{n: b._raw for n, b in zip(slot.names, slot.buffers)}}
        lost = [what for what, array in made.items() if not guard.is_finite(array)]
        if not lost:
            continue
        xp = slot.backend.xp
        largest = float(slot.backend.to_numpy(xp.max(xp.abs(gradient))))
        kept = "Nothing was changed." if before is not None else "The step was kept: load a state from before."
        try:
            guard.report(
                f"{name}: step {slot.step} makes {_listed(lost)} of {slot.label} infinite or NaN: its gradient has "
                f"elements up to {largest:.3g} in {slot.backend.dtype_of(slot.raw).name}. {kept} Clip gradients "
                "(`pb.optim.clip_global_norm`), or scale the loss down."
            )
        except BaseException:
            if before is not None:
                before.restore()
            raise
        return


def _listed(names: list[str]) -> str:
    return ", ".join("the value" if name == "parameter" else f"`{name}`" for name in names)
