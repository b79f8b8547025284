"""The first document's `Tensor`, row by row of what must hold."""

from __future__ import annotations

import sys
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import engine

GIBIBYTE = 2**30


def address(tensor: pb.Tensor) -> int:
    return tensor.data.__array_interface__["data"][0]


@contextmanager
def peak_bytes(found: list[int]):
    """Appends the most bytes that were allocated at a time inside the block."""
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield
        found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


def calls_made(function) -> int:
    """How many functions are called, in Python and in C."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


# -- data behind Rc, O(1) clone ------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_data_behind_rc_o1_clone(requires_grad):
    small = pb.asarray(np.zeros(4, np.float32)).set_requires_grad(requires_grad)
    large = pb.asarray(np.zeros(GIBIBYTE // 4, np.float32)).set_requires_grad(requires_grad)
    assert large.nbytes == GIBIBYTE
    small.clone()
    found: list[int] = []
    with peak_bytes(found):
        clone = large.clone()
    assert found[0] < 2048
    assert address(clone) == address(large)
    assert calls_made(large.clone) == calls_made(small.clone) < 20  # the same work whatever the size


def test_clone_shares_data_and_gradient_cell_until_one_is_written():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    clone = w.clone()
    assert clone.grad_cell is w.grad_cell
    (clone * 3).sum().backward()
    assert w.grad.tolist() == clone.grad.tolist() == [3.0, 3.0]
    with pb.no_grad():
        clone += 1.0
    assert w.tolist() == [1.0, 2.0]
    assert clone.tolist() == [2.0, 3.0]
    assert clone.grad_cell is not w.grad_cell
    w.zero_grad()
    assert clone.grad.tolist() == [3.0, 3.0]


class Adapted:
    """Frozen square weights with small trained ones beside them, as in LoRA."""

    def __init__(self, layers: int, width: int, rank: int) -> None:
        rng = np.random.default_rng(0)
        self.frozen = [pb.asarray(rng.normal(size=(width, width)).astype(np.float32) * 0.05) for _ in range(layers)]
        self.trained = [
            pb.tensor(rng.normal(size=shape).astype(np.float32) * 0.05, requires_grad=True)
            for _ in range(layers)
            for shape in ((rank, width), (width, rank))
        ]

    def __call__(self, x: pb.Tensor) -> pb.Tensor:
        for i, weight in enumerate(self.frozen):
            down, up = self.trained[2 * i : 2 * i + 2]
            x = pb.silu(pb.linear(x, weight) + pb.linear(pb.linear(x, down), up))
        return x


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_frozen_weights_are_never_copied_in_a_training_step(optimizer):
    model = Adapted(layers=3, width=512, rank=2)
    optimizer = getattr(pb.optim, optimizer)(model.trained, lr=1e-2)
    x = pb.asarray(np.random.default_rng(1).normal(size=(2, 512)).astype(np.float32))

    def step() -> pb.Tensor:
        loss = pb.mean(model(x) ** 2)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = [step().item()]
    weight_bytes = model.frozen[0].nbytes
    before = [address(weight) for weight in model.frozen]
    values = [weight.numpy().tobytes() for weight in model.frozen]
    found: list[int] = []
    with peak_bytes(found):
        losses.append(step().item())
    assert found[0] < weight_bytes / 4  # all that a step allocates is less than a part of one of three weights
    assert [address(weight) for weight in model.frozen] == before
    assert [weight.numpy().tobytes() for weight in model.frozen] == values
    assert losses[1] < losses[0]
    loss = pb.mean(model(x) ** 2)
    kept = [a for node in engine.in_order([loss._node]) for a in node.saved if isinstance(a, np.ndarray)]
    large = [a for a in kept if a.nbytes >= weight_bytes]
    assert len(large) == len(model.frozen) - 1  # the first layer's weight is not needed: its input has no gradient
    assert all(any(np.shares_memory(a, weight.data) for weight in model.frozen) for a in large)


# -- data_mut copy-on-write ----------------------------------------------------------------------

WRITES = {
    "data_mut": lambda t: t.data_mut().__setitem__(0, 9.0),
    "t[i] = v": lambda t: t.__setitem__(0, 9.0),
    "t += v": lambda t: t.__iadd__(pb.tensor([8.0, 0.0])),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_data_mut_copy_on_write_sole_holder(write):
    t = pb.tensor([1.0, 0.0])
    before = address(t)
    write(t)
    assert address(t) == before
    assert t.tolist() == [9.0, 0.0]


@pytest.mark.parametrize("write", [lambda t: t.data_mut(), lambda t: t.__setitem__(0, 9.0), lambda t: t.__iadd__(1.0)])
def test_data_mut_allocates_nothing_for_a_sole_holder_and_one_copy_otherwise(write):
    t = pb.tensor(np.zeros(250_000, np.float32))
    write(t)
    found: list[int] = []
    with peak_bytes(found):
        write(t)
    clone = t.clone()
    with peak_bytes(found):
        write(t)
        write(t)
        write(t)
    assert found[0] < 10_000
    assert t.nbytes <= found[1] < t.nbytes + 10_000  # once, not three times
    assert address(clone) != address(t)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_data_mut_copy_on_write_shared_with_a_clone_and_with_the_graph(write):
    t = pb.tensor([1.0, 0.0])
    w = pb.tensor([1.0, 1.0], requires_grad=True)
    loss = (w * t).sum()
    write(t)  # the graph still needs the old values
    assert t.tolist() == [9.0, 0.0]
    loss.backward()
    assert w.grad.tolist() == [1.0, 0.0]
    clone = t.clone()
    t[1] = 5.0
    assert clone.tolist() == [9.0, 0.0]
    assert t.tolist() == [9.0, 5.0]


# -- accumulate_grad -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gradient", "error"),
    [
        (np.ones((1, 2), np.float32), pb.ShapeError),
        (np.ones(1, np.float32), pb.ShapeError),  # would broadcast
        (np.float32(1.0), pb.ShapeError),
        (np.ones(3, np.float32), pb.ShapeError),
        (np.ones(2, np.float64), pb.DtypeError),
        (np.ones(2, np.int32), pb.DtypeError),
    ],
)
@pytest.mark.parametrize("has_gradient", [True, False])
def test_accumulate_grad(gradient, error, has_gradient):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    if has_gradient:
        w.accumulate_grad(pb.tensor([1.0, 2.0]))
        w.accumulate_grad(np.array([10.0, 20.0], np.float32))
    before = None if w.grad is None else w.grad.numpy().tobytes()
    with pytest.raises(error, match=r"accumulate_grad: gradient (has shape|is)"):
        w.accumulate_grad(gradient)
    assert (None if w.grad is None else w.grad.numpy().tobytes()) == before
    if has_gradient:
        assert w.grad.tolist() == [11.0, 22.0]


# -- scale_grad ----------------------------------------------------------------------------------


def test_scale_grad_contract_c_scale_grad_001():
    w = pb.tensor(np.zeros(250_000, np.float32), requires_grad=True)
    w.accumulate_grad(pb.ones(250_000))
    w.scale_grad(1.0)
    before = address(w.grad)
    found: list[int] = []
    with peak_bytes(found):
        w.scale_grad(0.5)
        w.scale_grad(3)
    assert found[0] < 2048  # a few Python objects; the gradient has a million bytes
    assert address(w.grad) == before
    np.testing.assert_array_equal(w.grad.numpy(), np.full(250_000, 1.5, np.float32))


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), -float("inf")])
def test_scale_grad_refuses_a_factor_that_is_not_finite(factor):
    w = pb.tensor([1.0], requires_grad=True)
    w.accumulate_grad(pb.tensor([2.0]))
    with pytest.raises(ValueError, match="factor must be finite"):
        w.scale_grad(factor)
    assert w.grad.tolist() == [2.0]


# -- requires_grad, grad_cell --------------------------------------------------------------------


def test_requires_grad_and_set_requires_grad_on_loaded_tensors(tmp_path):
    pb.save({"w": pb.tensor([[1.0, 2.0], [3.0, 4.0]])}, tmp_path / "weights.safetensors")
    w = pb.load(tmp_path / "weights.safetensors")["w"]
    assert not w.requires_grad
    w.set_requires_grad(True)
    assert w.requires_grad
    (w @ pb.tensor([1.0, 10.0])).sum().backward()
    assert w.grad.tolist() == [[1.0, 10.0], [1.0, 10.0]]
    with pb.no_grad():
        w -= 0.5 * w.grad
    assert w.tolist() == [[0.5, -3.0], [2.5, -1.0]]
    w.set_requires_grad(False)
    assert not (w * 2).requires_grad
    assert pb.load(tmp_path / "weights.safetensors")["w"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_grad_cell_is_written_without_owning_the_tensor():
    def operation_that_knows_only(cell: pb.GradCell) -> None:
        gradient = pb.tensor([1.0, 2.0])
        cell.value = gradient if cell.value is None else cell.value + gradient

    w = pb.tensor([0.0, 0.0], requires_grad=True)
    cell = w.grad_cell
    assert cell is w.clone().grad_cell
    operation_that_knows_only(cell)
    operation_that_knows_only(cell)
    assert w.grad.tolist() == [2.0, 4.0]
    (w * 10).sum().backward()
    assert cell.value.tolist() == [12.0, 14.0]


# -- operations of one's own ---------------------------------------------------------------------


def cube_by_object(x):
    y = (x * x * x).detach()
    y.set_backward_op(pb.BackwardOp([x], lambda g: (3 * x * x * g,)))
    return y


cube_by_function = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)


@pytest.mark.parametrize("cube", [cube_by_object, cube_by_function])
def test_set_backward_op_backward_op_custom_op_first_and_second_order(cube):
    x = pb.tensor([2.0, -3.0], requires_grad=True)
    y = cube(x)
    assert isinstance(y.backward_op, pb.BackwardOp)
    assert x.backward_op is None
    (first,) = y.backward_op.backward(pb.tensor([1.0, 1.0]))
    assert first.detach().tolist() == [12.0, 27.0]
    slope = pb.backward(y.sum(), create_graph=True)[x]
    assert slope.detach().tolist() == [12.0, 27.0]
    assert pb.backward(slope.sum())[x].tolist() == [12.0, -18.0]


# -- traps ---------------------------------------------------------------------------------------


def test_trap_reused_intermediate_is_counted_once():
    w = pb.tensor(3.0, requires_grad=True)
    y = 2 * w
    (y + y).backward()
    assert w.grad.item() == 4.0  # not 8


@pytest.mark.parametrize("depth", [8, 64])
def test_trap_residual_chains_take_linear_time(depth):
    """2**depth paths; each rule runs once."""
    calls = []

    def rule(g, x):
        calls.append(1)
        return g * 0.5

    half = pb.custom_op(lambda x: x * 0.5, name="half", x=rule)
    x = pb.tensor(np.array(1.0), requires_grad=True)
    y = x
    for _ in range(depth):
        y = y + half(y)
    assert len(engine.in_order([y._node])) == 2 * depth
    y.backward()
    assert len(calls) == depth
    assert x.grad.item() == pytest.approx(1.5**depth)


LABELS = np.array([2, 0, 1])
TARGET = np.random.default_rng(5).normal(size=(3, 4))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: pb.cross_entropy(x, LABELS),
        lambda x: pb.mse_loss(x, TARGET),
        lambda x: pb.l1_loss(x, TARGET),
        lambda x: pb.huber_loss(x, TARGET),
        lambda x: pb.binary_cross_entropy_with_logits(x, (TARGET > 0).astype(float)),
    ],
    ids=["cross_entropy", "mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy_with_logits"],
)
def test_trap_losses_keep_the_graph(loss):
    logits = np.random.default_rng(4).normal(size=(3, 4))
    w = pb.tensor(logits, requires_grad=True)
    loss(w * 1.0).backward()
    assert np.count_nonzero(w.grad.numpy()) == w.size
    pb.gradcheck(loss, (logits,))


def test_trap_lora_layers_keep_the_graph():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = {"x": (5, 4), "weight": (3, 4), "down": (2, 4), "up": (3, 2)}
    arrays = {name: rng.normal(size=shape) for name, shape in arrays.items()}

    def layer(linear, x, weight, down, up):
        return linear(x, weight) + 2.0 * linear(linear(x, down), up)

    ours = {name: pb.tensor(a, requires_grad=name != "weight") for name, a in arrays.items()}
    theirs = {name: torch.tensor(a, requires_grad=name != "weight") for name, a in arrays.items()}
    (layer(pb.linear, **ours) ** 2).sum().backward()
    (layer(torch.nn.functional.linear, **theirs) ** 2).sum().backward()
    for name in ("x", "down", "up"):
        np.testing.assert_allclose(ours[name].grad.numpy(), theirs[name].grad.numpy(), rtol=1e-12)
    assert ours["weight"].grad is None


def trained(optimizer, path, steps=3, **options):
    w = pb.tensor(np.arange(1.0, 13.0).reshape(3, 4) / 7, requires_grad=True)
    made = getattr(pb.optim, optimizer)([w], lr=0.1, **options)
    for step in range(1, steps + 1):
        loss = (w * w * float(step)).sum()
        if path == "cells":
            loss.backward()
            made.step()
            made.zero_grad()
        else:
            grads = pb.backward(loss)
            made.step(grads if path == "Gradients" else [grads[w]])
    return w.detach().numpy().copy()


@pytest.mark.parametrize("path", ["cells", "Gradients", "list"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "LAMB", "Adafactor", "Muon"])
def test_trap_no_optimizer_path_becomes_sgd(name, path):
    found = trained(name, path)
    assert not np.allclose(found, trained("SGD", path), rtol=1e-3)
    np.testing.assert_array_equal(found, trained(name, "cells"))
    torch = pytest.importorskip("torch")
    if name in ("Adam", "AdamW", "RMSprop", "Adagrad"):
        w = torch.arange(1.0, 13.0, dtype=torch.float64).reshape(3, 4).div(7).requires_grad_()
        theirs = getattr(torch.optim, name)([w], lr=0.1)
        for step in range(1, 4):
            theirs.zero_grad()
            (w * w * step).sum().backward()
            theirs.step()
        np.testing.assert_allclose(found, w.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("path", ["cells", "Gradients"])
def test_trap_clipping_is_not_thrown_away(path):
    w, v = pb.tensor([3.0], requires_grad=True), pb.tensor([4.0], requires_grad=True)
    loss = (w * w + v * v).sum() / 2
    optimizer = pb.optim.SGD([w, v], lr=1.0)
    if path == "cells":
        loss.backward()
        norm = pb.optim.clip_global_norm([w, v], 1.0)
        optimizer.step()
    else:
        grads = pb.backward(loss)
        norm = grads.clip_global_norm(1.0)
        optimizer.step(grads)
    assert norm.item() == 5.0
    np.testing.assert_allclose([w.item(), v.item()], [3.0 - 0.6, 4.0 - 0.8], rtol=1e-6)
