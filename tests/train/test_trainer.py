"""The training loop: its steps are those of a loop written by hand, and what is around them happens when it should."""

from __future__ import annotations

import os
import signal
import threading
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

import pullback as pb
from pullback.data import Batches
from pullback.optim import SGD, Adam, schedules
from pullback.train import Callback, EarlyStopping, Trainer

from ..backends.installed import needs_llvmlite, optional, require

torch = optional("torch")

NUMBERS = np.random.default_rng(7)
X, Y = NUMBERS.standard_normal((23, 4)), NUMBERS.standard_normal((23, 2))


def network(*middle, seed=0):
    pb.random.seed(seed)
    return pb.nn.Sequential(pb.nn.Linear(4, 5), *middle, pb.nn.Tanh(), pb.nn.Linear(5, 2)).astype(pb.float64)


def weights(model):
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


class Recorded(Callback):
    """Remembers what it was told, in order."""

    def __init__(self):
        self.calls, self.records = [], []

    def on_start(self, trainer):
        self.calls.append("start")

    def on_step(self, trainer, record):
        assert record["step"] == trainer.step
        self.calls.append(f"step {record['step']}")
        self.records.append(record)

    def on_validation(self, trainer, record):
        self.calls.append(f"validation {record['step']}")
        self.records.append(record)

    def on_epoch(self, trainer, record):
        assert record["epoch"] == trainer.epoch
        self.calls.append(f"epoch {record['epoch']}")
        self.records.append(record)

    def on_checkpoint(self, trainer, path):
        assert path.exists()
        self.calls.append(f"checkpoint {path.stem}")

    def on_end(self, trainer, history):
        self.calls.append(f"end {history.stop_reason}")

    def on_error(self, trainer, error):
        self.calls.append(f"error {type(error).__name__}")


# -- the step ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip_norm", [None, 0.5])
def test_steps_are_those_of_pytorch(clip_norm):
    model = network()
    other = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    other.load_state_dict({name: torch.from_numpy(value) for name, value in weights(model).items()})
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    data = Batches((X, Y), 5, shuffle=True, seed=2)
    losses, norms, rates = [], [], []
    for epoch in range(3):
        for x, y in data.of_epoch(epoch):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(other(torch.from_numpy(x)), torch.from_numpy(y))
            loss.backward()
            norm = torch.nn.utils.get_total_norm([p.grad for p in other.parameters()])
            if clip_norm is not None and norm > clip_norm:  # PyTorch's own function divides by the norm + 1e-6
                for p in other.parameters():
                    p.grad *= clip_norm / norm
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            norms.append(norm.item())
    recorded = Recorded()
    trainer = Trainer(
        model,
        pb.mse_loss,
        SGD(model.parameters(), lr=0.1, momentum=0.9),
        schedule=schedules.Step(3, 0.5),
        clip_norm=clip_norm,
        callbacks=[recorded],
    )
    history = trainer.fit(data, epochs=3)
    steps = [record for record in recorded.records if "gradient_norm" in record and record in list(history.steps)]
    np.testing.assert_allclose([record["loss"] for record in steps], losses, rtol=1e-12)
    np.testing.assert_allclose([record["gradient_norm"] for record in steps], norms, rtol=1e-12)
    np.testing.assert_allclose([record["learning_rate"] for record in steps], rates, rtol=1e-12)
    for mine, theirs in zip(weights(model).values(), other.state_dict().values()):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-12)
    sizes = [5, 5, 5, 5, 3]
    for epoch, record in enumerate(history.epochs):
        np.testing.assert_allclose(record["loss"], np.average(losses[5 * epoch : 5 * epoch + 5], weights=sizes))


@pytest.mark.parametrize("accumulate", [2, 3, 5, 7])
@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_accumulated_batches_of_unequal_size_are_one_large_batch(accumulate, clip_norm):
    bounds = [0, 1, 6, 8, 15, 16, 23]
    small = [(X[a:b], Y[a:b]) for a, b in pairwise(bounds)]
    ends = [*range(accumulate, len(small), accumulate), len(small)]
    large = [(X[bounds[a] : bounds[b]], Y[bounds[a] : bounds[b]]) for a, b in zip([0, *ends], ends)]
    results = []
    for data, count in ((small, accumulate), (large, 1)):
        model = network()
        optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
        trainer = Trainer(model, pb.mse_loss, optimizer, accumulate=count, clip_norm=clip_norm)
        history = trainer.fit(data, epochs=2)
        assert trainer.step == 2 * len(ends)
        results.append((weights(model), history.steps.column("loss") + history.steps.column("gradient_norm")))
    for name, value in results[0][0].items():
        np.testing.assert_allclose(value, results[1][0][name], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12)


@pytest.mark.parametrize("as_number", [True, pytest.param(False, marks=needs_llvmlite)])
def test_a_loss_may_say_its_own_weight(as_number):
    """Masked targets: a mean over those that count, over all micro-batches together."""

    def masked(output, target):
        counts = (target[:, :1] > 0).astype(output.dtype)
        weight = counts.sum()
        return (((output - target) ** 2) * counts).sum(), float(weight.item()) if as_number else weight

    results = []
    for data, count in (([(X[:3], Y[:3]), (X[3:], Y[3:])], 2), ([(X, Y)], 1)):
        model = network()
        # a number of values cannot be compiled, a tensor can
        compile = False if as_number else count == 1
        trainer = Trainer(model, masked, SGD(model.parameters(), lr=0.1), accumulate=count, compile=compile)
        losses = trainer.fit(data, epochs=2).steps.column("loss")
        results.append((losses, [trainer.evaluate(data)["loss"]], *weights(model).values()))
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1e25])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_the_norm_of_large_and_small_gradients_is_right(size, device):
    require(device)
    model = pb.nn.Linear(2, 1, bias=False).to_device(device)
    inputs = np.array([[3.0, 4.0]], np.float32) * np.float32(size)
    trainer = Trainer(model, lambda output, target: output.sum(), SGD(model.parameters(), lr=1e-30))
    history = trainer.fit([(inputs, np.zeros(1, np.float32))], epochs=1)
    assert history.steps.last["gradient_norm"] == pytest.approx(5 * size, rel=1e-6)


def test_several_inputs_go_to_the_model():
    class Sum(pb.nn.Module):
        def __init__(self):
            self.factor = pb.nn.Parameter(pb.ones(()))

        def forward(self, a, b, c):
            return self.factor * (a + b * c)

    model = Sum()
    data = [tuple(np.full(3, float(value), np.float32) for value in (1, 2, 3, 14))]
    Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.01)).fit(data, epochs=200)
    assert abs(model.factor.item() - 2.0) < 1e-4


@pytest.mark.parametrize("batch", [X, (X,), {"x": X}], ids=["array", "one", "dict"])
def test_what_is_no_batch_is_named(batch):
    model = network()
    with pytest.raises(pb.ConfigurationError, match=r"a batch is a tuple \(inputs..., target\), got"):
        Trainer(model, pb.mse_loss, SGD(model.parameters())).fit([batch], epochs=1)


def test_a_model_of_another_library_is_trained_on_numpy_data():
    require("torch:cpu")
    results = []
    for device in ("numpy", "torch:cpu"):
        model = network().to_device(device)
        trainer = Trainer(model, pb.mse_loss, Adam(model.parameters(), lr=0.1), metrics="mae")
        trainer.fit(Batches((X, Y), 6), epochs=2)
        results.append((trainer.evaluate(Batches((X, Y), 9)), model[0].weight.detach().to_device("numpy").numpy()))
        assert model[0].weight.device == device
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-10)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-10)


def test_the_parameters_follow_the_average_in_evaluations_only(tmp_path):
    model = network()
    trainer = Trainer(
        model, pb.mse_loss, SGD(model.parameters(), lr=0.3), average=0.5, folder=tmp_path, best="validation_loss"
    )
    data = Batches((X, Y), 8)
    trainer.fit(data, epochs=3, validation=data)
    own = weights(model)
    plain = Trainer(model, pb.mse_loss, trainer.optimizer).evaluate(data)["loss"]
    with trainer.average.applied():
        averaged = Trainer(model, pb.mse_loss, trainer.optimizer).evaluate(data)["loss"]
        best = weights(model)
    assert trainer.evaluate(data)["loss"] == averaged != plain
    assert trainer.average.updates == trainer.step == 9
    assert_same(weights(model), own)
    assert_same({name: tensor.numpy() for name, tensor in pb.load(tmp_path / "best.safetensors").items()}, best)


# -- mixed precision ---------------------------------------------------------------------------------


def test_an_overflow_of_scaled_gradients_skips_the_step_and_lowers_the_scale():
    model = network().astype(pb.float32)
    data = [(X.astype(np.float32), Y.astype(np.float32))]
    scaler = pb.optim.LossScaler(init_scale=2.0**40)
    recorded = Recorded()
    before = weights(model)
    trainer = Trainer(
        model,
        pb.mse_loss,
        SGD(model.parameters(), lr=0.1),
        scaler=scaler,
        autocast="float16",
        clip_norm=1.0,
        callbacks=[recorded],
    )
    trainer.fit(data, steps=1)
    assert_same(weights(model), before)
    assert scaler.get_scale() == 2.0**39
    assert not np.isfinite(recorded.records[0]["gradient_norm"])
    trainer.fit(data, steps=60)
    norms = [record["gradient_norm"] for record in recorded.records if "gradient_norm" in record]
    assert np.isfinite(norms[-1])
    assert recorded.records[-1]["loss"] < recorded.records[0]["loss"]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_scaling_changes_nothing_where_nothing_overflows(accumulate):
    results = []
    for scaler in (None, pb.optim.LossScaler(init_scale=2.0**10)):
        model = network()
        trainer = Trainer(
            model, pb.mse_loss, SGD(model.parameters(), lr=0.1), scaler=scaler, accumulate=accumulate, clip_norm=0.3
        )
        history = trainer.fit(Batches((X, Y), 6), epochs=2)
        results.append((weights(model), history.steps.column("gradient_norm")))
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-13)
    for name, value in results[0][0].items():
        np.testing.assert_allclose(value, results[1][0][name], rtol=1e-12)


def test_gradients_that_are_infinite_at_every_scale_are_an_error():
    model = network()

    def steep(output, target):
        return pb.sqrt(pb.abs(output - output)).mean()

    trainer = Trainer(model, steep, SGD(model.parameters()), scaler=pb.optim.LossScaler())
    before = weights(model)
    with pytest.raises(pb.NumericalInstabilityError, match="however small the scale"):
        trainer.fit([(X, Y)], steps=1000)
    assert trainer.step < 50
    assert_same(weights(model), before)


# -- values that are not finite ----------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1])
@pytest.mark.parametrize(("accumulate", "shuffle"), [(1, False), (1, True), (3, True)])
def test_a_bad_value_in_the_data_is_named_and_changes_nothing(bad, where, accumulate, shuffle):
    arrays = [X.copy(), Y.copy()]
    arrays[where][16, 1] = bad
    data = Batches(tuple(arrays), 5, shuffle=shuffle, seed=1)
    number = next(i for i in range(5) if 16 in np.arange(23)[data.indices(0, i)])
    place = np.arange(23)[data.indices(0, number)].tolist().index(16)
    step = number // accumulate + 1
    model = network(pb.nn.BatchNorm1d(5))
    optimizer = Adam(model.parameters(), lr=0.1)
    trainer = Trainer(model, pb.mse_loss, optimizer, accumulate=accumulate, average=0.9)
    states = []

    class Keep(Callback):
        def on_step(self, trainer, record):
            states.append(trainer._state()["parts"])

    trainer.callbacks.append(Keep())
    states.append(trainer._parts()["model"].state_dict())
    with pytest.raises(pb.NumericalInstabilityError) as caught:
        trainer.fit(data, epochs=1)
    message = str(caught.value)
    assert message.startswith(f"step {step}, epoch 1, batch {number + 1}: ")
    assert f"array {where} of the batch" in message and f"has {bad} in sample {place} (sample 16 of" in message
    assert "The parameters are those before this step" in message
    last = states[-1]["model"] if len(states) > 1 else states[0]
    assert_same(weights(model), {name: tensor.numpy() for name, tensor in last.items()})
    if len(states) > 1:
        for index, state in optimizer.state_dict()["state"].items():
            assert state["step"] == states[-1]["optimizer"]["state"][index]["step"]


@pytest.mark.parametrize("guard", ["raise", "off"])
def test_a_loss_that_is_not_finite_is_an_error_whatever_the_guard(guard):
    model = network()
    calls = []

    def loss(output, target):
        calls.append(0)
        factor = 1.0 if len(calls) < 3 else np.inf
        return (output * factor).mean()

    trainer = Trainer(model, loss, SGD(model.parameters(), lr=0.1), compile=False)  # the loss counts its calls
    words = r"step 3, epoch 2, batch 1.*data is finite"
    with pb.guard(guard), pytest.raises(pb.NumericalInstabilityError, match=words):
        trainer.fit([(X[:5], Y[:5]), (X[5:], Y[5:])], epochs=5)
    assert trainer.step == 2
    assert all(np.isfinite(value).all() for value in weights(model).values())


def test_a_bad_value_in_the_validation_data_is_named():
    model = network()
    bad = X.copy()
    bad[9, 3] = np.nan
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    words = r"evaluation after step 5, batch 2: the loss is nan.* array 0 .* sample 1 \(sample 9 of .*, at \(1, 3\)"
    with pytest.raises(pb.NumericalInstabilityError, match=words):
        trainer.fit(Batches((X, Y), 5), epochs=1, validation=Batches((bad, Y), 8))
    assert model.training


# -- epochs, validations, ends -----------------------------------------------------------------------


def test_everything_happens_in_its_order(tmp_path):
    recorded = Recorded()
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), callbacks=[recorded], folder=tmp_path)
    data = Batches((X, Y), 12)
    assert trainer.total_steps is None
    history = trainer.fit(data, epochs=2, validation=data)
    assert recorded.calls == [
        "start",
        *("step 1", "step 2", "validation 2", "epoch 1", "checkpoint step-00000002"),
        *("step 3", "step 4", "validation 4", "epoch 2", "checkpoint step-00000004"),
        "end None",
    ]
    assert (trainer.total_steps, trainer.total_epochs, trainer.steps_per_epoch) == (4, 2, 2)
    step, _, validation, epoch = recorded.records[:4]
    assert step.keys() == {
        "step", "epoch", "loss", "learning_rate", "gradient_norm", "samples_per_second", "steps_per_second", "seconds"
    }  # fmt: skip
    assert validation.keys() == {"step", "epoch", "validation_loss", "seconds"}
    assert epoch.keys() == step.keys() | {"validation_loss"}
    assert history.validations.column("validation_loss") == history.epochs.column("validation_loss")
    assert 0 < step["seconds"] < epoch["seconds"] <= trainer.seconds and epoch["samples_per_second"] > 0


@pytest.mark.parametrize(
    ("limits", "validate_every", "checkpoint_every", "expected"),
    [
        ({"steps": 3}, None, None, "s1 s2 v2 e1 c2 s3 v3 c3"),
        ({"steps": 4}, None, None, "s1 s2 v2 e1 c2 s3 s4 v4 e2 c4"),
        ({"steps": 4}, 3, None, "s1 s2 e1 c2 s3 v3 s4 e2 c4 v4 c4"),
        ({"epochs": 2}, 1, 3, "s1 v1 s2 v2 e1 s3 v3 c3 s4 v4 e2 c4"),
        ({"epochs": 1, "steps": 9}, None, 1, "s1 c1 s2 c2 v2 e1 c2"),
        ({"epochs": 9, "steps": 1}, None, 1, "s1 c1 v1 c1"),
    ],
)
def test_validations_and_checkpoints_come_when_asked_for(tmp_path, limits, validate_every, checkpoint_every, expected):
    recorded = Recorded()
    model = network()
    trainer = Trainer(
        model,
        pb.mse_loss,
        SGD(model.parameters()),
        callbacks=[recorded],
        folder=tmp_path,
        checkpoint_every=checkpoint_every,
    )
    data = Batches((X, Y), 12)
    trainer.fit(data, **limits, validation=data, validate_every=validate_every)
    short = [call.replace("checkpoint step-0000000", "c").replace("step ", "s") for call in recorded.calls[1:-1]]
    assert " ".join(short).replace("validation ", "v").replace("epoch ", "e") == expected


def test_an_evaluation_is_over_all_samples_and_disturbs_nothing():
    model = network(pb.nn.BatchNorm1d(5), pb.nn.Dropout(0.5))
    model[2].eval()  # and stays so

    def loss(output, target):
        return pb.mse_loss(output, target) + 0.0 * pb.random.uniform((), dtype=pb.float64)

    trainer = Trainer(model, loss, SGD(model.parameters()), metrics=["mse", "r2"])
    data = Batches((X, Y), 5, shuffle=True)
    next(iter(data))
    state, before = data.state_dict(), weights(model)
    model.train()
    model[2].eval()
    with pb.random.using(4) as generator:
        found = trainer.evaluate(data)
        assert generator.state["offset"] == 0
    assert data.state_dict() == state
    assert_same(weights(model), before)
    assert model.training and model[0].training and not model[2].training
    model.eval()
    output = model(pb.asarray(X)).detach().numpy()
    expected = {"loss": np.mean((output - Y) ** 2), "mse": np.mean((output - Y) ** 2)}
    expected["r2"] = np.mean(1 - ((output - Y) ** 2).sum(0) / ((Y - Y.mean(0)) ** 2).sum(0))
    assert found == pytest.approx(expected, rel=1e-12)


def test_metrics_of_an_epoch_are_those_of_its_outputs():
    outputs = []

    class Keeping(pb.nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            if self.training:
                outputs.append(out.detach().numpy().copy())
            return out

    model = Keeping(4, 3, dtype=pb.float64)
    classes = np.arange(23) % 3
    optimizer = SGD(model.parameters(), lr=1.0)
    trainer = Trainer(model, pb.cross_entropy, optimizer, metrics="accuracy", compile=False)  # the model keeps values
    data = Batches((X, classes), 6)
    history = trainer.fit(data, epochs=2, validation=data, validate_every=2)
    for epoch, record in enumerate(history.epochs):
        chosen = np.concatenate(outputs[4 * epoch : 4 * epoch + 4]).argmax(1)
        assert record["accuracy"] == np.mean(chosen == classes)


def test_a_metric_of_your_own_gets_outputs_without_a_graph():
    class Saved(Nameless):
        seen: list[pb.Tensor] = []

        def update(self, output, target):
            assert not output[0].requires_grad and not output[1]["again"].requires_grad
            self.seen.append(np.asarray(output[0]))

    class Two(pb.nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            return out, {"again": 2 * out}

    model = Two(4, 2, dtype=pb.float64)
    trainer = Trainer(
        model, lambda out, y: pb.mse_loss(out[0], y), SGD(model.parameters()), metrics={"kept": Saved()}, accumulate=2
    )
    history = trainer.fit([(X, Y)] * 2, epochs=1, validation=[(X, Y)])
    assert len(Saved.seen) == 3 and history.epochs.last["kept"] == 0.0


def test_a_nan_is_never_the_best():
    stopping = EarlyStopping("validation_r2", goal="highest", patience=2)
    asked = []
    trainer = type("Asked", (), {"step": 1, "request_stop": lambda self, reason: asked.append(reason)})()
    for step, value in enumerate((np.nan, 0.5, np.nan, 0.7), 1):
        stopping.on_validation(trainer, {"step": step, "validation_r2": value})
    assert (stopping.best.value, stopping.best.step, asked) == (0.7, 4, [])
    stopping = EarlyStopping("validation_r2", patience=2)
    for step in (1, 2):
        stopping.on_validation(trainer, {"step": step, "validation_r2": np.nan})
    assert asked == ["validation_r2 was not a number in 2 validations"]


@pytest.mark.parametrize(("goal", "sign"), [("lowest", 1), ("highest", -1)])
def test_early_stopping_ends_a_run_that_does_not_improve(goal, sign):
    values = iter([5.0, 4.0, 4.5, 3.95, 3.9, 3.85, 0.0])

    class Scripted(EarlyStopping):
        def on_validation(self, trainer, record):
            super().on_validation(trainer, {**record, "validation_loss": sign * next(values)})

    stopping = Scripted(goal=goal, patience=3, minimum_change=0.2)
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), callbacks=[stopping])
    data = Batches((X, Y), 12)
    history = trainer.fit(data, epochs=100, validation=data)
    assert trainer.epoch == 5 and stopping.best.value == sign * 4.0 and stopping.best.step == 4
    assert "has not improved on" in history.stop_reason and "in 3 validations" in history.stop_reason


def test_the_weights_at_the_best_validation_are_kept(tmp_path):
    kept = {}

    class Keep(Callback):
        def on_validation(self, trainer, record):
            kept[record["validation_loss"]] = weights(trainer.model)

    model = network()
    trainer = Trainer(
        model,
        pb.mse_loss,
        SGD(model.parameters(), lr=0.8, momentum=0.9),
        callbacks=[Keep()],
        folder=tmp_path,
        best="validation_loss",
    )
    trainer.fit(Batches((X, Y), 12), epochs=6, validation=Batches((X, Y), 23))
    assert min(kept) not in (next(iter(kept)), next(reversed(kept)))  # neither the first nor the last
    model.load_state_dict(pb.load(tmp_path / "best.safetensors"))
    assert_same(weights(model), kept[min(kept)])


def test_a_plateau_schedule_follows_the_validations():
    model = network()
    rates = []

    class Rates(Callback):
        def on_step(self, trainer, record):
            rates.append(record["learning_rate"])

    schedule = schedules.Plateau(patience=0, decay=0.5, threshold=1e9)  # nothing is good enough
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.8), schedule=schedule, callbacks=[Rates()])
    data = Batches((X, Y), 12)
    trainer.fit(data, epochs=4, validation=data)
    assert rates == [0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2]
    with pytest.raises(pb.ConfigurationError, match="Plateau"):
        trainer.fit(data, epochs=4)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_request_to_stop_ends_the_run_after_the_step(prefetch):
    class Stop(Callback):
        def on_step(self, trainer, record):
            if trainer.step == 3:
                trainer.request_stop("enough")

    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), callbacks=[Stop()])
    data = Batches((X, Y), 5, prefetch=prefetch)
    history = trainer.fit(data, epochs=9)
    assert (trainer.step, history.stop_reason, data.position) == (3, "enough", 3)
    assert not [thread for thread in threading.enumerate() if thread.name == "pullback-prefetch"]
    history = trainer.fit(data, epochs=2, resume=True)
    assert (trainer.step, trainer.epoch, history.stop_reason) == (10, 2, None)


def test_a_step_skipped_by_the_scaler_leaves_the_mean_norm_of_the_epoch_a_number():
    model = network()
    scaler, recorded = pb.optim.LossScaler(init_scale=2.0**120), Recorded()

    def large_loss(output, target):  # its gradients overflow in float32 until the scale is some halvings smaller
        return 1e4 * pb.mse_loss(output, target)

    optimizer = SGD(model.astype(pb.float32).parameters(), lr=1e-6)
    trainer = Trainer(model, large_loss, optimizer, scaler=scaler, callbacks=[recorded])
    history = trainer.fit([(X.astype(np.float32), Y.astype(np.float32))] * 30, epochs=1)
    norms = np.array([record["gradient_norm"] for record in recorded.records[:30]])
    assert not np.isfinite(norms[0]) and np.isfinite(norms[-1])
    np.testing.assert_allclose(history.epochs.last["gradient_norm"], norms[np.isfinite(norms)].mean())


def test_a_callback_that_fails_on_an_error_hides_neither_it_nor_the_others():
    class Failing(Callback):
        def on_step(self, trainer, record):
            raise KeyError("the first")

        def on_error(self, trainer, error):
            raise OSError("the disk is full")

    recorded = Recorded()
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), callbacks=[Failing(), recorded])
    with pytest.raises(KeyError, match="the first") as caught:
        trainer.fit(Batches((X, Y), 5), epochs=1)
    assert caught.value.__notes__ == [
        "And test_a_callback_that_fails_on_an_error_hides_neither_it_nor_the_others.<locals>.Failing.on_error failed: "
        "OSError: the disk is full"
    ]
    assert recorded.calls[-1].startswith("error")


def test_an_error_is_told_to_the_callbacks_and_raised():
    class Failing(Callback):
        def on_step(self, trainer, record):
            raise LookupError("in a callback")

    recorded = Recorded()
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), callbacks=[recorded, Failing()])
    with pytest.raises(LookupError, match="in a callback"):
        trainer.fit([(X, Y)], epochs=1)
    assert recorded.calls == ["start", "step 1", "error LookupError"]


# -- other kinds of data -----------------------------------------------------------------------------


def test_any_iterable_of_batches_is_data():
    results = []
    for data in (Batches((X, Y), 12), [(X[:12], Y[:12]), (X[12:], Y[12:])]):
        model = network()
        Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1)).fit(data, epochs=2)
        results.append(weights(model))
    assert_same(*results)


def test_a_generator_is_good_for_one_epoch():
    def batches():
        for _ in range(5):
            yield X, Y

    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), accumulate=2)
    trainer.fit(batches(), epochs=1)
    assert (trainer.step, trainer.total_steps) == (3, None)
    with pytest.raises(pb.ConfigurationError, match=r"no batches in epoch 2.*generator"):
        trainer.fit(batches(), epochs=2)
    with pytest.raises(pb.ConfigurationError, match="no batches"):
        trainer.evaluate(iter([]))


def test_endless_data_is_gone_through_for_so_many_steps():
    def endless():
        while True:
            yield X, Y

    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    trainer.fit(endless(), steps=4)
    assert (trainer.step, trainer.epoch, trainer.total_steps) == (4, 0, 4)


def test_runs_with_equal_seeds_are_equal():
    def run(seed, order):
        model = network(pb.nn.Dropout(0.5))
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), seed=seed)
        trainer.fit(Batches((X, Y), 6, shuffle=True, seed=order), epochs=2)
        return weights(model)["0.weight"].tobytes()

    assert run(0, 0) == run(0, 0)
    assert len({run(0, 0), run(1, 0), run(0, 1)}) == 3


def test_a_second_fit_is_a_new_run():
    model = network(pb.nn.Dropout(0.5))
    first = weights(model)
    optimizer = SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, pb.mse_loss, optimizer, schedule=schedules.Exponential(0.9), metrics="mse")
    data = Batches((X, Y), 6, shuffle=True)
    histories = []
    for _ in range(2):
        model.load_state_dict(first)
        history = trainer.fit(data, epochs=2)
        histories.append([history.epochs.column(name) for name in ("step", "loss", "mse", "learning_rate")])
    assert histories[0] == histories[1]


class Nameless:
    """A metric without a name."""

    def reset(self):
        pass

    def update(self, output, target):
        pass

    def compute(self):
        return 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"clip_norm": 0.0}, "clip_norm must be positive"),
        ({"accumulate": 0}, "accumulate must be at least 1"),
        ({"checkpoint_every": 5}, "need a folder"),
        ({"best": "validation_loss"}, "need a folder"),
        ({"folder": "x", "checkpoint_every": 0}, "checkpoint_every must be an integer of at least 1, got 0"),
        ({"folder": "x", "checkpoint_every": 1.5}, "checkpoint_every must be an integer of at least 1, got 1.5"),
        ({"folder": "x", "keep": 0}, "keep=0"),
        ({"folder": "x", "best": "a", "goal": "up"}, "got 'up'"),
        ({"callbacks": [print]}, "not a pb.train.Callback"),
        ({"metrics": "speed"}, "no metric 'speed'"),
        ({"metrics": [Nameless()]}, r"Nameless has no name.*\{"),
        ({"metrics": Nameless()}, r"Nameless has no name.*\{"),
        ({"clip_norm": "1"}, "clip_norm must be positive, got '1'"),
        ({"accumulate": 1.5}, "accumulate must be at least 1.*got 1.5"),
        ({"callbacks": EarlyStopping()}, "callbacks is a list"),
        ({"callbacks": [EarlyStopping]}, "the class EarlyStopping"),
        ({"average": 1}, "average is a decay below 1.*got 1"),
        ({"average": True}, "average is a decay below 1.*got True"),
        ({"scaler": True}, "scaler is a pb.optim.LossScaler.*got True"),
        ({"model": pb.nn.Linear}, "model is a pb.nn.Module.*the class Linear"),
        ({"model": np.tanh}, "model is a pb.nn.Module.*ufunc"),
        ({"loss": "mse"}, "loss is a function.*got 'mse'"),
        ({"loss": pb.nn.MSELoss}, "loss is a function.*the class MSELoss"),
        ({"optimizer": "adam"}, "optimizer is one of pb.optim.*got 'adam'"),
        ({"optimizer": Adam}, "optimizer is one of pb.optim.*the class Adam"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, words):
    model = network()
    with pytest.raises(pb.ConfigurationError, match=words):
        Trainer(**{"model": model, "loss": pb.mse_loss, "optimizer": SGD(model.parameters()), **arguments})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "say when to stop"),
        ({"epochs": 1, "resume": True, "overwrite": True}, "set one of them"),
        ({"epochs": 1, "validate_every": 2}, "validate_every=2 needs validation data"),
        ({"epochs": 1, "validate_every": 0, "validation": [(X, Y)]}, "validate_every must be an integer of at least 1"),
        ({"epochs": 1, "validate_every": 2.5, "validation": [(X, Y)]}, "validate_every must be an integer"),
        ({"epochs": 1.5}, "epochs must be an integer.*got 1.5"),
        ({"epochs": "3"}, "epochs must be an integer.*got '3'"),
        ({"steps": -1}, "steps must be an integer.*got -1"),
    ],
)
def test_a_fit_that_makes_no_sense_is_refused(arguments, words):
    model = network()
    with pytest.raises(pb.ConfigurationError, match=words):
        Trainer(model, pb.mse_loss, SGD(model.parameters())).fit([(X, Y)], **arguments)


@pytest.mark.parametrize("watched", [{"best": "validation_loss"}, {"callbacks": [EarlyStopping()]}])
def test_what_follows_validations_is_refused_without_them(watched, tmp_path):
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), folder=tmp_path, **watched)
    with pytest.raises(pb.ConfigurationError, match=r"'validation_loss'.*pass validation="):
        trainer.fit([(X, Y)], epochs=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "data", [pb.data.ArrayDataset(X, Y), pb.data.Subset(pb.data.ArrayDataset(X, Y), [1, 2])], ids=["arrays", "subset"]
)
def test_a_dataset_that_was_not_cut_into_batches_is_refused(data):
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    for call in (
        lambda: trainer.fit(data, epochs=1),
        lambda: trainer.fit([(X, Y)], epochs=1, validation=data),
        lambda: trainer.evaluate(data),
    ):
        with pytest.raises(pb.ConfigurationError, match=r"samples, not batches.*pb.data.Batches\(.*batch_size"):
            call()
    assert trainer.step == 0


def test_arrays_in_the_place_of_batches_are_refused():
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    with pytest.raises(pb.ConfigurationError, match=r"got a ndarray.*pb.data.Batches\(\(x, y\), batch_size"):
        trainer.fit((X, Y), epochs=1)


# -- Ctrl-C ------------------------------------------------------------------------------------------


class Press(Callback):
    """Presses Ctrl-C at some steps."""

    def __init__(self, *steps):
        self.steps = steps

    def on_step(self, trainer, record):
        for _ in range(self.steps.count(trainer.step)):
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_the_run_after_the_step_with_a_checkpoint(tmp_path, capsys):
    handler = signal.getsignal(signal.SIGINT)
    results = []
    for presses in ((), (2,), (5, 5 + 1)):
        model = network(pb.nn.Dropout(0.5))
        folder = tmp_path / f"run{len(results)}"
        trainer = Trainer(
            model, pb.mse_loss, Adam(model.parameters(), lr=0.1), folder=folder, callbacks=[Press(*presses)]
        )
        data = Batches((X, Y), 5, shuffle=True)
        for expected in presses:
            history = trainer.fit(data, epochs=3, resume=True)
            assert (trainer.step, history.stop_reason) == (expected, "interrupted (Ctrl-C)")
            assert f"step-0000000{expected}.safetensors; resume=True goes on" in capsys.readouterr().err
            assert signal.getsignal(signal.SIGINT) is handler
        history = trainer.fit(data, epochs=3, resume=True)
        assert (trainer.step, history.stop_reason) == (15, None)
        results.append(weights(model))
    assert_same(results[0], results[1])
    assert_same(results[0], results[2])


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path, capsys):
    recorded = Recorded()
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), folder=tmp_path, callbacks=[Press(3, 3), recorded])
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(Batches((X, Y), 5), epochs=3)
    assert "Press Ctrl-C again" in capsys.readouterr().err
    assert recorded.calls[-1] == "error KeyboardInterrupt" and not list(tmp_path.glob("checkpoints/step*"))


def test_training_in_another_thread_leaves_signals_alone():
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    thread = threading.Thread(target=trainer.fit, args=([(X, Y)],), kwargs={"epochs": 2})
    thread.start()
    thread.join()
    assert trainer.step == 2


# -- the optimizer's parameters ----------------------------------------------------------------------


def two_layers():
    return pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(3, 1))


def test_an_optimizer_of_another_model_s_parameters_is_refused():
    model = two_layers()
    for other in (two_layers(), deepcopy(model), pb.nn.Linear(2, 1)):
        with pytest.raises(pb.ConfigurationError, match=r"none of the model's parameters \(0\.weight, 0\.bias, 1\.w"):
            pb.train.Trainer(model, pb.mse_loss, pb.optim.Adam(other.parameters()))


def test_an_optimizer_of_some_of_the_parameters_is_refused():
    model = two_layers()
    mixed = [*model[1].parameters(), *two_layers()[0].parameters()]
    for some in (list(model[1].parameters()), mixed):
        with pytest.raises(pb.ConfigurationError, match=r"2 of the model's 4 .* not 0\.weight, 0\.bias\. .*freeze"):
            pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(some, lr=0.1))


def test_frozen_parameters_and_those_of_the_loss_need_no_model():
    model = two_layers().freeze("0.*")
    scale = pb.nn.Parameter(pb.ones(1))
    groups = [{"params": list(model[1].parameters())}, {"params": [scale], "lr": 0.5}]
    for parameters in (list(model[1].parameters()), [*model.parameters(), scale], groups):
        pb.train.Trainer(model, lambda x, y: pb.mse_loss(scale * x, y), pb.optim.SGD(parameters, lr=0.1))
    pb.train.Trainer(pb.nn.ReLU(), lambda x, y: pb.mse_loss(scale * x, y), pb.optim.SGD([scale], lr=0.1))


# -- signals -----------------------------------------------------------------------------------------


class SignalAt(pb.train.Callback):
    def __init__(self, *signals):
        self.signals = signals

    def on_step(self, trainer, record):
        if record["step"] == 3:
            for number in self.signals:
                signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_is_a_first_ctrl_c(tmp_path, number, capsys):
    model, x = pb.nn.Linear(1, 1), np.ones((2, 1), np.float32)
    trainer = pb.train.Trainer(
        model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=[SignalAt(number)], folder=tmp_path
    )
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    history = trainer.fit([(x, x)], steps=9)
    reason = {signal.SIGINT: "interrupted (Ctrl-C)", signal.SIGTERM: "terminated (SIGTERM)"}[number]
    assert (history.stop_reason, trainer.step, trainer.stop_signal) == (reason, 3, number)
    assert f"stopped: {reason}" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "checkpoints" / "step-00000003.safetensors").exists()
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before
    assert "ending after this step" in capsys.readouterr().err


def test_a_second_sigterm_is_what_it_was_outside(tmp_path):
    class EndedError(Exception):
        pass

    def end(number, frame):
        raise EndedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        model, x = pb.nn.Linear(1, 1), np.ones((2, 1), np.float32)
        for second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)):
            trainer = pb.train.Trainer(
                model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=[SignalAt(*second)]
            )
            with pytest.raises(EndedError):
                trainer.fit([(x, x)], steps=9)
            assert signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_signals_are_left_alone():
    model, x = pb.nn.Linear(1, 1), np.ones((2, 1), np.float32)
    seen = []

    class Look(pb.train.Callback):
        def on_step(self, trainer, record):
            seen.append(signal.getsignal(signal.SIGTERM))

    trainer = pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=[Look()])
    thread = threading.Thread(target=trainer.fit, args=([(x, x)],), kwargs={"steps": 1})
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_a_loop_of_ones_own_draws_the_trainers_dropout():
    """Trainer's random numbers begin with its own seed; data, weights and all else are those of the loop anyway."""
    x, y = np.random.default_rng(0).standard_normal((2, 24, 4)).astype(np.float32)

    def parts():
        pb.random.seed(0)
        model = pb.nn.Sequential(pb.nn.Linear(4, 8), pb.nn.Dropout(0.5), pb.nn.Linear(8, 4))
        return model, pb.optim.SGD(model.parameters(), lr=0.1), pb.data.Batches((x, y), 8, shuffle=True)

    model, optimizer, batches = parts()
    pb.train.Trainer(model, pb.mse_loss, optimizer, seed=3, compile=False, report=False).fit(batches, epochs=2)
    own, optimizer, batches = parts()
    with pb.random.using(3):
        for _ in range(2):
            for inputs, targets in batches:
                optimizer.zero_grad()
                pb.mse_loss(own(inputs), targets).backward()
                optimizer.step()
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, own.state_dict()[name])
