"""Products to try: arrays that lie in memory in many ways, what their product is, and running native code on them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from pullback.targets.kernels import Product
from pullback.targets.llvm import emission
from pullback.targets.llvm.code import Emitted
from pullback.targets.llvm.runtime import jit

#: How a matrix may lie in memory.
LAYOUTS = ("rows", "columns", "wide rows", "wide columns", "spaced", "backward", "backward columns")
KIND = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)  # fmt: skip


def laid_out(values: np.ndarray, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """A view with these values that lies as asked, and the whole memory that it is in, NaN elsewhere."""
    *batch, rows, columns = values.shape
    swapped = "columns" in layout
    inner = [columns, rows] if swapped else [rows, columns]
    room = [inner[0] + 1, inner[1] + 3] if "wide" in layout else inner
    room = [2 * inner[0], 3 * inner[1]] if layout == "spaced" else room
    memory = np.full((*batch, *room), np.nan, values.dtype)
    part = memory[..., :: 2 if layout == "spaced" else 1, :: 3 if layout == "spaced" else 1]
    part = part[..., : inner[0], : inner[1]]
    if "backward" in layout:
        part = part[..., ::-1, ::-1]
    view = part.swapaxes(-1, -2) if swapped else part
    view[...] = values
    return view, memory


def strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


@dataclass
class Case:
    """A product, its arrays, the memory `out` is in, and what is to be in it afterwards, in float64."""

    product: Product
    x: np.ndarray
    y: np.ndarray
    out: np.ndarray
    memory: np.ndarray
    expected: np.ndarray
    scale: np.ndarray

    def check(self) -> None:
        """The right numbers are in out, to about the rounding of one sum, and nothing else was written."""
        error = np.abs(self.out.astype(np.float64) - self.expected)
        allowed = (2.0 + self.product.k**0.5 / 4) * np.finfo(self.product.dtype).eps * self.scale
        allowed *= 2 if self.product.dtype == "float64" else 1  # what is expected is rounded as well
        worst = np.max(error - allowed, initial=-1.0)
        assert worst <= 0.0 and np.isfinite(self.out).all(), (self.product, error.max())
        self.out[...] = np.nan
        assert np.isnan(self.memory).all(), f"wrote beside out: {self.product}"


def case(
    rng: np.random.Generator,
    size: tuple[int, int, int],
    layouts: tuple[str, str, str] = ("rows", "rows", "rows"),
    dtype: str = "float32",
    batch: tuple[int, ...] = (),
    shared: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    accumulate: bool = False,
) -> Case:
    """A product of random matrices; `shared` are the batch axes along which x and y are the same for all."""
    m, n, k = size
    values = []
    for axes, shape in ((shared[0], (m, k)), (shared[1], (k, n)), ((), (m, n))):
        own = tuple(1 if axis in axes else extent for axis, extent in enumerate(batch))
        values.append(rng.standard_normal((*own, *shape)).astype(dtype))
    (x, _), (y, _), (out, memory) = (laid_out(value, layout) for value, layout in zip(values, layouts))
    x, y = np.broadcast_to(x, (*batch, m, k)), np.broadcast_to(y, (*batch, k, n))
    wide_x, wide_y, wide_out = (array.astype(np.float64) for array in (x, y, out))
    expected = wide_x @ wide_y
    scale = np.abs(wide_x) @ np.abs(wide_y)
    if accumulate:
        expected, scale = expected + wide_out, scale + np.abs(wide_out)
    else:
        out[...] = np.nan
    product = Product(dtype, batch, m, n, k, strides(x), strides(y), strides(out), accumulate)
    return Case(product, x, y, out, memory, expected, scale)


class Native:
    """Functions of one module, with what their emitters said of them."""

    def __init__(self, emitters: list[Callable[[ir.Module, str], Emitted]]) -> None:
        module = ir.Module("products")
        module.triple = llvm.get_process_triple()
        self.emitted = [emitter(module, f"product{number}") for number, emitter in enumerate(emitters)]
        symbols = {name: emission.address_of(name) for name in module.globals if emission.provided(name)}
        names = [emitted.name for emitted in self.emitted]
        self._library = jit.Library([jit.compile_object(str(module))], names, symbols)
        self._functions = [KIND(self._library.addresses[name]) for name in names]

    def run(self, number: int, case: Any, cuts: list[int] | None = None) -> None:
        """Run one of them, in parts that end at `cuts`, the last part first."""
        emitted = self.emitted[number]
        table = np.array([array.ctypes.data for array in (case.x, case.y, case.out)], np.int64)
        ends = [*(cuts or []), emitted.units]
        for part, (begin, end) in reversed(list(enumerate(zip([0, *ends], ends)))):
            if begin < end:
                scratch = np.full(emitted.scratch + 257, 0xFF, np.uint8)  # an odd address, and NaN where it is read
                self._functions[number](table.ctypes.data, begin, end, part, scratch.ctypes.data + 1)
                assert (scratch[emitted.scratch + 1 :] == 0xFF).all(), "wrote beyond its scratch memory"


def run_all(cases: list[Case], emit: Callable[[ir.Module, str, Product], Emitted]) -> None:
    """Compile products together, run and check each."""
    native = Native([lambda module, name, one=one: emit(module, name, one.product) for one in cases])
    for number, one in enumerate(cases):
        native.run(number, one)
        one.check()
