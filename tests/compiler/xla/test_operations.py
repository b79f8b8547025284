"""Every sample compiled on JAX: values, gradients and second derivatives are those of the eager operation there."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import require
from ...operations import harness
from ...operations.harness_devices import everything_on
from ...operations.harness_samples import SAMPLES
from ...operations.sample import Sample
from ...operations.test_compiled import UNTRACEABLE, derivatives

DEVICE = "jax:cpu"
TRACEABLE = [sample for sample in SAMPLES if sample.name not in UNTRACEABLE]
#: One sample of every fourth operation, so that each family is there.
SOME = list({sample.operation: sample for sample in reversed(TRACEABLE)}.values())[::4]


def check(sample: Sample, device: str = DEVICE) -> None:
    require(device)
    computed = derivatives(sample)
    with everything_on(device), pb.guard("off"):
        arguments = [pb.asarray(argument, device=device) for argument in sample.arguments]
        expected = computed(*arguments)
        compiled = pb.compile(computed)
        found = compiled(*arguments)
    assert compiled.traces == 1
    for name, ours, theirs in zip(("value", "gradient", "second derivative"), found, expected):
        assert [tensor.device for tensor in ours] == [tensor.device for tensor in theirs]
        ours, theirs = [[np.asarray(t.detach().numpy()) for t in tensors] for tensors in (ours, theirs)]
        harness.assert_close(ours, theirs, 1e-9, name, 1e-11)


@pytest.mark.parametrize("sample", SOME, ids=lambda sample: sample.name)
def test_a_compiled_operation_agrees_with_the_eager_one(sample: Sample) -> None:
    check(sample)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [s for s in TRACEABLE if s not in SOME], ids=lambda sample: sample.name)
def test_all_others_do_too(sample: Sample) -> None:
    check(sample)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.name in UNTRACEABLE], ids=lambda sample: sample.name)
def test_a_shape_that_depends_on_values_is_refused(sample: Sample) -> None:
    require(DEVICE)
    with everything_on(DEVICE), pytest.raises(pb.TraceError, match="depends on values"):
        pb.compile(sample.function)(*[pb.asarray(argument, device=DEVICE) for argument in sample.arguments])
