"""What must hold of every sample; each check raises an AssertionError that says what does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from . import harness
from .harness import assert_close, assert_same, inner
from .sample import Sample, rng

SMALL = 24  # up to so many numbers every coordinate is looked at, beyond only random directions
DIRECTIONS = 2


def first_order(sample: Sample, every_coordinate: bool = True) -> None:
    """Reverse mode agrees with differences of the values, for random cotangents."""
    function, arguments = sample.function, sample.arguments
    generator = rng(sample.name)
    outputs = harness.values(function, arguments)
    assert outputs, "no output that could have a gradient"
    cotangents = harness.cotangents_for(generator, outputs)
    gradients = harness.reverse(function, arguments, cotangents)
    for gradient, argument in zip(gradients, arguments):
        assert gradient is not None
        assert gradient.shape == argument.shape
        assert gradient.dtype == argument.dtype
        assert np.all(np.isfinite(gradient)), f"gradient is not finite: {gradient}"
    tolerance = sample.tolerance[1]
    size = harness.size_of(gradients)

    def contraction(directions: Sequence[np.ndarray], amount: float) -> float:
        return inner(cotangents, harness.values(function, harness.shifted(arguments, directions, amount)))

    for _ in range(DIRECTIONS):
        directions = harness.cotangents_for(generator, arguments)
        expected, _ = harness.derivative(partial(contraction, directions))
        assert_same(inner(gradients, directions), expected, tolerance, "directional derivative", size)
    if every_coordinate and sum(argument.size for argument in arguments) <= SMALL:
        for i, index, directions in harness.coordinates(arguments):
            expected, _ = harness.derivative(partial(contraction, directions))
            own_size = harness.size_of(gradients[i : i + 1])
            assert_same(inner(gradients, directions), expected, tolerance, f"argument {i} at {index}", own_size)


def second_order(sample: Sample) -> None:
    """The gradient's own gradient agrees with differences of the gradient, and with both mixtures with forward mode."""
    function, arguments = sample.function, sample.arguments
    generator = rng(sample.name + " second")
    outputs = harness.values(function, arguments)
    cotangents = harness.cotangents_for(generator, outputs)
    curvatures = harness.cotangents_for(generator, outputs)
    along = harness.cotangents_for(generator, arguments)
    found = harness.reverse_over_reverse(function, arguments, cotangents, curvatures, along)
    for gradient, argument in zip(found, arguments):
        assert gradient.shape == argument.shape
        assert np.all(np.isfinite(gradient)), f"second gradient is not finite: {gradient}"

    def slope(directions: Sequence[np.ndarray], amount: float) -> float:
        point = harness.shifted(arguments, directions, amount)
        return inner(along, harness.quadratic_gradient(function, point, cotangents, curvatures))

    for _ in range(DIRECTIONS):
        directions = harness.cotangents_for(generator, arguments)
        expected, _ = harness.derivative(partial(slope, directions))
        size = harness.size_of(found)
        assert_same(inner(found, directions), expected, sample.tolerance[2], "second directional derivative", size)
    mixed = (function, arguments, cotangents, curvatures, along)
    floor = 1e-9 * harness.size_of(found)
    assert_close(harness.forward_over_reverse(*mixed), found, 1e-9, "forward over reverse", floor)
    assert_close(harness.reverse_over_forward(*mixed), found, 1e-9, "reverse over forward", floor)


def forward_mode(sample: Sample) -> None:
    """<c, J u> is the same by forward mode and by reverse mode, for random c and u."""
    function, arguments = sample.function, sample.arguments
    generator = rng(sample.name + " forward")
    outputs = harness.values(function, arguments)
    for _ in range(DIRECTIONS):
        cotangents = harness.cotangents_for(generator, outputs)
        directions = harness.cotangents_for(generator, arguments)
        tangents = harness.forward_mode(function, arguments, directions)
        for tangent, out in zip(tangents, outputs):
            assert tangent.shape == out.shape
            assert tangent.dtype == out.dtype
        gradients = harness.reverse(function, arguments, cotangents)
        size = max(harness.size_of(gradients), harness.size_of(tangents))
        assert_same(
            inner(cotangents, tangents),
            inner(gradients, directions),
            harness.FORWARD_TOLERANCE,
            "forward against reverse mode",
            size,
        )
