"""Operations that are traced as several simpler ones give the dtype that they give eagerly, also for integers."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import require

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: pb.softmax(x, axis=-1), "log_softmax": lambda x: pb.log_softmax(x, axis=-1),
    "logsumexp": lambda x: pb.logsumexp(x, axis=-1), "elu": pb.elu, "gelu": pb.gelu, "silu": pb.silu,
    "softplus": pb.softplus, "log_sigmoid": pb.log_sigmoid, "leaky_relu": pb.leaky_relu, "relu": pb.relu,
}  # fmt: skip
DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "bool", "float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_values_are_those_of_the_eager_call(dtype: str) -> None:
    require("numpy", dtype)
    x = pb.asarray(np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])).astype(getattr(pb, dtype))
    known: dict[str, Any] = {}
    for name, function in FUNCTIONS.items():
        try:
            known[name] = function(x)
        except pb.DtypeError:
            continue  # refused eagerly
    found = pb.compile(lambda x: {name: FUNCTIONS[name](x) for name in known})(x)
    for name, expected in known.items():
        assert found[name].dtype == expected.dtype, name
        ours, theirs = (np.asarray(t.astype(pb.float64).numpy()) for t in (found[name], expected))
        rounding = {"float16": 2e-3, "bfloat16": 2e-2}.get(expected.dtype.name, 1e-5)
        np.testing.assert_allclose(ours, theirs, rtol=rounding, atol=rounding, err_msg=name)


def test_a_square_root_written_as_a_power() -> None:
    root = pb.compile(lambda x: x**0.5)
    with pb.guard("off"), np.errstate(all="ignore"):
        x = pb.tensor([4.0, -np.inf, np.inf, 0.0], dtype=pb.float64)
        np.testing.assert_array_equal(root(x).numpy(), (x**0.5).numpy())
