"""What products are made into before they are emitted, and which are given to BLAS."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.targets.kernels import Product
from pullback.targets.llvm import emission
from pullback.targets.llvm.products import blas, emit_product as products, product_library
from pullback.targets.llvm.products.product_form import form_of
from pullback.targets.llvm.runtime import jit, natives

from .cases import KIND, Native, case, run_all
from .test_products import with_blas


def test_a_batch_that_shares_y_becomes_rows():
    product = Product("float32", (4, 8), 16, 32, 64, (8 * 16 * 64, 16 * 64, 64, 1), (0, 0, 32, 1), (4096, 512, 32, 1))
    form = form_of(product)
    assert (form.batch, form.m, form.n, form.k) == ((), 4 * 8 * 16, 32, 64)


def test_a_batch_that_shares_x_becomes_columns():
    product = Product("float32", (4,), 16, 32, 64, (0, 64, 1), (32, 128, 1), (32, 128, 1))
    form = form_of(product)
    assert (form.batch, form.m, form.n, form.k) == ((), 16, 128, 64)


def test_rows_of_out_are_made_contiguous():
    form = form_of(Product("float32", (), 3, 5, 7, (7, 1), (5, 1), (1, 3)))
    assert form.swapped and (form.m, form.n) == (5, 3) and form.out == (3, 1)
    assert (form.x, form.y) == ((1, 5), (1, 7))


def test_batch_axes_are_merged_only_if_all_arrays_allow_it():
    merged = form_of(Product("float32", (2, 3), 4, 5, 6, (72, 24, 6, 1), (90, 30, 5, 1), (60, 20, 5, 1)))
    assert merged.batch == (6,)
    apart = form_of(Product("float32", (2, 3), 4, 5, 6, (72, 24, 6, 1), (0, 30, 5, 1), (60, 20, 5, 1)))
    assert apart.batch == (2, 3)


def square(size, x, dtype="float64"):
    return form_of(Product(dtype, (), size, size, size, x, (size, 1), (size, 1)))


def test_only_large_products_in_double_precision_of_a_transposed_x_go_to_blas():
    assert products.suits_blas(square(1024, (1, 1024)))
    assert not products.suits_blas(square(1024, (1, 1024), "float32"))
    assert not products.suits_blas(square(1024, (1024, 1)))
    assert not products.suits_blas(square(256, (1, 256)))
    assert not products.suits_blas(square(1024, (-1, 1024)))


@pytest.mark.parametrize(("x", "taken"), [((8, 1), True), ((1, 8), True), ((16, 2), False), ((7, 1), False),
                                          ((-8, 1), False), ((0, 1), False), ((8, -1), False)])  # fmt: skip
def test_blas_is_given_what_it_takes(x, taken):
    assert products.takes_blas(square(8, x)) is taken


def called(product):
    """The functions from elsewhere that a product's code calls."""
    from llvmlite import ir

    module = ir.Module("products")
    products.emit(module, "product", product)
    return [name for name in module.globals if name.startswith("pullback_")]


def test_without_blas_everything_runs_on_our_own_kernels(monkeypatch):
    product = Product("float64", (), 1024, 512, 1024, (1, 1024), (512, 1), (512, 1))
    if blas.find() is not None:
        assert called(product) == ["pullback_gemm_float64"]
    monkeypatch.setattr(blas, "find", lambda: None)
    assert [name.split(".")[0] for name in called(product)] == ["pullback_product_panels"]


def test_the_large_ones_are_right():
    rng = np.random.default_rng(0)
    run_all([case(rng, (700, 640, 640), ("columns", layout, "rows")) for layout in ("rows", "columns")], products.emit)


def test_scipy_has_one_too(monkeypatch):
    pytest.importorskip("scipy")
    found = blas._of_scipy()
    assert found is not None and found.fortran
    monkeypatch.setattr(blas, "find", lambda: found)
    rng = np.random.default_rng(1)
    cases = [
        case(rng, (65, 20, 33), layouts, dtype, accumulate=accumulate)
        for layouts in (("rows", "rows", "rows"), ("columns", "rows", "columns"), ("wide rows", "columns", "wide rows"))
        for dtype in ("float32", "float64")
        for accumulate in (False, True)
    ]
    run_all(cases, with_blas)


def test_numpys_own_is_found_where_it_is_openblas():
    import numpy.__config__ as config

    if "openblas" not in config.CONFIG["Build Dependencies"]["blas"]["name"]:
        pytest.skip("NumPy is linked with another library")
    found = blas._of_numpy()
    assert found is not None and found.set_threads and found.get_threads


def test_single_threaded_is_undone():
    found = blas.find()
    if found is None or not found.set_threads:
        pytest.skip("there is no number of threads to set")
    setter, getter = blas._thread_functions(found)
    before = getter()
    setter(2)
    try:
        with pytest.raises(KeyError), blas.single_threaded():
            assert getter() == 1
            raise KeyError
        assert getter() == 2
    finally:
        setter(before)


def test_programs_share_functions():
    """A second product that is cut alike calls the very same function, whatever its size and strides."""
    first = Product("float32", (), 64, 64, 32, (32, 1), (64, 1), (64, 1))
    second = Product("float32", (3,), 128, 64, 48, (1, 1, 128), (0, 64, 1), (8192, 64, 1))
    assert called(first) == called(second)
    assert Native([lambda module, name: products.emit(module, name, first)]).emitted[0].units == 16


def test_code_is_found_on_disk(monkeypatch, tmp_path):
    """A process that finds everything there writes no code and compiles none."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    rng = np.random.default_rng(2)
    one = case(rng, (33, 70, 65), ("rows", "columns", "rows"))
    emitted = _native_of(monkeypatch, one.product)
    monkeypatch.setattr(emission, "emit", None)
    monkeypatch.setattr(jit, "compile_object", None)
    found = _native_of(monkeypatch, one.product)
    assert found.emitted == emitted.emitted
    table = np.array([one.x.ctypes.data, one.y.ctypes.data, one.out.ctypes.data], np.int64)
    scratch = np.zeros(found.emitted.scratch, np.uint8)
    KIND(found.address)(table.ctypes.data, 0, found.emitted.units, 0, scratch.ctypes.data)
    one.check()


def _native_of(monkeypatch, product):
    """A product's function as in a process that has just begun."""
    monkeypatch.setattr(natives, "_known", {})
    product_library.address.cache_clear()
    return natives.functions_for([product])[0]
