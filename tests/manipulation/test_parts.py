"""Diagonals, joining along the usual axes, parts of given sizes, some axes made one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require

every_device = pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu", "strict"])


def on(device: str, x: Any) -> pb.Tensor:
    require(device)
    return pb.asarray(np.asarray(x), device=device)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().to_device("numpy"))


@pytest.mark.parametrize(
    ("device", "k"), [("numpy", 0), ("numpy", 2), ("numpy", -7), ("torch:cpu", 2), ("jax:cpu", -1), ("strict", -1)]
)
def test_diagonals_as_numpy(device: str, k: int) -> None:
    for shape in ((3,), (0,), (1,), (3, 4), (4, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(host(pb.diag(on(device, x), k)), np.diag(x, k))


@every_device
def test_stacks_of_diagonals(device: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = host(pb.diag_embed(on(device, x), offset=-1))
    np.testing.assert_array_equal(found, np.stack([np.diag(row, -1) for row in x]))
    moved = host(pb.diag_embed(on(device, x), -1, axis1=0, axis2=-1))
    np.testing.assert_array_equal(moved, np.moveaxis(found, (-2, -1), (0, -1)))
    np.testing.assert_array_equal(host(pb.diag_embed(on(device, x), 0, -1, -2)), np.stack([np.diag(row) for row in x]))
    assert pb.diag_embed(on(device, np.zeros((2, 0), np.float32)), 1).shape == (2, 1, 1)


def test_traces_along_any_axes() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(host(pb.trace(x)), np.linalg.trace(x))
    np.testing.assert_array_equal(host(pb.trace(x, axis1=0, axis2=1, offset=1)), np.trace(x, 1))
    np.testing.assert_array_equal(host(pb.asarray(x).trace(axis1=2, axis2=0)), np.trace(x, axis1=2, axis2=0))
    np.testing.assert_array_equal(host(pb.diagonal(x, axis1=0, axis2=1)), np.diagonal(x))
    with pytest.raises(pb.AxisError):
        pb.trace(x, axis1=0, axis2=3)
    with pytest.raises(pb.ShapeError):
        pb.trace(x, axis1=0, axis2=-3)


@every_device
def test_joined_as_numpy(device: str) -> None:
    groups: list[tuple[tuple[int, ...], ...]] = [
        ((3,), (3,)), ((3,), (2, 3)), ((2, 3), (0, 3)), ((), ()), ((2, 1, 3), (2, 1, 3)),
    ]  # fmt: skip
    for shapes in groups:
        parts = [np.full(shape, i, np.float32) for i, shape in enumerate(shapes)]
        np.testing.assert_array_equal(host(pb.vstack([on(device, x) for x in parts])), np.vstack(parts))
        if len({len(shape) for shape in shapes}) == 1 and shapes[0] != (2, 3):
            np.testing.assert_array_equal(host(pb.hstack([on(device, x) for x in parts])), np.hstack(parts))


def test_parts_of_given_sizes() -> None:
    x = pb.asarray(np.arange(10).reshape(2, 5))
    assert [part.shape for part in pb.split(x, sizes=[1, 0, 4], axis=1)] == [(2, 1), (2, 0), (2, 4)]
    assert [part.tolist() for part in x.split(sizes=(2,))] == [x.tolist()]
    assert pb.split(pb.zeros((0,)), sizes=[]) == ()
    assert [part.shape for part in pb.split(x, [1, 4], axis=1)] == [(2, 1), (2, 3), (2, 1)]


def test_some_axes_made_one() -> None:
    x = pb.asarray(np.arange(24).reshape(2, 3, 4))
    assert x.flatten(1).shape == pb.flatten(x, 1).shape == (2, 12)
    assert x.flatten(0, 1).shape == x.flatten(0, -2).shape == (6, 4)
    assert x.flatten(-2, -1).tolist() == np.arange(24).reshape(2, 12).tolist()
    assert x.flatten(start_axis=2).shape == (2, 3, 4)
    assert pb.asarray(3.0).flatten().shape == (1,)
    assert pb.zeros((2, 0, 3)).flatten(1).shape == (2, 0)
    assert x.flatten("F").shape == (24,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: pb.diag(pb.zeros((2, 2, 2))), pb.ShapeError, "diag_embed or diagonal"),
        (lambda x: pb.diag(1.0), pb.ShapeError, "vector or a matrix"),
        (lambda x: pb.diag_embed(1.0), pb.ShapeError, "zero-dimensional"),
        (lambda x: pb.vstack([]), pb.ShapeError, "at least one"),
        (lambda x: pb.vstack([pb.zeros(2), pb.zeros(3)]), pb.ShapeError, "differ in more than axis 0"),
        (lambda x: pb.hstack([pb.zeros((2, 1)), pb.zeros((3, 1))]), pb.ShapeError, "differ in more than axis 1"),
        (lambda x: pb.hstack([pb.zeros(2), pb.zeros((2, 2))]), pb.ShapeError, "differ"),
        (lambda x: x.split(), pb.ShapeError, "sizes=None"),
        (lambda x: x.split(2, sizes=[1, 1]), pb.ShapeError, "or else a list of `sizes`"),
        (lambda x: x.split(sizes=2), pb.ShapeError, "sizes=2"),
        (lambda x: x.split(sizes=[2, 2]), pb.ShapeError, "add up to 4; axis 0 has size 5"),
        (lambda x: x.split(sizes=[6, -1]), pb.ShapeError, "add up to 5"),
        (lambda x: x.split(2), pb.ShapeError, "sizes="),
        (lambda x: pb.zeros((2, 3)).flatten(1, 0), pb.ShapeError, "comes after"),
        (lambda x: x.flatten(1), pb.AxisError, "axis 1"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(pb.zeros(5))
