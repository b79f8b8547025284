"""Small products in Triton's interpreter, against NumPy's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.targets.cuda import products
from pullback.targets.cuda.kernels.small_product import SmallProductKernel, suits, tiles_of
from pullback.targets.kernels import Product

from .interpreted import tensor_at, torch

RNG = np.random.default_rng(0)


def product_of(m: int, n: int, k: int, *, x: bool = True, y: bool = True, **options: Any) -> Product:
    """A product of float32; `x` and `y` say whether the rows of these are neighbours in memory."""
    x_strides, y_strides = (k, 1) if x else (1, m), (n, 1) if y else (1, k)
    return Product("float32", (), m, n, k, x_strides, y_strides, (n, 1), **options)


def run(kernel: Product, times: int = 1) -> None:
    m, n, k = kernel.m, kernel.n, kernel.k
    made = SmallProductKernel(kernel, torch.device("cpu"))
    scratch = [torch.full((count,), float("nan")) for _, count in made.scratch]
    for _ in range(times):
        x, y = RNG.normal(size=m * k).astype(np.float32), RNG.normal(size=k * n).astype(np.float32)
        bias = RNG.normal(size=n).astype(np.float32)
        flat = RNG.normal(size=(m - 1) * kernel.out[-2] + (n - 1) * kernel.out[-1] + 1).astype(np.float32)
        before = flat.copy()
        wide = [array.astype(np.float64) for array in (x, y, before)]
        left = np.lib.stride_tricks.as_strided(wide[0], (m, k), [8 * step for step in kernel.x[-2:]])
        right = np.lib.stride_tricks.as_strided(wide[1], (k, n), [8 * step for step in kernel.y[-2:]])
        expected = np.lib.stride_tricks.as_strided(wide[2], (m, n), [8 * step for step in kernel.out[-2:]])
        product = left @ right + (bias if kernel.bias else 0)
        untouched = np.ones(len(flat), bool)
        np.lib.stride_tricks.as_strided(untouched, (m, n), kernel.out[-2:])[:] = False
        expected[:] = expected + product if kernel.accumulate else product
        arrays = [tensor_at(array) for array in (x, y, *[bias] * kernel.bias, flat)]
        made.launch(arrays, scratch)
        np.testing.assert_allclose(flat, wide[2], rtol=1e-5, atol=2e-5)
        assert (flat[untouched] == before[untouched]).all()


@pytest.mark.parametrize("layout", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("size", [(2, 2, 1), (5, 10, 130), (33, 7, 70), (40, 65, 100), (16, 16, 784), (64, 32, 33)])
def test_a_product(size: tuple[int, int, int], layout: tuple[bool, bool]) -> None:
    run(product_of(*size, x=layout[0], y=layout[1]))


@pytest.mark.parametrize("k", [3, 300])
@pytest.mark.parametrize("options", [{"bias": True}, {"accumulate": True}, {"bias": True, "accumulate": True}])
def test_what_is_added_to_it(options: dict[str, bool], k: int) -> None:
    run(product_of(7, 20, k, **options))


def test_a_result_with_strides_of_its_own() -> None:
    run(replace(product_of(6, 20, 300), out=(45, 2)))
    run(replace(product_of(6, 20, 300), out=(1, 6)))


def test_parts_are_added_up_again_and_again() -> None:
    kernel = product_of(20, 20, 500)
    assert tiles_of(kernel).splits > 1
    run(kernel, times=3)


def test_every_part_has_something_to_add() -> None:
    for k in range(1, 1025, 37):
        for m, n in ((2, 2), (128, 10), (128, 512), (512, 700)):
            tiles = tiles_of(product_of(m, n, k))
            assert tiles.splits == 1 or k >= 32 * tiles.splits


def test_what_suits_it() -> None:
    kernel = product_of(128, 512, 512)
    assert suits(kernel) and suits(replace(kernel, batch=(1,), x=(0, 512, 1), y=(0, 512, 1), out=(0, 512, 1)))
    assert suits(product_of(128, 10, 512, y=False)) and not suits(product_of(128, 512, 512, y=False))
    for other in (
        replace(kernel, dtype="float64"), replace(kernel, dtype="bfloat16", wide="float32"),
        replace(kernel, x=(512, -1)),
        replace(kernel, batch=(2,), x=(9, 512, 1), y=(9, 512, 1), out=(9, 512, 1)), product_of(1, 512, 512),
        product_of(128, 512, 0), product_of(1024, 1024, 1024), product_of(16, 16, 4096),
    ):  # fmt: skip
        assert not suits(other)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_a_training_step_takes_them_where_precision_is_full(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    by_library: list[Any] = []
    monkeypatch.setattr(products, "run", lambda call, memory, run=products.run: by_library.append(run(call, memory)))
    arrays = [RNG.normal(size=shape).astype(np.float32) / 4 for shape in ((20, 30), (16, 30), (16,), (7, 16))]

    def loss(x: Any, w: Any, b: Any, v: Any) -> Any:
        return pb.mean(pb.linear(pb.tanh(pb.linear(x, w, b)), v) ** 2)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with np.errstate(all="ignore"):
            made = pb.compile(pb.grad(loss, argnums=(1, 2, 3)))(*[pb.asarray(a, device="torch:cpu") for a in arrays])
    finally:
        torch.set_float32_matmul_precision(before)
    assert bool(by_library) == (precision == "high")
    for ours, right in zip(made, pb.grad(loss, argnums=(1, 2, 3))(*map(pb.asarray, arrays))):
        np.testing.assert_allclose(ours.to_device("numpy").numpy(), right.numpy(), rtol=2e-4, atol=1e-6)
