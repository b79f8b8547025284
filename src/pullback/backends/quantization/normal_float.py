"""NF4: sixteen levels that suit normally distributed values, and scales that are quantized themselves (QLoRA)."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import DType
from ..portable.core import raw_dtype
from .scheme import GROUP, Scheme, grouped, groups_of, largest_of_rows, named_dtype, scales_for, ungrouped

#: Scales that have numbers of their own in common.
SCALES = 256


class NF4(Scheme):
    """`values = LEVELS[code] * scale`, one scale per 64 values of a row; two codes in a byte.

    A scale has 8 bits, `exp(low + code * step)` with both numbers for 256 scales: between the smallest and the largest
    of these its relative error is the same everywhere, so that small rows beside large ones keep their digits.
    """

    name = "nf4"
    dtype = DType("nf4", "quantized", 1, None)
    part_names = ("nf4_codes", "nf4_scale_codes", "nf4_scale_steps", "nf4_scale_lows")

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        groups = grouped(xp, values, GROUP)
        largest = largest_of_rows(xp, groups)
        scales = scales_for(xp, largest, 1.0)
        # In rows of 256, filled up with the last; groups of zeros have the scale of the smallest others.
        logs = xp.reshape(xp.log(scales), (-1,))
        missing = -logs.shape[0] % SCALES
        last = xp.broadcast_to(xp.split(logs, (logs.shape[0] - 1, 1), 0)[1], (missing,))
        logs = xp.reshape(xp.concat([logs, last], 0) if missing else logs, (-1, SCALES))
        is_zero = xp.reshape(largest, (-1,)) <= 0
        absent = xp.full((missing,), False, raw_dtype(is_zero), is_zero)
        is_zero = xp.reshape(xp.concat([is_zero, absent], 0) if missing else is_zero, (-1, SCALES))
        highs = xp.max(xp.where(is_zero, -math.inf, logs), (-1,), True)
        highs = xp.where(highs > -math.inf, highs, xp.zeros_like(highs))
        lows = xp.min(xp.where(is_zero, xp.broadcast_to(highs, logs.shape), logs), (-1,), True)
        steps = scales_for(xp, highs - lows, 255.0)
        codes = xp.minimum(xp.maximum(xp.round((logs - lows) / steps), 0), 255)
        return xp.pack_nf4(groups / scales), xp.astype(codes, named_dtype(values, "uint8")), steps, lows

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        codes, scale_codes, steps, lows = parts
        scales = xp.exp(xp.astype(scale_codes, raw_dtype(steps)) * steps + lows)
        flat, count = xp.reshape(scales, (-1,)), math.prod(codes.shape[:-1])
        if flat.shape[0] > count:
            flat = xp.split(flat, (count, flat.shape[0] - count), 0)[0]
        return ungrouped(xp, xp.unpack_nf4(codes, xp.reshape(flat, (*codes.shape[:-1], 1))), shape)

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        groups = groups_of(shape, GROUP)
        rows = -(-math.prod(groups) // SCALES)
        codes = (*groups, GROUP // 2), "uint8"
        return codes, ((rows, SCALES), "uint8"), ((rows, 1), "float32"), ((rows, 1), "float32")
