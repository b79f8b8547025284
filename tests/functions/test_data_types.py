"""Dtypes: promotion, limits, conversion."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import BFLOAT16, needs_ml_dtypes, optional

ml_dtypes = optional("ml_dtypes")


def test_result_type_lets_python_numbers_adapt() -> None:
    assert pb.result_type(pb.float32, 1.5) == pb.float32
    assert pb.result_type(pb.int8, 300) == pb.int8
    assert pb.result_type(pb.float32, 1j) == pb.complex64
    assert pb.result_type(pb.int8, pb.uint8) == pb.int16
    assert pb.result_type(pb.ones(2, dtype=pb.float64), np.ones(2, np.float32)) == pb.float64
    assert pb.result_type(1.5) == pb.float32
    with pytest.raises(pb.DtypeError):
        pb.result_type()


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_result_types_of_half_precision_and_numbers(dtype: Any) -> None:
    assert pb.result_type(dtype, 2.5) == pb.result_type(dtype, 2) == pb.result_type(dtype, True) == dtype
    assert pb.result_type(dtype, 1j) == pb.complex64


def test_can_cast_and_isdtype() -> None:
    assert pb.can_cast(pb.float32, pb.float64)
    assert not pb.can_cast(pb.ones(2, dtype=pb.float64), pb.float32)
    assert pb.isdtype(pb.uint8, "integral")
    assert not pb.isdtype(pb.bool, "numeric")
    assert pb.isdtype(pb.float32, (pb.float64, "real floating"))
    with pytest.raises(pb.DtypeError, match="unknown kind"):
        pb.isdtype(pb.float32, "floats")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
def test_finfo_gives_python_floats(name: str) -> None:
    limits, expected = pb.finfo(getattr(pb, name)), np.finfo(name)
    assert (limits.eps, limits.max, limits.min) == (float(expected.eps), float(expected.max), float(expected.min))
    assert all(type(n) is float for n in (limits.eps, limits.max, limits.min, limits.smallest_normal))
    assert limits.dtype == expected.dtype


@needs_ml_dtypes
def test_limits_of_bfloat16_and_of_tensors() -> None:
    assert pb.finfo(pb.bfloat16).eps == float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
    assert pb.iinfo(pb.ones(2, dtype=pb.int16)).max == 32767
    with pytest.raises(pb.DtypeError, match="iinfo"):
        pb.finfo(pb.int8)
    with pytest.raises(pb.DtypeError, match="finfo"):
        pb.iinfo(pb.float32)


def test_astype_brings_the_gradient_back_in_the_own_dtype() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    grad = pb.backward((pb.astype(w, pb.float64) ** 2).sum())[w]
    assert grad.dtype == pb.float32
    np.testing.assert_allclose(grad.numpy(), [2, 4])
    with pytest.raises(pb.DtypeError, match=r"pb\.real"):
        pb.astype(pb.asarray([1j]), pb.float32)


def test_astype_copies_only_if_asked() -> None:
    x = pb.ones(3)
    assert pb.astype(x, pb.float32, copy=False) is x
    assert pb.astype(x, pb.float32) is not x


@needs_ml_dtypes
def test_bfloat16_stays_bfloat16() -> None:
    x = pb.asarray([1.0, 2.0, 3.0], dtype=pb.bfloat16).set_requires_grad(True)
    for result in (x * 1.5, 1.5 - x, x**2, x > 1.5, pb.maximum(x, 1.5), x.mean(), x.var(), pb.log2(x)):
        assert result.dtype in (pb.bfloat16, pb.bool)
    assert pb.backward((x * 1.5).sum())[x].dtype == pb.bfloat16


@needs_ml_dtypes
def test_many_small_bfloat16_numbers_add_up() -> None:
    assert pb.sum(pb.ones(1000, dtype=pb.bfloat16)).item() == 1000


def test_namespace_info() -> None:
    info = pb.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.dtypes(kind="bool") == {"bool": pb.bool}
    assert set(info.dtypes(kind=("real floating", "unsigned integer"))) == {
        "float32", "float64", "uint8", "uint16", "uint32", "uint64",
    }  # fmt: skip
    assert info.default_dtypes()["real floating"] == pb.float32
    assert info.capabilities()["boolean indexing"]
    assert pb.ones(2).__array_namespace__(api_version="2025.12") is pb
    with pytest.raises(ValueError, match=r"2025\.12"):
        pb.ones(2).__array_namespace__(api_version="1999.1")


def test_dtypes_go_by_numpys_names() -> None:
    for name in ("f4", "f", "double", "half", "int", "i8", "u1", "?", "c16", "float32"):
        assert pb.ones(2).astype(name).dtype == np.dtype(name)
    assert pb.float32 == "float32" and pb.float32 != "float64" and pb.ones(2).dtype == "float32"
    for wrong in ("nonsense", "O", "U3", "datetime64[s]", "longdouble", ""):
        with pytest.raises(pb.DtypeError, match="unknown dtype"):
            pb.ones(2).astype(wrong)


@needs_ml_dtypes
def test_the_hash_of_a_dtype_never_changes():
    program = "import pullback as pb; s = {pb.bfloat16}; pb.ones(2, dtype=pb.bfloat16); assert pb.bfloat16 in s"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("kind", [bool, int, float, complex])
def test_dtypes_are_equal_to_what_numpy_s_are_equal_to(kind):
    x = pb.zeros(2, dtype=kind)
    assert x.dtype == kind and x.dtype == np.dtype(kind)
    assert x.dtype.name == np.dtype(kind).name
    assert pb.float32 != kind
