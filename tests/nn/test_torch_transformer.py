"""A language model of PyTorch's layers and the same one of ours: the state moves over, logits and gradients agree."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from .against_torch import assert_close

torch = pytest.importorskip("torch")

VOCABULARY, LENGTH, WIDTH, HEADS, HIDDEN, LAYERS = 53, 12, 32, 4, 64, 2


class Theirs(torch.nn.Module):
    def __init__(self, norm_first, activation):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.position = torch.nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
        )
        self.encoder = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(length)
        x = self.embedding(tokens) + self.position[:length]
        return self.head(self.norm(self.encoder(x, mask=mask, is_causal=True)))


class Ours(pb.nn.Module):
    def __init__(self, norm_first, activation):
        self.embedding = pb.nn.Embedding(VOCABULARY, WIDTH)
        self.position = pb.nn.Parameter(pb.random.normal((LENGTH, WIDTH), std=0.1))
        layer = pb.nn.TransformerEncoderLayer(
            WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
        )
        self.encoder = pb.nn.TransformerEncoder(layer, LAYERS)
        self.norm = pb.nn.LayerNorm(WIDTH)
        self.head = pb.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        return self.head(self.norm(self.encoder(x, is_causal=True)))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("norm_first", "activation"), [(False, "relu"), (True, "gelu")])
def test_logits_and_all_gradients_agree(norm_first, activation, training):
    torch.manual_seed(0)
    theirs, ours = Theirs(norm_first, activation).train(training), Ours(norm_first, activation).train(training)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    state = theirs.state_dict()
    assert list(state) == list(ours.state_dict())
    assert ours.load_state_dict(state) == ([], [])
    tokens, targets = (torch.randint(VOCABULARY, (3, LENGTH - 1)) for _ in range(2))

    expected = theirs(tokens)
    torch.nn.functional.cross_entropy(expected.flatten(0, 1), targets.flatten()).backward()
    actual = ours(tokens.numpy())
    pb.cross_entropy(actual.reshape(-1, VOCABULARY), targets.flatten().numpy()).backward()

    assert actual.dtype == pb.float32
    assert_close(actual, expected, "logits")
    gradients = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        assert float(parameter.grad.abs().max()) > 0
        assert_close(gradients[name].grad, parameter.grad, name)


def test_the_state_moves_back():
    theirs, ours = Theirs(False, "relu"), Ours(False, "relu")
    theirs.load_state_dict({name: torch.from_numpy(np.array(t.numpy())) for name, t in ours.state_dict().items()})
    tokens = torch.randint(VOCABULARY, (2, LENGTH))
    assert_close(ours(tokens.numpy()), theirs(tokens), "logits")
