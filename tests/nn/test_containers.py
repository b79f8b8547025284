"""Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pullback as pb
from pullback import nn


def names(module):
    return [name for name, _ in module.named_children()]


def test_sequential_applies_its_modules_in_order():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = pb.random.normal((5, 3))
    expected = model[2](model[1](model[0](x)))
    assert np.array_equal(model(x).detach(), expected.detach())
    assert names(model) == ["0", "1", "2"] and len(model) == 3 and model[-1] is model[2]
    assert nn.Sequential()(x) is x


def test_slices_hold_the_same_modules():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    part = model[1:]
    assert isinstance(part, nn.Sequential) and names(part) == ["0", "1"] and part[1] is model[2]
    assert not part.training and len(model[5:]) == 0
    assert list(model[::-1]) == list(model)[::-1]


def test_sequential_of_a_dict_keeps_the_names():
    model = nn.Sequential({"hidden": nn.Linear(3, 4), "act": nn.ReLU()})
    assert names(model) == ["hidden", "act"] and names(model[:1]) == ["hidden"]
    model.append(nn.Linear(4, 1))
    assert names(model) == ["hidden", "act", "2"]
    assert list(model.state_dict()) == ["hidden.weight", "hidden.bias", "2.weight", "2.bias"]
    assert model.hidden is model[0]


@pytest.mark.parametrize("container", [nn.Sequential, lambda *modules: nn.ModuleList(modules)])
def test_modules_can_be_added_replaced_and_removed(container):
    a, b, c, d = (nn.Identity() for _ in range(4))
    modules = container(a, b)
    assert modules.append(c) is modules
    modules.insert(1, d)
    assert list(modules) == [a, d, b, c] and names(modules) == ["0", "1", "2", "3"]
    modules[-1] = a
    del modules[0]
    assert list(modules) == [d, b, a] and names(modules) == ["0", "1", "2"]
    del modules[1:]
    assert list(modules) == [d]
    modules.extend([b, c])
    assert list(modules) == [d, b, c]


def test_module_list_is_named_as_torchs():
    ours = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    theirs = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_module_dict_behaves_as_a_dict():
    a, b = nn.Linear(2, 1), nn.Linear(2, 2)
    modules = nn.ModuleDict({"a": a})
    modules["b"] = b
    modules.update([("c", nn.ReLU())])
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"] and len(modules) == 3
    assert modules["b"] is b and "b" in modules and "training" not in modules and 3 not in modules
    assert dict(modules.items())["a"] is a and list(modules.values())[0] is a  # noqa: RUF015
    assert modules.pop("a") is a and "a" not in modules
    del modules["c"]
    assert list(modules.state_dict()) == ["b.weight", "b.bias"]
    with pytest.raises(KeyError, match="no module 'x'"):
        modules["x"]


@pytest.mark.parametrize("name", ["items", "training", "a.b", "", 3])
def test_names_that_would_hide_something_are_refused(name):
    with pytest.raises(pb.ConfigurationError, match="cannot name a module"):
        nn.ModuleDict({name: nn.ReLU()})


def test_what_is_no_module_is_refused_and_nothing_changes():
    model = nn.Sequential(nn.ReLU())
    with pytest.raises(pb.ConfigurationError, match=r"Write `Linear\(\.\.\.\)`"):
        model.append(nn.Linear)
    with pytest.raises(pb.ConfigurationError, match="must be a module, got function"):
        model.extend([nn.ReLU(), lambda x: x])
    with pytest.raises(pb.IndexingError, match="index 1 is out of range for 1 modules"):
        model[1]
    assert len(model) == 1 and names(model) == ["0"]
