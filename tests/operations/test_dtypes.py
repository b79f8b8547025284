"""Gradients have the dtype of what they are gradients of, and are as exact as it allows."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import BFLOAT16
from . import harness
from .harness_samples import SAMPLES, is_complex
from .sample import Sample, rng

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
SINGLE = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}


@every_sample
def test_single_precision_gives_single_precision_gradients(sample: Sample) -> None:
    outputs = harness.values(sample.function, sample.arguments)
    cotangents = harness.cotangents_for(rng(sample.name), outputs)
    expected = harness.reverse(sample.function, sample.arguments, cotangents)
    arrays = [np.asarray(argument.astype(SINGLE[argument.dtype])) for argument in sample.arguments]
    tensors = harness.variables(arrays)
    results = harness.outputs_of(sample.function, tensors)
    cotangents = [np.asarray(c.astype(harness.raw(out).dtype)) for c, out in zip(cotangents, results)]
    found = harness.pulled(results, cotangents, tensors)
    for gradient, array in zip(found, arrays):
        assert gradient.dtype == array.dtype
    harness.assert_close(found, expected, 2e-3, "gradient", 1e-5 * harness.size_of(expected))


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("sample", [s for s in SAMPLES if not is_complex(s)], ids=lambda sample: sample.name)
def test_half_precision_is_preserved_or_refused(sample: Sample, dtype) -> None:
    tensors = [pb.asarray(argument, dtype=dtype).set_requires_grad(True) for argument in sample.arguments]
    with np.errstate(all="ignore"), pb.guard("off"):  # half precision overflows
        try:
            outputs = harness.outputs_of(sample.function, tensors)
        except pb.DtypeError:
            return  # refused, with a typed error
        cotangents = [np.ones(out.shape, harness.raw(out).dtype) for out in outputs]
        for gradient, tensor in zip(harness.pulled(outputs, cotangents, tensors), tensors):
            assert gradient.dtype == harness.raw(tensor).dtype
            assert gradient.shape == tensor.shape
