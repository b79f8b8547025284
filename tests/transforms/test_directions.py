"""Jacobians whose directions go together give what those that go one by one give."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.transforms import directions
from tests.backends.installed import optional, require

torch = optional("torch")

RNG = np.random.default_rng(0)
A, X = RNG.normal(size=(3, 4)), RNG.normal(size=4)
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
JACOBIANS = {"jacrev": pb.jacrev, "jacfwd": pb.jacfwd, "hessian": pb.hessian}


def noisy(x: Any) -> Any:
    return pb.tanh(A @ x) * pb.random.Generator(3).uniform((3,), dtype="float64")


def written(x: Any) -> Any:
    y = pb.sin(x)
    y[1:] *= x[:-1]
    return pb.cumulative_sum(y)


def chosen(x: Any) -> Any:
    return x**3 if x.sum() > 0 else x**2


def looped(x: Any) -> Any:
    return pb.scan(lambda h, x: (pb.tanh(h * x), h * x), pb.sum(x), x)[1]


FUNCTIONS = {
    "product": lambda x: np.tanh(A @ x) * x[:3],
    "scalar": lambda x: np.sum(np.sin(x) ** 3),
    "matrix": lambda x: pb.linalg.inv(np.outer(x, x) + np.eye(4)),
    "constant": lambda x: np.ones(3) + 0 * x[0],
    "noisy": noisy,
    "written": written,
    "chosen": chosen,
    "looped": looped,
    "aliased": lambda x: x[::-1].reshape(2, 2),
}


def results(f: Any, *args: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in pb.tree.leaves(f(*args))]


def compare(monkeypatch: Any, f: Any, *args: Any) -> None:
    """The same one by one, all together, and in parts."""
    found = []
    for least, most in ((1 << 40, 1 << 40), (1, 1 << 40), (1, 9)):
        monkeypatch.setattr(directions, "LEAST", least)
        monkeypatch.setattr(directions, "MOST", most)
        found.append(results(f, *args))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_together_as_one_by_one(monkeypatch: Any, name: str, function: str) -> None:
    jacobian = JACOBIANS[name](FUNCTIONS[function])
    compare(monkeypatch, jacobian, X)
    compare(monkeypatch, jacobian, pb.asarray(X))


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(JACOBIANS, ["jacrev", "jacfwd"])))
def test_inside_each_other_and_beside_other_transforms(monkeypatch: Any, outer: str, inner: str) -> None:
    f = JACOBIANS[inner](FUNCTIONS["product"])
    compare(monkeypatch, JACOBIANS[outer](f), X)
    total = lambda x: np.sum(np.asarray([1.0, 2.0, 3.0])[:, None] * f(x) ** 2)
    compare(monkeypatch, pb.grad(total), X)
    compare(monkeypatch, lambda x: pb.jvp(f, (x,), (x[::-1],)), X)
    compare(monkeypatch, lambda x: pb.vjp(f, x)[1](A), X)
    compare(monkeypatch, pb.vmap(f), np.stack([X, X + 1]))
    compare(monkeypatch, pb.vmap(JACOBIANS[outer](f)), np.stack([X, X + 1]))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_trees_complex_numbers_and_what_is_passed_on(monkeypatch: Any, name: str) -> None:
    jacobian = JACOBIANS[name]

    def f(p: Any, k: int) -> Any:
        y = pb.exp(p["w"] @ p["x"])
        return ({"y": y, "n": 3, "i": pb.arange(2)}, (y**k, "kept"))

    compare(monkeypatch, lambda p: jacobian(f, has_aux=True)(p, 2)[0], {"w": A, "x": X})
    monkeypatch.setattr(directions, "LEAST", 1)
    aux = jacobian(f, has_aux=True)({"w": A, "x": X}, 2)[1]
    np.testing.assert_allclose(aux[0], np.exp(A @ X) ** 2)
    assert type(aux[0]) is np.ndarray and aux[1] == "kept"
    compare(monkeypatch, jacobian(lambda z: z**3 * np.sum(z)), Z)
    compare(monkeypatch, jacobian(lambda x, z: z * np.sum(x**2) + x, (0, 1)), X, Z)


def test_what_runs_for_one_direction_only_runs_one_by_one(monkeypatch: Any) -> None:
    calls = []

    def rule(g: Any, x: Any) -> Any:
        calls.append(g.shape)
        return pb.asarray(np.asarray(g.data) * 3 * np.asarray(x.data) ** 2)

    cube = pb.custom_op(lambda x: x**3, x=rule, name="cube")
    compare(monkeypatch, pb.jacrev(lambda x: pb.sin(cube(x))), X)
    assert set(calls) == {(4,)}

    w = pb.tensor(X, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.shape))

    def hooked(x: Any) -> Any:
        x.register_hook(lambda g: seen.append(g.shape))
        return pb.sin(x)

    compare(monkeypatch, pb.jacrev(hooked), X)
    assert set(seen) == {(4,)}

    def branching(x: Any) -> Any:
        with pb.no_grad():
            kept.append(float(pb.jvp(pb.sum, (x,), (x,))[1]))  # its own derivative is the same for all directions
        return x**2

    kept: list[float] = []
    compare(monkeypatch, pb.jacfwd(branching), X)


def test_compiled(monkeypatch: Any) -> None:
    pytest.importorskip("llvmlite")
    for jacobian in (pb.jacrev(FUNCTIONS["product"]), pb.hessian(FUNCTIONS["scalar"])):
        compare(monkeypatch, lambda x, jacobian=jacobian: pb.compile(jacobian)(x), X)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_libraries(monkeypatch: Any, device: str) -> None:
    require(device)
    x = pb.asarray(X.astype("float32"), device=device)
    a = pb.asarray(A.astype("float32"), device=device)
    for jacobian in (pb.jacrev, pb.jacfwd, pb.hessian):
        found = []
        for least in (1 << 40, 1):
            monkeypatch.setattr(directions, "LEAST", least)
            out = jacobian(lambda x: pb.tanh(a @ x))(x)
            assert out.device == x.device
            found.append(out.numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_functions_of_other_libraries_go_one_by_one_and_vmap_says_so(monkeypatch: Any) -> None:
    pytest.importorskip("torch")
    f = pb.from_torch(lambda x: torch.sin(x) * x)
    compare(monkeypatch, pb.jacrev(f), X)
    compare(monkeypatch, pb.jacfwd(f), X)
    with pytest.raises(pb.VmapError, match=r"from_torch.*cannot run on many examples"):
        pb.vmap(f)(A)


def test_a_function_runs_once_for_all_columns(monkeypatch: Any) -> None:
    calls: list[int] = []
    pb.jacfwd(lambda x: calls.append(1) or x)(np.ones(100))
    assert len(calls) == 2
