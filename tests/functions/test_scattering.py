"""scatter and scatter_reduce against PyTorch, and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")
generator = np.random.default_rng(0)
KINDS = [("numpy", "float32"), ("numpy", "int32"), ("torch:cpu", "float32"), ("strict", "int32")]
REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().to_device("numpy"))


CASES = [(device, dtype, reduce) for device, dtype in KINDS for reduce in REDUCTIONS]


@pytest.mark.parametrize(
    ("device", "dtype", "reduce"), [*CASES, ("jax:cpu", "float32", "prod"), ("jax:cpu", "float32", "amax")]
)
def test_as_pytorch(device: str, dtype: str, reduce: str) -> None:
    require("torch:cpu")
    require(device)
    x = generator.integers(-4, 5, (3, 4, 2)).astype(dtype)
    values = generator.integers(-4, 5, (3, 7, 2)).astype(dtype)
    where = generator.integers(0, 3, (3, 7, 2))  # nothing comes to the last place
    for include_self in (True, False):
        expected = torch.tensor(x).scatter_reduce(
            1, torch.tensor(where), torch.tensor(values), reduce, include_self=include_self
        )
        found = pb.scatter_reduce(
            *(pb.asarray(a, device=device) for a in (x, where, values)), reduce, axis=1, include_self=include_self
        )
        assert found.dtype.name == dtype
        np.testing.assert_allclose(host(found), expected.numpy(), rtol=1e-6)


def test_those_that_tie_share_the_gradient() -> None:
    x = pb.tensor([2.0, 0.0], requires_grad=True)
    values = pb.tensor([2.0, 2.0, 1.0, 3.0, 3.0], requires_grad=True)
    where = pb.asarray([0, 0, 0, 1, 1])
    out = pb.scatter_reduce(x, where, values, "amax")
    assert out.detach().tolist() == [2.0, 3.0]
    (3 * out[0] + out[1]).backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert values.grad.tolist() == [1.0, 1.0, 0.0, 0.5, 0.5]


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_not_a_number_and_infinity(reduce: str) -> None:
    where = pb.asarray([0, 0, 1, 1, 2])
    values = pb.asarray([1.0, np.nan, np.inf, -np.inf, 4.0])

    def scattered(values: Any) -> Any:
        return pb.scatter_reduce(pb.zeros(3), where, values, reduce, include_self=False)

    out = scattered(values)
    assert np.isnan(out[0].item())
    assert out[1:].tolist() == [np.inf if reduce == "amax" else -np.inf, 4.0]
    gradient = pb.grad(lambda values: scattered(values)[1:].sum())(values).tolist()
    assert gradient == [0.0, 0.0, *([1.0, 0.0] if reduce == "amax" else [0.0, 1.0]), 1.0]


def test_products_with_zeros_have_their_gradient() -> None:
    values = pb.tensor([0.0, 2.0, 3.0, 0.0, 0.0], requires_grad=True)
    out = pb.scatter_reduce(pb.ones(2), pb.asarray([0, 0, 0, 1, 1]), values, "prod")
    out.sum().backward()
    assert values.grad.tolist() == [6.0, 0.0, 0.0, 0.0, 0.0]


def test_nothing_to_scatter_and_one_of_everything() -> None:
    x = pb.asarray([1.0, 2.0])
    for reduce in REDUCTIONS:
        for include_self in (True, False):
            empty = pb.scatter_reduce(
                x, pb.zeros((0,), dtype="int64"), pb.zeros((0,)), reduce, include_self=include_self
            )
            assert empty.tolist() == [1.0, 2.0]
        one = pb.scatter_reduce(pb.asarray([3.0]), pb.asarray([0]), pb.asarray([3.0]), reduce, include_self=False)
        assert one.tolist() == [3.0]
    assert pb.scatter_reduce(x, pb.asarray([0]), pb.asarray([1.0], dtype="float64"), "sum").dtype == pb.float64
    assert pb.scatter(x, pb.asarray([-1]), pb.asarray([5.0])).tolist() == [1.0, 5.0]
    assert pb.scatter(x, pb.asarray([1]), pb.asarray([5.0]), reduce="add").tolist() == [1.0, 7.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: pb.scatter_reduce(x, i, x, "max"), ValueError, "'amax'"),
        (lambda x, i: pb.scatter(x, i, x, reduce="amax"), ValueError, "scatter_reduce"),
        (lambda x, i: pb.scatter_reduce(x, i[0], x, "sum"), pb.ShapeError, "as many axes"),
        (lambda x, i: pb.scatter_reduce(x, i, pb.ones((5, 7)), "sum"), pb.ShapeError, "do not fit"),
        (lambda x, i: pb.scatter_reduce(x, x, x, "sum"), pb.DtypeError, "integers"),
        (lambda x, i: pb.scatter_reduce(x, i, x, "sum", axis=2), pb.AxisError, "axis 2"),
        (lambda x, i: pb.scatter_reduce(x * 1j, i, x, "amax"), pb.DtypeError, "no order"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(pb.ones((2, 3)), pb.zeros((2, 3), dtype="int64"))


def test_compiled() -> None:
    where = pb.asarray(generator.integers(0, 3, (6,)))

    @pb.compile
    def step(x: Any, v: Any) -> Any:
        def loss(x: Any, v: Any) -> Any:
            return sum((pb.scatter_reduce(x, where, v, reduce) ** 2).sum() for reduce in REDUCTIONS)

        return pb.grad(loss, (0, 1))(x, v)

    x, v = pb.asarray(generator.normal(size=3)), pb.asarray(generator.normal(size=6))
    for found, expected in zip(step(x, v), step.__wrapped__(x, v)):
        np.testing.assert_allclose(host(found), host(expected), rtol=1e-12)
