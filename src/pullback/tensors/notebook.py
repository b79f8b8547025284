"""What a notebook shows of a tensor: what it is, the range of its values, and some of them, however large it is."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .. import backends
from ..autodiff.base import resolved, values_of
from ..autodiff.forward import Dual
from ..backends.quantized import QuantizedArray
from ..markup import bytes_text, card, escaped, heading, preformatted, shape_text

_EDGE = 3  # entries that are shown at each end of a long axis
_WHOLE = 200  # elements of a tensor that is shown whole
_MOST = 1000  # elements that are looked at of a larger one
_LOOKED_THROUGH = 1_000_000  # elements of a tensor whose range is told
_WIDTH = 100  # characters in a line
_DIGITS = 4  # after the point


def html(tensor: Any) -> str:
    """A card about a tensor; one without values of its own, as while a function is traced, shows its text."""
    if isinstance(tensor, Dual):
        return preformatted(repr(tensor))
    tensor = resolved(tensor)
    raw = tensor._raw
    backend = backends.of(raw)
    if backend is None or not backend.is_concrete(raw):
        return preformatted(repr(tensor))
    notes = [shape_text(tensor.shape), tensor.dtype.name, tensor.device, bytes_text(tensor.nbytes)]
    if tensor.requires_grad:
        notes.append("requires_grad" if tensor.is_leaf else "made of variables")
        if tensor.is_leaf and tensor.grad is not None:
            notes.append("has a gradient")
    is_small, is_quantized = tensor.size <= _LOOKED_THROUGH, isinstance(raw, QuantizedArray)
    if is_quantized and not is_small:  # its parts are not to be had without expanding all of it
        return card(heading("tensor", notes), preformatted("the values: t.dequantize()"))
    values = _numbers(backend.to_numpy(raw) if is_quantized else values_of(tensor)) if is_small else None
    parts = [heading("tensor", notes)]
    if values is not None and values.size > 1:
        parts.append(f'<div style="opacity:.7">{escaped(_range(values))}</div>')
    return card(*parts, preformatted(_text(tensor.detach(), values)))


def _numbers(values: Any) -> Any:
    """NumPy formats only its own dtypes well: bfloat16 is shown as the float32 of the same value."""
    return values.astype(np.float32) if values.dtype.name == "bfloat16" else np.asarray(values)


def _range(values: Any) -> str:
    """The least, the mean and the greatest of what is finite, and how much is not."""
    if values.dtype.kind == "b":
        return f"{np.count_nonzero(values):,} of {values.size:,} true"
    finite = values[np.isfinite(values)]
    bad = values.size - finite.size
    counts = {"nan": int(np.isnan(values).sum()), "inf": int(np.isinf(values).sum())} if bad else {}
    texts = [f"{count:,} {name}" for name, count in counts.items() if count]
    if finite.size and values.dtype.kind != "c":
        mean = finite.mean(dtype=np.float64)
        texts = [f"min {finite.min():.4g}", f"mean {mean:.4g}", f"max {finite.max():.4g}", *texts]
    elif finite.size:
        texts = [f"greatest modulus {np.abs(finite).max():.4g}", *texts]
    return " \u00b7 ".join(texts)


def _text(tensor: Any, values: Any) -> str:
    """The values as NumPy prints them, and of a large tensor those at the ends of its axes."""
    prefix = ""
    if tensor.size > _WHOLE:
        kept = tensor.shape
        while prod(min(length, 2 * _EDGE + 1) for length in kept) > _MOST:
            kept = kept[1:]
        leading = (0,) * (tensor.ndim - len(kept))
        if leading:
            prefix = f"[{', '.join(['0'] * len(leading) + [':'] * len(kept))}]\n"
        values = _corners(tensor[leading] if values is None else values[leading], 0)
    if not values.size:
        return "no elements"
    options = {"separator": ", ", "max_line_width": _WIDTH, "edgeitems": _EDGE, "precision": _DIGITS}
    return prefix + np.array2string(values, threshold=_WHOLE if not prefix and tensor.size <= _WHOLE else 0, **options)


def _corners(part: Any, axis: int) -> Any:
    """A NumPy array with the first and the last few entries along every long axis, one more than will be printed."""
    if axis == part.ndim:
        return part if isinstance(part, (np.ndarray, np.generic)) else _numbers(values_of(part))
    if part.shape[axis] <= 2 * _EDGE + 1:
        return np.asarray(_corners(part, axis + 1))
    before = (slice(None),) * axis
    ends = part[(*before, slice(_EDGE + 1))], part[(*before, slice(-_EDGE, None))]
    return np.concatenate([_corners(end, axis + 1) for end in ends], axis)
