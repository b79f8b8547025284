"""Complex numbers as two real ones each, for targets whose loops know real numbers only.

Values that are made of real ones, used by what is known here, and that end in real ones again are replaced by their
parts; those that are connected with anything else stay whole, as a program's inputs and outputs do. The formulas are
those of NumPy's kernels and of C's functions behind them, so infinities, NaN and overflow come out the same.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..host import HOST
from ..program import Instruction, Program, Value, mapped, values_in
from .dead_code import without_dead_code
from .operations import MOVEMENT, is_number, mentions

Part = Any  # a value with the shape of the whole, or a number that it is everywhere
Parts = tuple[Part, Part]

_PART = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_OF_SEVERAL = ("concat", "stack")
_BOOL = np.dtype(np.bool_)
_INF = float("inf")
#: The largest number of which C's functions take `exp` at once; above, they have two factors, which overflow later.
_LARGEST_EXPONENT = {np.dtype(np.float32): 88.0, np.dtype(np.float64): 709.0}


def with_complex_parts(program: Program) -> Program:
    """`program` with real parts in the place of complex values where that can be; else itself."""
    program = without_dead_code(program)
    divided = _divisible(program)
    return _Writer(program, divided).run() if divided else program


def _is_complex(value: Value) -> bool:
    return value.dtype in _PART


def _divisible(program: Program) -> set[Value]:
    """The complex values that are connected with nothing but what can be done with parts."""
    group: dict[Value, Value] = {}

    def representative(value: Value) -> Value:
        path = []
        while (above := group.setdefault(value, value)) is not value:
            path.append(value)
            value = above
        for one in path:
            group[one] = value
        return value

    whole = [value for value in (*program.inputs, *program.constants, *program.wanted()) if _is_complex(value)]
    for instruction in program.instructions:
        values = [value for value in (*instruction.values(), *instruction.results) if _is_complex(value)]
        if instruction.after is not None and _is_complex(instruction.after):
            whole.append(instruction.after)
        for value in values:
            group[representative(value)] = representative(values[0])
        if values and not _is_known(instruction):
            whole.extend(values)
    out = {representative(value) for value in whole}
    return {value for value in group if representative(value) not in out}


def _is_known(instruction: Instruction) -> bool:
    """Whether there is a formula for an instruction of complex numbers, with arguments like these."""
    op, args = instruction.op, instruction.args
    if op == "unstack":
        return True
    if len(instruction.results) != 1 or op not in _FORMULAS:
        return False
    if op == "full":
        return args[3] is None and _is_operand(args[1])
    if op == "ssm_scan":
        return bool(instruction.result.shape[args[3]] == 1) and all(x is None or _is_operand(x) for x in args[:3])
    if op == "astype" and instruction.result.dtype.kind not in "cf":
        return False
    count = _OPERANDS.get(op, 1)
    operands = args[0] if op in _OF_SEVERAL else args[:count]
    return all(map(_is_operand, operands)) and not any(values_in(args[count:]))


def _is_operand(arg: Any) -> bool:
    if type(arg) is Value:
        return arg.dtype.kind in "cfiub"
    return is_number(arg) and (type(arg) is not int or abs(arg) < 1 << 53)


class _Writer:
    """The program that is being written, with the parts of values."""

    def __init__(self, program: Program, divided: set[Value]) -> None:
        self.program = program
        self.divided = divided
        self.parts: dict[Value, Parts] = {}
        self.written: list[Instruction] = []
        self.substitutes: dict[Value, Value] = {}
        self.like = program.instructions[0]  # the instruction that is replaced
        self.dtype = np.dtype(np.float32)  # of the parts that are computed with

    def run(self) -> Program:
        for instruction in self.program.instructions:
            if mentions(instruction.args, self.substitutes):
                instruction = instruction.with_args(mapped(instruction.args, self._current))
            if instruction.after in self.substitutes:
                instruction = instruction.waiting_for(self._current(instruction.after))
            if any(value in self.divided for value in (*instruction.values(), *instruction.results)):
                self._replace(instruction)
            else:
                self.written.append(instruction)
        return self.program.replaced(self.written, self.substitutes)

    def _current(self, value: Any) -> Any:
        return self.substitutes.get(value, value)

    def _replace(self, instruction: Instruction) -> None:
        self.like, result = instruction, instruction.result
        if instruction.op == "unstack":
            return self._unstack(instruction)
        dtypes = [result.dtype] if _is_complex(result) else [value.dtype for value in instruction.values()]
        self.dtype = _PART[np.result_type(*dtypes)]
        made = _FORMULAS[instruction.op](self, instruction)
        if _is_complex(result):
            self.parts[result] = self.filling(made[0], result.shape), self.filling(made[1], result.shape)
        else:
            self.substitutes[result] = self.as_value(made, result.shape, result.dtype)

    def _unstack(self, instruction: Instruction) -> None:
        x, axis = instruction.args
        self.dtype = _PART[x.dtype]
        results = []
        for part in self.of(x):
            made = tuple([Value(value.shape, self.dtype, value.site) for value in instruction.results])
            args = (self.as_value(part, x.shape, self.dtype), axis)
            self.written.append(
                Instruction("unstack", args, made, instruction.site, instruction.mark, instruction.after)
            )
            results.append(made)
        self.parts.update(zip(instruction.results, zip(*results)))

    # -- real numbers ------------------------------------------------------------------------------

    def make(self, op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: Any = None) -> Value:
        like = self.like
        result = Value(shape, self.dtype if dtype is None else dtype, like.site)
        self.written.append(Instruction(op, args, (result,), like.site, like.mark, like.after))
        return result

    def call(self, op: str, *operands: Part, dtype: Any = None) -> Part:
        """An elementwise operation of parts; of numbers alone it is computed here."""
        shapes = [part.shape for part in operands if type(part) is Value]
        if shapes:
            return self.make(op, operands, np.broadcast_shapes(*shapes), dtype)
        with np.errstate(all="ignore"):
            numbers = [part if type(part) is bool else self.dtype.type(part) for part in operands]
            found: Any = getattr(HOST, op)(*numbers)
        return found.item()

    def test(self, op: str, *operands: Part) -> Part:
        return self.call(op, *operands, dtype=_BOOL)

    def where(self, condition: Part, x: Part, y: Part) -> Part:
        if type(condition) is bool:
            return x if condition else y
        if type(x) is not Value and type(y) is not Value:
            x = self.as_value(x, condition.shape, self.dtype)
        return self.call("where", condition, x, y)

    def both(self, op: str, x: Part, y: Part) -> Part:
        """`logical_and` or `logical_or`, of which one may be known."""
        for one, other in ((x, y), (y, x)):
            if type(one) is bool:
                return other if one == (op == "logical_and") else one
        return self.test(op, x, y)

    def as_value(self, part: Part, shape: tuple[int, ...], dtype: Any) -> Value:
        if type(part) is not Value:
            return self.make("full", (shape, part, np.dtype(dtype), None), shape, dtype)
        part = self.filling(part, shape)
        return part if part.dtype == dtype else self.make("astype", (part, np.dtype(dtype)), shape, dtype)

    def filling(self, part: Part, shape: tuple[int, ...]) -> Part:
        """A part in a shape that it is broadcast to."""
        if type(part) is not Value or part.shape == shape:
            return part
        return self.make("broadcast_to", (part, shape), shape, part.dtype)

    # -- complex numbers ---------------------------------------------------------------------------

    def of(self, operand: Any) -> Parts:
        """The parts of an operand in the dtype that is computed in: real numbers have an imaginary part of zero."""
        if type(operand) is not Value:
            number = complex(operand)
            return self._rounded(number.real), self._rounded(number.imag)
        real, imaginary = self.parts.get(operand, (operand, 0.0))
        return self._cast(real), self._cast(imaginary)

    def _cast(self, part: Part) -> Part:
        return self._rounded(part) if type(part) is not Value else self.as_value(part, part.shape, self.dtype)

    def _rounded(self, number: float) -> float:
        with np.errstate(all="ignore"):
            return float(self.dtype.type(number))


# -- formulas --------------------------------------------------------------------------------------

Formula = Callable[[_Writer, Instruction], Any]


def _of_parts(function: Callable[..., Any]) -> Formula:
    """A formula of the parts of an instruction's operands."""

    def formula(w: _Writer, instruction: Instruction) -> Any:
        operands = instruction.args[: _OPERANDS.get(instruction.op, 1)]
        return function(w, *[w.of(operand) for operand in operands])

    return formula


def _each(op: str) -> Formula:
    """The same operation of real parts and of imaginary ones."""
    return _of_parts(lambda w, *operands: tuple([w.call(op, *parts) for parts in zip(*operands)]))


def _sum(w: _Writer, x: Parts, y: Parts) -> Parts:
    return w.call("add", x[0], y[0]), w.call("add", x[1], y[1])


def _product(w: _Writer, x: Parts, y: Parts) -> Parts:
    real = w.call("subtract", w.call("multiply", x[0], y[0]), w.call("multiply", x[1], y[1]))
    return real, w.call("add", w.call("multiply", x[0], y[1]), w.call("multiply", x[1], y[0]))


def _quotient(w: _Writer, x: Parts, y: Parts) -> Parts:
    """By the ratio of the divisor's smaller part to its larger one."""
    size = w.call("abs", y[0])
    is_real_larger = w.test("greater_equal", size, w.call("abs", y[1]))
    large, small = w.where(is_real_larger, y[0], y[1]), w.where(is_real_larger, y[1], y[0])
    ratio = w.call("divide", small, large)
    scale = w.call("divide", 1.0, w.call("add", large, w.call("multiply", small, ratio)))
    first, second = w.where(is_real_larger, x[0], x[1]), w.where(is_real_larger, x[1], x[0])
    real = w.call("add", first, w.call("multiply", second, ratio))
    turned = w.call("multiply", first, ratio)
    imaginary = w.where(is_real_larger, w.call("subtract", second, turned), w.call("subtract", turned, second))
    is_zero = w.test("equal", large, 0.0)
    made = []
    for part, above in ((real, x[0]), (imaginary, x[1])):
        made.append(w.where(is_zero, w.call("divide", above, size), w.call("multiply", part, scale)))
    return made[0], made[1]


def _exp(w: _Writer, x: Parts) -> Parts:
    real, imaginary = x
    largest = _LARGEST_EXPONENT[w.dtype]
    is_large = w.test("greater", real, largest)
    size = w.call("exp", w.where(is_large, w.call("subtract", real, largest), real))
    factor = float(np.exp(w.dtype.type(largest)))
    is_turning = w.test("isfinite", imaginary)  # else there is no angle, which counts where the size is not zero
    without = w.test("logical_not", is_turning)
    of_cos = w.where(w.both("logical_and", without, w.test("isinf", real)), 0.0, imaginary)
    of_sin = w.where(w.both("logical_and", without, w.test("equal", real, -_INF)), 0.0, imaginary)
    made = []
    for turned in (w.call("cos", of_cos), w.call("sin", of_sin)):
        made.append(w.call("multiply", size, w.where(is_large, w.call("multiply", turned, factor), turned)))
    return made[0], w.where(w.test("equal", imaginary, 0.0), imaginary, made[1])


def _expm1(w: _Writer, x: Parts) -> Parts:
    real, imaginary = x
    half = w.call("sin", w.call("multiply", imaginary, 0.5))
    less = w.call("multiply", w.call("multiply", half, 2.0), half)
    near = w.call("subtract", w.call("multiply", w.call("expm1", real), w.call("cos", imaginary)), less)
    turned = w.call("multiply", w.call("exp", real), w.call("sin", imaginary))
    is_finite = w.both("logical_and", w.test("isfinite", real), w.test("isfinite", imaginary))
    far = _exp(w, x)
    turned = w.where(is_finite, turned, far[1])
    return (
        w.where(is_finite, near, w.call("subtract", far[0], 1.0)),
        w.where(w.test("equal", imaginary, 0.0), imaginary, turned),
    )


def _sign(w: _Writer, x: Parts) -> Parts:
    """The number of size 1 in the same direction; there is none between two infinities."""
    size = w.call("hypot", *x)
    unit = w.where(w.test("equal", size, 0.0), 1.0, size)
    is_far = w.test("isinf", size)
    far = [w.test("isinf", part) for part in x]
    unknown = [w.test("isnan", part) for part in x]
    is_lost = w.both("logical_or", w.both("logical_and", *far), w.both("logical_or", *unknown))
    made = []
    for part, is_infinite in zip(x, far):
        direction = w.where(is_infinite, w.call("sign", part), 0.0)
        made.append(w.where(is_lost, np.nan, w.where(is_far, direction, w.call("divide", part, unit))))
    return made[0], made[1]


def _where(w: _Writer, instruction: Instruction) -> Parts:
    condition, x, y = instruction.args
    x, y = w.of(x), w.of(y)
    return w.where(condition, x[0], y[0]), w.where(condition, x[1], y[1])


def _astype(w: _Writer, instruction: Instruction) -> Any:
    parts = w.of(instruction.args[0])
    return parts if _is_complex(instruction.result) else parts[0]


def _moved(w: _Writer, instruction: Instruction) -> Parts:
    x, *static = instruction.args
    shape = instruction.result.shape
    move = lambda part: w.make(instruction.op, (part, *static), shape) if type(part) is Value else part
    real, imaginary = w.of(x)
    return move(real), move(imaginary)


def _together(w: _Writer, instruction: Instruction) -> Parts:
    values, *static = instruction.args
    made = []
    for parts in zip(*[w.of(value) for value in values]):
        whole = tuple([w.as_value(part, value.shape, w.dtype) for part, value in zip(parts, values)])
        made.append(w.make(instruction.op, (whole, *static), instruction.result.shape))
    return made[0], made[1]


def _whole(w: _Writer, instruction: Instruction) -> Parts:
    """An operation that does the same to both parts, and to which a number is not what it is everywhere."""
    x, *static = instruction.args
    parts = [w.as_value(part, x.shape, w.dtype) for part in w.of(x)]
    made = [w.make(instruction.op, (part, *static), instruction.result.shape) for part in parts]
    return made[0], made[1]


def _step(w: _Writer, instruction: Instruction) -> Parts:
    """A recurrence of a single step."""
    x, a, h0, axis, _ = instruction.args
    if h0 is None:
        return w.of(x)
    shape = instruction.result.shape
    rest = (*shape[:axis], *shape[len(shape) + axis + 1 :])
    start = [part if type(part) is not Value else w.filling(part, rest) for part in w.of(h0)]
    start = [part if type(part) is not Value else w.make("reshape", (part, shape), shape) for part in start]
    return _sum(w, w.of(x), _product(w, w.of(a), (start[0], start[1])))


def _agreeing(op: str, joined: str) -> Formula:
    """A test of both parts."""
    return _of_parts(lambda w, *operands: w.both(joined, *[w.test(op, *parts) for parts in zip(*operands)]))


_FORMULAS: dict[str, Formula] = {
    **dict.fromkeys((*MOVEMENT, "getitem"), _moved),
    **dict.fromkeys(_OF_SEVERAL, _together),
    "full": lambda w, instruction: w.of(instruction.args[1]),
    "zeros_like": lambda w, instruction: (0.0, 0.0),
    "ones_like": lambda w, instruction: (1.0, 0.0),
    **{op: _each(op) for op in ("add", "subtract", "negative", "positive")},
    "multiply": _of_parts(_product),
    "square": _of_parts(lambda w, x: _product(w, x, x)),
    "divide": _of_parts(_quotient),
    "exp": _of_parts(_exp),
    "expm1": _of_parts(_expm1),
    "sign": _of_parts(_sign),
    "abs": _of_parts(lambda w, x: w.call("hypot", *x)),
    "real": _of_parts(lambda w, x: x[0]),
    "imag": _of_parts(lambda w, x: x[1]),
    "conj": _of_parts(lambda w, x: (x[0], w.call("negative", x[1]))),
    "equal": _agreeing("equal", "logical_and"),
    "not_equal": _agreeing("not_equal", "logical_or"),
    "isfinite": _agreeing("isfinite", "logical_and"),
    "isnan": _agreeing("isnan", "logical_or"),
    "isinf": _agreeing("isinf", "logical_or"),
    "where": _where,
    "astype": _astype,
    **dict.fromkeys(("sum", "place"), _whole),
    "ssm_scan": _step,
}  # fmt: skip
_OPERANDS = {**dict.fromkeys(("add", "subtract", "multiply", "divide", "equal", "not_equal"), 2), "where": 3}
