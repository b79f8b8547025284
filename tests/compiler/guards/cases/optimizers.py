"""Optimizers inside a compiled step whose settings, parameters and state change between steps."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import pullback as pb
from pullback import optim

from ..harness import X, case, variable


class World:
    """Two variables, an optimizer of the first, and a step."""

    def __init__(self, compiled: Any, make: Callable[[Any], Any]) -> None:
        self.w, self.v = variable(1.0, 2.0), variable(0.5, -0.5)
        self.optimizer = make([self.w])
        self.saved: Any = None

        def step(x: Any) -> Any:
            loss = ((self.w * x + self.v) ** 2).mean()
            self.optimizer.step(pb.backward(loss))
            return loss

        self.step = compiled(step)

    @property
    def group(self) -> dict[str, Any]:
        return self.optimizer.param_groups[0]


def training(name: str, make: Callable[[Any], Any], *changed: Callable[[World], Any]) -> None:
    """A case of two steps at first and after each change; the loss and both variables are compared."""

    @case(name=name)
    def run(compiled: Any) -> Iterator[Any]:
        world = World(compiled, make)
        for change in (lambda world: None, *changed):
            change(world)
            for _ in range(2):
                yield world.step(X)
                yield world.w, world.v


def sgd(parameters: Any) -> Any:
    return optim.SGD(parameters, 0.01, momentum=0.9)


def adam(parameters: Any) -> Any:
    return optim.AdamW(parameters, 0.01)


def save(world: World) -> None:
    world.saved = world.optimizer.state_dict()


def group(**options: Any) -> Callable[[World], None]:
    return lambda world: world.group.update(options)


training("optimizer_rate", sgd, group(lr=0.1), group(lr=0.01), group(lr=0.0))
training("optimizer_rate_of_adam", adam, group(lr=0.1), group(lr=0.001))
training("optimizer_rate_becomes_an_integer", sgd, group(lr=1), group(lr=0.5))
training("optimizer_momentum", sgd, group(momentum=0.5), group(momentum=0.0), group(momentum=0.9))
training("optimizer_nesterov", sgd, group(nesterov=True), group(nesterov=False))
training("optimizer_dampening", sgd, group(dampening=0.5))
training("optimizer_weight_decay", sgd, group(weight_decay=0.1), group(weight_decay=0.0))
training("optimizer_weight_decay_of_adam", adam, group(weight_decay=0.5))
training("optimizer_betas", adam, group(betas=(0.5, 0.9)), group(betas=(0.9, 0.999)))
training("optimizer_epsilon", adam, group(eps=0.1))
training(
    "optimizer_group_added",
    sgd,
    lambda w: w.optimizer.add_param_group({"params": [w.v], "lr": 0.1}),
    lambda w: w.optimizer.param_groups[1].update(lr=0.01),
)
training("optimizer_state_loaded", adam, save, lambda w: w.optimizer.load_state_dict(w.saved))
training(
    "optimizer_replaced",
    sgd,
    lambda w: setattr(w, "optimizer", adam([w.w])),
    lambda w: setattr(w, "optimizer", adam([w.v])),
)
training("optimizer_replaced_by_its_equal", adam, lambda w: setattr(w, "optimizer", adam([w.w])))
training(
    "optimizer_frozen_parameter", sgd, lambda w: w.v.set_requires_grad(False), lambda w: w.v.set_requires_grad(True)
)
training("optimizer_parameter_written", adam, lambda w: w.w.data_mut().fill(3.0))
training("optimizer_variable_replaced", sgd, lambda w: setattr(w, "v", variable(3.0, 3.0)))
training("optimizer_group_replaced", sgd, lambda w: w.optimizer.param_groups.__setitem__(0, {**w.group, "lr": 0.2}))
training("optimizer_of_lion", lambda p: optim.Lion(p, 0.01), group(lr=0.1), group(betas=(0.5, 0.5)))
training("optimizer_of_rmsprop", lambda p: optim.RMSprop(p, 0.01), group(alpha=0.5), group(momentum=0.5))
training("optimizer_of_nadam", lambda p: optim.NAdam(p, 0.01), group(lr=0.1), group(momentum_decay=0.5))
training("optimizer_of_radam", lambda p: optim.RAdam(p, 0.01), group(lr=0.1), group(betas=(0.9, 0.5)))
training("optimizer_of_adagrad", lambda p: optim.Adagrad(p, 0.01), group(lr=0.1))


@case
def scheduler_stepped_outside(compiled: Any) -> Iterator[Any]:
    world = World(compiled, sgd)
    scheduler = optim.Scheduler(world.optimizer, optim.schedules.Cosine(total=10, warmup=2))
    for _ in range(5):
        yield world.step(X)
        scheduler.step()
        yield world.w, scheduler.last_lr


@case
def rate_read_by_the_users_code(compiled: Any) -> Iterator[Any]:
    world = World(compiled, sgd)
    f = compiled(lambda x: x * world.optimizer.param_groups[0]["lr"])
    yield f(X)
    world.group["lr"] = 0.5
    yield f(X)


@case
def optimizer_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)

    def step(optimizer: Any, x: Any) -> Any:
        loss = ((w * x) ** 2).mean()
        optimizer.step(pb.backward(loss))
        return loss

    f, first, second = compiled(step), sgd([w]), adam([w])
    for optimizer in (first, first, second, first, second):
        yield f(optimizer, X)
        yield w
    first.param_groups[0]["lr"] = 0.1
    yield f(first, X)
    yield w


@case
def gradients_left_in_grad_and_stepped(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    optimizer = adam([w])

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((w * x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    f = compiled(step)
    for rate in (0.01, 0.01, 0.1, 0.01):
        optimizer.param_groups[0]["lr"] = rate
        yield f(X)
        yield w, w.grad


@case
def clipping_limit_read_from_a_config(compiled: Any) -> Iterator[Any]:
    w, config = variable(1.0, 2.0), {"clip": 1.0}
    optimizer = sgd([w])

    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).mean()
        gradients = pb.backward(loss)
        if config["clip"] is not None:
            gradients.clip_global_norm(config["clip"])
        optimizer.step(gradients)
        return loss

    f = compiled(step)
    for clip in (1.0, 0.1, None, 1.0):
        config["clip"] = clip
        yield f(X)
        yield w


@case
def scale_of_a_loss_scaler(compiled: Any) -> Iterator[Any]:
    w, scaler = variable(1.0, 2.0), optim.LossScaler(init_scale=8.0)
    f = compiled(lambda x: scaler.scale((w * x).sum()))
    yield f(X)
    scaler.load_state_dict({**scaler.state_dict(), "scale": 16.0})
    yield f(X)


@case
def optimizer_of_the_users_with_a_setting(compiled: Any) -> Iterator[Any]:
    class Plain:
        def __init__(self, parameters: Any) -> None:
            self.parameters, self.rate = list(parameters), 0.01

        def step(self, gradients: Any) -> None:
            with pb.no_grad():
                for parameter in self.parameters:
                    parameter -= self.rate * gradients[parameter]

    world = World(compiled, Plain)
    for rate in (0.01, 0.1, 0.01):
        world.optimizer.rate = rate
        yield world.step(X)
        yield world.w
    world.optimizer.parameters.append(world.v)
    yield world.step(X)
    yield world.v
