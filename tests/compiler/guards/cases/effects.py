"""What a function does to Python beside computing: a program cannot repeat it, so it is refused before it happens.

Where it can be repeated after all (an assignment of something that the program computes) equal results are as good.
"""

from __future__ import annotations

import itertools
import queue
import random
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from io import StringIO
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb
from pullback import nn, optim

from ..harness import X, case, variable

CALLS: Any = 0
LOG: Any = []
NUMBERS: Any = np.random.default_rng(0)


def effect(name: str, make: Callable[[], Any], function: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """A case in which a function has an effect on a thing; `read` says what can be seen of it after each call."""

    @case(name=name, refused=True)
    def run(compiled: Any) -> Iterator[Any]:
        thing = make()
        f = compiled(function(thing))
        for _ in range(3):
            yield f(X)
            yield read(thing)


class Meter:
    """As progress bars and averages are."""

    def __init__(self) -> None:
        self.n, self.values = 0, []

    def __call__(self, x: Any) -> Any:
        self.n += 1
        return x * 2

    def update(self, value: Any = None) -> None:
        self.n += 1
        self.values.append(value)


def updating(meter: Meter) -> Any:
    def step(x: Any) -> Any:
        y = x * 2
        meter.update()
        return y

    return step


def doing(do: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function of x that does something to a thing, and returns 2 x."""

    def bound(thing: Any) -> Any:
        def run(x: Any) -> Any:
            do(thing, x)
            return x * 2

        return run

    return bound


def counting(thing: Any, x: Any) -> None:
    thing.n += 1


effect("counter_in_an_attribute", lambda: SimpleNamespace(n=0), doing(counting), vars)
effect("counter_of_a_callable_object", Meter, lambda m: m, lambda m: m.n)
effect("counter_in_a_module", lambda: Counting(), lambda m: m, lambda m: m.calls)
effect("counter_in_a_class", lambda: type("Counted", (), {"n": 0}), doing(counting), lambda c: c.n)
effect("counter_in_a_list", lambda: [0], doing(lambda c, x: c.__setitem__(0, c[0] + 1)), list)
effect("counter_in_a_dict", lambda: {"n": 0}, doing(lambda c, x: c.__setitem__("n", c["n"] + 1)), dict)
effect("counter_of_collections", Counter, doing(lambda c, x: c.update("a")), dict)
effect("counter_that_is_used", lambda: SimpleNamespace(n=0), lambda c: lambda x: (counting(c, x), x * c.n)[1], vars)
effect("progress_bar_updated", Meter, updating, lambda m: (m.n, m.values))
effect("list_appended", list, doing(lambda c, x: c.append(1.0)), list)
effect("list_appended_a_tensor", list, doing(lambda c, x: c.append(x * 2)), list)
effect("list_extended", list, doing(lambda c, x: c.extend([1, 2])), list)
effect("list_popped", lambda: [1, 2, 3, 4], doing(lambda c, x: c.pop()), list)
effect("list_sorted_in_place", lambda: [3, 1, 2], doing(lambda c, x: c.sort() or c.insert(0, 9)), list)
effect("dict_item_written", dict, doing(lambda c, x: c.__setitem__(len(c), 1.0)), dict)
effect("dict_updated", dict, doing(lambda c, x: c.update({f"call {len(c)}": True})), dict)
effect("dict_popped", lambda: {1: 1, 2: 2, 3: 3}, doing(lambda c, x: c.popitem()), dict)
effect("default_dict_counts", lambda: defaultdict(int), doing(lambda c, x: c.__setitem__("n", c["n"] + 1)), dict)
effect("ordered_dict_moved", lambda: OrderedDict(a=1, b=2), doing(lambda c, x: c.move_to_end(next(iter(c)))), list)
effect("set_added_to", set, doing(lambda c, x: c.add(len(c))), set)
effect("deque_appended", deque, doing(lambda c, x: c.append(len(c))), list)
effect("queue_filled", queue.Queue, doing(lambda c, x: c.put(1)), lambda c: c.qsize())
effect("iterator_advanced", lambda: iter([1.0, 2.0, 3.0]), lambda c: lambda x: x * next(c), lambda c: None)
effect("count_advanced", lambda: itertools.count(1), lambda c: lambda x: x * next(c), repr)
effect("generator_advanced", lambda: (float(n) for n in range(5)), lambda c: lambda x: x * next(c), lambda c: None)
effect("random_numbers_of_python", lambda: None, lambda _: lambda x: x * random.random(), lambda _: None)
effect("random_numbers_of_numpy", lambda: None, lambda _: lambda x: x * np.random.random(), lambda _: None)
effect(
    "random_generator_of_a_closure",
    lambda: np.random.default_rng(0),
    lambda g: lambda x: x * g.random(),
    lambda g: None,
)
effect("random_object_in_a_list", lambda: [random.Random(0)], lambda c: lambda x: x * c[0].random(), lambda c: None)
effect("random_shuffle", lambda: [1, 2, 3, 4, 5], doing(lambda c, x: random.shuffle(c)), list)
effect("text_written", StringIO, doing(lambda c, x: c.write("a line\n")), lambda c: c.getvalue())
effect("text_read", lambda: StringIO("1\n2\n3\n"), lambda c: lambda x: x * float(c.readline()), lambda c: c.tell())
effect("printed", lambda: None, doing(lambda _, x: print("called")), lambda _: None)
effect("array_written", lambda: np.zeros(2), doing(lambda a, x: a.__iadd__(1.0)), lambda a: a.copy())
effect("array_item_assigned", lambda: np.zeros(2), doing(lambda a, x: a.__setitem__(0, a[0] + 1)), lambda a: a.copy())
effect(
    "function_attribute_counts",
    lambda: lambda: None,
    doing(lambda f, x: vars(f).update(n=vars(f).get("n", 0) + 1)),
    vars,
)
effect(
    "rate_decayed_inside",
    lambda: optim.SGD([variable(1.0)], 0.1),
    doing(lambda o, x: o.param_groups[0].update(lr=o.param_groups[0]["lr"] * 0.9)),
    lambda o: o.param_groups[0]["lr"],
)


class Counting(nn.Module):
    def __init__(self) -> None:
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * 2


@case(refused=True)
def counter_in_a_global(compiled: Any) -> Iterator[Any]:
    def run(x: Any) -> Any:
        global CALLS
        CALLS += 1
        return x * 2

    global CALLS
    CALLS, f = 0, compiled(run)
    for _ in range(3):
        yield f(X)
        yield CALLS


@case(refused=True)
def counter_in_a_nonlocal(compiled: Any) -> Iterator[Any]:
    calls = 0

    def run(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * 2

    f = compiled(run)
    for _ in range(3):
        yield f(X)
        yield calls


@case(refused=True)
def global_list_appended(compiled: Any) -> Iterator[Any]:
    LOG.clear()
    f = compiled(lambda x: LOG.append("called") or x * 2)
    for _ in range(3):
        yield f(X)
        yield list(LOG)


@case(refused=True)
def numpy_generator_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    generator, f = np.random.default_rng(0), compiled(lambda x, g: x * g.random())
    for _ in range(3):
        yield f(X, generator)


@case(refused=True)
def numpy_generator_of_the_module(compiled: Any) -> Iterator[Any]:
    global NUMBERS
    NUMBERS = np.random.default_rng(0)
    f = compiled(lambda x: x * NUMBERS.normal())
    for _ in range(3):
        yield f(X)


@case(refused=True)
def list_argument_changed_inside(compiled: Any) -> Iterator[Any]:
    f, outputs = compiled(lambda x, c: c.append(x * 2) or x), []
    for _ in range(3):
        yield f(X, outputs)
        yield outputs


@case(refused=True)
def dict_argument_changed_inside(compiled: Any) -> Iterator[Any]:
    def run(batch: Any) -> Any:
        batch["y"] = batch["x"] * 2
        return batch["y"] + 1

    f = compiled(run)
    for _ in range(2):
        batch = {"x": X}
        yield f(batch)
        yield batch


@case(refused=True)
def object_argument_counts(compiled: Any) -> Iterator[Any]:
    f, meter = compiled(lambda x, m: m(x)), Meter()
    for _ in range(3):
        yield f(X, meter)
        yield meter.n


@case(refused=True)
def file_read_inside(compiled: Any) -> Iterator[Any]:
    with TemporaryFile("w+") as file:
        file.write("1\n2\n3\n")
        file.seek(0)
        f = compiled(lambda x: x * float(file.readline()))
        for _ in range(3):
            yield f(X)


@case(refused=True)
def file_written_inside(compiled: Any) -> Iterator[Any]:
    with TemporaryFile("w+") as file:
        f = compiled(lambda x: x * file.write("a line\n"))
        for _ in range(3):
            yield f(X)
            yield file.tell()


@case(refused=True)
def thread_started_inside(compiled: Any) -> Iterator[Any]:
    found: list[int] = []

    def run(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(1))
        thread.start()
        thread.join()
        return x * 2

    f = compiled(run)
    for _ in range(3):
        yield f(X)
        yield len(found)


@case(refused=True)
def scheduler_stepped_inside(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    optimizer = optim.SGD([w], 0.1)
    scheduler = optim.Scheduler(optimizer, optim.schedules.Exponential(0.5))

    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).mean()
        optimizer.step(pb.backward(loss))
        scheduler.step()
        return loss

    f = compiled(step)
    for _ in range(3):
        yield f(X)
        yield w, optimizer.param_groups[0]["lr"]


@case(refused=True)
def loss_logged_inside_as_a_number(compiled: Any) -> Iterator[Any]:
    w, losses = variable(1.0, 2.0), []
    optimizer = optim.SGD([w], 0.01)

    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).mean()
        optimizer.step(pb.backward(loss))
        losses.append(loss.item())
        return loss

    f = compiled(step)
    for _ in range(3):
        yield f(X)
        yield w, losses


@case(refused=True)
def number_of_calls_decides(compiled: Any) -> Iterator[Any]:
    state = SimpleNamespace(calls=0)

    def run(x: Any) -> Any:
        state.calls += 1
        return x * 10 if state.calls % 2 == 0 else x

    f = compiled(run)
    for _ in range(4):
        yield f(X)
        yield state.calls


@case(refused=True)
def hook_that_counts(compiled: Any) -> Iterator[Any]:
    w, seen = variable(1.0, 2.0), []
    w.register_hook(lambda g: seen.append("called"))
    f = compiled(lambda x: pb.backward((w * x).sum())[w])
    for _ in range(3):
        yield f(X)
        yield list(seen)


@case(refused=True)
def class_attribute_counts_objects(compiled: Any) -> Iterator[Any]:
    class Item:
        made = 0

        def __init__(self) -> None:
            type(self).made += 1

    f = compiled(lambda x: x * 2 if Item() else x)
    for _ in range(3):
        yield f(X)
        yield Item.made


@case(refused=True)
def global_module_of_settings_written(compiled: Any) -> Iterator[Any]:
    settings = SimpleNamespace(history=[], step=0)

    def run(x: Any) -> Any:
        settings.history.append(settings.step)
        settings.step = len(settings.history)
        return x * 2

    f = compiled(run)
    for _ in range(3):
        yield f(X)
        yield settings
