"""Programs written for channels last in memory mean the same, and move elements only at their borders."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from pullback.backends.windows import Window
from pullback.compiler.passes.channels_last import with_channels_last
from pullback.compiler.program import Program, Value
from tests.compiler.meaning import run

from ..programs import Builder

DTYPES = frozenset(("float64",))
GEOMETRY = (1, 1), ((1, 1), (1, 1)), (1, 1), 1
WINDOWS = (Window(5, 2, 3, 2, 0, 1), Window(6, 2, 3, 2, 0, 1))

Body = Callable[[Callable[..., Value], Value, Value], Any]

#: What is made of `h`, which a convolution has made, and of `u`, a weight for each channel.
BODIES: dict[str, Body] = {
    "elementwise": lambda m, h, u: m("tanh", m("add", m("multiply", h, 2.0), u)),
    "a choice": lambda m, h, u: m("where", m("greater", h, 0.0), h, u),
    "another dtype": lambda m, h, u: m("astype", m("astype", h, np.dtype(np.float32)), np.dtype(np.float64)),
    "sums of channels": lambda m, h, u: m("subtract", h, m("sum", h, (-4, -2, -1), True)),
    "sums with a weight": lambda m, h, u: m("sum", m("multiply", m("multiply", h, u), m("exp", h)), (-4, -2, -1), True),
    "sums with a weight first": lambda m, h, u: m(
        "sum", m("multiply", m("multiply", u, h), m("exp", h)), (-4, -2, -1), False
    ),
    "sums with a weight and a mask": lambda m, h, u: m(
        "sum", m("multiply", m("multiply", u, h), m("max", h, (-3,), True)), (-4, -2, -1), True
    ),
    "sums over channels with their weight": lambda m, h, u: m("sum", m("multiply", h, u), (-3,), True),
    "sums of a product": lambda m, h, u: m("sum", m("multiply", u, h), (-3, -1), False),
    "sums over samples": lambda m, h, u: m("max", h, (-4,), False),
    "sums over columns": lambda m, h, u: m("sum", h, (-1,), False),
    "sums over everything": lambda m, h, u: m("multiply", h, m("sum", h, None, False)),
    "parts together": lambda m, h, u: m("concat", (h, m("exp", h), h), -3),
    "padding with a sum": lambda m, h, u: m("pad", h, ((0, 0), (1, 0), (0, 0), (0, 1)), m("sum", h, None, False)),
    "padding": lambda m, h, u: m("pad", h, ((0, 0), (1, 2), (0, 3), (4, 0)), 0.5),
    "other movement": lambda m, h, u: m("flip", m("sin", h), (2,)),
    "broadcast from few": lambda m, h, u: m("add", m("broadcast_to", u, h.shape), h),
    "broadcast to more": lambda m, h, u: m("add", h, m("reshape", h, (1, *h.shape))),
    "reshaped": lambda m, h, u: m("reshape", m("exp", h), (h.shape[0], -1)),
}


def program_of(body: Body) -> tuple[Program, list[Any], list[Value], Builder]:
    b = Builder(1)
    x, w, u = (b.input(b.random.normal(size=shape)) for shape in ((2, 3, 5, 6), (4, 3, 3, 3), (4, 1, 1)))
    h = b.make("convolution", x, w, *GEOMETRY)
    made = body(b.make, h, u)
    outputs = [made, h]
    return b.program(outputs), b.given(), outputs, b


@pytest.mark.parametrize("name", BODIES)
def test_what_is_computed_from_images_means_the_same(name: str) -> None:
    program, inputs, outputs, b = program_of(BODIES[name])
    found, _ = run(with_channels_last(program, DTYPES), inputs)
    for array, value in zip(found, outputs):
        np.testing.assert_allclose(array, b.arrays[value], 1e-12, 1e-12, strict=True)


def test_between_convolutions_nothing_is_permuted_but_views() -> None:
    b = Builder(1)
    x, w, v, u = (b.input(b.random.normal(size=s)) for s in ((2, 3, 5, 6), (4, 3, 3, 3), (4, 4, 3, 3), (4, 1, 1)))
    h = b.make("convolution", x, w, *GEOMETRY)
    h = b.make("maximum", b.make("add", b.make("multiply", h, u), h), 0.0)
    out = b.make("convolution", h, v, *GEOMETRY)
    made = with_channels_last(b.program([out]), DTYPES)
    ops = [one.op for one in made.instructions]
    # views of what the convolution made and for the next one; the weight's axes of length 1 are moved without one
    assert [op for op in ops if op != "reshape"] == [
        "convolution", "permute_dims", "multiply", "add", "maximum", "permute_dims", "convolution",
    ]  # fmt: skip
    (found,), _ = run(made, b.given())
    np.testing.assert_allclose(found, b.arrays[out], 1e-12)


def test_maxima_are_followed_back_by_their_windows() -> None:
    b = Builder(1)
    x = b.input(b.random.normal(size=(2, 3, 5, 6)))
    h = b.make("exp", x)
    pooled, places = b.make_all("max_pool", h, WINDOWS)
    g = b.make("pool_scatter", b.make("square", pooled), places, (5, 6))
    other = b.make("pool_scatter", pooled, b.make("add", places, 0), (5, 6))
    made = with_channels_last(b.program([g, other]), DTYPES)
    ops = [one.op for one in made.instructions]
    assert ops.count("max_pool_gradient") == ops.count("pool_scatter") == 1
    for array, value in zip(run(made, b.given())[0], (g, other)):
        np.testing.assert_allclose(array, b.arrays[value], 1e-12)


def test_other_dtypes_and_other_numbers_of_axes_are_left_alone() -> None:
    program = program_of(BODIES["elementwise"])[0]
    assert with_channels_last(program, frozenset(("float32",))) is program
    b = Builder()
    x, w = b.input(np.ones((2, 3, 5))), b.input(np.ones((4, 3, 3)))
    one_axis = b.program([b.make("exp", b.make("convolution", x, w, (1,), ((1, 1),), (1,), 1))])
    assert with_channels_last(one_axis, DTYPES) is one_axis
