"""Every sample compiled on PyTorch's processor: values and derivatives are those of the eager operation there."""

from __future__ import annotations

import pytest

import pullback as pb

from ...backends.installed import require
from ...operations.harness_devices import everything_on
from ...operations.harness_samples import SAMPLES
from ...operations.sample import Sample
from ...operations.test_compiled import UNTRACEABLE
from ..xla.test_operations import TRACEABLE, check

DEVICE = "torch:cpu"
#: One sample of every eighth operation: the programs are those of NumPy's device, where all are tested.
SOME = list({sample.operation: sample for sample in reversed(TRACEABLE)}.values())[::8]


@pytest.mark.parametrize("sample", SOME, ids=lambda sample: sample.name)
def test_a_compiled_operation_agrees_with_the_eager_one(sample: Sample) -> None:
    check(sample, DEVICE)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [s for s in TRACEABLE if s not in SOME], ids=lambda sample: sample.name)
def test_all_others_do_too(sample: Sample) -> None:
    check(sample, DEVICE)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.name in UNTRACEABLE], ids=lambda sample: sample.name)
def test_a_shape_that_depends_on_values_is_refused(sample: Sample) -> None:
    require(DEVICE)
    with everything_on(DEVICE), pytest.raises(pb.TraceError, match="depends on values"):
        pb.compile(sample.function)(*[pb.asarray(argument, device=DEVICE) for argument in sample.arguments])
