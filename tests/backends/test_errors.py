"""Wrong inputs give on every device what they give on NumPy: an error of the same class, or equal dtype and shape."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as pb

from ..operations.harness_devices import everything_on
from .installed import require
from .test_operations import FIRST_OF_OPERATION, name_of

#: Parts of rules, which get from them what fits together; on NumPy they look at less of it.
INNER = frozenset(
    ("convolution_weight_gradient", "pool_gather", "pool_scatter", "recurrence", "rotate_pairs", "take_transposed")
)
#: What needs an order of numbers, which complex ones have on NumPy alone.
ORDERED = frozenset(
    ("amax", "amin", "max", "max_pool", "maximum", "min", "minimum", "sort", "argmax", "argmin", "argsort")
)


def longer(x):
    return np.concatenate([x, x[..., :1]], -1) if x.ndim and x.shape[-1] else np.ones((3,), x.dtype)


def with_an_axis(x):
    return np.stack([x, x, x])


def without_an_axis(x):
    return x[0] if x.ndim and len(x) else np.ones((2, 2, 2), x.dtype)


def empty(x):
    return x[:0] if x.ndim else np.ones((0,), x.dtype)


WRONG = {
    "longer": longer,
    "with an axis": with_an_axis,
    "without an axis": without_an_axis,
    "empty": empty,
    "complex": lambda x: x.astype(np.complex128) * (1 + 0.5j),
    "boolean": lambda x: x.real > 0,
    "integer": lambda x: np.trunc(x.real * 3).astype(np.int64),
    "float32": lambda x: x.astype(np.float32 if x.dtype.kind == "f" else np.complex64),
}

SAMPLES = [sample for sample in FIRST_OF_OPERATION if sample.operation not in INNER]


def outcome(sample, arguments, device):
    """The error, or shapes and dtypes of the results."""
    with everything_on(device), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = sample.function(*[pb.asarray(a, device=device) for a in arguments])
        except Exception as error:
            return error
    return [(out.shape, out.dtype.name) for out in (result if isinstance(result, tuple) else (result,))]


def _names_an_operation(error):
    name = str(error).partition(":")[0].partition("(")[0].partition(" ")[0]
    return isinstance(error, pb.PullbackError) and name.isidentifier()


def differences(sample, device, only_errors=False):
    """What is not as on NumPy, for each wrong argument, or for those that are an error there."""
    for kind, spoil in WRONG.items():
        for position in range(len(sample.arguments)):
            arguments = list(sample.arguments)
            arguments[position] = spoil(arguments[position])
            expected = outcome(sample, arguments, "numpy")
            if only_errors and not isinstance(expected, Exception):
                continue
            found = outcome(sample, arguments, device)
            if kind == "complex" and sample.operation in ORDERED and not isinstance(expected, Exception):
                if device.startswith("torch") and not isinstance(found, pb.DtypeError):
                    yield f"argument {position} complex: {found!r:.300}, and there is no order"
                continue
            same = type(found) is type(expected) if isinstance(expected, Exception) else found == expected
            if not same:
                yield f"argument {position} {kind}: {found!r:.300}, on NumPy {expected!r:.300}"
            elif isinstance(found, Exception) and not _names_an_operation(found):
                yield f"argument {position} {kind}: {found!r:.300} is none of ours, or does not say what was called"


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_torch(sample):
    require("torch:cpu")
    assert not list(differences(sample, "torch:cpu"))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_jax(sample):
    require("jax:cpu")
    assert not list(differences(sample, "jax:cpu", only_errors=True))  # JAX compiles whatever it computes
