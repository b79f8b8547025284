"""Hooks on modules, and `Module.apply`: what PyTorch's do, also in compiled functions."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import optional

torch = optional("torch")


class Named(nn.Module):
    """A user's module: keyword arguments, and a layer of the library's."""

    def __init__(self):
        self.layer = nn.Linear(3, 3, dtype=pb.float64)

    def forward(self, x, scale=1.0):
        return self.layer(x) * scale


def model(seed=0):
    pb.random.seed(seed)
    return nn.Sequential(Named(), nn.Tanh(), Named())


X = pb.asarray(np.random.default_rng(0).standard_normal((2, 3)))


# -- what PyTorch does -----------------------------------------------------------------------------


def calls_of_hooks(library, tensor):
    said = []

    class Part(library.Module):
        def forward(self, x, y=0.0):
            said.append(("forward", float(x.sum()), y))
            return x + y

    part = Part()
    part.register_forward_hook(lambda m, args, out: said.append(("after", len(args), float(out.sum()))))
    part.register_forward_hook(lambda m, args, out: out * 2)
    part.register_forward_hook(
        lambda m, args, kwargs, out: said.append(("with", sorted(kwargs), float(out.sum()))), with_kwargs=True
    )
    part.register_forward_hook(lambda m, args, out: said.append("first"), prepend=True)
    part.register_forward_pre_hook(lambda m, args: args[0] + 1)
    part.register_forward_pre_hook(lambda m, args: said.append(("before", float(args[0].sum()))))
    part.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"y": kwargs["y"] + 1}) if kwargs else None, with_kwargs=True
    )
    part.register_forward_pre_hook(lambda m, args: (args[0] * 3,), prepend=True)
    said.append(float(part(tensor((2,))).sum()))
    said.append(float(part(tensor((2,)), y=1.0).sum()))
    return said


def test_hooks_are_called_as_in_torch():
    assert calls_of_hooks(nn, pb.ones) == calls_of_hooks(torch.nn, torch.ones)


def order_of_apply(library):
    inner = library.Sequential(library.Linear(2, 2), library.ReLU())
    whole = library.Sequential(inner, library.ModuleList([library.Tanh(), library.Linear(2, 3)]))
    said = []
    assert whole.apply(lambda m: said.append(type(m).__name__)) is whole
    return said


def test_apply_goes_through_parts_first_as_in_torch():
    assert order_of_apply(nn) == order_of_apply(torch.nn)


def test_apply_meets_a_shared_module_once():
    shared = nn.Linear(2, 2)
    said = []
    nn.Sequential(shared, nn.ReLU(), shared).apply(said.append)
    assert [type(m).__name__ for m in said] == ["Linear", "ReLU", "Sequential"]


# -- handles ---------------------------------------------------------------------------------------


def test_a_handle_removes_its_hook_alone_and_once():
    part, said = nn.ReLU(), []
    hook = lambda module, args, output: said.append(1)
    first, second = part.register_forward_hook(hook), part.register_forward_hook(hook)
    part(X)
    first.remove()
    first.remove()
    part(X)
    assert len(said) == 3
    second.remove()
    part(X)
    assert len(said) == 3 and "_hooks" not in vars(part)


def test_a_handle_is_a_context_manager_also_where_an_error_ends_it():
    part = nn.ReLU()
    with pytest.raises(KeyError), part.register_forward_pre_hook(lambda module, args: {}["missing"]):
        part(X)
    np.testing.assert_array_equal(part(X), np.maximum(X, 0))


def test_a_hook_may_remove_itself_and_a_handle_does_not_keep_the_module():
    part, said = nn.ReLU(), []

    def once(module, args, output):
        said.append(1)
        handle.remove()

    handle = part.register_forward_hook(once)
    part.register_forward_hook(lambda module, args, output: said.append(2))
    part(X)
    part(X)
    assert said == [1, 2, 2]
    del part
    gc.collect()
    assert handle._module() is None
    handle.remove()


def test_copies_have_hooks_of_their_own():
    part, said = nn.Linear(3, 3, dtype=pb.float64), []
    handle = part.register_forward_hook(lambda module, args, output: said.append(module))
    copies = [copy.copy(part), copy.deepcopy(part)]
    handle.remove()
    for each in (part, *copies):
        each(X)
    assert [id(module) for module in said] == [id(module) for module in copies]


def test_a_hook_is_no_part_of_the_model():
    net = model()
    before = list(net.state_dict())
    net[0].register_forward_hook(nn.Linear(3, 3).forward)
    net[1].register_forward_pre_hook(nn.Linear(3, 3))
    assert list(net.state_dict()) == before and len(list(net.modules())) == 6
    assert repr(net) == repr(model())


def test_errors_say_what_a_hook_is():
    with pytest.raises(pb.ConfigurationError, match="a hook is a function, got int"):
        nn.ReLU().register_forward_hook(3)
    part = nn.ReLU()
    part.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(pb.ConfigurationError, match="a pair of the arguments"):
        part(X)


# -- transforms ------------------------------------------------------------------------------------


def doubled(module, args, output):
    return output * 2.0


def test_gradients_go_through_hooks():
    net = model()
    expected = pb.grad(lambda m: (m[2](m[1](m[0](X) * 2.0)) ** 2).sum())(net)
    net[0].layer.register_forward_hook(doubled)
    found = pb.grad(lambda m: (m(X) ** 2).sum())(net)
    for ours, theirs in zip(found.parameters(), expected.parameters()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    (net(X) ** 2).sum().backward()
    np.testing.assert_allclose(net[0].layer.weight.grad, next(iter(expected.parameters())), rtol=1e-12)


@pytest.mark.parametrize("place", ["user's", "library's"])
def test_a_compiled_function_sees_that_hooks_come_and_go(place):
    net = model()
    part = net[0] if place == "user's" else net[0].layer

    def run(x):
        with pb.no_grad():
            return net(x)

    compiled = pb.compile(run)
    plain = np.array(compiled(X))
    for _ in range(2):
        with part.register_forward_hook(doubled):
            np.testing.assert_allclose(compiled(X), run(X), rtol=1e-12)
            assert not np.allclose(compiled(X), plain)
            with part.register_forward_pre_hook(lambda module, args: args[0] + 1.0):
                np.testing.assert_allclose(compiled(X), run(X), rtol=1e-12)
        np.testing.assert_allclose(compiled(X), plain, rtol=1e-12)


def test_what_a_hook_reads_is_guarded():
    net, factor = model(), [2.0]
    net[0].register_forward_hook(lambda module, args, output: output * factor[0])

    def run(x):
        with pb.no_grad():
            return net(x)

    compiled = pb.compile(run)
    for factor[0] in (2.0, 3.0, 2.0):
        np.testing.assert_allclose(compiled(X), run(X), rtol=1e-12)


def test_a_compiled_training_step_calls_hooks():
    results = []
    for wrap in (pb.compile, lambda f: f):
        net = model()
        net[2].register_forward_hook(doubled)
        optimizer = pb.optim.SGD(net.parameters(), lr=0.1)

        def step(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = wrap(step)
        results.append([float(step(X)) for _ in range(4)])
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_what_cannot_be_compiled_is_refused():
    net, kept = model(), []
    handle = net[0].register_forward_hook(lambda module, args, output: kept.append(output))
    with pytest.raises(pb.TraceError):
        pb.compile(lambda x: net(x))(X)
    handle.remove()
    with pytest.raises(pb.TraceError, match="Do it before the call"):
        pb.compile(lambda x: net[0].register_forward_hook(doubled) and net(x))(X)
    assert net[0]._hooks is None
