"""Values of LLVM with Python's arithmetic, so that mathematics reads as mathematics.

A `Lanes` is a scalar or a vector and the builder that writes its code. Operators take numbers too. Nothing here allows
LLVM to rearrange arithmetic: NaN, infinities and signed zeros mean what IEEE 754 says.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from llvmlite import ir

from ..code import F32, F64, I32, I64, constant, intrinsic


class Lanes:
    """A scalar or a vector being computed."""

    __slots__ = ("b", "value")
    __hash__ = None  # type: ignore[assignment]  # == compares lanes

    def __init__(self, b: ir.IRBuilder, value: ir.Value) -> None:
        self.b = b
        self.value = value

    @property
    def type(self) -> Any:
        return self.value.type

    @property
    def lane(self) -> Any:
        """The type of one lane."""
        return self.type.element if isinstance(self.type, ir.VectorType) else self.type

    @property
    def width(self) -> int:
        return int(self.type.count) if isinstance(self.type, ir.VectorType) else 1

    @property
    def is_float(self) -> bool:
        return not isinstance(self.lane, ir.IntType)

    def like(self, lane: Any) -> Any:
        """The type with as many lanes of another type."""
        return ir.VectorType(lane, self.width) if self.width > 1 else lane

    def of(self, value: Any) -> Lanes:
        """Lanes, a value, or a number in every lane, for arithmetic with these."""
        if isinstance(value, Lanes):
            return value
        if isinstance(value, ir.Value):
            return Lanes(self.b, value)
        return Lanes(self.b, constant(self.type, float(value) if self.is_float else int(value)))

    def _two(self, floating: str, integral: str, x: Any, y: Any) -> Lanes:
        x, y = self.of(x), self.of(y)
        return Lanes(self.b, getattr(self.b, floating if self.is_float else integral)(x.value, y.value))

    def __add__(self, other: Any) -> Lanes:
        return self._two("fadd", "add", self, other)

    def __radd__(self, other: Any) -> Lanes:
        return self._two("fadd", "add", other, self)

    def __sub__(self, other: Any) -> Lanes:
        return self._two("fsub", "sub", self, other)

    def __rsub__(self, other: Any) -> Lanes:
        return self._two("fsub", "sub", other, self)

    def __mul__(self, other: Any) -> Lanes:
        return self._two("fmul", "mul", self, other)

    def __rmul__(self, other: Any) -> Lanes:
        return self._two("fmul", "mul", other, self)

    def __truediv__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.fdiv(self.value, self.of(other).value))

    def __rtruediv__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.fdiv(self.of(other).value, self.value))

    def __neg__(self) -> Lanes:
        return Lanes(self.b, self.b.fneg(self.value) if self.is_float else self.b.neg(self.value))

    def __and__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.and_(self.value, self.of(other).value))

    def __or__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.or_(self.value, self.of(other).value))

    def __xor__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.xor(self.value, self.of(other).value))

    def __invert__(self) -> Lanes:
        return Lanes(self.b, self.b.xor(self.value, constant(self.type, -1)))

    def __lshift__(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.shl(self.value, self.of(other).value))

    def __rshift__(self, other: Any) -> Lanes:
        """The arithmetic shift; `logical_shift` fills with zeros."""
        return Lanes(self.b, self.b.ashr(self.value, self.of(other).value))

    def logical_shift(self, other: Any) -> Lanes:
        return Lanes(self.b, self.b.lshr(self.value, self.of(other).value))

    def compare(self, relation: str, other: Any, signed: bool = True) -> Lanes:
        """Lanes of i1. With a NaN every relation is false but `!=`."""
        other = self.of(other)
        if self.is_float:
            write = self.b.fcmp_unordered if relation == "!=" else self.b.fcmp_ordered
        else:
            write = self.b.icmp_signed if signed else self.b.icmp_unsigned
        return Lanes(self.b, write(relation, self.value, other.value))

    def __lt__(self, other: Any) -> Lanes:
        return self.compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self.compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self.compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self.compare(">=", other)

    def __eq__(self, other: object) -> Lanes:  # type: ignore[override]
        return self.compare("==", other)

    def __ne__(self, other: object) -> Lanes:  # type: ignore[override]
        return self.compare("!=", other)

    def __abs__(self) -> Lanes:
        return self.call("fabs")

    def is_nan(self) -> Lanes:
        return Lanes(self.b, self.b.fcmp_unordered("uno", self.value, self.value))

    def call(self, name: str, *others: Any) -> Lanes:
        """An intrinsic of these: `x.call("sqrt")`."""
        return Lanes(self.b, intrinsic(self.b, name, self.value, *(self.of(other).value for other in others)))

    def bits(self) -> Lanes:
        """A floating-point number's bits as an integer."""
        return Lanes(self.b, self.b.bitcast(self.value, self.like(I64 if self.lane == F64 else I32)))

    def as_float(self) -> Lanes:
        """The floating-point number with these bits."""
        return Lanes(self.b, self.b.bitcast(self.value, self.like(F64 if self.lane == I64 else F32)))

    def to_float(self, lane: Any) -> Lanes:
        """Signed integers as floating-point numbers."""
        return Lanes(self.b, self.b.sitofp(self.value, self.like(lane)))

    def widen(self) -> Lanes:
        """float32 as float64."""
        return Lanes(self.b, self.b.fpext(self.value, self.like(F64)))

    def narrow(self) -> Lanes:
        """float64 as float32."""
        return Lanes(self.b, self.b.fptrunc(self.value, self.like(F32)))

    def any(self) -> ir.Value:
        """Whether an i1 is true in any lane, as one i1."""
        if self.width == 1:
            return self.value
        word = ir.IntType(self.width)
        return self.b.icmp_unsigned("!=", self.b.bitcast(self.value, word), word(0))


def fma(x: Lanes, y: Any, z: Any) -> Lanes:
    """x y + z, rounded once."""
    return x.call("fma", y, z)


def select(condition: Lanes, x: Any, y: Any) -> Lanes:
    """x where the condition holds, else y; one of them may be a number."""
    like = x if isinstance(x, Lanes) else y
    return Lanes(condition.b, condition.b.select(condition.value, like.of(x).value, like.of(y).value))


def sqrt(x: Lanes) -> Lanes:
    return x.call("sqrt")


def copysign(x: Lanes, sign: Any) -> Lanes:
    return x.call("copysign", sign)


def at_most(x: Lanes, bound: float) -> Lanes:
    """The smaller of x and a number, and NaN for NaN: one instruction of x86 in this very form."""
    limit = x.of(bound)
    return select(limit < x, limit, x)


def at_least(x: Lanes, bound: float) -> Lanes:
    """The larger of x and a number, and NaN for NaN."""
    limit = x.of(bound)
    return select(limit > x, limit, x)


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Horner's rule; `coefficients` has the lowest power first."""
    value = x.of(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = fma(value, x, coefficient)
    return value


#: Added to a small number, this leaves its nearest integer in the low bits: what is lost is the fraction.
_ROUNDERS: dict[Any, tuple[float, int]] = {F32: (1.5 * 2.0**23, 0x4B400000), F64: (1.5 * 2.0**52, 0x4338000000000000)}


def nearest_multiple(x: Lanes, reciprocal: float) -> tuple[Lanes, Lanes]:
    """The integer nearest to x * reciprocal, as a floating-point number and as an integer of the same width.

    For less than 2**22 in size (2**51 for float64). No conversion is involved, so NaN gives some integer, not poison.
    """
    rounder, bits = _ROUNDERS[x.lane]
    shifted = fma(x, reciprocal, rounder)
    return shifted - rounder, shifted.bits() - bits


@functools.cache
def _has_scaling() -> bool:
    """Whether this processor multiplies by powers of two in one instruction (AVX-512): `llvm.ldexp` is a call else."""
    import llvmlite.binding as binding

    return bool(binding.get_host_cpu_features().get("avx512f", False))


def power_of_two(n: Lanes) -> Lanes:
    """2**n for integers n whose power is a normal number."""
    mantissa, bias = (52, 1023) if n.lane == I64 else (23, 127)
    return ((n + bias) << mantissa).as_float()


def scale(x: Lanes, n: Lanes) -> Lanes:
    """x 2**n, rounded once, for integers n at most twice as large as the exponent of a normal number can be."""
    if _has_scaling():
        exponent = n.value if n.lane == I32 else n.b.trunc(n.value, n.like(I32))
        kinds = "f32" if x.lane == F32 else "f64", "i32"
        suffix = ".".join(kind if x.width == 1 else f"v{x.width}{kind}" for kind in kinds)
        name = f"llvm.ldexp.{suffix}"
        function = x.b.module.globals.get(name)
        if function is None:
            function = ir.Function(x.b.module, ir.FunctionType(x.type, [x.type, exponent.type]), name)
        return Lanes(x.b, x.b.call(function, [x.value, exponent]))
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


def outlined(name: str, body: Callable[..., Lanes], *operands: Lanes) -> Lanes:
    """body(*operands), written once for each module and type as a function of its own, and called.

    For long computations: a kernel that uses one ten times compiles it once.
    """
    first = operands[0]
    b = first.b
    full = f"pullback.{name}.{first.width}.{first.lane}"
    function = b.module.globals.get(full)
    if function is None:
        within = ir.IRBuilder()
        # The result's type is known when the body is written; bodies return the type of their first operand.
        function = ir.Function(b.module, ir.FunctionType(first.type, [operand.type for operand in operands]), full)
        function.linkage = "internal"
        function.calling_convention = "fastcc"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        within.position_at_end(function.append_basic_block("entry"))
        within.ret(body(*(Lanes(within, argument) for argument in function.args)).value)
    return Lanes(b, b.call(function, [operand.value for operand in operands], cconv="fastcc"))
