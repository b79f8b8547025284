"""Vectors of elements of an array: neighbours or at any stride, all lanes or those of a mask."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .code import I1, I32, I64, VOID, constant, load, splat, store


def lane_numbers(kind: Any, width: int, step: int = 1) -> Any:
    """0, step, 2 * step, ... in the lanes."""
    return ir.Constant(ir.VectorType(kind, width), [lane * step for lane in range(width)])


def first_lanes(width: int, count: int) -> Any:
    """A mask of the first `count` lanes: None for all of them."""
    if count >= width:
        return None
    return ir.Constant(ir.VectorType(I1, width), [int(lane < count) for lane in range(width)])


def lanes_below(b: Any, index: Any, stop: Any, width: int) -> Any:
    """A mask of the lanes for which index + lane < stop."""
    left = b.trunc(b.sub(stop, index), I32)
    return b.icmp_signed("<", lane_numbers(I32, width), splat(b, left, width))


def load_lanes(b: Any, pointer: Any, index: Any, stride: int, width: int, mask: Any = None) -> Any:
    """The elements index, index + stride, ...; lanes outside of the mask are not read, and zero."""
    kind = pointer.type.pointee
    size = _size(kind)
    if width == 1:
        return load(b, pointer, index, 1, size)
    whole = ir.VectorType(kind, width)
    if stride == 1 and mask is None:
        return load(b, pointer, index, width, size)
    if stride == 1:
        at = b.bitcast(b.gep(pointer, [index], inbounds=True), whole.as_pointer())
        function = _declared(b, f"llvm.masked.load.{_name(whole)}.p0", whole, [at.type, I32, mask.type, whole])
        return b.call(function, [at, I32(size), mask, constant(whole, 0)])
    if stride == -1 and mask is None:
        turned = load(b, pointer, b.sub(index, I64(width - 1)), width, size)
        return b.shuffle_vector(turned, ir.Constant(whole, ir.Undefined), _backwards(width))
    if mask is None or isinstance(mask, ir.Constant):
        value = constant(whole, 0)
        for lane in range(width):
            if mask is None or mask.constant[lane].constant:
                at = b.add(index, I64(lane * stride))
                value = b.insert_element(value, load(b, pointer, at, 1, size), I32(lane))
        return value
    at = _addresses(b, pointer, index, stride, width)
    function = _declared(b, f"llvm.masked.gather.{_name(whole)}.v{width}p0", whole, [at.type, I32, mask.type, whole])
    return b.call(function, [at, I32(size), mask, constant(whole, 0)])


def store_lanes(b: Any, value: Any, pointer: Any, index: Any, stride: int, mask: Any = None) -> None:
    """Write the lanes of the mask to the elements index, index + stride, ..."""
    kind = pointer.type.pointee
    size = _size(kind)
    whole = value.type
    if not isinstance(whole, ir.VectorType) or (stride == 1 and mask is None):
        store(b, value, pointer, index, size)
    elif stride == 1 and not _is_single(mask):
        at = b.bitcast(b.gep(pointer, [index], inbounds=True), whole.as_pointer())
        function = _declared(b, f"llvm.masked.store.{_name(whole)}.p0", VOID, [whole, at.type, I32, mask.type])
        b.call(function, [value, at, I32(size), mask])
    elif mask is None or isinstance(mask, ir.Constant):
        for lane in range(whole.count):
            if mask is None or mask.constant[lane].constant:
                at = b.add(index, I64(lane * stride))
                store(b, b.extract_element(value, I32(lane)), pointer, at, size)
    else:
        at = _addresses(b, pointer, index, stride, whole.count)
        name = f"llvm.masked.scatter.{_name(whole)}.v{whole.count}p0"
        function = _declared(b, name, VOID, [whole, at.type, I32, mask.type])
        b.call(function, [value, at, I32(size), mask])


def _is_single(mask: Any) -> bool:
    """Whether one lane alone is known to be wanted.

    LLVM 22 makes of a masked store of narrowed integers (bfloat16 is stored as such) a store of the wide one if the
    mask is that: it would write beyond the element.
    """
    return isinstance(mask, ir.Constant) and sum([lane.constant for lane in mask.constant]) == 1


def _addresses(b: Any, pointer: Any, index: Any, stride: int, width: int) -> Any:
    base = b.ptrtoint(b.gep(pointer, [index]), I64)
    places = b.add(splat(b, base, width), lane_numbers(I64, width, stride * _size(pointer.type.pointee)))
    return b.inttoptr(places, ir.VectorType(pointer.type, width))


def _backwards(width: int) -> Any:
    return ir.Constant(ir.VectorType(I32, width), list(range(width - 1, -1, -1)))


def _declared(b: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(result, arguments), name)
    return function


def _size(kind: Any) -> int:
    if isinstance(kind, ir.IntType):
        return max(1, kind.width // 8)
    return {"half": 2, "float": 4, "double": 8}[str(kind)]


def _name(kind: Any) -> str:
    element = {"float": "f32", "double": "f64", "half": "f16"}.get(str(kind.element), str(kind.element))
    return f"v{kind.count}{element}"
