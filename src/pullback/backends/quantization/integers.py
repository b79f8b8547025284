"""Integers with scales: of 8 bits, a scale for each row; of 4 bits, a scale for each 64 of a row."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType
from ..portable.core import raw_dtype
from .scheme import (
    GROUP,
    Scheme,
    along,
    grouped,
    groups_of,
    largest_of_rows,
    largest_over,
    named_dtype,
    scales_for,
    ungrouped,
)


class Int8(Scheme):
    """`values = codes * scale`, codes in -127..127, one scale per index of `axis` (one in all if it is None)."""

    name = "int8"
    dtype = DType("qint8", "quantized", 1, None)
    part_names = ("int8_codes", "int8_scales")
    has_axis = True

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        scales = scales_for(xp, largest_over(xp, values, axis), 127.0)
        codes = xp.minimum(xp.maximum(xp.round(values / scales), -127), 127)
        return xp.astype(codes, named_dtype(values, "int8")), scales

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        codes, scales = parts
        return xp.astype(codes, raw_dtype(scales)) * scales

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        return (shape, "int8"), (along(shape, axis), "float32")


class Int4(Scheme):
    """`values = (code - 8) * scale`, codes in 1..15, one scale per 64 values of a row; two codes in a byte."""

    name = "int4"
    dtype = DType("qint4", "quantized", 1, None)
    part_names = ("int4_codes", "int4_scales")

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        groups = grouped(xp, values, GROUP)
        scales = scales_for(xp, largest_of_rows(xp, groups), 7.0)
        codes = xp.minimum(xp.maximum(xp.round(groups / scales), -7), 7) + 8
        low, high = xp.split(xp.astype(codes, named_dtype(values, "uint8")), (GROUP // 2, GROUP // 2), -1)
        return low + 16 * high, scales

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        return ungrouped(xp, xp.unpack_int4(*parts), shape)

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        groups = groups_of(shape, GROUP)
        return ((*groups, GROUP // 2), "uint8"), ((*groups, 1), "float32")
