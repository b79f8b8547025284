"""Moving vectors between registers and memory at any stride, whole or in part.

A vector's lanes are the elements at index, index + stride, index + 2 * stride, ... of an array. Where not all of them
are wanted, a mask says which: nothing is read or written at the others.
"""

from __future__ import annotations

from typing import Any, Callable

from llvmlite import ir

from .code import I1, I32, I64, VOID, constant, load, splat, store
from .registers import REGISTER_BYTES


def lanes(size: int) -> int:
    """How many elements of `size` bytes one of this machine's vector registers has."""
    return REGISTER_BYTES // size


def itemsize(kind: Any) -> int:
    """Bytes of an element of a type."""
    if isinstance(kind, ir.IntType):
        return max(1, kind.width // 8)
    return {"half": 2, "float": 4, "double": 8}[str(kind)]


def first(width: int, count: int) -> Any:
    """A mask of the first `count` lanes."""
    return ir.Constant(ir.VectorType(I1, width), [1 if lane < count else 0 for lane in range(width)])


def iota(width: int, step: int = 1, kind: Any = I64) -> Any:
    """0, step, 2 * step, ..."""
    return ir.Constant(ir.VectorType(kind, width), [lane * step for lane in range(width)])


def below(b: Any, index: Any, limit: Any, width: int) -> Any:
    """A mask of the lanes for which index + lane < limit."""
    left = b.trunc(b.sub(limit, index), I32)
    return b.icmp_signed("<", iota(width, 1, I32), splat(b, left, width))


def pieces(count: int, width: int) -> list[tuple[int, Any]]:
    """Vectors that make up `count` lanes: the first lane of each, and a mask for one that is not whole."""
    return [(at, None if at + width <= count else first(width, count - at)) for at in range(0, count, width)]


def load_lanes(b: Any, pointer: Any, index: Any, stride: int, width: int, mask: Any = None) -> Any:
    """The elements index + lane * stride, zeros where `mask` is false; of one lane without a mask, a scalar."""
    kind = pointer.type.pointee
    if width == 1:
        return load(b, pointer, index, 1, itemsize(kind))
    whole = ir.VectorType(kind, width)
    if stride == 0 and mask is None:
        return splat(b, load(b, pointer, index, 1, itemsize(kind)), width)
    if stride == 1 and mask is None:
        return load(b, pointer, index, width, itemsize(kind))
    mask = first(width, width) if mask is None else mask
    zeros = constant(whole, 0)
    if stride == 1:
        at = b.bitcast(b.gep(pointer, [index]), whole.as_pointer())
        name = f"llvm.masked.load.{_name(whole)}.p0"
    else:
        at = _addresses(b, pointer, index, stride, width)
        name = f"llvm.masked.gather.{_name(whole)}.v{width}p0"
    function = declared(b, name, whole, [at.type, I32, mask.type, whole])
    return b.call(function, [at, I32(itemsize(kind)), mask, zeros])


def store_lanes(b: Any, value: Any, pointer: Any, index: Any, stride: int, mask: Any = None) -> None:
    """Write lanes to the elements index + lane * stride where `mask` is true."""
    kind, whole = pointer.type.pointee, value.type
    if not isinstance(whole, ir.VectorType) or (stride == 1 and mask is None):
        return store(b, value, pointer, index, itemsize(kind))
    if stride == 1:
        at = b.bitcast(b.gep(pointer, [index]), whole.as_pointer())
        name = f"llvm.masked.store.{_name(whole)}.p0"
    else:
        at = _addresses(b, pointer, index, stride, whole.count)
        mask = first(whole.count, whole.count) if mask is None else mask
        name = f"llvm.masked.scatter.{_name(whole)}.v{whole.count}p0"
    function = declared(b, name, VOID, [whole, at.type, I32, mask.type])
    b.call(function, [value, at, I32(itemsize(kind)), mask])


def total(b: Any, value: Any) -> Any:
    """The sum of a vector's lanes, added up in pairs."""
    return folded(b, value, b.fadd)


def highest(b: Any, value: Any) -> Any:
    """The largest lane, leaving NaN aside if the first half has none."""
    return folded(b, value, lambda x, y: larger(b, x, y))


def larger(b: Any, x: Any, y: Any) -> Any:
    """x if it is larger, else y: what one instruction computes."""
    return b.select(b.fcmp_ordered(">", x, y), x, y)


def folded(b: Any, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """One number from the lanes of a vector: halves are combined until one lane is left."""
    width = value.type.count
    while width > 1:
        width //= 2
        nothing = ir.Constant(value.type, ir.Undefined)
        halves = [ir.Constant(ir.VectorType(I32, width), list(range(at, at + width))) for at in (0, width)]
        value = combine(*(b.shuffle_vector(value, nothing, half) for half in halves))
    return b.extract_element(value, I32(0))


def _addresses(b: Any, pointer: Any, index: Any, stride: int, width: int) -> Any:
    """Addresses of the lanes, as a vector of pointers: computed as integers, for want of a `gep` of vectors here."""
    base = b.ptrtoint(b.gep(pointer, [index]), I64)
    places = b.add(splat(b, base, width), iota(width, stride * itemsize(pointer.type.pointee)))
    return b.inttoptr(places, ir.VectorType(pointer.type, width))


def declared(b: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """A function of LLVM's own, declared once in a module."""
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(result, arguments), name)
    return function


def _name(kind: Any) -> str:
    element = {"float": "f32", "double": "f64", "half": "f16"}.get(str(kind.element), str(kind.element))
    return f"v{kind.count}{element}"
