"""Errors that say what was given and what to write, of a class of Pullback's, eagerly, compiled and on PyTorch."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import require

INTEGERS = np.array([1, 2, 3])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "power",
    [
        lambda x: x**-1,
        lambda x: pb.pow(x, -2),
        lambda x: 2 ** (x - 3),
        lambda x: x ** (x - 3),
        lambda x: pb.astype(x, pb.uint8) ** -1,
    ],
)
def test_negative_integer_powers(power: Callable[[Any], Any], compiled: bool) -> None:
    run = pb.compile(power) if compiled else power
    with pytest.raises(pb.DtypeError, match=r"negative power.*astype\(pb\.float64\)"):
        run(pb.asarray(INTEGERS - 1))
    if compiled:
        with pytest.raises(pb.DtypeError, match="negative power"):
            run(pb.asarray(INTEGERS - 1))


@pytest.mark.parametrize("where", ["eager", "compiled", "torch"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0])
def test_the_largest_of_nothing(name: str, axis: int | None, where: str) -> None:
    function = lambda x: getattr(pb, name)(x, axis=axis)
    x = pb.zeros((0, 3))
    if where == "torch":
        require("torch")
        x = x.to_device("torch")
    run = pb.compile(function) if where == "compiled" else function
    for _ in range(2):
        with pytest.raises(pb.ShapeError, match=rf"{name}: there are no elements.*\(0, 3\)"):
            run(x)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("option", [{"axes": 0}, {"s": 3}])
def test_a_number_where_several_belong(name: str, option: dict[str, int]) -> None:
    x = pb.ones((2, 3)) if name == "rfftn" else pb.ones((2, 3), dtype=pb.complex64)
    with pytest.raises(pb.DtypeError, match=rf"{name}: (axes|s) takes several numbers, got \d. Write"):
        getattr(pb.fft, name)(x, **option)


@pytest.mark.parametrize(
    "name",
    ["argmax", "bitwise_and", "ceil", "erf", "floor", "gelu", "greater", "hypot", "less", "max", "maximum", "median",
     "min", "relu", "remainder", "log_sigmoid", "signbit", "elu", "softplus", "sort", "trunc"],
)  # fmt: skip
def test_complex_numbers_on_torch(name: str) -> None:
    require("torch")
    x = pb.asarray(np.array([1 + 1j, 2.0])).to_device("torch")
    binary = name in ("bitwise_and", "greater", "hypot", "less", "maximum", "remainder")
    with pytest.raises(pb.PullbackError):
        getattr(pb, name)(*[x] * (2 if binary else 1))
