"""Every layer, with PyTorch's state: outputs and all gradients equal PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional
from .against_torch import check

torch = optional("torch")

# name, arguments, options, shape of the input
LAYERS = [
    ("Linear", (5, 3), {}, (4, 2, 5)),
    ("Linear", (5, 3), {"bias": False}, (5,)),
    ("Linear", (1, 1), {}, (0, 1)),
    ("Identity", (54,), {"unused": 1}, (2, 3)),
    ("Flatten", (), {}, (2, 3, 1, 5)),
    ("Flatten", (), {"start_dim": 0, "end_dim": -2}, (2, 3, 1, 5)),
    ("Conv1d", (3, 4, 3), {"stride": 2, "padding": 1}, (2, 3, 9)),
    ("Conv1d", (4, 6, 3), {"groups": 2, "padding": "same", "dilation": 2}, (2, 4, 7)),
    ("Conv1d", (3, 4, 3), {"padding": 2, "padding_mode": "circular", "bias": False}, (3, 8)),
    ("Conv2d", (3, 4, (3, 2)), {"stride": (1, 2), "padding": (0, 1), "dilation": (2, 1)}, (2, 3, 7, 6)),
    ("Conv2d", (2, 2, 3), {"padding": 1, "padding_mode": "reflect"}, (1, 2, 5, 4)),
    ("Conv2d", (2, 2, (4, 2)), {"padding": "same", "padding_mode": "replicate", "dilation": 2}, (1, 2, 5, 6)),
    ("Conv2d", (2, 2, 3), {"padding": "valid", "padding_mode": "circular"}, (1, 2, 5, 6)),
    ("Conv3d", (2, 3, (1, 2, 3)), {"padding": (1, 0, 1)}, (2, 2, 3, 4, 5)),
    ("ConvTranspose1d", (3, 4, 3), {"stride": 2, "output_padding": 1}, (2, 3, 5)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2, "dilation": 2}, (1, 4, 3, 5)),
    ("ConvTranspose3d", (2, 3, 2), {"bias": False}, (1, 2, 2, 3, 2)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 8)),
    ("MaxPool1d", (2,), {"return_indices": True}, (2, 3, 8)),
    ("MaxPool2d", (3,), {"ceil_mode": True, "dilation": (1, 2)}, (2, 3, 8, 9)),
    ("MaxPool3d", (2,), {}, (1, 2, 4, 4, 5)),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, (2, 3, 8)),
    ("AvgPool2d", ((2, 3),), {"ceil_mode": True, "divisor_override": 5}, (2, 3, 7, 8)),
    ("AvgPool3d", (2,), {}, (1, 2, 4, 5, 4)),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 2, 7)),
    ("AdaptiveAvgPool2d", ((None, 2),), {}, (2, 2, 5, 7)),
    ("AdaptiveAvgPool3d", (2,), {}, (1, 2, 3, 4, 5)),
    ("AdaptiveMaxPool1d", (3,), {}, (2, 2, 7)),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, (2, 2, 5, 7)),
    ("AdaptiveMaxPool3d", (2,), {}, (1, 2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": 2}, (2, 3, 4)),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "linear"}, (2, 3, 5)),
    ("Upsample", (7,), {"mode": "linear", "align_corners": True}, (2, 3, 4)),
    ("Upsample", ((5, 3),), {}, (2, 3, 4, 2)),
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bilinear", "align_corners": False}, (2, 3, 4, 5)),
    ("Upsample", (None, 1.6, "bilinear", True), {"recompute_scale_factor": True}, (2, 3, 4, 5)),
    ("Upsample", ((6, 9),), {"mode": "bicubic"}, (1, 2, 4, 5)),
    ("Upsample", (), {"scale_factor": 2, "mode": "trilinear"}, (1, 2, 2, 3, 2)),
    ("LayerNorm", (5,), {}, (3, 2, 5)),
    ("LayerNorm", ((2, 5),), {"bias": False, "eps": 1e-3}, (3, 2, 5)),
    ("LayerNorm", (5,), {"elementwise_affine": False}, (5,)),
    ("RMSNorm", (5,), {}, (3, 2, 5)),
    ("RMSNorm", ((2, 5),), {"eps": 1e-2}, (3, 2, 5)),
    ("GroupNorm", (2, 6), {}, (3, 6, 5)),
    ("GroupNorm", (3, 6), {"affine": False}, (3, 6, 2, 3)),
    ("InstanceNorm1d", (3,), {"affine": True}, (2, 3, 5)),
    ("InstanceNorm1d", (3,), {"eps": 1.0}, (2, 3, 2)),
    ("InstanceNorm2d", (3,), {}, (3, 4, 5)),
    ("InstanceNorm3d", (3,), {"affine": True, "eps": 1e-3}, (2, 3, 2, 2, 3)),
    ("InstanceNorm1d", (3, 1e-5, 0.3, True, True), {}, (2, 3, 5)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True, "momentum": None}, (2, 3, 4, 5)),
    ("InstanceNorm3d", (3,), {"track_running_stats": True}, (3, 2, 2, 3)),
    ("BatchNorm1d", (3,), {}, (7, 3)),
    ("BatchNorm1d", (3,), {"momentum": None}, (4, 3, 5)),
    ("BatchNorm2d", (3,), {"momentum": 0.3, "eps": 1e-3}, (4, 3, 2, 5)),
    ("BatchNorm2d", (3,), {"affine": False}, (4, 3, 2, 5)),
    ("BatchNorm3d", (3,), {"track_running_stats": False}, (2, 3, 2, 1, 3)),
    ("ReLU", (), {}, (3, 4)),
    ("LeakyReLU", (), {"negative_slope": 0.2}, (3, 4)),
    ("LeakyReLU", (), {}, (3, 4)),
    ("ELU", (), {"alpha": 0.7}, (3, 4)),
    ("GELU", (), {}, (3, 4)),
    ("GELU", (), {"approximate": "tanh"}, (3, 4)),
    ("SiLU", (), {}, (3, 4)),
    ("Tanh", (), {}, (3, 4)),
    ("Sigmoid", (), {}, (3, 4)),
    ("LogSigmoid", (), {}, (3, 4)),
    ("Softplus", (), {"beta": 2.0}, (3, 4)),
    ("Softplus", (2.0, 0.5), {}, (3, 4)),
    ("ReLU6", (), {}, (3, 4)),
    ("Hardswish", (), {}, (3, 4)),
    ("SELU", (), {}, (3, 4)),
    ("Mish", (), {}, (3, 4)),
    ("PReLU", (), {}, (3, 4, 2)),
    ("PReLU", (4,), {"init": 0.1}, (3, 4, 2)),
    ("GLU", (), {}, (3, 4)),
    ("GLU", (1,), {}, (3, 4, 2)),
    ("Softmax", (), {"dim": 0}, (3, 4)),
    ("LogSoftmax", (), {"dim": 1}, (3, 4, 2)),
    ("Dropout", (0.0,), {}, (3, 4)),
    ("Dropout2d", (0.0,), {}, (3, 4, 2, 2)),
    ("GRU", (3, 4), {}, (5, 2, 3)),
    ("GRU", (3, 4), {"num_layers": 2, "bidirectional": True, "batch_first": True}, (2, 5, 3)),
    ("GRU", (3, 4), {"bias": False}, (5, 3)),
    ("LSTM", (3, 4), {}, (1, 2, 3)),
    ("LSTM", (3, 4), {"num_layers": 3, "bidirectional": True}, (5, 2, 3)),
    ("LSTM", (3, 4), {"num_layers": 2, "bias": False, "batch_first": True}, (2, 5, 3)),
    ("LSTM", (1, 1), {"batch_first": True, "bidirectional": True}, (4, 1)),
    ("RNN", (3, 4), {"num_layers": 2, "bidirectional": True}, (5, 2, 3)),
    ("RNN", (3, 4), {"nonlinearity": "relu", "batch_first": True}, (2, 5, 3)),
    ("GRUCell", (3, 4), {}, (2, 3)),
    ("GRUCell", (3, 4), {"bias": False}, (3,)),
    ("LSTMCell", (3, 4), {}, (2, 3)),
    ("RNNCell", (3, 4), {"nonlinearity": "relu"}, (2, 3)),
]


def label(value):
    return "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=label)
def test_layer_equals_torch(name, args, options, shape, dtype, training):
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options).to(getattr(torch, dtype)).train(training)
    ours = getattr(pb.nn, name)(*args, **options).astype(dtype).train(training)
    x = torch.randn(shape, dtype=getattr(torch, dtype))
    check(theirs, ours, x, steps=2 if "BatchNorm" in name or "InstanceNorm" in name else 1)


def test_hardsigmoid_equals_torch():
    x = torch.randn(3, 4)  # in double precision PyTorch's slope is 1/6 rounded to single precision
    check(torch.nn.Hardsigmoid(), pb.nn.Hardsigmoid(), x)


@pytest.mark.parametrize("name", ["GRU", "RNN", "GRUCell", "RNNCell"])
def test_recurrent_layer_goes_on_from_a_state(name):
    torch.manual_seed(0)
    is_cell = name.endswith("Cell")
    theirs = getattr(torch.nn, name)(3, 4).double()
    ours = getattr(pb.nn, name)(3, 4, dtype=pb.float64)
    x = torch.randn((2, 3) if is_cell else (5, 2, 3)).double()
    check(theirs, ours, x, torch.randn((2, 4) if is_cell else (1, 2, 4)).double())


@pytest.mark.parametrize("name", ["LSTM", "LSTMCell"])
def test_lstm_goes_on_from_a_state(name):
    torch.manual_seed(0)
    is_cell = name.endswith("Cell")
    theirs = getattr(torch.nn, name)(3, 4).double()
    ours = getattr(pb.nn, name)(3, 4, dtype=pb.float64)
    x = torch.randn((2, 3) if is_cell else (5, 2, 3)).double()
    state = tuple(torch.randn((2, 4) if is_cell else (1, 2, 4)).double() for _ in range(2))
    check(theirs, ours, x, state)


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding_equals_torch(padding_idx):
    torch.manual_seed(0)
    theirs = torch.nn.Embedding(6, 3, padding_idx=padding_idx).double()
    ours = pb.nn.Embedding(6, 3, padding_idx=padding_idx, dtype=pb.float64)
    if padding_idx is not None:
        assert (np.asarray(ours.weight.detach())[padding_idx] == 0).all()
    check(theirs, ours, torch.tensor([[1, 2, 2], [5, 0, 1]]))


LOSSES = [
    ("MSELoss", {}, False),
    ("MSELoss", {"reduction": "sum"}, False),
    ("L1Loss", {}, False),
    ("HuberLoss", {"delta": 0.3, "reduction": "none"}, False),
    ("SmoothL1Loss", {}, False),
    ("SmoothL1Loss", {"beta": 0.3, "reduction": "sum"}, False),
    ("KLDivLoss", {"reduction": "batchmean"}, False),
    ("KLDivLoss", {"reduction": "sum", "log_target": True}, False),
    ("NLLLoss", {"ignore_index": 1}, True),
    ("NLLLoss", {"weight": [0.5, 1.0, 2.0, 0.1], "reduction": "none"}, True),
    ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 1}, True),
    ("CrossEntropyLoss", {"weight": [0.5, 1.0, 2.0, 0.1]}, True),
    ("BCEWithLogitsLoss", {"pos_weight": [0.5, 1.0, 2.0, 0.1]}, False),
    ("BCEWithLogitsLoss", {"weight": [0.5, 1.0, 2.0, 0.1], "reduction": "sum"}, False),
]


@pytest.mark.parametrize(("name", "options", "classes"), LOSSES, ids=label)
def test_loss_equals_torch(name, options, classes):
    torch.manual_seed(0)
    their_options = {k: torch.tensor(v).double() if isinstance(v, list) else v for k, v in options.items()}
    our_options = {k: np.array(v) if isinstance(v, list) else v for k, v in options.items()}
    theirs, ours = getattr(torch.nn, name)(**their_options), getattr(pb.nn, name)(**our_options)
    target = torch.randint(4, (5,)) if classes else torch.rand(5, 4).double()
    check(theirs, ours, torch.randn(5, 4).double(), target)


def test_losses_of_probabilities_equal_torchs():
    torch.manual_seed(0)
    x, target = torch.rand(5, 4).double(), torch.rand(5, 4).double()
    check(torch.nn.BCELoss(), pb.nn.BCELoss(), x, target)
    weight = torch.rand(4).double()
    check(torch.nn.BCELoss(weight, reduction="sum"), pb.nn.BCELoss(weight.numpy(), "sum"), x, target)


@pytest.mark.parametrize(("options", "shape"), [({}, (3, 4, 2)), ({"dim": -1, "eps": 1e-3}, (3, 4))], ids=label)
def test_cosine_similarity_equals_torch(options, shape):
    torch.manual_seed(0)
    x, y = torch.randn(shape).double(), torch.randn(shape).double()
    check(torch.nn.CosineSimilarity(**options), pb.nn.CosineSimilarity(**options), x, y)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("shapes", [((2, 3, 4), (3, 1)), ((2, 3, 4), (4,)), ((1, 3, 4), (2, 1, 4)), ((4,), (4, 1, 4))])
def test_cosines_of_vectors_that_broadcasting_repeats(axis, shapes):
    torch.manual_seed(0)
    x, y = (torch.randn(shape).double() for shape in shapes)
    theirs = torch.nn.functional.cosine_similarity(x, y, axis)
    np.testing.assert_allclose(pb.cosine_similarity(x.numpy(), y.numpy(), axis), theirs, rtol=1e-12)
