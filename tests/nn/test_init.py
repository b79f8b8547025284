"""First values: distributions, in place, repeatable, and those of PyTorch's layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.nn import init

from ..backends.installed import optional

torch = optional("torch")

SHAPE = (200, 300)


def drawn(function, *args, shape=SHAPE, **options):
    """Values in float64 of a parameter that `function` filled."""
    parameter = nn.Parameter(pb.zeros(shape, dtype=pb.float64))
    address = parameter.data.ctypes.data
    assert function(parameter, *args, generator=pb.random.Generator(7), **options) is parameter
    assert parameter.data.ctypes.data == address and parameter.is_leaf and parameter.requires_grad
    return np.asarray(parameter.detach())


def check_moments(values, mean, deviation):
    """Mean and deviation within five standard errors."""
    n = values.size
    assert abs(values.mean() - mean) < 5 * deviation / math.sqrt(n)
    assert abs(values.std() - deviation) < 5 * deviation / math.sqrt(n)


def test_uniform():
    values = drawn(init.uniform_, -2.0, 3.0)
    assert -2 <= values.min() < -1.999 and 2.999 < values.max() < 3
    check_moments(values, 0.5, 5 / math.sqrt(12))


def test_normal():
    check_moments(drawn(init.normal_, 1.5, 0.25), 1.5, 0.25)


@pytest.mark.parametrize(
    ("function", "args", "value"), [(init.zeros_, (), 0), (init.ones_, (), 1), (init.constant_, (0.5,), 0.5)]
)
def test_constants(function, args, value):
    parameter = nn.Parameter(pb.asarray([1.0, 2.0]))
    assert function(parameter, *args) is parameter
    assert parameter.tolist() == [value, value]


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0.0, 1.0, -2.0, 2.0), (0.5, 0.3, 0.0, 2.0), (0.0, 1.0, 4.0, 9.0), (1.0, 1.0, -9.0, -4.0)],
)
def test_truncated_normal(mean, std, a, b):
    values = np.sort(drawn(init.trunc_normal_, mean, std, a, b, shape=(100, 100)).ravel())
    assert values[0] >= a and values[-1] <= b

    def above(x):
        return 0.5 * math.erfc((x - mean) / std / math.sqrt(2))

    share = np.array([(above(a) - above(x)) / (above(a) - above(b)) for x in values])
    if a - mean < mean - b:  # in the lower tail the other side is exact
        share = np.array([(above(2 * mean - x) - above(2 * mean - a)) for x in values])
        share /= above(2 * mean - b) - above(2 * mean - a)
    n = len(values)
    statistic = max(abs(share - np.arange(n) / n).max(), abs(share - np.arange(1, n + 1) / n).max())
    assert statistic < 1.95 / math.sqrt(n)  # Kolmogorov and Smirnov's, exceeded once in a thousand


@pytest.mark.parametrize("gain", [1.0, 2.5])
@pytest.mark.parametrize("shape", [SHAPE, (20, 30, 5, 3)])
def test_xavier(shape, gain):
    receptive = math.prod(shape[2:])
    deviation = gain * math.sqrt(2 / ((shape[0] + shape[1]) * receptive))
    check_moments(drawn(init.xavier_normal_, gain, shape=shape), 0, deviation)
    uniform = drawn(init.xavier_uniform_, gain, shape=shape)
    check_moments(uniform, 0, deviation)
    assert abs(uniform).max() <= math.sqrt(3) * deviation < 1.01 * abs(uniform).max()


@pytest.mark.parametrize("nonlinearity", ["relu", "tanh", "linear", "selu", "leaky_relu"])
@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
def test_kaiming(mode, nonlinearity):
    options = {"a": 0.3, "mode": mode, "nonlinearity": nonlinearity}
    gain = torch.nn.init.calculate_gain(nonlinearity, 0.3)
    deviation = gain / math.sqrt(SHAPE[1] if mode == "fan_in" else SHAPE[0])
    check_moments(drawn(init.kaiming_normal_, **options), 0, deviation)
    check_moments(drawn(init.kaiming_uniform_, **options), 0, deviation)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal(shape):
    matrix = drawn(init.orthogonal_, 2.0, shape=shape).reshape(shape[0], -1)
    product = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_equally_likely():
    generator = pb.random.Generator(3)
    traces = [float(np.trace(init.orthogonal_(pb.zeros((3, 3)), generator=generator).numpy())) for _ in range(400)]
    assert abs(np.mean(traces)) < 0.25 and abs(np.var(traces) - 1) < 0.35  # of Haar measure: 0 and 1


def test_a_generator_makes_values_repeatable_and_the_default_one_is_used_otherwise():
    first, second = (init.normal_(pb.zeros(5), generator=pb.random.Generator(3)).tolist() for _ in range(2))
    assert first == second
    pb.random.seed(3)
    assert init.normal_(pb.zeros(5)).tolist() == first


@pytest.mark.parametrize(
    "call",
    [
        lambda: init.xavier_uniform_(pb.zeros(3)),
        lambda: init.orthogonal_(pb.zeros(3)),
        lambda: init.kaiming_normal_(pb.zeros((3, 3)), mode="fan"),
        lambda: init.calculate_gain("softsign"),
        lambda: init.trunc_normal_(pb.zeros(3), a=2.0, b=1.0),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises((pb.ShapeError, pb.ConfigurationError)):
        call()


LAYERS = [
    ("Linear", (300, 200), {}),
    ("Conv2d", (32, 64, 5), {"groups": 2}),
    ("ConvTranspose1d", (64, 48, 7), {}),
    ("Embedding", (100, 200), {}),
    ("MultiheadAttention", (120, 4), {}),
    ("MultiheadAttention", (120, 4), {"kdim": 60, "vdim": 90}),
    ("LSTM", (50, 60), {"num_layers": 2}),
    ("GRUCell", (50, 60), {}),
    ("LayerNorm", (100,), {}),
    ("BatchNorm2d", (100,), {}),
    ("TransformerEncoderLayer", (64, 4, 128), {}),
    ("TransformerDecoderLayer", (64, 4, 128), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), LAYERS, ids=str)
def test_layers_begin_as_torchs_do(name, args, options):
    torch.manual_seed(0)
    pb.random.seed(0)
    ours, theirs = (getattr(library, name)(*args, **options).state_dict() for library in (nn, torch.nn))
    assert list(ours) == list(theirs)
    for key, expected in theirs.items():
        actual, expected = np.asarray(ours[key], np.float64), expected.double().numpy()
        assert actual.shape == expected.shape
        assert str(ours[key].dtype) == f"pullback.{str(theirs[key].dtype).removeprefix('torch.')}"
        if expected.std() == 0:
            assert np.array_equal(actual, expected), key
            continue
        count = math.sqrt(expected.size)
        assert abs(actual.mean() - expected.mean()) < 7 * expected.std() / count, key
        assert abs(actual.std() / expected.std() - 1) < 7 / count, key
        if name != "Embedding":  # uniform ones: the same bounds
            assert abs(abs(actual).max() / abs(expected).max() - 1) < 14 / expected.size**0.9 + 0.03, key


def test_a_seed_makes_models_repeatable():
    def made():
        pb.random.seed(5)
        return nn.TransformerEncoderLayer(8, 2, 16).state_dict()

    first, second = made(), made()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_reset_parameters_draws_anew():
    for layer in (nn.Linear(3, 4), nn.Conv1d(2, 3, 3), nn.Embedding(4, 3), nn.MultiheadAttention(4, 2), nn.GRU(2, 3)):
        before = {name: np.array(t) for name, t in layer.state_dict().items()}
        layer.reset_parameters()
        changed = [name for name, t in layer.state_dict().items() if not np.array_equal(t, before[name])]
        assert changed == [name for name in before if before[name].std() > 0]
    norm = nn.BatchNorm1d(2)
    norm(pb.random.normal((4, 2), mean=3.0))
    with pb.no_grad():
        norm.weight += 1.0
    norm.reset_parameters()
    assert norm.weight.tolist() == norm.running_var.tolist() == [1, 1]
    assert norm.bias.tolist() == norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0
