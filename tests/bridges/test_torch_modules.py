"""Modules of PyTorch as modules of Pullback's."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import optional

torch = optional("torch")


def network(dtype=None, seed=0):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 2)]
    return torch.nn.Sequential(*layers).to(dtype or torch.float64)


def batch(rows=5, columns=3, seed=1):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def equal(ours, theirs):
    return np.array_equal(ours.detach().numpy(), theirs.detach().numpy())


def test_parameters_are_leaves_on_the_same_memory():
    theirs = network()
    model = pb.from_torch(theirs)
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    for (_, ours), other in zip(model.named_parameters(), theirs.parameters()):
        assert ours.requires_grad and ours.is_leaf and ours.device == "torch:cpu"
        assert ours.data.data_ptr() == other.data_ptr()
    assert set(model.state_dict()) == set(theirs.state_dict())
    assert "Linear(in_features=3" in repr(model)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_gradients_are_those_of_pytorch(device):
    theirs, x = network(), batch()
    reference = copy.deepcopy(theirs)
    model = pb.from_torch(theirs)
    x_ours = pb.asarray(x, device=device).set_requires_grad(True)
    y = model(x_ours)
    (y * y).sum().backward()
    x_theirs = torch.tensor(x, requires_grad=True)
    reference(x_theirs).square().sum().backward()
    assert y.device == device and x_ours.grad.device == device
    assert np.allclose(x_ours.grad.numpy(), x_theirs.grad)
    for ours, other in zip(model.parameters(), reference.parameters()):
        assert np.allclose(ours.grad.numpy(), other.grad)
    for name, value in reference.state_dict().items():
        assert equal(model.state_dict()[name], value), name


def test_gradients_by_parameters_are_those_of_central_differences():
    model = pb.from_torch(network()).eval()
    names = [name for name, _ in model.named_parameters()]
    values = [p.detach().numpy() for p in model.parameters()]
    x = pb.asarray(batch())

    def loss(*values):
        tensors = dict(zip(names, [pb.asarray(v).to_device("torch:cpu") for v in values]))
        return (pb.nn.functional_call(model, tensors, x) ** 2).sum()

    assert pb.gradcheck(loss, tuple(values), order=2)
    assert all(equal(p, pb.asarray(v)) for p, v in zip(model.parameters(), values))  # it was not changed


def test_modules_are_trees():
    model = pb.from_torch(network()).eval()
    x = pb.asarray(batch())
    loss = lambda model: (model(x) ** 2).sum()
    gradients = pb.grad(loss)(model)
    before = loss(model).item()
    loss(model).backward()
    for ours, gradient in zip(model.parameters(), pb.tree.leaves(gradients)):
        assert np.allclose(ours.grad.numpy(), gradient.numpy())
    smaller = pb.tree.map(lambda p, g: p - 0.01 * g, model, gradients)
    assert smaller is not model and loss(smaller).item() < before == loss(model).item()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_training_goes_as_in_pytorch(name):
    theirs = network()
    reference = copy.deepcopy(theirs)
    model = pb.nn.Sequential(pb.from_torch(theirs))
    ours = getattr(pb.optim, name)(model.parameters(), lr=0.01)
    other = getattr(torch.optim, name)(reference.parameters(), lr=0.01)
    for step in range(5):
        x = batch(seed=step)
        loss = (model(pb.asarray(x)) ** 2).mean()
        ours.zero_grad()
        loss.backward()
        ours.step()
        other.zero_grad()
        expected = reference(torch.tensor(x)).square().mean()
        expected.backward()
        other.step()
        assert np.isclose(loss.item(), expected.item(), rtol=1e-9)
    for key, value in reference.state_dict().items():
        assert np.allclose(theirs.state_dict()[key], value, rtol=1e-9), key


# -- both sides see what either writes ----------------------------------------------------------------


def test_what_pullback_writes_reaches_the_torch_module():
    theirs = torch.nn.Linear(2, 1)
    model = pb.from_torch(theirs)
    x = torch.ones(1, 2)
    with pb.no_grad():
        model.weight[...] = 2.0
        model.bias -= model.bias
    assert theirs(x).item() == 4  # as soon as it is called
    model.load_state_dict({"weight": np.full((1, 2), 3.0), "bias": np.ones(1)})
    assert theirs.state_dict()["weight"].tolist() == [[3, 3]]
    with pb.no_grad():
        model.weight[...] = 5.0
    assert model.torch_module.weight.tolist() == [[5, 5]]
    assert theirs.weight.data_ptr() == model.weight.data.data_ptr()


def test_a_part_of_the_torch_module_has_the_new_values_too():
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 1))
    model = pb.from_torch(theirs)
    with pb.no_grad():
        for p in model.parameters():
            p[...] = 1.0
    del model, p
    assert theirs[0](torch.ones(2)).item() == 3


def test_what_pytorch_writes_is_seen():
    theirs = torch.nn.Linear(2, 1)
    model = pb.from_torch(theirs)
    with torch.no_grad():
        theirs.weight.fill_(2.0)
    assert model.weight.tolist() == [[2, 2]]
    theirs.load_state_dict({"weight": torch.full((1, 2), 3.0), "bias": torch.zeros(1)})
    assert model(pb.ones((1, 2))).item() == 6
    model.weight.accumulate_grad(pb.ones((1, 2), device="torch:cpu"))
    theirs.double()  # other arrays
    assert model(pb.ones((1, 2), dtype=pb.float64)).item() == 6
    assert model.weight.dtype == pb.float64 and model.weight.grad.dtype == pb.float64 and model.weight.requires_grad


def test_loading_into_the_torch_module_after_a_step_is_not_undone():
    theirs = torch.nn.Linear(2, 1)
    model = pb.from_torch(theirs)
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    model(pb.ones((1, 2))).sum().backward()
    optimizer.step()
    theirs.load_state_dict({"weight": torch.zeros(1, 2), "bias": torch.ones(1)})
    assert model(pb.ones((1, 2))).item() == 1 and model.weight.tolist() == [[0, 0]]


def test_writes_of_both_sides_are_an_error():
    theirs = torch.nn.Linear(2, 1)
    model = pb.from_torch(theirs)
    with pb.no_grad():
        model.weight[...] = 2.0
    with torch.no_grad():
        theirs.weight.fill_(3.0)
    with pytest.raises(pb.ConfigurationError, match="'weight' was changed both by PyTorch and by Pullback"):
        model(pb.ones((1, 2)))


def test_values_that_somebody_holds_stay():
    model = pb.from_torch(network())
    x = pb.asarray(batch())
    saved = model.state_dict()
    before = {name: value.numpy().copy() for name, value in saved.items()}
    loss = (model(x) ** 2).sum()
    loss.backward()
    pb.optim.SGD(model.parameters(), lr=0.1).step()
    model(x)
    for name, value in saved.items():
        assert np.array_equal(value.numpy(), before[name]), name
        assert not np.array_equal(model.state_dict()[name].numpy(), before[name]), name


def test_a_graph_is_right_after_a_step():
    model = pb.from_torch(torch.nn.Linear(2, 1))
    x = pb.tensor([[1.0, 2.0]], requires_grad=True)
    weight = model.weight.tolist()
    y = model(x).sum()
    y.backward(retain_graph=True)
    pb.optim.SGD(model.parameters(), lr=0.1).step()
    x.grad = None
    y.backward()
    assert x.grad.tolist() == weight


# -- what torch modules have ---------------------------------------------------------------------------


def test_modes_reach_the_torch_module():
    theirs = network()
    model = pb.nn.Sequential(pb.from_torch(theirs))
    x = pb.asarray(batch())
    model.eval()
    before = model.state_dict()["0.1.running_mean"].tolist()
    y = model(x)
    assert not theirs.training and not theirs[1].training
    assert equal(y, theirs(torch.tensor(batch()))) and model.state_dict()["0.1.running_mean"].tolist() == before
    model.train()
    model(x)
    assert theirs[1].training and model.state_dict()["0.1.running_mean"].tolist() != before
    theirs[1].eval()  # a decision of PyTorch's, which stays
    model(x)
    assert not theirs[1].training
    assert not pb.from_torch(network().eval()).training


def test_buffers_are_counted_and_shared():
    theirs = network()
    model = pb.from_torch(theirs)
    for _ in range(3):
        model(pb.asarray(batch()))
    buffers = dict(model.named_buffers())
    assert buffers["1.num_batches_tracked"].item() == 3 == theirs[1].num_batches_tracked
    assert equal(buffers["1.running_mean"], theirs[1].running_mean)
    model.load_state_dict({"1.running_mean": np.full(4, 7.0)}, strict=False)
    model.eval()(pb.asarray(batch()))
    assert theirs[1].running_mean.tolist() == [7] * 4


def test_forward_mode_runs_the_module_once():
    theirs = network()
    model, reference = pb.from_torch(theirs), copy.deepcopy(theirs)
    x, direction = batch(), batch(seed=2)
    value, tangent = pb.jvp(model, (x,), (direction,))
    with torch.no_grad():
        low, middle, high = [reference(torch.tensor(x + step * direction)) for step in (-1e-6, 0.0, 1e-6)]
    assert theirs[1].num_batches_tracked == 1  # `torch.func.jvp` refuses to run batch norm at all
    assert np.allclose(value, middle) and np.allclose(tangent, (high - low) / 2e-6, rtol=1e-6, atol=1e-8)


def test_autocast_of_pytorch():
    model = pb.from_torch(torch.nn.Linear(2, 1))
    with torch.autocast("cpu", torch.bfloat16):
        y = model(pb.ones((3, 2), device="torch:cpu"))
    y.sum().backward()
    assert y.dtype == pb.bfloat16 and model.weight.grad.dtype == pb.float32
    assert model.weight.grad.tolist() == [[3, 3]]


def test_buffers_that_are_assigned_anew_or_not_saved():
    class Average(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("mask", torch.ones(2), persistent=False)

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x.detach()
            return x * self.mask + self.mean

    theirs = Average()
    model = pb.from_torch(theirs)
    model(pb.tensor([2.0, 4.0]))
    assert model.mean.tolist() == [1, 2] == theirs.mean.tolist()
    assert model(pb.tensor([2.0, 4.0])).tolist() == [3.5, 7]
    assert list(model.state_dict()) == ["mean"] and [name for name, _ in model.named_buffers()] == ["mean", "mask"]
    assert list(model.parameters()) == []


def test_shared_parameters_are_one_variable():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 3)
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, i):
            return self.head(self.embedding(i))

    theirs = Tied()
    reference = copy.deepcopy(theirs)
    model = pb.from_torch(theirs)
    (weight,) = model.parameters()
    i = np.array([0, 3, 3])
    model(pb.asarray(i)).sum().backward()
    reference(torch.tensor(i)).sum().backward()
    assert np.allclose(weight.grad.numpy(), reference.head.weight.grad)
    assert list(model.state_dict()) == ["embedding.weight", "head.weight"]
    pb.optim.SGD([weight], lr=0.1).step()
    assert theirs.state_dict()["head.weight"].data_ptr() == theirs.state_dict()["embedding.weight"].data_ptr()
    assert theirs.head.weight is theirs.embedding.weight
    gradient = pb.grad(lambda m: m(pb.asarray(i)).sum())(pb.from_torch(reference))
    assert np.allclose(pb.tree.leaves(gradient)[0].numpy(), reference.head.weight.grad)


def test_bridges_to_one_module_and_to_its_parts_share_variables():
    theirs = network()
    whole, again, part = pb.from_torch(theirs), pb.from_torch(theirs), pb.from_torch(theirs[0])
    assert all(one is other for one, other in zip(whole.parameters(), again.parameters()))
    assert part.weight is dict(whole.named_parameters())["0.weight"]
    optimizer = pb.optim.SGD(whole.parameters(), lr=0.1)
    x = pb.asarray(batch())
    (part(x).sum() + whole.eval()(x).sum()).backward()
    before = part.weight.tolist()
    optimizer.step()
    assert part.weight.tolist() != before and equal(part(x), theirs[0](torch.tensor(batch())))
    assert equal(again.eval()(x), whole(x))
    wrapped = pb.from_torch(torch.nn.Sequential(theirs))  # made after the step
    assert equal(dict(wrapped.named_parameters())["0.0.weight"], theirs[0].weight)


def test_another_bridge_does_not_see_the_values_of_a_call():
    theirs = network().eval()
    whole, part = pb.from_torch(theirs), pb.from_torch(theirs[0])
    x = pb.asarray(batch())
    before = part.weight.tolist()
    zeros = {name: pb.zeros(p.shape, dtype=pb.float64) for name, p in whole.named_parameters()}
    assert not pb.nn.functional_call(whole, zeros, x).detach().numpy().any()
    assert part.weight.tolist() == before == theirs[0].weight.tolist()


def test_frozen_parameters():
    theirs = network()
    theirs[0].requires_grad_(False)
    model = pb.from_torch(theirs).train()
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert names == ["1.weight", "1.bias", "3.weight", "3.bias"] and len(list(model.parameters())) == 6
    (model(pb.asarray(batch())) ** 2).sum().backward()
    assert dict(model.named_parameters())["0.weight"].grad is None
    model.freeze().unfreeze("0.*")
    (model(pb.asarray(batch())) ** 2).sum().backward()
    assert dict(model.named_parameters())["0.weight"].grad is not None


def test_dropout_takes_its_numbers_from_pytorch():
    theirs = torch.nn.Dropout(0.5)
    model = pb.from_torch(theirs)
    torch.manual_seed(3)
    x = pb.ones(100).set_requires_grad(True)
    y = model(x)
    torch.manual_seed(3)
    assert equal(y, theirs(torch.ones(100)))
    y.sum().backward()
    assert np.array_equal(x.grad.numpy(), y.detach().numpy())  # the same mask
    assert equal(model.eval()(x), torch.ones(100))


def test_recurrent_attention_and_embedding_layers():
    torch.manual_seed(0)
    modules = [
        (torch.nn.LSTM(3, 4, batch_first=True), (2, 5, 3), lambda y: y[0].sum() + y[1][1].sum()),
        (torch.nn.GRU(3, 4), (2, 5, 3), lambda y: y[0].sum()),
        (torch.nn.Conv2d(2, 3, 3), (2, 2, 5, 5), lambda y: (y * y).sum()),
        (torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (2, 5, 4), lambda y: (y**3).sum()),
    ]
    for theirs, shape, loss in modules:
        reference = copy.deepcopy(theirs)
        model = pb.from_torch(theirs)
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        loss(model(pb.asarray(x))).backward()
        loss(reference(torch.tensor(x))).backward()
        for ours, other in zip(model.parameters(), reference.parameters()):
            assert np.allclose(ours.grad.numpy(), other.grad, rtol=1e-4, atol=1e-5), type(theirs).__name__


def test_hooks_of_the_torch_module_are_called():
    theirs, seen = torch.nn.Linear(2, 1), []
    theirs.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    theirs.register_full_backward_hook(lambda module, gin, gout: seen.append(gout[0].tolist()))
    model = pb.from_torch(theirs)
    model(pb.ones((1, 2)).set_requires_grad(True)).sum().backward()
    assert seen == [(1, 1), [[1.0]]]


def test_devices_and_dtypes():
    theirs = network(torch.float32)
    model = pb.from_torch(theirs)
    x = pb.asarray(batch().astype(np.float32))
    expected = model.eval()(x)
    model.to_device("numpy")
    assert {p.device for p in model.parameters()} == {"numpy"}
    y = model(x)
    y.sum().backward()
    assert equal(y, expected) and dict(model.named_parameters())["0.weight"].grad.device == "numpy"
    pb.optim.SGD(model.parameters(), lr=0.1).step()
    assert equal(model(x), model.torch_module(torch.tensor(x.numpy())))
    model.train()(x)
    assert {b.device for b in model.buffers()} == {"numpy"}
    assert equal(dict(model.named_buffers())["1.running_mean"], theirs[1].running_mean)
    model.to_device("torch:cpu").astype(pb.float64)
    assert model(pb.asarray(batch())).dtype == pb.float64 and theirs[0].weight.dtype == torch.float64
    half = pb.from_torch(torch.nn.Linear(2, 1)).astype(pb.bfloat16)
    half(pb.ones((3, 2), dtype=pb.bfloat16, device="torch:cpu")).sum().backward()
    assert half.weight.grad.dtype == pb.bfloat16 and half.weight.grad.tolist() == [[3, 3]]


def test_copies_are_independent():
    model = pb.from_torch(network()).freeze("0.*")
    x = pb.asarray(batch())
    model(x).sum().backward()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [p.requires_grad for p in other.parameters()] == [p.requires_grad for p in model.parameters()]
        assert equal(other.eval()(x), model.eval()(x))
        before = model(x)
        with pb.no_grad():
            for p in other.parameters():
                p[...] = 0.0
        assert equal(model(x), before) and not other(x).detach().numpy().any()
        with torch.no_grad():
            for p in other.torch_module.parameters():
                p.fill_(1.0)
        assert equal(model(x), before)
    deep = copy.deepcopy(model)
    assert equal(dict(deep.named_parameters())["3.weight"].grad, dict(model.named_parameters())["3.weight"].grad)


def test_keywords_and_trees():
    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, inputs, *, shift=0.0):
            return {"sum": (inputs["a"] + inputs["b"][0]) * self.scale + shift, "shape": None}

    model = pb.from_torch(Pair())
    result = model({"a": pb.ones(2), "b": [pb.ones(2)]}, shift=1.0)
    result["sum"].sum().backward()
    assert result["sum"].detach().tolist() == [5, 5]
    assert result["shape"] is None and model.scale.grad.item() == 4


def test_threads_share_a_module():
    model = pb.from_torch(network()).eval()
    x = pb.asarray(batch())
    expected = pb.grad(lambda m: (m(x) ** 2).sum())(model)
    found = []

    def work():
        for _ in range(5):
            found.append(pb.grad(lambda m: (m(x) ** 2).sum())(model))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    for gradients in found:
        for one, other in zip(pb.tree.leaves(gradients), pb.tree.leaves(expected)):
            assert equal(one, other)


def test_nothing_is_held():
    theirs = network()
    model = pb.from_torch(theirs)
    inside = []
    theirs[2].register_forward_hook(lambda module, args, out: inside.append(weakref.ref(out)))
    loss = (model(pb.asarray(batch())) ** 2).sum()
    assert inside[0]() is not None
    loss.backward()
    assert inside[0]() is None
    gone = weakref.ref(theirs), weakref.ref(model)
    del theirs, model, loss
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_what_cannot_be_bridged():
    with pytest.raises(pb.ConfigurationError, match="'weight' has no shape yet"):
        pb.from_torch(torch.nn.LazyLinear(2))
    odd = torch.nn.Module()
    odd.register_parameter("freeze", torch.nn.Parameter(torch.ones(1)))
    with pytest.raises(pb.ConfigurationError, match="'freeze' would hide"):
        pb.from_torch(odd)
