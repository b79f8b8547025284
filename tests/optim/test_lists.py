"""Parameters of a library that has functions of lists: updated in place, in as many calls for many as for few."""

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import pending
from pullback.optim import slots
from tests.backends.installed import optional

torch = optional("torch")

OPTIMIZERS = {
    "sgd": lambda p: pb.optim.SGD(p, lr=0.1),
    "momentum": lambda p: pb.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: pb.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: pb.optim.Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True),
    "adamw": lambda p: pb.optim.AdamW(p, lr=0.1, maximize=True),
    "lion": lambda p: pb.optim.Lion(p, lr=0.1, weight_decay=0.1),
    "rmsprop": lambda p: pb.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "adagrad": lambda p: pb.optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1),
    "nadam": lambda p: pb.optim.NAdam(p, lr=0.1, weight_decay=0.1),
    "radam": lambda p: pb.optim.RAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True, maximize=True),
    "adafactor": lambda p: pb.optim.Adafactor(p, lr=0.1),
    "lamb": lambda p: pb.optim.LAMB(p, lr=0.1),
    "muon": lambda p: pb.optim.Muon(p, lr=0.1),
}
JOINED = ("sgd", "momentum", "nesterov", "adam", "adamw", "lion", "rmsprop", "adagrad", "nadam", "radam")


def parameters(count=3, dtype="float64", device="torch:cpu"):
    random = np.random.default_rng(0)
    shapes = [(3, 4), (5, 2), (2, 7)] * count
    arrays = [random.standard_normal(shape) for shape in shapes[:count]]
    return [pb.tensor(a, dtype=dtype, device=device, requires_grad=True) for a in arrays]


def gradients(params, step):
    random = np.random.default_rng(step)
    return [pb.tensor(random.standard_normal(p.shape), dtype=p.dtype, device=p.device) for p in params]


def addresses(optimizer, params):
    buffers = [b._raw for found in optimizer._slots for slot in found for b in slot.buffers]
    return [array.data_ptr() for array in [p._raw for p in params] + buffers]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_as_on_numpy_at_addresses_that_stay(name):
    torch.zeros(1)
    mine, reference = parameters(), parameters(device="numpy")
    optimizer, expected = OPTIMIZERS[name](mine), OPTIMIZERS[name](reference)
    for step in range(4):
        optimizer.step(gradients(mine, step))
        expected.step(gradients(reference, step))
        if step == 0:
            before = addresses(optimizer, mine)
    assert addresses(optimizer, mine) == before
    for a, b in zip(mine, reference):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_updated_in_float32_and_in_place(name, dtype):
    torch.zeros(1)
    mine = parameters(dtype=dtype)
    alone = [pb.tensor(p.detach(), requires_grad=True) for p in mine]
    optimizer, singles = OPTIMIZERS[name](mine), [OPTIMIZERS[name]([p]) for p in alone]
    for step in range(3):
        found = gradients(mine, step)
        optimizer.step(found)
        for single, g in zip(singles, found):
            single.step([g])
        if step == 0:
            before = addresses(optimizer, mine)
    assert addresses(optimizer, mine) == before
    for a, b in zip(mine, alone):
        assert a.detach().tolist() == b.detach().tolist()
        assert a.dtype == getattr(pb, dtype)


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_as_many_calls_for_many_parameters_as_for_few(name, dtype):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if "empty" not in str(function):
                self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    def calls(count):
        params = parameters(count, dtype)
        optimizer = OPTIMIZERS[name](params)
        optimizer.step(gradients(params, 0))
        found = gradients(params, 1)
        with Count() as counted:
            optimizer.step(found)
        return counted.names

    few, many = calls(2), calls(20)
    assert few == many
    assert 0 < len(many) < 20


def test_clones_and_lent_memory_keep_their_values():
    theirs = torch.ones(3)
    w = pb.asarray(theirs).set_requires_grad(True)
    v = pb.tensor([1.0, 2.0], device="torch:cpu", requires_grad=True)
    clone, view = v.clone(), v.detach()[:1]
    optimizer = pb.optim.SGD([w, v], lr=1.0)
    optimizer.step([pb.asarray(torch.ones(3)), pb.asarray(torch.ones(2))])
    assert theirs.tolist() == [1.0, 1.0, 1.0]
    assert w.detach().tolist() == [0.0, 0.0, 0.0]
    assert (clone.detach().tolist(), view.tolist()) == ([1.0, 2.0], [1.0])
    assert v.detach().tolist() == [0.0, 1.0]


def test_values_that_the_graph_needs_are_not_written_over():
    w = pb.tensor([2.0, 3.0], device="torch:cpu", requires_grad=True)
    loss = pb.sum(w * w)
    pb.optim.SGD([w], lr=1.0).step([pb.asarray(torch.ones(2))])
    loss.backward()
    assert w.grad.tolist() == [4.0, 6.0]


def test_large_parameters_are_updated_in_several_lists(monkeypatch):
    torch.zeros(1)
    monkeypatch.setattr(slots, "JOINED_BYTES", 100)
    mine, reference = parameters(7), parameters(7, device="numpy")
    for params in (mine, reference):
        optimizer = pb.optim.AdamW(params, lr=0.1)
        for step in range(2):
            optimizer.step(gradients(params, step))
    for a, b in zip(mine, reference):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


def test_parameters_of_several_dtypes_groups_and_ages():
    torch.zeros(1)

    def run(device):
        params = parameters(2, "float64", device) + parameters(2, "float32", device)
        optimizer = pb.optim.Adam([{"params": params[:3]}, {"params": params[3:], "lr": 0.5}], lr=0.1)
        for step in range(3):
            found = gradients(params, step)
            optimizer.step([None if step == 1 and i % 2 else g for i, g in enumerate(found)])
        return params

    for a, b in zip(run("torch:cpu"), run("numpy")):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)


def test_an_update_of_the_users_own_is_given_arrays():
    class Own(pb.optim.Adam):
        def update(self, xp, group, constants, w, g, buffers, spare, out):
            return w - 0.5 * g, *buffers

    params = parameters(2, "float32")
    before = [p.detach().numpy().copy() for p in params]
    found = gradients(params, 0)
    Own(params).step(found)
    for p, b, g in zip(params, before, found):
        np.testing.assert_allclose(p.detach().numpy(), b - 0.5 * g.numpy(), rtol=1e-6)


def test_a_step_on_gradients_that_are_not_finite_changes_nothing_on_a_device(monkeypatch):
    from pullback.backends.torch_backend import BACKEND

    monkeypatch.setattr(type(BACKEND), "is_on_device", lambda self, raw: True)
    w = pb.tensor([0.0, 1.0], device="torch:cpu", requires_grad=True)
    optimizer = pb.optim.AdamW([w], lr=0.1)
    pb.sum(pb.sqrt(w)).backward()
    assert len(pending.checks.waiting) == 1
    with pytest.raises(pb.NumericalInstabilityError, match="`sqrt`"):
        optimizer.step()
    assert w.detach().tolist() == [0.0, 1.0]
    assert optimizer._slots[0][0].step == 0


# -- gradients and averages ----------------------------------------------------------------------------


def filled(values, device="torch:cpu", dtype="float32"):
    """A container with gradients of these values."""
    params = [pb.tensor(np.zeros(np.shape(v)), dtype=dtype, device=device, requires_grad=True) for v in values]
    found = pb.Gradients()
    for p, v in zip(params, values):
        found[p] = pb.tensor(np.asarray(v), dtype=dtype, device=device)
    return found


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_norm_is_right_for_large_and_small_values(scale, dtype):
    torch.zeros(1)
    found = filled([[3.0 * scale, 0.0], np.zeros((0, 2)), [[4.0 * scale]]], dtype=dtype)
    assert found.global_norm().item() == pytest.approx(5.0 * scale, rel=1e-6)
    assert found.clip_global_norm(1.0).item() == pytest.approx(5.0 * scale, rel=1e-6)
    assert found.global_norm().item() == pytest.approx(min(1.0, 5.0 * scale), rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.clip_global_norm(0.5), lambda g: g.clip_value(0.7), lambda g: g.scale(-3.0), lambda g: g.zero(),
    ],
)  # fmt: skip
def test_containers_change_in_place_and_leave_clones_alone(change):
    torch.zeros(1)
    values = [np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 2, 4)]
    mine, reference = filled(values, dtype="float64"), filled(values, "numpy", "float64")
    mine.scale(1.0)  # what was assigned is the caller's as well
    before = [g._raw.data_ptr() for g in mine]
    change(mine)
    change(reference)
    assert [g._raw.data_ptr() for g in mine] == before
    for a, b in zip(mine, reference):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    clones = [g.clone() for g in mine]
    kept = [c.tolist() for c in clones]
    mine.scale(2.0)
    assert [c.tolist() for c in clones] == kept


def test_zero_grad_keeps_the_memory():
    torch.zeros(1)
    params = parameters(3, "float32")
    optimizer = pb.optim.SGD(params)
    optimizer.zero_grad()  # nobody has one
    sum(pb.sum(p * p) for p in params).backward()
    before = [p.grad._raw.data_ptr() for p in params]
    optimizer.zero_grad()
    assert [p.grad._raw.data_ptr() for p in params] == before
    assert not any(p.grad._raw.any() for p in params)
    sum(pb.sum(p * p) for p in params).backward()
    assert [p.grad._raw.data_ptr() for p in params] == before  # added to in place


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_averages_move_together_and_in_place(dtype):
    torch.zeros(1)
    mine, reference = parameters(4, dtype), parameters(4, dtype, "numpy")
    averages = []
    for params in (mine, reference):
        average = pb.optim.ExponentialMovingAverage(params, decay=0.9)
        before = [a._raw.data_ptr() for a in average._averages.values()] if params is mine else []
        state = average.state_dict()
        for step in range(3):
            with pb.no_grad():
                for p, g in zip(params, gradients(params, step)):
                    p += g
            average.update()
        averages.append(average)
        if params is mine:
            after = [a._raw.data_ptr() for a in average._averages.values()]
            assert before != after  # `state` shares the arrays that it was given
            average.update()
            assert [a._raw.data_ptr() for a in average._averages.values()] == after
            del state
        else:
            average.update()
    for a, b in zip(averages[0]._averages.values(), averages[1]._averages.values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6 if dtype == "float16" else 1e-12)
