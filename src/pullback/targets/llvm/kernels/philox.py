"""Random numbers of the counter-based generator Philox4x32-10, bit for bit those of the NumPy kernels.

Block number i of a key's stream, four words, depends on the key and on i alone: a vector computes as many blocks as it
has 64-bit lanes. A chunk of words is written to scratch memory first, as the words that are wanted may begin inside
a block, and numbers are made of them from there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...custom_kernels import Philox
from ..code import F32, F64, I8, I32, I64, Code, Emitted, constant, load, splat, store
from ..strided import below, iota, lanes, store_lanes

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = 0xFFFFFFFF
_STRETCH = 1024  # words made at a time: a unit of work
_WORDS = {"uint32": 1, "bool": 1, "float32": 1, "float64": 2}  # that a number takes


def supports(kernel: Philox) -> bool:
    return kernel.made in _WORDS


def emit(module: ir.Module, name: str, kernel: Philox) -> Emitted:
    code = Code(module, name)
    b = code.b
    width = lanes(8)  # blocks computed at once
    numbers = _STRETCH // _WORDS[kernel.made]
    key, offset = (load(b, code.pointer(i, "uint64"), I64(0), 1, 8) for i in range(2))
    out = code.pointer(2, kernel.made)
    words = b.bitcast(code.scratch, I32.as_pointer())
    first, skip = b.lshr(offset, I64(2)), b.and_(offset, I64(3))
    with code.loop(code.begin, code.end) as (unit,):
        start = b.mul(unit, I64(numbers))
        left = b.sub(I64(kernel.count), start)
        count = b.select(b.icmp_signed("<", left, I64(numbers)), left, I64(numbers))
        needed = b.add(b.mul(count, I64(_WORDS[kernel.made])), skip)
        block = b.add(first, b.mul(unit, I64(_STRETCH // 4)))
        with code.loop(I64(0), needed, 4 * width) as (i,):
            index = b.add(splat(b, b.add(block, b.lshr(i, I64(2))), width), iota(width))
            for part, vector in enumerate(_interleaved(b, _blocks(b, key, index, kernel.domain, width), width)):
                store(b, vector, words, b.add(i, I64(part * 2 * width)), 4)
        _convert(code, kernel, b.gep(words, [skip]), b.gep(out, [start]), count)
    code.end_function()
    units = -(-kernel.count // numbers)
    cost = kernel.count * _WORDS[kernel.made] * 0.6
    return Emitted(name, units, cost, scratch=4 * (_STRETCH + 8 * width))


def _blocks(b: Any, key: Any, index: Any, domain: int, width: int) -> list[Any]:
    """The four words of each block in `index`, as 64-bit numbers."""
    kind = index.type
    low, half = constant(kind, _LOW), constant(kind, 32)
    x, y = b.and_(index, low), b.lshr(index, half)
    z, w = constant(kind, domain & _LOW), constant(kind, domain >> 32)
    key_low, key_high = b.and_(key, I64(_LOW)), b.lshr(key, I64(32))
    for _ in range(_ROUNDS):
        left = b.mul(x, constant(kind, _MULTIPLIERS[0]))
        right = b.mul(z, constant(kind, _MULTIPLIERS[1]))
        x = b.xor(b.xor(b.lshr(right, half), y), splat(b, key_low, width))
        y = b.and_(right, low)
        z = b.xor(b.xor(b.lshr(left, half), w), splat(b, key_high, width))
        w = b.and_(left, low)
        key_low = b.and_(b.add(key_low, I64(_KEY_STEPS[0])), I64(_LOW))
        key_high = b.and_(b.add(key_high, I64(_KEY_STEPS[1])), I64(_LOW))
    return [x, y, z, w]


def _interleaved(b: Any, words: list[Any], width: int) -> list[Any]:
    """Words in the order of the stream, as two vectors of 32-bit lanes: all words of a block, then the next."""
    pairs = [b.or_(low, b.shl(high, constant(high.type, 32))) for low, high in (words[:2], words[2:])]
    narrow = ir.VectorType(I32, 2 * width)
    halves = []
    for start in (0, width // 2):
        order = [lane for i in range(start, start + width // 2) for lane in (i, width + i)]
        both = b.shuffle_vector(*pairs, ir.Constant(ir.VectorType(I32, width), order))
        halves.append(b.bitcast(both, narrow))
    return halves


def _convert(code: Code, kernel: Philox, words: Any, out: Any, count: Any) -> None:
    """Make `count` numbers of the words from `words` on."""
    b = code.b
    width = lanes(8)
    step = width if kernel.made == "float64" else 2 * width
    with code.loop(I64(0), count, step) as (i,):
        if kernel.made == "float64":
            both = load(b, words, b.mul(i, I64(2)), 2 * width, 4)
            value = _unit(b, b.bitcast(both, ir.VectorType(I64, width)))
        else:
            value = load(b, words, i, step, 4)
        if kernel.made == "float32":
            wide = ir.VectorType(F32, step)
            value = b.fmul(b.sitofp(b.lshr(value, constant(value.type, 8)), wide), constant(wide, 2.0**-24))
        elif kernel.made == "bool":
            bytes_ = ir.VectorType(I8, step)
            if kernel.threshold > _LOW:
                value = constant(bytes_, 0)
            else:
                value = b.zext(b.icmp_unsigned(">=", value, constant(value.type, kernel.threshold)), bytes_)
        store_lanes(b, value, out, i, 1, below(b, i, count, step))


def _unit(b: Any, words: Any) -> Any:
    """53 bits as a number in [0, 1), exactly: 27 from the first word of a pair, 26 from the second."""
    wide = ir.VectorType(F64, words.type.count)
    upper = b.lshr(b.and_(words, constant(words.type, _LOW)), constant(words.type, 5))
    lower = b.lshr(words, constant(words.type, 38))
    total = b.or_(b.shl(upper, constant(words.type, 26)), lower)
    return b.fmul(b.sitofp(total, wide), constant(wide, 2.0**-53))
