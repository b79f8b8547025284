"""The same code for narrower registers and processors without AVX-512, and how much of it there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import binding, ir

from pullback.targets.llvm.mathematics import lanes
from pullback.targets.llvm.mathematics.operations import scalar_operation

from .mapped import build, mapped, run, written
from .test_accuracy import points

FUNCTIONS = [
    "exp",
    "expm1",
    "log",
    "sigmoid",
    "tanh",
    "erf",
    "erfc",
    "ndtr",
    "sin",
    "tan",
    "atan",
    "sinh",
    "pow",
    "remainder",
]


def body_of(op: str, dtype: str, repeat: int = 1) -> Any:
    """The operation; repeated, of what the one before gave."""

    def body(b: ir.IRBuilder, operands: list[Any]) -> Any:
        value = operands[0]
        for _ in range(repeat):
            value = scalar_operation(b, op, [value, *operands[1:]], dtype, [dtype] * len(operands))
        return value

    return body


@pytest.mark.skipif("avx2" not in binding.get_host_cpu_features(), reason="not an x86 processor")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_a_processor_with_half_the_width(op: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    count = 2 if op in ("pow", "remainder") else 1
    arguments = [points(rng, dtype, 60)[:300] for _ in range(count)]
    want = mapped(op, *arguments)
    monkeypatch.setattr(lanes, "_has_scaling", lambda: False)
    width = 8 if dtype == "float32" else 4
    _engine, function = build(body_of(op, dtype), (dtype,) * count, dtype, width, processor="haswell")
    np.testing.assert_array_equal(run(function, arguments, dtype), want)


@pytest.mark.parametrize("width", [2, 32])
@pytest.mark.parametrize("op", ["exp", "sin", "pow"])
def test_widths_of_less_and_more_than_a_register(op: str, width: int) -> None:
    rng = np.random.default_rng(1)
    arguments = [points(rng, "float32", 60)[:300] for _ in range(2 if op == "pow" else 1)]
    np.testing.assert_array_equal(mapped(op, *arguments, width=width), mapped(op, *arguments))


@pytest.mark.parametrize("op", ["sin", "pow", "erfc", "atan2"])
def test_long_functions_are_written_once(op: str) -> None:
    count = 2 if op in ("pow", "atan2") else 1

    def lines(repeat: int) -> int:
        return str(written(body_of(op, "float32", repeat), ("float32",) * count, "float32", 16)).count("\n")

    once, five = lines(1), lines(5)
    assert five - once < 40 < once


def test_frequent_functions_are_short() -> None:
    """Instructions of one vector and one scalar together."""

    def length(op: str) -> int:
        module = written(body_of(op, "float32"), ("float32",), "float32", 16)
        return sum(len(block.instructions) for function in module.functions for block in function.blocks)

    frame = length("negative")
    most = {"exp": 24 if lanes._has_scaling() else 26, "log": 40, "tanh": 36, "sigmoid": 30, "erf": 45}
    assert not {op: length(op) - frame for op, bound in most.items() if length(op) - frame > 2 * bound}
