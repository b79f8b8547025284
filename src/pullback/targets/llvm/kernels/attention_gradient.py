"""The gradient of attention: the shares of a few rows are computed again, from the scores and their denominators.

A unit of work is a head of k and v with all queries that share it, so that each gradient has one writer. With P the
shares and dP the products of the cotangent with the values, dS = P (dP - sum of cotangent times result); then
dv = P^T g, dq = scale dS k and dk = scale dS^T q.
"""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from ...custom_kernels import AttentionGradient
from ..code import I64, Emitted, constant, splat
from ..mathematics.exponentials import exp
from ..mathematics.lanes import Lanes
from ..strided import load_lanes, pieces, store_lanes, total
from . import attention
from .attention_blocks import Blocks
from .tile_routines import ROWS

_NANOSECONDS = 0.02  # for each multiplication and addition


def supports(kernel: AttentionGradient) -> bool:
    return attention.supports(kernel.forward)


def emit(module: ir.Module, name: str, kernel: AttentionGradient) -> Emitted:
    forward = kernel.forward
    blocks = Blocks(module, name, forward)
    b, code = blocks.b, blocks.code
    arrays = _pointers(blocks, kernel)
    # The arrays that have a head for each of q's, and their strides.
    by_query = {"g": kernel.g, "q": forward.q, "out": forward.out, "lse": forward.lse}
    if forward.mask is not None:
        by_query["mask"] = forward.mask[1]
    if kernel.dq is not None:
        by_query["dq"] = kernel.dq
    by_key = {"k": forward.k, "v": forward.v}
    sums = {}  # gradients that are summed over blocks of queries, in scratch memory
    for which, strides in (("dk", kernel.dk), ("dv", kernel.dv)):
        if strides is not None:
            by_key[which] = strides
            sums[which] = blocks.matrix(blocks.keys, blocks.columns if which == "dk" else blocks.value_columns)
    work = _Work(blocks)
    length, scale, step, v_step = forward.length, forward.scale, blocks.columns, blocks.value_columns
    wants_scores = kernel.dq is not None or kernel.dk is not None

    with code.loop(code.begin, code.end) as (head,):
        key_places = dict(zip(by_key, blocks.head(head, list(by_key.values()))))
        starts = blocks.head(head, [blocks.of_queries(strides) for strides in by_query.values()])
        work.pack_keys(b.gep(arrays["k"], [key_places["k"]]), b.gep(arrays["v"], [key_places["v"]]), wants_scores)
        for which, matrix in sums.items():
            blocks.clear(matrix, step if which == "dk" else v_step, blocks.keys)
        with code.loop(I64(0), I64(forward.group)) as (member,):
            places = {
                which: b.gep(arrays[which], [b.add(at, b.mul(member, I64(strides[len(forward.batch)])))])
                for (which, strides), at in zip(by_query.items(), starts)
            }
            with code.loop(I64(0), I64(length), blocks.rows) as (row,):
                stop = b.add(row, I64(blocks.rows))
                stop = b.select(b.icmp_signed("<", stop, I64(length)), stop, I64(length))
                count = b.sub(stop, row)
                whole = blocks.rounded(count, ROWS)
                visible, wide = blocks.visible(stop)
                first = {
                    which: b.gep(places[which], [b.mul(row, I64(strides[-1 if which == "lse" else -2]))])
                    for which, strides in by_query.items() if which != "mask"
                }  # fmt: skip
                blocks.pack(first["q"], forward.q, count, forward.width, work.queries, step, scale)
                blocks.pack(first["g"], kernel.g, count, forward.value_width, work.cotangents, v_step)
                work.score(whole, wide, wants_scores)
                with code.loop(I64(0), count) as (i,):
                    out_row = b.gep(first["out"], [b.mul(i, I64(forward.out[-2]))])
                    lse_at = b.gep(first["lse"], [b.mul(i, I64(forward.lse[-1]))])
                    work.differentiate(i, b.add(row, i), wide, places.get("mask"), lse_at, out_row, wants_scores)
                if "dv" in sums:
                    shares = (work.shares, blocks.step, work.cotangents, v_step)
                    blocks.multiply(*shares, sums["dv"], v_step, wide, I64(v_step), count, transposed=True)
                if "dk" in sums:
                    scores = (work.scores, blocks.step, work.queries, step)
                    blocks.multiply(*scores, sums["dk"], step, wide, I64(step), count, transposed=True)
                if kernel.dq is not None:
                    left = (work.scores, blocks.step, work.keys, step)
                    blocks.multiply(*left, work.product, step, whole, I64(step), visible)
                    factor = constant(blocks.vector, scale)
                    change = lambda value, _: b.fmul(value, factor)
                    blocks.unpack(work.product, step, first["dq"], kernel.dq, count, forward.width, change)
        for which, matrix in sums.items():
            columns, size = (forward.width, step) if which == "dk" else (forward.value_width, v_step)
            target = b.gep(arrays[which], [key_places[which]])
            blocks.unpack(matrix, size, target, by_key[which], I64(forward.keys), columns, lambda value, _: value)
    code.end_function()
    units = prod(forward.batch) * forward.heads
    products = 2 * forward.value_width + 3 * forward.width + 16
    cost = units * forward.group * length * forward.keys * products * _NANOSECONDS * blocks.size / 4
    return Emitted(name, units, cost * (0.5 if forward.is_causal else 1.0), scratch=blocks.scratch)


def _pointers(blocks: Blocks, kernel: AttentionGradient) -> dict[str, Any]:
    """The arrays that there are, by name."""
    forward = kernel.forward
    present = {
        "g": True, "q": True, "k": True, "v": True, "mask": forward.mask is not None, "out": True, "lse": True,
        "dq": kernel.dq is not None, "dk": kernel.dk is not None, "dv": kernel.dv is not None,
    }  # fmt: skip
    names = [which for which, is_there in present.items() if is_there]
    dtypes = {"mask": forward.mask[0]} if forward.mask is not None else {}
    return {which: blocks.code.pointer(i, dtypes.get(which, forward.dtype)) for i, which in enumerate(names)}


class _Work:
    """The matrices of one head and of one block of its queries, in scratch memory."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.keys = blocks.matrix(blocks.keys, blocks.columns)
        self.keys_transposed = blocks.matrix(blocks.columns, blocks.step)
        self.values = blocks.matrix(blocks.keys, blocks.value_columns)
        self.values_transposed = blocks.matrix(blocks.value_columns, blocks.step)
        self.queries = blocks.matrix(blocks.rows, blocks.columns)
        self.cotangents = blocks.matrix(blocks.rows, blocks.value_columns)
        self.shares = blocks.matrix(blocks.rows, blocks.step)
        self.scores = blocks.matrix(blocks.rows, blocks.step)
        self.product = blocks.matrix(blocks.rows, blocks.columns)

    def pack_keys(self, k: Any, v: Any, wants_scores: bool) -> None:
        blocks, kernel = self.blocks, self.blocks.kernel
        count = I64(kernel.keys)
        blocks.pack(k, kernel.k, count, kernel.width, self.keys, blocks.columns)
        blocks.transpose(self.keys, blocks.columns, self.keys_transposed, blocks.step, blocks.keys, blocks.columns)
        if wants_scores:
            step = blocks.value_columns
            blocks.pack(v, kernel.v, count, kernel.value_width, self.values, step)
            blocks.transpose(self.values, step, self.values_transposed, blocks.step, blocks.keys, step)

    def score(self, rows: Any, wide: Any, wants_scores: bool) -> None:
        """Scores into `shares`, and the products of the cotangents with the values into `scores`."""
        blocks, kernel = self.blocks, self.blocks.kernel
        left = (self.queries, blocks.columns, self.keys_transposed, blocks.step)
        blocks.multiply(*left, self.shares, blocks.step, rows, wide, I64(kernel.width))
        if wants_scores:
            right = (self.cotangents, blocks.value_columns, self.values_transposed, blocks.step)
            blocks.multiply(*right, self.scores, blocks.step, rows, wide, I64(kernel.value_width))

    def differentiate(self, i: Any, row: Any, wide: Any, bias: Any, lse: Any, out: Any, wants_scores: bool) -> None:
        """Turn row `i` of the block, number `row` of all, into shares and into the cotangents of its scores."""
        blocks, kernel = self.blocks, self.blocks.kernel
        b, code, width = blocks.b, blocks.code, blocks.width
        denominator = splat(b, b.load(lse), width)
        shares, scores = (b.gep(matrix, [b.mul(i, I64(blocks.step))]) for matrix in (self.shares, self.scores))
        zero = constant(blocks.vector, 0.0)
        weight: Any = None
        if wants_scores:
            cotangents = b.gep(self.cotangents, [b.mul(i, I64(blocks.value_columns))])
            parts = zero
            for at, mask in pieces(kernel.value_width, width):
                result = load_lanes(b, out, I64(at * kernel.out[-1]), kernel.out[-1], width, mask)
                parts = b.fadd(parts, b.fmul(result, load_lanes(b, cotangents, I64(at), 1, width)))
            weight = splat(b, total(b, parts), width)
        with code.loop(I64(0), wide, width) as (column,):
            shown = blocks.shown(row, column)
            score = blocks.biased(load_lanes(b, shares, column, 1, width), bias, row, column, shown)
            share = exp(Lanes(b, b.fsub(score, denominator))).value
            store_lanes(b, share, shares, column, 1)
            if wants_scores:
                change = b.fmul(share, b.fsub(load_lanes(b, scores, column, 1, width), weight))
                store_lanes(b, change, scores, column, 1)
