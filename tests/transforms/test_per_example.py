"""Gradients of every example, and their norms without the gradients."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import needs_llvmlite, require

RNG = np.random.default_rng(0)


def parameters(*sizes: int, dtype: str = "float64") -> dict[str, np.ndarray]:
    made = {}
    for i, (m, n) in enumerate(pairwise(sizes)):
        made[f"w{i}"] = (RNG.normal(size=(m, n)) / m**0.5).astype(dtype)
        made[f"b{i}"] = RNG.normal(size=n).astype(dtype)
    return made


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    h = pb.tanh(x @ p["w0"] + p["b0"])
    return pb.cross_entropy(h @ p["w1"] + p["b1"], y)


P = parameters(5, 7, 3)
X, Y = RNG.normal(size=(4, 5)), RNG.integers(0, 3, 4)
TOKENS = RNG.normal(size=(4, 2, 5))
MANY = RNG.normal(size=(4, 30, 5))
IMAGES = RNG.normal(size=(4, 2, 6, 6))

LOSSES: dict[str, tuple[Any, Any, Any]] = {
    "mlp": (mlp_loss, P, (X, Y)),
    "few tokens": (lambda p, x: pb.sum(pb.tanh(x @ p["w0"]) @ p["w1"] + p["b1"]) ** 2, P, (TOKENS,)),
    "many tokens": (lambda p, x: pb.sum(pb.sin(pb.tanh(x @ p["w0"]) @ p["w1"])), P, (MANY,)),
    "transposed": (lambda w, x: pb.sum(pb.exp(w.T @ x)), P["w0"], (X,)),
    "reshaped": (lambda w, x: pb.sum(pb.exp(x @ w.reshape(5, 7))), P["w0"].reshape(7, 5), (X,)),
    "used twice": (lambda w, x: pb.sum(pb.exp(x @ w) * pb.sin(2 * x @ w)), P["w0"], (X,)),
    "used in two ways": (lambda w, x: pb.sum(pb.exp(x @ w)) + pb.sum(pb.sin(w.T @ x) * w[0]), P["w0"], (X,)),
    "times itself": (lambda w, x: pb.sum((x @ (w @ w)) ** 2), RNG.normal(size=(5, 5)), (X,)),
    "linear": (lambda p, x: pb.sum(pb.sin(pb.linear(x, p["w"], p["b"]))), {"w": P["w0"].T, "b": P["b0"]}, (TOKENS,)),
    "convolution": (lambda w, x: pb.sum(pb.conv2d(x[None], w) ** 2), RNG.normal(size=(3, 2, 3, 3)), (IMAGES,)),
    "embedding": (lambda w, i: pb.sum(pb.embedding(i, w) ** 3), P["w0"], (RNG.integers(0, 5, (4, 3)),)),
    "not used": (lambda p, x: pb.sum(x @ p["w0"]), P, (X,)),
    "rank one": (lambda w, x: pb.sin(w @ x), RNG.normal(size=5), (X,)),
    "number": (lambda t, x: pb.sum(pb.sin(t * x)), 0.7, (X,)),
    "constant": (lambda w, x: pb.sum(x), P["w0"], (X,)),
    "no number of it": (lambda w, x: 3.0, P["w0"], (X,)),
    "complex": (lambda w, x: pb.sum(pb.abs(x @ w) ** 2), P["w0"] * (1 + 2j), (X,)),
}


def looped(f: Any, p: Any, batch: Any) -> list[list[np.ndarray]]:
    return [[np.asarray(leaf) for leaf in pb.tree.leaves(pb.grad(f)(p, *row))] for row in zip(*batch)]


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_norms_are_those_of_a_loop(name: str) -> None:
    f, p, batch = LOSSES[name]
    expected = looped(f, p, batch)
    found = pb.tree.leaves(pb.per_example_grad(f)(p, *batch))
    for k, out in enumerate(found):
        np.testing.assert_allclose(out, np.stack([row[k] for row in expected]), rtol=1e-12, atol=1e-13)
    wanted = [sum(float((np.abs(leaf) ** 2).sum()) for leaf in row) ** 0.5 for row in expected]
    norms = pb.per_example_norms(f)(p, *batch)
    assert type(norms) is np.ndarray and norms.dtype == np.float64
    np.testing.assert_allclose(norms, wanted, rtol=1e-12, atol=1e-13)


def test_several_arguments_axes_and_what_is_passed_on() -> None:
    f = lambda x, w, b: (pb.sum((x @ w + b) ** 2), x)
    (gw, gb), aux = pb.per_example_grad(f, argnums=(1, -1), has_aux=True)(X, P["w0"], P["b0"])
    assert gw.shape == (4, 5, 7) and gb.shape == (4, 7)
    np.testing.assert_array_equal(aux, X)
    loss = lambda x, w, b: f(x, w, b)[0]
    norms = pb.per_example_norms(loss, (1, 2))(X, P["w0"], P["b0"])
    np.testing.assert_allclose(norms, np.sqrt((gw**2).sum((1, 2)) + (gb**2).sum(1)))
    turned = pb.per_example_norms(loss, (1, 2), in_axes=(1, None, None))(X.T, P["w0"], P["b0"])
    np.testing.assert_allclose(turned, norms)


def test_modules_and_dropout() -> None:
    pb.random.seed(3)
    model = pb.nn.Sequential(pb.nn.Linear(5, 8), pb.nn.GELU(), pb.nn.Dropout(0.5), pb.nn.Linear(8, 3))
    loss = lambda model, x, y: pb.cross_entropy(model(x), y)
    x, y = pb.asarray(X.astype("float32")), pb.asarray(Y)
    for how in ("same", "different"):
        pb.random.seed(4)
        grads = pb.tree.leaves(pb.per_example_grad(loss, randomness=how)(model, x, y))
        pb.random.seed(4)
        norms = pb.per_example_norms(loss, randomness=how)(model, x, y)
        assert isinstance(norms, pb.Tensor)
        expected = np.sqrt(sum((g.numpy().reshape(4, -1) ** 2).sum(1) for g in grads))
        np.testing.assert_allclose(norms.numpy(), expected, rtol=1e-5)


def test_norms_have_derivatives() -> None:
    f, p, batch = LOSSES["mlp"]
    total = lambda p: pb.sum(pb.per_example_norms(f)(p, *batch))
    found = pb.grad(total)(p)
    for name in p:
        direction = {k: np.zeros_like(v) for k, v in p.items()}
        direction[name] = RNG.normal(size=p[name].shape)
        step = 1e-6
        ends = [total({k: p[k] + s * direction[k] for k in p}) for s in (step, -step)]
        np.testing.assert_allclose((found[name] * direction[name]).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(100)])
def test_under_checkpointing(strategy: Any) -> None:
    f, p, batch = LOSSES["mlp"]
    expected = pb.per_example_norms(f)(p, *batch)
    with pb.checkpointing(strategy):
        np.testing.assert_allclose(pb.per_example_norms(f)(p, *batch), expected, rtol=1e-12)


@needs_llvmlite
def test_compiled() -> None:
    f, p, batch = LOSSES["mlp"]
    np.testing.assert_allclose(
        pb.compile(pb.per_example_norms(f))(p, *batch), pb.per_example_norms(f)(p, *batch), rtol=1e-12
    )
    compiled, eager = pb.compile(pb.per_example_grad(f))(p, *batch), pb.per_example_grad(f)(p, *batch)
    for name in p:
        np.testing.assert_allclose(compiled[name], eager[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_libraries(device: str) -> None:
    require(device)
    f, p, (x, y) = LOSSES["mlp"]
    on = lambda a: pb.asarray(a.astype("float32") if a.dtype.kind == "f" else a, device=device)
    norms = pb.per_example_norms(f)({k: on(v) for k, v in p.items()}, on(x), on(y))
    assert norms.device.startswith(device.partition(":")[0])
    np.testing.assert_allclose(norms.numpy(), pb.per_example_norms(f)(p, x, y), rtol=1e-4)


def test_gradients_are_not_made_for_norms() -> None:
    p = parameters(300, 200, 10, dtype="float32")
    x, y = RNG.normal(size=(64, 300)).astype("float32"), RNG.integers(0, 10, 64)
    pb.per_example_norms(mlp_loss)(p, x, y)
    tracemalloc.start()
    pb.per_example_norms(mlp_loss)(p, x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20  # the gradients have 64 x 300 x 200 x 4 bytes: 15 MiB


def test_mistakes_are_explained() -> None:
    with pytest.raises(pb.ShapeError, match=r"per_example_norms: the function must return a scalar.*\(7,\)"):
        pb.per_example_norms(lambda w, x: x @ w)(P["w0"], X)
    with pytest.raises(pb.DtypeError, match="per_example_grad: expected a function"):
        pb.per_example_grad(pb.ones(3))
    with pytest.raises(pb.ShapeError, match="examples"):
        pb.per_example_grad(mlp_loss)(P, X, Y[:2])
