"""Linear recurrences along an axis, and their gradients.

Steps are taken one after the other, by whole vectors of sequences: see `across_time.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...axes import Shape
from ...custom_kernels import Scan, ScanGradient
from ..code import I64, STORED, Emitted, constant, vector
from .across_time import BLOCK, Columns, across_time


def supports(kernel: Scan | ScanGradient) -> bool:
    return kernel.dtype in ("float32", "float64")


def emit(module: ir.Module, name: str, kernel: Scan | ScanGradient) -> Emitted:
    h0 = _without_time(kernel.h0, kernel.axis)
    if isinstance(kernel, Scan):
        return across_time(module, name, kernel, (kernel.x, kernel.a, h0, kernel.out), 3, _forward)
    grad_a = _without_time(kernel.grad_a, kernel.axis) if kernel.sums_a else kernel.grad_a
    grad_h0 = _without_time(kernel.grad_h0, kernel.axis)
    arrays = (kernel.g, kernel.a, h0, kernel.out, kernel.grad_x, grad_a, grad_h0)
    return across_time(module, name, kernel, arrays, 4, _backward, BLOCK // 2 if kernel.sums_a else BLOCK)


def _without_time(strides: Shape | None, axis: int) -> Shape | None:
    return None if strides is None else (*strides[:axis], 0, *strides[axis + 1 :])


def _forward(block: Columns, kernel: Scan, length: int) -> None:
    x, a, h0, out = range(4)
    b, code = block.b, block.code
    if not length:
        return
    start, states = 0, []
    for v in block.vectors:
        if block.has(h0):
            states.append(block.read(h0, I64(0), v))
        else:
            start = 1
            states.append(block.read(x, I64(0), v))
            block.write(out, I64(0), v, states[v])
    with code.loop(I64(start), I64(length), 1, *states) as (t, *before):
        after = []
        for v in block.vectors:  # one after the other: all at once would be more than there are registers
            after.append(b.fadd(b.fmul(block.read(a, t, v), before[v]), block.read(x, t, v)))
            block.write(out, t, v, after[v])
        code.again(*after)


def _backward(block: Columns, kernel: ScanGradient, length: int) -> None:
    g, a, h0, out, grad_x, grad_a, grad_h0 = range(7)
    b, code = block.b, block.code
    n = len(block.vectors)
    zeros = [constant(vector(STORED[kernel.dtype], block.width), 0.0)] * n
    kept = zeros if kernel.sums_a else []  # sums of the gradients of `a`

    def step(t: Any, carry: list[Any], sums: list[Any], states: int, before: Any) -> tuple[list[Any], list[Any]]:
        """Step `t` backwards, from state number `before` of an array: what it carries on, and the sums."""
        carry, sums = list(carry), list(sums)
        for v in block.vectors:
            cotangent = b.fadd(block.read(g, t, v), carry[v])
            carry[v] = b.fmul(block.read(a, t, v), cotangent)
            if block.has(grad_x):
                block.write(grad_x, t, v, cotangent)
            if block.has(grad_a):
                product = b.fmul(cotangent, block.read(states, before, v)) if block.has(states) else zeros[v]
                if kernel.sums_a:
                    sums[v] = b.fadd(sums[v], product)
                else:
                    block.write(grad_a, t, v, product)
        return carry, sums

    carry, sums = zeros, kept
    if length:
        with code.loop(I64(0), I64(length - 1), 1, *zeros, *kept) as (i, *values):
            t = b.sub(I64(length - 1), i)
            carry, sums = step(t, values[:n], values[n:], out, b.sub(t, I64(1)))
            code.again(*carry, *sums)
        carry, sums = step(I64(0), list(code.results[:n]), list(code.results[n:]), h0, I64(0))
    for v in block.vectors:
        if kernel.sums_a and block.has(grad_a):
            block.write(grad_a, I64(0), v, sums[v])
        if block.has(grad_h0):
            block.write(grad_h0, I64(0), v, carry[v])
