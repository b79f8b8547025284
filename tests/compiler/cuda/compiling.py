"""A program: every kernel of whole operations compiled for a GPU (sm_90) that need not be there.

Launches are caught, and what would be launched is compiled. Triton's interpreter does not know all rules of its
language: this finds what it lets pass.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from pullback.targets.cuda.array_dtypes import array_dtypes
from pullback.targets.cuda.kernels import segments, timeline
from pullback.targets.cuda.kernels.small_product import SmallProductKernel
from pullback.targets.cuda.kernels.table import KERNELS, kernel_for
from pullback.targets.custom_kernels import (
    CrossEntropy,
    Extreme,
    Gather,
    GatherAlong,
    Philox,
    Running,
    Scan,
    ScanGradient,
    Scatter,
    ScatterAlong,
)
from pullback.targets.kernels import Product

_POINTERS = {
    torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64",
    torch.int8: "*i8", torch.int16: "*i16", torch.int32: "*i32", torch.int64: "*i64",
}  # fmt: skip
_COMPILED: set[str] = set()


def _signature(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return _POINTERS[argument.dtype]
    if type(argument) is tuple and argument and isinstance(argument[0], torch.Tensor):
        return tuple([_signature(one) for one in argument])
    return "constexpr"


def _compile(function: Any, *arguments: Any, grid: Any, warmup: bool = False, **options: Any) -> None:
    """Stands in for a launch."""
    signature = {name: _signature(argument) for name, argument in zip(function.arg_names, arguments)}
    constants = {
        name: argument for name, argument in zip(function.arg_names, arguments) if signature[name] == "constexpr"
    }
    source = ASTSource(function, signature, constants)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    _COMPILED.add(function.fn.__qualname__)


def _launch(description: Any, dtypes: list[str]) -> None:
    kernel = kernel_for(description)
    arrays = [torch.zeros(1, dtype=getattr(torch, dtype)) for dtype in dtypes]
    kernel.launch(arrays, [torch.zeros(count, dtype=getattr(torch, dtype)) for dtype, count in kernel.scratch])


def main() -> None:
    JITFunction.run = _compile
    timeline._TILE, timeline._STEPS, timeline._MOST_STEPS, segments._BLOCK = 128, 64, 64, 256  # compiled sooner
    f32, f64, i64 = "float32", "float64", "int64"
    index, rows, both, still = (i64, (1,)), (600, 1), (2, 1), (0, 1)
    described: list[tuple[Any, list[str]]] = [
        (Gather(f32, (3,), (5, 7), (8,), (4,), (140, 28, 4, 1), (index, index), (32, 4, 1)), [f32, i64, i64, f32]),
        (GatherAlong("bfloat16", (4,), 7, 2, (7, 1), "int32", (2, 1), (2, 1)), ["bfloat16", "int32", "bfloat16"]),
        (Scatter("bfloat16", (), (7,), (3000,), (8,), (8, 1), (index,), (8, 1)), ["bfloat16", i64, "bfloat16"]),
        (Scatter(f32, (), (7,), (3000,), (8,), (8, 1), (index,), (8, 1), True), [f32, f32, i64, f32]),
        (ScatterAlong(f32, (4,), 7, 2, (2, 1), i64, (2, 1), (7, 1)), [f32, i64, f32]),
        (ScatterAlong(f32, (20,), 9000, 600, rows, i64, rows, (9000, 1)), [f32, i64, f32]),
        (Philox("bool", 100, 2**31 + 5, 2**63 + 7), [i64, i64, "bool"]),
        (Philox("float64", 100), [i64, i64, f64]),
        (Running("sum", f32, (4000, 2), 0, True, False, (2, 1), (2, 1)), [f32, f32]),
        (Running("prod", i64, (2, 50), 1, False, True, (50, 1), (50, 1)), [i64, i64]),
        (Extreme("argmax", f32, (2,), 50000, (50000, 1), (1,)), [f32, i64]),
        *[
            (description, array_dtypes(description))
            for description in (
                CrossEntropy("bfloat16", 8, 50304, (50304, 1), (i64, 1), None, None, 0, -100, 0.0),
                CrossEntropy(f64, 8, 77, (77, 1), ("int32", 2), (f64, 1), (f32, 3), 1, 5, 0.1),
                CrossEntropy("float16", 8, 1030, (1030, 1), (i64, 1), None, None, None, -100, 0.1),
            )
        ],
        (Scan(f32, (4000, 2), 0, True, both, still, still, both), [f32] * 4),
        (ScanGradient(f32, (4000, 2), 0, True, both, still, still, both, both, still, still, True), [f32] * 7),
        (ScanGradient(f64, (2, 30), 1, True, (30, 1), (1, 2), None, (30, 1), None, (30, 1), None), [f64] * 4),
    ]  # fmt: skip
    for description, dtypes in described:
        _launch(description, dtypes)
    for product in (Product(f32, (), 128, 500, 512, (512, 1), (500, 1), (500, 1)),
                    Product(f32, (), 20, 10, 600, (1, 20), (1, 600), (10, 1), True, True)):  # fmt: skip
        small = SmallProductKernel(product, torch.device("cpu"))
        small.launch([torch.zeros(1)] * (3 + product.bias), [torch.zeros(1) for _ in small.scratch])
    assert {type(description) for description, _ in described} == set(KERNELS)
    print(f"{len(_COMPILED)} functions compiled")


if __name__ == "__main__":
    main()
