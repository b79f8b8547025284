"""Every operation on many examples at once equals a loop over them, to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.tables import TENSORS

from . import harness
from .harness import assert_close
from .harness_samples import SAMPLES
from .sample import Sample, rng

EXAMPLES = 3
VALUES, FIRST, SECOND = 1e-10, 1e-9, 1e-8  # sums are taken in another order
#: What has no shape before it has values.
REFUSED = {"take-unique values"}

every_sample = pytest.mark.parametrize(
    "sample", [sample for sample in SAMPLES if sample.name not in REFUSED], ids=lambda sample: sample.name
)


def columns_of(sample: Sample, shared: int | None) -> tuple[list[np.ndarray], tuple[int | None, ...]]:
    """The arguments of a few examples that differ a little, all of which but one may be shared."""
    scales = 1 + 0.01 * np.arange(EXAMPLES)
    columns, axes = [], []
    for i, argument in enumerate(sample.arguments):
        is_shared = shared is not None and i % 2 == shared and len(sample.arguments) > 1
        columns.append(argument if is_shared else np.stack([argument * scale for scale in scales]))
        axes.append(None if is_shared else 0)
    return columns, tuple(axes)


def rows_of(columns: list[np.ndarray], axes: tuple[int | None, ...]) -> list[list[pb.Tensor]]:
    return [
        [pb.asarray(column if axis is None else column[n]) for column, axis in zip(columns, axes)]
        for n in range(EXAMPLES)
    ]


def compare(f: Any, columns: list[np.ndarray], axes: tuple[int | None, ...], tolerance: float, what: str) -> None:
    found = pb.vmap(f, in_axes=axes, randomness="same")(*[pb.asarray(column) for column in columns])
    expected = [f(*row) for row in rows_of(columns, axes)]
    assert len(found) == len(expected[0])
    for k, out in enumerate(found):
        wanted = np.stack([harness.raw(row[k]) for row in expected])
        assert harness.raw(out).dtype == wanted.dtype
        assert_close([harness.raw(out)], [wanted], tolerance, f"{what} {k}", 1e-12)


def losses(sample: Sample) -> tuple[Any, Any]:
    """The outputs of a sample, and a real number made of them whose second derivative sees all of a rule."""
    outputs = harness.values(sample.function, sample.arguments)
    generator = rng(sample.name + " vmap")
    cotangents, curvatures = (harness.cotangents_for(generator, outputs) for _ in range(2))

    def outs(*tensors: Any) -> Any:
        return tuple(harness.outputs_of(sample.function, tensors))

    return outs, lambda *tensors: harness.quadratic(outs(*tensors), cotangents, curvatures)


@every_sample
def test_values_and_gradients_of_examples(sample: Sample) -> None:
    outs, loss = losses(sample)
    numbers = tuple(range(len(sample.arguments)))
    for shared in (None, 0, 1)[: 1 if len(numbers) == 1 else 3]:
        columns, axes = columns_of(sample, shared)
        if all(axis is None for axis in axes):
            continue
        compare(outs, columns, axes, VALUES, "value")
        compare(pb.grad(loss, numbers), columns, axes, FIRST, "gradient")


@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.orders >= 2 and s.name not in REFUSED], ids=lambda sample: sample.name
)
def test_second_order_of_examples(sample: Sample) -> None:
    _, loss = losses(sample)
    numbers = tuple(range(len(sample.arguments)))
    directions = [pb.asarray(u) for u in harness.cotangents_for(rng(sample.name + " along"), sample.arguments)]

    def slope(*tensors: Any) -> Any:
        """The gradient along a direction, which is differentiated once more."""
        total: Any = None
        for gradient, direction in zip(pb.grad(loss, numbers)(*tensors), directions):
            term = TENSORS.sum(gradient * pb.conj(direction), None, False)
            term = TENSORS.real(term) if term.dtype.kind == "complex" else term
            total = term if total is None else total + term
        return total

    columns, axes = columns_of(sample, None)
    compare(pb.grad(slope, numbers), columns, axes, SECOND, "gradient of the gradient")

    # the gradient of what is mapped: a sum of what each example gives
    def total(*stacks: Any) -> Any:
        return TENSORS.sum(pb.vmap(slope, randomness="same")(*stacks), None, False)

    found = pb.grad(total, numbers)(*[pb.asarray(column) for column in columns])
    expected = [pb.grad(slope, numbers)(*row) for row in rows_of(columns, axes)]
    for k, out in enumerate(found):
        wanted = np.stack([harness.raw(row[k]) for row in expected])
        assert_close([harness.raw(out)], [wanted], SECOND, f"gradient of mapped gradients {k}", 1e-12)


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if len(s.arguments) > 1 and s.name not in REFUSED], ids=lambda sample: sample.name
)
def test_what_examples_share_gets_the_sum_of_their_gradients(sample: Sample, shared: int) -> None:
    _, loss = losses(sample)
    columns, axes = columns_of(sample, shared)
    numbers = tuple([number for number, axis in enumerate(axes) if axis is None])

    def total(*stacks: Any) -> Any:
        return TENSORS.sum(pb.vmap(loss, in_axes=axes, randomness="same")(*stacks), None, False)

    found = pb.grad(total, numbers)(*[pb.asarray(column) for column in columns])
    expected = [pb.grad(loss, numbers)(*row) for row in rows_of(columns, axes)]
    for k, out in enumerate(found):
        wanted = np.stack([harness.raw(row[k]) for row in expected]).sum(axis=0)
        assert_close([harness.raw(out)], [wanted], FIRST, f"gradient {k}", 1e-12)


@every_sample
def test_forward_mode_of_examples(sample: Sample) -> None:
    outs, _ = losses(sample)
    columns, axes = columns_of(sample, None)
    tangents = harness.cotangents_for(rng(sample.name + " tangents"), columns)

    def push(*tensors: Any) -> Any:
        half = len(tensors) // 2
        return pb.jvp(outs, tensors[:half], tensors[half:])[1]

    compare(push, [*columns, *tangents], axes + axes, FIRST, "tangent")
    stacks, moving = [pb.asarray(x) for x in columns], [pb.asarray(t) for t in tangents]
    found = pb.jvp(pb.vmap(outs, randomness="same"), tuple(stacks), tuple(moving))[1]
    rows = rows_of([*columns, *tangents], axes + axes)
    expected = [push(*row) for row in rows]
    for k, out in enumerate(found):
        wanted = np.stack([harness.raw(row[k]) for row in expected])
        assert_close([harness.raw(out)], [wanted], FIRST, f"tangent of a map {k}", 1e-12)
