"""Learning rates over whole runs are PyTorch's; those with a warm-up are its LinearLR and then the schedule."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import pullback as pb
from pullback.optim import schedules

from ..backends.installed import optional

torch = optional("torch")
lr_scheduler = optional("torch.optim.lr_scheduler")

BASES = (0.1, 0.003)


def pytorch_rates(make, steps, metrics=None):
    optimizer = torch.optim.SGD([{"params": [torch.ones(1, requires_grad=True)], "lr": base} for base in BASES])
    scheduler = make(optimizer)
    rates = [[group["lr"] for group in optimizer.param_groups]]
    for step in range(steps):
        optimizer.step()
        scheduler.step(*([] if metrics is None else [metrics[step]]))
        rates.append([group["lr"] for group in optimizer.param_groups])
    return np.array(rates)


def scheduler_of(schedule):
    optimizer = pb.optim.SGD([{"params": [pb.tensor([1.0], requires_grad=True)], "lr": base} for base in BASES])
    return pb.optim.Scheduler(optimizer, schedule)


def rates_of(schedule, steps, metrics=None):
    scheduler = scheduler_of(schedule)
    rates = [scheduler.last_lr]
    for step in range(steps):
        scheduler.step(*([] if metrics is None else [metrics[step]]))
        rates.append(scheduler.last_lr)
    return np.array(rates)


S = lr_scheduler
CASES = [
    (schedules.Constant(), lambda o: S.ConstantLR(o, 1.0, 1), 10),
    (schedules.Linear(5, 1 / 3, 1.0), S.LinearLR, 9),
    (schedules.Linear(17), lambda o: S.LinearLR(o, 1.0, 0.0, 17), 25),
    (schedules.Linear(1, 0.25, 0.5), lambda o: S.LinearLR(o, 0.25, 0.5, 1), 3),
    (schedules.Cosine(23), lambda o: S.CosineAnnealingLR(o, 23), 23),
    (schedules.Cosine(1), lambda o: S.CosineAnnealingLR(o, 1), 1),
    (schedules.Step(4), lambda o: S.StepLR(o, 4), 21),
    (schedules.Step(1, 0.9), lambda o: S.StepLR(o, 1, 0.9), 21),
    (schedules.Exponential(0.97), lambda o: S.ExponentialLR(o, 0.97), 50),
    (schedules.OneCycle(40), lambda o: S.OneCycleLR(o, list(BASES), 40, cycle_momentum=False), 39),
    (
        schedules.OneCycle(33, rise=0.45, initial=10.0, final=50.0, linear=True),
        lambda o: S.OneCycleLR(o, list(BASES), 33, None, None, 0.45, "linear", False, 0.85, 0.95, 10.0, 50.0),
        32,
    ),
    (
        schedules.OneCycle(7, rise=1.0),
        lambda o: S.OneCycleLR(o, list(BASES), 7, pct_start=1.0, cycle_momentum=False),
        6,
    ),
]


def named(value):
    return getattr(value, "__name__", str(value)[:60])


@pytest.mark.parametrize(("schedule", "make", "steps"), CASES, ids=named)
def test_same_rates_as_pytorch(schedule, make, steps):
    np.testing.assert_allclose(rates_of(schedule, steps), pytorch_rates(make, steps), rtol=1e-12, atol=1e-15)


def test_cosine_to_a_minimum():
    ours = rates_of(schedules.Cosine(20, minimum=0.05), 20)
    theirs = pytorch_rates(lambda o: S.CosineAnnealingLR(o, 20, eta_min=0.05 * BASES[0]), 20)
    np.testing.assert_allclose(ours[:, 0], theirs[:, 0], rtol=1e-12)


WARMED = [
    (schedules.Cosine(30, warmup=6), lambda o: S.CosineAnnealingLR(o, 24), 30),
    (schedules.Linear(30, warmup=6), lambda o: S.LinearLR(o, 1.0, 0.0, 24), 33),
    (schedules.Step(4, warmup=6), lambda o: S.StepLR(o, 4), 30),
    (schedules.Exponential(0.9, warmup=6), lambda o: S.ExponentialLR(o, 0.9), 30),
    (schedules.Constant(warmup=6), lambda o: S.ConstantLR(o, 1.0, 1), 12),
]


@pytest.mark.filterwarnings("ignore:.*epoch parameter in `scheduler.step.*:UserWarning")
@pytest.mark.parametrize(("schedule", "make", "steps"), WARMED, ids=named)
def test_warm_up_is_pytorchs_linear_one_before_the_rest(schedule, make, steps):
    def joined(optimizer):
        return S.SequentialLR(optimizer, [S.LinearLR(optimizer, 1 / 7, 1.0, 6), make(optimizer)], milestones=[6])

    np.testing.assert_allclose(rates_of(schedule, steps), pytorch_rates(joined, steps), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("schedule", [schedules.Linear(9), schedules.Cosine(9), schedules.OneCycle(9)], ids=str)
def test_the_last_rate_stays_after_the_end(schedule):
    last = schedule(9)
    assert last < 1e-5
    assert [schedule(step) for step in (10, 11, 1000)] == [last] * 3


METRICS = [*(1.0 / (1 + i) for i in range(6)), *[0.2] * 14, 0.1, *[0.1] * 9, math.nan, math.inf, -1.0, *[-1.0] * 20]
PLATEAUS = [
    ({}, {}),
    ({"patience": 2, "decay": 0.5}, {"patience": 2, "factor": 0.5}),
    ({"patience": 1, "cooldown": 3}, {"patience": 1, "cooldown": 3}),
    ({"mode": "max", "patience": 1, "decay": 0.5}, {"mode": "max", "patience": 1, "factor": 0.5}),
    (
        {"threshold": 0.3, "threshold_mode": "abs", "patience": 0, "decay": 0.9},
        {"threshold": 0.3, "threshold_mode": "abs", "patience": 0, "factor": 0.9},
    ),
    ({"threshold": 0.3, "mode": "max", "patience": 0}, {"threshold": 0.3, "mode": "max", "patience": 0}),
]


@pytest.mark.parametrize(("ours", "theirs"), PLATEAUS, ids=str)
def test_plateau_is_pytorchs(ours, theirs):
    expected = pytorch_rates(lambda o: S.ReduceLROnPlateau(o, eps=0.0, **theirs), len(METRICS), METRICS)
    found = rates_of(schedules.Plateau(eps=0.0, **ours), len(METRICS), METRICS)
    assert len(set(expected[:, 0])) > 1
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_plateau_stops_at_its_minimum():
    found = rates_of(schedules.Plateau(patience=0, decay=0.5, minimum=0.2), 6, [1.0] * 6)
    np.testing.assert_allclose(found[:, 0] / BASES[0], [1.0, 1.0, 0.5, 0.25, 0.2, 0.2, 0.2])


def test_plateau_keeps_the_rate_at_steps_without_a_metric():
    scheduler = scheduler_of(schedules.Plateau(patience=0, decay=0.5, warmup=2))
    rates = []
    for metric in (None, None, 1.0, None, 1.0, None, None):
        scheduler.step(metric)
        rates.append(scheduler.last_lr[0] / BASES[0])
    np.testing.assert_allclose(rates, [2 / 3, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    "make",
    [
        lambda: schedules.Cosine(30, warmup=5),
        lambda: schedules.Plateau(patience=1, decay=0.5),
        lambda: lambda s: 1 / (1 + s),
    ],
    ids=["cosine", "plateau", "function"],
)
def test_goes_on_from_a_saved_state(make):
    schedule = make()
    metrics = METRICS if isinstance(schedule, schedules.Plateau) else None
    whole = rates_of(schedule, 20, metrics)
    first = scheduler_of(make())
    for step in range(9):
        first.step(*([] if metrics is None else [metrics[step]]))
    state = json.loads(json.dumps(first.state_dict()))
    resumed = scheduler_of(make())
    resumed.load_state_dict(state)
    rates = [resumed.last_lr]
    for step in range(9, 20):
        resumed.step(*([] if metrics is None else [metrics[step]]))
        rates.append(resumed.last_lr)
    np.testing.assert_array_equal(rates, whole[9:])


def test_a_scheduler_made_anew_on_a_resumed_optimizer_starts_from_the_base_rates():
    first = scheduler_of(schedules.Exponential(0.5))
    for _ in range(3):
        first.step()
    optimizer = pb.optim.SGD([{"params": [pb.tensor([1.0], requires_grad=True)]} for _ in BASES])
    optimizer.load_state_dict(first.optimizer.state_dict())
    second = pb.optim.Scheduler(optimizer, schedules.Exponential(0.5))
    assert second.last_lr == list(BASES)
    second.load_state_dict(first.state_dict())
    assert second.last_lr == first.last_lr


def test_refuses_what_makes_no_sense():
    for make in (
        lambda: schedules.Cosine(0),
        lambda: schedules.Cosine(5, warmup=5),
        lambda: schedules.Linear(3, warmup=-1),
        lambda: schedules.Step(0),
        lambda: schedules.OneCycle(10, rise=1.5),
        lambda: schedules.OneCycle(10, initial=0.0),
        lambda: schedules.Plateau(mode="least"),
        lambda: schedules.Plateau(threshold_mode="both"),
        lambda: schedules.Plateau(decay=1.0),
        lambda: scheduler_of(0.5),
        lambda: scheduler_of(schedules.Cosine(5)).step(0.3),
        lambda: scheduler_of(schedules.Cosine(5)).load_state_dict({"steps": 1}),
        lambda: scheduler_of(schedules.Cosine(5)).load_state_dict({"steps": 1, "base_lrs": [0.1], "schedule": {}}),
        lambda: scheduler_of(schedules.Cosine(5)).load_state_dict(scheduler_of(schedules.Plateau()).state_dict()),
        lambda: scheduler_of(schedules.Plateau()).load_state_dict(scheduler_of(schedules.Cosine(5)).state_dict()),
    ):
        with pytest.raises(pb.ConfigurationError):
            make()


def test_schedules_are_values():
    assert schedules.Cosine(10, warmup=2) == schedules.Cosine(10, warmup=2) != schedules.Cosine(10)
    assert repr(schedules.Step(4)) == "Step(warmup=0, every=4, gamma=0.1)"


def test_the_rates_are_given_by_pytorchs_name_too():
    optimizer = pb.optim.SGD([pb.tensor([1.0], requires_grad=True)], lr=0.2)
    scheduler = pb.optim.Scheduler(optimizer, pb.optim.schedules.Step(1, gamma=0.5))
    scheduler.step()
    assert scheduler.get_last_lr() == scheduler.last_lr == [0.1]


def test_a_scheduler_wants_its_optimizer_first():
    optimizer = pb.optim.SGD([pb.tensor([1.0], requires_grad=True)])
    with pytest.raises(pb.ConfigurationError, match=r"the first argument is an optimizer of pb\.optim, got Cosine"):
        pb.optim.Scheduler(pb.optim.schedules.Cosine(10), optimizer)
