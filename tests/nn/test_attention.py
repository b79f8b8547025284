"""Attention and transformer layers, with PyTorch's state: outputs and all gradients equal PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional
from .against_torch import assert_close, check, loaded

torch = optional("torch")

SAMPLES, QUERIES, KEYS, WIDTH, HEADS = 3, 4, 5, 6, 2
MASKS = ["none", "padding", "boolean", "per head", "added", "padding and boolean", "added padding"]


def pair(**options):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(WIDTH, HEADS, **options).double()
    return theirs, pb.nn.MultiheadAttention(WIDTH, HEADS, dtype=pb.float64, **options)


def masks(queries, keys):
    """Masks of every form; each query sees a key (PyTorch gives NaN otherwise)."""
    padding = torch.zeros(SAMPLES, keys, dtype=torch.bool)
    padding[0, -2:] = padding[1, -1] = True
    boolean = torch.rand(queries, keys) < 0.3
    boolean[:, 0] = False
    per_head = torch.rand(SAMPLES * HEADS, queries, keys) < 0.3
    per_head[:, :, 0] = False
    added = torch.randn(queries, keys).double()
    added[boolean] = -torch.inf
    made = {
        "none": {},
        "padding": {"key_padding_mask": padding},
        "boolean": {"attn_mask": boolean},
        "per head": {"attn_mask": per_head},
        "added": {"attn_mask": added},
        "padding and boolean": {"key_padding_mask": padding, "attn_mask": boolean},
        "added padding": {
            "key_padding_mask": torch.randn(SAMPLES, keys).double(),
            "attn_mask": torch.randn(queries, keys).double(),
        },
    }
    assert list(made) == MASKS
    return made


@pytest.mark.parametrize("average", [True, False], ids=["averaged", "per head"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mask", MASKS)
def test_self_attention_equals_torch(mask, batch_first, average):
    theirs, ours = pair(batch_first=batch_first)
    x = torch.randn((SAMPLES, KEYS, WIDTH) if batch_first else (KEYS, SAMPLES, WIDTH)).double()

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = theirs

        def forward(self, x, **options):
            return self.inner(x, x, x, **options)

    class Ours(pb.nn.Module):
        def __init__(self):
            self.inner = ours

        def forward(self, x, **options):
            return self.inner(x, x, x, **options)

    check(Both(), Ours(), x, average_attn_weights=average, **masks(KEYS, KEYS)[mask])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 3, "vdim": 7}, {"kdim": 3, "bias": False}], ids=str)
def test_attention_between_sequences_equals_torch(options, mask):
    theirs, ours = pair(batch_first=True, **options)
    query = torch.randn(SAMPLES, QUERIES, WIDTH).double()
    key = torch.randn(SAMPLES, KEYS, options.get("kdim", WIDTH)).double()
    value = torch.randn(SAMPLES, KEYS, options.get("vdim", WIDTH)).double()
    check(theirs, ours, query, key, value, **masks(QUERIES, KEYS)[mask])


def test_attention_without_samples_equals_torch():
    theirs, ours = pair()
    padding = torch.tensor([False, True, False, False, True])
    inputs = [torch.randn(n, WIDTH).double() for n in (QUERIES, KEYS, KEYS)]
    check(theirs, ours, *inputs, key_padding_mask=padding)


@pytest.mark.parametrize("mask", ["none", "padding", "boolean", "added"])
def test_causal_attention_needs_no_mask(mask):
    theirs, ours = pair(batch_first=True)
    loaded(theirs, ours)
    x = torch.randn(SAMPLES, KEYS, WIDTH).double()
    given = masks(KEYS, KEYS)[mask]
    future = torch.triu(torch.ones(KEYS, KEYS, dtype=torch.bool), 1)
    both = given.get("attn_mask", torch.zeros(KEYS, KEYS, dtype=torch.bool))
    if both.dtype == torch.bool:
        both = both | future
    else:
        both = both.masked_fill(future, -torch.inf)
    expected, _ = theirs(x, x, x, **{**given, "attn_mask": both})
    t = pb.asarray(x.numpy())
    actual, shares = ours(t, t, t, is_causal=True, need_weights=False, **{k: v.numpy() for k, v in given.items()})
    assert shares is None
    assert_close(actual, expected, "output")


def test_a_query_that_sees_nothing_is_finite_with_finite_gradients():
    attention = pb.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = pb.random.normal((1, 3, WIDTH))
    out, shares = attention(x, x, x, key_padding_mask=np.ones((1, 3), bool))
    (out.sum() + shares.sum()).backward()
    assert (np.asarray(shares.detach()) == 0).all()
    assert all(np.isfinite(np.asarray(p.grad)).all() for p in attention.parameters() if p.grad is not None)


def test_attention_drops_shares_in_training_alone():
    attention = pb.nn.MultiheadAttention(WIDTH, HEADS, dropout=0.5, batch_first=True)
    x = pb.random.normal((2, 8, WIDTH))
    pb.random.seed(0)
    first, second = attention(x, x, x)[0], attention(x, x, x)[0]
    assert not np.allclose(first.detach(), second.detach())
    attention.eval()
    assert np.array_equal(attention(x, x, x)[0].detach(), attention(x, x, x)[0].detach())


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([(2, 4, WIDTH), (2, 5, WIDTH), (2, 6, WIDTH)], {}),
        ([(2, 4, WIDTH), (3, 5, WIDTH), (3, 5, WIDTH)], {}),
        ([(2, 4, 5), (2, 5, WIDTH), (2, 5, WIDTH)], {}),
        ([(4, WIDTH), (2, 5, WIDTH), (2, 5, WIDTH)], {}),
        ([(2, 4, WIDTH), (2, 5, WIDTH), (2, 5, WIDTH)], {"attn_mask": np.zeros((5, 4), bool)}),
        ([(2, 4, WIDTH), (2, 5, WIDTH), (2, 5, WIDTH)], {"key_padding_mask": np.zeros((5, 2), bool)}),
    ],
    ids=str,
)
def test_attention_refuses_shapes_that_do_not_fit(inputs, options):
    attention = pb.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with pytest.raises(pb.ShapeError, match="MultiheadAttention"):
        attention(*(pb.zeros(shape) for shape in inputs), **options)


def test_attention_refuses_a_mask_of_integers():
    attention = pb.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = pb.zeros((1, 3, WIDTH))
    with pytest.raises(pb.DtypeError, match="True hides"):
        attention(x, x, x, attn_mask=np.zeros((3, 3), np.int64))


@pytest.mark.parametrize("norm_first", [True, False], ids=["norm first", "norm last"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False, "layer_norm_eps": 1e-2}], ids=str)
def test_encoder_layer_equals_torch(options, activation, norm_first):
    torch.manual_seed(0)
    functions = (torch.tanh, pb.tanh) if activation == "tanh" else (activation, activation)
    shared = {"dropout": 0.0, "norm_first": norm_first, **options}
    theirs = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 7, activation=functions[0], **shared).double()
    ours = pb.nn.TransformerEncoderLayer(WIDTH, HEADS, 7, activation=functions[1], dtype=pb.float64, **shared)
    first, second = (SAMPLES, KEYS) if options.get("batch_first") else (KEYS, SAMPLES)
    given = masks(KEYS, KEYS)["padding and boolean"]
    x = torch.randn(first, second, WIDTH).double()
    check(theirs, ours, x, src_mask=given["attn_mask"], src_key_padding_mask=given["key_padding_mask"])


@pytest.mark.parametrize("norm_first", [True, False], ids=["norm first", "norm last"])
@pytest.mark.parametrize(("activation", "mask"), [("relu", "boolean"), ("gelu", "added"), ("tanh", "per head")])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False, "layer_norm_eps": 1e-2}], ids=str)
def test_decoder_layer_equals_torch(options, activation, mask, norm_first):
    torch.manual_seed(0)
    functions = (torch.tanh, pb.tanh) if activation == "tanh" else (activation, activation)
    shared = {"dropout": 0.0, "norm_first": norm_first, **options}
    theirs = torch.nn.TransformerDecoderLayer(WIDTH, HEADS, 7, activation=functions[0], **shared).double()
    ours = pb.nn.TransformerDecoderLayer(WIDTH, HEADS, 7, activation=functions[1], dtype=pb.float64, **shared)
    tgt, memory = torch.randn(QUERIES, SAMPLES, WIDTH).double(), torch.randn(KEYS, SAMPLES, WIDTH).double()
    if options.get("batch_first"):
        tgt, memory = tgt.swapaxes(0, 1), memory.swapaxes(0, 1)
    of_targets, of_memory = (torch.zeros(SAMPLES, length, dtype=torch.bool) for length in (QUERIES, KEYS))
    of_targets[0, -1] = of_memory[1, -2:] = True
    if mask == "added":
        of_targets, of_memory = (torch.where(hides, -torch.inf, 0.0).double() for hides in (of_targets, of_memory))
    given = {
        "tgt_mask": masks(QUERIES, QUERIES)[mask]["attn_mask"],
        "memory_mask": masks(QUERIES, KEYS)[mask]["attn_mask"],
        "tgt_key_padding_mask": of_targets,
        "memory_key_padding_mask": of_memory,
    }
    check(theirs, ours, tgt, memory, **given)


@pytest.mark.parametrize("which", ["tgt", "memory"])
def test_a_decoder_equals_torch_and_needs_no_causal_mask(which):
    torch.manual_seed(0)
    layer = torch.nn.TransformerDecoderLayer(WIDTH, HEADS, 7, dropout=0.0, batch_first=True)
    theirs = torch.nn.TransformerDecoder(layer, 2, torch.nn.LayerNorm(WIDTH)).double()
    layer = pb.nn.TransformerDecoderLayer(WIDTH, HEADS, 7, dropout=0.0, batch_first=True)
    ours = pb.nn.TransformerDecoder(layer, 2, pb.nn.LayerNorm(WIDTH)).astype(pb.float64)
    tgt, memory = torch.randn(SAMPLES, KEYS, WIDTH).double(), torch.randn(SAMPLES, KEYS, WIDTH).double()
    causal = torch.nn.Transformer.generate_square_subsequent_mask(KEYS, dtype=torch.float64)
    given = {f"{which}_mask": causal, f"{which}_is_causal": True}
    check(theirs, ours, tgt, memory, ours_given={f"{which}_is_causal": True}, **given)


def test_layers_of_a_decoder_are_copies():
    layer = pb.nn.TransformerDecoderLayer(WIDTH, HEADS, 7)
    decoder = pb.nn.TransformerDecoder(layer, 2)
    tensors = [*layer.parameters(), *decoder.parameters()]
    assert len({id(t) for t in tensors}) == len(tensors) == 3 * 18


def test_a_compiled_decoder_gives_the_same():
    layer = pb.nn.TransformerDecoderLayer(WIDTH, HEADS, 7, dropout=0.0, batch_first=True, dtype=pb.float64)
    tgt, memory = pb.random.normal((2, 4, WIDTH), dtype="float64"), pb.random.normal((2, 5, WIDTH), dtype="float64")

    def decoded(tgt, memory):
        with pb.no_grad():
            return layer(tgt, memory, tgt_is_causal=True)

    np.testing.assert_allclose(pb.compile(decoded)(tgt, memory), decoded(tgt, memory), rtol=1e-12, atol=1e-13)


def test_layers_of_an_encoder_are_copies():
    layer = pb.nn.TransformerEncoderLayer(WIDTH, HEADS, 7)
    encoder = pb.nn.TransformerEncoder(layer, 3)
    tensors = [*layer.parameters(), *encoder.parameters()]
    assert len({id(t) for t in tensors}) == len(tensors) == 4 * 12
    with pb.no_grad():
        encoder.layers[0].linear1.weight += 1.0
    assert np.array_equal(encoder.layers[1].linear1.weight.detach(), layer.linear1.weight.detach())


@pytest.mark.parametrize(
    "make",
    [
        lambda: pb.nn.MultiheadAttention(6, 4),
        lambda: pb.nn.MultiheadAttention(6, 2, dropout=1.5),
        lambda: pb.nn.TransformerEncoderLayer(6, 2, activation="softsign"),
        lambda: pb.nn.TransformerDecoderLayer(6, 2, activation="softsign"),
    ],
)
def test_bad_options_are_refused(make):
    with pytest.raises(pb.ConfigurationError):
        make()
