"""Attention: softmax(scale q k^T + mask) v, with the scores of a few rows in scratch memory at a time.

A unit of work is a head of k and v with all queries that share it, or a chunk of those queries where there are few
heads. Keys are packed once for all of them, transposed, so that scores are products of whole vectors.
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

from llvmlite import ir

from ...custom_kernels import Attention
from ..code import I64, Emitted, constant, splat
from ..mathematics.exponentials import exp
from ..mathematics.lanes import Lanes
from ..mathematics.logarithms import log
from ..strided import below, highest, larger, load_lanes, store_lanes, total
from .attention_blocks import Blocks
from .tile_routines import ROWS

_TOGETHER = 4  # rows, in the softmax
_FEW = 8  # units of work to aim at
_NANOSECONDS = 0.02  # for each multiplication and addition


def supports(kernel: Attention) -> bool:
    known = kernel.dtype in ("float32", "float64")
    return known and (kernel.mask is None or kernel.mask[0] in ("bool", kernel.dtype))


def emit(module: ir.Module, name: str, kernel: Attention) -> Emitted:
    blocks = Blocks(module, name, kernel)
    b, code = blocks.b, blocks.code
    heads = prod(kernel.batch) * kernel.heads
    chunks = max(1, min(-(-_FEW // max(1, heads)), kernel.length // (4 * blocks.rows)))
    chunk = -(-kernel.length // (chunks * blocks.rows)) * blocks.rows
    chunks = -(-kernel.length // chunk) if chunk else 0
    q, k, v = (code.pointer(i, kernel.dtype) for i in range(3))
    mask = None if kernel.mask is None else code.pointer(3, kernel.mask[0])
    out, lse = (code.pointer(i + (3 if mask is None else 4), kernel.dtype) for i in range(2))
    queries = [blocks.of_queries(s) for s in (kernel.q, kernel.out, kernel.lse)]
    if kernel.mask is not None:
        queries.append(blocks.of_queries(kernel.mask[1]))
    packed = blocks.matrix(blocks.keys, blocks.columns)
    keys = blocks.matrix(blocks.columns, blocks.step)
    values = blocks.matrix(blocks.keys, blocks.value_columns)
    rows_of_q = blocks.matrix(blocks.rows, blocks.columns)
    scores = blocks.matrix(blocks.rows, blocks.step)
    weighted = blocks.matrix(blocks.rows, blocks.value_columns)
    peaks, totals = (blocks.matrix(1, blocks.rows + blocks.width) for _ in range(2))
    columns = len(kernel.batch)

    with code.loop(code.begin, code.end) as (unit,):
        head = b.udiv(unit, I64(max(1, chunks)))
        begin = b.mul(b.urem(unit, I64(max(1, chunks))), I64(chunk))
        end = b.add(begin, I64(chunk))
        end = b.select(b.icmp_signed("<", end, I64(kernel.length)), end, I64(kernel.length))
        k_at, v_at = blocks.head(head, [kernel.k, kernel.v])
        starts = blocks.head(head, queries)
        seen = I64(kernel.keys)
        blocks.pack(b.gep(k, [k_at]), kernel.k, seen, kernel.width, packed, blocks.columns)
        blocks.transpose(packed, blocks.columns, keys, blocks.step, blocks.keys, blocks.columns)
        v_step = blocks.value_columns
        blocks.pack(b.gep(v, [v_at]), kernel.v, seen, kernel.value_width, values, v_step)
        with code.loop(I64(0), I64(kernel.group)) as (member,):
            strides = [kernel.q, kernel.out, kernel.lse] + ([] if kernel.mask is None else [kernel.mask[1]])
            places = [b.add(at, b.mul(member, I64(s[columns]))) for at, s in zip(starts, strides)]
            with code.loop(begin, end, blocks.rows) as (row,):
                stop = b.add(row, I64(blocks.rows))
                stop = b.select(b.icmp_signed("<", stop, end), stop, end)
                count = b.sub(stop, row)
                whole = blocks.rounded(count, ROWS)
                visible, wide = blocks.visible(stop)
                source = b.gep(q, [b.add(places[0], b.mul(row, I64(kernel.q[-2])))])
                blocks.pack(source, kernel.q, count, kernel.width, rows_of_q, blocks.columns, kernel.scale)
                blocks.multiply(
                    rows_of_q, blocks.columns, keys, blocks.step, scores, blocks.step, whole, wide, I64(kernel.width)
                )
                bias = None if mask is None else b.gep(mask, [places[3]])
                with code.loop(I64(0), whole, _TOGETHER) as (i,):
                    _softmax(blocks, scores, bias, row, i, stop, wide, peaks, totals)
                _logarithms(blocks, peaks, totals, b.gep(lse, [places[2]]), row, count)
                blocks.multiply(scores, blocks.step, values, v_step, weighted, v_step, whole, I64(v_step), visible)
                target = b.gep(out, [b.add(places[1], b.mul(row, I64(kernel.out[-2])))])

                def divided(value: Any, i: Any) -> Any:
                    return b.fdiv(value, splat(b, b.load(b.gep(totals, [i])), blocks.width))

                blocks.unpack(weighted, v_step, target, kernel.out, count, kernel.value_width, divided)
    code.end_function()
    work = heads * kernel.group * kernel.length * kernel.keys * (kernel.width + kernel.value_width + 16)
    cost = work * (0.5 if kernel.is_causal else 1.0) * _NANOSECONDS * blocks.size / 4
    return Emitted(name, heads * chunks, cost, scratch=blocks.scratch)


def _softmax(
    blocks: Blocks, scores: Any, bias: Any, row: Any, i: Any, stop: Any, wide: Any, peaks: Any, totals: Any
) -> None:
    """Turn the scores of rows from `i` on of a block into exp(score - highest), and note the highest and the sums.

    Several rows at a time: each alone would wait for its maximum and its sum. Rows from `stop` on are computed like the
    last one, for nobody.
    """
    b, code, width = blocks.b, blocks.code, blocks.width
    rows, starts = [], []
    for n in range(_TOGETHER):
        here = b.add(b.add(row, i), I64(n))
        last = b.sub(stop, I64(1))
        rows.append(b.select(b.icmp_signed("<", here, last), here, last))
        starts.append(b.gep(scores, [b.mul(b.add(i, I64(n)), I64(blocks.step))]))
    lowest = constant(blocks.vector, -math.inf)
    with code.loop(I64(0), wide, width, *[lowest] * _TOGETHER) as (column, *most):
        following = []
        for n in range(_TOGETHER):
            score = load_lanes(b, starts[n], column, 1, width)
            shown = blocks.shown(rows[n], column)
            if bias is not None or shown is not None:
                score = blocks.biased(score, bias, rows[n], column, shown)
                store_lanes(b, score, starts[n], column, 1)
            following.append(larger(b, score, most[n]))
        code.again(*following)
    highest_scores = []
    for n, value in enumerate(code.results):
        peak = highest(b, value)
        hidden = b.fcmp_ordered("==", peak, constant(blocks.kind, -math.inf))
        peak = b.select(hidden, constant(blocks.kind, 0.0), peak)
        b.store(peak, b.gep(peaks, [b.add(i, I64(n))]))
        highest_scores.append(splat(b, peak, width))
    with code.loop(I64(0), wide, width, *[constant(blocks.vector, 0.0)] * _TOGETHER) as (column, *sums):
        following = []
        for n in range(_TOGETHER):
            share = exp(Lanes(b, b.fsub(load_lanes(b, starts[n], column, 1, width), highest_scores[n]))).value
            store_lanes(b, share, starts[n], column, 1)
            following.append(b.fadd(sums[n], share))
        code.again(*following)
    for n, value in enumerate(code.results):
        b.store(total(b, value), b.gep(totals, [b.add(i, I64(n))]))


def _logarithms(blocks: Blocks, peaks: Any, totals: Any, lse: Any, row: Any, count: Any) -> None:
    """Write the logarithms of the denominators of a block's rows; rows that see nothing are divided by 1."""
    b, width = blocks.b, blocks.width
    step = blocks.kernel.lse[-1]
    with blocks.code.loop(I64(0), count, width) as (i,):
        sums = load_lanes(b, totals, i, 1, width)
        hidden = b.fcmp_ordered("==", sums, constant(blocks.vector, 0.0))
        sums = b.select(hidden, constant(blocks.vector, 1.0), sums)
        store_lanes(b, sums, totals, i, 1)
        value = b.fadd(load_lanes(b, peaks, i, 1, width), log(Lanes(b, sums)).value)
        value = b.select(hidden, constant(blocks.vector, math.inf), value)
        place = b.mul(b.add(row, i), I64(step))
        store_lanes(b, value, lse, place, step, below(b, i, count, width))
