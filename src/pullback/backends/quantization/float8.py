"""Floating-point numbers of 8 bits (e4m3: 4 of exponent, 3 of mantissa, no infinities) with a scale for each row."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType
from .scheme import Scheme, along, largest_over, scales_for

_LARGEST = 448.0


class Float8(Scheme):
    """`values = number * scale`, one scale per index of `axis` (one in all if it is None); codes are the bits."""

    name = "fp8"
    dtype = DType("float8_e4m3", "quantized", 1, None)
    part_names = ("fp8_codes", "fp8_scales")
    has_axis = True

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        scales = scales_for(xp, largest_over(xp, values, axis), _LARGEST)
        return xp.pack_float8(values / scales), scales

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        return xp.unpack_float8(*parts)

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        return (shape, "uint8"), (along(shape, axis), "float32")
