"""Images keep their channels last in memory from convolution to convolution, and results are the eager ones."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.compiler.passes.channels_last import with_channels_last
from pullback.targets.cuda.target import TARGET
from pullback.targets.kernels import Host, Loop

from ..building import Builder
from . import interpreted  # noqa: F401  (functions of CUDA's, for the interpreter)

DEVICE = "torch:cpu"


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, DEVICE, "cuda.target")
    with np.errstate(all="ignore"):  # NumPy's, which the interpreter computes with
        yield


def random(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    values = np.random.default_rng([seed, *shape]).normal(size=shape)
    return pb.asarray(values.astype(np.float32), device=DEVICE, copy=True).astype(dtype)


def calls_of(compiled: Any) -> list[Any]:
    calls: list[Any] = compiled._programs[0].built.executable.calls
    return calls


def copies_in(calls: list[Any]) -> list[Any]:
    """The loops that only move elements."""
    movement = {"read"}
    loops = [call.kernel for call in calls if type(call.kernel) is Loop]
    return [loop for loop in loops if {step.op for step in loop.steps} == movement]


class Block(pb.nn.Module):
    def __init__(self, channels: int, features: int, stride: int) -> None:
        self.first = pb.nn.Conv2d(channels, features, 3, stride=stride, padding=1, bias=False)
        self.norm1 = pb.nn.BatchNorm2d(features)
        self.second = pb.nn.Conv2d(features, features, 3, padding=1, bias=False)
        self.norm2 = pb.nn.BatchNorm2d(features)
        self.shortcut = pb.nn.Conv2d(channels, features, 1, stride=stride, bias=False)
        self.norm3 = pb.nn.BatchNorm2d(features)

    def forward(self, x: Any) -> Any:
        made = self.norm2(self.second(pb.relu(self.norm1(self.first(x)))))
        return pb.relu(made + self.norm3(self.shortcut(x)))


class Residual(pb.nn.Module):
    def __init__(self) -> None:
        self.stem = pb.nn.Conv2d(3, 5, 3, padding=1, bias=False)
        self.norm = pb.nn.BatchNorm2d(5)
        self.blocks = pb.nn.Sequential(Block(5, 5, 1), Block(5, 7, 2))
        self.head = pb.nn.Linear(7, 4)

    def forward(self, x: Any) -> Any:
        h = pb.max_pool2d(pb.relu(self.norm(self.stem(x))), 3, stride=2, padding=1)
        return self.head(pb.adaptive_avg_pool2d(self.blocks(h), 1).reshape(x.shape[0], -1))


def residual_step(dtype: str) -> tuple[Residual, Callable[..., Any]]:
    pb.random.seed(3)
    network = Residual().to_device(DEVICE).astype(dtype)
    optimizer = pb.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        loss = pb.cross_entropy(network(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    return network, step


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-12), ("bfloat16", 5e-2)])
def test_a_residual_network_trains_as_it_does_eagerly(dtype: str, tolerance: float) -> None:
    eager_network, eager = residual_step(dtype)
    network, step = residual_step(dtype)
    compiled = pb.compile(step)
    y = pb.asarray(np.array([1, 3]), device=DEVICE)
    for seed in range(2):
        x = random(2, 3, 8, 8, dtype=dtype, seed=seed)
        expected, found = eager(x, y).item(), compiled(x, y).item()
        np.testing.assert_allclose(found, expected, tolerance)
    for (name, one), (_, other) in zip(network._saved(), eager_network._saved()):
        found_one, expected_one = one.detach().astype("float64").numpy(), other.detach().astype("float64").numpy()
        np.testing.assert_allclose(found_one, expected_one, tolerance, 10 * tolerance, err_msg=name)


def test_only_inputs_and_weights_are_copied_in_a_residual_network() -> None:
    network, step = residual_step("bfloat16")
    compiled = pb.compile(step)
    compiled(random(2, 3, 8, 8, dtype="bfloat16"), pb.asarray(np.array([1, 3]), device=DEVICE))
    calls = calls_of(compiled)
    images = [call.kernel for call in calls if type(call.kernel) is Host]
    assert {kernel.op for kernel in images} >= {"convolution", "max_pool", "convolution_weight_gradient"}
    for kernel in images:
        for _, shape, strides in (*kernel.reads, *kernel.writes):
            assert len(shape) != 4 or strides[1] == 1 or shape[1] == 1, kernel
    # one for the images and one for each weight whose kernel is larger than 1 x 1
    weights = [one for one in network.parameters() if one.ndim == 4 and one.shape[-1] > 1]
    assert sum(len(loop.reads) for loop in copies_in(calls)) == 1 + len(weights)
    # no loop writes an array in single precision that has as many elements as images have
    smallest = 2 * 5 * 2 * 2
    for call in calls:
        if type(call.kernel) is Loop:
            for write, location in zip(call.kernel.writes, call.writes):
                if write.access.dtype == "float32" and location.buffer.kind == "temporary":
                    assert location.buffer.nbytes < 4 * smallest, call.kernel


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "odd channels": ((2, 5, 7, 6), (3, 5, 3, 2), {}),
    "one channel": ((2, 1, 6, 6), (4, 1, 3, 3), {"padding": 1}),
    "one feature": ((2, 3, 6, 6), (1, 3, 3, 3), {}),
    "one row and column": ((3, 4, 1, 1), (5, 4, 1, 1), {}),
    "strides and padding": ((2, 3, 9, 8), (4, 3, 3, 3), {"stride": (2, 3), "padding": (1, 2)}),
    "padding that differs before and after": ((2, 3, 6, 7), (4, 3, 2, 4), {"padding": "same"}),
    "dilation": ((2, 3, 9, 9), (4, 3, 3, 2), {"dilation": (2, 3)}),
    "groups": ((2, 6, 5, 5), (4, 3, 3, 3), {"groups": 2, "padding": 1}),
    "a group for each channel": ((2, 5, 6, 5), (5, 1, 3, 3), {"groups": 5, "padding": 1}),
    "one axis": ((2, 3, 9), (4, 3, 3), {"padding": 1}),
    "three axes": ((2, 3, 4, 5, 4), (4, 3, 2, 3, 2), {}),
}
CONVOLUTIONS: dict[int, Any] = {3: pb.conv1d, 4: pb.conv2d, 5: pb.conv3d}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_and_their_gradients_are_the_eager_ones(name: str, dtype: str) -> None:
    shape, kernel, options = CASES[name]
    x, weight, bias = (random(*s, dtype=dtype) for s in (shape, kernel, kernel[:1]))
    convolution = CONVOLUTIONS[len(shape)]

    def loss(x: Any, weight: Any, bias: Any) -> Any:
        h = convolution(x * 1.5, weight, bias, **options)
        return (pb.tanh(h) * pb.sum(h, 1, keepdims=True)).sum() + pb.mean(h, (0, 2)).sum()

    function = pb.value_and_grad(loss, argnums=(0, 1, 2))
    value, gradients = pb.compile(function)(x, weight, bias)
    expected_value, expected = function(x, weight, bias)
    tolerance = {"float32": 2e-4, "float64": 1e-10}[dtype]
    np.testing.assert_allclose(value.numpy(), expected_value.numpy(), tolerance, tolerance)
    for one, other in zip(gradients, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), tolerance, tolerance)


def test_second_derivatives_through_convolution_normalisation_and_pooling() -> None:
    x, weight = random(2, 3, 6, 6), random(4, 3, 3, 3)
    direction = random(4, 3, 3, 3, seed=1)

    def loss(weight: Any) -> Any:
        h = pb.batch_norm(pb.conv2d(x, weight, padding=1), training=True)[0]
        return pb.max_pool2d(pb.tanh(h), 2).sum() + (h * h * h).sum()

    def product(weight: Any) -> Any:
        return pb.grad(lambda weight: (pb.grad(loss)(weight) * direction).sum())(weight)

    found, expected = pb.compile(product)(weight).numpy(), product(weight).numpy()
    np.testing.assert_allclose(found, expected, 1e-3, 1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("options", [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "stride": 2, "ceil_mode": True}, {"kernel_size": 2, "stride": 1, "dilation": 2},
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_maxima_of_windows_are_the_eager_ones(options: Any, dtype: str) -> None:
    x, weight = random(2, 3, 7, 6, dtype=dtype), random(5, 3, 1, 1, dtype=dtype)

    def loss(x: Any) -> Any:
        h = pb.max_pool2d(pb.conv2d(x, weight), **options)
        return (h * h).sum(), h

    function = pb.value_and_grad(loss, has_aux=True)
    (_, pooled), gradient = pb.compile(function)(x)
    (_, expected_pooled), expected = function(x)
    tolerance = {"float32": 1e-5, "bfloat16": 3e-2}[dtype]
    for one, other in ((pooled, expected_pooled), (gradient, expected)):
        one, other = (array.astype("float64").numpy() for array in (one, other))
        np.testing.assert_allclose(one, other, tolerance, tolerance)


def test_means_of_windows_in_half_precision_are_computed_in_loops() -> None:
    x, weight = random(2, 3, 8, 8, dtype="bfloat16"), random(5, 3, 1, 1, dtype="bfloat16")

    def loss(x: Any) -> Any:
        h = pb.conv2d(x, weight)
        return pb.avg_pool2d(h * h, 2).sum() + pb.adaptive_avg_pool2d(h, 1).sum() + pb.mean(h, (2, 3)).sum()

    compiled = pb.compile(pb.grad(loss))
    found, expected = compiled(x), pb.grad(loss)(x)
    np.testing.assert_allclose(found.astype("float64").numpy(), expected.astype("float64").numpy(), 3e-2, 3e-2)
    assert {call.kernel.op for call in calls_of(compiled) if type(call.kernel) is Host} == {
        "convolution", "convolution_input_gradient",
    }  # fmt: skip


def test_a_frozen_weight_has_no_gradient_and_its_copy_is_made_once() -> None:
    x, frozen, weight = random(2, 3, 6, 6), random(4, 3, 3, 3), random(5, 4, 3, 3)

    def loss(weight: Any) -> Any:
        return pb.tanh(pb.conv2d(pb.relu(pb.conv2d(x, frozen, padding=1)), weight, padding=1)).sum()

    compiled = pb.compile(pb.grad(loss))
    np.testing.assert_allclose(compiled(weight).numpy(), pb.grad(loss)(weight).numpy(), 1e-4, 1e-4)
    ops = [call.kernel.op for call in calls_of(compiled) if type(call.kernel) is Host]
    assert ops.count("convolution_weight_gradient") == 1 and "convolution_input_gradient" not in ops
    assert len(copies_in(calls_of(compiled))) <= 4  # images, both weights, and the result in the order of weights


def test_parts_put_together_and_padded_stay_as_they_lie() -> None:
    x, one, other = random(2, 3, 6, 6), random(4, 3, 3, 3), random(2, 8, 3, 3)

    def function(x: Any) -> Any:
        h = pb.conv2d(x, one, padding=1)
        h = pb.pad(pb.concat([h, pb.tanh(h)], axis=1), ((0, 0), (0, 0), (1, 0), (0, 2)))
        return pb.conv2d(h, other)

    compiled = pb.compile(function)
    np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), 1e-4, 1e-4)
    last = [call.kernel for call in calls_of(compiled) if type(call.kernel) is Host][-1]
    assert last.reads[0][2][1] == 1
    strided = [loop for loop in copies_in(calls_of(compiled)) if len(loop.outer + loop.inner) > 2]
    assert all(len({access.strides[-1] for access in loop.reads}) == 1 for loop in strided)


def test_statistics_of_numbers_far_from_zero_keep_their_digits() -> None:
    x = random(4, 3, 6, 6) * 0.01 + 300.0

    def function(x: Any) -> Any:
        return pb.batch_norm(x, training=True)[0]

    wide = x.astype("float64")
    np.testing.assert_allclose(pb.compile(function)(x).numpy(), function(wide).numpy(), 5e-3, 5e-3)


def test_programs_without_images_are_left_alone() -> None:
    build = Builder()
    x, y = build.input(np.ones((2, 3, 4, 5), np.float32)), build.input(np.ones((3, 1, 1), np.float32))
    program = build.program([build.make("multiply", x, y)])
    assert with_channels_last(program, TARGET.abilities.channels_last) is program
