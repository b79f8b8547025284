"""Operations that one kernel computes: what of them is lowered to it, with which strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiler.lowering.lower import lower

from . import reference
from .building import Building
from .checking import checked, kinds

RNG = np.random.default_rng(13)


def _normal(*shape: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("form", ["plain", "causal", "bool mask", "bias", "groups", "float64"])
def test_attention_and_its_gradient(form: str) -> None:
    b = Building()
    dtype = "float64" if form == "float64" else "float32"
    heads = 2 if form == "groups" else 4
    qkv = b.input(_normal(2, 6, 4 * 8, dtype=dtype))
    q = b.permute_dims(b.reshape(qkv, (2, 6, 4, 8)), (0, 2, 1, 3))
    k, v = b.input(_normal(2, heads, 6, 8, dtype=dtype)), b.input(_normal(2, heads, 6, 5, dtype=dtype))
    mask = None
    if form == "bool mask":
        mask = b.input(RNG.random((6, 6)) > 0.3)
    elif form == "bias":
        mask = b.input(_normal(4, 1, 6, dtype=dtype))
    out, lse = b.attention(q, k, v, mask, form == "causal", 0.3, 0.0, 0, 0)
    g = b.permute_dims(b.input(_normal(2, 6, 4, 5, dtype=dtype)), (0, 2, 1, 3))
    needs = (True, form != "bias", True, False)
    made = b.attention_gradient(g, q, k, v, mask, out, lse, needs, form == "causal", 0.3, 0.0, 0, 0)
    b.instructions[-1].results = tuple(r for r, need in zip(b.instructions[-1].results, needs) if need)
    made = [value for value, need in zip(made, needs) if need]
    schedule = checked(b.program([out, lse, *made]), b.given())
    assert kinds(schedule).replace("L", "") == "WW"  # loops only bring results into the order of outputs


def test_attention_with_dropout_or_a_wanted_mask_runs_on_the_host() -> None:
    b = Building()
    q = b.input(_normal(1, 2, 4, 8))
    out, _ = b.attention(q, q, q, None, False, 0.3, 0.5, 1, 0)
    assert kinds(checked(b.program([out]), b.given())) == "H"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "shapes", [((2, 5, 3), (2, 5, 3), None), ((2, 5, 3), (3,), (2, 3)), ((2, 5, 3), (5, 1), (3,)), ((5,), (1,), ())]
)
def test_scans_and_their_gradients(shapes: Any, reverse: bool) -> None:
    b = Building()
    axis = -2 if len(shapes[0]) > 1 else -1
    x, a = (b.input(_normal(*shape)) for shape in shapes[:2])
    h0 = None if shapes[2] is None else b.input(_normal(*shapes[2]))
    out = b.ssm_scan(x, a, h0, axis, reverse)
    g = b.multiply(out, 2.0)
    needs = (True, True, h0 is not None)
    made = b.ssm_scan_gradient(g, a, h0, out, shapes[1], shapes[2], axis, reverse, needs)
    made = [value for value, need in zip(made, needs) if need]
    b.instructions[-1].results = tuple(made)
    schedule = checked(b.program([out, *made]), b.given())
    assert "H" not in kinds(schedule)


@pytest.mark.parametrize("what", ["cotangent", "input", "factor", "state"])
def test_one_number_everywhere_stays_one_number(what: str) -> None:
    """The sum's cotangent, say: no array of it is written."""
    b = Building()
    shapes = {"input": (2, 300, 3), "factor": (2, 300, 3), "state": (2, 3), "cotangent": (2, 300, 3)}
    given = {name: b.input(_normal(*shape)) for name, shape in shapes.items()}
    given[what] = b.full(shapes[what], 0.5, np.dtype("float32"), None)
    x, a, h0, g = (given[name] for name in ("input", "factor", "state", "cotangent"))
    out = b.ssm_scan(x, a, h0, -2, False)
    made = b.ssm_scan_gradient(g, a, h0, out, (2, 300, 3), (2, 3), -2, False, (True, True, True))
    schedule = checked(b.program([out, *made]), b.given())
    assert "H" not in kinds(schedule) and schedule.arena_bytes <= 512


def test_running_and_extreme_values() -> None:
    b = Building()
    x, n = b.input(_normal(3, 4, 5)), b.input(np.array([[3, 1, 3], [0, 2, 1]], "int32"))
    y = b.permute_dims(x, (1, 2, 0))
    outputs = [
        b.cumulative_sum(x, (-1,), False),
        b.cumulative_sum(y, (-2,), True),
        b.cumulative_prod(x, (-3,), False, True),
    ]
    outputs += [b.cumulative_sum(n, (-1,), False), b.cumulative_sum(b.astype(x, np.dtype("float16")), (-1,), False)]
    outputs += [b.recurrence(x, b.tanh(x), (-2,), True), b.recurrence(x, b.getitem(x, (slice(0, 1),)), (-1,), False)]
    outputs += [
        b.argmax(x, (-1,), False),
        b.argmin(y, (-3,), True),
        b.argmax(y, None, False),
        b.argmax(n, (-2,), False),
    ]
    schedule = checked(b.program(outputs), b.given())
    assert "H" not in kinds(schedule)


def test_gathering_and_scattering() -> None:
    b = Building()
    x, rows = b.input(_normal(6, 5, 4)), b.input(np.array([[0, -1, 3], [2, 2, 5]]))
    other = b.input(np.array([1, 0, 4], "int32"))
    flat = b.reshape(rows, (6,))
    got = b.getitem(x, (rows, other))
    outputs = [
        b.take(x, flat, -3), b.take(x, b.input(np.array([3, 0])), -1), got,
        b.getitem(x, (slice(None), other)), b.getitem(x, (Ellipsis, b.input(np.array([0, 3])))), b.getitem(x, rows),
        b.take_transposed(b.take(x, flat, -3), flat, 6, -3), b.place(got, (6, 5, 4), (rows, other)),
        b.index_add(x, got, (rows, other)), b.take_transposed(b.take(x, other, -2), other, 5, -2),
        b.setitem(x, b.multiply(got, 2.0), (rows, other)), b.setitem(x, b.getitem(x, 0), rows),
        b.setitem(b.matrix_transpose(x), b.input(_normal(4, 3)), (slice(None), slice(None), other)),
    ]  # fmt: skip
    schedule = checked(b.program(outputs), b.given())
    assert "H" not in kinds(schedule)


def test_gathering_along_an_axis() -> None:
    b = Building()
    x, at = b.input(_normal(4, 5, 3)), b.input(RNG.integers(-5, 5, (4, 2, 3)))
    one = b.input(RNG.integers(0, 4, (1, 5, 3)))
    got = b.take_along_axis(x, at, -2)
    outputs = [
        got,
        b.take_along_axis_transposed(got, at, 5, -2),
        b.take_along_axis(b.matrix_transpose(x), b.input(RNG.integers(0, 5, (4, 3, 1))), -1),
    ]
    outputs += [b.take_along_axis(x, one, -3), b.take_along_axis(b.input(_normal(6)), b.input(np.array([1, 5])), -1)]
    schedule = checked(b.program(outputs), b.given())
    assert "H" not in kinds(schedule)


def test_what_dropout_keeps() -> None:
    b = Building()
    x, state = b.input(_normal(5, 7)), b.input(np.array([12345, 6], "uint64"))
    key, offset = b.getitem(state, 0), b.getitem(state, 1)
    # NumPy's kernel takes Python's integers: the mask is compared with what it gives for these
    b.arrays[key], b.arrays[offset] = 12345, 6
    kept = b.dropout_mask(x, 0.3, key, offset)
    program = b.program([b.where(kept, b.multiply(x, 1 / 0.7), 0.0), b.dropout_mask(x, 1.0, key, offset)])
    schedule = lower(program)
    outputs, _ = reference.run(program, schedule, b.given())
    np.testing.assert_array_equal(
        outputs[0], np.where(b.arrays[kept], b.arrays[x] * np.float32(1 / 0.7), 0).astype("f4")
    )
    assert kinds(schedule).count("W") == 1 and not outputs[1].any()
