"""Attention and rotary embedding: values against PyTorch, blocks, hidden rows, memory, dropout, errors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy import attention as kernel

from ..backends.installed import optional, require

torch = optional("torch")


def numbers(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.1}, {"enable_gqa": True}], ids=str)
def test_attention_equals_torch(options: dict[str, Any], dtype: str) -> None:
    heads = 2 if options.get("enable_gqa") else 6
    arrays = (
        numbers(2, 6, 5, 4, dtype=dtype),
        numbers(2, heads, 7, 4, dtype=dtype),
        numbers(2, heads, 7, 3, dtype=dtype),
    )
    expected = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, arrays), **options)
    result = pb.scaled_dot_product_attention(*arrays, **options)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected.numpy(), atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("limit", [1, 300, 2000])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "dropout"])
def test_result_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch, limit: int, case: str) -> None:
    q, k, v = numbers(2, 6, 5, 4), numbers(2, 3, 7, 4), numbers(2, 3, 7, 3)
    mask = numbers(2, 1, 5, 7) if case == "mask" else None
    static = (case == "causal", 0.5, 0.3 if case == "dropout" else 0.0, 11, 8)
    out, lse = kernel.attention(q, k, v, mask, *static)
    g = numbers(*out.shape)
    needs = (True, True, True, mask is not None)
    gradients = kernel.attention_gradient(g, q, k, v, mask, out, lse, needs, *static)
    monkeypatch.setattr(kernel, "_BLOCK_BYTES", limit)
    monkeypatch.setattr(kernel, "_CAUSAL_ROWS", 2)
    in_blocks, lse_in_blocks = kernel.attention(q, k, v, mask, *static)
    np.testing.assert_allclose(in_blocks, out, atol=1e-12)
    np.testing.assert_allclose(lse_in_blocks, lse, atol=1e-12)
    for block, whole in zip(kernel.attention_gradient(g, q, k, v, mask, out, lse, needs, *static), gradients):
        if whole is not None:
            np.testing.assert_allclose(block, whole, atol=1e-12)


@pytest.mark.parametrize("kind", ["boolean", "additive"])
def test_a_query_that_sees_nothing_gives_zeros_and_no_gradient(kind: str) -> None:
    shown = np.array([[True, True, False], [False, False, False]])
    mask: Any = shown if kind == "boolean" else pb.tensor(np.where(shown, 0.5, -np.inf), requires_grad=True)
    q, k, v = (pb.tensor(numbers(*shape), requires_grad=True) for shape in ((2, 4), (3, 4), (3, 2)))
    out = pb.scaled_dot_product_attention(q, k, v, mask)
    assert not out.detach().numpy()[1].any()
    wrt = [q, k, v] + ([mask] if kind == "additive" else [])
    for create_graph in (False, True):
        grads = pb.backward(pb.sum(out * out), wrt=wrt, retain_graph=True, create_graph=create_graph)
        assert all(np.isfinite(grads[x].detach().numpy()).all() for x in wrt)
        assert not grads[q].detach().numpy()[1].any()
    if kind == "additive":
        assert not grads[mask].detach().numpy()[~shown].any()


def test_only_wanted_gradients_are_given() -> None:
    q, k, v = numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 4)
    static = (False, 0.5, 0.0, 0, 0)
    out, lse = kernel.attention(q, k, v, None, *static)
    found = kernel.attention_gradient(out, q, k, v, None, out, lse, (False, True, False, False), *static)
    assert [x is None for x in found] == [True, False, True, True]


def test_scores_are_never_in_memory_all_at_once() -> None:
    length = 2048
    q, k, v = (pb.tensor(numbers(1, 4, length, 16, dtype="float32"), requires_grad=True) for _ in range(3))
    tracemalloc.start()
    grads = pb.backward(pb.sum(pb.scaled_dot_product_attention(q, k, v, is_causal=True)), wrt=[q, k, v])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(grads) == 3
    assert peak < 4 * length * length * 4 / 2  # the scores of the four heads would be 64 MiB


def test_dropout_keeps_the_mean_and_repeats_with_the_seed() -> None:
    x, v = np.zeros((1, 300, 8)), np.ones((1, 300, 1))
    with pb.random.using(1):
        first = pb.scaled_dot_product_attention(x, x, v, dropout_p=0.25).numpy()
        second = pb.scaled_dot_product_attention(x, x, v, dropout_p=0.25).numpy()
    with pb.random.using(1):
        again = pb.scaled_dot_product_attention(x, x, v, dropout_p=0.25).numpy()
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    assert first.mean() == pytest.approx(1.0, abs=0.01)
    assert first.std() == pytest.approx(np.sqrt(0.25 / 0.75 / 300), rel=0.2)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding_turns_by_the_position(interleaved: bool) -> None:
    width, length = 6, 5
    cos, sin = pb.rotary_tables(length, width, base=100.0, interleaved=interleaved, dtype=pb.float64)
    x = numbers(2, length, width)
    pairs = x.reshape(2, length, 3, 2) if interleaved else np.stack([x[..., :3], x[..., 3:]], -1)
    angles = np.arange(length)[:, None] * 100.0 ** (-2 * np.arange(3) / width)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
    parts = np.stack([turned.real, turned.imag], -1)
    expected = parts.reshape(x.shape) if interleaved else np.concatenate([parts[..., 0], parts[..., 1]], -1)
    np.testing.assert_allclose(pb.rotary_embedding(x, cos, sin, interleaved=interleaved).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("place", [1, 2], ids=["cos", "sin"])
def test_examples_may_have_angles_of_their_own_for_what_they_share(place: int, device: str) -> None:
    require(device, "float32")
    shapes = [(1, 5, 2, 4), (5, 1, 4), (5, 1, 4)]
    x, *tables = (pb.asarray(numbers(*shape, dtype="float32"), device=device) for shape in shapes)
    many = pb.asarray(numbers(3, 5, 1, 4, dtype="float32"), device=device)

    def loss(x: Any, table: Any) -> Any:
        return (
            pb.rotary_embedding(x, *[table if place == i + 1 else other for i, other in enumerate(tables)]) ** 2
        ).sum()

    found = pb.grad(lambda x: pb.vmap(lambda table: loss(x, table))(many).sum())(x)
    expected = sum((pb.grad(loss)(x, many[i]) for i in range(1, 3)), pb.grad(loss)(x, many[0]))
    np.testing.assert_allclose(found.to_device("numpy"), expected.to_device("numpy"), rtol=1e-4, atol=1e-5)


def test_rotary_tables_take_positions() -> None:
    cos, _ = pb.rotary_tables(np.array([[3, 1], [0, 7]]), 4)
    whole, _ = pb.rotary_tables(8, 4)
    assert cos.dtype == pb.float32
    np.testing.assert_array_equal(cos.numpy(), whole.numpy()[[[3, 1], [0, 7]]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_kept(dtype: str) -> None:
    require("numpy", dtype)
    x = pb.asarray(numbers(1, 4, 6), dtype=dtype)
    assert pb.scaled_dot_product_attention(x, x, x).dtype == getattr(pb, dtype)
    assert pb.rotary_embedding(x, *pb.rotary_tables(4, 6)).dtype == getattr(pb, dtype)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, x: f(x(2, 3), x(4, 2), x(4, 2)), pb.ShapeError, "same width"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(5, 2)), pb.ShapeError, "same length"),
        (lambda f, x: f(x(3), x(4, 3), x(4, 2)), pb.ShapeError, "at least two axes"),
        (lambda f, x: f(x(4, 2, 3), x(2, 4, 3), x(2, 4, 2)), pb.ShapeError, "enable_gqa=True"),
        (lambda f, x: f(x(3, 2, 3), x(2, 4, 3), x(2, 4, 2), enable_gqa=True), pb.ShapeError, "multiple"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(4, 2), x(3, 4)), pb.ShapeError, "does not broadcast"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(4, 2), x(7, 2, 4)), pb.ShapeError, "does not broadcast"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(4, 2), x(2, 4), is_causal=True), pb.ShapeError, "not both"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(4, 2), dropout_p=1.5), pb.ShapeError, "dropout_p"),
        (lambda f, x: f(x(2, 3), x(4, 3), x(4, 2), np.ones((2, 4), int)), pb.DtypeError, "int64"),
        (lambda f, x: f(np.ones((2, 3), int), x(4, 3), x(4, 2)), pb.DtypeError, "int64"),
        (lambda f, x: pb.rotary_embedding(x(2, 3), x(2, 3), x(2, 3)), pb.ShapeError, "must be even"),
        (lambda f, x: pb.rotary_embedding(x(2, 4), x(2, 2), x(2, 2)), pb.ShapeError, "width of x"),
        (lambda f, x: pb.rotary_embedding(x(2, 4), x(3, 2, 4), x(2, 4)), pb.ShapeError, "broadcast to it"),
        (lambda f, x: pb.rotary_tables(3, 5), pb.ShapeError, "width must be even"),
    ],
)
def test_errors_say_what_was_given(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(pb.scaled_dot_product_attention, numbers)
