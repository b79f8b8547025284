"""Writing LLVM code: types, loops and memory access, for the modules that emit kernels.

Every kernel is a function `void name(ptr arrays, i64 begin, i64 end, i64 part, ptr scratch)`: `arrays` is a table of
pointers to the first elements of its arrays, [begin, end) are the units of its work that this call does, `part` is the
number of this call among those that share the work, and `scratch` is memory of this thread's own.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
VOID = ir.VoidType()
POINTER = ir.IntType(8).as_pointer()
KERNEL = ir.FunctionType(VOID, (POINTER.as_pointer(), I64, I64, I64, POINTER))

#: Types in memory by NumPy's dtype name. bfloat16 is kept as the upper half of a float32.
STORED: dict[str, Any] = {
    "bool": I8, "int8": I8, "int16": I16, "int32": I32, "int64": I64,
    "uint8": I8, "uint16": I16, "uint32": I32, "uint64": I64,
    "float16": F16, "bfloat16": I16, "float32": F32, "float64": F64,
}  # fmt: skip
ITEMSIZE = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Emitted:
    """A kernel's function in its module: its name, how many units of work it has, and what it needs.

    A kernel whose work is shared by several parts cannot finish a reduction over all of it: for each array named in
    `partials` as (number, bytes, operation), with "sum", "prod", "max", "min", "any" or "all", part p writes its own
    result p * bytes behind the array's first element, and the results are reduced by that operation afterwards; alone,
    part 0 writes the result itself. `cost` is a rough number of nanoseconds for all units on one thread: what decides
    whether it is worth sharing. Work may be cut at multiples of `grain` units.
    """

    name: str
    units: int
    cost: float
    grain: int = 1
    scratch: int = 0
    partials: tuple[tuple[int, int, str], ...] = ()


class Code:
    """A function being written."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module = module
        self.function = ir.Function(module, KERNEL, name)
        self.function.attributes.add("nounwind")
        self.arrays, self.begin, self.end, self.part, self.scratch = self.function.args
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))

    def pointer(self, index: int, dtype: str) -> Any:
        """The first element of array number `index`, as a pointer to its type in memory."""
        b = self.b
        slot = b.gep(self.arrays, [I64(index)], inbounds=True)
        return b.bitcast(b.load(slot), STORED[dtype].as_pointer())

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1, *carry: Any) -> Iterator[tuple[Any, ...]]:
        """A loop over start, start + step, ... below stop: gives (index, *phis); call `again(*values)` at its end.

        Without `carry` values nothing need be called. The values after the loop are in `results` of the last loop.
        """
        b = self.b
        before = b.block
        head = b.append_basic_block("loop")
        body = b.append_basic_block("body")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(I64)
        index.add_incoming(start, before)
        phis = [b.phi(value.type) for value in carry]
        for phi, value in zip(phis, carry):
            phi.add_incoming(value, before)
        b.cbranch(b.icmp_signed("<", index, stop), body, done)
        b.position_at_end(body)
        self._next: tuple[Any, ...] = ()
        yield (index, *phis)
        following = b.add(index, I64(step), flags=["nsw"])
        values, self._next = self._next, ()
        index.add_incoming(following, b.block)
        for phi, value in zip(phis, values):
            phi.add_incoming(value, b.block)
        b.branch(head)
        b.position_at_end(done)
        self.results = tuple(phis)

    def again(self, *values: Any) -> None:
        """What the carry values of the innermost loop become for its next round."""
        self._next = values

    def end_function(self) -> None:
        self.b.ret_void()


def vector(kind: Any, width: int) -> Any:
    """A type of `width` lanes, or the type itself for one."""
    return kind if width == 1 else ir.VectorType(kind, width)


def constant(kind: Any, value: Any) -> Any:
    """A number, or the same number in every lane of a vector type."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [value] * kind.count)
    return ir.Constant(kind, value)


def splat(b: Any, value: Any, width: int) -> Any:
    """A scalar in every lane."""
    if width == 1:
        return value
    kind = ir.VectorType(value.type, width)
    first = b.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    return b.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(I32, width), [0] * width))


def load(b: Any, pointer: Any, index: Any, width: int, align: int) -> Any:
    """`width` neighbouring elements from `index` on; memory need only be aligned to the element."""
    at = b.gep(pointer, [index], inbounds=True)
    if width > 1:
        at = b.bitcast(at, ir.VectorType(pointer.type.pointee, width).as_pointer())
    return b.load(at, align=align)


def store(b: Any, value: Any, pointer: Any, index: Any, align: int) -> None:
    """Write a scalar or neighbouring elements from `index` on."""
    at = b.gep(pointer, [index], inbounds=True)
    if isinstance(value.type, ir.VectorType):
        at = b.bitcast(at, value.type.as_pointer())
    b.store(value, at, align=align)


def intrinsic(b: Any, name: str, *operands: Any) -> Any:
    """A call of LLVM's `llvm.<name>` overloaded on its first operand's type: "fma", "sqrt", "fabs", ..."""
    kind = operands[0].type
    suffix = _suffix(kind)
    full = f"llvm.{name}.{suffix}"
    module = b.module
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(kind, [operand.type for operand in operands]), full)
    return b.call(function, operands)


def _suffix(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return {"float": "f32", "double": "f64", "half": "f16"}.get(str(kind), str(kind))
