"""What every random program begins with: names that its function finds outside."""

PRELUDE = """\
from collections import namedtuple
from dataclasses import dataclass
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np
import pullback as pb

D, C, K = pb.{dtype}, {C}, {K}
Pair = namedtuple("Pair", "left right")


@dataclass
class Bundle:
    first: object
    second: object


def numbers(seed, shape, tracked=False):
    values = np.random.default_rng(seed).uniform(-1.2, 1.2, shape)
    return pb.tensor(values, dtype=D, requires_grad=tracked)


class Cell:
    rates = (0.5, 0.25)

    def __init__(self):
        self.w, self.h, self.last, self.mix = numbers(1, (C,), True), numbers(2, (C,)), None, None
        self.scale, self.on, self.inner = 0.5, True, SimpleNamespace(h=numbers(3, (C,)))

    def __call__(self, t):
        return pb.tanh(t * self.scale)

    def rate(self):
        return self.rates[1 if self.on else 0]

    def step(self, t):
        self.h = pb.tanh(self.h * 0.5 + t.detach())
        return self.h * self.w

    @property
    def damping(self):
        return 0.9 * self.scale

    def damped(self, t):
        return t * self.damping if self.on else t - self.damping

    @staticmethod
    def twice(t):
        return t + t


W, B = numbers(4, (C, K), True), numbers(5, (C,), True)
PARAMETERS = [B, numbers(6, (C,), True)]
S, COUNT = numbers(7, (C,)), numbers(8, ())
STATE = {{"total": numbers(9, (C,)), "steps": 0}}
MEMORY = [numbers(10, (C, K)), numbers(11, (K,))]
ARRAY = np.linspace(-1.0, 1.0, C).astype("{dtype}")
PAIR_OF_ROWS = np.array([0, 1])
CONFIG = {{"scale": 0.5, "on": True, "rounds": 2, "mode": "sum"}}
LIMITS, SCALE = [0.4, 0.8], 0.6
OPTIMIZED = [W, B]
OPTIMIZER = pb.optim.{optimizer}
cell = Cell()


def masked(size):
    return np.arange(size) == 0


def squash(t):
    return t / (1.0 + abs(t))


def power(t, n):
    return t * 0.9 if n <= 0 else pb.tanh(t) * power(t, n - 1)


def smooth(t, rounds):
    while rounds > 0:
        t, rounds = pb.sin(t) * SCALE, rounds - 1
    return t + 0.1


def blend(a, b, *, alpha=0.5):
    return a * alpha + pb.tanh(b) * (1 - alpha)


def collected(*tensors, **options):
    return sum(pb.tanh(t) for t in tensors) * options.get("scale", 1.0)


def applied(function, t, times=1):
    for _ in range(times):
        t = function(t)
    return t


def compose(*functions):
    return lambda t: reduce(lambda u, f: f(u), functions, t)


def rows_of(t):
    for i in range(t.shape[0]):
        yield t[i] * (i + 1) * 0.5


def last(things):
    *_, found = things
    return found


def tree_sum(tree):
    if isinstance(tree, dict):
        return sum(tree_sum(tree[key]) for key in sorted(tree))
    return sum(map(tree_sum, tree)) if isinstance(tree, list) else tree * 0.3


def total(tree):
    floats = [t for t in pb.tree.leaves(tree) if isinstance(t, pb.Tensor)]
    return sum(pb.mean(pb.tanh(t)) * (0.5 + 0.25 * i) for i, t in enumerate(floats))


HELPERS = [lambda t: pb.tanh(t) * CONFIG["scale"], squash]
HELPERS_BY_NAME = {{"sum": lambda t: t + SCALE, "product": lambda t: t * SCALE}}
COMPILED = wrap(lambda t: pb.sin(t) * cell.scale)


def state():
    return [[t, t.grad] for t in (W, *PARAMETERS, cell.w)], S, COUNT, STATE, MEMORY, cell.h, cell.last, cell.inner.h
"""
