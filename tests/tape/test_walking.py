"""`GradientTape.backward`: what it adds to the buffers, and that an error changes none of them."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.tape import walking


def zeros(tape, *shape, dtype=np.float64):
    return [np.zeros(shape, dtype) for _ in range(tape.num_tensors)]


def small_network(seed=0):
    """Slots of an input, two weights and the result; the arrays; and the same on tensors."""
    rng = np.random.default_rng(seed)
    x, w, v = rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
    tape = pb.GradientTape()
    slots = [tape.leaf(a.shape) for a in (x, w, v)]
    h = x @ w
    h_slot = tape.record_matmul(slots[0], x, slots[1], w)
    s_slot = tape.record_silu(h_slot, h)
    s = h / (1 + np.exp(-h))
    y_slot = tape.record_matmul(s_slot, s, slots[2], v)
    y = s @ v
    tape.record_mean(tape.record_mul(y_slot, y, y_slot, y))
    return tape, (x, w, v)


def buffers_for(tape):
    return [np.zeros(value.shape) for value in tape._slots]


def test_a_network_has_the_gradients_of_the_same_code_on_tensors():
    tape, arrays = small_network()
    buffers = buffers_for(tape)
    tape.backward(1.0, buffers)
    x, w, v = (pb.tensor(a, requires_grad=True) for a in arrays)
    h = x @ w
    s = pb.silu(h)
    y = s @ v
    grads = pb.backward((y * y).mean(), wrt=[x, w, v, h, s, y])
    for slot, tensor in enumerate([x, w, v, h, s, y]):  # those between as well
        np.testing.assert_allclose(buffers[slot], grads[tensor].numpy(), rtol=1e-12)


def test_walking_twice_adds_every_gradient_twice_and_nothing_else():
    tape, _ = small_network()
    once, twice = buffers_for(tape), buffers_for(tape)
    tape.backward(1.0, once)
    tape.backward(1.0, twice)
    tape.backward(1.0, twice)
    for a, b in zip(once, twice):
        np.testing.assert_array_equal(b, a + a)


def test_gradients_are_added_to_what_the_buffers_hold():
    tape = pb.GradientTape()
    x = tape.leaf()
    tape.record_exp(x, np.zeros(2))
    buffers = [np.array([10.0, 20.0]), np.array([1.0, 2.0])]
    tape.backward([3.0, 4.0], buffers)
    assert buffers[x].tolist() == [13.0, 24.0]
    assert buffers[1].tolist() == [4.0, 6.0]


def test_every_gradient_is_rounded_to_the_dtype_of_its_data():
    a, b = np.array([1.0, 3.0], np.float32), np.array([1 / 3, 1 / 7])
    tape = pb.GradientTape()
    x, y = tape.leaf(), tape.leaf()
    product = tape.record_mul(x, a, y, b)
    tape.record_exp(product, a * b)
    buffers = zeros(tape, 2)
    tape.backward(np.ones(2), buffers)
    exact = np.exp(a * b)
    np.testing.assert_allclose(buffers[product], exact, rtol=1e-15)
    np.testing.assert_allclose(buffers[y], exact * a, rtol=1e-15)
    np.testing.assert_array_equal(buffers[x], (exact * b).astype(np.float32))
    assert not np.array_equal(buffers[x], exact * b)


def test_a_slot_used_twice_gets_both_contributions():
    tape = pb.GradientTape()
    w = tape.leaf()
    y = tape.record_mul(w, np.array([3.0]), None, np.array([2.0]))
    tape.record_add(y, y)
    buffers = zeros(tape, 1)
    tape.backward([1.0], buffers)
    assert [b.item() for b in buffers] == [4.0, 2.0, 1.0]


def test_slots_that_lead_nowhere_are_left_alone():
    tape = pb.GradientTape()
    x, unused = tape.leaf(2), tape.leaf(3)
    aside = tape.record_exp(unused, np.zeros(3))
    tape.record_neg(x)
    later = tape.leaf()  # the last output is still that of `neg`
    buffers = [np.zeros(2), np.full(3, 7.0), np.full(3, 8.0), np.zeros(2), np.full(5, 9.0), np.full(1, 6.0)]
    tape.backward(np.ones(2), buffers)
    assert buffers[x].tolist() == [-1.0, -1.0]
    assert buffers[unused].tolist() == [7.0] * 3
    assert buffers[aside].tolist() == [8.0] * 3
    assert buffers[later].tolist() == [9.0] * 5
    assert buffers[5].tolist() == [6.0]  # a longer list is legal


def test_buffers_may_be_views_and_of_any_layout():
    tape = pb.GradientTape()
    x = tape.leaf((2, 3))
    tape.record_exp(x, np.zeros((2, 3)))
    everything = np.zeros((3, 4))
    other = np.zeros(12)
    cotangent = np.arange(6.0).reshape(2, 3)
    tape.backward(cotangent, [everything[:2, ::-1][:, :3], other[::2]])
    np.testing.assert_array_equal(everything[:2, 1:], cotangent[:, ::-1])
    np.testing.assert_array_equal(other[::2], cotangent.ravel())
    assert other[1::2].sum() == 0


def test_the_gradient_of_a_result_of_unknown_shape_fits_its_buffer():
    tape = pb.GradientTape()
    tape.record_add(tape.leaf(), tape.leaf())
    with pytest.raises(pb.ShapeError, match=r"loss_grad has shape \(3,\).*as many elements as its buffer \(2,\)"):
        tape.backward(np.ones(3), [np.zeros(3), np.zeros(3), np.zeros(2)])


def bad_calls():
    ok = [np.zeros(2), np.zeros(2), np.zeros(2)]
    one = np.zeros(2)
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    g = np.ones(2)
    return [
        (g, ok[:2], pb.ShapeError, "2 buffers for 3 slots"),
        (g, [np.zeros(3), *ok[1:]], pb.ShapeError, r"the buffer of slot 0 has 3 elements \(shape \(3,\)\)"),
        (g, [*ok[:2], np.zeros(1)], pb.ShapeError, "the buffer of slot 2 has 1 elements"),
        (g, [one, one, np.zeros(2)], pb.GradientError, "slots 0 and 1 have the same array"),
        (g, [fixed, *ok[1:]], pb.GradientError, "slot 0 is read-only"),
        (g, [[0.0, 0.0], *ok[1:]], pb.DtypeError, "slot 0 must be a NumPy array, got list"),
        (g, [np.zeros(2, int), *ok[1:]], pb.DtypeError, "slot 0 is int64"),
        (np.ones(3), ok, pb.ShapeError, r"loss_grad has shape \(3,\)"),
        (np.ones(2, int), ok, pb.DtypeError, "loss_grad: expected floating-point numbers"),
        (np.ones(2) * 1j, ok, pb.DtypeError, "loss_grad is complex128, but the last output is float64"),
        (np.array([1.0, np.nan]), ok, pb.NumericalInstabilityError, "loss_grad, the gradient of slot 2, is nan"),
    ]


@pytest.mark.parametrize("number", range(11))
def test_a_wrong_call_changes_no_buffer(number):
    tape = pb.GradientTape()
    a, b = tape.leaf(), tape.leaf()
    tape.record_mul(a, np.ones(2), b, np.ones(2))
    gradient, buffers, error, message = bad_calls()[number]
    before = [np.array(b).tobytes() for b in buffers]
    with pytest.raises(error, match=message):
        tape.backward(gradient, buffers)
    assert [np.array(b).tobytes() for b in buffers] == before


@pytest.mark.parametrize("buffers", [None, iter(())])
def test_buffers_are_given_in_a_list(buffers):
    tape = pb.GradientTape()
    tape.record_neg(tape.leaf())
    with pytest.raises(pb.DtypeError, match="backward: expected a list with a NumPy array for each slot, got"):
        tape.backward(np.ones(2), buffers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_inf_name_operation_slot_and_line_and_change_nothing(dtype):
    tape = pb.GradientTape()
    x, w = tape.leaf(), tape.leaf()
    line = sys._getframe().f_lineno + 1
    y = tape.record_log(x, np.array([1.0, 0.0], dtype))  # divides by zero on the way back
    z = tape.record_mul(y, np.ones(2, dtype), w, np.ones(2, dtype))
    tape.record_exp(z, np.zeros(2, dtype))
    buffers = [np.full(2, 0.1 * i, dtype) for i in range(5)]
    before = [b.tobytes() for b in buffers]
    with pytest.raises(
        pb.NumericalInstabilityError,
        match=r"gradient of `log` \(operation 0 of the tape, for slot 0\) is inf: "
        rf"test_walking\.py:{line}, in `test_nan.*"
        r"its `x` has a minimum of 0",
    ):
        tape.backward(np.ones(2, dtype), buffers)
    assert [b.tobytes() for b in buffers] == before


def test_nan_in_the_gradient_of_a_leaf_alone_is_found():
    tape = pb.GradientTape()
    x, w = tape.leaf(), tape.leaf()
    tape.record_mul(x, np.array([np.inf, 1.0]), w, np.array([1.0, 1.0]))
    buffers = zeros(tape, 2)
    with pytest.raises(
        pb.NumericalInstabilityError, match=r"`multiply` \(operation 0 of the tape, for slot 1\) is inf"
    ):
        tape.backward(np.ones(2), buffers)
    assert not any(b.any() for b in buffers)


def test_nan_inside_an_operation_of_two_steps_names_its_slots():
    tape = pb.GradientTape()
    x = tape.leaf()
    tape.record_ssm_scan(x, np.array([1.0, np.inf]), np.ones(2))
    with pytest.raises(
        pb.NumericalInstabilityError, match=r"`ssm_scan` \(operation 0 of the tape, for slot 0\) is inf"
    ):
        tape.backward(np.ones(2), zeros(tape, 2))


def test_a_sum_of_contributions_that_overflows_is_found():
    tape = pb.GradientTape()
    x = tape.leaf(1, np.float32)
    tape.record_add(x, x)
    with pytest.raises(pb.NumericalInstabilityError, match="slot 0 is not finite: the sum of contributions"):
        tape.backward(np.array([3e38], np.float32), zeros(tape, 1, dtype=np.float32))


@pytest.mark.parametrize(("held", "message"), [(3e38, "is finite"), (np.nan, "held values that were not finite")])
def test_a_buffer_that_would_overflow_is_found_before_any_is_written(held, message):
    tape = pb.GradientTape()
    x = tape.leaf(1, np.float32)
    tape.record_neg(x)
    buffers = [np.array([-held], np.float32), np.array([0.0], np.float32)]
    before = [b.tobytes() for b in buffers]
    with pytest.raises(pb.NumericalInstabilityError, match=f"slot 0 added to its buffer is .*; the buffer {message}"):
        tape.backward(np.array([3e38], np.float32), buffers)
    assert [b.tobytes() for b in buffers] == before


def test_the_guard_can_be_turned_off_or_into_a_warning():
    tape = pb.GradientTape()
    x = tape.leaf()
    tape.record_log(x, np.array([0.0]))
    buffers = zeros(tape, 1)
    with pb.guard("off"):
        tape.backward([1.0], buffers)
    assert buffers[x].tolist() == [np.inf]
    buffers = zeros(tape, 1)
    with pb.guard("warn"), pytest.warns(RuntimeWarning, match="gradient of `log`"):
        tape.backward([1.0], buffers)
    assert buffers[x].tolist() == [np.inf]


def test_a_zero_that_a_mask_made_stays_zero():
    """As on tensors: relu lets nothing through to the logarithm of 0."""
    tape = pb.GradientTape()
    x = tape.leaf()
    y = tape.record_log(x, np.array([0.0, 2.0]))
    tape.record_relu(y, np.array([-np.inf, np.log(2.0)]))
    buffers = zeros(tape, 2)
    tape.backward(np.ones(2), buffers)
    assert buffers[x].tolist() == [0.0, 0.5]


def test_a_hundred_thousand_operations():
    depth = 100_001
    tape = pb.GradientTape()
    slot = tape.leaf()
    for _ in range(depth):
        slot = tape.record_neg(slot)
    assert len(tape) == depth
    buffers = [np.zeros(()) for _ in range(depth + 1)]
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(200)
        tape.backward(3.0, buffers)
    finally:
        sys.setrecursionlimit(limit)
    assert buffers[0].item() == -3.0
    assert buffers[1].item() == 3.0
    last = weakref.ref(tape)
    del tape
    gc.collect()
    assert last() is None


@pytest.mark.parametrize("depth", [10, 40])
def test_residual_chains_take_one_rule_call_per_operation(depth, monkeypatch):
    """y = y + f(y), `depth` times: 2**depth paths, counted by the steps that the engine walks."""
    tape = pb.GradientTape()
    slot = tape.leaf()
    for _ in range(depth):
        slot = tape.record_add(slot, tape.record_tanh(slot, np.array([0.1])))
    calls = []
    ordinary = walking.new_node

    def counted(recipe, *args):
        calls.append(recipe)
        return ordinary(pb.autodiff.recipe.Recipe.of_function(recipe.operation, recipe.mask, recipe.names,
                        lambda g, *saved: walked.append(1) or recipe.backward(g, *saved)), *args)  # fmt: skip

    walked: list[int] = []
    monkeypatch.setattr(walking, "new_node", counted)
    buffers = zeros(tape, 1)
    tape.backward([1.0], buffers)
    assert len(calls) == len(walked) == 2 * depth
    slope = 1 + (1 - np.tanh(0.1) ** 2)
    assert buffers[0].item() == pytest.approx(slope**depth, rel=1e-12)
