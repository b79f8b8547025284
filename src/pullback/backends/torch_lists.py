"""Functions of lists of PyTorch's arrays: each is a few launches for all of them, however many there are.

They have the names of `optim/arithmetic.py` and write to `out` where that is their first argument; else they make new
arrays, as PyTorch's have no other place to write to. `y` is a list as well, or a number.
"""

from __future__ import annotations

from typing import Any

import torch


def _binary(name: str) -> Any:
    new, in_place = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")

    def function(x: Any, y: Any, out: Any) -> Any:
        if out is x:
            in_place(x, y)
            return x
        return new(x, y)

    return function


def _unary(name: str) -> Any:
    new, in_place = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")

    def function(x: Any, out: Any) -> Any:
        if out is x:
            in_place(x)
            return x
        return new(x)

    return function


add, subtract, multiply, divide = (_binary(name) for name in ("add", "sub", "mul", "div"))
maximum = _binary("maximum")
sqrt, sign, negative = (_unary(name) for name in ("sqrt", "sign", "neg"))
absolute = _unary("abs")


def add_scaled(x: Any, y: Any, factor: float, out: Any) -> Any:
    """x + factor * y."""
    if out is x:
        torch._foreach_add_(x, y, alpha=factor)
        return x
    return torch._foreach_add(x, y, alpha=factor)


def blend(x: Any, y: Any, weight: float, out: Any) -> Any:
    """x + weight * (y - x)."""
    if out is x:
        torch._foreach_lerp_(x, y, weight)
        return x
    return torch._foreach_lerp(x, y, weight)


def add_product(x: Any, y: Any, z: Any, factor: float, out: Any) -> Any:
    """x + factor * y * z."""
    if out is x:
        torch._foreach_addcmul_(x, y, z, factor)
        return x
    return torch._foreach_addcmul(x, y, z, factor)


def subtract_quotient(x: Any, y: Any, z: Any, factor: float, out: Any) -> Any:
    """x - factor * y / z."""
    if out is x:
        torch._foreach_addcdiv_(x, y, z, -factor)
        return x
    return torch._foreach_addcdiv(x, y, z, -factor)


def convert(x: Any, dtype: Any, out: Any) -> Any:
    """The values rounded to `dtype`, that of the arrays of `out`."""
    found = [torch.empty_like(array, dtype=dtype) for array in x] if out is None else out
    torch._foreach_copy_(found, x)
    return found


def move_towards(x: Any, y: Any, weight: float) -> None:
    """x += weight * (y - x), with `y` of any dtype."""
    if y[0].dtype != x[0].dtype:
        y = convert(y, x[0].dtype, None)
    torch._foreach_lerp_(x, y, weight)


def fill_with_zeros(x: Any) -> None:
    torch._foreach_zero_(x)


def norm(x: Any) -> Any:
    """The joint norm of arrays of one dtype, as an array without axes; right for very large and very small numbers."""
    dtype = x[0].dtype
    arrays = [array for array in x if array.numel()]
    if not arrays:
        return torch.zeros((), dtype=dtype, device=x[0].device)
    if dtype != torch.float64:  # squares of these neither overflow nor vanish there
        parts = torch.stack(torch._foreach_norm(arrays, 2, dtype=torch.float64))
        return torch.linalg.vector_norm(parts).to(dtype)
    largest = torch.stack(torch._foreach_norm(arrays, torch.inf)).max()
    divisor = torch.where((largest > 0) & torch.isfinite(largest), largest, 1.0)
    parts = torch.stack(torch._foreach_norm(torch._foreach_div(arrays, divisor), 2))
    return divisor * torch.linalg.vector_norm(parts)


def largest(x: Any) -> list[float]:
    """The largest magnitude in each array, NaN where there is one."""
    arrays = [array for array in x if array.numel()]
    return torch.stack(torch._foreach_norm(arrays, torch.inf)).tolist() if arrays else []


def multiply_by(x: Any, factor: Any) -> None:
    """x *= factor, a number or an array without axes."""
    torch._foreach_mul_(x, factor)


def clip(x: Any, lower: float, upper: float) -> None:
    """Every element brought between two numbers; NaN stays NaN."""
    torch._foreach_clamp_min_(x, lower)
    torch._foreach_clamp_max_(x, upper)
