"""Elementwise loops: half precision, arrays that lie across, memory written in place, and what is said of the code."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.targets.kernels import Access, Loop, Step, Write
from pullback.targets.llvm.loops import emit_loop as loops
from pullback.targets.llvm.loops.loop_form import simplest
from pullback.targets.llvm.loops.loop_tiles import reads_across
from pullback.targets.llvm.loops.plan import Plan

from .evaluation import Compiled, Guarded, dtype_of


def read(dtype: str, number: int = 0) -> Step:
    return Step("read", (), dtype, number)


def copy(
    outer: tuple[int, ...], inner: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], dtype: str
) -> Loop:
    return Loop(outer, inner, (Access(dtype, source),), (read(dtype),), (Write(0, Access(dtype, target)),))


# -- half precision ------------------------------------------------------------------------------


def hard_floats() -> np.ndarray:
    """Numbers that lie on, halfway between, and next to those of half precision, and those beyond it."""
    bits = np.random.default_rng(0).integers(0, 2**32, 20000, np.uint32)
    halves = np.arange(2**16, dtype=np.uint32)
    near = np.concatenate([(halves << 16) + offset for offset in (0, 0x7FFF, 0x8000, 0x8001)]).astype(np.uint32)
    with np.errstate(all="ignore"):
        of_float16 = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
        ties = of_float16 + np.spacing(of_float16.astype(np.float16)).astype(np.float32) / 2
    return np.concatenate([bits.view(np.float32), near.view(np.float32), of_float16, ties])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_to_nearest_when_stored(dtype: str) -> None:
    x = hard_floats()
    found = np.zeros(x.size, dtype_of(dtype))
    loop = Loop((), (x.size,), (Access("float32", (1,)),), (read("float32"),), (Write(0, Access(dtype, (1,))),))
    Compiled(loop)([x, found])
    with np.errstate(all="ignore"):
        right = x.astype(dtype_of(dtype))
    number = ~np.isnan(x)
    np.testing.assert_array_equal(found.view(np.uint16)[number], right.view(np.uint16)[number])
    assert np.isnan(found[~number].astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_exactly_and_rounded_by_a_conversion(dtype: str) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(dtype_of(dtype))
    third = Step("number", (), "float32", number=1 / 3)
    steps = (read(dtype), Step("convert", (0,), "float32"), third, Step("multiply", (1, 2), "float32"),
             Step("convert", (3,), dtype), Step("convert", (4,), "float32"))  # fmt: skip
    at = Access("float32", (1,))
    found, rounded = np.zeros(x.size, np.float32), np.zeros(x.size, np.float32)
    Compiled(Loop((), (x.size,), (Access(dtype, (1,)),), steps, (Write(1, at), Write(5, at))))([x, found, rounded])
    np.testing.assert_array_equal(found, x.astype(np.float32))
    with np.errstate(invalid="ignore"):
        right = (x.astype(np.float32) * np.float32(1 / 3)).astype(x.dtype)
    np.testing.assert_array_equal(rounded, right.astype(np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("length", [1, 2, 3, 15, 17, 33, 65])
def test_nothing_is_written_behind_the_last_element(dtype: str, length: int) -> None:
    guarded = Guarded()
    x, found = guarded.zeros([length], np.dtype(np.float32)), guarded.zeros([length], dtype_of(dtype))
    x[...] = np.arange(length) % 3
    number = Step("number", (), "float32", number=1.0)
    steps = (read("float32"), number, Step("add", (0, 1), "float32"), Step("convert", (2,), dtype))
    Compiled(Loop((), (length,), (Access("float32", (1,)),), steps, (Write(3, Access(dtype, (1,))),)))([x, found])
    guarded.check()
    np.testing.assert_array_equal(found.astype(np.float32), (x + 1).astype(found.dtype).astype(np.float32))


def test_lanes_beyond_the_last_element_do_not_divide_by_zero() -> None:
    x, y, found = np.arange(10, 15, dtype=np.int32), np.arange(1, 6, dtype=np.int32), np.zeros(5, np.int32)
    at = Access("int32", (1,))
    steps = (read("int32"), read("int32", 1), Step("floor_divide", (0, 1), "int32"))
    Compiled(Loop((), (5,), (at, at), steps, (Write(2, at),)))([x, y, found])
    assert found.tolist() == (x // y).tolist()


# -- arrays that lie across ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(16, 16), (64, 48), (33, 70), (8, 9), (100, 31), (15, 200)])
def test_a_matrix_is_transposed(shape: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    rows, columns = shape
    guarded = Guarded()
    x, found = guarded.zeros([columns, rows], dtype_of(dtype)), guarded.zeros([rows, columns], dtype_of(dtype))
    x[...] = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 100, x.shape).astype(x.dtype)
    loop = copy((rows,), (columns,), (1, rows), (columns, 1), dtype)
    assert reads_across(Plan(simplest(loop)))
    compiled = Compiled(loop)
    compiled.in_parts([x, found], [0, compiled.emitted.units // 2, compiled.emitted.units])
    guarded.check()
    np.testing.assert_array_equal(found, x.T)


def test_arrays_that_lie_across_meet_others() -> None:
    rng = np.random.default_rng(2)
    x, y, bias, scale = (rng.standard_normal(s).astype(np.float32) for s in ((3, 20, 37), (3, 37, 20), 20, (3, 37)))
    found = np.zeros((3, 37, 20), np.float32)  # x turned, times a number per row, plus y, plus a bias
    accesses = ((740, 1, 37), (740, 20, 1), (0, 0, 1), (37, 1, 0))
    steps = (*[read("float32", i) for i in range(4)], Step("tanh", (3,), "float32"),
             Step("multiply", (0, 4), "float32"), Step("add", (5, 1), "float32"),
             Step("add", (6, 2), "float32"))  # fmt: skip
    reads = tuple([Access("float32", strides) for strides in accesses])
    Compiled(Loop((3, 37), (20,), reads, steps, (Write(7, Access("float32", (740, 20, 1))),)))(
        [x, y, bias, scale, found]
    )
    right = x.transpose(0, 2, 1).astype(float) * np.tanh(scale.astype(float))[..., None] + y + bias
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


# -- in place ------------------------------------------------------------------------------------


@pytest.mark.parametrize("across", [False, True])
def test_what_is_written_once_for_a_row_may_be_what_the_row_reads(across: bool) -> None:
    row, x = np.arange(1.0, 31, dtype=np.float32), np.ones((30, 50), np.float32)
    found = np.zeros((50, 30) if across else (30, 50), np.float32)
    steps = (read("float32"), read("float32", 1), Step("multiply", (0, 0), "float32"), Step("add", (2, 1), "float32"))
    target = Access("float32", (1, 30) if across else (50, 1))
    writes = (Write(2, Access("float32", (1, 0))), Write(3, target))
    squares = row**2
    Compiled(Loop((30,), (50,), (Access("float32", (1, 0)), Access("float32", (50, 1))), steps, writes))(
        [row, x, row, found]
    )
    np.testing.assert_array_equal(row, squares)
    np.testing.assert_array_equal(found.T if across else found, np.broadcast_to(squares[:, None] + 1, (30, 50)))


def test_a_sum_of_columns_may_be_written_over_what_each_row_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    x, bias = np.ones((90, 300), np.float32), np.arange(300, dtype=np.float32)
    steps = (read("float32"), read("float32", 1), Step("add", (0, 1), "float32"), Step("column_sum", (2,), "float32"))
    loop = Loop((90,), (300,), (Access("float32", (300, 1)), Access("float32", (0, 1))), steps,
                (Write(3, Access("float32", (0, 1))),))  # fmt: skip
    right = 90 * (1 + bias)
    Compiled(loop)([x, bias, bias])
    np.testing.assert_array_equal(bias, right)


# -- what is said of the code --------------------------------------------------------------------


def test_axes_that_are_one_run_of_memory_are_merged() -> None:
    assert simplest(copy((4, 1, 5), (6, 7), (210, 9, 42, 7, 1), (210, 0, 42, 7, 1), "float32")).inner == (840,)
    assert simplest(copy((4, 5), (6,), (1, 4, 20), (1, 4, 20), "float32")).inner == (120,)
    turned = simplest(copy((2, 3), (4, 5), (60, 20, 1, 4), (60, 20, 5, 1), "float32"))
    assert (turned.outer, turned.inner) == ((6, 4), (5,))
    assert turned.reads[0].strides == (20, 1, 4)


def test_small_loops_are_not_to_be_shared_and_large_ones_are() -> None:
    small = Compiled(copy((), (100,), (1,), (1,), "float32")).emitted
    large = Compiled(copy((), (1_000_001,), (1,), (1,), "float32")).emitted
    assert small.units == 1 and small.cost < 100
    assert large.units == 1_000_001 and large.grain >= 64 and large.cost > 10_000


def test_the_only_row_is_not_shared_if_something_is_written_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    steps = (read("float32"), read("float32", 1), Step("add", (0, 1), "float32"), Step("negative", (0,), "float32"))
    one, all_ = Access("float32", (0,)), Access("float32", (1,))
    compiled = Compiled(Loop((), (5000,), (one, all_), steps, (Write(2, all_), Write(3, one))))
    assert compiled.emitted.units == 1  # the number may be written over the one that is read
    number, x, found = np.full(1, 3, np.float32), np.ones(5000, np.float32), np.zeros(5000, np.float32)
    compiled([number, x, found, number])
    assert number[0] == -3 and (found == 4).all()


@pytest.mark.parametrize("strides", [(1,), (2,), (-1,)])
def test_sums_of_columns_with_gaps_are_not_shared(strides: tuple[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    steps = (read("float32"), Step("column_sum", (0,), "float32"))
    loop = Loop((70,), (40,), (Access("float32", (40, 1)),), steps, (Write(1, Access("float32", (0, *strides))),))
    emitted = Compiled(loop).emitted
    assert (emitted.units, emitted.partials) == ((70, ((1, 160, "sum"),)) if strides == (1,) else (1, ()))


def test_complex_numbers_are_not_supported() -> None:
    assert loops.supports(copy((), (3,), (1,), (1,), "bfloat16"))
    assert not loops.supports(copy((), (3,), (1,), (1,), "complex64"))
