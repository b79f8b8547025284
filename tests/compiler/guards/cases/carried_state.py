"""Objects that a function assigns to: tensors that are carried from call to call, results that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Iterator

import pullback as pb
from pullback import nn

from ..harness import X, case, variable

Y = pb.tensor([1.0, -1.0])


@case
def hidden_state_of_a_plain_class(compiled: Any) -> Iterator[Any]:
    class Cell:
        def __init__(self) -> None:
            self.w, self.h = pb.tensor([0.5, 0.25]), pb.zeros((2,))

        def step(self, x: Any) -> Any:
            self.h = pb.tanh(self.h * self.w + x)
            return self.h * 2

    cell = Cell()
    f = compiled(cell.step)
    for x in (X, Y, Y, X):
        yield f(x)
        yield cell.h
    cell.h = pb.zeros((2,))
    yield f(X)
    yield cell.h


@case
def hidden_state_that_is_none_at_first(compiled: Any) -> Iterator[Any]:
    class Cell:
        h: Any = None

        def __call__(self, x: Any) -> Any:
            self.h = x if self.h is None else pb.tanh(self.h + x)
            return self.h

    cell = Cell()
    f = compiled(cell)
    for x in (X, Y, Y):
        yield f(x)
        yield cell.h
    cell.h = None
    yield f(Y)
    yield cell.h


@case
def hidden_state_of_a_module(compiled: Any) -> Iterator[Any]:
    class Cell(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(2, 2)
            self.h = None

        def forward(self, x: Any) -> Any:
            h = self.linear(x) if self.h is None else pb.tanh(self.linear(x) + self.h)
            self.h = h.detach()
            return h

    cell = Cell()
    f = compiled(cell)
    for x in (X, Y, Y):
        yield f(x)
        yield cell.h
    cell.h = None
    yield f(Y)
    yield cell.h


@case
def hidden_state_by_a_compiled_method(compiled: Any) -> Iterator[Any]:
    class Cell:
        def __init__(self) -> None:
            self.h = pb.zeros((2,))

        @compiled
        def step(self, x: Any) -> Any:
            self.h = self.h * 0.5 + x
            return self.h.sum()

    first, second = Cell(), Cell()
    for cell in (first, second, first, first, second):
        yield cell.step(X)
        yield first.h, second.h


@case
def hidden_state_of_another_shape_between_calls(compiled: Any) -> Iterator[Any]:
    cell = SimpleNamespace(h=pb.zeros((1, 2)))

    def step(x: Any) -> Any:
        cell.h = pb.tanh(cell.h + x)
        return cell.h.sum()

    f = compiled(step)
    for batch in (1, 1, 3, 3, 1):
        cell.h = pb.zeros((batch, 2))
        yield f(pb.broadcast_to(X, (batch, 2)))
        yield cell.h


@case
def pair_of_states(compiled: Any) -> Iterator[Any]:
    class Lstm:
        def __init__(self) -> None:
            self.state = (pb.zeros((2,)), pb.zeros((2,)))

        def step(self, x: Any) -> Any:
            h, c = self.state
            c = pb.sigmoid(h) * c + pb.tanh(x)
            h = pb.tanh(c)
            self.state = (h, c)
            return h

    cell = Lstm()
    f = compiled(cell.step)
    for x in (X, Y, X):
        yield f(x)
        yield cell.state


@case
def last_loss_in_a_plain_class(compiled: Any) -> Iterator[Any]:
    class Trainer:
        def __init__(self) -> None:
            self.w, self.last = variable(1.0, 2.0), None
            self.optimizer = pb.optim.SGD([self.w], 0.01)

        def step(self, x: Any) -> Any:
            loss = ((self.w * x) ** 2).mean()
            self.optimizer.step(pb.backward(loss))
            self.last = loss.detach()
            return loss

    trainer = Trainer()
    f = compiled(trainer.step)
    for x in (X, Y, X):
        yield f(x)
        yield trainer.last, trainer.w


@case
def last_output_in_a_module(compiled: Any) -> Iterator[Any]:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.linear, self.last, self.last_shape = nn.Linear(2, 2), None, None

        def forward(self, x: Any) -> Any:
            self.last = self.linear(x)
            self.last_shape = x.shape
            return self.last * 2

    model = Model()
    f = compiled(lambda x: model(x))
    for x in (X, Y, pb.ones((3, 2)), X):
        yield f(x)
        yield model.last, model.last_shape


@case(refused=True)
def shape_remembered(compiled: Any) -> Iterator[Any]:
    seen = SimpleNamespace(shape=None, dtype=None)

    def run(x: Any) -> Any:
        seen.shape, seen.size = x.shape, x.size
        return x * 2

    f = compiled(run)
    for x in (X, pb.ones((3, 2)), X, X):
        yield f(x)
        yield seen.shape, seen.size
    seen.shape = "forgotten"
    yield f(X)
    yield seen.shape


@case
def attribute_assigned_a_constant(compiled: Any) -> Iterator[Any]:
    state = SimpleNamespace(phase="idle")

    def run(x: Any) -> Any:
        state.phase = "ran"
        return x * 2

    f = compiled(run)
    for _ in range(3):
        state.phase = "idle"
        yield f(X)
        yield state.phase


@case
def attribute_assigned_and_put_back(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scale=2.0)

    def run(x: Any) -> Any:
        before, config.scale = config.scale, 10.0
        try:
            return x * config.scale + before
        finally:
            config.scale = before

    f = compiled(run)
    yield f(X)
    yield config.scale
    config.scale = 3.0
    yield f(X)
    yield config.scale


@case
def attribute_deleted_inside(compiled: Any) -> Iterator[Any]:
    cache = SimpleNamespace()

    def run(x: Any) -> Any:
        cache.y = x * 2
        z = cache.y + 1
        del cache.y
        return z

    f = compiled(run)
    for x in (X, Y):
        yield f(x)
        yield vars(cache)


@case
def cache_filled_once(compiled: Any) -> Iterator[Any]:
    class Layer:
        table: Any = None

        def __call__(self, x: Any) -> Any:
            if self.table is None:
                self.table = pb.arange(2, dtype=pb.float32) + 1
            return x * self.table

    layer = Layer()
    f = compiled(layer)
    for _ in range(3):
        yield f(X)
        yield layer.table
    layer.table = pb.tensor([7.0, 7.0])
    yield f(X)


@case(refused=True)
def object_made_and_kept(compiled: Any) -> Iterator[Any]:
    @dataclass
    class Output:
        y: Any
        z: Any

    state = SimpleNamespace(last=None)

    def run(x: Any) -> Any:
        state.last = Output(x * 2, x + 1)
        return state.last.y

    f = compiled(run)
    for x in (X, Y):
        yield f(x)
        yield state.last


@case
def objects_made_and_thrown_away(compiled: Any) -> Iterator[Any]:
    class Scratch:
        def __init__(self, x: Any) -> None:
            self.x, self.calls = x, []

        def push(self, y: Any) -> Any:
            self.calls.append(y)
            self.x = self.x + y
            return self

    config = SimpleNamespace(rounds=2)

    def run(x: Any) -> Any:
        scratch = Scratch(x)
        for k in range(config.rounds):
            scratch.push(x * k)
        return scratch.x * len(scratch.calls)

    f = compiled(run)
    for rounds in (2, 3, 2):
        config.rounds = rounds
        yield f(X)


@case
def local_containers_are_free(compiled: Any) -> Iterator[Any]:
    names = ["a", "b"]

    def run(x: Any) -> Any:
        found: dict[str, Any] = {}
        order = []
        for name in names:
            found[name] = x * len(order)
            order.append(name)
        return found

    f = compiled(run)
    yield f(X)
    names.append("c")
    yield f(X)


@case
def running_mean_in_place(compiled: Any) -> Iterator[Any]:
    mean, count = pb.zeros((2,)), pb.tensor(0.0)

    def update(x: Any) -> Any:
        with pb.no_grad():
            count.__iadd__(1.0)
            mean.__iadd__((x - mean) / count)
        return mean * 1

    f = compiled(update)
    for x in (X, Y, X):
        yield f(x)
        yield mean, count
    mean[...] = 0.0
    yield f(X)


@case
def tensor_in_a_dict_written_in_place(compiled: Any) -> Iterator[Any]:
    state = {"total": pb.zeros((2,)), "epoch": 0}

    def add(x: Any) -> Any:
        state["total"][...] = state["total"] + x
        return state["total"] * 2

    f = compiled(add)
    for epoch in range(3):
        state["epoch"] = epoch
        yield f(X)
        yield state


@case
def state_replaced_by_what_it_returns(compiled: Any) -> Iterator[Any]:
    state = {"h": pb.zeros((2,)), "k": 0}
    f = compiled(lambda state, x: {"h": state["h"] * 0.5 + x, "k": state["k"]})
    for _ in range(4):
        state = f(state, X)
        yield state


@case
def property_setter_used_inside(compiled: Any) -> Iterator[Any]:
    class Cell:
        def __init__(self) -> None:
            self._h = pb.zeros((2,))

        @property
        def h(self) -> Any:
            return self._h

        @h.setter
        def h(self, value: Any) -> None:
            self._h = value * 1

    cell = Cell()

    def step(x: Any) -> Any:
        cell.h = cell.h + x
        return cell.h.sum()

    f = compiled(step)
    for _ in range(3):
        yield f(X)
        yield cell.h


@case
def state_behind_two_objects(compiled: Any) -> Iterator[Any]:
    inner = SimpleNamespace(h=pb.zeros((2,)))
    outer = SimpleNamespace(cells=[inner], current=inner)

    def step(x: Any) -> Any:
        outer.cells[0].h = outer.current.h + x
        return inner.h * 2

    f = compiled(step)
    for _ in range(3):
        yield f(X)
        yield inner.h
    outer.current = SimpleNamespace(h=pb.tensor([100.0, 100.0]))
    yield f(X)
    yield inner.h
