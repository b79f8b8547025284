"""Samples of operations compiled for the CUDA target, in Triton's interpreter: values and derivatives as eagerly."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pullback import targets

from ...operations.sample import Sample
from ..torch_cpu.test_operations import SOME, TRACEABLE
from ..xla.test_operations import check
from . import interpreted  # noqa: F401  (the kernels run there)

DEVICE = "torch:cpu"  # whose memory the interpreter works in


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(targets._MODULES, DEVICE, "cuda.target")


def _checked(sample: Sample) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's, which the interpreter computes with
        check(sample, DEVICE)


@pytest.mark.parametrize("sample", SOME, ids=lambda sample: sample.name)
def test_a_compiled_operation_agrees_with_the_eager_one(sample: Sample) -> None:
    _checked(sample)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [s for s in TRACEABLE if s not in SOME], ids=lambda sample: sample.name)
def test_all_others_do_too(sample: Sample) -> None:
    _checked(sample)
