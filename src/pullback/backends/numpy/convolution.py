"""NumPy kernels: convolutions, by unfolding the input into a matrix of windows and one product with the weights.

The matrix is made for a few samples, or a few rows of one sample, at a time: memory stays bounded, and a piece
is still in the cache when it is multiplied. With stride 1 a row of the matrix is a run of the padded input at some
offset, so that it is copied in long runs; this computes results at the margin too, which are cut off at the end.
"""

from __future__ import annotations

import itertools as _itertools
import math as _math
from typing import Any, Iterator

import numpy as _np
from numpy.lib.stride_tricks import as_strided as _as_strided

from .precision import computed_in as _computed_in

_UNFOLDED_BYTES = 4 << 20  # of one piece of the unfolded input


def convolution(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return _convolved(x, weight, None, stride, padding, dilation, groups)


def biased_convolution(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return _convolved(x, weight, bias, stride, padding, dilation, groups)


def convolution_input_gradient(
    g: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The transpose of `convolution` in `x`, whose spatial shape was `size`."""
    if all(step == 1 for step in stride):
        padding = _opposite(weight, padding, dilation)
        return _convolved(g, _flipped(weight, groups), None, stride, padding, dilation, groups)
    dtype, (g, weight) = _working(g, weight)
    kernel = weight.shape[2:]
    padded = [n + low + high for n, (low, high) in zip(size, padding)]
    out = g.shape[2:]
    channels = weight.shape[1] * groups
    result = _np.zeros((len(g), channels, *padded), g.dtype)
    if g.size and weight.size:
        transposed = _np.ascontiguousarray(weight.reshape(groups, weight.shape[0] // groups, -1).swapaxes(-1, -2))
        bytes_per_row = channels * _math.prod(kernel) * _math.prod(out[1:]) * g.itemsize
        for samples, rows in _pieces(len(g), out[0], bytes_per_row, _UNFOLDED_BYTES):
            piece = g[samples, :, rows]
            shape = (len(piece), groups, weight.shape[0] // groups, -1)
            columns = _np.matmul(transposed, piece.reshape(shape))
            columns = columns.reshape(len(piece), channels, -1, *piece.shape[2:])
            target = result[samples, :, rows.start * stride[0] :]
            for number, tap in enumerate(_taps(kernel, dilation)):
                target[_reached(tap, piece.shape[2:], stride)] += columns[:, :, number]
    return _cropped(result, size, padding).astype(dtype, copy=False)


def convolution_weight_gradient(
    g: Any, x: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The transpose of `convolution` in `weight`, whose spatial shape was `size`."""
    dtype, (g, x) = _working(g, x)
    features, channels = g.shape[1], x.shape[1]
    total = _np.zeros((groups, channels // groups * _math.prod(size), features // groups), g.dtype)
    if g.size and x.size:
        for samples, rows, grid, columns in _unfolded(x, size, stride, padding, dilation, g.shape[2:]):
            # in the margin that was unfolded too the cotangent is zero
            spread = _np.zeros((features, samples.stop - samples.start, *grid), g.dtype)
            inside = tuple(slice(n) for n in g.shape[3:])
            spread[(slice(None),) * 3 + inside] = g[samples, :, rows].swapaxes(0, 1)
            factors = spread.reshape(groups, features // groups, -1)
            total += _np.matmul(columns.reshape(groups, -1, factors.shape[-1]), factors.swapaxes(-1, -2))
    return total.swapaxes(-1, -2).reshape(features, channels // groups, *size).astype(dtype, copy=False)


# -- the product -------------------------------------------------------------------------------------------------


def _convolved(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    dtype, (x, weight, bias) = _working(x, weight, bias)
    kernel = weight.shape[2:]
    features = weight.shape[0]
    out = tuple(
        (n + low + high - step * (k - 1) - 1) // jump + 1
        for n, k, jump, (low, high), step in zip(x.shape[2:], kernel, stride, padding, dilation)
    )
    result = _np.empty((len(x), features, *out), x.dtype)
    offset: Any = 0 if bias is None else bias.reshape(-1, *(1,) * (len(kernel) + 1))
    if not (x.size and weight.size):
        result[...] = 0 if bias is None else _np.moveaxis(offset, 0, 1)
    elif _math.prod(kernel) == 1 and not any(map(any, padding)) and _math.prod(out) >= 64:
        _pointwise(x, weight, bias, stride, groups, result)
    else:
        matrices = _np.ascontiguousarray(weight.reshape(groups, features // groups, -1))
        inside = tuple(slice(n) for n in out[1:])
        for samples, rows, grid, columns in _unfolded(x, kernel, stride, padding, dilation, out):
            count = samples.stop - samples.start
            product = _np.matmul(matrices, columns.reshape(groups, -1, count * _math.prod(grid)))
            product = product.reshape(features, count, *grid)[(slice(None),) * 3 + inside]
            _np.add(product, offset, out=result[samples, :, rows].swapaxes(0, 1))
    return result.astype(dtype, copy=False)


def _pointwise(x: Any, weight: Any, bias: Any, stride: Any, groups: int, result: Any) -> None:
    """A kernel of one tap: a matrix product per sample, on the input as it is."""
    x = x[(slice(None), slice(None), *(slice(None, None, jump) for jump in stride))]
    features = weight.shape[0]
    matrices = _np.ascontiguousarray(weight.reshape(groups, features // groups, -1))
    target = result.reshape(len(x), groups, features // groups, -1)
    seen = x.reshape(len(x), groups, x.shape[1] // groups, -1)
    _np.matmul(matrices, _np.ascontiguousarray(seen), out=target)
    if bias is not None:
        target += bias.reshape(groups, features // groups, 1)


# -- windows -----------------------------------------------------------------------------------------------------


def _unfolded(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any
) -> Iterator[tuple[slice, slice, tuple[int, ...], Any]]:
    """Pieces of the windows of `x`: (samples, rows of the result, grid, columns).

    Columns have shape (channels, taps, samples x grid); the grid is at least as large as the piece of the result,
    which is its first corner. The array is written over by the next piece.
    """
    channels = x.shape[1]
    padded = [n + low + high for n, (low, high) in zip(x.shape[2:], padding)]
    flat = all(jump == 1 for jump in stride)
    taps = _math.prod(kernel)
    inner = tuple(padded[1:]) if flat else tuple(out[1:])
    bytes_per_row = channels * taps * _math.prod(inner) * x.itemsize
    steps = _row_major(padded)
    beyond = sum(step * (k - 1) * jump for step, k, jump in zip(dilation[1:], kernel[1:], steps[1:])) if flat else 0
    memory: Any = None
    for samples, rows in _pieces(len(x), out[0], bytes_per_row, _UNFOLDED_BYTES):
        count, height = samples.stop - samples.start, rows.stop - rows.start
        first = rows.start * stride[0]
        covered = slice(first, first + (height - 1) * stride[0] + dilation[0] * (kernel[0] - 1) + 1)
        buffer = _padded(x[samples].swapaxes(0, 1), padded, padding, covered, beyond)
        grid = (height, *inner)
        if memory is None:
            memory = _np.empty(channels * taps * count * _math.prod(grid), x.dtype)
        columns = memory[: channels * taps * count * _math.prod(grid)].reshape(channels, *kernel, count, *grid)
        item = x.itemsize
        moves = [step * jump * item for step, jump in zip(dilation, steps)]
        if flat:
            columns = columns.reshape(channels, *kernel, count, -1)
            strides = (buffer.strides[0], *moves, buffer.strides[1], item)
        else:
            strides = (buffer.strides[0], *moves, buffer.strides[1], *(s * j * item for s, j in zip(stride, steps)))
        _np.copyto(columns, _as_strided(buffer, columns.shape, strides, writeable=False))
        yield samples, rows, grid, columns.reshape(channels, taps, -1)


def _padded(x: Any, padded: Any, padding: Any, covered: slice, beyond: int) -> Any:
    """Rows `covered` of the padded `x`, each (channel, sample) in one run, with `beyond` zeros after each of them."""
    height = covered.stop - covered.start
    inner = padded[1:]
    length = height * _math.prod(inner)
    buffer = _np.zeros((*x.shape[:2], length + beyond), x.dtype)
    grid = buffer[:, :, :length].reshape(*x.shape[:2], height, *inner)
    low, high = padding[0]
    start = max(covered.start - low, 0)
    stop = min(covered.stop - low, x.shape[2])
    if start < stop:
        source, target = [slice(start, stop)], [slice(start + low - covered.start, stop + low - covered.start)]
        for n, (low, high) in zip(x.shape[3:], padding[1:]):
            source.append(slice(max(-low, 0), n - max(-high, 0)))
            target.append(slice(max(low, 0), max(low, 0) + source[-1].stop - source[-1].start))
        grid[(slice(None), slice(None), *target)] = x[(slice(None), slice(None), *source)]
    return buffer


def _pieces(samples: int, rows: int, bytes_per_row: int, limit: int) -> Iterator[tuple[slice, slice]]:
    """Cut `samples` x `rows` into pieces of at most about `limit` bytes: several samples, or some rows of one."""
    together = limit // max(1, bytes_per_row * rows)
    if together >= 1:
        for first, last in _cuts(samples, together):
            yield slice(first, last), slice(0, rows)
        return
    for sample in range(samples):
        for first, last in _cuts(rows, max(1, limit // bytes_per_row)):
            yield slice(sample, sample + 1), slice(first, last)


def _cuts(total: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut range(total) into runs of at most `most` that are about equally long."""
    count = max(1, -(-total // most))
    length = max(1, -(-total // count))
    for first in range(0, total, length):
        yield first, min(first + length, total)


def _taps(kernel: Any, dilation: Any) -> Iterator[tuple[int, ...]]:
    """The offsets of a kernel's elements, in memory order."""
    return _itertools.product(*(range(0, k * step, step) for k, step in zip(kernel, dilation)))


def _reached(tap: Any, out: Any, stride: Any) -> tuple[slice, ...]:
    """Where a tap lies in the padded input, for all windows."""
    places = (slice(o, o + (n - 1) * jump + 1, jump) for o, n, jump in zip(tap, out, stride))
    return (slice(None), slice(None), *places)


def _row_major(shape: Any) -> list[int]:
    """How many elements apart neighbours along each axis are."""
    return [_math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _cropped(padded: Any, size: Any, padding: Any) -> Any:
    """Take padding off again; where it is negative, zeros are put back."""
    kept = [n - max(-low, 0) - max(-high, 0) for n, (low, high) in zip(size, padding)]
    source = (slice(max(low, 0), max(low, 0) + n) for n, (low, _) in zip(kept, padding))
    inner = padded[(slice(None), slice(None), *source)]
    if kept == list(size):
        return _np.ascontiguousarray(inner)
    result = _np.zeros((*padded.shape[:2], *size), padded.dtype)
    target = (slice(max(-low, 0), max(-low, 0) + n) for n, (low, _) in zip(kept, padding))
    result[(slice(None), slice(None), *target)] = inner
    return result


def _flipped(weight: Any, groups: int) -> Any:
    """The weights of the convolution that is the transpose of one with stride 1."""
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).swapaxes(1, 2)
    grouped = grouped[(slice(None),) * 3 + (slice(None, None, -1),) * (weight.ndim - 2)]
    return grouped.reshape(groups * weight.shape[1], weight.shape[0] // groups, *weight.shape[2:])


def _opposite(weight: Any, padding: Any, dilation: Any) -> tuple[tuple[int, int], ...]:
    """The padding of that convolution."""
    reach = [step * (k - 1) for step, k in zip(dilation, weight.shape[2:])]
    return tuple((r - low, r - high) for r, (low, high) in zip(reach, padding))


def _working(*arrays: Any) -> tuple[Any, list[Any]]:
    """The result's dtype, and the arrays in the dtype to compute in: half precision is summed in single."""
    dtype = _np.result_type(*(a for a in arrays if a is not None))
    work = _computed_in(dtype)
    return dtype, [None if a is None else a.astype(work, copy=False) for a in arrays]
