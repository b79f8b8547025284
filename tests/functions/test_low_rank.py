"""Linear layers with thin products beside their weights: what is kept, when it is one operation, errors."""

from __future__ import annotations

import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.functions.low_rank import Projection, low_rank_linear, row_norms

from ..backends.installed import BFLOAT16, require

RNG = np.random.default_rng(0)


def projection(inputs: int, outputs: int, rank: int = 2, learned: bool = True, **options: Any) -> Projection:
    arrays = [
        RNG.standard_normal(shape).astype(np.float32) for shape in ((outputs, inputs), (rank, inputs), (outputs, rank))
    ]
    weight, down, up = map(pb.asarray, arrays)
    return Projection(weight, None, *(t.set_requires_grad(learned) for t in (down, up)), **options)


def kept_input(projections: Any, tracked: bool) -> bool:
    """Whether the array of x lives on in the graph."""
    array = RNG.standard_normal((3, 4)).astype(np.float32)
    reference = weakref.ref(array)
    x = pb.asarray(array).set_requires_grad(tracked)
    outs = low_rank_linear(x, projections)
    del array, x
    assert outs[0]._node is not None
    return reference() is not None


@pytest.mark.plain_graph
def test_x_is_kept_for_adapters_and_not_for_itself_alone() -> None:
    assert kept_input([projection(4, 3), projection(4, 2)], tracked=True)
    assert not kept_input([projection(4, 3, learned=False), projection(4, 2, learned=False)], tracked=True)


@pytest.mark.plain_graph
@pytest.mark.parametrize("chance", [0.0, 0.2])
def test_nothing_but_x_is_kept(chance: float) -> None:
    """Until the backward pass the results are all that was allocated: no x down^T, no masks, no x without elements."""
    factor = pb.ones(512).set_requires_grad(True)
    group = [projection(512, 512, 16, chance=chance), projection(512, 512, 16, factor=factor, chance=chance)]
    x = pb.asarray(RNG.standard_normal((400, 512)).astype(np.float32)).set_requires_grad(True)
    low_rank_linear(x, group)  # imports and native code
    tracemalloc.start()
    outs = low_rank_linear(x, group)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < sum(out.nbytes for out in outs) + 20_000


@pytest.mark.plain_graph
def test_it_is_one_operation_for_all_that_share_an_input() -> None:
    x = pb.ones((3, 4))
    outs = low_rank_linear(x, [projection(4, 3), projection(4, 2), projection(4, 5)])
    (node,) = {part._node.inputs[0] for part in outs}
    assert node.recipe.operation.name == "low_rank_linear" and len(node.inputs) == 6


def test_results_that_nothing_depends_on_have_no_gradients() -> None:
    used, unused = projection(4, 3), projection(4, 2)
    x = pb.ones((3, 4)).set_requires_grad(True)
    grads = pb.backward(low_rank_linear(x, [used, unused])[0].sum())
    assert used.down in grads and x in grads
    assert unused.down not in grads and unused.up not in grads


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16], ids=lambda dtype: dtype.name)
def test_wider_adapters(dtype: Any) -> None:
    """What a weight in half precision makes of x in half precision stays so; gradients have their tensors' dtypes."""
    one = projection(4, 3, factor=pb.ones(3).set_requires_grad(True), scale=0.5)
    half = one._replace(weight=one.weight.astype(dtype))
    x = pb.asarray(RNG.standard_normal((5, 4)).astype(np.float32))
    low = pb.asarray(x, dtype=dtype).set_requires_grad(True)
    (out,), (expected,) = low_rank_linear(low, [half]), low_rank_linear(x, [one])
    assert out.dtype == dtype
    np.testing.assert_allclose(out.detach().astype(pb.float32).numpy(), expected.detach().numpy(), atol=0.1)
    grads = pb.backward(out.sum())
    assert grads[low].dtype == dtype
    assert {grads[t].dtype for t in (half.down, half.up, half.factor)} == {pb.float32}


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_wider_adapters_to_second_order(device: str) -> None:
    require(device)
    one = projection(4, 3, factor=pb.ones(3).set_requires_grad(True), scale=0.5)
    weight, down, up, factor = (
        t.detach().to_device(device).set_requires_grad(flag)
        for t, flag in ((one.weight.astype(pb.float16), False), (one.down, True), (one.up, True), (one.factor, True))
    )
    x = pb.ones((2, 4), dtype=pb.float16, device=device).set_requires_grad(True)
    (out,) = low_rank_linear(x, [Projection(weight, None, down, up, factor)])
    grads = pb.backward(out.astype(pb.float32).sum(), create_graph=True)
    second = pb.backward((grads[x].astype(pb.float32) ** 2).sum())
    assert {second[t].dtype for t in (down, up, factor)} == {pb.float32}
    assert x not in second  # linear in it
    whole = weight.detach().astype(pb.float32) + up.detach() @ down.detach()
    expected = 2 * 2.0 * (whole.sum(axis=0)[None] * whole).sum(axis=1)  # for two rows
    np.testing.assert_allclose(second[factor].numpy(), expected.numpy(), rtol=0.02, atol=0.05)


def test_mixed_precision() -> None:
    one = projection(4, 3)
    with pb.autocast("float16"):
        (out,) = low_rank_linear(pb.ones((2, 4)), [one])
    assert out.dtype == pb.float16
    assert pb.backward(out.sum())[one.down].dtype == pb.float32


@pytest.mark.parametrize("dtype", [pb.float64, pb.float32, pb.float16])
def test_row_norms(dtype: Any) -> None:
    weight, down, up = (RNG.standard_normal(shape) for shape in ((20, 50), (3, 50), (20, 3)))
    tensors = [pb.asarray(pb.asarray(array), dtype=dtype) for array in (weight, down, up)]
    found = row_norms(*tensors, 0.7)
    weight, down, up = (t.numpy().astype(np.float64) for t in tensors)
    assert found.dtype == (pb.float64 if dtype == pb.float64 else pb.float32)
    np.testing.assert_allclose(found.numpy(), np.linalg.norm(weight + 0.7 * up @ down, axis=1), rtol=2e-6)


def test_row_norms_of_nothing_are_zero() -> None:
    down, up = (pb.asarray(RNG.standard_normal(shape).astype(np.float32)) for shape in ((1, 9), (6, 1)))
    found = row_norms(-(up @ down), down, up, 1.0).numpy()
    assert (found >= 0).all() and (found < 1e-2).all()


@pytest.mark.parametrize(
    "change",
    [
        {"down": pb.ones((2, 5))},
        {"up": pb.ones((3, 1))},
        {"bias": pb.ones(4)},
        {"factor": pb.ones((3, 1))},
    ],
)
def test_shapes_that_do_not_fit(change: Any) -> None:
    with pytest.raises(pb.ShapeError, match=r"low_rank_linear: x \(2, 4\).* do not fit"):
        low_rank_linear(pb.ones((2, 4)), [projection(4, 3)._replace(**change)])
    with pytest.raises(pb.ShapeError, match="do not fit"):
        low_rank_linear(pb.ones((2, 5)), [projection(4, 3)])


def test_dtypes_that_do_not_fit() -> None:
    for x in (pb.ones((2, 4), dtype=pb.int64), pb.ones((2, 4), dtype=pb.complex64)):
        with pytest.raises(pb.DtypeError, match="floating-point"):
            low_rank_linear(x, [projection(4, 3)])
