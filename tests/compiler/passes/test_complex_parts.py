"""Complex numbers as pairs of real ones: the same numbers as NumPy's kernels make, special ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.passes import optimize
from pullback.compiler.passes.complex_parts import with_complex_parts
from pullback.compiler.program import Program, Value
from tests.compiler.meaning import run

from ...backends.installed import needs_llvmlite
from ..building import Builder

SPECIAL = [0.0, -0.0, 1.0, -0.75, 3.0, 1e-30, -2e-3, 60.0, 1e25, np.inf, -np.inf, np.nan]
ONE = ("exp", "expm1", "abs", "sign", "square", "negative", "positive", "conj", "isfinite", "isnan", "isinf")
TWO = ("add", "subtract", "multiply", "divide", "equal", "not_equal")


def complex_of(builder: Builder, real: Any, imaginary: Any) -> Value:
    """A complex value made of real ones, exactly, for finite ones."""
    return builder.make("add", real, builder.make("multiply", imaginary, 1j))


def parts(builder: Builder, value: Value) -> list[Value]:
    return [builder.make("real", value), builder.make("imag", value)] if value.dtype.kind == "c" else [value]


def no_complex(program: Program) -> bool:
    return not any(value.dtype.kind == "c" for i in program.instructions for value in (*i.values(), *i.results))


def native(program: Program, inputs: list[Any]) -> list[Any]:
    """What the program makes when it is compiled."""
    from pullback.compiler.calling.building import PROCESSOR, Built

    built = Built(program, PROCESSOR)
    outputs = [np.empty(value.shape, value.dtype) for value in program.outputs]
    built.execute([np.ascontiguousarray(array) for array in inputs], outputs)
    return outputs


def assert_same(found: Any, expected: Any, digits: Any, size: Any = 0.0) -> None:
    """The same infinities and NaN, and numbers that differ by the rounding of themselves, or of what is of `size`."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "b":
        return np.testing.assert_array_equal(found, expected)
    is_number = np.isfinite(expected)
    np.testing.assert_array_equal(np.where(is_number, 0, found), np.where(is_number, 0, expected))
    with np.errstate(all="ignore"):
        limit = digits * np.fmax(np.abs(expected), size) + np.finfo(found.dtype).tiny
        assert (np.abs(found - expected) <= limit)[is_number].all()


ROUNDING = {"float32": 2e-6, "float64": 4e-15}


@pytest.mark.parametrize("is_native", [False, pytest.param(True, marks=needs_llvmlite)], ids=["plain", "native"])
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("op", [*ONE, *TWO])
def test_special_numbers_are_those_of_numpy(op: str, dtype: str, is_native: bool) -> None:
    count = 4 if op in TWO else 2
    grid = [array.ravel().astype(dtype) for array in np.meshgrid(*[SPECIAL] * count)]
    builder = Builder()
    values = [builder.input(array) for array in grid]
    with np.errstate(all="ignore"):
        operands = [complex_of(builder, *values[i : i + 2]) for i in range(0, count, 2)]
        program = builder.program(parts(builder, builder.make(op, *operands)))
        rewritten = optimize(with_complex_parts(program))
        assert no_complex(rewritten)
        found = native(program, grid) if is_native else run(rewritten, grid)[0]
        expected = run(program, grid)[0]
        x, y = (builder.arrays[operand] for operand in (operands[0], operands[-1]))
        size = np.abs(x) * np.abs(y) if op in ("multiply", "square") else np.zeros(len(x), dtype)  # of what may cancel
        # Of a sum in which a product overflows NumPy makes this or that, as the processor is.
        pairs = [(m, n) for m in (x.real, x.imag) for n in (y.real, y.imag)] if op in ("multiply", "square") else []
        is_sure = np.all([np.isfinite(m * n) | ~np.isfinite(m) | ~np.isfinite(n) for m, n in pairs], 0) | (not pairs)
    for one, other in zip(found, expected):
        assert_same(one[is_sure], other[is_sure], ROUNDING[dtype], size[is_sure])


def some_parts(seed: int = 0, shape: tuple[int, ...] = (3, 4), dtype: str = "float32") -> tuple[Builder, list[Value]]:
    builder = Builder(seed)
    draw = lambda *shape: builder.input(builder.random.standard_normal(shape).astype(dtype))
    return builder, [draw(*shape), draw(*shape), draw(shape[-1]), draw(shape[-1]), draw(*shape)]


def checked(builder: Builder, outputs: list[Value], digits: float = 1e-5) -> None:
    program, inputs = builder.program(outputs), builder.given()
    rewritten = with_complex_parts(program)
    assert no_complex(rewritten)
    for other in (rewritten, optimize(rewritten)):
        for one, expected in zip(run(other, inputs)[0], run(program, inputs)[0]):
            assert_same(one, expected, digits, max(1.0, np.max(np.abs(expected), initial=0)))


OPERATIONS = {
    "real factor": lambda b, z, w, x: b.make("multiply", z, x),
    "real divisor": lambda b, z, w, x: b.make("divide", z, x),
    "of a real number": lambda b, z, w, x: b.make("divide", x, z),
    "less a real number": lambda b, z, w, x: b.make("subtract", x, w),
    "broadcast": lambda b, z, w, x: b.make("multiply", z, w),
    "number": lambda b, z, w, x: b.make("add", b.make("multiply", z, 2.5), 1 - 2j),
    "quotient of a number": lambda b, z, w, x: b.make("divide", 2, z),
    "divided by a number": lambda b, z, w, x: b.make("divide", b.make("divide", z, 3j), 4),
    "divided by zero": lambda b, z, w, x: b.make("divide", z, 0.0),
    "where": lambda b, z, w, x: b.make("where", b.make("less", x, 0.0), z, w),
    "where with numbers": lambda b, z, w, x: b.make("where", b.make("less", x, 0.0), z, 1j),
    "one number or the other": lambda b, z, w, x: b.make(
        "multiply", b.make("where", b.make("less", x, 0.0), b.make("astype", x, np.dtype(np.complex64)), 2j), z
    ),
    "filled": lambda b, z, w, x: b.make("multiply", z, b.make("full", (4,), 0.5 + 2j, np.dtype(np.complex64), None)),
    "wider": lambda b, z, w, x: b.make("multiply", z, b.make("astype", w, np.dtype(np.complex128))),
    "wider by a real one": lambda b, z, w, x: b.make("multiply", z, b.make("astype", x, np.dtype(np.float64))),
    "integers": lambda b, z, w, x: b.make("multiply", z, b.make("astype", b.make("less", x, 0), np.dtype(np.int32))),
    "moved": lambda b, z, w, x: b.make("flip", b.make("permute_dims", b.make("reshape", z, (2, 6)), (1, 0)), (0,)),
    "indexed": lambda b, z, w, x: b.make("getitem", z, (slice(1, None), None, slice(None, None, -2))),
    "concatenated": lambda b, z, w, x: b.make("concat", (z, b.make("reshape", w, (1, 4))), 0),
    "stacked": lambda b, z, w, x: b.make("stack", (z, b.make("conj", z)), -1),
    "unstacked": lambda b, z, w, x: b.make("multiply", *b.make_all("unstack", b.make("stack", (z, z), 0), 0)),
    "like another": lambda b, z, w, x: b.make("subtract", b.make("ones_like", z), b.make("zeros_like", w)),
    "summed": lambda b, z, w, x: b.make("sum", z, (-1,), True),
    "sum of what is real": lambda b, z, w, x: b.make("sum", b.make("astype", x, np.dtype(np.complex64)), (0,), False),
    "placed": lambda b, z, w, x: b.make("place", w, (3, 4), (1, slice(None))),
    "what is real, placed": lambda b, z, w, x: b.make(
        "place", b.make("astype", x, np.dtype(np.complex64)), (5, 4), (slice(1, 4),)
    ),
    "step": lambda b, z, w, x: b.make("ssm_scan", b.make("reshape", z, (3, 1, 4)), w, None, -2, False),
    "step with a state": lambda b, z, w, x: b.make("ssm_scan", b.make("reshape", z, (3, 1, 4)), w, w, -2, True),
    "step of a real input": lambda b, z, w, x: b.make("ssm_scan", b.make("reshape", x, (3, 1, 4)), w, w, -2, False),
    "step from a real state": lambda b, z, w, x: b.make("ssm_scan", b.make("reshape", z, (1, 3, 4)), x, x, -3, False),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_numbers_and_real_arrays(name: str) -> None:
    builder, (x, y, u, v, real) = some_parts()
    with np.errstate(all="ignore"):
        z, w = complex_of(builder, x, y), complex_of(builder, u, v)
        checked(builder, parts(builder, OPERATIONS[name](builder, z, w, real)))


def test_what_cannot_be_divided_stays_whole() -> None:
    builder, (x, y, u, v, real) = some_parts()
    given = builder.input(builder.arrays[x].astype(np.complex64))
    z, w = complex_of(builder, x, y), complex_of(builder, u, v)
    root = builder.make("abs", builder.make("sqrt", builder.make("multiply", z, 2.0)))  # of which there is no formula
    with_input = builder.make("imag", builder.make("multiply", given, 1j))
    many = builder.make("real", builder.make("ssm_scan", builder.make("multiply", z, w), w, None, -2, False))
    kept = builder.make("exp", w)
    alone = builder.make("abs", builder.make("exp", complex_of(builder, v, real)))
    outputs = [root, with_input, many, kept, alone]
    program = builder.program(outputs)
    rewritten = with_complex_parts(program)
    ops = [i.op for i in rewritten.instructions if any(v.dtype.kind == "c" for v in (*i.values(), *i.results))]
    assert {"sqrt", "ssm_scan", "exp"} <= set(ops) and ops.count("exp") == 1 and "hypot" in str(rewritten)
    for one, expected in zip(run(rewritten, builder.given())[0], run(program, builder.given())[0]):
        assert_same(one, expected, 1e-5, 1.0)
    whole = with_complex_parts(builder.program(outputs[:4]))
    assert with_complex_parts(whole) is whole


RANDOM = [
    *[lambda b, z, w, x, op=op: b.make(op, z) for op in ("exp", "expm1", "square", "negative", "conj")],
    *[lambda b, z, w, x, op=op: b.make(op, z, w) for op in ("add", "subtract", "multiply")],
    lambda b, z, w, x: b.make("divide", z, b.make("add", b.make("abs", w), 0.5)),
    *[OPERATIONS[name] for name in ("real factor", "less a real number", "broadcast", "number", "where", "filled")],
]


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, dtype: str) -> None:
    builder, (x, y, u, v, real) = some_parts(seed, (3, 4), dtype)
    pool = [complex_of(builder, x, y), complex_of(builder, u, v)]
    whole = []
    for _ in range(12):
        z, w = (pool[int(builder.random.integers(len(pool)))] for _ in range(2))
        made = RANDOM[int(builder.random.integers(len(RANDOM)))](builder, z, w, real)
        size = builder.make("add", builder.make("abs", made), 1.0)
        pool.append(builder.make("divide", made, size))  # numbers stay moderate
        whole.extend(parts(builder, pool[-1]))
    checked(builder, whole, 1e-4 if dtype == "float32" else 1e-12)


@needs_llvmlite
@pytest.mark.parametrize("layer", [pb.nn.S4D, pb.nn.S5])
def test_steps_of_layers_with_complex_states_are_native(layer: Any) -> None:
    model = pb.nn.StateSpaceModel([layer(6, d_state=3) for _ in range(2)])
    x = pb.random.normal((2, 20, 6))
    whole = model(x).detach()

    @pb.compile
    def step(x: Any, state: Any) -> Any:
        with pb.no_grad():
            return model.step(x, state)

    state = model.initial_state(2)
    for t in range(20):
        y, state = step(x[:, t], state)
        assert float(abs(y - whole[:, t]).max()) < 1e-5
    assert "numpy" not in str(step.kernels) and "complex64" not in step.source
