"""The same values in another memory layout give the same results and gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pullback as pb

from . import harness
from .harness_samples import FAMILY_OF, SAMPLES
from .sample import Sample, rng


def spaced(array: np.ndarray) -> np.ndarray:
    """With gaps between the elements in every dimension, filled with NaN so that reading one shows."""
    if array.ndim == 0:
        return array
    buffer = np.full(tuple(2 * n + 1 for n in array.shape), np.nan, array.dtype)
    view = buffer[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def reversed_strides(array: np.ndarray) -> np.ndarray:
    flip = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[flip])[flip] if array.ndim else array


def fortran(array: np.ndarray) -> np.ndarray:
    return np.array(array, order="F")


def read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def swapped_strides(array: np.ndarray) -> np.ndarray:
    """Made by transposing: the last two axes in the other order in memory, the others in place."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2) if array.ndim > 1 else array


def repeated(array: np.ndarray) -> np.ndarray:
    """With stride 0 along the first axis: other values than `array` has."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and array.size else array


LAYOUTS = (spaced, reversed_strides, fortran, read_only, swapped_strides)


def value_and_gradient(sample: Sample, arrays: list[np.ndarray], layout: Callable | None = None) -> list[np.ndarray]:
    tensors = harness.variables(arrays)
    outputs = harness.outputs_of(sample.function, tensors)
    cotangents = harness.cotangents_for(rng(sample.name), [harness.raw(out) for out in outputs])
    if layout is not None and layout is not repeated:
        cotangents = [layout(c) for c in cotangents]
    results = [harness.raw(out) for out in outputs]
    return results + harness.pulled(outputs, cotangents, tensors)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_layout_of_the_inputs_and_cotangents_does_not_matter(sample: Sample) -> None:
    expected = value_and_gradient(sample, [argument.copy() for argument in sample.arguments])
    for layout in LAYOUTS:
        found = value_and_gradient(sample, [layout(argument) for argument in sample.arguments], layout)
        harness.assert_close(found, expected, 1e-12, layout.__name__, 1e-12 * harness.size_of(expected))


# Equal rows make matrices singular and sorted values equal: a decomposition has no gradient there to compare.
WITH_STRIDE_0 = [sample for sample in SAMPLES if FAMILY_OF[sample.name] not in ("linalg", "sorting")]


@pytest.mark.parametrize("sample", WITH_STRIDE_0, ids=lambda sample: sample.name)
def test_stride_0_does_not_matter(sample: Sample) -> None:
    arrays = [repeated(argument) for argument in sample.arguments]
    with np.errstate(all="ignore"), pb.guard("off"):
        expected = value_and_gradient(sample, [array.copy() for array in arrays])
        found = value_and_gradient(sample, arrays, repeated)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * max(1.0, harness.size_of([b[np.isfinite(b)]])))
