"""Samples: changing shapes and moving elements."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng

SAMPLES: list[Sample] = []


def _torch() -> Any:
    import torch

    return torch


def _jax() -> Any:
    import jax.numpy

    return jax.numpy


def add(operation: str, case: str, function: Callable[..., Any], *shapes: Any, **options: Any) -> None:
    """A sample with normally distributed arguments of these shapes; a shape that starts with 1j is complex."""
    generator = rng(operation + case)
    arguments = []
    for shape in shapes:
        complex_ = bool(shape) and shape[0] == 1j
        shape = shape[1:] if complex_ else shape
        values = generator.normal(size=shape)
        arguments.append(np.asarray(values + 1j * generator.normal(size=shape) if complex_ else values))
    SAMPLES.append(Sample(operation, case, function, tuple(arguments), **options))


# views
add(
    "reshape", "infer", lambda x: pb.reshape(x, (3, -1)), (2, 6),
    torch=lambda x: x.reshape(3, -1), jax=lambda x: x.reshape(3, -1),
)  # fmt: skip
add("reshape", "to-scalar", lambda x: pb.reshape(x, ()), (1, 1))
add("reshape", "complex", lambda x: pb.ravel(x), (1j, 2, 3), torch=lambda x: x.ravel())
add("reshape", "empty", lambda x: pb.reshape(x, (3, 0)), (0, 2))
add("expand_dims", "tuple", lambda x: pb.expand_dims(x, (0, -1)), (2, 3), jax=lambda x: _jax().expand_dims(x, (0, -1)))
add("expand_dims", "scalar", lambda x: pb.expand_dims(x, 0), ())
add("squeeze", "axes", lambda x: pb.squeeze(x, (0, 2)), (1, 3, 1), jax=lambda x: x.squeeze((0, 2)))
add("matrix_transpose", "stack", lambda x: pb.matrix_transpose(x), (2, 3, 2), torch=lambda x: x.mT)
add(
    "permute_dims", "cycle", lambda x: pb.permute_dims(x, (2, 0, 1)), (2, 3, 2),
    torch=lambda x: x.permute(2, 0, 1), jax=lambda x: x.transpose(2, 0, 1),
)  # fmt: skip
add("permute_dims", "negative-axes", lambda x: pb.permute_dims(x, (-1, 0, -2)), (2, 3, 2))
add(
    "permute_dims",
    "moveaxis",
    lambda x: pb.moveaxis(x, (0, 1), (-1, 0)),
    (2, 3, 2),
    torch=lambda x: x.movedim((0, 1), (-1, 0)),
)
add("permute_dims", "swapaxes", lambda x: pb.swapaxes(x, 0, 2), (2, 3, 2), torch=lambda x: x.swapaxes(0, 2))
add("permute_dims", "transpose", lambda x: pb.transpose(x), (2, 3, 2), jax=lambda x: x.T)
add(
    "broadcast_to", "new-and-stretched", lambda x: pb.broadcast_to(x, (2, 3, 4)), (3, 1),
    torch=lambda x: x.expand(2, 3, 4), jax=lambda x: _jax().broadcast_to(x, (2, 3, 4)),
)  # fmt: skip
add("broadcast_to", "to-empty", lambda x: pb.broadcast_to(x, (0, 3)), (1, 3))
add(
    "broadcast_to",
    "arrays",
    lambda x, y: pb.broadcast_arrays(x, y),
    (3, 1),
    (2,),
    torch=lambda x, y: _torch().broadcast_tensors(x, y),
)
add("flip", "all", lambda x: pb.flip(x), (2, 3), torch=lambda x: x.flip((0, 1)))
add("flip", "axis", lambda x: pb.flip(x, axis=1), (2, 3), torch=lambda x: x.flip((1,)), jax=lambda x: _jax().flip(x, 1))

# moves
add("roll", "axis", lambda x: pb.roll(x, 2, axis=1), (2, 3), torch=lambda x: x.roll(2, 1))
add("roll", "flat", lambda x: pb.roll(x, -1), (2, 3), torch=lambda x: x.roll(-1), jax=lambda x: _jax().roll(x, -1))
add("roll", "tuple", lambda x: pb.roll(x, (1, -2), axis=(0, 1)), (3, 4), torch=lambda x: x.roll((1, -2), (0, 1)))
add("roll", "same-axis-twice", lambda x: pb.roll(x, (1, 1), axis=(0, 0)), (3,))
add("repeat", "axis", lambda x: pb.repeat(x, 3, axis=1), (2, 3), torch=lambda x: x.repeat_interleave(3, 1))
add("repeat", "flat", lambda x: pb.repeat(x, 2), (2, 3), jax=lambda x: _jax().repeat(x, 2))
add("repeat", "never", lambda x: pb.repeat(x, 0, axis=0), (2, 3))
add(
    "take", "repeat-by-array", lambda x: pb.repeat(x, pb.asarray(np.array([2, 0, 3])), axis=1), (2, 3),
    torch=lambda x: x.repeat_interleave(_torch().tensor([2, 0, 3]), 1),
)  # fmt: skip
add("tile", "fewer", lambda x: pb.tile(x, (3,)), (2, 3), jax=lambda x: _jax().tile(x, (3,)))
add("tile", "more", lambda x: pb.tile(x, (2, 1, 3)), (2, 3), torch=lambda x: x.tile((2, 1, 3)))
add("tile", "never", lambda x: pb.tile(x, (0, 2)), (2, 3))
add(
    "pad", "constant", lambda x: pb.pad(x, ((1, 0), (2, 1)), constant_values=1.5), (2, 3),
    torch=lambda x: _torch().nn.functional.pad(x, (2, 1, 1, 0), value=1.5),
    jax=lambda x: _jax().pad(x, ((1, 0), (2, 1)), constant_values=1.5),
)  # fmt: skip
add("pad", "complex", lambda x: pb.pad(x, 1), (1j, 2, 2), jax=lambda x: _jax().pad(x, 1))
for _mode in ("reflect", "edge", "wrap"):
    add(
        "take", f"pad-{_mode}", lambda x, mode=_mode: pb.pad(x, ((1, 2), (0, 2)), mode=mode), (3, 4),
        jax=lambda x, mode=_mode: _jax().pad(x, ((1, 2), (0, 2)), mode=mode),
    )  # fmt: skip

# joining and splitting
add(
    "concat", "axis", lambda x, y: pb.concat([x, y, x], axis=1), (2, 3), (2, 1),
    torch=lambda x, y: _torch().cat([x, y, x], 1), jax=lambda x, y: _jax().concatenate([x, y, x], 1),
)  # fmt: skip
add(
    "concat",
    "flat",
    lambda x, y: pb.concat([x, y], axis=None),
    (2, 2),
    (),
    jax=lambda x, y: _jax().concatenate([x, y], None),
)
add("concat", "empty-part", lambda x, y: pb.concat([x, y]), (0, 2), (1, 2))
add("concat", "mixed-dtypes", lambda x, y: pb.concat([x, y]), (2,), (1j, 2))
add(
    "stack",
    "last",
    lambda x, y: pb.stack([x, y], axis=-1),
    (2, 3),
    (2, 3),
    torch=lambda x, y: _torch().stack([x, y], -1),
)
add("stack", "scalars", lambda x, y: pb.stack([x, y]), (), (), jax=lambda x, y: _jax().stack([x, y]))
add("unstack", "all", lambda x: pb.unstack(x, axis=1), (2, 3), torch=lambda x: x.unbind(1))
add("unstack", "some", lambda x: pb.unstack(x)[1], (3, 2), torch=lambda x: x.unbind(0)[1])
add("split", "equal", lambda x: pb.split(x, 2, axis=1), (2, 4), jax=lambda x: _jax().split(x, 2, 1))
add("split", "at", lambda x: pb.split(x, [1, 3]), (5, 2), jax=lambda x: _jax().split(x, [1, 3]))
add("split", "some", lambda x: pb.array_split(x, 3)[0] * pb.array_split(x, 3)[2][0], (5, 2))
add("split", "rule", lambda x: TENSORS.split(x, (2, 0, 1), -1)[2], (2, 3))
