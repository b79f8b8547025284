"""Random programs of everything that lowering knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .building import Building

_UNARY = ["negative", "square", "exp", "tanh", "abs", "sqrt", "sigmoid", "sign", "floor", "sin", "log1p", "reciprocal"]
_BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "atan2", "hypot"]
_COMPARE = ["less", "greater_equal", "equal", "not_equal"]
_REDUCE = ["sum", "max", "min", "sum", "sum", "prod"]


def random_program(seed: int, depth: int, dtypes: tuple[str, ...] = ("float32",)) -> tuple[Any, list[Any]]:
    """A program of about `depth` instructions, and inputs for it."""
    rng = np.random.default_rng(seed)
    b = Building()
    sizes = [int(n) for n in rng.choice([1, 2, 3, 4, 6], 3)]
    shapes = [
        tuple(sizes),
        (sizes[2],),
        (sizes[1], sizes[2]),
        (),
        (sizes[0], 1, sizes[2]),
        (sizes[0] * sizes[1], sizes[2]),
    ]
    values = [
        b.input((rng.normal(size=shapes[int(rng.integers(len(shapes)))]) * 2).astype(rng.choice(dtypes)))
        for _ in range(int(rng.integers(2, 5)))
    ]
    inputs = list(values)
    for _ in range(depth):
        made = _instruction(b, rng, values)
        values += made
    count = min(len(values), int(rng.integers(1, 4)))
    outputs = [values[int(i)] for i in rng.choice(len(values), count)]
    updates = []
    for target in inputs:
        fitting = [v for v in values if v.shape == target.shape and v.dtype == target.dtype]
        if rng.random() < 0.5:
            updates.append((target, fitting[int(rng.integers(len(fitting)))]))
    return b.program(outputs, updates), b.given()


def _instruction(b: Building, rng: Any, values: list[Any]) -> list[Any]:
    recent = values[-8:] if rng.random() < 0.8 else values
    x = recent[int(rng.integers(len(recent)))]
    choice = rng.random()
    if choice < 0.25:
        op = str(rng.choice(_UNARY))
        return [getattr(b, op)(x)] if x.dtype.kind == "f" or (op in ("square", "abs") and x.dtype.kind != "b") else []
    if choice < 0.5:
        return _binary(b, rng, values, x)
    if choice < 0.66:
        return _reduction(b, rng, x)
    if choice < 0.72:
        return _product(b, rng, values, x)
    return _movement(b, rng, values, x)


def _partner(rng: Any, values: list[Any], x: Any) -> Any:
    for i in rng.permutation(len(values))[:6]:
        try:
            np.broadcast_shapes(values[i].shape, x.shape)
        except ValueError:
            continue
        return values[int(i)]
    return x


def _binary(b: Building, rng: Any, values: list[Any], x: Any) -> list[Any]:
    y = _partner(rng, values, x) if rng.random() < 0.8 else float(rng.integers(-2, 3))
    if x.dtype.kind == "b":
        return [b.logical_and(x, y)] if type(y) is not float else []
    if rng.random() < 0.2:
        truth = getattr(b, str(rng.choice(_COMPARE)))(x, y)
        return [truth, b.where(truth, x, y)] if type(y) is float or y.dtype == x.dtype else [truth]
    if type(y) is not float and y.dtype.kind == "b":
        return [b.where(y, x, 0.5)]
    return [getattr(b, str(rng.choice(_BINARY)))(x, y)]


def _reduction(b: Building, rng: Any, x: Any) -> list[Any]:
    if not x.shape:
        return []
    axes: Any = tuple(int(a) - x.ndim for a in range(x.ndim) if rng.random() < 0.5)
    axes = axes or ((-1,) if rng.random() < 0.7 else None)
    op = str(rng.choice(_REDUCE)) if x.dtype.kind != "b" else str(rng.choice(["any", "all", "sum", "count_nonzero"]))
    keepdims = bool(rng.random() < 0.5)
    made = getattr(b, op)(x, axes, keepdims)
    if rng.random() < 0.5 and axes is not None and x.dtype.kind == "f":
        shape = tuple(1 if i - x.ndim in axes else n for i, n in enumerate(x.shape))
        back = made if keepdims else b.reshape(made, shape)
        return [made, b.subtract(x, back)]
    return [made]


def _product(b: Building, rng: Any, values: list[Any], x: Any) -> list[Any]:
    if x.ndim < 2 or x.dtype.kind != "f":
        return []
    for y in (values[int(i)] for i in rng.permutation(len(values))):
        if y.dtype == x.dtype and y.ndim in (1, 2) and y.shape[0] == x.shape[-1]:
            return [b.matmul(x, y)]
    return [b.multiply(b.matmul(x, b.matrix_transpose(x)), 0.1)]


def _movement(b: Building, rng: Any, values: list[Any], x: Any) -> list[Any]:
    n = x.ndim
    choices = ["reshape", "expand", "broadcast", "flat"]
    if n:
        choices += ["flip", "slice", "concat", "roll", "repeat", "unstack", "stack", "shift"]
    if n > 1:
        choices += ["transpose", "permute", "split", "tril"]
    if x.dtype.kind == "f":
        choices += ["pad", "setitem", "place", "index_add"]
    op = str(rng.choice(choices))
    axis = int(rng.integers(n)) if n else 0
    if op == "reshape":
        return [b.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]) if n > 1 else (1, *x.shape))]
    if op == "flat":
        return [b.reshape(x, (x.size,))]
    if op == "split":
        k = x.shape[-1]
        return [b.reshape(x, (*x.shape[:-1], 2, k // 2) if k % 2 == 0 else (*x.shape, 1))]
    if op == "expand":
        return [b.expand_dims(x, (int(rng.integers(n + 1)),))] if n < 4 else []
    if op == "broadcast":
        return [b.broadcast_to(x, (2, *x.shape))] if n < 4 and x.size < 500 else []
    if op == "flip":
        return [b.flip(x, (axis - n,))]
    if op == "slice":
        start = int(rng.integers(0, x.shape[axis] + 1)) if x.shape[axis] else 0
        step = int(rng.choice([1, 1, 2, -1]))
        index = (slice(None),) * axis + (slice(start, None, step),)
        return [b.getitem(x, index)] if x.size and b.arrays[x][index].size else []
    if op == "transpose":
        return [b.matrix_transpose(x)]
    if op == "permute":
        return [b.permute_dims(x, tuple(int(i) for i in rng.permutation(n)))]
    if op == "concat":
        return [b.concat((x, x), axis - n)] if x.size < 500 else []
    if op == "stack":
        y = _partner(rng, values, x)
        return (
            [b.stack((x, y if y.shape == x.shape and y.dtype == x.dtype else x), axis)]
            if n < 4 and x.size < 500
            else []
        )
    if op == "roll":
        return [b.roll(x, (int(rng.integers(-3, 4)),), (axis - n,))]
    if op == "repeat":
        return [b.repeat(x, 2, axis - n)] if x.size < 500 else []
    if op == "unstack":
        return list(b.unstack(x, axis))[:3]
    if op == "tril":
        return [b.tril(x, int(rng.integers(-1, 2)))] if rng.random() < 0.5 else [b.triu(x, int(rng.integers(-1, 2)))]
    if op == "shift":
        return [b.shift(x, (axis - n,), int(rng.integers(-2, 3)))]
    if op == "pad":
        return (
            [b.pad(x, tuple((int(rng.integers(2)), int(rng.integers(2))) for _ in range(n)), 1.5)]
            if x.size < 500
            else []
        )
    if not n:
        return []
    index = (slice(None),) * axis + (slice(1, None) if x.shape[axis] > 1 else slice(None),)
    part = b.getitem(x, index)
    if op == "setitem":
        return [b.setitem(x, b.multiply(part, 2.0), index)]
    if op == "index_add":
        return [b.index_add(x, b.multiply(part, 2.0), index)]
    return [b.place(part, x.shape, index)]
