"""Functions of Pullback's that PyTorch's autograd differentiates."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import optional

torch = optional("torch")


def variable(*shape, seed=0, dtype=None):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, dtype=dtype or torch.float64, requires_grad=True)


def is_right_twice(f, inputs):
    """Whether gradients and their gradients are those of central differences."""
    return torch.autograd.gradcheck(f, inputs) and torch.autograd.gradgradcheck(f, inputs)


# PyTorch's `gradcheck` writes to its inputs behind everybody's back: what a strategy computes again must not be theirs.
writes_to_inputs = pytest.mark.plain_graph


# -- gradients -------------------------------------------------------------------------------------


@writes_to_inputs
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1, 3)])
def test_gradients_of_both_orders_are_those_of_central_differences(shape):
    f = pb.to_torch(lambda x, y: (pb.sin(x) * pb.exp(y), (x**3).sum()))
    inputs = (variable(*shape), variable(*shape, seed=1))
    assert is_right_twice(f, inputs)


@writes_to_inputs
def test_complex_gradients_are_those_of_central_differences():
    z = torch.complex(variable(3), variable(3, seed=1)).detach().requires_grad_()
    f = pb.to_torch(lambda z: (pb.exp(z) * z, pb.abs(z)))
    assert is_right_twice(f, (z,))


def test_third_derivative_and_hessian():
    f = pb.to_torch(lambda x: (x**4).sum())
    x = variable(3)
    gradient = f(x)
    for _ in range(3):
        (gradient,) = torch.autograd.grad(gradient.sum(), x, create_graph=True)
    assert torch.allclose(gradient, 24 * x)
    hessian = torch.autograd.functional.hessian(pb.to_torch(lambda x: (pb.tanh(x) ** 2).sum()), x)
    assert torch.allclose(hessian, torch.autograd.functional.hessian(lambda x: x.tanh().square().sum(), x))


def test_it_is_one_operation_among_others_in_a_module():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4, dtype=torch.float64)
            self.activation = pb.to_torch(lambda x: pb.gelu(x))

        def forward(self, x):
            return self.activation(self.linear(x)).square().sum()

    model, x = Model(), variable(2, 3)
    model(x).backward()
    ours = [p.grad for p in (*model.parameters(), x)]
    model.activation = torch.nn.functional.gelu
    x.grad = None
    model.zero_grad()
    model(x).backward()
    for gradient, p in zip(ours, (*model.parameters(), x)):
        assert torch.allclose(gradient, p.grad)


def test_detach_counts_at_every_order():
    x = variable(3)
    (gradient,) = torch.autograd.grad(pb.to_torch(lambda x: x.detach() * x)(x).sum(), x, create_graph=True)
    assert torch.equal(gradient, x.detach()) and not gradient.requires_grad


def test_an_operation_of_ones_own_and_compiled_functions():
    cube = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)
    x = variable(3)
    assert is_right_twice(pb.to_torch(cube), (x,))


def test_transforms_inside():
    x = variable(3)
    f = pb.to_torch(lambda x: pb.grad(lambda y: (y**3).sum())(x))
    assert is_right_twice(f, (x,))


def test_there_and_back():
    x = variable(3)
    f = pb.to_torch(pb.from_torch(lambda x: torch.sin(x) * x))
    assert is_right_twice(f, (x,))
    assert pb.gradcheck(pb.from_torch(pb.to_torch(lambda x: pb.sin(x) * x)), (x.detach().numpy(),), order=2)


# -- arguments and results ---------------------------------------------------------------------------


def test_trees_keywords_and_other_arguments():
    f = pb.to_torch(lambda pair, *, scale, table: {"a": [pair[0] * scale, None], "b": table["i"]})
    x, i = variable(2), torch.tensor([1, 2])
    result = f((x, "text"), scale=3, table={"i": i})
    result["a"][0].sum().backward()
    assert x.grad.tolist() == [3, 3] and result["a"][1] is None
    assert result["b"].dtype == torch.int64 and not result["b"].requires_grad


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_stay(name):
    x = torch.tensor([1.0, 2.0], dtype=getattr(torch, name), requires_grad=True)
    y = pb.to_torch(lambda x: x * x)(x)
    y.sum().backward()
    assert y.dtype == x.dtype == x.grad.dtype and x.grad.tolist() == [2, 4]


def test_inputs_that_need_no_gradient_get_none():
    x, y = variable(2), variable(2).detach()
    pb.to_torch(lambda x, y: x * y)(x, y).sum().backward()
    assert torch.equal(x.grad, y) and y.grad is None
    unused = variable(2)
    pb.to_torch(lambda x, unused: x * 2)(x, unused).sum().backward()
    assert unused.grad is None


def test_results_are_the_callers_to_write():
    x = torch.ones(2)
    constant = pb.ones(2, device="torch:cpu")
    same, part, fixed = pb.to_torch(lambda x: (x, x[:1], constant))(x)
    for result in (same, part, fixed):
        result.add_(1)
    assert x.tolist() == [1, 1] and constant.tolist() == [1, 1]


def test_the_function_may_write_to_its_arguments():
    def f(x):
        x *= 2
        return x

    x = variable(2)
    before = x.tolist()
    pb.to_torch(f)(x).sum().backward()
    assert x.tolist() == before and x.grad.tolist() == [2, 2]


def test_results_on_another_device_come_back():
    x = variable(3)
    f = pb.to_torch(lambda x: (x.to_device("numpy") ** 2).sum())
    assert f(x).device.type == "cpu" and is_right_twice(f, (x,))


# -- variables of Pullback's ---------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_captured_variables_get_their_gradients(device):
    w = pb.tensor([1.0, 2.0], dtype=pb.float64, device=device, requires_grad=True)
    x = variable(2)
    f = pb.to_torch(lambda x: x * w.to_device("torch:cpu"))
    f(x).sum().backward()
    f(x).sum().backward()
    assert np.allclose(w.grad.numpy(), 2 * x.detach()) and w.grad.device == device
    assert x.grad.tolist() == [2, 4]


def test_captured_variables_are_left_alone_by_torch_autograd_grad():
    w = pb.tensor([1.0, 2.0], dtype=pb.float64, device="torch:cpu", requires_grad=True)
    x = variable(2)
    (gradient,) = torch.autograd.grad(pb.to_torch(lambda x: x * x * w)(x).sum(), x, create_graph=True)
    assert w.grad is None
    gradient.sum().backward()
    assert np.allclose(w.grad.numpy(), 2 * x.detach()) and x.grad.tolist() == [2, 4]


def test_a_model_of_pullbacks_is_trained_by_a_loss_of_pytorchs():
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.Tanh(), pb.nn.Linear(4, 1)).to_device("torch:cpu")
    optimizer = pb.optim.Adam(model.parameters(), lr=0.05)
    f = pb.to_torch(model)
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.mse_loss(f(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_frozen_and_detached_variables_get_none():
    w = pb.tensor([1.0, 2.0], dtype=pb.float64, device="torch:cpu", requires_grad=True)
    x = variable(2)
    pb.to_torch(lambda x: x * w.detach())(x).sum().backward()
    assert w.grad is None


def test_variables_of_a_running_transform_are_refused():
    x = torch.ones(2, dtype=torch.float64)

    def loss(w):
        return pb.to_torch(lambda x: x * w.to_device("torch:cpu"))(x)

    with pytest.raises(pb.GradientError, match="transform of Pullback's that is running"):
        pb.grad(loss)(np.ones(2))
    with pytest.raises(pb.GradientError, match="transform of Pullback's that is running"):
        pb.jvp(loss, (np.ones(2),), (np.ones(2),))


# -- modes -------------------------------------------------------------------------------------------


def test_no_grad_of_both_libraries_is_respected():
    f, x = pb.to_torch(lambda x: x * 2), variable(2)
    with torch.no_grad():
        assert not f(x).requires_grad
    with pb.no_grad():
        assert not f(x).requires_grad
    with torch.inference_mode():
        assert not f(x).requires_grad
    assert f(x).requires_grad and not f(x.detach()).requires_grad


def test_walking_twice():
    x = variable(2)
    y = pb.to_torch(pb.exp)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert torch.allclose(x.grad, 2 * x.exp())
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks():
    x = variable(2)
    x.register_hook(lambda g: 10 * g)
    y = pb.to_torch(lambda x: x * 3)(x)
    y.register_hook(lambda g: 2 * g)
    y.sum().backward()
    assert x.grad.tolist() == [60, 60]


def test_threads():
    f, x = pb.to_torch(lambda x: (pb.sin(x) ** 2).sum()), variable(50)
    found = []
    threads = [threading.Thread(target=lambda: found.append(torch.autograd.grad(f(x), x)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(torch.allclose(g, (2 * x).sin()) for g in found)


# -- memory ------------------------------------------------------------------------------------------


@pytest.mark.plain_graph
def test_nothing_is_held_after_the_walk():
    inside = []

    def f(x):
        y = pb.exp(x)
        inside.append(weakref.ref(y._raw))
        return (y * y).sum()

    gc.disable()
    try:
        x = variable(3)
        w = pb.tensor([1.0], dtype=pb.float64, device="torch:cpu", requires_grad=True)
        loss = pb.to_torch(lambda x: f(x) * w)(x).sum()
        assert inside[0]() is not None
        loss.backward()
        assert inside[0]() is None  # although the loss is still there
        loss = pb.to_torch(f)(x)
        del loss
        assert inside[1]() is None
        (gradient,) = torch.autograd.grad(pb.to_torch(f)(x), x, create_graph=True)
        gradient.sum().backward()
        del gradient
        assert inside[2]() is None
        exp = pb.to_torch(pb.exp)(x)  # whose result is saved itself
        gone = weakref.ref(exp.grad_fn)
        del exp
        assert gone() is None
    finally:
        gc.enable()


def test_a_result_that_is_written_in_place_is_noticed():
    x = variable(3)
    y = pb.to_torch(pb.exp)(x)
    z = y.sum()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(pb.GradientError, match="a result was written in place"):
        z.backward()
    z = pb.to_torch(pb.exp)(x).sum()
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# -- errors ------------------------------------------------------------------------------------------


def test_what_is_no_function():
    with pytest.raises(pb.DtypeError, match="to_torch: expected a function of Pullback's, got Linear"):
        pb.to_torch(torch.nn.Linear(1, 1))
    with pytest.raises(pb.DtypeError, match="got int"):
        pb.to_torch(3)


def test_wrong_arguments_and_results():
    with pytest.raises(pb.DtypeError, match=r"shape \(2,\) is a tensor of Pullback's; expected torch tensors"):
        pb.to_torch(pb.exp)(pb.ones(2))
    with pytest.raises(pb.DtypeError, match=r"result\['n'\] is of type int"):
        pb.to_torch(lambda x: {"n": 3})(torch.ones(2))


def test_transforms_that_cannot_look_inside_are_refused():
    f, x = pb.to_torch(lambda x: (pb.sin(x) * x).sum()), torch.ones(3)
    forward_ad = torch.autograd.forward_ad
    with pytest.raises(pb.GradientError, match=r"torch\.func"):
        torch.func.grad(f)(x)
    with pytest.raises(pb.GradientError, match=r"torch\.func"):
        torch.func.vmap(f)(torch.ones(2, 3))
    with pytest.raises(pb.GradientError, match=r"torch\.func"):
        torch.func.jvp(f, (x,), (x,))
    with forward_ad.dual_level(), pytest.raises(pb.GradientError, match="forward mode"):
        f(forward_ad.make_dual(x, x))
