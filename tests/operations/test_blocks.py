"""The size of the pieces that a kernel works on at a time does not matter."""

from __future__ import annotations

import pytest

from . import harness
from .harness_blocks import sizes, smallest_blocks
from .harness_samples import SAMPLES
from .sample import Sample
from .test_layouts import value_and_gradient


def test_the_sizes_are_found() -> None:
    assert {(module.__name__.rpartition(".")[2], name) for module, name in sizes()} >= {
        ("activations", "_BLOCK"),
        ("attention", "_BLOCK_BYTES"),
        ("convolution", "_UNFOLDED_BYTES"),
        ("normalization", "_BLOCK"),
        ("guard", "WINDOW_BYTES"),
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_results_do_not_depend_on_blocks(sample: Sample) -> None:
    arrays = [argument.copy() for argument in sample.arguments]
    expected = value_and_gradient(sample, arrays)
    with smallest_blocks():
        found = value_and_gradient(sample, arrays)
    harness.assert_close(found, expected, 1e-12, "in pieces", 1e-12 * harness.size_of(expected))
