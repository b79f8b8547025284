"""Loops, choices and errors inside a function, whose bodies read state."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Iterator

import pullback as pb

from ..harness import X, attempt, case, variable


@case
def state_in_the_branches_of_cond(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(high=2.0, low=3.0)
    f = compiled(lambda x: pb.cond(x.sum() > 5, lambda x: x * config.high, lambda x: x * config.low, x))
    yield f(X), f(-X)
    config.low = 5.0
    yield f(X), f(-X)
    config.high = 7.0
    yield f(X), f(-X)


@case
def predicate_of_cond_is_a_setting(compiled: Any) -> Iterator[Any]:
    config = {"negative": False}
    f = compiled(lambda x: pb.cond(config["negative"], lambda x: -x, lambda x: x, x))
    for negative in (False, True, False):
        config["negative"] = negative
        yield f(X)


@case
def state_in_the_body_of_scan(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(decay=0.5)

    def cell(carry: Any, x: Any) -> Any:
        carry = carry * config.decay + x
        return carry, carry * 2

    f = compiled(lambda x: pb.scan(cell, pb.tensor(0.0), x))
    yield f(X)
    config.decay = 0.9
    yield f(X)
    config.decay = 0.5
    yield f(X)


@case
def tensor_in_the_body_of_scan(compiled: Any) -> Iterator[Any]:
    w = variable(0.5)

    def total(x: Any) -> Any:
        return pb.scan(lambda carry, x: ((carry * w + x).sum(), None), pb.tensor(0.0), x)[0]

    f = compiled(lambda x: (pb.backward(total(x))[w], total(x)))
    yield f(X)
    w.data_mut()[...] = 2.0
    yield f(X)
    w = variable(3.0)
    yield f(X)


@case
def length_of_scan_is_a_setting(compiled: Any) -> Iterator[Any]:
    length = 2
    f = compiled(lambda x: pb.scan(lambda carry, _: (carry * 2, None), x, length=length)[0])
    for length in (2, 3, 2):  # noqa: B007
        yield f(X)


@case
def state_in_a_while_loop(compiled: Any) -> Iterator[Any]:
    config = {"limit": 10.0, "factor": 2.0}

    def run(x: Any) -> Any:
        return pb.while_loop(lambda c: c.sum() < config["limit"], lambda c: c * config["factor"], x, max_steps=8)

    f = compiled(run)
    yield f(X)
    config["limit"] = 50.0
    yield f(X)
    config["factor"] = 3.0
    yield f(X)


@case
def steps_of_a_python_loop(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(steps=2)

    def run(x: Any) -> Any:
        for _ in range(config.steps):
            x = x * 2
        return x

    f = compiled(run)
    for steps in (2, 0, 4, 2):
        config.steps = steps
        yield f(X)


@case
def while_on_a_setting(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(limit=5)

    def run(x: Any) -> Any:
        k = 1
        while k < config.limit:
            x, k = x + 1, k * 2
        return x

    f = compiled(run)
    yield f(X)
    config.limit = 30
    yield f(X)


@case
def match_on_a_setting(compiled: Any) -> Iterator[Any]:
    config: Any = {"kind": "scale", "by": 2.0}

    def run(x: Any) -> Any:
        match config:
            case {"kind": "scale"}:
                return x * config["by"]
            case {"kind": "shift", "by": by}:
                return x + by
            case _:
                return -x

    f = compiled(run)
    yield f(X)
    config["kind"] = "shift"
    yield f(X)
    config["by"] = 5.0
    yield f(X)
    config["kind"] = "other"
    yield f(X)


@case
def match_on_the_class_of_a_setting(compiled: Any) -> Iterator[Any]:
    held: list[Any] = [SimpleNamespace(scale=2.0)]

    def run(x: Any) -> Any:
        match held[0]:
            case SimpleNamespace(scale=scale):
                return x * scale
            case [first, *_]:
                return x + first
            case None:
                return -x

    f = compiled(run)
    yield f(X)
    held[0].scale = 3.0
    yield f(X)
    held[0] = [7.0, 1]
    yield f(X)
    held[0] = None
    yield f(X)


@case
def error_caught_inside(compiled: Any) -> Iterator[Any]:
    options: dict[str, float] = {}

    def run(x: Any) -> Any:
        try:
            return x * options["scale"]
        except KeyError:
            return -x

    f = compiled(run)
    yield f(X)
    options["scale"] = 2.0
    yield f(X)
    del options["scale"]
    yield f(X)


@case
def missing_attribute_caught_inside(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace()

    def run(x: Any) -> Any:
        try:
            return x * config.scale
        except AttributeError:
            return -x

    f = compiled(run)
    yield f(X)
    config.scale = 2.0
    yield f(X)
    config.scale = 3.0
    yield f(X)


@case
def index_error_caught_inside(compiled: Any) -> Iterator[Any]:
    numbers: list[float] = []

    def run(x: Any) -> Any:
        try:
            return x * numbers[1]
        except IndexError:
            return -x

    f = compiled(run)
    yield f(X)
    numbers.extend([1.0, 2.0])
    yield f(X)
    numbers.pop()
    yield f(X)


@case
def error_raised_depending_on_a_setting(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(strict=False)

    def run(x: Any) -> Any:
        if config.strict:
            raise ValueError("strict")
        return x * 2

    f = compiled(run)
    for strict in (False, True, False):
        config.strict = strict
        yield attempt(f, X)


@case
def error_raised_at_first(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(strict=True)

    def run(x: Any) -> Any:
        assert not config.strict
        return x * 2

    f = compiled(run)
    yield attempt(f, X)
    config.strict = False
    yield f(X)
    config.strict = True
    yield attempt(f, X)


@case
def finally_and_else_of_a_try(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(divisor=2)

    def run(x: Any) -> Any:
        try:
            share = 10 // config.divisor
        except ZeroDivisionError:
            x = -x
        else:
            x = x * share
        finally:
            x = x + 1
        return x

    f = compiled(run)
    for divisor in (2, 0, 5, 2):
        config.divisor = divisor
        yield f(X)


@case
def early_return_depending_on_state(compiled: Any) -> Iterator[Any]:
    flags = {"skip": False}

    def run(x: Any) -> Any:
        if flags.get("skip"):
            return x
        y = x * 2
        return {"y": y, "x": x}

    f = compiled(run)
    for skip in (False, True, False):
        flags["skip"] = skip
        yield f(X)


@case
def chained_comparison_of_settings(compiled: Any) -> Iterator[Any]:
    low, high = [0.0], [2.0]
    f = compiled(lambda x: x if low[0] < 1.0 < high[0] else -x)
    yield f(X)
    high[0] = 0.5
    yield f(X)
    high[0], low[0] = 2.0, 1.0
    yield f(X)


@case
def assignment_expression_and_star(compiled: Any) -> Iterator[Any]:
    numbers = [1.0, 2.0, 3.0]

    def run(x: Any) -> Any:
        first, *middle, last = numbers
        if (total := sum(middle)) > 3:
            return x * total
        return x * first + last

    f = compiled(run)
    yield f(X)
    numbers.insert(1, 5.0)
    yield f(X)
    numbers[1:3] = []
    yield f(X)


@case
def generator_function_reads_state(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scales=[1.0, 2.0])

    def scaled(x: Any) -> Iterator[Any]:
        for scale in config.scales:
            yield x * scale

    f = compiled(lambda x: sum(scaled(x)))
    yield f(X)
    config.scales.append(5.0)
    yield f(X)
    config.scales = [0.5]
    yield f(X)


@case
def constant_result_depends_on_state(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(name="first", numbers=[1, 2])
    f = compiled(lambda x: (x, config.name, list(config.numbers), len(config.numbers)))
    yield f(X)
    config.name = "second"
    yield f(X)
    config.numbers.append(3)
    yield f(X)


@case(steady=True)
def state_object_is_a_result(compiled: Any) -> Iterator[Any]:
    options = {"scale": 2.0, "tags": ["a"]}
    f = compiled(lambda x: {"y": x * 2, "options": options})
    yield f(X)
    options["tags"].append("b")
    yield f(X)
    options["scale"] = 3.0
    yield f(X)
