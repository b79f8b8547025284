"""Training: repeatable to the bit, right for short batches, clear about what is wrong."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import pullback as pb
from pullback.mlp import losses

from ..backends.installed import optional
from . import reference

torch = optional("torch")


def data(samples=50, inputs=3, outputs=2, dtype=np.float64):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((samples, inputs)).astype(dtype)
    return x, np.tanh(x @ generator.standard_normal((inputs, outputs))).astype(dtype)


def network(outputs=2, dtype=np.float64):
    return reference.network([3, 8, outputs], "tanh", "identity", dtype)


def test_it_learns_xor():
    mlp = pb.Mlp([2, 8, 1], "tanh", seed=0)
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    history = mlp.fit(
        x, [0, 1, 1, 0], epochs=400, batch_size=4, loss="binary_cross_entropy", lr=0.05, metrics="accuracy"
    )
    assert history.epochs[-1]["accuracy"] == 1.0
    assert ((mlp.predict(x)[:, 0] > 0) == [False, True, True, False]).all()


def by_hand(mlp, x, y, batch, epochs, lr):
    """Plain gradient descent in the order of the data, with a mean over each batch."""
    means = []
    for _ in range(epochs):
        total = 0.0
        for start in range(0, len(x), batch):
            part, wanted = x[start : start + batch], y[start : start + batch]
            value, _, gradient, _ = reference.gradients_of(mlp, part, wanted, "mse")
            total += value * len(part)
            mlp.parameters[...] -= lr * gradient
        means.append(total / len(x))
    return means


@pytest.mark.parametrize("batch", [1, 7, 50, 80])
def test_steps_are_those_of_plain_gradient_descent(batch):
    """Also with a short last batch, whose mean is over its own samples."""
    (x, y), mlp = data(), network()
    expected = copy.copy(mlp)
    means = by_hand(expected, x, y, batch, 3, 0.1)
    history = mlp.fit(x, y, epochs=3, batch_size=batch, optimizer="sgd", lr=0.1, shuffle=False)
    np.testing.assert_allclose(mlp.parameters, expected.parameters, rtol=1e-11, atol=1e-13)
    assert history.epochs.column("loss") == pytest.approx(means, rel=1e-11)
    assert history.epochs.column("step") == [math.ceil(50 / batch) * epoch for epoch in (1, 2, 3)]


def test_adam_is_torchs_and_leaves_the_gradients_alone():
    (x, y), mlp = data(), network()
    parameters = torch.tensor(mlp.parameters, requires_grad=True)
    optimizer = torch.optim.Adam([parameters], lr=0.01)
    expected = copy.copy(mlp)
    for _ in range(5):
        expected.parameters[...] = parameters.detach().numpy()
        parameters.grad = torch.tensor(reference.gradients_of(expected, x, y, "mse")[2])
        optimizer.step()
    mlp.fit(x, y, epochs=5, batch_size=50, optimizer="adam", lr=0.01, shuffle=False)
    np.testing.assert_allclose(mlp.parameters, parameters.detach().numpy(), rtol=1e-9)
    scratch, grads = mlp.scratch(50), mlp.gradients(50)
    losses.mse(mlp.forward(x, scratch), y, grads)
    mlp.backward(x, scratch, grads)
    before = grads.parameters.copy()
    pb.optim.Adam([mlp.parameters]).step([grads.parameters])
    assert np.array_equal(grads.parameters, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_seeds_give_equal_bits(dtype):
    def trained(seed, global_seed):
        np.random.seed(global_seed)
        pb.random.seed(global_seed)
        mlp = pb.Mlp([3, 8, 2], "gelu", seed=1, dtype=dtype)
        validation = data(20, dtype=dtype)
        history = mlp.fit(
            *data(dtype=dtype), epochs=4, batch_size=8, seed=seed, validation=validation, metrics=["mse", "r2"]
        )
        return mlp.parameters.tobytes(), list(history.epochs)

    first = trained(5, 0)
    assert trained(5, 1) == first
    assert trained(6, 0)[0] != first[0]


def test_shuffling_shows_every_sample_once_per_epoch_in_new_orders():
    seen = []

    class Spy(pb.train.metrics.mse):
        name = "spy"

        def update(self, output, target):
            seen.append(target.copy())
            super().update(output, target)

    x, _ = data(20)
    y = np.arange(20.0)[:, None]
    network(1).fit(x, y, epochs=3, batch_size=6, metrics=Spy(), lr=1e-6)
    orders = [np.concatenate(seen[4 * epoch : 4 * epoch + 4]).ravel() for epoch in range(3)]
    assert [len(batch) for batch in seen[:4]] == [6, 6, 6, 2]
    for order in orders:
        assert sorted(order) == list(range(20))
    assert len({tuple(order) for order in orders}) == 3


def test_metrics_and_validation_are_recorded():
    (x, y), mlp = data(), network()
    held_out = data(13)
    history = mlp.fit(x, y, epochs=2, batch_size=8, validation=held_out, metrics=["mae", "r2"])
    record = history.epochs[-1]
    assert set(record) == {
        "epoch", "step", "loss", "learning_rate", "gradient_norm", "mae", "r2",
        "validation_loss", "validation_mae", "validation_r2",
    }  # fmt: skip
    figures = mlp.evaluate(*held_out, metrics=["mae", "r2"], batch_size=4)
    for name in ("loss", "mae", "r2"):
        assert record[f"validation_{name}"] == pytest.approx(figures[name], rel=1e-12)
    output = mlp.predict(held_out[0])
    assert figures["loss"] == pytest.approx(np.mean((output - held_out[1]) ** 2), rel=1e-12)
    assert all(type(value) in (int, float) for value in record.values())


def test_clipping_bounds_each_step():
    (x, y), mlp = data(), network()
    before = mlp.parameters.copy()
    history = mlp.fit(x, 100 * y, epochs=1, batch_size=50, optimizer="sgd", lr=1.0, clip_norm=0.25)
    assert np.linalg.norm(mlp.parameters - before) == pytest.approx(0.25, rel=1e-9)
    assert history.epochs[0]["gradient_norm"] > 10


def test_schedules_set_the_rate_of_every_step():
    (x, y), mlp = data(), network()
    schedule = pb.optim.schedules.Exponential(gamma=0.5)
    history = mlp.fit(x, y, epochs=3, batch_size=25, optimizer="sgd", lr=0.1, schedule=schedule)
    assert history.epochs.column("learning_rate") == pytest.approx([0.1 * 0.5 ** (steps - 1) for steps in (2, 4, 6)])


def test_a_plateau_watches_the_epochs():
    (x, y), mlp = data(), network()
    schedule = pb.optim.schedules.Plateau(patience=0, decay=0.1)
    rates = []
    mlp.fit(
        x, y, epochs=4, optimizer="sgd", lr=1e-12, schedule=schedule,
        callback=lambda record: rates.append(record["learning_rate"]),
    )  # fmt: skip
    assert rates == pytest.approx([1e-12, 1e-12, 1e-13, 1e-14], rel=1e-9, abs=0)


@pytest.mark.parametrize("name", ["sgd", "adam", "AdamW", "rmsprop", "lion", "adagrad"])
def test_optimizers_by_name(name):
    (x, y), mlp = data(), network()
    history = mlp.fit(x, y, epochs=30, optimizer=name, lr=0.01)
    assert history.epochs[-1]["loss"] < history.epochs[0]["loss"]


def test_an_optimizer_of_ones_own_may_have_groups_in_any_order():
    (x, y), mlp = data(), network()
    frozen = [mlp.biases(0).copy(), mlp.biases(1).copy()]

    def weights_alone(parameters):
        w0, b0, w1, b1 = parameters
        assert w0.shape == (8, 3) and b1.shape == (2,)
        return pb.optim.SGD([{"params": [b1, w1, b0], "lr": 0.0}, {"params": [w0]}], lr=0.1)

    expected = mlp.weights(0) - 0.1 * reference.gradients_of(mlp, x, y, "mse")[2][:24].reshape(8, 3)
    mlp.fit(x, y, epochs=1, batch_size=50, optimizer=weights_alone, shuffle=False)
    np.testing.assert_allclose(mlp.weights(0), expected, rtol=1e-11)
    assert np.array_equal(mlp.biases(0), frozen[0]) and np.array_equal(mlp.biases(1), frozen[1])


def test_a_callback_sees_the_records_and_may_stop():
    (x, y), mlp = data(), network()
    records = []
    history = mlp.fit(x, y, epochs=9, callback=lambda record: records.append(record) or record["epoch"] == 3)
    assert records == list(history.epochs) and len(records) == 3
    assert "callback" in history.stop_reason


@pytest.mark.parametrize(
    "kind", [np.asarray, pb.tensor, torch.tensor, np.ndarray.tolist, np.float32, np.asfortranarray]
)
def test_data_of_every_kind(kind):
    x, y = data()
    mlp = network()
    mlp.fit(kind(x), kind(y), epochs=1)
    assert mlp.predict(kind(x)).shape == (50, 2)
    assert mlp.predict(kind(x)).dtype == np.float64


# -- what is wrong ----------------------------------------------------------------------------------------

X, Y = data(4)


def with_bad_value(array, value):
    array = array.copy()
    array[2, 1] = value
    return array


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "match"),
    [
        (np.empty((0, 3)), np.empty((0, 2)), {}, pb.ShapeError, r"there are no samples: x has shape \(0, 3\)"),
        ([], [], {}, pb.ShapeError, r"expected \(samples, 3\)"),
        (X[:, :2], Y, {}, pb.ShapeError, r"x has shape \(4, 2\), expected \(samples, 3\)"),
        (X, Y[:3], {}, pb.ShapeError, r"y has shape \(3, 2\), expected \(4, 2\)"),
        (X, Y[:, :1], {}, pb.ShapeError, r"y has shape \(4, 1\)"),
        (X, [0, 1, 1, 0], {}, pb.ShapeError, r'y has shape \(4,\), expected \(4, 2\). .*loss="cross_entropy"'),
        (X, [0, 1, 2, 0], {"loss": "cross_entropy"}, pb.ShapeError, "targets from 0 to 2 for 2 classes"),
        (X, [0.0, 1.0, 1.0, 0.0], {"loss": "cross_entropy"}, pb.ShapeError, r"class numbers \(4,\), .*it is float"),
        (with_bad_value(X, np.nan), Y, {}, pb.NumericalInstabilityError, r"x has nan at \(2, 1\)"),
        (X, with_bad_value(Y, np.inf), {}, pb.NumericalInstabilityError, r"y has inf at \(2, 1\)"),
        (X * 1j, Y, {}, pb.DtypeError, "x must be real numbers, got complex128"),
        (np.full((4, 3), "a"), Y, {}, pb.DtypeError, "x must be real numbers"),
        (X, Y, {"epochs": 0}, pb.PullbackError, "epochs must be a positive integer"),
        (X, Y, {"batch_size": 0}, pb.PullbackError, "batch_size must be a positive integer"),
        (X, Y, {"loss": "mes"}, pb.ConfigurationError, "no loss 'mes'; there are mse"),
        (X, Y, {"optimizer": "adm"}, pb.ConfigurationError, "no optimizer 'adm'; there are .*adam"),
        (X, Y, {"optimizer": 3}, pb.ConfigurationError, "must be a name or a function"),
        (X, Y, {"optimizer": lambda p: None}, pb.ConfigurationError, "returned NoneType"),
        (X, Y, {"optimizer": lambda p: pb.optim.SGD([np.ones(2)])}, pb.ConfigurationError, "not among those"),
        (X, Y, {"optimizer": pb.optim.SGD, "lr": 0.1}, pb.ConfigurationError, "lr is for optimizers given by name"),
        (X, Y, {"clip_norm": 0.0}, pb.ConfigurationError, "clip_norm must be positive"),
        (X, Y, {"metrics": "acuracy"}, pb.ConfigurationError, "no metric"),
        (X, Y, {"validation": X}, pb.ConfigurationError, "pair of x and y"),
        (X, Y, {"validation": (X, Y[:2])}, pb.ShapeError, "fit: validation: y has shape"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_before_training(x, y, options, error, match):
    mlp = network()
    before = mlp.parameters.copy()
    with pytest.raises(error, match=match):
        mlp.fit(x, y, **{"epochs": 1, **options})
    assert np.array_equal(mlp.parameters, before)


def test_divergence_names_epoch_and_step_and_keeps_the_last_finite_parameters():
    x, y = data(dtype=np.float32)
    mlp = reference.network([3, 8, 2], "relu", "identity", np.float32)
    seen = [mlp.parameters.copy()]

    class Spy(pb.train.metrics.mse):
        def update(self, output, target):
            seen.append(mlp.parameters.copy())

        def compute(self):
            return 0.0

    with pytest.raises(pb.NumericalInstabilityError, match=r"in epoch \d+, step \d+, the loss is"):
        mlp.fit(x, y, epochs=50, batch_size=25, optimizer="sgd", lr=1e3, metrics=Spy())
    assert len(seen) > 1
    assert np.array_equal(mlp.parameters, seen[-1])


def test_a_loss_beyond_the_dtype_is_found_in_the_first_step():
    x, y = data(dtype=np.float32)
    mlp = network(dtype=np.float32)
    before = mlp.parameters.copy()
    with pytest.raises(pb.NumericalInstabilityError, match="epoch 1, step 1"):
        mlp.fit(x, np.full_like(y, 3e38), epochs=1)
    assert np.array_equal(mlp.parameters, before)


def test_gradients_beyond_the_dtype_are_found_though_the_loss_is_finite():
    mlp = reference.network([3, 8, 2], "identity", "identity", np.float32)
    mlp.weights(1)[...] *= 1e19
    mlp.weights(0)[...] *= 1e-19
    x = np.full((4, 3), 1e19, np.float32)
    y = mlp.predict(x) + np.float32(1e17)
    before = mlp.parameters.copy()
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 1, the loss is \d.*norm of the gradients (inf|nan)"):
        mlp.fit(x, y, epochs=1, loss="mse")
    assert np.array_equal(mlp.parameters, before)


# -- predicting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 5, 256, 600])
def test_predicting_many_equals_the_network(samples):
    mlp = network()
    x = np.random.default_rng(1).standard_normal((samples, 3))
    layers = range(2)
    expected = reference.output_of(mlp, pb.tensor(x), [mlp.weights(i) for i in layers], [mlp.biases(i) for i in layers])
    np.testing.assert_allclose(mlp.predict(x), expected.numpy(), rtol=1e-12)
    out = np.empty((samples, 2))
    mlp.predict_into(x, out, mlp.scratch(7))
    np.testing.assert_allclose(out, expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(mlp.predict(x[0]), expected.numpy()[0], rtol=1e-12)


def test_predicting_nothing_and_wrong_things():
    mlp = network()
    assert mlp.predict(np.empty((0, 3))).shape == (0, 2)
    for x, match in ((np.ones((2, 4)), r"\(2, 4\)"), (np.ones((0, 4)), r"\(1, 4\)"), (3.0, "is a number")):
        with pytest.raises(pb.ShapeError, match=match):
            mlp.predict(x)
    for out in (np.empty((2, 3)), np.empty((2, 2), np.float32), [[0.0] * 2] * 2):
        with pytest.raises(pb.ShapeError, match=r"expected a float64 array of shape \(2, 2\)"):
            mlp.predict_into(np.ones((2, 3)), out)
