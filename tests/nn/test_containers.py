"""Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import optional

torch = optional("torch")


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


# -- errors name the layer ---------------------------------------------------------------------------


class Nested(pb.nn.Module):
    def __init__(self):
        self.layers = [pb.nn.Linear(2, 2), pb.nn.ReLU(), pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(2, 2))]
        self.heads = {"cat": pb.nn.Conv2d(1, 1, 3)}

    def forward(self, x, head=None):
        for layer in self.layers[: 2 if head else 3]:
            x = layer(x)
        return self.heads[head](x) if head else x


def test_a_shape_error_inside_a_sequential_names_the_layer():
    model = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.ReLU(), pb.nn.Linear(4, 1))
    with pytest.raises(
        pb.ShapeError, match=r"shape \(5, 3\).*, in 2 \(Linear\(in_features=4, out_features=1"
    ) as caught:
        model(pb.ones((5, 2)))
    assert "\n" not in str(caught.value)
    with pytest.raises(pb.ShapeError, match=r", in layers\.2\.1 \(Linear\("):
        Nested()(pb.ones((5, 2)))
    with pytest.raises(pb.ShapeError, match=r", in heads\.cat \(Conv2d\("):
        Nested()(pb.ones((5, 2)), head="cat")
    with pytest.raises(pb.ShapeError) as caught:
        pb.nn.Linear(2, 3)(pb.ones((5, 3)))
    assert "Linear(" not in str(caught.value)


def test_a_shape_error_names_the_layer_in_compiled_functions_and_transforms():
    model = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(4, 1))
    for call in (pb.compile(model), pb.compile(lambda x: model(x)), pb.grad(lambda x: model(x).sum())):
        with pytest.raises(pb.ShapeError, match=r", in 1 \(Linear\("):
            call(pb.ones((5, 2)))


def test_an_error_of_another_kind_inside_a_sequential_keeps_its_class_and_names_the_layer():
    model = pb.nn.Sequential(pb.nn.ReLU(), pb.nn.Embedding(3, 2))
    with pytest.raises(pb.DtypeError, match=r", in 1 \(Embedding\("):
        model(pb.ones(2))


def test_a_layer_that_is_not_held_by_its_caller_keeps_its_name():
    inner = pb.nn.Sequential(pb.nn.ReLU(), pb.nn.Linear(4, 1))

    class Outer(pb.nn.Module):
        def forward(self, x):
            return [lambda x: inner(x)][0](x)

    with pytest.raises(pb.ShapeError, match=r", in 1 \(Linear\("):
        Outer()(pb.ones((5, 2)))


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_tensor_of_another_library_handed_to_a_model_says_what_to_write(library):
    if library == "torch":
        x = pytest.importorskip("torch").ones(5, 2)
    else:
        x = pytest.importorskip("jax.numpy").ones((5, 2))
    device = f"{library}:cpu"
    model = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(3, 1))
    words = rf"in 0 \(Linear\(.*its input on '{device}': write `model\.to_device\('{device}'\)`, or `model\(pb\.asarray"
    for given in (x, pb.asarray(x)):
        with pytest.raises(pb.DeviceError, match=words):
            model(given)
    with pytest.raises(pb.DeviceError, match=r"write `model\.to_device"):
        model[0](x)
    expected = model(pb.ones((5, 2))).detach().numpy()
    found = model(pb.asarray(x, device="numpy")).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    moved = model.to_device(device)(x).detach().to_device("numpy").numpy()
    np.testing.assert_allclose(moved, expected, rtol=1e-5)
