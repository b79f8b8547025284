"""Patches, pixels and bags of rows: against PyTorch, and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")
generator = np.random.default_rng(0)
every_device = pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu", "strict"])


def on(device: str, x: Any) -> pb.Tensor:
    require("torch:cpu")
    require(device)
    return pb.asarray(np.asarray(x), device=device)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().to_device("numpy"))


@every_device
@pytest.mark.parametrize(
    "geometry",
    [
        {"kernel_size": 2},
        {"kernel_size": (3, 1), "stride": (1, 2)},
        {"kernel_size": 2, "dilation": 2, "padding": (1, 0), "stride": 2},
        {"kernel_size": 1, "padding": 1},
    ],
)
def test_unfold_and_fold_as_pytorch(device: str, geometry: Any) -> None:
    x = generator.normal(size=(2, 3, 5, 6)).astype(np.float32)
    columns = torch.nn.functional.unfold(torch.tensor(x), **geometry)
    np.testing.assert_array_equal(host(pb.unfold(on(device, x), **geometry)), columns.numpy())
    expected = torch.nn.functional.fold(columns, (5, 6), **geometry)
    np.testing.assert_allclose(host(pb.fold(on(device, columns.numpy()), (5, 6), **geometry)), expected, rtol=1e-5)


def test_a_convolution_is_a_product_with_patches() -> None:
    x, weight = generator.normal(size=(2, 3, 5, 6)), generator.normal(size=(4, 3, 2, 2))
    product = weight.reshape(4, -1) @ pb.unfold(x, 2, padding=1, stride=2)
    expected = pb.conv2d(x, weight, padding=1, stride=2)
    np.testing.assert_allclose(host(product).reshape(expected.shape), host(expected), rtol=1e-10)


def test_one_image_and_none() -> None:
    assert pb.unfold(np.ones((3, 2, 2)), 2).shape == (12, 1)
    assert pb.fold(np.ones((12, 1)), 2, 2).shape == (3, 2, 2)
    assert pb.unfold(np.ones((0, 3, 2, 2)), 2).shape == (0, 12, 1)
    assert pb.fold(np.ones((0, 12, 1)), 2, 2).shape == (0, 3, 2, 2)
    assert pb.unfold(np.arange(4).reshape(1, 2, 2), 1).tolist() == [[0, 1, 2, 3]]


@every_device
def test_pixels_as_pytorch(device: str) -> None:
    x = np.arange(2 * 12 * 2 * 3, dtype=np.float32).reshape(2, 12, 2, 3)
    fine = torch.pixel_shuffle(torch.tensor(x), 2)
    np.testing.assert_array_equal(host(pb.pixel_shuffle(on(device, x), 2)), fine.numpy())
    np.testing.assert_array_equal(host(pb.pixel_unshuffle(on(device, fine.numpy()), 2)), x)
    assert pb.pixel_shuffle(np.ones((4, 1, 1)), 1).shape == (4, 1, 1)
    assert pb.pixel_shuffle(np.ones((5, 0, 9, 2, 2)), 3).shape == (5, 0, 1, 6, 6)


@pytest.mark.parametrize(
    ("device", "mode"),
    [
        ("numpy", "sum"),
        ("numpy", "mean"),
        ("numpy", "max"),
        ("torch:cpu", "mean"),
        ("jax:cpu", "max"),
        ("strict", "sum"),
    ],
)
def test_bags_as_pytorch(device: str, mode: str) -> None:
    weight = generator.normal(size=(5, 3)).astype(np.float32)
    rows, starts = np.array([4, 0, 0, 2, 1]), np.array([0, 0, 3, 5])
    bag = torch.nn.functional.embedding_bag
    for padding in (None, 0, -1):
        expected = bag(torch.tensor(rows), torch.tensor(weight), torch.tensor(starts), mode=mode, padding_idx=padding)
        found = pb.embedding_bag(on(device, rows), on(device, weight), on(device, starts), mode, padding_idx=padding)
        np.testing.assert_allclose(host(found), expected.numpy(), rtol=1e-6)
        assert found.dtype == pb.float32
        square = np.array([[4, 0], [0, 0], [3, 1]])
        expected = bag(torch.tensor(square), torch.tensor(weight), mode=mode, padding_idx=padding)
        found = pb.embedding_bag(on(device, square), on(device, weight), mode=mode, padding_idx=padding)
        np.testing.assert_allclose(host(found), expected.numpy(), rtol=1e-6)
        assert found.dtype == pb.float32
    last = pb.embedding_bag(on(device, rows), on(device, weight), on(device, [0, 2, 5]), mode, include_last_offset=True)
    np.testing.assert_allclose(
        host(last), bag(torch.tensor(rows), torch.tensor(weight), torch.tensor([0, 2]), mode=mode).numpy(), rtol=1e-6
    )
    assert (
        pb.embedding_bag(on(device, np.zeros((2, 0), np.int64)), on(device, weight), mode=mode).tolist()
        == [[0] * 3] * 2
    )


def test_bags_in_a_compiled_function_have_offsets_of_each_call() -> None:
    weight = pb.asarray(generator.normal(size=(5, 3)))
    rows = pb.asarray([4, 0, 0, 2, 1])
    step = pb.compile(lambda starts: pb.embedding_bag(rows, weight, starts, "sum"))
    for starts in ([0, 2], [0, 4], [0, 0]):
        expected = pb.embedding_bag(rows, weight, pb.asarray(starts), "sum")
        np.testing.assert_allclose(host(step(pb.asarray(starts))), host(expected), rtol=1e-12)


ROWS, TABLE = pb.asarray([0, 1, 2]), pb.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pb.unfold(np.ones((2, 2)), 1), pb.ShapeError, "must have 4 axes"),
        (lambda: pb.unfold(np.ones((1, 2, 2)), 3), pb.ShapeError, "larger than the images"),
        (lambda: pb.unfold(np.ones((1, 2, 2)), 0), pb.ShapeError, "at least 1"),
        (lambda: pb.fold(np.ones((1, 5, 1)), 2, 2), pb.ShapeError, "multiple of 4 rows"),
        (lambda: pb.fold(np.ones((1, 4, 2)), 2, 2), pb.ShapeError, "1 columns"),
        (lambda: pb.fold(np.ones(4), 2, 2), pb.ShapeError, "fold: x must be"),
        (lambda: pb.pixel_shuffle(np.ones((3, 2, 2)), 2), pb.ShapeError, "multiple of 2"),
        (lambda: pb.pixel_shuffle(np.ones((2, 2)), 2), pb.ShapeError, "channels, height, width"),
        (lambda: pb.pixel_unshuffle(np.ones((1, 3, 2)), 2), pb.ShapeError, "multiples of 2"),
        (lambda: pb.embedding_bag(ROWS, TABLE), pb.ShapeError, "without offsets"),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([1, 2])), ValueError, "begin with 0"),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0, 2, 1])), ValueError, "ascend"),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0, 4])), ValueError, "within 3"),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0.0])), pb.DtypeError, "integers"),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0]), "prod"), ValueError, '"max"'),
        (lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0]), per_sample_weights=ROWS), ValueError, 'mode="sum"'),
        (
            lambda: pb.embedding_bag(ROWS, TABLE, pb.asarray([0]), "sum", per_sample_weights=pb.ones(2)),
            pb.ShapeError, r"\(2,\)",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
