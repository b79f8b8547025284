"""Modules: what becomes a parameter or a buffer, how the tree is walked, copied, frozen and printed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import pullback as pb
from pullback import nn


class Block(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(pb.ones((2, 2)))
        self.scale = pb.tensor([1.0, 2.0])
        self.layers = [nn.Linear(2, 3), (nn.Linear(3, 2, bias=False),)]
        self.heads = {"left": nn.Linear(2, 1), "right": nn.ReLU()}
        self.extras = [nn.Parameter(pb.zeros(1)), pb.zeros(3)]
        self.rate = 0.5
        self.last = None

    def forward(self, x):
        x = x @ self.weight * self.scale
        self.last = self.layers[1][0](self.layers[0](x))
        return self.heads["left"](self.last) + self.extras[0]


PARAMETERS = ["weight", "extras.0", "layers.0.weight", "layers.0.bias", "layers.1.0.weight", "heads.left.weight",
              "heads.left.bias"]  # fmt: skip


def names(pairs):
    return [name for name, _ in pairs]


def test_tensors_and_modules_are_found_wherever_they_are():
    block = Block()
    assert names(block.named_parameters()) == PARAMETERS
    assert names(block.named_buffers()) == ["scale", "extras.1"]
    assert names(block.named_modules()) == ["", "layers.0", "layers.1.0", "heads.left", "heads.right"]
    assert names(block.named_children()) == names(block.named_modules())[1:]
    assert [id(p) for p in block.parameters()] == [id(p) for _, p in block.named_parameters()]
    assert next(block.modules()) is block and len(list(block.children())) == 4
    assert [b.shape for b in block.buffers()] == [(2,), (3,)]
    assert block.num_parameters() == 4 + 1 + 9 + 6 + 3


def test_an_activation_that_is_kept_belongs_to_no_model():
    block = Block()
    before = list(block.state_dict())
    block(pb.ones((1, 2)))
    assert block.last.requires_grad
    assert list(block.state_dict()) == before


def test_a_private_constant_is_no_buffer_but_a_private_variable_is_a_parameter():
    module = nn.Module()
    module._cache = pb.zeros(3)
    module._hidden = nn.Parameter(pb.zeros(3))
    assert list(module.state_dict()) == ["_hidden"]


def test_a_name_stays_a_parameter():
    layer = nn.Linear(2, 2).freeze()
    assert names(layer.named_parameters()) == ["weight", "bias"]
    layer.weight = pb.zeros((2, 2))
    assert names(layer.named_parameters()) == ["weight", "bias"] and names(layer.named_buffers()) == []
    del layer.weight
    layer.weight = pb.zeros((2, 2))
    assert names(layer.named_buffers()) == ["weight"]


def test_a_constant_that_becomes_a_variable_is_learned():
    module = nn.Module()
    module.scale = pb.ones(2)
    module.scale.requires_grad = True
    assert names(module.named_parameters()) == ["scale"]


def test_registered_buffers_and_parameters():
    module = nn.Module()
    module.register_buffer("saved", pb.ones(2))
    module.register_buffer("unsaved", np.ones(3), persistent=False)
    module.register_buffer("nothing", None)
    module.register_parameter("frozen", pb.ones(4))
    assert list(module.state_dict()) == ["frozen", "saved"]
    assert names(module.named_buffers()) == ["saved", "unsaved"]
    assert names(module.named_parameters()) == ["frozen"]
    module.nothing = pb.zeros(1)
    assert names(module.named_buffers()) == ["saved", "unsaved", "nothing"]
    with pytest.raises(pb.ConfigurationError, match="'forward'"):
        module.register_buffer("forward", pb.ones(1))
    with pytest.raises(pb.GradientError, match="detach"):
        module.register_buffer("tracked", nn.Parameter(pb.ones(1)))


def test_a_parameter_is_a_variable_of_its_own():
    source = np.ones(3)
    tracked = pb.tensor(source, requires_grad=True)
    for data in (source, tracked, tracked * 2):
        parameter = nn.Parameter(data)
        with pb.no_grad():
            parameter += 5.0
        assert parameter.is_leaf and parameter.requires_grad
    assert (source == 1).all() and (np.asarray(tracked.detach()) == 1).all()
    assert nn.Parameter(source, dtype=pb.float32).dtype == pb.float32


def test_no_constructor_needs_to_be_called():
    class Bare(nn.Module):
        def forward(self, x):
            return x

    class WithArguments(nn.Module):
        def __init__(self, width, *, bias):
            self.linear = nn.Linear(width, width, bias=bias)

    class AsInTorch(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

    assert Bare().training and Bare()(3) == 3
    assert names(AsInTorch().named_parameters()) == ["linear.weight", "linear.bias"]
    assert names(WithArguments(2, bias=False).named_parameters()) == ["linear.weight"]


@dataclass(eq=False)
class Network(nn.Module):
    width: int
    layers: list = field(default_factory=list)

    def __post_init__(self):
        self.layers = [nn.Linear(self.width, self.width)]


@dataclass(frozen=True)
class Fixed(nn.Module):
    weight: pb.Tensor
    offset: pb.Tensor


def test_dataclasses_are_modules():
    assert names(Network(3).named_parameters()) == ["layers.0.weight", "layers.0.bias"]
    fixed = Fixed(nn.Parameter(pb.ones(2)), pb.zeros(2))
    assert names(fixed.named_parameters()) == ["weight"] and names(fixed.named_buffers()) == ["offset"]
    assert len(pb.tree.leaves(fixed)) == 1
    assert not fixed.eval().training


def test_a_module_without_forward_says_so():
    class Forgetful(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Forgetful has no `forward`.*def forward"):
        Forgetful()(1)


def test_a_module_without_constructor_takes_no_arguments():
    with pytest.raises(TypeError, match=r"ReLU\(\) takes no arguments.*ReLU\(\)\(x\)"):
        nn.ReLU(pb.ones(3))


def test_shared_modules_and_tied_parameters_come_once():
    class Tied(nn.Module):
        def __init__(self):
            self.embedding = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight
            self.again = self.embedding

    tied = Tied()
    assert names(tied.named_parameters()) == ["embedding.weight"]
    assert names(tied.named_modules()) == ["", "embedding", "head"]
    assert tied.num_parameters() == 15
    assert not tied.freeze("head.*").embedding.weight.requires_grad
    assert list(tied.state_dict()) == ["embedding.weight", "head.weight", "again.weight"]


def test_a_module_inside_itself_is_walked_once():
    outer, inner = nn.Module(), nn.Linear(2, 2)
    outer.inner, inner.outer = inner, outer
    assert names(outer.named_modules()) == ["", "inner"]
    assert list(outer.state_dict()) == ["inner.weight", "inner.bias"]


def test_train_and_eval_reach_every_module():
    block = Block()
    assert block.eval() is block
    assert not any(module.training for module in block.modules())
    assert block.train() is block
    assert all(module.training for module in block.modules())


def test_frozen_parameters_get_no_gradient_and_keep_nothing():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    assert model.freeze("0.*") is model
    out = model(pb.ones((5, 3)))
    out.sum().backward()
    assert {name: p.grad is None for name, p in model.named_parameters()} == {
        "0.weight": True, "0.bias": True, "2.weight": False, "2.bias": False,
    }  # fmt: skip
    assert not model[:2](pb.ones((5, 3))).requires_grad
    model.unfreeze("*.bias")
    assert [p.requires_grad for p in model.parameters()] == [False, True, True, True]
    model.freeze()
    assert not model(pb.ones((5, 3))).requires_grad
    model.unfreeze()
    assert all(p.requires_grad for p in model.parameters())


def test_the_input_of_a_frozen_layer_is_not_kept():
    import weakref

    layer = nn.Linear(3, 3, bias=False).freeze()
    x = pb.tensor(np.ones((2, 3), np.float32), requires_grad=True)
    hidden = x * 2.0
    kept = weakref.ref(hidden._raw)
    out = layer(hidden)
    del hidden
    assert out.requires_grad and kept() is None


def test_a_pattern_without_match_is_refused_and_nothing_is_frozen():
    model = nn.Sequential(nn.Linear(3, 4))
    with pytest.raises(pb.ConfigurationError, match=r"'0\.wieght'.*Close: '0\.weight'"):
        model.freeze("0.bias", "0.wieght")
    assert all(p.requires_grad for p in model.parameters())


def test_zero_grad_keeps_the_memory():
    layer = nn.Linear(2, 2)
    layer(pb.ones((1, 2))).sum().backward()
    address = layer.weight.grad.data.ctypes.data
    layer.zero_grad()
    assert layer.weight.grad.data.ctypes.data == address
    assert (np.asarray(layer.weight.grad) == 0).all()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_deep_copies_are_independent(copied):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), Block()).freeze("0.weight")
    model[0].bias = model[2].layers[0].bias = nn.Parameter(pb.zeros(2))  # tied
    other = copied(model)
    assert names(other.named_parameters()) == names(model.named_parameters())
    assert other[0].bias is other[2].layers[0].bias
    assert not other[0].weight.requires_grad and other[0].bias.requires_grad
    before = {name: np.array(t) for name, t in model.state_dict().items()}
    with pb.no_grad():
        for tensor in (*other.parameters(), *other.buffers()):
            tensor += 1
    other.freeze()
    assert all(np.array_equal(before[name], t) for name, t in model.state_dict().items())
    assert model[0].bias.requires_grad
    other[0].extra = nn.Parameter(pb.zeros(1))
    assert "0.extra" not in names(model.named_parameters())


def test_a_shallow_copy_shares_tensors_but_not_names():
    layer = nn.Linear(2, 2)
    other = copy.copy(layer)
    other.extra = pb.zeros(1)
    assert other.weight is layer.weight
    layer.extra = nn.Parameter(pb.zeros(1))
    assert names(layer.named_parameters()) == ["weight", "bias", "extra"] and names(layer.named_buffers()) == []


def test_repr_shows_the_tree():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Dropout(0.25)))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Dropout(p=0.25)\n"
        "  )\n"
        ")"
    )


def test_repr_joins_equal_layers():
    text = repr(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3))
    assert "(0-2): 3 x TransformerEncoderLayer(" in text
    assert text.count("linear1") == 1


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(2, 3), nn.Embedding(4, 2, padding_idx=1), nn.Flatten(), nn.Conv2d(2, 4, 3, padding="same"),
        nn.ConvTranspose1d(2, 4, 3), nn.MaxPool2d(2), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(1), nn.LayerNorm(3),
        nn.RMSNorm(3), nn.GroupNorm(1, 2), nn.BatchNorm1d(3), nn.InstanceNorm1d(2), nn.Dropout(), nn.LeakyReLU(),
        nn.ELU(), nn.GELU(), nn.Softplus(), nn.Softmax(), nn.GRUCell(2, 3), nn.LSTM(2, 3, bidirectional=True),
        nn.MSELoss(), nn.PReLU(3), nn.GLU(), nn.CosineSimilarity(),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_repr_names_the_options(layer):
    text = repr(layer)
    assert text.startswith(type(layer).__name__ + "(") and len(text) > len(type(layer).__name__) + 2
