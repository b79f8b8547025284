"""Random programs of convolutions and what is around them compute the same with their channels last in memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from pullback.compiler.passes import optimize
from pullback.compiler.passes.channels_last import with_channels_last
from pullback.compiler.program import Program, Value
from tests.compiler import meaning

from ..programs import Builder
from .checking import FAST, checked

DTYPES = frozenset(("float64",))
LIBRARY = frozenset(("convolution", "convolution_input_gradient", "convolution_weight_gradient"))
ABILITIES = dataclasses.replace(FAST, channels_last=DTYPES, whole=LIBRARY)
GEOMETRY = (1, 1), ((1, 1), (1, 1)), (1, 1), 1


def random_program(seed: int) -> tuple[Program, list[Any]]:
    rng = np.random.default_rng(seed)
    b = Builder(seed)
    samples, channels, height, width, features = (int(n) for n in rng.integers(1, 5, 5))
    images = (samples, features, height, width)
    shapes = (samples, channels, height, width), (features, channels, 3, 3), (features, features, 3, 3)
    x, weight, other = (b.input(rng.normal(size=shape)) for shape in shapes)
    pool = [b.input(rng.normal(size=shape)) for shape in (images, (features, 1, 1))]
    pool.append(b.make("convolution", x, weight, *GEOMETRY))
    for _ in range(int(rng.integers(3, 16))):
        y = pool[int(rng.integers(max(0, len(pool) - 5), len(pool)))]
        z = pool[int(rng.integers(len(pool)))]
        made = instruction(b, rng, y, z, images, x, other)
        if made is not None and made.size < 4000:
            pool.append(made)
    updates = [(pool[0], value) for value in pool[3:] if value.shape == images][: int(rng.integers(2))]
    return b.program(pool[-4:], updates), b.given()


def instruction(b: Builder, rng: Any, y: Value, z: Value, images: Any, x: Value, weight: Value) -> Value | None:
    kind = int(rng.integers(12))
    if kind < 2:
        return b.make(str(rng.choice(["tanh", "sin", "square", "negative"])), y)
    if kind < 6:
        shapes = zip(reversed(y.shape), reversed(z.shape))
        fits = all(m == n or 1 in (m, n) for m, n in shapes)
        return b.make(str(rng.choice(["add", "multiply", "subtract", "maximum"])), y, z) if fits else None
    if y.ndim != 4:
        return None
    if kind < 8:
        axes = tuple(int(a) - 4 for a in sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False)))
        axis = axes if rng.random() < 0.8 else None
        return b.make(str(rng.choice(["sum", "sum", "max"])), y, axis, bool(rng.integers(2)))
    if kind == 8:
        return b.make("concat", (y, y), int(rng.integers(-4, 0)))
    if kind == 9:
        rows = y.shape[2] // 2
        backwards = slice(None, None, -1) if rng.random() < 0.3 else slice(None)
        return b.make("getitem", y, (slice(0, 1), slice(None), slice(rows, rows + 1), backwards))
    if y.shape != images:
        return None
    if kind == 10:
        return b.make("convolution", y, weight, *GEOMETRY)
    return b.make("convolution_weight_gradient", y, x, (3, 3), *GEOMETRY)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_programs_of_images_agree_with_the_interpreter(first: int) -> None:
    for seed in range(first, first + 50):
        program, inputs = random_program(seed)
        expected = meaning.run(program, inputs)
        written = with_channels_last(optimize(program), DTYPES)
        found = meaning.run(written, inputs)
        for array, other in zip((*found[0], *found[1]), (*expected[0], *expected[1])):
            scale = float(np.abs(other).max(initial=1))
            np.testing.assert_allclose(array, other, 1e-9, 1e-9 * scale, strict=True)
        checked(written, inputs, abilities=ABILITIES)
