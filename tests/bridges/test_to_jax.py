"""Functions of Pullback's that JAX transforms."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import optional, require

jax = optional("jax")
jnp = optional("jax.numpy")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def model(p, x):
    return {"out": pb.tanh(x @ p["w"] + p["b"]), "fixed": x.detach() * x}


def reference(p, x):
    return {"out": jnp.tanh(x @ p["w"] + p["b"]), "fixed": jax.lax.stop_gradient(x) * x}


def loss_of(f):
    return lambda p, x: (f(p, x)["out"] ** 2).sum() + f(p, x)["fixed"].sum()


PARAMETERS = {"w": normal(3, 2), "b": normal(2, seed=1)}


def agree(one, other):
    same = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-9, atol=1e-12), one, other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(jax.tree.leaves(same))


@pytest.mark.parametrize("transform", ["plain", "jit"])
def test_values_and_gradients_of_both_orders_are_those_of_jax(transform):
    wrap = jax.jit if transform == "jit" else lambda f: f
    p, x = jax.tree.map(jnp.asarray, PARAMETERS), jnp.asarray(normal(2, 3, seed=2))
    f = pb.to_jax(model)
    ours, theirs = loss_of(f), loss_of(reference)
    assert agree(wrap(f)(p, x), wrap(reference)(p, x))
    assert agree(wrap(jax.grad(ours, (0, 1)))(p, x), wrap(jax.grad(theirs, (0, 1)))(p, x))
    second = lambda f: wrap(jax.grad(lambda p, x: (jax.grad(f)(p, x)["w"] ** 2).sum(), (0, 1)))(p, x)
    assert agree(second(ours), second(theirs))


def test_jit_outside_and_inside():
    f = pb.to_jax(lambda x: pb.sin(x) * x)
    x = jnp.asarray(normal(3))
    expected = jnp.cos(x) * x + jnp.sin(x)
    assert agree(jax.jit(jax.grad(lambda x: jax.jit(f)(x).sum()))(x), expected)
    assert agree(jax.grad(lambda x: jax.jit(f)(x).sum())(x), expected)
    traces = []
    g = jax.jit(pb.to_jax(lambda x: traces.append(1) or x * 2))
    g(x), g(x)
    assert len(traces) == 1


def test_vmap():
    p, x = jax.tree.map(jnp.asarray, PARAMETERS), jnp.asarray(normal(4, 3, seed=2))
    f = pb.to_jax(model)
    assert agree(jax.vmap(f, (None, 0))(p, x), reference(p, x))
    per_example = lambda f: jax.vmap(jax.grad(loss_of(f)), (None, 0))(p, x)
    assert agree(per_example(f), per_example(reference))
    assert agree(jax.jit(lambda: per_example(f))(), per_example(reference))


def test_third_derivative():
    f = pb.to_jax(lambda x: x**4)
    assert np.isclose(jax.grad(jax.grad(jax.grad(f)))(2.0), 48)


def test_complex_gradients_have_the_conventions_of_jax():
    z = jnp.asarray(normal(3) + 1j * normal(3, seed=1))
    ours = pb.to_jax(lambda z: (pb.exp(z) * z * z.conj()).real.sum())
    theirs = lambda z: (jnp.exp(z) * z * z.conj()).real.sum()
    assert agree(jax.grad(ours)(z), jax.grad(theirs)(z))
    g = jnp.asarray(normal(3, seed=3) + 1j * normal(3, seed=4))
    assert agree(jax.vjp(pb.to_jax(lambda z: pb.exp(z) * z), z)[1](g), jax.vjp(lambda z: jnp.exp(z) * z, z)[1](g))


def test_operations_of_ones_own_and_detach_count_at_every_order():
    cube = pb.to_jax(pb.custom_op(lambda x: x**3, name="cube", x=lambda g, x: 30 * g * x * x))
    assert float(jax.grad(cube)(2.0)) == 120 and float(jax.grad(jax.grad(cube))(2.0)) == 120
    half = pb.to_jax(lambda x: x.detach() * x)
    assert float(jax.grad(half)(3.0)) == 3 and float(jax.grad(jax.grad(half))(3.0)) == 0
    assert float(jax.grad(jax.grad(lambda x: half(x) ** 2))(3.0)) == 18
    assert float(jax.jit(jax.grad(jax.grad(lambda x: half(x) ** 2)))(3.0)) == 18


def test_transforms_inside():
    f = pb.to_jax(lambda x: pb.grad(lambda y: (y**3).sum())(x))
    assert agree(jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.arange(3.0)), 6 * jnp.arange(3.0))


def test_integers_and_other_arguments():
    f = pb.to_jax(lambda table, i, *, scale, name: (table[i] * scale, pb.argmax(table), i[: len(name)]))
    table, i = jnp.asarray(normal(3, 2)), jnp.asarray([1, 1])
    rows, best, same = f(table, i, scale=2, name="text")
    assert agree(rows, 2 * table[i]) and int(best) == int(table.argmax()) and agree(same, i)
    gradient = jax.grad(lambda t: f(t, i, scale=2, name="text")[0].sum())(table)
    assert agree(gradient, jnp.asarray([[0.0, 0.0], [4.0, 4.0], [0.0, 0.0]]))
    by_both = jax.grad(lambda t, i: f(t, i, scale=2, name="")[0].sum(), (0, 1), allow_int=True)(table, i)
    assert agree(by_both[0], gradient) and by_both[1].dtype == jax.dtypes.float0


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_stay(name):
    x = jnp.asarray([1.0, 2.0], dtype=name)
    f = pb.to_jax(lambda x: x * x)
    assert f(x).dtype == x.dtype and jax.grad(lambda x: f(x).sum())(x).dtype == x.dtype


def test_the_function_may_write_to_its_arguments():
    def f(x):
        x *= 2
        x[0] = 5.0
        return x

    x = jnp.ones(3)
    assert agree(jax.grad(lambda x: pb.to_jax(f)(x).sum())(x), jnp.asarray([0.0, 2.0, 2.0])) and x.tolist() == [1, 1, 1]


def test_there_and_back():
    assert pb.gradcheck(pb.from_jax(pb.to_jax(lambda x: pb.sin(x) * x)), (normal(3),), order=2)
    f = pb.to_jax(pb.from_jax(lambda x: jnp.sin(x) * x))
    x = jnp.asarray(normal(3))
    assert agree(jax.jit(jax.grad(lambda x: f(x).sum()))(x), jnp.cos(x) * x + jnp.sin(x))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_a_function_that_runs_elsewhere(device):
    require(device)
    constant = pb.asarray(np.array([1.0, 2.0]), device=device)
    f = pb.to_jax(lambda x, i: {"y": pb.sin(x) * constant, "i": i + 1}, device=device)
    x, i = jnp.asarray(normal(2)), jnp.asarray([3])
    expected = jnp.sin(x) * jnp.asarray([1.0, 2.0])
    loss = lambda x: (f(x, i)["y"] ** 2).sum()
    reference = lambda x: ((jnp.sin(x) * jnp.asarray([1.0, 2.0])) ** 2).sum()
    for wrap in (lambda f: f, jax.jit):
        assert agree(wrap(f)(x, i), {"y": expected, "i": i + 1})
        assert agree(wrap(jax.grad(loss))(x), jax.grad(reference)(x))
        assert agree(wrap(jax.jacrev(jax.grad(loss)))(x), jax.jacrev(jax.grad(reference))(x))
    rows = jnp.asarray(normal(3, 2))
    assert agree(jax.vmap(jax.grad(loss))(rows), jax.vmap(jax.grad(reference))(rows))
    w = pb.tensor([1.0, 2.0], device=device, requires_grad=True)
    with pytest.raises(pb.GradientError, match="uses a variable"):
        jax.jit(pb.to_jax(lambda x: x * w, device=device))(x)


def test_a_model_of_pytorch_inside_a_program_of_jax():
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(2, 3, dtype=torch.float64)
    f = pb.to_jax(pb.from_torch(linear).freeze(), device="torch:cpu")
    gradient = jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(jnp.ones(2))
    w, b = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    assert agree(gradient, jnp.asarray(2 * (w @ np.ones(2) + b) @ w))


def test_no_grad_has_no_influence_on_a_transform_of_jax():
    f = pb.to_jax(lambda x: x * x)
    with pb.no_grad():
        assert float(jax.grad(f)(3.0)) == 6


def test_variables_of_pullbacks_are_not_lost():
    w = pb.tensor([1.0, 2.0], device="jax:cpu", requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"uses a variable of Pullback's of shape \(2,\)"):
        pb.to_jax(lambda x: x * w)(jnp.ones(2))
    with pytest.raises(pb.GradientError, match=r"uses a variable of Pullback's of shape \(2,\)"):
        jax.grad(lambda x: pb.to_jax(lambda x: x * w)(x).sum())(jnp.ones(2))
    assert pb.to_jax(lambda x: x * w.detach())(jnp.ones(2)).tolist() == [1, 2]
    with pytest.raises(pb.GradientError, match="transform of Pullback's that is running"):
        pb.grad(lambda w: pb.to_jax(lambda x: x * w.to_device("jax"))(jnp.ones(2)))(np.ones(2))


def test_errors():
    with pytest.raises(pb.DtypeError, match="to_jax: expected a function of Pullback's, got int"):
        pb.to_jax(3)
    with pytest.raises(pb.DtypeError, match="is a tensor of Pullback's; expected JAX arrays"):
        pb.to_jax(pb.exp)(pb.ones(2))
    with pytest.raises(pb.DtypeError, match=r"result\['n'\] is of type int"):
        pb.to_jax(lambda x: {"n": 3})(jnp.ones(2))
    with pytest.raises(pb.DeviceError, match=r"the result is on 'numpy'.*device='numpy'"):
        pb.to_jax(lambda x: pb.ones(2))(jnp.ones(2))
    with pytest.raises(pb.DeviceError, match="unknown device"):
        pb.to_jax(pb.exp, device="nowhere")
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(pb.to_jax(pb.exp), (1.0,), (1.0,))
