"""Every sample compiled: values, gradients and second derivatives are those of the eager operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.tables import TENSORS

from . import harness
from .harness_samples import SAMPLES
from .sample import Sample, rng

pytestmark = pytest.mark.plain_graph  # a program has no use for a strategy


def derivatives(sample: Sample) -> Any:
    """A function of the sample's arguments that gives its values, its gradients, and a product with its Hessian."""
    generator = rng(sample.name + " compiled")
    outputs = harness.values(sample.function, sample.arguments)
    cotangents = harness.cotangents_for(generator, outputs)
    curvatures = harness.cotangents_for(generator, outputs)
    directions = harness.cotangents_for(generator, sample.arguments)

    def computed(*arguments: pb.Tensor) -> Any:
        tensors = [argument.detach().set_requires_grad(True) for argument in arguments]
        results = harness.outputs_of(sample.function, tensors)
        values = [result.detach() for result in results]
        loss = harness.quadratic(results, cotangents, curvatures)
        if loss._node is None:
            return values, [], []
        if sample.orders < 2:
            grads = pb.backward(loss)
            return values, [grads[t] for t in tensors if t in grads], []
        grads = pb.backward(loss, create_graph=True)
        first = [grads[t] for t in tensors if t in grads]
        contraction: Any = 0.0
        for t, u in zip(tensors, directions):
            if t in grads:
                term = TENSORS.sum(grads[t] * pb.asarray(np.conj(u)), None, False)
                contraction = contraction + (TENSORS.real(term) if term.dtype.kind == "complex" else term)
        plain = [gradient.detach() for gradient in first]
        if not isinstance(contraction, pb.Tensor) or contraction._node is None:
            return values, plain, []
        second = pb.backward(contraction)
        return values, plain, [second[t] for t in tensors if t in second]

    return computed


#: The shape of what these give depends on values.
UNTRACEABLE = ("take-unique values",)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.name in UNTRACEABLE], ids=lambda sample: sample.name)
def test_a_shape_that_depends_on_values_is_refused(sample: Sample) -> None:
    with pytest.raises(pb.TraceError, match="depends on values"):
        pb.compile(sample.function)(*[pb.asarray(argument) for argument in sample.arguments])


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.name not in UNTRACEABLE], ids=lambda sample: sample.name)
def test_a_compiled_operation_agrees_with_the_eager_one(sample: Sample) -> None:
    computed = derivatives(sample)
    arguments = [pb.asarray(argument) for argument in sample.arguments]
    with pb.guard("off"):
        expected = computed(*arguments)
        compiled = pb.compile(computed)
        for _ in range(2):  # nothing of a call is left in the memory that the next one uses
            found = compiled(*arguments)
    assert compiled.traces == 1
    for name, ours, theirs in zip(("value", "gradient", "second derivative"), found, expected):
        harness.assert_close([harness.raw(t) for t in ours], [harness.raw(t) for t in theirs], 1e-9, name, 1e-12)
