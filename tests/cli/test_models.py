"""The models that configurations name have the shapes they should, see what they may, and depend on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import ConfigurationError
from pullback.cli import forecasts, models
from pullback.random import Generator

MLP = {"kind": "mlp", "hidden": [7, 5], "activation": "gelu", "dropout": 0.5}
CONV = {"kind": "conv", "channels": [3, 4], "hidden": 6, "activation": "silu", "dropout": 0.0}
LAYERS = ("mamba", "mamba2", "s4d", "s5", "mingru", "rwkv")
SPACES = {
    layer: {"kind": "state_space", "layer": layer, "layers": 2, "width": 8, "states": 4} for layer in LAYERS
}  # fmt: skip
TRANSFORMER = {"kind": "transformer", "layers": 2, "heads": 2, "width": 8, "dropout": 0.0}


@pytest.mark.parametrize(
    ("options", "shape", "outputs", "result"),
    [
        (MLP, (4,), 3, (2, 3)),
        (MLP, (2, 3, 3), 1, (2, 1)),
        ({**MLP, "hidden": []}, (4,), 3, (2, 3)),
        (CONV, (2, 9, 5), 10, (2, 10)),
        ({**CONV, "channels": [3]}, (1, 2, 2), 10, (2, 10)),
        *((options, (5, 3), 3, (2, 5, 3)) for options in SPACES.values()),
    ],
)
def test_shapes(options, shape, outputs, result):
    model = models.build(options, shape, outputs, seed=0)
    assert model(pb.ones((2, *shape))).shape == result


@pytest.mark.parametrize(
    ("options", "shape"), [(MLP, (4,)), (CONV, (1, 4, 4)), (TRANSFORMER, (6,)), (SPACES["mamba"], (5, 3))]
)
def test_first_weights_depend_on_the_seed_alone(options, shape):
    pb.random.seed(1)
    states = [models.build(options, shape, 5, seed).state_dict() for seed in (3, 3, 4)]
    same, other = (
        [np.array_equal(states[0][name].numpy(), state[name].numpy()) for name in states[0]] for state in states[1:]
    )
    assert all(same) and not all(other)


@pytest.mark.parametrize(("shape", "message"), [((8,), "needs pictures"), ((1, 8, 3), "8 x 3 is too small")])
def test_what_is_no_picture_is_refused(shape, message):
    with pytest.raises(ConfigurationError, match=message):
        models.build(CONV, shape, 10, seed=0)


def test_a_character_is_predicted_from_those_before_it():
    model = models.build(TRANSFORMER, (6,), 5, seed=0)
    tokens = np.array([[0, 1, 2, 3, 4, 0]])
    changed = np.array([[0, 1, 2, 4, 4, 0]])
    scores, others = model(pb.asarray(tokens)).detach().numpy(), model(pb.asarray(changed)).detach().numpy()
    assert scores.shape == (1, 5, 6)
    np.testing.assert_array_equal(scores[:, :, :3], others[:, :, :3])
    assert (scores[:, :, 3:] != others[:, :, 3:]).all()
    assert (model(pb.asarray(tokens[:, ::-1].copy())).detach().numpy()[:, :, -1] != scores[:, :, -1]).all()


def test_text_is_continued_from_its_end():
    model = models.build(TRANSFORMER, (6,), 5, seed=0)
    first, again, other = (model.continued([1, 2], 20, Generator(seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == 22 and first[:2] == [1, 2] and set(first) <= set(range(5))
    assert model.training


def test_only_the_last_characters_of_the_context_count():
    model = models.build(TRANSFORMER, (6,), 5, seed=0)
    for start in np.random.default_rng(0).integers(0, 5, (20, 9)).tolist():
        likeliest = int(pb.argmax(model(pb.asarray([start[-6:]]))[0, :, -1]).item())
        assert model.continued(start, 1, Generator(0), temperature=1e-6)[-1] == likeliest


@pytest.mark.parametrize("layer", LAYERS)
def test_a_forecast_goes_on_step_by_step_from_what_was_seen(layer):
    model = models.build(SPACES[layer], (9, 2), 2, seed=0)
    seen = np.random.default_rng(0).standard_normal((9, 2)).astype(np.float32)
    found = forecasts.forecast(model, seen, 4)
    for _ in range(4):
        seen = np.concatenate([seen, model(pb.asarray(seen[None])).detach().numpy()[0, -1:]])
    np.testing.assert_allclose(found, seen[9:], atol=1e-5)
    assert forecasts.forecast(model, seen, 0).shape == (0, 2) and model.training


def test_scores_of_tokens_depend_on_those_before():
    model = models.build(SPACES["mamba"], (6,), 5, seed=0)
    tokens, changed = np.array([[0, 1, 2, 3, 4, 0]]), np.array([[0, 1, 2, 4, 4, 0]])
    scores, others = (model(pb.asarray(one)).detach().numpy() for one in (tokens, changed))
    assert scores.shape == (1, 5, 6) and (scores[:, :, 3:] != others[:, :, 3:]).any()
    np.testing.assert_array_equal(scores[:, :, :3], others[:, :, :3])
