"""Slots, shapes, and what a tape keeps."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


def test_slots_are_counted_from_zero_and_each_record_returns_its_own():
    tape = pb.GradientTape()
    assert [tape.leaf(), tape.leaf((2,))] == [0, 1]
    assert tape.record_add(0, 1) == 2
    assert tape.record_neg(2) == 3
    assert tape.num_tensors == 4
    assert len(tape) == 2
    assert repr(tape) == "GradientTape(2 operations, 4 slots)"


def test_ops_is_a_readable_list():
    tape = pb.GradientTape()
    x, w = tape.leaf(), tape.leaf()
    y = tape.record_matmul(x, np.ones((2, 3), np.float32), w, np.ones((3, 4), np.float32))
    z = tape.record_mul(y, np.ones((2, 4), np.float32), None, np.ones(4, np.float32))
    unknown = tape.record_add(tape.leaf(), tape.leaf())
    tape.record_ssm_scan(z, np.ones(4), np.ones(4))
    assert tape.ops == [
        "2 = matmul(0, 1): (2, 4) float32",
        "3 = mul(2, constant): (2, 4) float32",
        "6 = add(4, 5): unknown shape",
        "7 = ssm_scan(3, constant, constant): (2, 4) float64",
    ]
    tape.record_exp(unknown, np.ones(7))  # tells the shape of the sum
    assert tape.ops[2] == "6 = add(4, 5): (7,) float64"


def test_clear_forgets_everything():
    tape = pb.GradientTape()
    tape.record_exp(tape.leaf(), np.ones(3))
    tape.clear()
    assert (tape.num_tensors, len(tape), tape.ops) == (0, 0, [])
    with pytest.raises(pb.GradientError, match="nothing has been recorded"):
        tape.backward([1.0], [np.zeros(1)])
    assert tape.leaf() == 0


def test_memory_that_is_used_again_does_not_change_a_gradient():
    tape = pb.GradientTape()
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    tape.record_mul(tape.leaf(), a, tape.leaf(), b)
    a[:] = 100.0
    b[:] = 100.0
    buffers = [np.zeros(2) for _ in range(3)]
    tape.backward(np.ones(2), buffers)
    assert buffers[0].tolist() == [3.0, 4.0]
    assert buffers[1].tolist() == [1.0, 2.0]


def test_tensors_are_kept_without_a_copy_and_a_write_to_them_copies():
    tape = pb.GradientTape()
    a = pb.tensor(np.array([1.0, 2.0]))
    b = pb.tensor(np.array([3.0, 4.0]))
    tape.record_mul(tape.leaf(), a, tape.leaf(), b)
    assert any(kept is a._raw for kept in tape._steps[0].saved)
    a += 100.0
    buffers = [np.zeros(2) for _ in range(3)]
    tape.backward(np.ones(2), buffers)
    assert buffers[1].tolist() == [1.0, 2.0]


def test_a_tensor_that_requires_a_gradient_is_refused_as_data():
    tape = pb.GradientTape()
    with pytest.raises(pb.GradientError, match=r"requires a gradient.*detach"):
        tape.record_exp(tape.leaf(), pb.tensor([1.0], requires_grad=True))


def test_arrays_of_other_libraries_are_refused():
    torch = pytest.importorskip("torch")
    tape = pb.GradientTape()
    with pytest.raises(pb.DeviceError, match=r"a tape works on NumPy arrays, this is on 'torch:cpu'"):
        tape.record_exp(tape.leaf(), torch.ones(3))


def failing_calls(tape, x, y):
    ones = np.ones
    return [
        (lambda: tape.record_add(x, 99), pb.IndexingError, "no slot 99; the tape has 2"),
        (lambda: tape.record_add(x, -1), pb.IndexingError, "no slot -1"),
        (lambda: tape.record_add(x, 1.0), pb.DtypeError, "a slot is a number"),
        (lambda: tape.record_add(x, True), pb.DtypeError, "a slot is a number"),
        (lambda: tape.record_add(x, None), pb.GradientError, "b is no slot"),
        (lambda: tape.record_add(x, y), pb.ShapeError, r"\(2, 3\) and \(4,\) cannot be broadcast"),
        (lambda: tape.record_mul(x, ones((3, 2)), y, ones(5)), pb.ShapeError, r"b_data has shape \(5,\), but slot 1"),
        (lambda: tape.record_mul(x, ones(6), y, ones(4)), pb.ShapeError, r"\(6,\) and \(4,\) cannot be broadcast"),
        (lambda: tape.record_mul(x, None, y, ones(4)), pb.DtypeError, "a_data is missing"),
        (lambda: tape.record_mul(None, ones(4), None, ones(4)), pb.GradientError, "nothing to record"),
        (lambda: tape.record_exp(x, np.arange(6)), pb.DtypeError, "expected floating-point numbers, got int64"),
        (lambda: tape.record_matmul(x, ones((2, 3)), y, ones((2, 2))), pb.ShapeError, "multiplied as matrices"),
        (lambda: tape.record_matmul(x, ones((2, 3)), None, np.float64(1)), pb.ShapeError, "multiplied as matrices"),
        (
            lambda: tape.record_matmul(None, ones((2, 1, 3)), None, ones((3, 3, 1))),
            pb.ShapeError,
            "multiplied as matrices",
        ),
        (lambda: tape.record_linear(x, ones((2, 3)), y, ones((2, 2))), pb.ShapeError, "expected"),
        (lambda: tape.record_linear(x, ones((2, 3)), None, ones((5, 3)), y), pb.ShapeError, r"bias has shape \(5,\)"),
        (lambda: tape.record_conv(x, ones((2, 3)), y, ones((2, 2))), pb.ShapeError, "as many spatial axes"),
        (
            lambda: tape.record_conv(None, ones((1, 1, 3)), y, ones((1, 1, 4))),
            pb.ShapeError,
            "record_conv: the kernel is larger",
        ),
        (lambda: tape.record_softmax(x, ones((2, 3)), 2), pb.AxisError, "axis 2 does not exist"),
        (lambda: tape.record_softmax(x, ones((2, 3)) * 1j), pb.DtypeError, "expected real numbers"),
        (lambda: tape.record_gelu(x, ones((2, 3)), "yes"), ValueError, "approximate must be"),
        (lambda: tape.record_sum(x, 5), pb.AxisError, "axis 5 does not exist"),
        (lambda: tape.record_reshape(x, (4, -1)), pb.ShapeError, r"6 elements of shape \(2, 3\) do not fit"),
        (lambda: tape.record_transpose(x, (0,)), pb.AxisError, "no permutation"),
        (
            lambda: tape.record_layer_norm(x, 0.0, 1.0, ones(4), input_data=ones((2, 3))),
            pb.ShapeError,
            r"scale has shape \(4,\)",
        ),
        (
            lambda: tape.record_layer_norm(x, [1.0], [0.0], ones(3), input_data=ones((2, 3))),
            pb.ShapeError,
            "mean has shape .* expected 2 numbers",
        ),
        (
            lambda: tape.record_layer_norm(x, [1.0, 1.0], [0.0, 0.0], None, input_data=ones((2, 3)), scale_slot=y),
            pb.GradientError,
            "scale_slot is given without",
        ),
        (lambda: tape.record_ssm_scan(x, ones(5), ones(3)), pb.ShapeError, r"do not broadcast to \(2, 3\)"),
        (lambda: tape.record_ssm_scan(x, ones((5, 2, 3)), ones(3)), pb.ShapeError, r"do not broadcast to \(2, 3\)"),
        (lambda: tape.record_ssm_scan(None, ones(3), ones(3)), pb.GradientError, "input is no slot"),
        (lambda: tape.record_ssm_scan(tape.leaf(()), 0.5, 1.0), pb.ShapeError, "axis of time"),
    ]


@pytest.mark.parametrize("number", range(31))
def test_a_call_that_fails_adds_nothing(number):
    tape = pb.GradientTape()
    x, y = tape.leaf((2, 3)), tape.leaf(4)
    calls = failing_calls(tape, x, y)
    assert len(calls) == 31
    call, error, message = calls[number]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError | pb.PullbackError)
    assert len(tape) == 0
    assert not tape._steps


def test_a_call_that_fails_teaches_no_shape():
    tape = pb.GradientTape()
    x, y = tape.leaf(), tape.leaf(4)
    with pytest.raises(pb.ShapeError):
        tape.record_mul(x, np.ones(3), y, np.ones(5))
    tape.record_exp(x, np.ones(2))  # any shape will do still
    assert tape.ops == ["2 = exp(0): (2,) float64"]


@pytest.mark.parametrize(
    ("arguments", "error"), [((-1,), pb.ShapeError), (((2, 0.5),), pb.ShapeError), ((3, "int32"), pb.DtypeError)]
)
def test_a_leaf_has_a_shape_of_sizes_and_a_dtype_with_gradients(arguments, error):
    with pytest.raises(error, match="leaf"):
        pb.GradientTape().leaf(*arguments)


@pytest.mark.parametrize("name", ["sum", "mean", "transpose"])
def test_an_operation_that_needs_a_shape_says_so(name):
    tape = pb.GradientTape()
    with pytest.raises(pb.ShapeError, match=r"the shape of slot 0 is not known yet.*tape\.leaf\(shape\)"):
        getattr(tape, f"record_{name}")(tape.leaf())


@pytest.mark.parametrize(
    ("names", "flat"), [(("a", "b"), False), (("a", "b"), True), ((), False), ((), True), (("a",), False)]
)
def test_flat_and_shaped_data_of_one_slot_go_together(names, flat):
    """As in the document, where a matrix product is a row of numbers."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    tape = pb.GradientTape()
    a_slot = tape.leaf(6 if "a" in names else None)
    b_slot = tape.leaf(12 if "b" in names else None)
    c = a @ b
    c_slot = tape.record_matmul(a_slot, a, b_slot, b)
    tape.record_silu(c_slot, c.ravel() if flat else c)
    buffers = [np.zeros(6), np.zeros(12), np.zeros(8), np.zeros(8)]
    cotangent = rng.normal(size=8)
    tape.backward(cotangent, buffers)
    ta, tb = pb.tensor(a, requires_grad=True), pb.tensor(b, requires_grad=True)
    grads = pb.backward(pb.silu(ta @ tb), cotangent.reshape(2, 4))
    np.testing.assert_allclose(buffers[0].reshape(2, 3), grads[ta].numpy(), rtol=1e-14)
    np.testing.assert_allclose(buffers[1].reshape(3, 4), grads[tb].numpy(), rtol=1e-14)


def test_unknown_shapes_are_taken_from_the_buffers():
    tape = pb.GradientTape()
    a, b, c = tape.leaf(), tape.leaf(), tape.leaf()
    tape.record_sub(tape.record_add(a, b), c)
    buffers = [np.zeros((2, 3)), np.zeros(3), np.zeros((2, 1)), np.zeros(6), np.zeros((3, 2))]
    tape.backward(np.arange(6.0).reshape(2, 3), buffers)
    assert buffers[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert buffers[1].tolist() == [3, 5, 7]
    assert buffers[2].tolist() == [[-3], [-12]]
    assert buffers[3].tolist() == [0, 1, 2, 3, 4, 5]


def test_buffers_that_contradict_each_other_are_refused():
    tape = pb.GradientTape()
    tape.record_add(tape.leaf(), tape.leaf(3))
    buffers = [np.zeros(2), np.zeros(3), np.zeros(3)]
    with pytest.raises(pb.ShapeError, match=r"`2 = add\(0, 1\).*cannot have a result of shape \(3,\).*0 \(2,\)"):
        tape.backward(np.ones(3), buffers)


def test_a_shape_that_data_tell_later_holds_for_what_came_before():
    tape = pb.GradientTape()
    a, b = tape.leaf(), tape.leaf(3)
    total = tape.record_add(a, b)
    out = tape.record_exp(total, np.zeros((2, 3)))
    buffers = [np.zeros(6), np.zeros(3), np.zeros(6), np.zeros(6)]
    tape.backward(np.ones(6), buffers)
    assert out == 3
    assert buffers[b].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(pb.ShapeError, match="the buffer of slot 2 has 3 elements"):
        tape.backward(np.ones(6), [np.zeros(6), np.zeros(3), np.zeros(3), np.zeros(6)])
