"""Portable kernels: products with quantized constants."""

from __future__ import annotations

from typing import Any


def quantized_matmul(xp: Any, x: Any, weight: Any, transposed: bool = False) -> Any:
    """`x @ weight`, or `x @ weight.T`, where `weight` is a quantized matrix."""
    values = weight.dequantize()
    return xp.matmul(x, xp.matrix_transpose(values) if transposed else values)
