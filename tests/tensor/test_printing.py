"""`repr`, `str` and `format` of tensors."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import forward

from ..backends.installed import require


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        ([1.0, 2.0], {}, "tensor([1., 2.])"),
        ([1, 2], {}, "tensor([1, 2])"),
        ([True, False], {}, "tensor([ True, False])"),
        (1.5, {}, "tensor(1.5)"),
        ([], {}, "tensor([])"),
        ([1.0, 2.0], {"dtype": "float64"}, "tensor([1., 2.], dtype=float64)"),
        ([1.0], {"dtype": "bfloat16"}, "tensor([1.], dtype=bfloat16)"),
        ([1, 2], {"dtype": "uint8"}, "tensor([1, 2], dtype=uint8)"),
        ([1 + 2j], {}, "tensor([1.+2.j], dtype=complex64)"),
        ([1.0], {"requires_grad": True}, "tensor([1.], requires_grad=True)"),
        ([1.0], {"dtype": "float64", "requires_grad": True}, "tensor([1.], dtype=float64, requires_grad=True)"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, "tensor([[1., 2.],\n        [3., 4.]])"),
    ],
)
def test_repr_shows_what_is_not_usual(data, options, text):
    require("numpy", options.get("dtype"))
    tensor = pb.tensor(data, **options)
    assert repr(tensor) == text
    assert str(tensor) == text


def test_empty_tensors_show_shape_and_dtype():
    assert repr(pb.asarray(np.zeros((0, 3)))) == "tensor([], shape=(0, 3), dtype=float64)"
    assert repr(pb.asarray(np.zeros(0, np.int64))) == "tensor([], dtype=int64)"


def test_long_tensors_are_shortened():
    assert repr(pb.asarray(np.arange(5000))) == "tensor([   0,    1,    2, ..., 4997, 4998, 4999], shape=(5000,))"


def test_notes_that_do_not_fit_go_on_a_line_of_their_own():
    tensor = pb.asarray(np.ones(4)).set_requires_grad(True)
    with np.printoptions(linewidth=40):
        assert repr(tensor) == "tensor([1., 1., 1., 1.],\n       dtype=float64, requires_grad=True)"
    assert repr(tensor) == "tensor([1., 1., 1., 1.], dtype=float64, requires_grad=True)"


def test_values_are_aligned_as_numpy_aligns_them():
    values = np.asarray([[1.5, -20.25], [300.0, 0.125]], np.float32)
    expected = (
        repr(values).replace("array(", "tensor(").replace("\n      ", "\n       ").removesuffix(", dtype=float32)")
    )
    assert repr(pb.asarray(values)) == expected + ")"


def test_the_default_dtype_is_not_shown():
    pb.set_default_dtype("float64")
    try:
        assert repr(pb.tensor([1.0])) == "tensor([1.])"
        assert repr(pb.asarray(np.ones(1, np.float32))) == "tensor([1.], dtype=float32)"
    finally:
        pb.set_default_dtype("float32")


def test_duals_show_their_tangent():
    dual = forward.dual(pb.tensor([1.0]), pb.tensor([2.0]), 3)
    assert repr(dual) == "dual(tensor([1.]), tensor([2.]), level=3)"


def test_formatting_a_tensor_without_axes_formats_its_number():
    loss = pb.tensor(0.123456, requires_grad=True)
    assert f"{loss:.3f}" == "0.123"
    assert f"{pb.tensor(3):d}" == "3"
    assert f"{pb.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match=r"shape \(2,\)"):
        format(pb.tensor([1.0, 2.0]), ".2f")


# -- formatting a tensor that requires a gradient ----------------------------------------------------


LOSS = (pb.tensor([1.0, 2.5], requires_grad=True) ** 2).sum()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lambda t: "%.2f" % t, "7.25"),  # noqa: UP031
        (lambda t: "%.1e %s" % (t, "x"), "7.2e+00 x"),  # noqa: UP031
        (lambda t: "%d of %g" % (t, t), "7 of 7.25"),  # noqa: UP031
        (lambda t: "%(loss)6.3f" % {"loss": t}, " 7.250"),  # noqa: UP031
        (lambda t: b"%.2f" % t, b"7.25"),
        (lambda t: f"{t:.2f}", "7.25"),
        (lambda t: f"{t:8.1f}", "     7.2"),
        (lambda t: format(t, ".3g"), "7.25"),
    ],
)
def test_a_tracked_number_is_formatted_as_it_is_printed(text, expected):
    assert text(LOSS) == text(LOSS.detach()) == expected
    assert "%s" % LOSS == str(LOSS)  # noqa: UP031
    in_place = "%.3f"
    in_place %= LOSS
    assert in_place == "7.250"


def test_logging_formats_a_tracked_number(caplog):
    with caplog.at_level("INFO"):
        logging.getLogger("pullback.test").info("loss %.3f", LOSS)
    assert caplog.messages == ["loss 7.250"]


def test_formatting_is_no_way_to_lose_a_gradient():
    for conversion in (float, int, complex, math.sin, "%.2f".__mod__, lambda t: float(t) % 2):
        with pytest.raises(pb.GradientError, match=r"t\.item\(\)"):
            conversion(LOSS)
    for number in (5, 5.0, np.float64(5.0), np.float32(5.0), np.full(2, 5.0), np.int64(5)):
        result = number % LOSS
        assert isinstance(result, pb.Tensor) and result.requires_grad, type(number)
    with pytest.raises(pb.ShapeError, match="only a tensor with one element"):
        "%.2f" % pb.tensor([1.0, 2.0], requires_grad=True)  # noqa: UP031


def test_plotting_a_tracked_tensor_says_what_to_write():
    """Plotting asks for an array of floats, as matplotlib's lines do."""
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    for convert in (lambda t: np.asarray(t, float), lambda t: np.array(t), lambda t: np.asarray(t)):
        with pytest.raises(pb.GradientError, match=r"to plot them, say\), write `t\.detach\(\)`"):
            convert(w)
        np.testing.assert_array_equal(convert(w.detach()), [1.0, 2.0])
    with pytest.raises(pb.GradientError, match=r"t\.detach\(\)"):
        w.numpy()
