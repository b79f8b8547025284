"""What all optimizers share: parameters, groups, gradients, errors that change nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require
from .problems import data, network_loss, parameters, trained, values
from .test_backends import OPTIMIZERS

torch = optional("torch")

ELEMENTWISE = [name for name in OPTIMIZERS if getattr(pb.optim, name).elementwise]
SHAPES = ((4, 3), (3, 3))  # every optimizer can update matrices


def make(name, params, **options):
    return getattr(pb.optim, name)(params, **{**OPTIMIZERS[name], **options})


def snapshot(tensors):
    return [np.array(t.detach().numpy()) for t in tensors]


# -- where gradients come from ---------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["Gradients", "tensors", "arrays", "closure", "NumPy parameters"])
def test_every_way_to_give_gradients_gives_the_same_update(name, kind):
    initial = values(SHAPES)
    reference, tensors = parameters(initial), parameters(initial)
    arrays = [value.copy() for value in initial]
    given = arrays if kind == "NumPy parameters" else tensors
    expected, optimizer = make(name, reference), make(name, given)
    for seed in range(1, 4):
        for w, g in zip(reference, values(SHAPES, seed=seed)):
            w.grad = g
        assert expected.step() is None
        gradients = values(SHAPES, seed=seed)
        if kind == "Gradients":
            grads = pb.backward(sum((w * pb.asarray(g)).sum() for w, g in zip(tensors, gradients)))
            optimizer.step(grads)
        elif kind == "tensors":
            optimizer.step([pb.asarray(g) for g in gradients])
        elif kind == "closure":

            def closure(gradients=gradients):
                optimizer.zero_grad()
                loss = sum((w * pb.asarray(g)).sum() for w, g in zip(tensors, gradients))
                loss.backward()
                return loss

            with pb.no_grad():
                assert isinstance(optimizer.step(closure), pb.Tensor)
        else:
            optimizer.step(gradients)
    result = arrays if kind == "NumPy parameters" else snapshot(tensors)
    for a, b in zip(result, snapshot(reference)):
        np.testing.assert_array_equal(a, b)


def test_parameters_without_gradient_stay_and_are_not_counted():
    a, b = parameters(values(SHAPES))
    before = snapshot([b])[0]
    optimizer = pb.optim.Adam([a, b], weight_decay=0.1)
    optimizer.step([np.ones((4, 3)), None])
    np.testing.assert_array_equal(b.detach().numpy(), before)
    assert list(optimizer.state_dict()["state"]) == [0]
    optimizer.step([None, np.ones((3, 3))])
    assert optimizer.state_dict()["state"][1]["step"] == 1


def test_parameters_updated_a_different_number_of_times_and_of_different_dtypes():
    initial = [np.zeros(2), np.zeros(2), np.zeros(2, np.float32)]
    together, alone = parameters(initial), parameters(initial)
    optimizer, optimizers = pb.optim.Adam(together), [pb.optim.Adam([w]) for w in alone]
    for pattern in ((1, 0, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)):
        gradients = [np.full(2, 0.3, w.dtype) if there else None for there, w in zip(pattern, initial)]
        optimizer.step(gradients)
        for single, gradient in zip(optimizers, gradients):
            single.step([gradient])
    for a, b in zip(snapshot(together), snapshot(alone)):
        np.testing.assert_array_equal(a, b)


def test_a_frozen_parameter_stays_though_it_has_an_old_gradient():
    (w,) = parameters(values(((3,),)))
    (w * w).sum().backward()
    w.set_requires_grad(False)
    before = snapshot([w])[0]
    optimizer = pb.optim.SGD([w], lr=0.1)
    optimizer.step()
    np.testing.assert_array_equal(w.detach().numpy(), before)
    w.set_requires_grad(True)
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), before * 0.8)


def test_zero_grad_keeps_the_memory():
    (w,) = parameters(values(((3,),)))
    (w * w).sum().backward()
    address = w.grad._raw.ctypes.data
    pb.optim.SGD([w, pb.tensor([1.0], requires_grad=True)]).zero_grad()
    assert w.grad.tolist() == [0.0, 0.0, 0.0] and w.grad._raw.ctypes.data == address


# -- groups ----------------------------------------------------------------------------------------


def test_groups_have_options_of_their_own_as_in_pytorch():
    initial = values()
    options = {"lr": 0.02, "weight_decay": 0.1}

    def groups(p):
        return [{"params": p[:2]}, {"params": p[2:], "lr": 0.05, "weight_decay": 0.0, "betas": (0.5, 0.6)}]

    ours, _ = trained(lambda p: pb.optim.AdamW(groups(p), **options), 10, initial)
    tensors = [torch.tensor(value, requires_grad=True) for value in initial]
    optimizer = torch.optim.AdamW(groups(tensors), **options)
    for _ in range(10):
        optimizer.zero_grad()
        network_loss(torch, tensors, *map(torch.tensor, data())).backward()
        optimizer.step()
    for a, b in zip(ours, tensors):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-11)


def test_named_parameters_are_named_in_groups_and_errors():
    w, b = parameters(values(((2, 2), (2,))))
    optimizer = pb.optim.SGD([("layer.weight", w), ("layer.bias", b)])
    assert optimizer.param_groups[0]["param_names"] == ["layer.weight", "layer.bias"]
    assert optimizer.param_groups[0]["params"] == [w, b]
    with pytest.raises(pb.ShapeError, match=r"'layer.bias' has shape \(3,\), not \(2,\)"):
        optimizer.step([np.ones((2, 2)), np.ones(3)])


def test_a_group_added_later_is_updated():
    w, b = parameters(values(((2,), (70_000,))))  # the second needs larger scratch arrays
    optimizer = pb.optim.Adam([w], lr=0.5)
    optimizer.step([np.ones(2)])
    optimizer.add_param_group({"params": b, "lr": 0.25})
    before = snapshot([w, b])
    optimizer.step([np.ones(2), np.ones(70_000)])
    np.testing.assert_allclose(before[0] - w.detach().numpy(), 0.5)
    np.testing.assert_allclose(before[1] - b.detach().numpy(), 0.25)


def test_a_parameter_that_gets_another_dtype_or_shape():
    (w,) = parameters([np.zeros(2, np.float32)])
    optimizer = pb.optim.Adam([w], lr=0.5)
    optimizer.step([np.ones(2, np.float32)])
    w._raw = w._raw.astype(np.float64)
    optimizer.step([np.ones(2)])
    assert optimizer.state_dict()["state"][0]["exp_avg"].dtype == pb.float64
    np.testing.assert_allclose(w.detach().numpy(), -1.0, rtol=1e-6)
    w._raw = np.zeros(3)
    with pytest.raises(pb.ShapeError, match=r"had shape \(2,\) and has \(3,\) now"):
        optimizer.step([np.ones(3)])


@pytest.mark.parametrize(
    ("name", "device"), [*((name, "numpy") for name in OPTIMIZERS), ("SGD", "jax:cpu"), ("LAMB", "jax:cpu")]
)
def test_numpy_scalars_as_options_do_not_widen_the_parameters(name, device):
    require(device)
    (w,) = parameters(values(((3, 3),), np.float32), device)
    options = {k: np.float64(v) if type(v) is float else v for k, v in OPTIMIZERS[name].items()}
    optimizer = getattr(pb.optim, name)([w], **options)
    optimizer.step([pb.ones((3, 3), dtype=pb.float32, device=device)])
    assert w.dtype == pb.float32
    (state,) = optimizer.state_dict()["state"].values()
    assert {value.dtype for value in state.values() if isinstance(value, pb.Tensor)} == {pb.float32}


def test_momentum_turned_on_later_starts_from_nothing():
    (w,) = parameters([np.zeros(1)])
    optimizer = pb.optim.SGD([w], lr=1.0)
    optimizer.step([np.ones(1)])
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.step([np.ones(1)])
    optimizer.step([np.ones(1)])
    assert w.tolist() == [-1.0 - 1.0 - 1.5]


def refused(error, match, params, **options):
    with pytest.raises(error, match=match):
        pb.optim.SGD(params, **options)


def test_refuses_what_is_no_parameter():
    w = pb.tensor([1.0], requires_grad=True)
    fixed = np.ones(2)
    fixed.flags.writeable = False
    refused(pb.ConfigurationError, "no parameters", [])
    refused(pb.ConfigurationError, r"\[w, b\]", w)
    refused(pb.ConfigurationError, r"pb.tree.leaves\(parameters\)", {"w": w})
    refused(pb.ConfigurationError, "same variable as parameter 0", [w, w])
    refused(pb.ConfigurationError, "same variable as parameter 0", [w, w.clone()])
    refused(pb.ConfigurationError, "same variable as parameter 0", [{"params": [w]}, {"params": [w]}])
    refused(pb.GradientError, "result of `multiply`", [w * 2])
    refused(pb.DtypeError, "int32", [pb.tensor([1], dtype=pb.int32)])
    refused(pb.DtypeError, "real and imaginary", [pb.tensor([1j])])
    refused(pb.DtypeError, "float", [0.5])
    refused(pb.DtypeError, r"but Linear. Write `model.parameters\(\)`", pb.nn.Sequential(pb.nn.Linear(2, 2)))
    refused(pb.ConfigurationError, "read-only", [fixed])
    refused(pb.ConfigurationError, "all be tensors", [w, np.ones(2)])
    refused(pb.ConfigurationError, "all parameters of a group or none", [("w", w), pb.tensor([1.0])])
    refused(pb.ConfigurationError, '"params"', [{"lr": 0.1}])
    refused(pb.ConfigurationError, "no option 'learning_rate'", [{"params": [w], "learning_rate": 1.0}])
    with pytest.raises(pb.ShapeError, match="matrices"):
        pb.optim.Muon([w])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": -0.1}),
        ("SGD", {"lr": float("nan")}),
        ("SGD", {"lr": "fast"}),
        ("SGD", {"momentum": -1.0}),
        ("SGD", {"nesterov": True}),
        ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}),
        ("Adam", {"betas": (0.9, 1.0)}),
        ("Adam", {"betas": (0.9,)}),
        ("Adam", {"eps": -1e-8}),
        ("AdamW", {"weight_decay": -1.0}),
        ("Adafactor", {"d": 0.5}),
        ("Adafactor", {"beta2_decay": 0.5}),
        ("Adagrad", {"lr_decay": -1.0}),
        ("NAdam", {"momentum_decay": -1.0}),
        ("RAdam", {"betas": (0.9, 1.0)}),
        ("Muon", {"ns_steps": 100}),
        ("Muon", {"adjust_lr_fn": "other"}),
    ],
    ids=str,
)
def test_refuses_options_out_of_range(name, options):
    with pytest.raises(pb.ConfigurationError):
        getattr(pb.optim, name)([pb.tensor([[1.0]], requires_grad=True)], **options)


# -- errors change nothing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: np.ones((3, 4)), pb.ShapeError),
        (lambda: np.ones((3, 3), np.float32), pb.DtypeError),
        (lambda: torch.ones(3, 3, dtype=torch.float64), pb.DeviceError),
        (lambda: "gradient", pb.DtypeError),
    ],
    ids=["shape", "dtype", "device", "kind"],
)
def test_a_bad_gradient_changes_nothing(make, error):
    tensors = parameters(values(SHAPES))
    optimizer = pb.optim.Adam(tensors)
    optimizer.step([np.ones((4, 3)), np.ones((3, 3))])
    before, state = snapshot(tensors), optimizer.state_dict()["state"]
    with pytest.raises(error, match="parameter 1"):
        optimizer.step([np.ones((4, 3)), make()])
    for a, b in zip(before, snapshot(tensors)):
        np.testing.assert_array_equal(a, b)
    after = optimizer.state_dict()["state"]
    assert after[0]["step"] == 1 and (after[0]["exp_avg"] == state[0]["exp_avg"]).all()


def test_a_parameter_that_became_a_result_changes_nothing():
    tensors = parameters(values(SHAPES))
    optimizer = pb.optim.SGD(tensors, lr=0.1)
    before = snapshot(tensors)
    tensors[1].set_requires_grad(False)
    tensors[1] += pb.zeros((3, 3), dtype=pb.float64).set_requires_grad(True)
    with pytest.raises(pb.GradientError, match="parameter 1 was a variable"):
        optimizer.step([np.ones((4, 3)), np.ones((3, 3))])
    for a, b in zip(before, snapshot(tensors)):
        np.testing.assert_array_equal(a, b)


def test_a_bad_option_in_the_last_group_changes_nothing():
    tensors = parameters(values(SHAPES))
    optimizer = pb.optim.Adam([{"params": tensors[:1]}, {"params": tensors[1:]}])
    optimizer.param_groups[1]["lr"] = "fast"
    before = snapshot(tensors)
    with pytest.raises(ValueError):
        optimizer.step([np.ones((4, 3)), np.ones((3, 3))])
    for a, b in zip(before, snapshot(tensors)):
        np.testing.assert_array_equal(a, b)


def test_refuses_gradients_that_are_no_list():
    (w,) = parameters(values(((2,),)))
    with pytest.raises(pb.DtypeError, match="Gradients"):
        pb.optim.SGD([w]).step(np.ones(2))
    with pytest.raises(pb.ShapeError, match="2 gradients for 1 parameters"):
        pb.optim.SGD([w]).step([np.ones(2), np.ones(2)])
    with pytest.raises(pb.ConfigurationError, match="Pass a list"):
        pb.optim.SGD([np.ones(2)]).step()


def test_overflow_is_no_error_half_way():
    tensors = parameters(values(SHAPES, dtype=np.float32))
    huge = [np.full(shape, 3e38, np.float32) for shape in SHAPES]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with pytest.raises(pb.NumericalInstabilityError):
            pb.optim.Adam(tensors).step(huge)
        with pb.guard("off"):
            pb.optim.Adam(tensors).step(huge)
    assert all([np.isfinite(value).all() for value in snapshot(tensors)])


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("shape", [(3, 5), (300, 500)], ids=["small", "in stretches"])
def test_parameters_and_state_keep_their_memory(name, shape):
    (w,) = parameters(values((shape,)))
    array = values((shape,))[0]
    optimizer, other = make(name, [w]), make(name, [array])
    optimizer.step([np.ones(shape)])
    addresses = [w._raw.ctypes.data, *(b._raw.ctypes.data for b in optimizer._slots[0][0].buffers)]
    for _ in range(3):
        w.grad = np.ones(shape)
        optimizer.step()
        other.step([np.ones(shape)])
    other.step([np.ones(shape)])
    assert addresses == [w._raw.ctypes.data, *(b._raw.ctypes.data for b in optimizer._slots[0][0].buffers)]
    np.testing.assert_array_equal(w.detach().numpy(), array)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_clones_and_the_graph_keep_the_old_values(name):
    (w,) = parameters(values(((4, 3),)))
    before = snapshot([w])[0]
    clone, view, export = w.clone(), w.detach()[1:], w.detach().numpy()
    x = pb.tensor(np.ones((4, 3)), requires_grad=True)
    product = (x * w).sum()
    optimizer = make(name, [w])
    optimizer.step([np.ones((4, 3))])
    product.backward()
    for kept, expected in ((clone, before), (view, before[1:]), (x.grad, before)):
        np.testing.assert_array_equal(kept.detach().numpy(), expected)
    np.testing.assert_array_equal(export, before)
    assert not np.any(w.detach().numpy() == before)
    del clone, view, export, product
    address = w._raw.ctypes.data
    optimizer.step([np.ones((4, 3))])
    assert w._raw.ctypes.data == address  # copied once, not at every step


def test_a_clone_is_a_variable_of_its_own_after_a_step():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    clone = w.clone()
    pb.optim.SGD([w], lr=0.5).step([np.ones(2, np.float32)])
    (clone * clone).sum().backward()
    assert clone.requires_grad and clone.grad.tolist() == [2.0, 4.0] and w.grad is None


@pytest.mark.parametrize("layout", ["transposed", "strided"])
def test_arrays_that_are_not_contiguous(layout):
    base = values(((300, 500),))[0]
    array = base.T if layout == "transposed" else base[::2, ::3]
    expected = np.ascontiguousarray(array)
    gradient = np.random.default_rng(2).standard_normal(array.shape)
    for a in (array, expected):
        optimizer = pb.optim.Adam([a])
        for _ in range(2):
            optimizer.step([gradient])
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("size", [65_536, 65_537, 200_001])
def test_an_update_in_stretches_is_the_update_of_the_whole(size):
    rng = np.random.default_rng(0)
    start, gradient = rng.standard_normal((2, size))
    whole, parts = start.copy(), [part.copy() for part in np.array_split(start, 7)]
    for _ in range(2):
        pb.optim.Adam([whole], lr=0.1).step([gradient])
        pb.optim.Adam(parts, lr=0.1).step(np.array_split(gradient, 7))
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_empty_and_zero_dimensional_parameters():
    tensors = parameters([np.zeros((0, 3)), np.array(2.0)])
    for name in ("SGD", "Adam", "Lion", "LAMB", "Adafactor"):
        make(name, tensors).step([np.zeros((0, 3)), np.array(1.0)])
    assert tensors[0].shape == (0, 3) and tensors[1].item() < 2.0
