"""Modes and surroundings of a call: contexts, defaults, variables of contexts and threads, weak references."""

from __future__ import annotations

import contextvars
import logging
import threading
import weakref
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import Any, Iterator

import numpy as np

import pullback as pb

from ..harness import X, attempt, case, variable

RATE: contextvars.ContextVar[float] = contextvars.ContextVar("RATE", default=2.0)
LOCAL = threading.local()


@case
def no_grad_around_the_call(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    f = compiled(lambda x: w * x)
    for context in (nullcontext, pb.no_grad, pb.enable_grad, pb.no_grad):
        with context():
            result = f(X)
        yield result, result.requires_grad


@case
def no_grad_chosen_by_a_setting(compiled: Any) -> Iterator[Any]:
    w, config = variable(1.0, 2.0), SimpleNamespace(train=True)

    def run(x: Any) -> Any:
        with nullcontext() if config.train else pb.no_grad():
            return w * x

    f = compiled(run)
    for train in (True, False, True):
        config.train = train
        result = f(X)
        yield result, result.requires_grad


@case
def autocast_around_the_call(compiled: Any) -> Iterator[Any]:
    w = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
    f = compiled(lambda x: w @ x)
    yield f(X)
    with pb.autocast("float16"):
        yield f(X)
    yield f(X)


@case
def autocast_chosen_by_a_setting(compiled: Any) -> Iterator[Any]:
    w, config = pb.tensor([[1.0, 2.0], [3.0, 4.0]]), {"half": False}

    def run(x: Any) -> Any:
        with ExitStack() as stack:
            if config["half"]:
                stack.enter_context(pb.autocast("float16"))
            return w @ x

    f = compiled(run)
    for half in (False, True, False):
        config["half"] = half
        yield f(X)


@case
def guard_around_the_call(compiled: Any) -> Iterator[Any]:
    w = variable(0.0, 1.0)
    f = compiled(lambda x: pb.backward((x / w).sum())[w])
    with np.errstate(all="ignore"):
        yield attempt(f, X)
        with pb.guard("off"):
            yield f(X)
        yield attempt(f, X)


@case
def default_dtype_changed(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: (x * 2, pb.ones((2,))))
    for dtype in (pb.float32, pb.float64, pb.float32):
        pb.set_default_dtype(dtype)
        yield f(X)


@case
def checkpointing_around_the_call(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    f = compiled(lambda x: pb.backward((pb.exp(w) * x).sum())[w])
    yield f(X)
    with pb.checkpointing(pb.BalancedCheckpointing()):
        yield f(X * 2)
    yield f(X)


@case
def seed_set_between_calls(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: pb.dropout(x, 0.5) + pb.random.uniform((2,)))
    for seed in (1, 2, 1):
        pb.random.seed(seed)
        yield f(X)
        yield f(X)
    yield pb.random.get_state()["offset"]


@case
def random_state_restored(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x + pb.random.normal((2,)))
    yield f(X)
    state = pb.random.get_state()
    yield f(X)
    yield f(X)
    pb.random.set_state(state)
    yield f(X)


@case
def generator_in_an_attribute_replaced(compiled: Any) -> Iterator[Any]:
    held = SimpleNamespace(generator=pb.random.Generator(1))
    f = compiled(lambda x: x + held.generator.uniform((2,)))
    yield f(X)
    yield f(X)
    held.generator = pb.random.Generator(2)
    yield f(X)
    held.generator.seed(1)
    yield f(X)
    yield held.generator.state


@case
def generator_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x, generator: x + generator.uniform((2,)))
    first, second = pb.random.Generator(1), pb.random.Generator(2)
    for generator in (first, second, first):
        yield f(X, generator)
    yield first.state, second.state


@case
def dropout_probability_in_a_closure(compiled: Any) -> Iterator[Any]:
    p = 0.5
    f = compiled(lambda x: pb.dropout(pb.broadcast_to(x, (5, 2)), p))
    for p in (0.5, 0.9, 0.0, 0.5):  # noqa: B007
        yield f(X)


@case
def context_variable_set(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * RATE.get())
    yield f(X)
    token = RATE.set(3.0)
    yield f(X)
    RATE.reset(token)
    yield f(X)


@case
def context_variable_in_another_context(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * RATE.get(5.0))
    other = contextvars.copy_context()
    other.run(RATE.set, 3.0)
    yield f(X)
    yield other.run(f, X)
    yield f(X)


@case
def thread_local_attribute(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * getattr(LOCAL, "rate", 2.0))
    yield f(X)
    LOCAL.rate = 3.0
    yield f(X)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(f(X)))
    thread.start()
    thread.join()
    yield found
    del LOCAL.rate
    yield f(X)


@case
def weak_reference_that_dies(compiled: Any) -> Iterator[Any]:
    class Config:
        scale = 2.0

    config = Config()
    reference = weakref.ref(config)

    def run(x: Any) -> Any:
        found = reference()
        return x if found is None else x * found.scale

    f = compiled(run)
    yield f(X)
    config.scale = 3.0
    yield f(X)
    del config
    yield f(X)


@case
def weak_dictionary(compiled: Any) -> Iterator[Any]:
    class Config:
        pass

    config = Config()
    scales = weakref.WeakKeyDictionary({config: 2.0})
    f = compiled(lambda x: x * scales.get(config, 1.0))
    yield f(X)
    scales[config] = 3.0
    yield f(X)
    del scales[config]
    yield f(X)


@case(refused=True)
def weak_proxy(compiled: Any) -> Iterator[Any]:
    class Config:
        scale = 2.0

    config = Config()
    proxy = weakref.proxy(config)
    f = compiled(lambda x: x * proxy.scale)
    yield f(X)
    config.scale = 3.0
    yield f(X)


@case
def level_of_a_logger(compiled: Any) -> Iterator[Any]:
    logger = logging.getLogger("tests.compiler.guards")
    f = compiled(lambda x: x * 2 if logger.isEnabledFor(logging.DEBUG) else x)
    yield f(X)
    logger.setLevel(logging.DEBUG)
    try:
        yield f(X)
    finally:
        logger.setLevel(logging.NOTSET)
    yield f(X)


@case
def called_in_a_thread_after_a_change(compiled: Any) -> Iterator[Any]:
    config = {"scale": 2.0}
    f = compiled(lambda x: x * config["scale"])
    yield f(X)
    found: list[Any] = []
    for scale in (3.0, 4.0):
        config["scale"] = scale
        thread = threading.Thread(target=lambda: found.append(f(X)))
        thread.start()
        thread.join()
    yield found
    yield f(X)
