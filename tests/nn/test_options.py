"""Options of layers: dropout, modes of batch normalisation, dtypes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import require


@pytest.mark.parametrize("p", [0.2, 0.5, 1.0])
def test_dropout_zeroes_and_scales_in_training_alone(p):
    pb.random.seed(0)
    layer, x = nn.Dropout(p), pb.ones((100, 100))
    out = np.asarray(layer(x))
    assert abs((out == 0).mean() - p) < 0.02
    np.testing.assert_allclose(out[out != 0], 1 / (1 - p) if p < 1 else 0.0, rtol=1e-6)
    assert np.array_equal(layer.eval()(x), x)


@pytest.mark.parametrize(
    ("layer", "shape"), [(nn.Dropout1d, (40, 50, 3)), (nn.Dropout2d, (40, 50, 2, 3)), (nn.Dropout3d, (40, 50, 2, 1, 3))]
)
def test_channels_are_dropped_whole(layer, shape):
    pb.random.seed(0)
    x = pb.tensor(np.ones(shape), requires_grad=True)
    out = layer(0.25)(x)
    values = np.asarray(out.detach()).reshape(shape[0] * shape[1], -1)
    assert (values == values[:, :1]).all()
    assert abs((values[:, 0] == 0).mean() - 0.25) < 0.05
    np.testing.assert_allclose(values.max(), 4 / 3)
    out.sum().backward()
    assert np.array_equal(x.grad, out.detach())
    assert np.array_equal(layer(0.25).eval()(x).detach(), x.detach())
    assert layer(0.0)(x[0]).shape == shape[1:]


def test_dropout_between_recurrent_layers_acts_in_training_alone():
    layer, x = nn.LSTM(3, 4, num_layers=2, dropout=0.5), pb.random.normal((5, 2, 3))
    assert not np.array_equal(layer(x)[0].detach(), layer(x)[0].detach())
    layer.eval()
    plain = nn.LSTM(3, 4, num_layers=2)
    plain.load_state_dict(layer.state_dict())
    assert np.array_equal(layer(x)[0].detach(), plain(x)[0].detach())


def test_the_steps_of_a_cell_are_those_of_the_layer():
    for name in ("RNN", "GRU", "LSTM"):
        layer, cell = getattr(nn, name)(3, 4), getattr(nn, name + "Cell")(3, 4)
        cell.load_state_dict({key.removesuffix("_l0"): t for key, t in layer.state_dict().items()})
        x, state = pb.random.normal((6, 2, 3)), None
        for t, expected in enumerate(layer(x)[0]):
            state = cell(x[t], state)
            h = state[0] if name == "LSTM" else state
            np.testing.assert_allclose(h.detach(), expected.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: nn.Linear(2, 2, **k), lambda **k: nn.Embedding(2, 2, **k), lambda **k: nn.Conv1d(2, 2, 1, **k),
        lambda **k: nn.ConvTranspose1d(2, 2, 1, **k), lambda **k: nn.LayerNorm(2, **k), lambda **k: nn.RMSNorm(2, **k),
        lambda **k: nn.GroupNorm(1, 2, **k), lambda **k: nn.InstanceNorm1d(2, affine=True, **k),
        lambda **k: nn.BatchNorm1d(2, **k), lambda **k: nn.MultiheadAttention(2, 1, **k),
        lambda **k: nn.TransformerEncoderLayer(2, 1, 2, **k), lambda **k: nn.TransformerDecoderLayer(2, 1, 2, **k),
        lambda **k: nn.LSTM(2, 2, **k),
        lambda **k: nn.RNN(2, 2, **k), lambda **k: nn.RNNCell(2, 2, **k),
    ],
)  # fmt: skip
def test_constructors_take_dtype_and_device(make):
    require("torch:cpu")
    layer = make(dtype=pb.float64, device="torch:cpu")
    for name, tensor in layer.state_dict().items():
        assert tensor.device == "torch:cpu"
        assert tensor.dtype == (pb.int64 if name == "num_batches_tracked" else pb.float64)
    assert {t.dtype for t in make().parameters()} == {pb.float32}


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Dropout(1.5), lambda: nn.Dropout2d(-0.1), lambda: nn.GELU("exact"), lambda: nn.GroupNorm(2, 3),
        lambda: nn.Embedding(3, 2, padding_idx=3), lambda: nn.Conv2d(3, 4, 3, groups=2),
        lambda: nn.Conv2d(2, 4, 3, padding_mode="mirror"), lambda: nn.LayerNorm(()), lambda: nn.LayerNorm(0),
        lambda: nn.LSTM(3, 4, dropout=2.0), lambda: nn.LSTM(3, 0), lambda: nn.RNN(3, 4, nonlinearity="gelu"),
        lambda: nn.RNNCell(3, 4, nonlinearity="gelu"), lambda: nn.ConvTranspose2d(3, 4, 3, groups=2),
    ],
)  # fmt: skip
def test_bad_options_are_refused(make):
    with pytest.raises(pb.ConfigurationError):
        make()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(3, 2), (4, 2)), (nn.BatchNorm1d(3), (3,)), (nn.BatchNorm2d(3), (4, 3)), (nn.BatchNorm1d(3), (4, 2)),
        (nn.BatchNorm1d(3), (1, 3)), (nn.InstanceNorm1d(3), (2, 4, 5)), (nn.InstanceNorm1d(3), (2, 3, 1)),
        (nn.Dropout2d(), (3,)), (nn.LSTM(3, 4), (5, 2, 4)), (nn.LSTM(3, 4), (3,)), (nn.LSTM(3, 4), (0, 2, 3)),
        (nn.GRUCell(3, 4), (2, 4)), (nn.Conv1d(3, 4, 2), (2, 2, 5)), (nn.LayerNorm(3), (2, 4)),
        (nn.Flatten(3), (2, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else str(value),
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused(layer, shape):
    with pytest.raises(pb.ShapeError):
        layer(pb.zeros(shape))


@pytest.mark.parametrize(
    ("layer", "state"),
    [
        (nn.LSTM(3, 4), pb.zeros((1, 2, 4))), (nn.LSTM(3, 4), (pb.zeros((1, 2, 4)), pb.zeros((1, 2, 3)))),
        (nn.GRU(3, 4), pb.zeros((2, 2, 4))), (nn.GRU(3, 4, num_layers=2), pb.zeros((1, 2, 4))),
    ],
)  # fmt: skip
def test_states_that_do_not_fit_are_refused(layer, state):
    with pytest.raises(pb.ShapeError, match="the state must be"):
        layer(pb.zeros((5, 2, 3)), state)


def test_running_statistics_keep_their_memory():
    norm = nn.BatchNorm1d(3)
    addresses = [b.data.ctypes.data for b in norm.buffers()]
    for _ in range(3):
        norm(pb.random.normal((4, 3))).sum().backward()
    assert [b.data.ctypes.data for b in norm.buffers()] == addresses
    assert norm.num_batches_tracked.item() == 3


def test_a_refused_batch_leaves_the_running_statistics():
    norm = nn.BatchNorm1d(3)
    with pytest.raises(pb.ShapeError):
        norm(pb.ones((1, 3)))
    assert norm.running_mean.tolist() == [0, 0, 0] and norm.num_batches_tracked.item() == 0
