"""Samples: matrix products."""

from __future__ import annotations

from typing import Any

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample
from .samples_shape import SAMPLES as _SHAPE_SAMPLES, _jax, _torch, add as _add

SAMPLES: list[Sample] = []


def add(*args: Any, **options: Any) -> None:
    _add(*args, **options)
    SAMPLES.append(_SHAPE_SAMPLES.pop())


for _case, _x, _y in (
    ("matrices", (2, 3), (3, 2)),
    ("vectors", (3,), (3,)),
    ("matrix-vector", (2, 3), (3,)),
    ("vector-matrix", (3,), (3, 2)),
    ("stack-matrix", (2, 2, 3), (3, 2)),
    ("matrix-stack", (2, 3), (2, 3, 2)),
    ("stack-vector", (2, 2, 3), (3,)),
    ("vector-stack", (3,), (2, 3, 2)),
    ("stacks-broadcast", (2, 1, 2, 2), (3, 2, 1)),
    ("complex", (1j, 2, 3), (1j, 3, 2)),
    ("real-complex", (2, 3), (1j, 3, 2)),
):
    _same = (_x[0] == 1j) == (_y[0] == 1j)
    add(
        "matmul",
        _case,
        lambda x, y: x @ y,
        _x,
        _y,
        jax=lambda x, y: x @ y,
        torch=(lambda x, y: x @ y) if _same else None,
    )
for _case, _x, _y in (
    ("inner-empty", (2, 0), (0, 3)),
    ("stack-empty", (0, 2, 3), (3, 2)),
    ("rows-empty", (0, 3), (3, 2)),
):
    add("matmul", _case, lambda x, y: x @ y, _x, _y)

add(
    "linear", "matrix", lambda x, w, b: pb.linear(x, w, b), (2, 3), (4, 3), (4,),
    torch=lambda x, w, b: _torch().nn.functional.linear(x, w, b),
)  # fmt: skip
add(
    "linear",
    "stack",
    lambda x, w, b: pb.linear(x, w, b),
    (2, 2, 3),
    (2, 3),
    (2,),
    torch=lambda x, w, b: _torch().nn.functional.linear(x, w, b),
)
add(
    "linear",
    "no-bias",
    lambda x, w: pb.linear(x, w),
    (2, 3),
    (4, 3),
    torch=lambda x, w: _torch().nn.functional.linear(x, w),
)
add("linear", "vector", lambda x, w, b: pb.linear(x, w, b), (3,), (4, 3), (4,), jax=lambda x, w, b: w @ x + b)
add(
    "linear",
    "complex",
    lambda x, w, b: pb.linear(x, w, b),
    (1j, 2, 3),
    (1j, 2, 3),
    (1j, 2),
    jax=lambda x, w, b: x @ w.T + b,
)
add("linear", "no-rows", lambda x, w, b: pb.linear(x, w, b), (0, 3), (4, 3), (4,))

add("vecdot", "last", lambda x, y: pb.vecdot(x, y), (2, 3), (2, 3), torch=lambda x, y: _torch().linalg.vecdot(x, y))
add("vecdot", "axis-broadcast", lambda x, y: pb.vecdot(x, y, axis=-2), (3, 1), (2, 3, 2))
add(
    "vecdot",
    "complex",
    lambda x, y: pb.vecdot(x, y),
    (1j, 2, 3),
    (1j, 3),
    torch=lambda x, y: _torch().linalg.vecdot(x, y),
    jax=lambda x, y: _jax().vecdot(x, y),
)
add("vecdot", "vdot", lambda x, y: pb.vdot(x, y), (2, 2), (4,), jax=lambda x, y: _jax().vdot(x, y))

add(
    "tensordot",
    "two",
    lambda x, y: pb.tensordot(x, y),
    (2, 2, 3),
    (2, 3, 2),
    torch=lambda x, y: _torch().tensordot(x, y, 2),
)
add(
    "tensordot",
    "outer",
    lambda x, y: pb.tensordot(x, y, axes=0),
    (2,),
    (2, 2),
    torch=lambda x, y: _torch().tensordot(x, y, 0),
)
add(
    "tensordot",
    "crossed",
    lambda x, y: pb.tensordot(x, y, axes=((2, 0), (0, 2))),
    (2, 2, 3),
    (3, 2, 2),
    torch=lambda x, y: _torch().tensordot(x, y, ([2, 0], [0, 2])),
    jax=lambda x, y: _jax().tensordot(x, y, ((2, 0), (0, 2))),
)
add("tensordot", "negative", lambda x, y: pb.tensordot(x, y, axes=((-2,), (-1,))), (3, 2), (2, 3))
add(
    "tensordot",
    "all",
    lambda x, y: pb.tensordot(x, y, axes=((1, 0), (0, 1))),
    (2, 3),
    (3, 2),
    jax=lambda x, y: _jax().tensordot(x, y, ((1, 0), (0, 1))),
)
add(
    "tensordot",
    "complex",
    lambda x, y: pb.tensordot(x, y, axes=1),
    (1j, 2, 2),
    (1j, 2, 3),
    jax=lambda x, y: _jax().tensordot(x, y, 1),
)
add("tensordot", "inner", lambda x, y: pb.inner(x, y), (2, 3), (2, 3), jax=lambda x, y: _jax().inner(x, y))
add("tensordot", "dot", lambda x, y: pb.dot(x, y), (2, 3), (2, 3, 2), jax=lambda x, y: _jax().dot(x, y))
add("multiply", "outer", lambda x, y: pb.outer(x, y), (3,), (2,), torch=lambda x, y: _torch().outer(x, y))
add("multiply", "kron", lambda x, y: pb.kron(x, y), (2, 2), (3, 1), torch=lambda x, y: _torch().kron(x, y))
add("multiply", "kron-vector", lambda x, y: pb.kron(x, y), (2,), (2, 2), jax=lambda x, y: _jax().kron(x, y))

add("diagonal", "main", lambda x: pb.diagonal(x), (2, 3), torch=lambda x: x.diagonal())
add("diagonal", "above", lambda x: pb.diagonal(x, offset=1), (2, 2, 3), torch=lambda x: x.diagonal(1, -2, -1))
add("diagonal", "below", lambda x: pb.diagonal(x, offset=-1), (3, 3), jax=lambda x: _jax().diagonal(x, -1))
add("diagonal", "outside", lambda x: pb.diagonal(x, offset=5), (2, 2))
add("diagonal", "trace", lambda x: pb.trace(x, offset=1), (2, 2, 3), jax=lambda x: _jax().trace(x, 1, -2, -1))
add("diagonal", "trace-complex", lambda x: pb.trace(x), (1j, 2, 2), torch=lambda x: x.trace())
add(
    "place_diagonal",
    "above",
    lambda x: TENSORS.place_diagonal(x, (2, 3, 4), 1),
    (2, 3),
    torch=lambda x: _torch().diag_embed(x, 1)[:, :3],
)
add(
    "place_diagonal",
    "below",
    lambda x: TENSORS.place_diagonal(x, (3, 3), -1),
    (2,),
    torch=lambda x: _torch().diag_embed(x, -1),
)

for _case, _subscripts, _shapes in (
    ("product", "ij,jk->ik", ((2, 3), (3, 2))),
    ("implicit", "ij,jk", ((2, 3), (3, 2))),
    ("batch", "bij,bkj->bik", ((2, 2, 3), (2, 2, 3))),
    ("outer", "i,j->ji", ((2,), (3,))),
    ("hadamard", "ij,ij->ji", ((2, 3), (2, 3))),
    ("three", "ij,jk,kl->il", ((2, 2), (2, 3), (3, 2))),
    ("three-shared", "i,i,i->i", ((3,), (3,), (3,))),
    ("three-contracted", "i,i,i->", ((3,), (3,), (3,))),
    ("four", "a,ab,bc,c->", ((2,), (2, 2), (2, 2), (2,))),
    ("ellipsis", "...ij,...jk->...ik", ((2, 2, 2), (2, 2))),
    ("ellipsis-middle", "i...j,j->...i", ((2, 2, 3), (3,))),
    ("lonely", "ijk,j->i", ((2, 2, 2), (2,))),
    ("diagonal-of-one", "iij,j->i", ((2, 2, 3), (3,))),
    ("scalar", ",ij->ji", ((), (2, 3))),
    ("complex", "ij,jk->k", ((1j, 2, 3), (1j, 3, 2))),
):
    add(
        "einsum", _case, lambda *xs, s=_subscripts: pb.einsum(s, *xs), *_shapes,
        torch=lambda *xs, s=_subscripts: _torch().einsum(s, *xs), jax=lambda *xs, s=_subscripts: _jax().einsum(s, *xs),
    )  # fmt: skip
add("einsum", "stretched", lambda x, y: pb.einsum("ij,jk->ik", x, y), (2, 1), (3, 2))
add(
    "permute_dims",
    "einsum-one",
    lambda x: pb.einsum("iji->ji", x),
    (2, 3, 2),
    jax=lambda x: _jax().einsum("iji->ji", x),
)
add("sum", "einsum-sum", lambda x: pb.einsum("ij->", x), (2, 3), jax=lambda x: _jax().einsum("ij->", x))
