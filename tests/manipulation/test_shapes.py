"""Changing shapes: values as NumPy has them, views where possible, errors that say what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

ARRAY = np.arange(24.0).reshape(2, 3, 4)


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            same(a, b)
    else:
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert np.array_equal(np.asarray(found), expected)


CASES = {
    "reshape": (lambda x: pb.reshape(x, (4, -1)), lambda x: np.reshape(x, (4, -1))),
    "ravel": (pb.ravel, np.ravel),
    "expand_dims": (lambda x: pb.expand_dims(x, (0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    "squeeze": (lambda x: pb.squeeze(x[:1], 0), lambda x: np.squeeze(x[:1], 0)),
    "squeeze-all": (lambda x: pb.squeeze(x[:1, :1]), lambda x: np.squeeze(x[:1, :1])),
    "permute_dims": (lambda x: pb.permute_dims(x, (2, 0, 1)), lambda x: np.transpose(x, (2, 0, 1))),
    "transpose": (pb.transpose, np.transpose),
    "swapaxes": (lambda x: pb.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1)),
    "moveaxis": (lambda x: pb.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0))),
    "flip": (lambda x: pb.flip(x, axis=(0, 2)), lambda x: np.flip(x, (0, 2))),
    "roll": (lambda x: pb.roll(x, (1, -2), axis=(0, 1)), lambda x: np.roll(x, (1, -2), (0, 1))),
    "roll-flat": (lambda x: pb.roll(x, 5), lambda x: np.roll(x, 5)),
    "broadcast_to": (lambda x: pb.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    "concat": (lambda x: pb.concat([x, x[:1]]), lambda x: np.concatenate([x, x[:1]])),
    "concat-flat": (lambda x: pb.concat([x, x[0]], axis=None), lambda x: np.concatenate([x, x[0]], None)),
    "stack": (lambda x: pb.stack([x, x], axis=-1), lambda x: np.stack([x, x], -1)),
    "unstack": (lambda x: pb.unstack(x, axis=1), lambda x: tuple(np.moveaxis(x, 1, 0))),
    "split": (lambda x: pb.split(x, 2, axis=2), lambda x: np.split(x, 2, 2)),
    "split-at": (lambda x: pb.split(x, [1, 3], axis=2), lambda x: np.split(x, [1, 3], 2)),
    "split-out-of-order": (lambda x: pb.split(x, [3, 1, 9, -1], axis=2), lambda x: np.split(x, [3, 1, 9, -1], 2)),
    "array_split": (lambda x: pb.array_split(x, 3, axis=2), lambda x: np.array_split(x, 3, 2)),
    "repeat": (lambda x: pb.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, 1)),
    "repeat-array": (lambda x: pb.repeat(x, np.array([1, 0, 2]), axis=1), lambda x: np.repeat(x, [1, 0, 2], 1)),
    "repeat-one": (lambda x: pb.repeat(x, np.array([2])), lambda x: np.repeat(x, [2])),
    "tile": (lambda x: pb.tile(x, (2, 1, 1, 3)), lambda x: np.tile(x, (2, 1, 1, 3))),
    "pad": (
        lambda x: pb.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=3.0),
        lambda x: np.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=3.0),
    ),
    "pad-reflect": (
        lambda x: pb.pad(x, ((0, 0), (1, 2), (3, 1)), mode="reflect"),
        lambda x: np.pad(x, ((0, 0), (1, 2), (3, 1)), "reflect"),
    ),
    "pad-edge": (lambda x: pb.pad(x, (1, 2), mode="replicate"), lambda x: np.pad(x, (1, 2), "edge")),
    "pad-wrap": (lambda x: pb.pad(x, 5, mode="wrap"), lambda x: np.pad(x, 5, "wrap")),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex64"])
def test_values_are_those_of_numpy(name: str, dtype: str) -> None:
    ours, numpys = CASES[name]
    array = ARRAY.astype(dtype)
    same(ours(pb.asarray(array)), numpys(array))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: pb.reshape(x, (6, 4)),
        lambda x: pb.reshape(x[:, :, ::2], (6, 2)),
        pb.transpose,
        pb.matrix_transpose,
        lambda x: pb.flip(x),
        lambda x: pb.broadcast_to(x, (9, 2, 3, 4)),
        lambda x: pb.expand_dims(x, 0),
        lambda x: pb.unstack(x)[1],
        lambda x: pb.split(x, 3, axis=1)[2],
        lambda x: pb.diagonal(x),
        lambda x: x[0],
        lambda x: x[..., ::-2],
        lambda x: x[None, :, 1],
    ],
)
def test_views_share_memory_and_have_values_of_their_own(view: Any) -> None:
    x = pb.asarray(ARRAY.copy())
    y = view(x)
    assert np.shares_memory(x.data, y.data)
    before = np.array(np.asarray(x))
    y += 1
    assert np.array_equal(np.asarray(x), before)


def test_reshape_without_copy_raises_where_it_would_need_one() -> None:
    x = pb.asarray(ARRAY)
    assert pb.reshape(x, (24,), copy=False).shape == (24,)
    assert pb.reshape(x[:, :2], (2, 8), copy=False).shape == (2, 8)
    with pytest.raises(pb.ShapeError, match="copy=False"):
        pb.reshape(x.T, (24,), copy=False)
    y = pb.reshape(x, (24,), copy=True)
    y[0] = 5.0
    assert x[0, 0, 0].item() == 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pb.reshape(x, (5, -1)), ValueError, r"24 elements of shape \(2, 3, 4\) do not fit"),
        (lambda x: pb.reshape(x, (-1, -1)), ValueError, "do not fit"),
        (lambda x: pb.reshape(x, (2.0, 12)), TypeError, "integers"),
        (lambda x: pb.expand_dims(x, 4), IndexError, "axis 4 does not exist"),
        (lambda x: pb.expand_dims(x, (0, 0)), ValueError, "named twice"),
        (lambda x: pb.squeeze(x, 0), ValueError, "has size 2, not 1"),
        (lambda x: pb.permute_dims(x, (0, 1)), ValueError, "no permutation"),
        (lambda x: pb.permute_dims(x, (0, 1, 1)), ValueError, "named twice"),
        (lambda x: pb.moveaxis(x, (0, 1), 0), ValueError, "2 axes cannot be moved to 1"),
        (lambda x: pb.flip(x, axis=3), IndexError, "axis 3"),
        (lambda x: pb.roll(x, (1, 2), axis=0), ValueError, "2 shifts for 1 axes"),
        (lambda x: pb.concat([]), ValueError, "at least one"),
        (lambda x: pb.concat([x, x[0]]), ValueError, "shapes"),
        (lambda x: pb.concat([x[0, 0, 0]]), ValueError, "zero-dimensional"),
        (lambda x: pb.stack([x, x[:1]]), ValueError, "not all the same"),
        (lambda x: pb.broadcast_to(x, (2, 3, 5)), ValueError, "broadcast"),
        (lambda x: pb.broadcast_shapes((2,), (3,)), ValueError, r"\(2,\), \(3,\)"),
        (lambda x: pb.split(x, 5), ValueError, "no 5 equal parts"),
        (lambda x: pb.repeat(x, -1), ValueError, "negative"),
        (lambda x: pb.repeat(x, np.array([0.5])), TypeError, "integers"),
        (lambda x: pb.repeat(x, np.array([1, 2]), axis=1), ValueError, "3 numbers"),
        (lambda x: pb.pad(x, ((1, 1), (2, 2))), ValueError, "pairs"),
        (lambda x: pb.pad(x, -1), ValueError, "negative"),
        (lambda x: pb.pad(x, 1, mode="mirror"), ValueError, "unknown mode"),
    ],
)
def test_errors_say_what_was_given(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call(pb.asarray(ARRAY))
    assert isinstance(caught.value, pb.PullbackError)


def test_broadcast_shapes_of_nothing() -> None:
    assert pb.broadcast_shapes() == ()
    assert pb.broadcast_shapes((0, 1), (3,)) == (0, 3)


def test_gradients_of_views_of_one_array_add_up() -> None:
    x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    a, b, c = pb.unstack(x)
    (a * b + pb.flip(x)[0] + c).backward()
    assert x.grad.tolist() == [2.0, 1.0, 2.0]
