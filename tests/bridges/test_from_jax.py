"""Functions of JAX as operations of Pullback's graphs."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import BFLOAT16, needs_llvmlite, optional

jax = optional("jax")
jnp = optional("jax.numpy")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(("shape", "order"), [((), 2), ((0,), 2), ((2, 1, 3), 1)])
@pytest.mark.parametrize("jit", [False, True])
def test_gradients_of_both_modes_and_orders_are_those_of_central_differences(shape, order, jit):
    f = lambda x, y: [jnp.sin(x) * jnp.exp(y), (x**3).sum()]
    f = pb.from_jax(jax.jit(f) if jit else f)
    assert pb.gradcheck(f, (normal(*shape), normal(*shape, seed=1)), order=order)


def test_complex_gradients_are_those_of_central_differences():
    f = pb.from_jax(lambda z: (jnp.exp(z) * z, jnp.abs(z), z.real * z.imag))
    assert pb.gradcheck(f, (normal(1) + 1j * normal(1, seed=1),), order=2)


def test_third_derivative_hessian_and_jacobians():
    f = pb.from_jax(lambda x: (x**4).sum())
    x = normal(2)
    third = pb.grad(lambda t: pb.grad(lambda u: pb.grad(f)(u).sum())(t).sum())(x)
    assert np.allclose(third, 24 * x)
    for second in (pb.hessian(f), pb.jacfwd(pb.grad(f)), pb.jacfwd(pb.jacfwd(f)), pb.jacrev(pb.jacfwd(f))):
        assert np.allclose(second(x), np.diag(12 * x**2))


def test_parameters_of_a_jax_model_are_leaves():
    def model(params, x):
        for layer in params:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return x

    params = [{"w": normal(3, 4), "b": normal(4)}, {"w": normal(4, 2), "b": normal(2)}]
    x = normal(5, 3, seed=1)
    ours = pb.tree.map(lambda p: pb.tensor(p, requires_grad=True), params)
    leaves = pb.tree.leaves(ours)
    optimizer = pb.optim.Adam(leaves, lr=0.01)
    (pb.from_jax(model)(ours, pb.asarray(x)) ** 2).sum().backward()
    expected = jax.grad(lambda p: (model(p, x) ** 2).sum())(params)
    for leaf, gradient in zip(leaves, pb.tree.leaves(expected)):
        assert np.allclose(leaf.grad.numpy(), gradient)
    optimizer.step()


def test_trees_keywords_and_other_arguments():
    f = pb.from_jax(lambda pair, *, scale, power, table: {"a": [pair[0] ** power, None], "b": table["w"] * scale})
    pair = (pb.tensor([1.0, 2.0], requires_grad=True), "text")
    w = pb.tensor([5.0], requires_grad=True)
    result = f(pair, scale=3, power=2, table={"w": w})
    assert result["a"][1] is None
    (result["a"][0].sum() + result["b"].sum()).backward()
    assert pair[0].grad.tolist() == [2, 4] and w.grad.tolist() == [3]


def test_integer_inputs_and_outputs():
    table = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows, best = pb.from_jax(lambda table, i: (table[i], table.argmax(1)))(table, np.array([1, 1]))
    assert not best.requires_grad and best.tolist() == [1, 1]
    rows.sum().backward()
    assert table.grad.tolist() == [[0, 0], [2, 2]]
    squares = pb.from_jax(lambda table, i: (table[i] ** 2).sum())
    assert np.allclose(pb.hessian(lambda t: squares(t, np.array([1, 1])))(np.ones(2)), [[0, 0], [0, 4]])


@pytest.mark.parametrize("dtype", [pb.float16, pb.float32, pb.float64, BFLOAT16])
def test_dtypes_come_back_as_they_were(dtype):
    x = pb.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = pb.from_jax(lambda x: x * x)(x)
    y.sum().backward()
    assert y.dtype == dtype and x.grad.dtype == dtype and x.grad.tolist() == [2, 4]
    assert y.device == x.grad.device == "numpy"


def test_jax_arrays_are_passed_as_they_are():
    seen = []
    x = pb.ones(2, device="jax:cpu")
    y = pb.from_jax(lambda x: seen.append(x) or x * 2)(x)
    assert seen[0] is x.data and y.device == "jax:cpu"
    assert pb.from_jax(jnp.add)(np.ones(2), np.ones(2)).tolist() == [2, 2]
    assert pb.from_jax(lambda n: jnp.arange(n))(3).tolist() == [0, 1, 2]


def test_tensors_of_pytorch_come_back_to_pytorch():
    pytest.importorskip("torch")
    x = pb.ones(2, device="torch:cpu").set_requires_grad(True)
    y = pb.from_jax(jnp.exp)(x)
    y.sum().backward()
    assert y.device == x.grad.device == "torch:cpu"


def test_custom_rules_of_jax_count():
    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 10 * x,))
    for g in (f, jax.jit(f)):
        bridged = pb.from_jax(g)
        assert pb.grad(lambda x, f=bridged: f(x).sum())(np.ones(2)).tolist() == [10, 10]
        assert pb.jvp(bridged, (np.ones(2),), (np.ones(2),))[1].tolist() == [10, 10]
        assert pb.jacfwd(pb.grad(bridged))(1.0) == pb.grad(pb.jacfwd(bridged))(1.0) == 10


def test_forward_mode_where_jax_has_no_reverse_mode():
    f = pb.from_jax(lambda x: jax.lax.while_loop(lambda c: c.sum() < 10, lambda c: c * c, x))
    value, tangent = pb.jvp(f, (np.array([3.0]),), (np.array([1.0]),))
    assert value.tolist() == [81] and tangent.tolist() == [4 * 27]
    second = pb.jvp(lambda x: pb.jvp(f, (x,), (np.ones(1),))[1], (np.array([3.0]),), (np.ones(1),))[1]
    assert second.tolist() == [12 * 9]


def test_forward_mode_runs_the_function_once():
    calls = []
    f = pb.from_jax(lambda x: (calls.append(1) or x * 2, jnp.argmax(x)))
    (doubled, best), (tangent, _) = pb.jvp(f, (np.ones(2),), (np.ones(2),))
    assert len(calls) == 1 and doubled.tolist() == tangent.tolist() == [2, 2] and best == 0


def test_no_grad_is_respected():
    x = pb.tensor([1.0], requires_grad=True)
    with pb.no_grad():
        assert not pb.from_jax(jnp.exp)(x).requires_grad
    assert not pb.from_jax(jnp.exp)(x.detach()).requires_grad and pb.from_jax(jnp.exp)(x).requires_grad


def test_a_retained_graph_can_be_walked_twice():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.from_jax(jnp.exp)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))


@needs_llvmlite
def test_a_compiled_function_refuses_it():
    with pytest.raises(pb.TraceError, match=r"from_jax\(exp\).*outside"):
        pb.compile(lambda x: pb.from_jax(jnp.exp)(x).sum())(pb.ones(2))


def test_threads():
    f = pb.from_jax(lambda x: (jnp.sin(x) ** 2).sum())
    x, found = normal(50), []
    threads = [threading.Thread(target=lambda: found.append(pb.grad(f)(x))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.allclose(g, np.sin(2 * x)) for g in found)


def test_nothing_is_held_after_the_walk():
    x = pb.tensor([1.0, 2.0], device="jax:cpu", requires_grad=True)
    loss = pb.from_jax(lambda x: jnp.exp(x) * x)(x).sum()
    gone = weakref.ref(loss._node.inputs[0].inputs[0].saved[1])
    assert gone() is not None
    loss.backward()
    gc.collect()
    assert gone() is None


def test_errors():
    with pytest.raises(pb.DtypeError, match="from_jax: expected a function"):
        pb.from_jax(jnp.ones(2))
    x = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"NumPy array.*needs no bridge"):
        pb.from_jax(lambda x: np.sin(x))(x)
    with pytest.raises(pb.DtypeError, match=r"type ndarray.*needs no bridge"):
        pb.from_jax(lambda x: np.asarray(x))(x.detach())
    with pytest.raises(pb.DtypeError, match=r"result\['loss'\] is of type float"):
        pb.from_jax(lambda x: {"loss": 3.0})(x)
    with pytest.raises(pb.DeviceError, match="different devices"):
        pb.from_jax(jnp.add)(pb.ones(2), pb.ones(2, device="jax:cpu"))
    with pytest.raises(pb.GradientError, match="JAX has no gradient here"):
        pb.from_jax(lambda x: jax.lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x))(x).sum().backward()
