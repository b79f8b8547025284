"""Compiled steps: those of an eager run, errors that change nothing, and the notice where a step cannot be compiled."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.data import Batches
from pullback.optim import SGD, Adam, AdamW, Lion, schedules
from pullback.train import Callback, NotCompiledWarning, Trainer

from ..backends.installed import needs_llvmlite, needs_ml_dtypes, require

NUMBERS = np.random.default_rng(3)
X = NUMBERS.standard_normal((43, 6)).astype(np.float32)
Y = NUMBERS.standard_normal((43, 3)).astype(np.float32)
CLASSES = np.arange(43) % 3


def network(*middle, seed=0, last=3):
    pb.random.seed(seed)
    return pb.nn.Sequential(pb.nn.Linear(6, 8), pb.nn.Tanh(), *middle, pb.nn.Linear(8, last))


def weights(model):
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def assert_same(a, b):
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def count_traces(trainer):
    """How many programs the last run was made of."""
    return trainer._updater._compiled._compiled.traces


# -- the same run ----------------------------------------------------------------------------------


@needs_llvmlite
@pytest.mark.parametrize("clip_norm", [None, 0.2])
@pytest.mark.parametrize("optimizer", [SGD, Adam, AdamW, Lion])
@pytest.mark.parametrize("middle", [(), (pb.nn.BatchNorm1d(8), pb.nn.Dropout(0.3))], ids=["plain", "norm and dropout"])
def test_a_compiled_run_is_the_eager_one(clip_norm, optimizer, middle):
    results = []
    for compile in (False, True):
        model = network(*(type(part)(8) if isinstance(part, pb.nn.BatchNorm1d) else part for part in middle))
        trainer = Trainer(
            model,
            pb.cross_entropy,
            optimizer(model.parameters(), lr=0.01),
            schedule=schedules.Cosine(total=27, warmup=5),
            metrics="accuracy",
            clip_norm=clip_norm,
            average=0.9,
            compile=compile,
        )
        history = trainer.fit(Batches((X, CLASSES), 5, shuffle=True), epochs=3, validation=Batches((X, CLASSES), 16))
        assert trainer.why_not_compiled is None
        records = [[record[name] for name in ("loss", "gradient_norm", "learning_rate")] for record in history.steps]
        results.append((weights(model), records, history.epochs.column("accuracy"), trainer))
    (eager, eager_records, eager_accuracy, _), (mine, records, accuracy, trainer) = results
    for name in eager:
        np.testing.assert_allclose(mine[name], eager[name], rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(records, eager_records, rtol=1e-4, atol=1e-6)
    assert accuracy == eager_accuracy
    assert count_traces(trainer) == 2  # the last batch of an epoch is shorter


@needs_ml_dtypes
@needs_llvmlite
def test_mixed_precision_is_compiled():
    results = []
    for compile in (False, True):
        model = network()
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), autocast="bfloat16", compile=compile)
        results.append(trainer.fit(Batches((X, Y), 10), epochs=2).steps.column("loss"))
    np.testing.assert_allclose(results[1], results[0], rtol=2e-2)


@needs_llvmlite
@pytest.mark.parametrize("weight", [lambda mask: mask.sum(), lambda mask: 7.0, lambda mask: mask.shape[0]])
def test_a_loss_that_gives_its_weight_is_compiled(weight):
    def masked(output, target):
        mask = (target[:, :1] > 0).astype(output.dtype)
        return (mask * (output - target) ** 2).sum(), weight(mask)

    results = []
    for compile in (False, True):
        model = network()
        trainer = Trainer(model, masked, SGD(model.parameters(), lr=0.1), compile=compile)
        history = trainer.fit(Batches((X, Y), 10), epochs=2)
        results.append((history.steps.column("loss"), history.epochs.column("loss"), *weights(model).values()))
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sign", [0.0, -1.0])
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=needs_llvmlite)])
def test_a_weight_that_is_not_positive_is_an_error_and_changes_nothing(sign, compile):
    def weighted(output, target):
        return pb.mse_loss(output, target), sign * (target * target).sum()

    model = network(pb.nn.BatchNorm1d(8))
    before = weights(model)
    trainer = Trainer(model, weighted, SGD(model.parameters(), lr=0.1), compile=compile)
    with pytest.raises(pb.ConfigurationError, match="must be positive"):
        trainer.fit([(X, Y)], epochs=1)
    assert_same(weights(model), before)


@needs_llvmlite
def test_outputs_may_be_trees():
    class Two(pb.nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            return {"out": out, "others": [2 * out, 3]}

    seen = []

    class Saved:
        def reset(self):
            pass

        def update(self, output, target):
            assert not output["out"].requires_grad
            seen.append((output["others"][0].numpy() - 2 * output["out"].numpy(), output["others"][1]))

        def compute(self):
            return 0.0

    model = Two(6, 3)
    trainer = Trainer(
        model,
        lambda out, y: pb.mse_loss(out["out"], y),
        SGD(model.parameters(), lr=0.1),
        metrics={"kept": Saved()},
        compile=True,
    )
    trainer.fit(Batches((X, Y), 20), epochs=2)
    assert len(seen) == 6 and all(not difference.any() and three == 3 for difference, three in seen)


@needs_llvmlite
def test_a_run_that_was_cut_off_goes_on_bit_for_bit(tmp_path):
    results = []
    for name, cuts in (("whole", [27]), ("cut", [4, 9, 20, 27])):
        for steps in cuts:
            model = network(pb.nn.BatchNorm1d(8), pb.nn.Dropout(0.3))
            optimizer = AdamW(model.parameters(), lr=0.01)
            trainer = Trainer(model, pb.mse_loss, optimizer, folder=tmp_path / name, clip_norm=0.5, compile=True)
            trainer.fit(Batches((X, Y), 5, shuffle=True), steps=steps, resume=True)
        results.append(weights(model))
    assert_same(*results)


@needs_llvmlite
def test_an_optimizer_that_is_loaded_between_steps_goes_on_from_there():
    """Its buffers are other tensors then."""
    results = []
    for compile in (False, True):
        model = network()
        optimizer = Adam(model.parameters(), lr=0.01)
        states = []

        class GoBack(Callback):
            def on_step(self, trainer, record, states=states):
                states.append((trainer.model.state_dict(), trainer.optimizer.state_dict()))
                if trainer.step == 4:
                    trainer.model.load_state_dict(states[1][0])
                    trainer.optimizer.load_state_dict(states[1][1])

        Trainer(model, pb.mse_loss, optimizer, callbacks=[GoBack()], compile=compile).fit([(X, Y)] * 8, epochs=1)
        moments = [state["exp_avg"].numpy().copy() for state in optimizer.state_dict()["state"].values()]
        results.append([*weights(model).values(), *moments])
    for eager, mine in zip(*results):
        np.testing.assert_allclose(mine, eager, rtol=1e-4, atol=1e-6)


# -- what is not finite ----------------------------------------------------------------------------


@needs_llvmlite
@pytest.mark.parametrize("guard", ["raise", "off"])
@pytest.mark.parametrize("where", [0, 1])
def test_a_bad_value_changes_nothing_whatever_the_guard(guard, where):
    arrays = [X.copy(), Y.copy()]
    arrays[where][23, 1] = np.nan
    model = network(pb.nn.BatchNorm1d(8), pb.nn.Dropout(0.5))
    optimizer = Adam(model.parameters(), lr=0.1)
    trainer = Trainer(model, pb.mse_loss, optimizer, compile=True)
    kept = []

    class Keep(Callback):
        def on_step(self, trainer, record):
            kept.append((weights(trainer.model), trainer._generator.state, optimizer.state_dict()["state"][0]))

    trainer.callbacks.append(Keep())
    words = r"step 3, epoch 1, batch 3: .*\(sample 23 of the dataset\).*before this step"
    with pb.guard(guard), pytest.raises(pb.NumericalInstabilityError, match=words):
        trainer.fit(Batches(tuple(arrays), 10), epochs=1)
    model_before, _, optimizer_before = kept[-1]
    assert len(kept) == 2
    assert_same(weights(model), model_before)
    now = optimizer.state_dict()["state"][0]
    assert now["step"] == optimizer_before["step"] == 2
    np.testing.assert_array_equal(now["exp_avg"].numpy(), optimizer_before["exp_avg"].numpy())


@needs_llvmlite
@pytest.mark.parametrize("guard", ["raise", "off"])
def test_an_infinite_loss_with_finite_gradients_is_an_error(guard):
    targets = Y.copy()
    targets[30, 2] = np.inf
    model = network()
    before = weights(model)
    trainer = Trainer(model, lambda out, y: out.mean() + y.max(), SGD(model.parameters(), lr=0.1), compile=True)
    with pb.guard(guard), pytest.raises(pb.NumericalInstabilityError, match=r"step 1, .*inf.*before this step"):
        trainer.fit(Batches((X[25:], targets[25:]), 10), epochs=1)
    assert_same(weights(model), before)


@needs_llvmlite
def test_an_infinite_gradient_of_a_finite_loss_names_its_operation():
    def steep(output, target):
        return pb.sqrt(pb.abs(output - output)).mean()

    model = network()
    before = weights(model)
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 1.*sqrt"):
        Trainer(model, steep, SGD(model.parameters()), compile=True).fit([(X, Y)], epochs=1)
    assert_same(weights(model), before)


@needs_llvmlite
def test_gradients_whose_squares_vanish_have_a_norm_and_are_used():
    model = pb.nn.Linear(2, 1, bias=False)
    before = model.weight.detach().numpy().copy()
    inputs = np.array([[3e-25, 4e-25]], np.float32)
    trainer = Trainer(model, lambda output, target: output.sum(), SGD(model.parameters(), lr=1e24), compile=True)
    history = trainer.fit([(inputs, np.zeros(1, np.float32))], epochs=1)
    assert history.steps.last["gradient_norm"] == pytest.approx(5e-25, rel=1e-6, abs=0)
    np.testing.assert_allclose(before - model.weight.detach().numpy(), [[0.3, 0.4]], rtol=1e-5)


# -- what cannot be compiled -----------------------------------------------------------------------


class Branching(pb.nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        return out if out.sum() > 0 else -out


@needs_llvmlite
def test_a_model_that_cannot_be_traced_is_trained_with_one_notice():
    results = []
    for compile in (False, None):
        pb.random.seed(0)
        model = Branching(6, 3)
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), compile=compile)
        if compile is None:
            with pytest.warns(NotCompiledWarning, match=r"test_compiling.py:\d+.*`pb.where`.*compile=False") as told:
                trainer.fit(Batches((X, Y), 10), epochs=3)
            assert len(told) == 1 and told[0].filename == __file__
            assert "test_compiling.py" in trainer.why_not_compiled
        else:
            trainer.fit(Batches((X, Y), 10), epochs=3)
        results.append(weights(model))
    assert_same(*results)


@needs_llvmlite
def test_compile_true_insists():
    model = Branching(6, 3)
    with pytest.raises(pb.TraceError, match=r"test_compiling\.py"):
        Trainer(model, pb.mse_loss, SGD(model.parameters()), compile=True).fit([(X, Y)], epochs=1)


@needs_llvmlite
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scaler": pb.optim.LossScaler()}, "loss scaler"),
        ({"device": "strict:device1"}, "on 'strict:device1'"),
        ({"around": lambda: pb.guard("trace")}, "every operation"),
    ],
)
def test_what_is_known_not_to_be_compiled_is_eager_without_a_notice(options, words):
    require(options.get("device", "numpy"))
    options = dict(options)
    around = options.pop("around", lambda: warnings.catch_warnings())
    device = options.pop("device", "numpy")
    model = network().to_device(device)
    with around():
        trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), **options)
        trainer.fit([(X, Y)] * 2, epochs=1)
        assert words in trainer.why_not_compiled
        with pytest.raises(pb.ConfigurationError, match=f"compile=True.*{words}"):
            Trainer(model, pb.mse_loss, SGD(model.parameters()), **options, compile=True).fit([(X, Y)], epochs=1)


def test_without_llvmlite_steps_are_eager(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)  # importing it raises
    model = network()
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    trainer.fit([(X, Y)], epochs=2)
    assert "pip install 'pullback[compile]'" in trainer.why_not_compiled


def test_an_error_of_the_model_is_its_own():
    class Wrong(pb.nn.Linear):
        def forward(self, x):
            raise LookupError("no such thing")

    model = Wrong(6, 3)
    with pytest.raises(LookupError, match="no such thing"):
        Trainer(model, pb.mse_loss, SGD(model.parameters())).fit([(X, Y)], epochs=1)


# -- Python values that change ---------------------------------------------------------------------


@needs_llvmlite
def test_a_step_that_keeps_something_is_not_compiled_and_counts_once():
    calls = []

    def loss(output, target):
        calls.append(output.shape)
        return pb.mse_loss(output, target)

    model = network()
    trainer = Trainer(model, loss, SGD(model.parameters()))
    with pytest.warns(
        NotCompiledWarning, match=r"test_compiling.py:\d+: the step changes .*`calls` had 0 items and has 1"
    ):
        trainer.fit([(X, Y)] * 3, epochs=1)
    assert len(calls) == 3


class Counting(pb.nn.Linear):
    calls = 0
    last = None

    def forward(self, x):
        self.calls += 1
        self.last = super().forward(x)
        return self.last


@needs_llvmlite
def test_a_model_that_keeps_its_output_is_not_compiled():
    model = Counting(6, 3)
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()))
    with pytest.warns(
        NotCompiledWarning, match=r"test_compiling.py:\d+: the step changes .*`model\.calls` was 0 and is 1"
    ):
        trainer.fit([(X, Y)] * 3, epochs=1)
    assert model.calls == 3 and model.last.detach().numpy().shape == (43, 3)


class Scaled(pb.nn.Linear):
    factor = 1.0

    def forward(self, x):
        return super().forward(x) * self.factor


SHARED = {"factor": 1.0}


def closure():
    factor = 1.0

    def change(value):
        nonlocal factor
        factor = value

    return (lambda out, y: factor * pb.mse_loss(out, y)), change


def through_closure():
    model = pb.nn.Linear(6, 3)
    return model, *closure()


def through_attribute():
    model = Scaled(6, 3)
    return model, pb.mse_loss, lambda value: setattr(model, "factor", value)


def through_class():
    model = Scaled(6, 3)
    return model, pb.mse_loss, lambda value: setattr(Scaled, "factor", value)


def through_global():
    model = pb.nn.Linear(6, 3)
    return model, lambda out, y: SHARED["factor"] * pb.mse_loss(out, y), lambda value: SHARED.update(factor=value)


def through_object():
    model = pb.nn.Linear(6, 3)

    class Settings:
        factor = 1.0

    settings = Settings()
    settings.factor = 1.0
    loss = lambda out, y: settings.factor * pb.mse_loss(out, y)
    return model, loss, lambda value: setattr(settings, "factor", value)


@needs_llvmlite
@pytest.mark.parametrize("made", [through_closure, through_attribute, through_class, through_global, through_object])
@pytest.mark.parametrize("every", [1, 4])
def test_a_number_that_changes_is_noticed(made, every, monkeypatch):
    """Now and then: another program. At every step: it becomes an input."""
    monkeypatch.setattr(Scaled, "factor", 1.0)
    monkeypatch.setitem(SHARED, "factor", 1.0)
    results = []
    for compile in (False, None):
        pb.random.seed(0)
        model, loss, change = made()

        class Changing(Callback):
            def on_step(self, trainer, record, change=change):
                if trainer.step % every == 0:
                    change(1.0 + trainer.step)

        trainer = Trainer(model, loss, SGD(model.parameters(), lr=0.01), callbacks=[Changing()], compile=compile)
        history = trainer.fit([(X, Y)] * 8, epochs=1)
        if compile is None:
            assert trainer._updater._compiled._compiled.traces <= 4
        results.append(history.steps.column("loss"))
        change(1.0)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4)


@needs_llvmlite
def test_freezing_a_layer_between_steps_is_noticed():
    model = network()

    class Freeze(Callback):
        def on_step(self, trainer, record):
            if trainer.step == 2:
                model[0].freeze("weight")
                kept.append(model[0].weight.detach().numpy().copy())

    kept = []
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters(), lr=0.1), callbacks=[Freeze()], compile=True)
    trainer.fit([(X, Y)] * 5, epochs=1)
    np.testing.assert_array_equal(model[0].weight.detach().numpy(), kept[0])


@needs_llvmlite
def test_a_group_that_is_added_between_steps_is_trained():
    model = network()
    model[2].freeze()
    optimizer = SGD(model[0].parameters(), lr=0.1)
    before = model[2].weight.detach().numpy().copy()

    class Unfreeze(Callback):
        def on_step(self, trainer, record):
            if trainer.step == 2:
                np.testing.assert_array_equal(model[2].weight.detach().numpy(), before)
                optimizer.add_param_group({"params": list(model[2].unfreeze().parameters())})

    Trainer(model, pb.mse_loss, optimizer, callbacks=[Unfreeze()], compile=True).fit([(X, Y)] * 5, epochs=1)
    assert (model[2].weight.detach().numpy() != before).all()


@needs_llvmlite
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_memory_of_a_step_is_planned_before_it_is_made(accumulate):
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(32, 512), pb.nn.ReLU(), pb.nn.Linear(512, 4))
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.1)
    trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, clip_norm=1.0, accumulate=accumulate)
    batch = np.ones((256, 32), np.float32), np.ones((256, 4), np.float32)
    plan = trainer.plan(batch)
    assert trainer.plan(batch, "torch:cuda")["saved"] > 0  # which need not be here
    assert trainer.step == 0
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    trainer.fit([batch] * accumulate, steps=1)
    compiled = trainer._updater._compiled
    memory = (compiled._compiled if accumulate == 1 else compiled._add).memory
    assert 0 <= memory["arena"] - plan["arena"] < 1 << 20  # room of kernels, which only compiling knows
    trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, compile=False)
    with pytest.raises(pb.ConfigurationError, match=r"only compiled steps are planned.*: compile=False"):
        trainer.plan(batch)
