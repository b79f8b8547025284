"""Reductions: the error of sums, NaN, what nothing gives, integers that wrap, several passes over a row."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.targets.kernels import Access, Loop, Step, Write
from pullback.targets.llvm.loops import emit_loop as loops
from pullback.targets.llvm.registers import REGISTER_BYTES

from .evaluation import Compiled, dtype_of


def reads(dtype: str, *numbers: int) -> tuple[Step, ...]:
    return tuple([Step("read", (), dtype, number) for number in numbers])


def total(op: str, size: int, dtype: str) -> Loop:
    steps = (*reads(dtype, 0), Step(f"total_{op}", (0,), dtype))
    return Loop((), (size,), (Access(dtype, (1,)),), steps, (Write(1, Access(dtype, (0,))),))


def by_row(
    op: str, rows: int, columns: int, dtype: str, strides: tuple[int, int] | None = None, made: str = ""
) -> Loop:
    steps = (*reads(dtype, 0), Step(f"row_{op}", (0,), made or dtype))
    access = Access(dtype, strides or (columns, 1))
    return Loop((rows,), (columns,), (access,), steps, (Write(1, Access(made or dtype, (1, 0))),))


def by_column(rows: int, columns: int, dtype: str) -> Loop:
    steps = (*reads(dtype, 0), Step("column_sum", (0,), dtype))
    return Loop((rows,), (columns,), (Access(dtype, (columns, 1)),), steps, (Write(1, Access(dtype, (0, 1))),))


def error(found: np.ndarray, right: np.ndarray, dtype: str) -> float:
    """The largest relative error, in units of the dtype's precision."""
    right = right.astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - right) / np.abs(right)) / np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_error_of_a_large_sum_stays_small(dtype: str) -> None:
    x = np.random.default_rng(0).random(10_000_000 if dtype == "float32" else 3_000_000).astype(dtype)
    found = np.zeros(1, dtype)
    Compiled(total("sum", x.size, dtype))([x, found])
    assert error(found, x.sum(dtype=np.longdouble), dtype) <= (1 if dtype == "float32" else 8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 1_000_003), (64, 4096)])
def test_the_error_of_sums_of_rows_stays_small(shape: tuple[int, int], dtype: str) -> None:
    x = np.random.default_rng(1).random(shape).astype(dtype)
    found = np.zeros(shape[0], dtype)
    Compiled(by_row("sum", *shape, dtype))([x, found])
    assert error(found, x.sum(1, dtype=np.longdouble), dtype) <= 8


@pytest.mark.parametrize("shape", [(300_000, 5), (20_000, 200), (100_000, 33)])
def test_the_error_of_sums_of_columns_stays_small(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).random(shape).astype(np.float32)
    found = np.zeros(shape[1], np.float32)
    Compiled(by_column(*shape, "float32"))([x, found])
    assert error(found, x.sum(0, dtype=np.longdouble), "float32") <= 8


def test_the_error_of_sums_of_strided_rows_stays_small() -> None:
    x = np.random.default_rng(3).random((50_000, 40)).astype(np.float32)
    found = np.zeros(40, np.float32)
    Compiled(by_row("sum", 40, 50_000, "float32", (1, 40)))([x, found])
    assert error(found, x.sum(0, dtype=np.longdouble), "float32") <= 8


def test_sums_over_rows_of_lines_far_apart() -> None:
    x = np.random.default_rng(4).random((30, 7, 900, 3)).astype(np.float32)
    steps = (*reads("float32", 0), Step("row_sum", (0,), "float32"))
    access, made = Access("float32", (2700, 1, 18900, 3)), Access("float32", (3, 1, 0, 0))
    loop = Loop((7, 3), (30, 900), (access,), steps, (Write(1, made),))
    found = np.zeros((7, 3), np.float32)
    Compiled(loop)([x, found])
    assert error(found, x.sum((0, 2), dtype=np.longdouble), "float32") <= 8


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("columns", [1, 3, 16, 77, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_nan_anywhere_is_the_maximum_and_the_minimum(op: str, columns: int, dtype: str) -> None:
    x = np.random.default_rng(5).standard_normal((columns, columns))
    x[np.arange(columns), np.arange(columns)] = np.nan
    x = np.concatenate([x, np.full((1, columns), 2), np.full((1, columns), -np.inf)]).astype(dtype_of(dtype))
    found = np.zeros(columns + 2, dtype_of(dtype))
    for strides in ((columns, 1), (1, columns + 2)):
        memory = x if strides[1] == 1 else np.ascontiguousarray(x.T)
        Compiled(by_row(op, columns + 2, columns, dtype, strides))([memory, found])
        assert np.isnan(found[:columns].astype(float)).all()
        assert found[columns] == 2 and found[columns + 1] == -np.inf
    answer = np.zeros(1, dtype_of(dtype))
    Compiled(total(op, x.size, dtype))([x, answer])
    assert np.isnan(answer[0].astype(float))


@pytest.mark.parametrize(("op", "value"), [("sum", 0), ("prod", 1), ("any", False), ("all", True)])
@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (0, 0), (1, 0)])
def test_reductions_of_nothing(op: str, value: float, shape: tuple[int, int]) -> None:
    made = "bool" if op in ("any", "all") else "float32"
    x = np.zeros(shape, np.float32)
    found = np.full(shape[0] + 1, 7, made)
    loop = by_row(op, *shape, "float32", made=made)
    Compiled(loop)([x, found])
    assert (found[:-1] == value).all() and found[-1] == np.array(7, made)
    steps = (*reads("float32", 0), Step(f"total_{op}", (0,), made))
    answer = np.full(2, 7, made)
    Compiled(Loop(loop.outer, loop.inner, loop.reads, steps, (Write(1, Access(made, (0, 0))),)))([x, answer])
    assert answer[0] == value and answer[1] == np.array(7, made)


def test_sums_of_columns_without_rows_are_zero() -> None:
    found = np.full(6, 7, np.float32)
    Compiled(by_column(0, 5, "float32"))([np.zeros(1, np.float32), found])
    assert found.tolist() == [0, 0, 0, 0, 0, 7]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_wrap(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(6).integers(info.min, info.max, (70, 41), dtype, endpoint=True)
    for op, reduce in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        found = np.zeros(70, dtype)
        Compiled(by_row(op, 70, 41, dtype))([x | 1, found])
        more = {"dtype": dtype} if op in ("sum", "prod") else {}
        np.testing.assert_array_equal(found, reduce(x | 1, axis=1, **more))
    columns = np.zeros(41, dtype)
    Compiled(by_column(70, 41, dtype))([x, columns])
    np.testing.assert_array_equal(columns, x.sum(0, dtype=dtype))


def softmax(rows: int, columns: int, strides: tuple[int, int], dtype: str) -> Loop:
    steps = (
        *reads(dtype, 0), Step("row_max", (0,), dtype), Step("subtract", (0, 1), dtype), Step("exp", (2,), dtype),
        Step("row_sum", (3,), dtype), Step("divide", (3, 4), dtype),
    )  # fmt: skip
    access = Access(dtype, strides)
    return Loop((rows,), (columns,), (access,), steps, (Write(5, access),))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shape", [(5, 10), (40, 128), (33, 1000), (17, 20011), (1, 64), (3, 1)])
def test_a_softmax_in_three_passes(shape: tuple[int, int], across: bool, in_place: bool) -> None:
    x = (3 * np.random.default_rng(7).standard_normal(shape)).astype(np.float32)
    wide = x.astype(np.float64)
    wide = np.exp(wide - wide.max(1, keepdims=True))
    right = wide / wide.sum(1, keepdims=True)
    strides = (1, shape[0]) if across else (shape[1], 1)
    memory = np.ascontiguousarray(x.T) if across else x.copy()
    found = memory if in_place else np.zeros_like(memory)
    Compiled(softmax(*shape, strides, "float32"))([memory, found])
    np.testing.assert_allclose(found.T if across else found, right, rtol=2e-6)


def test_exponentials_are_kept_from_pass_to_pass_if_the_row_is_short() -> None:
    assert Compiled(softmax(4, 8000, (8000, 1), "float32")).emitted.scratch == 8000 * 4
    assert Compiled(softmax(64, 600, (1, 64), "float32")).emitted.scratch == 600 * REGISTER_BYTES
    assert Compiled(softmax(4, 20000, (20000, 1), "float32")).emitted.scratch == 0
    assert Compiled(softmax(4, 32, (32, 1), "float32")).emitted.scratch == 0  # such a row is in registers


def test_a_softmax_in_half_precision() -> None:
    x = np.random.default_rng(8).standard_normal((20, 70)).astype(np.float16)
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    found = np.zeros_like(x)
    Compiled(softmax(20, 70, (70, 1), "float16"))([x, found])
    np.testing.assert_allclose(found.astype(float), wide / wide.sum(1, keepdims=True), rtol=2**-10)


@pytest.mark.parametrize("shape", [(100, 48), (70, 130), (300, 700)])
def test_a_layer_norm_with_sums_of_columns_in_parts(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    rows, columns = shape

    def s(op: str, *operands: int, number: float | None = None) -> Step:
        return Step(op, operands, "float32", number=number)

    steps = (
        *reads("float32", 0, 1), s("row_sum", 0), s("number", number=1 / columns), s("multiply", 2, 3),
        s("subtract", 0, 4), s("square", 5), s("row_sum", 6), s("multiply", 7, 3), s("number", number=1e-5),
        s("add", 8, 9), s("sqrt", 10), s("divide", 5, 11), s("multiply", 12, 1), s("column_sum", 12),
        s("column_sum", 13), s("total_sum", 13),
    )  # fmt: skip
    at = Access("float32", (columns, 1))
    across = Access("float32", (0, 1))
    writes = (Write(13, at), Write(14, across), Write(15, across), Write(16, Access("float32", (0, 0))),
              Write(11, Access("float32", (1, 0))))  # fmt: skip
    loop = Loop((rows,), (columns,), (at, across), steps, writes)
    rng = np.random.default_rng(9)
    x, weight = rng.random(shape).astype(np.float32), rng.random(columns).astype(np.float32)
    wide = x.astype(np.float64)
    deviation = np.sqrt(wide.var(1) + 1e-5)
    normal = (wide - wide.mean(1, keepdims=True)) / deviation[:, None]
    out, first, second, all_, row = (np.zeros(s, np.float32) for s in (shape, columns, columns, 1, rows))
    compiled = Compiled(loop)
    assert compiled.emitted.units == rows and len(compiled.emitted.partials) == 3
    compiled.in_parts([x, weight, out, first, second, all_, row], [0, rows // 3, rows // 3 + 1, rows])
    np.testing.assert_allclose(out, normal * weight, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(first, normal.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, (normal * weight).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(all_[0], (normal * weight).sum(), rtol=1e-4)
    np.testing.assert_allclose(row, deviation, rtol=1e-6)
