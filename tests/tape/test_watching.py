"""`with GradientTape() as tape:` on tensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require


class Pair(NamedTuple):
    first: pb.Tensor
    second: pb.Tensor


@pytest.fixture
def w():
    return pb.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_a_tensor_gives_a_tensor_and_touches_no_grad(w):
    with pb.GradientTape() as tape:
        loss = (w * w).sum()
    assert tape.gradient(loss, w).tolist() == [2.0, 4.0, 6.0]
    assert w.grad is None


def test_gradient_can_be_asked_for_many_times(w):
    with pb.GradientTape() as tape:
        square = w * w
        loss = square.sum()
        assert tape.gradient(loss, w).tolist() == [2.0, 4.0, 6.0]  # inside the block too
    assert tape.gradient(loss, w).tolist() == tape.gradient(loss, w).tolist() == [2.0, 4.0, 6.0]
    assert tape.gradient(loss, square).tolist() == [1.0, 1.0, 1.0]
    assert tape.gradient(square, w, gradient=pb.tensor([1.0, 0.0, 2.0])).tolist() == [2.0, 0.0, 12.0]


@pytest.mark.parametrize(
    "build",
    [lambda a, b: [a, b], lambda a, b: (b, [a]), lambda a, b: {"x": a, "y": {"z": b}}, Pair, lambda a, b: []],
)
def test_sources_keep_their_structure(w, build):
    b = pb.tensor(2.0, requires_grad=True)
    with pb.GradientTape() as tape:
        loss = (w * b).sum()
    sources = build(w, b)
    found = tape.gradient(loss, sources)
    assert type(found) is type(sources)
    assert pb.tree.structure(found) == pb.tree.structure(sources)
    expected = {id(w): [2.0, 2.0, 2.0], id(b): 6.0}
    for source, gradient in zip(pb.tree.leaves(sources), pb.tree.leaves(found)):
        assert gradient.tolist() == expected[id(source)]


def test_none_where_there_is_no_path(w):
    other = pb.tensor(1.0, requires_grad=True)
    with pb.GradientTape() as tape:
        loss = w.sum()
        constant = pb.tensor(3.0) * 2
    assert tape.gradient(loss, {"w": w, "other": other})["other"] is None
    assert tape.gradient(loss, other) is None
    assert tape.gradient(constant, [w, other]) == [None, None]


def test_watched_tensors_are_tracked_until_the_block_ends(w):
    x = pb.tensor([1.0, 2.0, 3.0])
    others = {"y": pb.tensor(2.0), "w": w}
    with pb.GradientTape() as tape:
        tape.watch(x)
        tape.watch(others)
        assert x.requires_grad
        loss = (x * x * others["y"] * w).sum()
    assert not x.requires_grad and not others["y"].requires_grad
    assert w.requires_grad
    assert tape.gradient(loss, x).tolist() == [4.0, 16.0, 36.0]
    assert tape.gradient(loss, others["y"]).item() == 36.0
    assert x.numpy().tolist() == [1.0, 2.0, 3.0]
    assert not (x * 2).requires_grad


def test_the_block_ends_the_watch_after_an_error():
    x = pb.tensor([1.0])
    with pytest.raises(ZeroDivisionError), pb.GradientTape() as tape:
        tape.watch(x)
        raise ZeroDivisionError
    assert not x.requires_grad


def test_what_cannot_be_told_is_refused(w):
    x = pb.tensor([1.0])
    tape = pb.GradientTape()
    with pytest.raises(pb.GradientError, match="inside the `with` block"):
        tape.watch(x)
    with tape:
        loss = (w * x).sum()
    with pytest.raises(pb.GradientError, match=r"source 1, of shape \(1,\), is not tracked.*watch"):
        tape.gradient(loss, [w, x])
    with pytest.raises(pb.DtypeError, match="expected tensors, got float"):
        tape.gradient(loss, [w, 1.0])
    with pytest.raises(pb.DtypeError, match="expected tensors, got ndarray"):
        tape.gradient(np.ones(1), w)
    with tape, pytest.raises(pb.DtypeError, match="expected tensors"):
        tape.watch([x, 3])
    model = pb.nn.Linear(2, 2)
    for sources in (model, model.parameters()):
        with pytest.raises(pb.DtypeError, match=r"expected tensors, got .*`list\(model.parameters\(\)\)`"):
            tape.gradient(loss, sources)
    assert not x.requires_grad
    with tape, pytest.raises(pb.DtypeError, match="int64"):
        tape.watch(pb.tensor([1, 2]))


def test_ops_lists_what_was_recorded_inside(w):
    before = w * 2
    with pb.GradientTape() as tape:
        y = before * w
        with pb.no_grad():
            _ = w * w
        _ = pb.tensor([1.0]) + 1.0  # nothing to differentiate
        _ = w > 1.0  # no gradient, here and below
        _ = pb.argmax(w)
        _ = w.astype(pb.int32)
        loss = pb.exp(y).sum()
    _ = loss * 2
    assert tape.ops == [
        "multiply((3,), (3,)): (3,) float32",
        "exp((3,)): (3,) float32",
        "sum((3,)): () float32",
    ]
    assert len(tape) == 3
    tape.clear()
    assert tape.ops == []


def test_ops_lists_writes_in_place(w):
    with pb.GradientTape() as tape:
        y = w * 2
        address = y.detach().data.__array_interface__["data"]
        y += w
        y[0] = w[1]
        assert y.detach().data.__array_interface__["data"] == address  # still in place
        z = pb.zeros(3)
        z[1] = 1.0  # nothing to differentiate
    assert [line.partition("(")[0] for line in tape.ops] == ["multiply", "add", "getitem", "setitem"]
    assert tape.gradient(y.sum(), w).tolist() == [0.0, 4.0, 3.0]


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing, pb.NoCheckpointing])
def test_ops_are_listed_under_checkpointing_too(w, strategy):
    with pb.checkpointing(strategy()), pb.GradientTape() as tape:
        loss = pb.exp(w * w).sum()
    assert [line.partition("(")[0] for line in tape.ops] == ["multiply", "exp", "sum"]
    x = w.detach().numpy()
    np.testing.assert_allclose(tape.gradient(loss, w).numpy(), 2 * x * np.exp(x * x), rtol=1e-6)


def test_blocks_nest_and_both_list(w):
    with pb.GradientTape() as outer:
        y = w * w
        with pb.GradientTape() as inner:
            z = pb.exp(y)
        slope = inner.gradient(z.sum(), w, create_graph=True)
    assert inner.ops == ["exp((3,)): (3,) float32"]
    assert outer.ops[:2] == ["multiply((3,), (3,)): (3,) float32", "exp((3,)): (3,) float32"]
    second = outer.gradient(slope.sum(), w)
    x = w.detach().numpy()
    np.testing.assert_allclose(second.numpy(), (2 + 4 * x * x) * np.exp(x * x), rtol=1e-6)


def test_a_block_records_inside_no_grad(w):
    with pb.no_grad():
        with pb.GradientTape() as tape:
            loss = (w * w).sum()
        assert not (w * w).requires_grad
    assert tape.gradient(loss, w).tolist() == [2.0, 4.0, 6.0]


def test_nan_raises_as_in_backward(w):
    with pb.GradientTape() as tape, np.errstate(divide="ignore"):
        loss = pb.log(w - 1.0).sum()
    with pytest.raises(pb.NumericalInstabilityError, match="`log` made inf"):
        tape.gradient(loss, w)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_backends(device):
    require(device)
    x = pb.tensor([1.0, 2.0], device=device)
    with pb.GradientTape() as tape:
        tape.watch(x)
        loss = (x * x).sum()
    assert tape.gradient(loss, x).tolist() == [2.0, 4.0]
    assert tape.ops[0] == "multiply((2,), (2,)): (2,) float32"
