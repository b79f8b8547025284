"""Ordinary training code: loops, and classes that hold everything.

A program is a generator of losses and other results; `compiled` marks its steps. What changes around the steps
(counters, histories, progress, rates, averages) is none of their business.
"""

from __future__ import annotations

import argparse
import copy
import logging
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb
from pullback import nn, optim

Program = Callable[[Any], Iterator[Any]]
PROGRAMS: dict[str, Program] = {}
config: Any = {"lr": 0.05, "clip": 1.0, "epochs": 2, "name": "run", "tags": ["a"]}
logger = logging.getLogger(__name__)


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def network(*extra: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), *extra, nn.Linear(8, 1))


def batches(count: int = 5, size: int = 4) -> list[tuple[pb.Tensor, pb.Tensor]]:
    numbers = np.random.default_rng(0)
    draws = [numbers.standard_normal((size, 3)).astype(np.float32) for _ in range(count)]
    return [(pb.tensor(x), pb.tensor(np.sin(x.sum(1, keepdims=True)))) for x in draws]


class ProgressBar:
    """As tqdm is: it counts, and keeps what it was told last."""

    def __init__(self, total: int) -> None:
        self.n, self.total, self.postfix = 0, total, {}

    def update(self, **postfix: Any) -> None:
        self.n += 1
        self.postfix = postfix


# -- loops ---------------------------------------------------------------------------------------


@program
def loop_with_counters_schedule_best_loss_and_early_stopping(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    scheduler = optim.Scheduler(optimizer, optim.schedules.Cosine(total=20, warmup=3))
    losses: list[float] = []
    best, best_state, patience, steps, bar = float("inf"), None, 0, 0, ProgressBar(20)

    @compiled
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = pb.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _epoch in range(3):
        for x, y in batches():
            loss = step(x, y).item()
            losses.append(loss)
            steps += 1
            bar.update(loss=loss, epoch=_epoch)
            scheduler.step()
        if sum(losses[-5:]) < best:
            best, best_state, patience = sum(losses[-5:]), copy.deepcopy(model.state_dict()), 0
        else:
            patience += 1
        if patience > 1:
            break
    yield losses
    yield best, steps, bar.n, bar.postfix["loss"]
    yield best_state


@program
def global_config(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)

    @compiled
    def step(x: Any, y: Any) -> Any:
        gradients = pb.backward(loss := pb.mse_loss(model(x), y))
        gradients.clip_global_norm(config["clip"])
        optimizer.step(gradients)
        return loss

    try:
        for epoch in range(config["epochs"]):
            config["epoch"] = epoch
            config["tags"].append(str(epoch))
            for x, y in batches():
                config["seen"] = config.get("seen", 0) + len(x)
                yield step(x, y)
    finally:
        config.update(tags=["a"])
        del config["epoch"], config["seen"]


@program
def state_dict_of_the_run(compiled: Any) -> Iterator[Any]:
    model = network()
    state: dict[str, Any] = {
        "model": model, "optimizer": optim.Adam(model.parameters(), lr=0.01), "epoch": 0, "step": 0, "losses": [],
        "best": None, "metrics": defaultdict(list), "recent": deque(maxlen=3),
    }  # fmt: skip

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(state["model"](x), y)
        state["optimizer"].step(pb.backward(loss))
        return loss

    for epoch in range(3):
        state["epoch"] = epoch
        for x, y in batches(3):
            loss = step(x, y)
            state["step"] += 1
            state["losses"].append(loss.item())
            state["metrics"]["loss"].append(loss.item())
            state["recent"].append(loss.item())
            state["best"] = min(state["losses"])
    yield state["losses"], state["best"], state["step"], list(state["recent"])


@program
def logging_around_the_steps(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.05)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    for number, (x, y) in enumerate(batches()):
        loss = step(x, y)
        logger.info("step %d: loss %.4f", number, loss.item())
        if number == 2:
            logger.setLevel(logging.DEBUG)
        yield loss
    logger.setLevel(logging.NOTSET)


@program
def last_batch_is_smaller(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):
        for x, y in [*batches(2), *batches(1, 3)]:
            yield step(x, y)


@program
def batches_of_arrays(compiled: Any) -> Iterator[Any]:
    numbers = np.random.default_rng(0)
    x, y = numbers.standard_normal((2000, 3)).astype(np.float32), numbers.integers(0, 2, 2000)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    data = pb.data.Batches(pb.data.ArrayDataset(x[:40], y[:40]), batch_size=8, shuffle=True, seed=0)

    @compiled
    def step(x: Any, y: Any) -> Any:
        output = model(x)
        loss = pb.cross_entropy(output, y)
        optimizer.step(pb.backward(loss))
        return loss, (output.argmax(-1) == y).sum()

    correct = 0
    for _ in range(2):
        for batch in data:
            loss, right = step(*batch)
            correct += int(right)
            yield loss
    yield correct


# -- classes -------------------------------------------------------------------------------------


@dataclass
class Settings:
    lr: float = 0.02
    clip: float = 1.0
    widths: list[int] = field(default_factory=lambda: [8])
    step: int = 0


class Experiment:
    """Holds everything; its step reads a part."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.model = network()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=self.settings.lr)
        self.scheduler = optim.Scheduler(self.optimizer, optim.schedules.Step(4, 0.5))
        self.dataset = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
        self.history: dict[str, list[float]] = {"loss": []}
        self.global_step, self.epoch, self.best = 0, 0, float("inf")
        self.callbacks: list[Any] = [lambda experiment: setattr(experiment, "called", experiment.global_step)]

    def _step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = pb.mse_loss(self.model(x), y)
        loss.backward()
        optim.clip_global_norm(list(self.model.parameters()), self.settings.clip)
        self.optimizer.step()
        return loss

    def fit(self, step: Any) -> Iterator[Any]:
        for self.epoch in range(2):
            order = np.random.default_rng(self.epoch).permutation(len(self.dataset))[:20]
            for part in order.reshape(5, 4):
                rows = pb.tensor(self.dataset[part])
                loss = step(rows[:, :3], rows[:, 3:])
                self.history["loss"].append(loss.item())
                self.global_step += 1
                self.settings.step = self.global_step
                self.best = min(self.best, loss.item())
                self.scheduler.step()
                self.dataset[part[0]] *= 0.5
                for callback in self.callbacks:
                    callback(self)
                yield loss
        yield self.history, self.best, self.global_step


@program
def class_that_compiles_its_method(compiled: Any) -> Iterator[Any]:
    class Compiling(Experiment):
        def __init__(self) -> None:
            super().__init__()
            self.step = compiled(self._step)

    experiment = Compiling()
    yield from experiment.fit(experiment.step)


@program
def class_with_a_decorated_method(compiled: Any) -> Iterator[Any]:
    class Decorated(Experiment):
        @compiled
        def step(self, x: Any, y: Any) -> Any:
            return self._step(x, y)

    experiment = Decorated()
    yield from experiment.fit(experiment.step)


@program
def dataclass_and_command_line_config(compiled: Any) -> Iterator[Any]:
    options, settings = argparse.Namespace(lr=0.05, smoothing=0.1, verbose=False), Settings()
    model = nn.Sequential(nn.Linear(3, settings.widths[0]), nn.GELU(), nn.Linear(settings.widths[0], 2))
    optimizer = optim.SGD(model.parameters(), lr=options.lr)

    def loss_of(output: Any, target: Any, options: Any) -> Any:
        return pb.cross_entropy(output, target, label_smoothing=options.smoothing)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = loss_of(model(x), y, options)
        optimizer.step(pb.backward(loss))
        return loss.detach() * settings.clip

    for number, (x, _) in enumerate(batches()):
        options.verbose, settings.step = bool(number % 2), number
        yield step(x, pb.tensor([0, 1, 1, 0]))


@program
def recurrent_class_with_a_hidden_state(compiled: Any) -> Iterator[Any]:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            self.cell, self.head, self.h = nn.GRUCell(3, 4), nn.Linear(4, 1), pb.zeros((4, 4))

        def forward(self, x: Any) -> Any:
            h = self.cell(x, self.h)
            self.h = h.detach()
            return self.head(h)

    model = Recurrent()
    optimizer = optim.AdamW(list(model.parameters()), lr=0.01)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(2):
        model.h = pb.zeros((4, 4))
        for x, y in batches():
            yield step(x, y)
            yield model.h


@program
def recurrent_class_that_starts_from_none(compiled: Any) -> Iterator[Any]:
    class Recurrent:
        def __init__(self) -> None:
            self.cell, self.h, self.steps = nn.RNNCell(3, 4), None, 0

        def __call__(self, x: Any) -> Any:
            self.h = self.cell(x, pb.zeros((x.shape[0], 4)) if self.h is None else self.h).detach()
            return self.h

    model = Recurrent()
    run = compiled(model)
    for x, _ in batches():
        yield run(x)
        model.steps += 1
        yield model.h
