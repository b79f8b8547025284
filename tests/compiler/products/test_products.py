"""Native products against NumPy's in float64: all sizes, strides, transpositions, batches, and parts of the work."""

from __future__ import annotations

import ctypes
import itertools
import mmap

import numpy as np
import pytest
from llvmlite import ir

from pullback.targets.kernels import Product
from pullback.targets.llvm.code import Emitted
from pullback.targets.llvm.products import blas, emit_product as products
from pullback.targets.llvm.products.product_form import form_of
from pullback.targets.llvm.products.small_products import Machine, emit_own, host

from .cases import LAYOUTS, Native, case, laid_out, run_all, strides

SIZES = (0, 1, 2, 3, 5, 7, 16, 17, 31, 64, 65, 100, 129)
MACHINES = {"512 bits": Machine(64, 4), "256 bits": Machine(32, 3), "128 bits": Machine(16, 2)}


def own(machine: Machine):
    """An emitter that uses our own kernels for a machine with other registers."""

    def emit(module: ir.Module, name: str, product: Product) -> Emitted:
        form = form_of(product)
        units, scratch = emit_own(module, name, form, machine)
        return Emitted(name, units.each * form.entries, 0.0, scratch=scratch)

    return emit


def with_blas(module: ir.Module, name: str, product: Product) -> Emitted:
    """An emitter that uses BLAS."""
    found = blas.find()
    assert found is not None
    return products.emit_blas(module, name, form_of(product), found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_size(dtype):
    rng = np.random.default_rng(1)
    sizes = [(m, n, k) for m, n, k in itertools.product(SIZES, repeat=3) if rng.random() < 0.06 or m == n == k]
    choices = rng.choice(["rows", "columns"], (len(sizes), 3))
    cases = [
        case(rng, size, tuple(how.tolist()), dtype, accumulate=rng.random() < 0.3) for size, how in zip(sizes, choices)
    ]
    run_all(cases, products.emit)


@pytest.mark.parametrize("size", [(5, 7, 3), (17, 33, 20), (3, 70, 65), (70, 3, 33), (2, 9, 40), (66, 65, 64)])
def test_every_layout(size):
    rng = np.random.default_rng(2)
    cases = [
        case(rng, size, layouts, "float32", accumulate=index % 2 == 1)
        for index, layouts in enumerate(itertools.product(LAYOUTS, repeat=3))
    ]
    run_all(cases, products.emit)


@pytest.mark.parametrize("name", MACHINES)
def test_registers_of_any_length(name):
    rng = np.random.default_rng(3)
    cases = []
    for index in range(40):
        size = tuple(rng.choice(SIZES[1:], 3).tolist())
        layouts = tuple(rng.choice(LAYOUTS, 3).tolist())
        cases.append(case(rng, size, layouts, ("float32", "float64")[index % 2], accumulate=rng.random() < 0.3))
    run_all(cases, own(MACHINES[name]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_with_axes_shared(dtype):
    rng = np.random.default_rng(4)
    cases = []
    for batch in [(1,), (3,), (2, 3), (2, 1, 3), (0,), (2, 0)]:
        axes = [axes for count in range(len(batch) + 1) for axes in itertools.combinations(range(len(batch)), count)]
        for shared in itertools.product(axes, repeat=2):
            size = tuple(rng.choice([1, 2, 5, 17, 33], 3).tolist())
            layouts = tuple(rng.choice(LAYOUTS, 3).tolist())
            cases.append(case(rng, size, layouts, dtype, batch, shared, rng.random() < 0.3))
    run_all(cases, products.emit)


def test_batch_axes_in_any_order_of_memory():
    rng = np.random.default_rng(5)
    heads = rng.standard_normal((2, 9, 3, 20)).astype(np.float32)  # (batch, position, head, width), as attention has it
    x, y = heads.transpose(0, 2, 1, 3), heads.transpose(0, 2, 3, 1)
    out = np.full((2, 3, 9, 9), np.nan, np.float32)
    product = Product("float32", (2, 3), 9, 9, 20, strides(x), strides(y), strides(out))

    class Arrays:
        pass

    arrays = Arrays()
    arrays.x, arrays.y, arrays.out = x, y, out
    Native([lambda module, name: products.emit(module, name, product)]).run(0, arrays)
    np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("emit", [products.emit, with_blas], ids=["own", "blas"])
def test_deep_products(emit):
    """More along k than a panel holds: sums go to memory between, and must be added once, whatever the edges."""
    rng = np.random.default_rng(6)
    cases = [
        case(rng, size, layouts, dtype, accumulate=accumulate)
        for size in [(5, 70, 1100), (37, 130, 513), (130, 40, 1024), (1, 300, 600), (1, 1, 5000)]
        for layouts in [("rows", "rows", "rows"), ("columns", "columns", "columns"), ("columns", "rows", "rows")]
        for dtype in ["float32", "float64"]
        for accumulate in [False, True]
    ]
    run_all(cases, emit)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_x_that_are_copied(dtype):
    """Whole lines of cache and what is left of them, several blocks of rows, and blocks along k that are not whole."""
    rng = np.random.default_rng(4)
    cases = [
        case(rng, size, (layout, rng.choice(("rows", "columns")).item(), "rows"), dtype, accumulate=accumulate)
        for size in ((70, 100, 270), (97, 98, 31), (64, 1537, 9), (271, 402, 300))
        for layout in LAYOUTS
        for accumulate in (False, True)
    ]
    run_all(cases, products.emit)


def test_all_rows_of_a_large_x():
    """More rows than are kept in cache."""
    rng = np.random.default_rng(7)
    cases = [case(rng, (530, 66, 512), (layout, "rows", "rows"), "float64") for layout in ("rows", "columns")]
    run_all(cases, products.emit)


@pytest.mark.parametrize("emit", [products.emit, with_blas], ids=["own", "blas"])
def test_work_in_parts(emit):
    """However the units are cut, every number of out is the same to the last bit."""
    rng = np.random.default_rng(8)
    sizes = [(1, 300, 40), (100, 1, 70), (67, 129, 33), (130, 40, 600), (9, 9, 9), (8, 200, 17), (200, 300, 5)]
    cases = []
    for size in sizes:
        for layouts in [("rows", "rows", "rows"), ("rows", "columns", "rows"), ("columns", "rows", "columns")]:
            for batch in [(), (3,)]:
                cases.append(case(rng, size, layouts, "float32", batch, accumulate=len(cases) % 3 == 0))
    native = Native([lambda module, name, one=one: emit(module, name, one.product) for one in cases])
    shared = 0
    for number, one in enumerate(cases):
        before = one.out.copy()
        native.run(number, one)
        whole = one.out.copy()
        units = native.emitted[number].units
        shared += units > 1
        for _ in range(3):
            cuts = sorted(rng.integers(0, units + 1, rng.integers(1, 4)).tolist())
            one.out[...] = before
            native.run(number, one, cuts)
            if emit is products.emit:
                np.testing.assert_array_equal(one.out, whole)
        one.check()
    assert shared > len(cases) // 2


def test_blas_layouts_and_batches():
    rng = np.random.default_rng(9)
    cases = []
    for layouts in itertools.product(("rows", "columns", "wide rows", "wide columns"), repeat=3):
        for dtype in ("float32", "float64"):
            size = (*rng.choice([2, 17, 65, 130], 2).tolist(), int(rng.choice([1, 2, 17, 65])))
            batch, shared = ((2, 3), ((0,), (1,))) if rng.random() < 0.3 else ((), ((), ()))
            cases.append(case(rng, size, layouts, dtype, batch, shared, rng.random() < 0.5))
    assert [one.product for one in cases if not products.takes_blas(form_of(one.product))] == []
    run_all(cases, with_blas)


def test_nothing_beyond_the_arrays_is_read():
    """Every array ends where memory ends: reading on would be the end of the process."""
    rng = np.random.default_rng(10)
    cases = []
    kept = []
    for size in [(3, 5, 7), (17, 33, 9), (1, 19, 21), (5, 3, 100), (66, 70, 68), (2, 13, 35), (1, 1, 13)]:
        for layouts in itertools.product(("rows", "columns"), repeat=3):
            for dtype in ("float32", "float64"):
                one = case(rng, size, layouts, dtype)
                for name in ("x", "y", "out"):
                    array = getattr(one, name)
                    copy, memory = _at_the_end(array)
                    kept.append(memory)
                    setattr(one, name, copy)
                one.memory = one.out
                cases.append(one)
    run_all(cases, products.emit)


def _at_the_end(array: np.ndarray) -> tuple[np.ndarray, mmap.mmap]:
    """A copy with the same strides in the last bytes before a page that must not be touched."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, room + page)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    if hasattr(mmap, "PROT_READ"):
        library = ctypes.CDLL(None)
        assert library.mprotect(ctypes.c_void_p(address + room), ctypes.c_size_t(page), 0) == 0
    copy = np.ndarray(array.shape, array.dtype, memory, room - array.nbytes, array.strides)
    copy[...] = array
    return copy, memory


def test_infinities_and_nan_go_where_they_belong():
    x = np.ones((5, 40), np.float32)
    y = np.ones((40, 21), np.float32)
    x[1, 3], x[2, 4], y[5, 20] = np.inf, np.nan, -np.inf
    for layout in ("rows", "columns"):
        out = np.full((5, 21), 7.0, np.float32)
        view, _ = laid_out(y, layout)

        class Arrays:
            pass

        arrays = Arrays()
        arrays.x, arrays.y, arrays.out = x, view, out
        product = Product("float32", (), 5, 21, 40, strides(x), strides(view), strides(out))
        Native([lambda module, name, product=product: products.emit(module, name, product)]).run(0, arrays)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(out, x @ y)


def test_nothing_summed_is_zero_or_what_was_there():
    for accumulate in (False, True):
        rng = np.random.default_rng(11)
        cases = [case(rng, (m, n, 0), accumulate=accumulate) for m in (1, 5, 70) for n in (1, 9, 130)]
        run_all(cases, products.emit)


def test_only_floats_have_a_native_form():
    product = Product("int64", (), 2, 2, 2, (2, 1), (2, 1), (2, 1))
    assert not products.supports(product)
    with pytest.raises(ValueError, match="int64"):
        products.emit(ir.Module("products"), "product", product)
    assert products.supports(Product("float64", (), 2, 2, 2, (2, 1), (2, 1), (2, 1)))


def test_cost_grows_with_work():
    def cost(m, n, k, batch=()):
        lead = (0,) * len(batch)
        return products.cost(Product("float32", batch, m, n, k, (*lead, k, 1), (*lead, n, 1), (*lead, n, 1)))

    assert 0 < cost(1, 16, 16) < cost(32, 64, 64) < cost(128, 512, 784) < cost(1024, 1024, 1024)
    assert cost(128, 512, 784) == pytest.approx(950_000 * 16 / host().lanes("float32"), rel=0.3)
