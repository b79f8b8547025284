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
    return ir.Constant(ir.VectorType(I1, width), [int(lane < count) for lane in range(width)])


def first_or_all(width: int, count: int) -> Any:
    """A mask of the first `count` lanes; None if that is all of them."""
    return None if count >= width else first(width, count)


def iota(width: int, step: int = 1, kind: Any = I64) -> Any:
    """0, step, 2 * step, ..."""
    return ir.Constant(ir.VectorType(kind, width), [lane * step for lane in range(width)])


def below(b: Any, index: Any, limit: Any, width: int) -> Any:
    """A mask of the lanes for which index + lane < limit."""
    left = b.trunc(b.sub(limit, index), I32)
    return b.icmp_signed("<", iota(width, 1, I32), splat(b, left, width))


def pieces(count: int, width: int) -> list[tuple[int, Any]]:
    """Vectors that make up `count` lanes: the first lane of each, and a mask for one that is not whole."""
    return [(at, first_or_all(width, count - at)) for at in range(0, count, width)]


def load_lanes(b: Any, pointer: Any, index: Any, stride: int, width: int, mask: Any = None) -> Any:
    """The elements index + lane * stride; lanes outside of the mask are not read, and zero. Of one lane, a scalar."""
    kind = pointer.type.pointee
    size = itemsize(kind)
    if width == 1:
        return load(b, pointer, index, 1, size)
    whole = ir.VectorType(kind, width)
    if mask is None and stride == 0:
        return splat(b, load(b, pointer, index, 1, size), width)
    if mask is None and stride == 1:
        return load(b, pointer, index, width, size)
    if mask is None and stride == -1:
        backwards = ir.Constant(ir.VectorType(I32, width), list(range(width - 1, -1, -1)))
        neighbours = load(b, pointer, b.sub(index, I64(width - 1)), width, size)
        return b.shuffle_vector(neighbours, ir.Constant(whole, ir.Undefined), backwards)
    if stride == 1:
        at = b.bitcast(b.gep(pointer, [index], inbounds=True), whole.as_pointer())
        name = f"llvm.masked.load.{_name(whole)}.p0"
    elif mask is None or isinstance(mask, ir.Constant):
        value = constant(whole, 0)
        for lane in _chosen(mask, width):
            element = load(b, pointer, b.add(index, I64(lane * stride)), 1, size)
            value = b.insert_element(value, element, I32(lane))
        return value
    else:
        at = _addresses(b, pointer, index, stride, width)
        name = f"llvm.masked.gather.{_name(whole)}.v{width}p0"
    function = declared(b, name, whole, [at.type, I32, mask.type, whole])
    return b.call(function, [at, I32(size), mask, constant(whole, 0)])


def store_lanes(b: Any, value: Any, pointer: Any, index: Any, stride: int, mask: Any = None) -> None:
    """Write the lanes of the mask to the elements index + lane * stride."""
    size = itemsize(pointer.type.pointee)
    whole = value.type
    if not isinstance(whole, ir.VectorType) or (stride == 1 and mask is None):
        return store(b, value, pointer, index, size)
    is_known = mask is None or isinstance(mask, ir.Constant)
    # LLVM 22 makes of a masked store of narrowed integers (bfloat16 is stored as such) a store of the wide one if the
    # mask is known and has one lane: it would write beyond the element.
    if stride == 1 and not (is_known and len(_chosen(mask, whole.count)) == 1):
        at = b.bitcast(b.gep(pointer, [index], inbounds=True), whole.as_pointer())
        name = f"llvm.masked.store.{_name(whole)}.p0"
    elif is_known:
        for lane in _chosen(mask, whole.count):
            store(b, b.extract_element(value, I32(lane)), pointer, b.add(index, I64(lane * stride)), size)
        return None
    else:
        at = _addresses(b, pointer, index, stride, whole.count)
        name = f"llvm.masked.scatter.{_name(whole)}.v{whole.count}p0"
    function = declared(b, name, VOID, [whole, at.type, I32, mask.type])
    b.call(function, [value, at, I32(size), mask])
    return None


def transposed(b: Any, vectors: list[Any]) -> list[Any]:
    """As many vectors as they have lanes, with lane i of vector j and lane j of vector i exchanged."""
    vectors = list(vectors)
    width = len(vectors)
    kind = ir.VectorType(I32, width)
    distance = width // 2
    while distance:
        # exchange the two blocks off the diagonal in each square of twice `distance`
        upper = ir.Constant(kind, [lane + width - distance if lane & distance else lane for lane in range(width)])
        lower = ir.Constant(kind, [lane + width if lane & distance else lane + distance for lane in range(width)])
        for i in range(width):
            if not i & distance:
                x, y = vectors[i], vectors[i + distance]
                vectors[i], vectors[i + distance] = b.shuffle_vector(x, y, upper), b.shuffle_vector(x, y, lower)
        distance //= 2
    return vectors


def total(b: Any, value: Any) -> Any:
    """The sum of a vector's lanes, added up in pairs."""
    return folded(b, value, b.fadd)


def summed(b: Any, vectors: list[Any]) -> Any:
    """The sums over the lanes of each of a power of two of vectors, as one vector; the number itself for one."""
    segments = 1
    while len(vectors) > 1:
        vectors = [_halved(b, one, other, segments) for one, other in zip(vectors[::2], vectors[1::2])]
        segments *= 2
    value = vectors[0]
    while value.type.count > segments:
        value = _halved(b, value, None, segments)
    return b.extract_element(value, I32(0)) if segments == 1 else value


def _halved(b: Any, one: Any, other: Any, segments: int) -> Any:
    """Add the upper half of each segment of lanes to its lower half: the segments of `one`, then those of `other`."""
    count = one.type.count
    length = count // segments
    sources = (0,) if other is None else (0, count)
    starts = [source + segment * length for source in sources for segment in range(segments)]
    low = [start + lane for start in starts for lane in range(length // 2)]
    high = [lane + length // 2 for lane in low]
    second = ir.Constant(one.type, ir.Undefined) if other is None else other
    return b.fadd(_shuffled(b, one, second, low), _shuffled(b, one, second, high))


def _shuffled(b: Any, one: Any, other: Any, lanes: list[int]) -> Any:
    return b.shuffle_vector(one, other, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


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


def _chosen(mask: Any, width: int) -> list[int]:
    """The lanes of a mask that is known now; None for all."""
    return [lane for lane in range(width) if mask is None or mask.constant[lane].constant]


def declared(b: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """A function of LLVM's own, declared once in a module."""
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(result, arguments), name)
    return function


def _name(kind: Any) -> str:
    element = {"float": "f32", "double": "f64", "half": "f16"}.get(str(kind.element), str(kind.element))
    return f"v{kind.count}{element}"
