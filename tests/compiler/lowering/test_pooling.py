"""Maxima of windows and their positions have native forms, the same as NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.windows import Adaptive, Window

from ...backends.installed import optional
from .building import Building
from .checking import checked, kinds

executable = optional("pullback.targets.llvm.runtime.executable")

RNG = np.random.default_rng(5)

CASES: dict[str, tuple[Window, ...]] = {
    "side by side": (Window(6, 3, 2, 2, 0, 1), Window(8, 4, 2, 2, 0, 1)),
    "overlapping": (Window(7, 5, 3, 1, 0, 1), Window(7, 3, 3, 2, 0, 1)),
    "elements left over": (Window(7, 3, 2, 2, 0, 1), Window(5, 2, 2, 2, 0, 1)),
    "dilated": (Window(8, 4, 3, 1, 0, 2), Window(6, 2, 2, 2, 0, 3)),
    "one axis": (Window(9, 4, 3, 2, 0, 1),),
    "padded": (Window(6, 3, 3, 2, 1, 1), Window(5, 5, 3, 1, 1, 1)),
    "padded by more than one, dilated": (Window(9, 7, 3, 1, 2, 3), Window(4, 3, 2, 2, 1, 2)),
    "reaching over the end": (Window(5, 3, 2, 2, 0, 1), Window(7, 4, 3, 2, 1, 1)),
    "one element": (Window(3, 3, 1, 1, 0, 1), Window(3, 2, 1, 2, 0, 1)),
}


def _given(dtype: str, shape: tuple[int, ...]) -> Any:
    x = np.round(2 * RNG.normal(size=shape)).astype(dtype)  # with equal elements
    if dtype[0] == "f":
        x[RNG.random(shape) < 0.15] = np.nan
        x[RNG.random(shape) < 0.3] = -np.inf
    x[0, 0] = -np.inf if dtype[0] == "f" else np.iinfo(dtype).min  # as low as what is around it
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("case", CASES)
def test_maxima_and_what_follows_their_positions(case: str, dtype: str) -> None:
    axes = CASES[case]
    size = tuple(axis.size for axis in axes)
    b = Building()
    x = b.input(_given(dtype, (3, 5, *size)))
    best, indices = b.max_pool(x, axes)
    again = b.max_pool_indices(x, axes)
    back = b.pool_scatter(b.input(RNG.integers(0, 9, best.shape).astype(dtype)), indices, size)
    program = b.program([best, indices, again, b.pool_gather(x, indices), back])
    schedule = checked(program, b.given())
    assert "H" not in kinds(schedule)
    outputs = [np.empty(value.shape, value.dtype) for value in program.outputs]
    executable.build(schedule).run([array.ctypes.data for array in b.given()], [array.ctypes.data for array in outputs])
    for got, value in zip(outputs, program.outputs):
        np.testing.assert_array_equal(got, b.arrays[value])


def test_maxima_and_their_positions_are_one_loop() -> None:
    b = Building()
    x = b.input(_given("float32", (2, 3, 6, 8)))
    assert (
        kinds(checked(b.program(b.max_pool(b.permute_dims(x, (1, 0, 2, 3)), CASES["side by side"])), b.given())) == "L"
    )


@pytest.mark.parametrize("axis", [Adaptive(7, 3), Window(20, 2, 13, 5, 0, 1)])
def test_windows_of_different_lengths_or_many_elements_are_left_to_numpy(axis: Any) -> None:
    b = Building()
    x = b.input(_given("float32", (2, 3, axis.size)))
    assert "H" in kinds(checked(b.program(b.max_pool(x, (axis,))), b.given()))
