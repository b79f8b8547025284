"""What the kernels of whole operations mean, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends import NUMPY
from pullback.backends.numpy.random import philox_uint32
from pullback.targets import custom_kernels as w
from pullback.targets.axes import contiguous


def run(machine: Any, kernel: Any, call: Any) -> None:
    """Run one of them on a machine's memory."""
    _RUN[type(kernel)](machine, kernel, call)
    pair = w.written_over(kernel)
    for written, out in enumerate(call.writes):
        for read, location in enumerate(call.reads):
            assert (read, written) == pair or out.buffer is not location.buffer, "a kernel writes over what it reads"


def _all(shape: Any, axis: int) -> Any:
    return tuple(n for i, n in enumerate(shape) if i != axis)


def _scan(machine: Any, kernel: Any, call: Any) -> None:
    x = machine.strided(call.reads[0], kernel.dtype, kernel.shape, kernel.x)
    a = machine.strided(call.reads[1], kernel.dtype, kernel.shape, kernel.a)
    h0 = None
    if kernel.h0 is not None:
        h0 = machine.strided(call.reads[2], kernel.dtype, _all(kernel.shape, kernel.axis), _all(kernel.h0, kernel.axis))
    out = machine.strided(call.writes[0], kernel.dtype, kernel.shape, kernel.out)
    out[...] = NUMPY.xp.ssm_scan(x, a, h0, kernel.axis, kernel.reverse)


def _scan_gradient(machine: Any, kernel: Any, call: Any) -> None:
    shape, rest = kernel.shape, _all(kernel.shape, kernel.axis)
    reads = iter(call.reads)
    g = machine.strided(next(reads), kernel.dtype, shape, kernel.g)
    a = machine.strided(next(reads), kernel.dtype, shape, kernel.a)
    h0 = out = None
    if kernel.h0 is not None:
        h0 = machine.strided(next(reads), kernel.dtype, rest, _all(kernel.h0, kernel.axis))
    if kernel.out is not None:
        out = machine.strided(next(reads), kernel.dtype, shape, kernel.out)
    needs = (True, kernel.grad_a is not None, kernel.grad_h0 is not None)
    made = NUMPY.xp.ssm_scan_gradient(
        g, a, h0, out if out is not None else g, shape, rest, kernel.axis, kernel.reverse, needs
    )
    writes = iter(call.writes)
    if kernel.grad_x is not None:
        machine.strided(next(writes), kernel.dtype, shape, kernel.grad_x)[...] = made[0]
    if kernel.grad_a is not None and kernel.sums_a:
        strides = _all(kernel.grad_a, kernel.axis)
        machine.strided(next(writes), kernel.dtype, rest, strides)[...] = made[1].sum(kernel.axis)
    elif kernel.grad_a is not None:
        machine.strided(next(writes), kernel.dtype, shape, kernel.grad_a)[...] = made[1]
    if kernel.grad_h0 is not None:
        machine.strided(next(writes), kernel.dtype, rest, _all(kernel.grad_h0, kernel.axis))[...] = made[2]


def _running(machine: Any, kernel: Any, call: Any) -> None:
    x = machine.strided(call.reads[0], kernel.dtype, kernel.shape, kernel.x)
    out = machine.strided(call.writes[0], kernel.dtype, kernel.shape, kernel.out)
    if kernel.op == "sum":
        assert not kernel.exclusive
        out[...] = NUMPY.xp.cumulative_sum(x, (kernel.axis - len(kernel.shape),), kernel.reverse)
    else:
        out[...] = NUMPY.xp.cumulative_prod(x, (kernel.axis - len(kernel.shape),), kernel.reverse, kernel.exclusive)


def _extreme(machine: Any, kernel: Any, call: Any) -> None:
    x = machine.strided(call.reads[0], kernel.dtype, (*kernel.shape, kernel.length), kernel.x)
    out = machine.strided(call.writes[0], "int64", kernel.shape, kernel.out)
    out[...] = getattr(np, kernel.op)(x, axis=-1)


def _indices(machine: Any, kernel: Any, call: Any, first: int = 1) -> list[Any]:
    made = []
    for (dtype, strides), location, size in zip(kernel.indices, call.reads[first:], kernel.sizes):
        index = machine.strided(location, dtype, kernel.places, strides).astype(np.int64)
        made.append(_bounded(np.where(index < 0, index + size, index), size))
    return made


def _bounded(index: Any, size: int) -> Any:
    return np.where((index < 0) | (index >= size), 0, index)


def _gather(machine: Any, kernel: Any, call: Any) -> None:
    x = machine.strided(call.reads[0], kernel.dtype, (*kernel.outer, *kernel.sizes, *kernel.inner), kernel.x)
    out = machine.strided(call.writes[0], kernel.dtype, (*kernel.outer, *kernel.places, *kernel.inner), kernel.out)
    out[...] = x[(slice(None),) * len(kernel.outer) + tuple(_indices(machine, kernel, call))]


def _scatter(machine: Any, kernel: Any, call: Any) -> None:
    value = machine.strided(call.reads[0], kernel.dtype, (*kernel.outer, *kernel.places, *kernel.inner), kernel.value)
    out = machine.strided(call.writes[0], kernel.dtype, (*kernel.outer, *kernel.sizes, *kernel.inner), kernel.out)
    out[...] = 0
    np.add.at(out, (slice(None),) * len(kernel.outer) + tuple(_indices(machine, kernel, call)), value)


def _overwrite(machine: Any, kernel: Any, call: Any) -> None:
    shape = (*kernel.outer, *kernel.sizes, *kernel.inner)
    value = machine.strided(call.reads[1], kernel.dtype, (*kernel.outer, *kernel.places, *kernel.inner), kernel.value)
    before = machine.strided(call.reads[0], kernel.dtype, shape, contiguous(shape))
    out = machine.strided(call.writes[0], kernel.dtype, shape, contiguous(shape))
    out[...] = before
    out[(slice(None),) * len(kernel.outer) + tuple(_indices(machine, kernel, call, 2))] = value


def _along(machine: Any, kernel: Any, call: Any) -> None:
    scatter = isinstance(kernel, w.ScatterAlong)
    wide, narrow = (*kernel.rows, kernel.size), (*kernel.rows, kernel.count)
    index = machine.strided(call.reads[1], kernel.index_dtype, narrow, kernel.index).astype(np.int64)
    index = _bounded(np.where(index < 0, index + kernel.size, index), kernel.size)
    out = machine.strided(call.writes[0], kernel.dtype, wide if scatter else narrow, kernel.out)
    if scatter:
        value = machine.strided(call.reads[0], kernel.dtype, narrow, kernel.value)
        out[...] = NUMPY.xp.take_along_axis_transposed(value, index, kernel.size, -1)
    else:
        x = machine.strided(call.reads[0], kernel.dtype, wide, kernel.x)
        out[...] = np.take_along_axis(x, index, -1)


def _forms(machine: Any, a: Any, reads: Any) -> list[Any]:
    heads = a.heads * a.group
    shapes = [
        (*a.batch, heads, a.length, a.width), (*a.batch, a.heads, a.keys, a.width),
        (*a.batch, a.heads, a.keys, a.value_width),
    ]  # fmt: skip
    made = [machine.strided(next(reads), a.dtype, shape, s) for shape, s in zip(shapes, (a.q, a.k, a.v))]
    mask = None
    if a.mask is not None:
        mask = machine.strided(next(reads), a.mask[0], (*a.batch, heads, a.length, a.keys), a.mask[1])
    return [*made, mask]


def _attention(machine: Any, a: Any, call: Any) -> None:
    q, k, v, mask = _forms(machine, a, iter(call.reads))
    made = NUMPY.xp.attention(q, k, v, mask, a.is_causal, a.scale, 0.0, 0, 0)
    machine.strided(call.writes[0], a.dtype, made[0].shape, a.out)[...] = made[0]
    machine.strided(call.writes[1], a.dtype, made[1].shape, a.lse)[...] = made[1]


def _attention_gradient(machine: Any, kernel: Any, call: Any) -> None:
    a = kernel.forward
    reads = iter(call.reads)
    shape = (*a.batch, a.heads * a.group, a.length)
    g = machine.strided(next(reads), a.dtype, (*shape, a.value_width), kernel.g)
    q, k, v, mask = _forms(machine, a, reads)
    out = machine.strided(next(reads), a.dtype, (*shape, a.value_width), a.out)
    lse = machine.strided(next(reads), a.dtype, shape, a.lse)
    wanted = (kernel.dq, kernel.dk, kernel.dv)
    needs = (*(strides is not None for strides in wanted), False)
    made = NUMPY.xp.attention_gradient(g, q, k, v, mask, out, lse, needs, a.is_causal, a.scale, 0.0, 0, 0)
    writes = iter(call.writes)
    for value, strides in zip(made, wanted):
        if strides is not None:
            machine.strided(next(writes), a.dtype, value.shape, strides)[...] = value


def _philox(machine: Any, kernel: Any, call: Any) -> None:
    key, offset = (int(machine.strided(at, "uint64", (1,), (1,))[0]) for at in call.reads)
    assert kernel.made == "bool"
    words = philox_uint32(key, offset, kernel.count, kernel.domain)
    machine.strided(call.writes[0], "bool", (kernel.count,), (1,))[...] = words >= np.uint32(kernel.threshold)


def _image(machine: Any, kernel: Any, location: Any) -> Any:
    """What the windows see: an image with zeros around it."""
    window, channels = kernel.window, kernel.groups * kernel.channels
    x = machine.strided(location, kernel.dtype, (kernel.samples, channels, *window.size), kernel.x)
    seen = np.zeros((kernel.samples, channels, *window.reach), kernel.dtype)
    places = [np.arange(n) + start for n, start in zip(window.size, window.start)]
    inside = [np.flatnonzero((0 <= place) & (place < n)) for place, n in zip(places, window.reach)]
    rows, columns = (place[kept] for place, kept in zip(places, inside))
    seen[:, :, rows[:, None], columns] = x[:, :, inside[0][:, None], inside[1]]
    return seen


def _weights(machine: Any, kernel: Any, location: Any) -> Any:
    shape = (kernel.groups * kernel.features, kernel.channels, *kernel.window.kernel)
    strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(4))
    return machine.strided(location, kernel.dtype, shape, strides)


def _results(machine: Any, kernel: Any, location: Any, strides: Any) -> Any:
    shape = (kernel.samples, kernel.groups * kernel.features, *kernel.window.out)
    return machine.strided(location, kernel.dtype, shape, strides)


def _convolution(machine: Any, kernel: Any, call: Any) -> None:
    x, weight = _image(machine, kernel, call.reads[0]), _weights(machine, kernel, call.reads[1])
    options = (kernel.window.stride, ((0, 0), (0, 0)), kernel.window.dilation, kernel.groups)
    _results(machine, kernel, call.writes[0], kernel.out)[...] = NUMPY.xp.convolution(x, weight, *options)


def _convolution_gradient(machine: Any, kernel: Any, call: Any) -> None:
    g, x = _results(machine, kernel, call.reads[0], kernel.g), _image(machine, kernel, call.reads[1])
    options = (kernel.window.kernel, kernel.window.stride, ((0, 0), (0, 0)), kernel.window.dilation, kernel.groups)
    _weights(machine, kernel, call.writes[0])[...] = NUMPY.xp.convolution_weight_gradient(g, x, *options)


_RUN: dict[type, Any] = {
    w.Scan: _scan, w.ScanGradient: _scan_gradient, w.Running: _running, w.Extreme: _extreme, w.Gather: _gather,
    w.Scatter: _scatter, w.Overwrite: _overwrite, w.GatherAlong: _along, w.ScatterAlong: _along,
    w.Attention: _attention, w.AttentionGradient: _attention_gradient, w.Philox: _philox,
    w.DirectConvolution: _convolution, w.DirectConvolutionGradient: _convolution_gradient,
}  # fmt: skip
