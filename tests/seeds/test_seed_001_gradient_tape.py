"""The second document's `GradientTape`, row by row of what must hold."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.tape import walking


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def numeric_gradient(f, x: np.ndarray) -> np.ndarray:
    """Central differences of the fourth order: exact to about 1e-11 here."""
    h = 1e-3
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[index] = h
        near, far = f(x + direction) - f(x - direction), f(x + 2 * direction) - f(x - 2 * direction)
        gradient[index] = (8 * near - far) / (12 * h)
    return gradient


def check_against_differences(f, arrays, gradients):
    for i, (array, gradient) in enumerate(zip(arrays, gradients)):
        expected = numeric_gradient(lambda x, i=i: f(*[x if j == i else a for j, a in enumerate(arrays)]), array)
        np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-8)


def buffers_of(*shapes):
    return [np.zeros(shape) for shape in shapes]


# -- new, record_* -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_record_add_mul_matmul_silu_layer_norm_ssm_scan(dtype):
    """A whole forward pass with every operation of the document; each call returns the next slot."""
    a, b = normal(2, 3).astype(dtype), normal(3, 4).astype(dtype)
    scale, decay, drive = (normal(4, seed=s).astype(dtype) for s in (1, 2, 3))
    tape = pb.GradientTape()
    assert len(tape) == tape.num_tensors == 0
    a_slot, b_slot, other_slot = tape.leaf(), tape.leaf(), tape.leaf()
    assert (a_slot, b_slot, other_slot) == (0, 1, 2)
    c = a @ b
    assert tape.record_matmul(a_slot, a, b_slot, b) == 3
    s = c / (1 + np.exp(-c))
    assert tape.record_silu(3, c) == 4
    p = s * c
    assert tape.record_mul(4, s, 3, c) == 5
    assert tape.record_layer_norm(5, p.mean(1), p.var(1), scale, input_data=p) == 6
    assert tape.record_ssm_scan(6, decay, drive) == 7
    assert tape.record_add(7, other_slot) == 8
    assert tape.num_tensors == 9
    assert [line.split(" = ")[1].split("(")[0] for line in tape.ops] == [
        "matmul", "silu", "mul", "layer_norm", "ssm_scan", "add",
    ]  # fmt: skip
    buffers = [np.zeros(n, dtype) for n in (6, 12, 8, 8, 8, 8, 8, 8, 8)]
    cotangent = normal(2, 4, seed=4).astype(dtype)
    tape.backward(cotangent, buffers)

    ta, tb, other = (pb.tensor(x, requires_grad=True) for x in (a, b, np.zeros((2, 4), dtype)))
    tc = ta @ tb
    normed = pb.layer_norm(pb.silu(tc) * tc, 4, pb.asarray(scale))
    out = pb.ssm_scan(normed, pb.asarray(decay), pb.asarray(drive)) + other
    grads = pb.backward(out, cotangent)
    tolerance = 1e-12 if dtype == np.float64 else 2e-4
    for slot, tensor in ((0, ta), (1, tb), (2, other)):
        np.testing.assert_allclose(buffers[slot].reshape(tensor.shape), grads[tensor].numpy(), tolerance, tolerance)


def test_trap_leaf_makes_input_slots():
    tape = pb.GradientTape()
    slots = [tape.leaf() for _ in range(3)]
    assert slots == [0, 1, 2]
    assert tape.record_add(slots[0], slots[2]) == 3
    buffers = buffers_of(2, 2, 2, 2)
    tape.backward(np.array([1.0, 2.0]), buffers)
    assert [b.tolist() for b in buffers] == [[1, 2], [0, 0], [1, 2], [1, 2]]


def test_shapes_are_checked_when_recorded():
    tape = pb.GradientTape()
    a, b = tape.leaf((2, 3)), tape.leaf((4, 5))
    with pytest.raises(pb.ShapeError, match=r"record_add: shapes \(2, 3\) and \(4, 5\)"):
        tape.record_add(a, b)
    with pytest.raises(pb.ShapeError, match=r"record_mul: a_data has shape \(7,\), but slot 0 has shape \(2, 3\)"):
        tape.record_mul(a, np.ones(7), b, np.ones((4, 5)))
    with pytest.raises(pb.ShapeError, match=r"record_matmul: shapes \(2, 3\) and \(4, 5\)"):
        tape.record_matmul(a, np.ones((2, 3)), b, np.ones((4, 5)))
    assert tape.num_tensors == 2
    assert len(tape) == 0


# -- layer norm ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (3, 5)])
def test_layer_norm_has_the_exact_gradient_for_input_scale_and_bias(shape):
    x, scale, bias = normal(*shape), normal(shape[-1], seed=1), normal(shape[-1], seed=2)
    cotangent, eps = normal(*shape, seed=3), 1e-3
    tape = pb.GradientTape()
    x_slot, scale_slot, bias_slot = tape.leaf(), tape.leaf(), tape.leaf()
    tape.record_layer_norm(
        x_slot, x.mean(-1), x.var(-1), scale, input_data=x, scale_slot=scale_slot, bias_slot=bias_slot, eps=eps
    )
    buffers = buffers_of(shape, shape[-1], shape[-1], shape)
    tape.backward(cotangent, buffers)

    def f(x, scale, bias):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (cotangent * ((x - mean) / np.sqrt(var + eps) * scale + bias)).sum()

    check_against_differences(f, (x, scale, bias), buffers)
    # what one gets by taking mean and variance for constants, as the source of the document does, is far off
    careless = cotangent * scale / np.sqrt(x.var(-1, keepdims=True) + eps)
    assert np.linalg.norm(buffers[0] - careless) > 0.2 * np.linalg.norm(buffers[0])


# -- SSM scan ------------------------------------------------------------------------------------


def scanned(x, a, b, h0=0.0):
    states, h = [], h0
    for t in range(len(x)):
        h = a[t] * h + b[t] * x[t]
        states.append(h)
    return np.stack(states)


@pytest.mark.parametrize("shape", [(7,), (6, 3)])
def test_ssm_scan_is_time_varying_with_gradients_for_x_a_and_b(shape):
    x, a, b, cotangent = (normal(*shape, seed=s) for s in range(4))
    tape = pb.GradientTape()
    slots = [tape.leaf() for _ in range(3)]
    tape.record_ssm_scan(slots[0], a, b, input_data=x, a_slot=slots[1], b_slot=slots[2])
    buffers = buffers_of(shape, shape, shape, shape)
    tape.backward(cotangent, buffers)
    check_against_differences(lambda x, a, b: (cotangent * scanned(x, a, b)).sum(), (x, a, b), buffers)


def test_ssm_scan_of_tensors_has_gradients_for_x_a_b_and_h0():
    x, a, b, cotangent = (normal(6, 3, seed=s) for s in range(4))
    h0 = normal(3, seed=9)
    variables = [pb.tensor(array, requires_grad=True) for array in (x, a, b, h0)]
    out = pb.ssm_scan(*variables)
    np.testing.assert_allclose(out.detach().numpy(), scanned(x, a, b, h0), rtol=1e-13)
    grads = pb.backward(out, cotangent)
    gradients = [grads[v].numpy() for v in variables]
    check_against_differences(lambda *given: (cotangent * scanned(*given)).sum(), (x, a, b, h0), gradients)


def test_trap_the_scan_goes_over_all_steps_and_uses_a():
    tape = pb.GradientTape()
    x = tape.leaf()
    tape.record_ssm_scan(x, np.array([9.0, 0.5, 0.25]), np.array([1.0, 2.0, 3.0]))
    buffers = buffers_of(3, 3)
    tape.backward([0.0, 0.0, 1.0], buffers)
    assert buffers[x].tolist() == [1.0 * 0.5 * 0.25, 2.0 * 0.25, 3.0]


# -- backward ------------------------------------------------------------------------------------


def test_backward_accumulates_into_the_callers_buffers():
    tape = pb.GradientTape()
    a, b = tape.leaf(), tape.leaf()
    out = tape.record_mul(a, np.array([2.0, 3.0]), b, np.array([5.0, 7.0]))
    buffers = [np.array([100.0, 100.0]), np.zeros((1, 2)), np.zeros(2), np.full(9, 8.0)]  # one more than slots
    same = list(buffers)
    tape.backward(np.array([1.0, 10.0]), buffers)
    assert all(x is y for x, y in zip(buffers, same))
    assert buffers[a].tolist() == [105.0, 170.0]
    assert buffers[b].tolist() == [[2.0, 30.0]]
    assert buffers[out].tolist() == [1.0, 10.0]
    assert buffers[3].tolist() == [8.0] * 9
    tape.backward(np.array([1.0, 10.0]), buffers)
    assert buffers[a].tolist() == [110.0, 240.0]
    assert buffers[out].tolist() == [2.0, 20.0]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((2, 2), "2 buffers for 3 slots"), ((2, 3, 2), "the buffer of slot 1 has 3 elements"), ((), "0 buffers for 3")],
)
def test_backward_refuses_a_shorter_list_and_a_wrong_size(sizes, message):
    tape = pb.GradientTape()
    tape.record_mul(tape.leaf(), np.ones(2), tape.leaf(), np.ones(2))
    buffers = [np.full(n, 4.0) for n in sizes]
    with pytest.raises(pb.ShapeError, match=message):
        tape.backward(np.ones(2), buffers)
    assert all((b == 4.0).all() for b in buffers)


@pytest.mark.parametrize("depth", [100, 200, 400])
def test_backward_takes_linear_time(depth, monkeypatch):
    """Counted, not timed: nodes made and rules run are twice the depth, on 2**depth paths."""
    tape = pb.GradientTape()
    slot = tape.leaf()
    for _ in range(depth):
        slot = tape.record_add(slot, tape.record_mul(slot, np.array(1.0), None, np.array(0.001)))
    visited = []
    ordinary = walking.walk

    def counting(seeds, wrt, **options):
        found = ordinary(seeds, wrt, **options)
        visited.append(len(found))
        return found

    monkeypatch.setattr(walking, "walk", counting)
    buffers = [np.zeros(()) for _ in range(tape.num_tensors)]
    tape.backward(1.0, buffers)
    assert visited == [2 * depth + 1]
    assert buffers[0].item() == pytest.approx(1.001**depth, rel=1e-12)


# -- NaN and Inf ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", ["between", "leaf"])
def test_nan_or_inf_is_an_error_that_names_operation_and_slot(bad, place):
    tape = pb.GradientTape()
    x, w = tape.leaf(), tape.leaf()
    if place == "leaf":  # only the gradient of a leaf is bad
        tape.record_mul(x, np.array([1.0, bad]), w, np.array([1.0, 2.0]))
        culprit, slot = "multiply", w
    else:
        y = tape.record_mul(x, np.array([1.0, 2.0]), w, np.array([1.0, 2.0]))
        tape.record_mul(y, np.array([1.0, 4.0]), None, np.array([1.0, bad]))
        culprit, slot = "multiply", y
    buffers = [np.arange(2.0) + i for i in range(tape.num_tensors)]
    before = [b.tobytes() for b in buffers]
    with pytest.raises(pb.NumericalInstabilityError, match=rf"gradient of `{culprit}` \(.*for slot {slot}\) is"):
        tape.backward(np.ones(2), buffers)
    assert [b.tobytes() for b in buffers] == before  # untouched
