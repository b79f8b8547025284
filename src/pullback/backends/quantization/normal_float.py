"""NF4: sixteen levels that suit normally distributed values, and scales that are quantized themselves (QLoRA)."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType
from ..portable.core import raw_dtype
from .scheme import GROUP, Scheme, group_count, grouped, largest_over, named_dtype, scales_for, ungrouped

#: Scales that have one scale of their own.
SCALES = 256


class NF4(Scheme):
    """`values = LEVELS[code] * scale`, one scale per group of 64 values; two codes in a byte.

    A scale is `offset + scale_code * scale_scale`: 8 bits, with a number for each 256 of them, and the mean of all.
    """

    name = "nf4"
    dtype = DType("nf4", "quantized", 1, None)
    part_names = ("codes", "scale_codes", "scale_scales", "scale_offset")

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        groups = grouped(xp, values, GROUP)
        largest = largest_over(xp, groups, -2)
        codes = xp.pack_nf4(groups / scales_for(xp, largest, 1.0))
        offset = xp.mean(largest, (-2, -1), True)
        deviations = grouped(xp, largest - offset, SCALES)
        scales = scales_for(xp, largest_over(xp, deviations, -2), 127.0)
        scale_codes = xp.astype(xp.round(deviations / scales), named_dtype(values, "int8"))
        return codes, scale_codes, scales, offset

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        codes, scale_codes, scale_scales, offset = parts
        scales = xp.astype(scale_codes, raw_dtype(scale_scales)) * scale_scales + offset
        return ungrouped(xp, xp.unpack_nf4(codes, ungrouped(xp, scales, (codes.shape[0], 1))), shape)

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        count = group_count(shape, GROUP)
        rows = -(-count // SCALES)
        codes = (count, GROUP // 2), "uint8"
        return codes, ((rows, SCALES), "int8"), ((rows, 1), "float32"), ((1, 1), "float32")
