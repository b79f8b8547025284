"""Functions of PyTorch as operations of Pullback's graphs."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import BFLOAT16, needs_llvmlite, optional

torch = optional("torch")

SHAPES = [(), (1,), (0,), (3,), (2, 0, 3), (2, 1, 3)]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_both_modes_and_orders_are_those_of_central_differences(shape):
    f = pb.from_torch(lambda x, y: [torch.sin(x) * torch.exp(y), (x**3).sum()])
    assert pb.gradcheck(f, (normal(*shape), normal(*shape, seed=1)), order=2)


def test_complex_gradients_are_those_of_central_differences():
    f = pb.from_torch(lambda z: (torch.exp(z) * z, z.abs(), z.real * z.imag))
    assert pb.gradcheck(f, (normal(3) + 1j * normal(3, seed=1),), order=2)


def test_third_derivative():
    f = pb.from_torch(lambda x: (x**4).sum())
    x = normal(3)
    third = pb.grad(lambda t: pb.grad(lambda u: pb.grad(f)(u).sum())(t).sum())(x)
    assert np.allclose(third, 24 * x)


def test_hessian_jacobians_and_products():
    weight = torch.tensor(normal(3, 3), dtype=torch.float64)
    f = pb.from_torch(lambda x: torch.tanh(weight @ x).square().sum())
    x = normal(3, seed=2)
    expected = torch.autograd.functional.hessian(lambda x: torch.tanh(weight @ x).square().sum(), torch.tensor(x))
    assert np.allclose(pb.hessian(f)(x), expected)
    assert np.allclose(pb.jacfwd(pb.grad(f))(x), expected)
    assert np.allclose(pb.jacfwd(pb.jacfwd(f))(x), expected)
    assert np.allclose(pb.jacrev(pb.jacfwd(f))(x), expected)
    assert np.allclose(pb.hvp(f, (x,), (np.ones(3),))[0], expected.numpy().sum(1))


def test_it_is_one_operation_among_others():
    f = pb.from_torch(torch.sigmoid)
    assert pb.gradcheck(lambda x, w: (f(x @ w) * w.sum() + f(f(x).sum())).sum(), (normal(2, 3), normal(3, 2)), order=2)


def test_backward_of_a_gradient():
    f = pb.from_torch(lambda x: (x**3).sum())
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = pb.backward(f(x), create_graph=True)
    (gradient * gradient).sum().backward()
    assert np.allclose(x.grad.numpy(), 36 * np.array([1.0, 8.0]))


def test_a_retained_graph_can_be_walked_twice_and_a_released_one_cannot():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.from_torch(torch.exp)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))
    with pytest.raises(pb.GraphConsumedError):
        y.backward()


def test_inputs_of_several_dtypes_and_unused_ones():
    f = pb.from_torch(lambda x, y, unused: x.double().sum() * y)
    x = pb.tensor([1.0, 2.0], dtype=pb.float32, requires_grad=True)
    y = pb.tensor([3.0], dtype=pb.float64, requires_grad=True)
    unused = pb.tensor([1.0], requires_grad=True)
    f(x, y, unused).sum().backward()
    assert x.grad.dtype == pb.float32 and x.grad.tolist() == [3, 3]
    assert y.grad.dtype == pb.float64 and y.grad.tolist() == [3]
    assert unused.grad is None


@pytest.mark.parametrize("dtype", [pb.float16, pb.float32, pb.float64, BFLOAT16])
def test_dtypes_come_back_as_they_were(dtype):
    x = pb.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = pb.from_torch(lambda x: x * x)(x)
    y.sum().backward()
    assert y.dtype == dtype and x.grad.dtype == dtype and x.grad.tolist() == [2, 4]
    assert y.device == "numpy" and x.grad.device == "numpy"


def test_one_tensor_in_two_places():
    x = pb.tensor([2.0, 3.0], requires_grad=True)
    pb.from_torch(lambda x, y: x * y)(x, x).sum().backward()
    assert x.grad.tolist() == [4, 6]


# -- arguments and results ---------------------------------------------------------------------------


def test_trees_keywords_and_other_arguments():
    f = pb.from_torch(lambda pair, *, scale, power, table: {"a": [pair[0] ** power, None], "b": table["w"] * scale})
    pair = (pb.tensor([1.0, 2.0], requires_grad=True), "text")
    w = pb.tensor([5.0], requires_grad=True)
    result = f(pair, scale=3, power=2, table={"w": w})
    assert result["a"][1] is None
    (result["a"][0].sum() + result["b"].sum()).backward()
    assert pair[0].grad.tolist() == [2, 4] and w.grad.tolist() == [3]


def test_kinds_of_results_that_pytorch_code_has():
    best = pb.from_torch(lambda x: torch.max(x, dim=0))(pb.tensor([[1.0, 5.0], [2.0, 3.0]], requires_grad=True))
    assert isinstance(best, torch.return_types.max) and best.indices.tolist() == [1, 0]
    assert best.values.requires_grad and not best.indices.requires_grad

    @dataclass
    class Output(OrderedDict):  # as models of transformers return
        loss: object = None

    made = Output()
    made["loss"] = torch.ones(2)
    assert pb.from_torch(lambda: {"inner": made})()["inner"]["loss"].tolist() == [1, 1]


def test_integer_inputs_and_outputs():
    table = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    f = pb.from_torch(lambda table, i: (torch.nn.functional.embedding(i, table), table.argmax(1)))
    rows, best = f(table, pb.asarray(np.array([1, 1])))
    assert best.dtype == pb.int64 and not best.requires_grad and best.tolist() == [1, 1]
    rows.sum().backward()
    assert table.grad.tolist() == [[0, 0], [2, 2]]


def test_results_without_gradient_in_pytorch_have_none():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    kept, cut = pb.from_torch(lambda x: (x * 2, x.detach() * 2))(x)
    assert kept.requires_grad and not cut.requires_grad


def test_no_arrays_at_all():
    assert pb.from_torch(lambda n: torch.arange(n))(3).tolist() == [0, 1, 2]
    assert pb.from_torch(lambda x: None)(pb.ones(2)) is None


def test_arrays_of_other_libraries_are_arguments_too():
    f = pb.from_torch(torch.add)
    assert f(np.array([1.0]), np.array([2.0])).tolist() == [3]
    assert f(torch.ones(1), torch.ones(1)).device == "torch:cpu"


def test_torch_memory_is_passed_without_a_copy():
    seen = []

    def f(x):
        seen.append(x.data_ptr())
        return x.view(-1)

    x = pb.ones((2, 2), device="torch:cpu")
    y = pb.from_torch(f)(x.set_requires_grad(True))
    assert seen == [x.data.data_ptr()] == [y.detach().data.data_ptr()] and y.device == "torch:cpu"


def test_tensors_of_jax_come_back_to_jax():
    pytest.importorskip("jax")
    x = pb.ones((2,), device="jax:cpu").set_requires_grad(True)
    y = pb.from_torch(torch.exp)(x)
    y.sum().backward()
    assert y.device == x.grad.device == "jax:cpu"


def test_a_function_that_differentiates_inside():
    def energy_and_forces(x):
        x = x if x.requires_grad else x.requires_grad_()
        energy = (x**4).sum()
        (gradient,) = torch.autograd.grad(energy, x, create_graph=True)
        return energy, -gradient

    f = pb.from_torch(energy_and_forces)
    x = normal(3)
    assert pb.gradcheck(f, (x,), order=2)
    energy, forces = f(pb.asarray(x))
    assert np.isclose(energy.item(), (x**4).sum()) and np.allclose(forces.numpy(), -4 * x**3)


def test_identity_and_views():
    f = pb.from_torch(lambda x: (x, x.T, x[0]))
    assert pb.gradcheck(f, (normal(2, 3),), order=2)


# -- modes -------------------------------------------------------------------------------------------


def test_no_grad_of_both_libraries_is_respected():
    recording = []

    def f(x):
        recording.append(torch.is_grad_enabled())
        return x * 2

    x = pb.tensor([1.0], requires_grad=True)
    with pb.no_grad():
        assert not pb.from_torch(f)(x).requires_grad
    with torch.no_grad():
        assert not pb.from_torch(f)(x).requires_grad
    assert not pb.from_torch(f)(x.detach()).requires_grad
    assert pb.from_torch(f)(x).requires_grad
    assert recording == [False, False, True, True]


def test_gradients_inside_no_grad_of_pytorch():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.from_torch(lambda x: (x**3).sum())(x)
    with torch.no_grad():
        (gradient,) = pb.backward(y, create_graph=True)
        gradient.sum().backward()
    assert np.allclose(x.grad.numpy(), [6, 12])


def test_hooks_and_guard():
    x = pb.tensor([1.0, 4.0], requires_grad=True)
    y = pb.from_torch(torch.sqrt)(x)
    y.register_hook(lambda g: 10 * g)
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), [5, 2.5])
    with pytest.raises(pb.NumericalInstabilityError, match="from_torch"):
        pb.from_torch(torch.sqrt)(pb.tensor([0.0], requires_grad=True)).sum().backward()


@needs_llvmlite
def test_a_compiled_function_refuses_it():
    step = pb.compile(lambda x: pb.from_torch(torch.exp)(x).sum())
    with pytest.raises(pb.TraceError, match=r"from_torch\(exp\).*outside"):
        step(pb.ones(2))


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(0)])
def test_checkpointing_does_not_run_it_again(strategy):
    calls = []

    def f(x):
        calls.append(1)
        return torch.exp(x)

    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pb.checkpointing(strategy):
        y = (pb.from_torch(f)(x * 2) * 3).sum()
    y.backward()
    assert len(calls) == 1 and np.allclose(x.grad.numpy(), 6 * np.exp([2.0, 4.0]))


def test_forward_mode_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return x * torch.rand(3, dtype=x.dtype)

    value, tangent = pb.jvp(pb.from_torch(f), (np.ones(3),), (np.ones(3),))
    assert len(calls) == 1 and np.array_equal(value, tangent)


def test_threads():
    f = pb.from_torch(lambda x: (torch.sin(x) ** 2).sum())
    x = pb.tensor(normal(50), requires_grad=True)
    y = f(x)
    found = []

    def work():
        found.append((pb.grad(f)(x.detach()).numpy(), pb.backward(y, retain_graph=True)[x].numpy()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = np.sin(2 * normal(50))
    assert len(found) == 8 and all(np.allclose(g, expected) for pair in found for g in pair)


# -- memory ------------------------------------------------------------------------------------------


def test_nothing_is_held_after_the_walk():
    inside = []

    def f(x):
        y = torch.exp(x)
        inside.append(weakref.ref(y))
        return y * y

    gc.disable()
    try:
        x = pb.tensor([1.0, 2.0], requires_grad=True)
        loss = pb.from_torch(f)(x).sum()
        assert inside[0]() is not None  # saved for the gradient
        loss.backward()
        assert inside[0]() is None  # although the loss is still there
        second = pb.backward(pb.from_torch(f)(x).sum(), create_graph=True)
        second[x].sum().backward()
        del second
        assert inside[1]() is None
        pb.jvp(pb.from_torch(f), (x.detach(),), (pb.ones(2),))
        assert inside[2]() is None
        argument = pb.ones(3)
        gone = weakref.ref(argument)
        result = pb.from_torch(f)(argument.set_requires_grad(True))
        del argument
        assert gone() is None and result.requires_grad
    finally:
        gc.enable()


# -- errors ------------------------------------------------------------------------------------------


def test_what_is_no_function():
    with pytest.raises(pb.DtypeError, match=r"from_torch: .*tensor of shape \(2,\).*pb.asarray"):
        pb.from_torch(torch.ones(2))
    with pytest.raises(pb.DtypeError, match="Make one first"):
        pb.from_torch(torch.nn.ReLU)
    with pytest.raises(pb.DtypeError, match="got 3"):
        pb.from_torch(3)


def test_a_function_of_numpy():
    x = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"NumPy array.*needs no bridge"):
        pb.from_torch(lambda x: np.sin(x))(x)
    with pytest.raises(pb.DtypeError, match=r"type ndarray.*needs no bridge"):
        pb.from_torch(lambda x: np.sin(x.numpy()))(x.detach())


def test_results_that_are_no_tensors():
    with pytest.raises(pb.DtypeError, match=r"result\['loss'\] is of type float; expected torch tensors"):
        pb.from_torch(lambda x: {"loss": x.sum().item()})(pb.ones(2))
    with pytest.raises(pb.DtypeError, match="to_dense"):
        pb.from_torch(lambda x: x.to_sparse())(pb.ones(2))
    with pytest.raises(pb.DtypeError, match="float8"):
        pb.from_torch(lambda x: x.to(torch.float8_e4m3fn))(pb.ones(2))


def test_torch_variables_are_not_lost():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"an argument .*\(2,\).*`t.detach\(\)`"):
        pb.from_torch(torch.exp)(w)
    with pytest.raises(pb.GradientError, match=r"uses a torch tensor of shape \(2,\).*no argument"):
        pb.from_torch(lambda x: x * w)(pb.tensor([1.0, 2.0], requires_grad=True))
    with pytest.raises(pb.GradientError, match=r"no argument.*pb.no_grad\(\)"):
        pb.from_torch(lambda x: x * w)(pb.ones(2))
    with pb.no_grad():
        assert pb.from_torch(lambda x: x * w)(pb.ones(2)).tolist() == [1, 1]
    w.requires_grad_(False)
    assert pb.from_torch(lambda x: x * w)(pb.tensor([1.0, 2.0], requires_grad=True)).requires_grad


def test_devices_do_not_mix():
    with pytest.raises(pb.DeviceError, match=r"different devices \(numpy, torch:cpu\)"):
        pb.from_torch(torch.add)(pb.ones(2), pb.ones(2, device="torch:cpu"))


@pytest.mark.parametrize("tracked", [False, True])
def test_writing_to_arguments_is_refused(tracked):
    x = pb.tensor([1.0], device="torch:cpu", requires_grad=tracked)
    with pytest.raises(pb.GradientError, match=r"in place.*x.clone\(\)"):
        pb.from_torch(lambda x: x.add_(1))(x)
    assert pb.from_torch(lambda x: x.clone().add_(1))(x).detach().tolist() == [3 - tracked]


def test_errors_of_the_function_say_what_was_given():
    with pytest.raises(RuntimeError, match="size"):
        pb.from_torch(torch.add)(pb.ones(2), pb.ones(3))
    with pytest.raises(TypeError, match="unexpected"):
        pb.from_torch(lambda x: x)(pb.ones(2), unexpected=1)


def test_a_gradient_that_pytorch_does_not_have():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    f = pb.from_torch(Once.apply)
    assert pb.grad(lambda x: f(x).sum())(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(pb.GradientError, match=r"PyTorch has no gradient here.*once_differentiable"):
        pb.hessian(lambda x: f(x).sum())(np.ones(2))


def test_memory_that_pytorch_wrote_in_between():
    memory = torch.ones(2)
    x = pb.asarray(memory).set_requires_grad(True)
    y = pb.from_torch(lambda x: x * x)(x).sum()
    memory.add_(1)
    with pytest.raises(pb.GradientError, match="modified by an inplace operation"):
        y.backward()
