"""Linear recurrences in the processor's memory, by NumPy's kernels on the same memory: PyTorch has none.

Elsewhere they are the portable ones, a logarithmic number of passes over whole arrays.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch

_NARROW = torch.bfloat16  # which NumPy has not


def scan_kernels(general: Any) -> dict[str, Any]:
    """Kernels by operation; `general(name)` is the portable one."""

    def ssm_scan(x: Any, a: Any, h0: Any, axis: int, reverse: bool) -> Any:
        parts = (x, a, h0)
        if not _are_at_hand(parts):
            return general("ssm_scan")(x, a, h0, axis, reverse)
        return _returned(_kernels().ssm_scan(*map(_array, parts), axis, reverse), _common(parts))

    def ssm_scan_gradient(
        g: Any, a: Any, h0: Any, out: Any, a_shape: Any, h0_shape: Any, axis: int, reverse: bool, needs: Any
    ) -> Any:
        parts = (g, a, h0, out)
        if not _are_at_hand(parts):
            return general("ssm_scan_gradient")(g, a, h0, out, a_shape, h0_shape, axis, reverse, needs)
        gradients = _kernels().ssm_scan_gradient(*map(_array, parts), a_shape, h0_shape, axis, reverse, needs)
        return tuple([None if one is None else _returned(one, g.dtype) for one in gradients])

    def recurrence(x: Any, factor: Any, axis: Any, reverse: bool = False) -> Any:
        parts = (x, factor)
        if not _are_at_hand(parts):
            return general("recurrence")(x, factor, axis, reverse)
        return _returned(_kernels().ssm_scan(_array(x), _array(factor), None, axis[0], reverse), _common(parts))

    return {"ssm_scan": ssm_scan, "ssm_scan_gradient": ssm_scan_gradient, "recurrence": recurrence}


def _kernels() -> Any:
    from . import NUMPY

    return NUMPY.xp


def _are_at_hand(parts: tuple[Any, ...]) -> bool:
    return all([part is None or (type(part) is torch.Tensor and part.device.type == "cpu") for part in parts])


def _array(x: Any) -> Any:
    """NumPy's view of a tensor."""
    if x is None:
        return None
    return (x.float() if x.dtype is _NARROW else x).resolve_conj().resolve_neg().numpy()


def _common(parts: tuple[Any, ...]) -> torch.dtype:
    return reduce(torch.promote_types, [part.dtype for part in parts if part is not None])


def _returned(array: Any, dtype: torch.dtype) -> Any:
    return torch.from_numpy(array).to(dtype)
