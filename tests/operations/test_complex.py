"""Complex arguments for every operation that takes them: the gradient is PyTorch's, whichever parts it depends on."""

from __future__ import annotations

import pytest

import pullback as pb
from pullback.operations import names

from ..backends.installed import is_installed
from . import harness, harness_checks, harness_derived, harness_references
from .sample import Sample, rng

#: Operations on real numbers: they refuse complex ones with a DtypeError. One that learns to take them loses its mark.
#: Some functions take complex numbers to other operations; some made of others refuse them themselves.
TAKING_COMPLEX = {"logsumexp", "sigmoid", "silu"}
MADE_OF_OTHERS = {
    "cosine_similarity", "cummax", "cummin", "group_norm", "hardsigmoid", "hardswish", "instance_norm", "kl_div",
    "logcumsumexp", "mish", "nll_loss", "prelu", "quantile", "relu6", "selu", "smooth_l1_loss",
}  # fmt: skip
REAL_ONLY = (names(lambda operation: operation.real) - TAKING_COMPLEX) | MADE_OF_OTHERS
#: Samples of other operations by a function that is on real numbers: here `pb.rotary_embedding`, `pb.sort`, `pb.topk`.
REAL_ONLY_SAMPLES = {
    "rotary_embedding-halves complex", "rotary_embedding-interleaved complex",
    "sort-vector complex", "sort-axis=0 complex", "sort-descending complex", "sort-not stable complex",
    "sort-empty complex",
    "take_along_axis-topk complex", "take_along_axis-topk smallest, axis=0 complex",
    "embedding_bag-max-offsets complex", "embedding_bag-max-padding complex",
}  # fmt: skip
SAMPLES = list(harness_derived.complex_versions())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_complex_arguments(sample: Sample) -> None:
    if sample.operation in REAL_ONLY or sample.name in REAL_ONLY_SAMPLES:
        with pytest.raises(pb.DtypeError):
            harness.values(sample.function, sample.arguments)
        return
    outputs = harness.values(sample.function, sample.arguments)
    harness_checks.first_order(sample, every_coordinate=False)
    harness_checks.forward_mode(sample)
    if sample.orders >= 2:
        harness_checks.second_order(sample)
    if sample.torch is None or not is_installed("torch"):
        return
    cotangents = harness.cotangents_for(rng(sample.name), outputs)
    try:
        values, expected = harness_references.by_torch(sample, cotangents)
    except (RuntimeError, TypeError):
        return  # PyTorch has it for real numbers only; the differences above decide
    found = harness.reverse(sample.function, sample.arguments, cotangents)
    harness.assert_close(outputs, values, 1e-10, "value", 1e-10)
    harness.assert_close(found, expected, 1e-10, "gradient", 1e-10 * harness.size_of(expected))


def test_only_what_there_is_is_called_real_only() -> None:
    assert {sample.operation for sample in SAMPLES} >= REAL_ONLY
    assert {sample.name for sample in SAMPLES if sample.operation not in REAL_ONLY} >= REAL_ONLY_SAMPLES
