"""PyTorch's own pooling, both ways; windows that it does not have, and interpolation, are made of other kernels.

One spatial axis is taken for two, the first of them of length 1. See `windows.py` for what the axes say.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch

from .torch_aten import operator
from .windows import Adaptive, Average, Window, matrix

_FLOATS = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_HALF = frozenset((torch.float16, torch.bfloat16))
_adaptive_mean_gradients = {n: operator(f"_adaptive_avg_pool{n}d_backward") for n in (2, 3)}
_adaptive_means = {n: operator(f"_adaptive_avg_pool{n}d") for n in (2, 3)}
_adaptive_maxima = {n: operator(f"adaptive_max_pool{n}d") for n in (2, 3)}
_maxima = {n: operator(f"max_pool{n}d_with_indices") for n in (2, 3)}
_maxima_gradient = operator("max_pool2d_with_indices_backward")
_means = {n: operator(f"avg_pool{n}d") for n in (2, 3)}
_mean_gradients = {n: operator(f"avg_pool{n}d_backward") for n in (2, 3)}


def pooling_kernels(general: Any) -> dict[str, Any]:
    def max_pool(x: Any, axes: Any) -> Any:
        found = _largest(x, axes)
        return general("max_pool")(x, axes) if found is None else found

    def max_pool_indices(x: Any, axes: Any) -> Any:
        found = _largest(x, axes)
        return general("max_pool_indices")(x, axes) if found is None else found[1]

    def pool_gather(x: Any, indices: Any) -> Any:
        return x.flatten(2).gather(2, indices.flatten(2)).reshape(indices.shape)

    def pool_scatter(x: Any, indices: Any, size: Any) -> Any:
        total = x.new_zeros((*x.shape[:2], math.prod(size)))
        return total.scatter_add_(2, indices.flatten(2), x.flatten(2)).reshape(*x.shape[:2], *size)

    def max_pool_gradient(x: Any, indices: Any, axes: Any) -> Any:
        rounds_up = _rounding(axes) if len(axes) == 2 and _are_all(axes, Window) and x.dtype in _FLOATS else None
        if rounds_up is None or not x.numel():
            return general("max_pool_gradient")(x, indices, axes)
        last = torch.channels_last if x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        size = (*x.shape[:2], *[axis.size for axis in axes])
        like = torch.empty(size, dtype=x.dtype, device=x.device, memory_format=last)  # only its form counts
        fields = [[getattr(axis, name) for axis in axes] for name in ("kernel", "stride", "padding", "dilation")]
        return _maxima_gradient(x, like, *fields, rounds_up, indices)

    def resample(x: Any, axes: Any, transposed: bool) -> Any:
        if x.dtype not in _FLOATS and not x.is_complex():
            return general("resample")(x, axes, transposed)
        found = _mean(x, axes, transposed) if x.dtype in _FLOATS and x.numel() else None
        return _product(x, axes, transposed) if found is None else found

    return {
        "max_pool": max_pool,
        "max_pool_indices": max_pool_indices,
        "pool_gather": pool_gather,
        "pool_scatter": pool_scatter,
        "max_pool_gradient": max_pool_gradient,
        "resample": resample,
    }


def _are_all(axes: Any, kind: type) -> bool:
    return all([type(axis) is kind for axis in axes])


def _flat(x: Any, axes: Any) -> tuple[Any, int]:
    """The array with at least two spatial axes, and how many."""
    return (x.unsqueeze(2), 2) if len(axes) == 1 else (x, len(axes))


def _largest(x: Any, axes: Any) -> tuple[Any, Any] | None:
    """The largest elements and their positions; None for what PyTorch's kernels do not take."""
    if x.dtype not in _FLOATS or not x.numel():
        return None
    planes, count = _flat(x, axes)
    first = [1] * (count - len(axes))
    if _are_all(axes, Adaptive):
        out, indices = _adaptive_maxima[count](planes, first + [axis.out for axis in axes])
    elif _are_all(axes, Window) and (rounds_up := _rounding(axes)) is not None:
        nothing = [0] * len(first)
        out, indices = _maxima[count](
            planes,
            first + [axis.kernel for axis in axes],
            first + [axis.stride for axis in axes],
            nothing + [axis.padding for axis in axes],
            first + [axis.dilation for axis in axes],
            rounds_up,
        )
    else:
        return None
    return (out.squeeze(2), indices.squeeze(2)) if first else (out, indices)


def _rounding(axes: Any) -> bool | None:
    """Whether PyTorch gives these axes their lengths with its `ceil_mode`; None if it gives them others."""
    for rounds_up in (False, True):
        if all([_length(axis, rounds_up) == axis.out for axis in axes]):
            return rounds_up
    return None


def _length(axis: Any, rounds_up: bool) -> int:
    room = axis.size + 2 * axis.padding - getattr(axis, "dilation", 1) * (axis.kernel - 1) - 1
    out = (-(-room // axis.stride) if rounds_up else room // axis.stride) + 1
    return out - 1 if rounds_up and (out - 1) * axis.stride >= axis.size + axis.padding else out


def _mean(x: Any, axes: Any, transposed: bool) -> Any:
    """The mean of each window, or the transpose of that map; None for what PyTorch's kernels do not take."""
    if x.dtype in _HALF and not x.is_cuda:
        return None
    planes, count = _flat(x, axes)
    first = [1] * (count - len(axes))
    size = (*x.shape[:2], *first, *[axis.size for axis in axes])
    if _are_all(axes, Adaptive):
        if transposed:
            like = x.new_empty(1).expand(size)  # only its shape counts
            out = _adaptive_mean_gradients[count](planes, like)
        else:
            out = _adaptive_means[count](planes, first + [axis.out for axis in axes])
    elif _are_all(axes, Average) and (rounds_up := _rounding(axes)) is not None:
        divisors = [axis.divisor for axis in axes if axis.divisor is not None]
        if len({axis.count_include_pad for axis in axes}) > 1 or 0 < len(divisors) < len(axes):
            return None
        options = (
            first + [axis.kernel for axis in axes],
            first + [axis.stride for axis in axes],
            [0] * len(first) + [axis.padding for axis in axes],
            rounds_up,
            axes[0].count_include_pad,
            math.prod(divisors) if divisors else None,
        )
        if transposed:
            out = _mean_gradients[count](planes.contiguous(), x.new_empty(size), *options)
        else:
            out = _means[count](planes, *options)
    else:
        return None
    return out.squeeze(2) if first else out


@lru_cache(256)
def _matrix(axis: Any, transposed: bool, dtype: Any, device: Any) -> Any:
    return torch.as_tensor(matrix(axis, transposed), device=device).to(dtype)


def _product(x: Any, axes: Any, transposed: bool) -> Any:
    """Any linear map along each axis, with a matrix that is on the device already the second time."""
    for number, axis in enumerate(axes):
        dense = _matrix(axis, transposed, x.dtype, x.device)
        position = number - len(axes)
        x = torch.matmul(x.transpose(position, -1), dense).transpose(position, -1)
    return x
