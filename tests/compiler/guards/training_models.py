"""Ordinary training code: several compiled functions, several models, and what models bring with them."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, Iterator

import numpy as np

import pullback as pb
from pullback import nn, optim

from .training_loops import batches, network, program


@program
def accumulation_over_two_functions(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    @compiled
    def accumulate(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y) / 2
        loss.backward()
        return loss

    @compiled
    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    for number, (x, y) in enumerate(batches(8)):
        yield accumulate(x, y)
        if number % 2:
            update()
    yield list(model.parameters())


@program
def average_kept_outside(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    average = optim.ExponentialMovingAverage(model, 0.9)
    by_hand = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    for x, y in batches():
        yield step(x, y)
        average.update()
        for name, p in model.named_parameters():
            by_hand[name] += 0.1 * (p.detach().numpy() - by_hand[name])
    yield by_hand


@program
def evaluation_compiled_beside(compiled: Any) -> Iterator[Any]:
    model = network(nn.Dropout(0.2))
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    history = SimpleNamespace(training=[], validation=[], best=None)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    @compiled
    def evaluate(x: Any, y: Any) -> Any:
        with pb.no_grad():
            return pb.mse_loss(model(x), y)

    for _ in range(3):
        model.train()
        history.training += [step(x, y).item() for x, y in batches()]
        model.eval()
        history.validation += [evaluate(x, y).item() for x, y in batches(2)]
        if history.best is None or history.validation[-1] < history.best:
            history.best = history.validation[-1]
    yield history


@program
def dropout_drawn_from_the_librarys_generator(compiled: Any) -> Iterator[Any]:
    model = network(nn.Dropout(0.5))
    optimizer = optim.SGD(model.parameters(), lr=0.05)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x + 0.1 * pb.random.normal(x.shape)), y)
        optimizer.step(pb.backward(loss))
        return loss

    for x, y in batches():
        yield step(x, y)
    yield pb.random.get_state()["offset"]


@program
def batch_norm_buffers(compiled: Any) -> Iterator[Any]:
    model = network(nn.BatchNorm1d(8))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    for x, y in batches():
        yield step(x, y)
    yield model.state_dict()


@program
def transformer_of_six_copied_layers(compiled: Any) -> Iterator[Any]:
    layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.1, batch_first=True)
    model, head = nn.TransformerEncoder(layer, 6, nn.LayerNorm(4)), nn.Linear(4, 2)
    optimizer = optim.AdamW([*model.parameters(), *head.parameters()], lr=0.01)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.cross_entropy(head(model(x, is_causal=True).mean(1)), y)
        optimizer.step(pb.backward(loss))
        return loss

    numbers = np.random.default_rng(0)
    for _ in range(3):
        yield step(pb.tensor(numbers.standard_normal((2, 3, 4)).astype(np.float32)), pb.tensor([0, 1]))


@program
def two_models_with_two_optimizers(compiled: Any) -> Iterator[Any]:
    generator, critic = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3)), network()
    of_generator, of_critic = (optim.Adam(m.parameters(), lr=0.01, betas=(0.5, 0.999)) for m in (generator, critic))

    @compiled
    def critic_step(real: Any) -> Any:
        fake = generator(pb.random.normal((len(real), 2))).detach()
        loss = pb.softplus(critic(fake)).mean() + pb.softplus(-critic(real)).mean()
        of_critic.step(pb.backward(loss))
        return loss

    @compiled
    def generator_step(size: int) -> Any:
        loss = pb.softplus(-critic(generator(pb.random.normal((size, 2))))).mean()
        of_generator.step(pb.backward(loss))
        return loss

    for x, _ in batches():
        yield critic_step(x)
        yield generator_step(4)


@program
def teacher_and_student(compiled: Any) -> Iterator[Any]:
    teacher, student = network().freeze(), network()
    optimizer = optim.SGD(student.parameters(), lr=0.1)

    @compiled
    def step(x: Any) -> Any:
        with pb.no_grad():
            target = teacher(x)
        loss = pb.mse_loss(student(x), target)
        optimizer.step(pb.backward(loss))
        return loss

    for number, (x, _) in enumerate(batches(6)):
        yield step(x)
        if number == 2:
            teacher.load_state_dict(student.state_dict())


@program
def parameters_in_a_dict_with_value_and_grad(compiled: Any) -> Iterator[Any]:
    parameters = {"w": pb.random.normal((3, 1)) * 0.1, "b": pb.zeros((1,))}

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        return pb.mse_loss(x @ parameters["w"] + parameters["b"], y)

    @compiled
    def step(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = pb.value_and_grad(loss_of)(parameters, x, y)
        return loss, pb.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

    for x, y in batches():
        loss, parameters = step(parameters, x, y)
        yield loss
    yield parameters


@program
def saved_and_resumed(compiled: Any) -> Iterator[Any]:
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=0.05)

    @compiled
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    data = batches()
    yield [step(x, y) for x, y in data]
    saved = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    yield [step(x, y) for x, y in data]
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    yield [step(x, y) for x, y in data]
