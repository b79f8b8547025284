"""Convolutions and their gradients, by kernels of their own or as products, are the same as NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.lowering import convolution
from pullback.targets.kernels import Host

from ...backends.installed import optional
from .building import Building
from .checking import checked

executable = optional("pullback.targets.llvm.runtime.executable")

RNG = np.random.default_rng(4)

# channels, features, size, kernel, stride, padding, dilation, groups
CASES: dict[str, Any] = {
    "plain": (3, 4, (7, 6), (3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "padded": (2, 3, (5, 6), (3, 3), (1, 1), ((1, 1), (2, 0)), (1, 1), 1),
    "stride": (2, 4, (8, 9), (3, 3), (2, 3), ((1, 1), (1, 1)), (1, 1), 1),
    "a stride that leaves elements over": (2, 4, (8, 10), (2, 2), (3, 3), ((0, 0), (0, 1)), (1, 1), 1),
    "dilation": (2, 3, (9, 9), (3, 2), (1, 2), ((1, 1), (0, 0)), (2, 3), 1),
    "groups": (4, 6, (5, 5), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    "a group for each channel, with strides": (3, 3, (6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), 3),
    "a group for each channel": (5, 5, (7, 19), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 5),
    "several features of each channel, dilated": (4, 12, (9, 8), (3, 2), (1, 1), ((2, 1), (0, 3)), (2, 3), 4),
    "one axis in groups, with strides": (4, 8, (21,), (5,), (2,), ((2, 3),), (1,), 4),
    "wide rows": (3, 7, (9, 17), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "wide rows with strides": (3, 5, (9, 20), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 1),
    "wide rows, taps that see none": (2, 4, (8, 25), (2, 2), (3, 4), ((0, 0), (1, 2)), (1, 1), 1),
    "wide rows, a stride and dilation with a factor": (2, 3, (13, 26), (3, 4), (2, 4), ((2, 1), (3, 0)), (2, 2), 1),
    "wide rows cut off, with strides": (2, 3, (9, 21), (3, 3), (2, 2), ((-1, 0), (0, -3)), (1, 1), 1),
    "wide rows in groups of many": (20, 4, (4, 11), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    "one long axis": (3, 4, (40,), (5,), (3,), ((2, 1),), (2,), 1),
    "one element": (4, 5, (4, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "one element, in groups": (4, 6, (4, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 2),
    "one place": (3, 2, (3, 3), (3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "cut off": (2, 3, (7, 7), (2, 2), (1, 1), ((-1, 0), (0, -2)), (1, 1), 1),
    "one axis": (3, 4, (9,), (4,), (1,), ((2, 1),), (1,), 1),
    "one axis with strides": (3, 4, (9,), (4,), (2,), ((2, 1),), (1,), 1),
    "three axes": (2, 2, (4, 3, 5), (2, 2, 3), (1, 1, 1), ((0, 1), (1, 0), (0, 0)), (1, 1, 1), 1),
}


def _normal(*shape: int, dtype: str) -> Any:
    return RNG.normal(size=shape).astype(dtype)


def _hosted(schedule: Any) -> list[str]:
    return [call.kernel.op for call in schedule.calls if isinstance(call.kernel, Host)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_and_its_gradients(case: str, dtype: str) -> None:
    channels, features, size, kernel, *options = CASES[case]
    b = Building()
    x = b.input(_normal(2, channels, *size, dtype=dtype))
    weight = b.input(_normal(features, channels // options[-1], *kernel, dtype=dtype))
    bias = b.input(_normal(features, dtype=dtype))
    out = b.biased_convolution(x, weight, bias, *options)
    plain = b.convolution(x, weight, *options)
    g = b.input(_normal(*out.shape, dtype=dtype))
    dx = b.convolution_input_gradient(g, weight, size, *options)
    dw = b.convolution_weight_gradient(g, x, kernel, *options)
    program = b.program([out, plain, dx, dw])
    schedule = checked(program, b.given())
    assert _hosted(schedule) == []
    if dtype == "float32":
        inputs, outputs = b.given(), [np.empty(value.shape, value.dtype) for value in program.outputs]
        executable.build(schedule).run(
            [array.ctypes.data for array in inputs], [array.ctypes.data for array in outputs]
        )
        for got, value in zip(outputs, program.outputs):
            np.testing.assert_allclose(got, b.arrays[value], rtol=1e-4, atol=1e-4)


def test_what_is_read_in_another_order() -> None:
    b = Building()
    x, weight = b.input(_normal(6, 7, 3, 2, dtype="float32")), b.input(_normal(3, 3, 3, 4, dtype="float32"))
    options = ((1, 1), ((0, 0), (1, 1)), (1, 1), 1)
    out = b.convolution(b.permute_dims(x, (3, 2, 0, 1)), b.permute_dims(weight, (3, 2, 0, 1)), *options)
    g = b.permute_dims(out, (0, 1, 3, 2))
    dw = b.convolution_weight_gradient(
        b.permute_dims(g, (0, 1, 3, 2)), b.permute_dims(x, (3, 2, 0, 1)), (3, 3), *options
    )
    assert _hosted(checked(b.program([out, dw]), b.given())) == []


def test_nothing_to_convolve_and_negative_padding_with_strides_are_left_to_numpy() -> None:
    b = Building()
    empty = b.input(np.zeros((0, 2, 5, 5), np.float32))
    weight = b.input(_normal(3, 2, 2, 2, dtype="float32"))
    options = ((2, 2), ((-1, 0), (0, 0)), (1, 1), 1)
    none = b.convolution(empty, weight, *options)
    g = b.input(_normal(1, 3, 2, 2, dtype="float32"))
    dx = b.convolution_input_gradient(g, weight, (5, 5), *options)
    assert _hosted(checked(b.program([none, dx]), b.given()))[-1:] == ["convolution_input_gradient"]


def test_large_unfolded_inputs_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "MOST_BYTES", 1000)
    b = Building()
    x, weight = b.input(_normal(2, 3, 9, 9, 2, dtype="float32")), b.input(_normal(4, 3, 3, 3, 1, dtype="float32"))
    options = ((2, 2, 1), ((1, 1), (1, 1), (0, 0)), (1, 1, 1), 1)
    out = b.convolution(x, weight, *options)
    dx = b.convolution_input_gradient(out, weight, (9, 9, 2), *options)
    dw = b.convolution_weight_gradient(out, x, (3, 3, 1), *options)
    assert len(_hosted(checked(b.program([out, dx, dw]), b.given()))) == 3


def test_what_windows_see_is_not_unfolded() -> None:
    """Beside arguments and results a convolution and its gradients have no array larger than the weights."""
    b = Building()
    x, weight = b.input(_normal(2, 5, 12, 12, dtype="float32")), b.input(_normal(7, 5, 3, 3, dtype="float32"))
    options = ((2, 2), ((1, 1), (1, 1)), (1, 1), 1)
    out = b.convolution(x, weight, *options)
    g = b.input(_normal(*out.shape, dtype="float32"))
    dx = b.convolution_input_gradient(g, weight, (12, 12), *options)
    dw = b.convolution_weight_gradient(g, x, (3, 3), *options)
    schedule = checked(b.program([out, dx, dw]), b.given())
    assert _hosted(schedule) == []
    temporary = {place.buffer for call in schedule.calls for place in call.writes if place.buffer.kind == "temporary"}
    assert max([buffer.nbytes for buffer in temporary]) <= b.arrays[weight].nbytes


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_compiled_layers_are_what_they_are_eagerly(name: str) -> None:
    layer = getattr(pb.nn, name)(3, 4, 3, stride=2, padding=1)
    x = pb.tensor(_normal(2, 3, 8, 8, dtype="float32"))

    def loss(x: Any) -> Any:
        return pb.tanh(layer(x)).sum()

    compiled = pb.compile(pb.value_and_grad(loss))
    for got, expected in zip(compiled(x), pb.value_and_grad(loss)(x), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
