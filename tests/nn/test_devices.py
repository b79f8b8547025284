"""Models on other devices and in other dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends import strict
from ..backends.installed import require


class Language(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(7, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1)
        self.norm = nn.BatchNorm1d(8)
        self.gru = nn.GRU(8, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, tokens):
        x = self.encoder(self.embedding(tokens), is_causal=True)
        x = self.norm(x.reshape(-1, 8)).reshape(x.shape)
        return self.head(self.gru(x)[0])


class Small(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(7, 4)
        self.layers = [nn.Linear(4, 3), nn.BatchNorm1d(3)]

    def forward(self, tokens):
        return self.layers[1](self.layers[0](self.embedding(tokens[:, 0])))


def outcome(model, device):
    tokens = pb.asarray(np.array([[1, 2, 3], [4, 5, 6]]), device=device)
    out = model(tokens)
    (out**2).sum().backward()
    return [
        np.asarray(t.detach().to_device("numpy"))
        for t in (out, *(p.grad for p in model.parameters()), *model.buffers())
    ]


@pytest.mark.parametrize(
    ("device", "model"),
    [("torch:cpu", Language), (strict.DEVICE, Language), ("jax:cpu", Small)],  # JAX compiles every operation first
)
def test_a_model_gives_the_same_on_every_device(device, model):
    require(device)
    pb.random.seed(0)
    here, there = model().astype(pb.float64), model().astype(pb.float64).to_device(device)
    there.load_state_dict(here.state_dict())
    assert {t.device for t in there.state_dict().values()} == {device}
    for actual, expected in zip(outcome(there, device), outcome(here, "numpy")):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


def test_moving_keeps_the_tensors_and_moves_their_gradients():
    require("torch:cpu")
    layer = nn.Linear(2, 2)
    layer(pb.ones((1, 2))).sum().backward()
    weight, gradient, clone = layer.weight, np.array(layer.weight.grad), layer.weight.clone()
    assert layer.to_device("torch:cpu") is layer
    assert layer.weight is weight and weight.device == weight.grad.device == "torch:cpu"
    assert clone.device == "numpy"
    assert np.array_equal(weight.grad.to_device("numpy"), gradient)
    layer(pb.ones((1, 2), device="torch:cpu")).sum().backward()
    assert np.array_equal(weight.grad.to_device("numpy"), 2 * gradient)


def test_converting_keeps_the_tensors_and_leaves_integers():
    norm = nn.BatchNorm1d(2).freeze("bias")
    tensors = [*norm.parameters(), *norm.buffers()]
    norm(pb.random.normal((4, 2))).sum().backward()
    assert norm.astype(pb.float64) is norm
    assert all(a is b for a, b in zip(tensors, [*norm.parameters(), *norm.buffers()]))
    assert norm.weight.dtype == norm.weight.grad.dtype == norm.running_var.dtype == pb.float64
    assert norm.num_batches_tracked.dtype == pb.int64
    assert norm.weight.requires_grad and not norm.bias.requires_grad
    norm(pb.asarray(np.random.default_rng(0).normal(size=(4, 2)))).sum().backward()
    assert norm.weight.grad.dtype == pb.float64


def test_only_floating_point_dtypes_are_taken():
    layer = nn.Linear(2, 2)
    with pytest.raises(pb.DtypeError, match="int64"):
        layer.astype(pb.int64)
    with pytest.raises(pb.DeviceError):
        layer.to_device("nowhere")
    assert layer.weight.dtype == pb.float32 and layer.weight.device == "numpy"
