"""What a notebook shows of a tensor: true, small however large the tensor is, and never an error."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import needs_llvmlite, require
from ..train.test_report import Outline, said

NUMBERS = np.random.default_rng(0)


def words(tensor):
    return said(tensor._repr_html_())


def test_what_a_tensor_is_and_its_values_are_shown():
    text = words(pb.tensor([[1.0, -2.5], [3.0, 4.0]], requires_grad=True))
    for expected in (
        "tensor|",
        "2 \u00d7 2|",
        "float32|",
        "numpy|",
        "16 B|",
        "requires_grad",
        "[[ 1. , -2.5],\n [ 3. ,  4. ]]",
    ):
        assert expected in text, expected
    assert "min -2.5 \u00b7 mean 1.375 \u00b7 max 4" in text


def test_tracked_tensors_are_shown_and_stay_tracked():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    assert "made of variables" in words(y) and "[3., 6.]" in words(y)
    y.sum().backward()
    assert "has a gradient" in words(w) and w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (5,), (300,), (20, 30), (4, 3, 5, 6), (2,) * 12])
def test_every_dtype_and_shape_is_shown(dtype, shape):
    tensor = pb.ones(shape, dtype=dtype)
    text = words(tensor)
    assert dtype in text and len(text) < 10_000
    assert ("no elements" in text) == (tensor.size == 0)


def test_what_is_not_finite_is_counted():
    values = NUMBERS.standard_normal(1000)
    values[:3], values[5] = np.nan, -np.inf
    assert "3 nan \u00b7 1 inf" in words(pb.asarray(values))
    assert words(pb.full((3,), float("nan"))).count("3 nan") == 1


def test_a_huge_tensor_is_shown_at_its_corners_without_being_read():
    values = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))  # there is no memory for a copy
    text = words(pb.asarray(values))
    assert "4 TiB" in text and "1048576 \u00d7 1048576" in text and len(text) < 1000


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_the_corners_of_a_large_tensor_are_those_that_numpy_prints(device):
    require(device)
    values = NUMBERS.standard_normal((1100, 9, 120))
    shown = Outline(pb.asarray(values, device=device)._repr_html_()).words[-1]
    options = {"separator": ", ", "threshold": 0, "edgeitems": 3, "precision": 4, "max_line_width": 100}
    assert shown == np.array2string(values, **options)


def test_of_many_axes_the_first_entries_are_shown():
    shown = Outline(pb.asarray(np.arange(16.0**5).reshape((16,) * 5))._repr_html_()).words[-1]
    assert shown.startswith("[0, 0, :, :, :]\n[[[") and "4.095e+03]" in shown and "4.096e+03" not in shown


def test_quantized_tensors_are_shown():
    text = words(pb.quantize(pb.tensor([[1.27, -0.5], [0.01, 0.02]])))
    assert "qint8" in text and "12 B" in text and "1.27" in text
    large = pb.quantize(pb.zeros((1100, 1000)))
    assert "t.dequantize()" in words(large)


def test_tensors_of_transforms_show_what_their_text_says():
    seen = []

    def look(x):
        seen.append((words(x), repr(x)))
        return x * x

    pb.vmap(look)(np.arange(3.0))
    pb.jvp(look, (np.arange(3.0),), (np.ones(3),))
    for text, expected in seen:
        assert text == expected
    assert len(seen) == 2 and "examples" in seen[0][0] and "dual" in seen[1][0]


@needs_llvmlite
def test_a_traced_tensor_shows_that_it_has_no_values():
    seen = []
    pb.compile(lambda x: seen.append(x._repr_html_()) or x + 1, ignore=["seen"])(np.ones(3))
    assert any("traced, without values" in text for text in seen)


def test_an_error_inside_is_no_error_outside(monkeypatch):
    from pullback.tensors import notebook

    monkeypatch.setattr(notebook, "card", lambda *parts: 1 / 0)
    assert "tensor([1., 2.])" in pb.tensor([1.0, 2.0])._repr_html_()
