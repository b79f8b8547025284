"""Every `record_*`: its gradients against central differences, PyTorch and the same code on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional

torch = optional("torch")
F = torch.nn.functional


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(random(*shape, seed=seed)) + 0.5


class Case:
    """Arrays, how a tape records a function of them (slots come first, then arrays), and the function on torch."""

    def __init__(self, name, arrays, record, function):
        self.name, self.arrays, self.record, self.function = name, arrays, record, function


def layer_norm(tape, s, d, axes):
    mean, var = d[0].mean(axes), d[0].var(axes)
    return tape.record_layer_norm(s[0], mean, var, d[1], input_data=d[0], scale_slot=s[1], bias_slot=s[2])


def matmul(tape, s, d):
    return tape.record_matmul(s[0], d[0], s[1], d[1])


def scan(x, a, b):
    h, states = torch.zeros_like(x[0]), []
    for t in range(len(x)):
        at = a[t] if a.ndim == x.ndim else a
        h = at * h + b[t] * x[t]
        states.append(h)
    return torch.stack(states)


CASES = [
    Case("add", [random(2, 3), random(3)], lambda t, s, d: t.record_add(*s), torch.add),
    Case("sub", [random(2, 3), random(2, 1)], lambda t, s, d: t.record_sub(*s), torch.sub),
    Case("neg", [random(2, 3)], lambda t, s, d: t.record_neg(*s), torch.neg),
    Case("mul", [random(2, 3), random(3)], lambda t, s, d: t.record_mul(s[0], d[0], s[1], d[1]), torch.mul),
    Case("mul 0-d", [random(), random(2, 3)], lambda t, s, d: t.record_mul(s[0], d[0], s[1], d[1]), torch.mul),
    Case("div", [random(2, 3), positive(1, 3)], lambda t, s, d: t.record_div(s[0], d[0], s[1], d[1]), torch.div),
    Case("exp", [random(2, 3)], lambda t, s, d: t.record_exp(s[0], d[0]), torch.exp),
    Case("log", [positive(2, 3)], lambda t, s, d: t.record_log(s[0], d[0]), torch.log),
    Case("tanh", [random(2, 3)], lambda t, s, d: t.record_tanh(s[0], d[0]), torch.tanh),
    Case("sigmoid", [random(2, 3)], lambda t, s, d: t.record_sigmoid(s[0], d[0]), torch.sigmoid),
    Case("relu", [random(4, 3)], lambda t, s, d: t.record_relu(s[0], d[0]), torch.relu),
    Case("silu", [random(2, 3)], lambda t, s, d: t.record_silu(s[0], d[0]), F.silu),
    Case("gelu", [random(2, 3)], lambda t, s, d: t.record_gelu(s[0], d[0]), F.gelu),
    Case(
        "gelu tanh", [random(2, 3)],
        lambda t, s, d: t.record_gelu(s[0], d[0], "tanh"), lambda x: F.gelu(x, approximate="tanh"),
    ),
    Case("softmax", [random(2, 3)], lambda t, s, d: t.record_softmax(s[0], d[0]), lambda x: torch.softmax(x, -1)),
    Case("softmax 0", [random(2, 3)], lambda t, s, d: t.record_softmax(s[0], d[0], 0), lambda x: torch.softmax(x, 0)),
    Case("matmul", [random(2, 3), random(3, 4)], matmul, torch.matmul),
    Case("matmul stacks", [random(5, 1, 2, 3), random(6, 3, 4)], matmul, torch.matmul),
    Case("matmul row", [random(3), random(3, 4)], matmul, torch.matmul),
    Case("matmul column", [random(2, 3), random(3)], matmul, torch.matmul),
    Case("matmul dot", [random(3), random(3, seed=1)], matmul, torch.matmul),
    Case(
        "linear", [random(5, 2, 3), random(4, 3), random(4)],
        lambda t, s, d: t.record_linear(s[0], d[0], s[1], d[1], s[2]), F.linear,
    ),
    Case("linear row", [random(3), random(4, 3)], lambda t, s, d: t.record_linear(s[0], d[0], s[1], d[1]), F.linear),
    Case(
        "conv1d", [random(2, 4, 7), random(6, 2, 3)],
        lambda t, s, d: t.record_conv(s[0], d[0], s[1], d[1], padding="same", groups=2),
        lambda x, w: F.conv1d(x, w, padding="same", groups=2),
    ),
    Case(
        "conv2d", [random(2, 3, 6, 7), random(4, 3, 2, 3), random(4)],
        lambda t, s, d: t.record_conv(s[0], d[0], s[1], d[1], s[2], stride=(2, 1), padding=1, dilation=(1, 2)),
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, dilation=(1, 2)),
    ),
    Case("sum", [random(2, 3)], lambda t, s, d: t.record_sum(s[0]), torch.sum),
    Case("sum axis", [random(2, 3, 4)], lambda t, s, d: t.record_sum(s[0], (0, -1)), lambda x: x.sum((0, -1))),
    Case("mean", [random(2, 3)], lambda t, s, d: t.record_mean(s[0]), torch.mean),
    Case("mean axis", [random(2, 3)], lambda t, s, d: t.record_mean(s[0], 0, True), lambda x: x.mean(0, keepdim=True)),
    Case("reshape", [random(2, 6)], lambda t, s, d: t.record_reshape(s[0], (3, -1)), lambda x: x.reshape(3, 4)),
    Case("transpose", [random(2, 3, 4)], lambda t, s, d: t.record_transpose(s[0]), lambda x: x.permute(2, 1, 0)),
    Case(
        "transpose axes", [random(2, 3, 4)],
        lambda t, s, d: t.record_transpose(s[0], (1, 2, 0)), lambda x: x.permute(1, 2, 0),
    ),
    Case(
        "layer_norm", [random(5), random(5, seed=1), random(5, seed=2)],
        lambda t, s, d: layer_norm(t, s, d, -1), lambda x, w, b: F.layer_norm(x, (5,), w, b),
    ),
    Case(
        "layer_norm rows", [random(2, 3, 5), random(5), random(5, seed=1)],
        lambda t, s, d: layer_norm(t, s, d, -1), lambda x, w, b: F.layer_norm(x, (5,), w, b),
    ),
    Case(
        "layer_norm axes", [random(2, 3, 5), random(3, 5), random(3, 5, seed=1)],
        lambda t, s, d: layer_norm(t, s, d, (-2, -1)), lambda x, w, b: F.layer_norm(x, (3, 5), w, b),
    ),
    Case(
        "rms_norm", [random(2, 5), random(5)],
        lambda t, s, d: t.record_rms_norm(s[0], d[1], input_data=d[0], scale_slot=s[1]),
        lambda x, w: F.rms_norm(x, (5,), w, 1e-5),
    ),
    Case(
        "ssm_scan", [random(7), random(7, seed=1), random(7, seed=2)],
        lambda t, s, d: t.record_ssm_scan(s[0], d[1], d[2], input_data=d[0], a_slot=s[1], b_slot=s[2]), scan,
    ),
    Case(
        "ssm_scan channels", [random(6, 3), random(3), random(6, 1)],
        lambda t, s, d: t.record_ssm_scan(s[0], d[1], d[2], input_data=d[0], a_slot=s[1], b_slot=s[2]), scan,
    ),
]  # fmt: skip


def gradients_by_tape(case, cotangent, buffers_flat=False):
    tape = pb.GradientTape()
    slots = [tape.leaf(a.shape) for a in case.arrays]
    out = case.record(tape, slots, [a.copy() for a in case.arrays])
    assert out == tape.num_tensors - 1
    shapes = [a.shape for a in case.arrays] + [cotangent.shape]
    buffers = [np.zeros(int(np.prod(s)) if buffers_flat else s, cotangent.dtype) for s in shapes]
    tape.backward(cotangent, buffers)
    np.testing.assert_array_equal(buffers[out].reshape(cotangent.shape), cotangent)
    return [buffer.reshape(a.shape) for a, buffer in zip(case.arrays, buffers)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_equal_those_of_torch(case):
    inputs = [torch.tensor(a, requires_grad=True) for a in case.arrays]
    out = case.function(*inputs)
    cotangent = random(*out.shape, seed=9)
    expected = torch.autograd.grad(out, inputs, torch.tensor(cotangent))
    for flat in (False, True):
        for mine, theirs in zip(gradients_by_tape(case, cotangent, flat), expected):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-11, atol=1e-13)


def central_difference(f, x, direction):
    """The derivative of f along a direction, with a stencil of the fourth order."""
    h = 1e-3
    return (
        8 * (f(x + h * direction) - f(x - h * direction)) - (f(x + 2 * h * direction) - f(x - 2 * h * direction))
    ) / (12 * h)


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "relu"], ids=lambda case: case.name)
def test_gradients_agree_with_finite_differences_to_1e_8(case):
    out_shape = case.function(*map(torch.tensor, case.arrays)).shape
    cotangent = random(*out_shape, seed=5)
    gradients = gradients_by_tape(case, cotangent)
    for i, (array, gradient) in enumerate(zip(case.arrays, gradients)):

        def f(x, i=i):
            arrays = [x if j == i else a for j, a in enumerate(case.arrays)]
            return float((case.function(*map(torch.tensor, arrays)).numpy() * cotangent).sum())

        numeric = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            direction = np.zeros_like(array)
            direction[index] = 1.0
            numeric[index] = central_difference(f, array, direction)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float32_is_computed_in_float32_and_added_into_any_buffer(case):
    narrow = Case(case.name, [a.astype(np.float32) for a in case.arrays], case.record, case.function)
    cotangent = random(*case.function(*map(torch.tensor, case.arrays)).shape, seed=9).astype(np.float32)
    expected = gradients_by_tape(narrow, cotangent)
    assert all(g.dtype == np.float32 for g in expected)
    tape = pb.GradientTape()
    slots = [tape.leaf(a.shape, a.dtype) if case.name in WITHOUT_DATA else tape.leaf() for a in narrow.arrays]
    narrow.record(tape, slots, narrow.arrays)
    buffers = [np.zeros(a.shape) for a in (*narrow.arrays, cotangent)]  # float64
    tape.backward(cotangent.astype(np.float64), buffers)
    for mine, theirs in zip(buffers, expected):
        np.testing.assert_array_equal(mine, theirs)  # the same float32 numbers


WITHOUT_DATA = {"add", "sub", "neg", "sum", "sum axis", "mean", "mean axis", "reshape", "transpose", "transpose axes"}


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
@pytest.mark.parametrize("name", ["mul", "div", "matmul", "linear row"])
def test_a_slot_of_none_is_a_constant(name, wanted):
    case = next(c for c in CASES if c.name == name)
    cotangent = random(*case.function(*map(torch.tensor, case.arrays)).shape, seed=9)
    expected = gradients_by_tape(case, cotangent)
    tape = pb.GradientTape()
    slots = [tape.leaf() if is_wanted else None for is_wanted in wanted]
    case.record(tape, slots, case.arrays)
    buffers = [np.zeros(case.arrays[wanted.index(True)].shape), np.zeros(cotangent.shape)]
    tape.backward(cotangent, buffers)
    np.testing.assert_allclose(buffers[0], expected[wanted.index(True)])


def test_a_constant_factor_keeps_nothing_of_the_other():
    tape = pb.GradientTape()
    big, weight = np.ones((1000, 1)), np.ones(3)
    tape.record_mul(tape.leaf(), big, None, weight)
    kept = [a.shape for a in tape._steps[-1].saved if isinstance(a, np.ndarray)]
    assert kept == [(3,)]


@pytest.mark.parametrize(("a_wanted", "b_wanted"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("input_wanted", [True, False])
def test_ssm_scan_with_some_constants(input_wanted, a_wanted, b_wanted):
    case = next(c for c in CASES if c.name == "ssm_scan channels")
    x, a, b = case.arrays
    cotangent = random(*x.shape, seed=9)
    expected = gradients_by_tape(case, cotangent)
    wanted = (input_wanted, a_wanted, b_wanted)
    tape = pb.GradientTape()
    slots = [tape.leaf() if is_wanted else None for is_wanted in wanted]
    if not any(wanted):
        with pytest.raises(pb.GradientError, match="nothing to record"):
            tape.record_ssm_scan(None, a, b, input_data=x)
        return
    tape.record_ssm_scan(slots[0], a, b, input_data=x, a_slot=slots[1], b_slot=slots[2])
    kept = [i for i, is_wanted in enumerate(wanted) if is_wanted]
    buffers = [np.zeros(case.arrays[i].shape) for i in kept] + [np.zeros(x.shape)]
    tape.backward(cotangent, buffers)
    for i, buffer in zip(kept, buffers):
        np.testing.assert_allclose(buffer, expected[i], rtol=1e-13)


@pytest.mark.parametrize("shape", [None, (6, 3)])
def test_ssm_scan_needs_no_data_for_the_gradient_of_its_input(shape):
    a, b = random(6, 3), random(6, 3, seed=1)
    tape = pb.GradientTape()
    x = tape.leaf(shape)
    tape.record_ssm_scan(x, a, b)
    buffers = [np.zeros((6, 3)), np.zeros((6, 3))]
    cotangent = random(6, 3, seed=2)
    tape.backward(cotangent, buffers)
    data = pb.tensor(np.zeros((6, 3)), requires_grad=True)
    expected = pb.backward(pb.ssm_scan(data, a, b), cotangent)[data]
    np.testing.assert_allclose(buffers[x], expected.numpy(), rtol=1e-13)


def test_ssm_scan_gradients_of_a_and_b_need_the_input():
    tape = pb.GradientTape()
    with pytest.raises(pb.GradientError, match="a_slot or b_slot needs input_data"):
        tape.record_ssm_scan(tape.leaf(3), np.ones(3), np.ones(3), a_slot=tape.leaf())
    assert len(tape) == 0


@pytest.mark.parametrize("scale", [None, np.array([1.0, 2.0, -1.0])])
def test_layer_norm_without_scale_or_slots_for_it(scale):
    x, cotangent = random(4, 3), random(4, 3, seed=1)
    tape = pb.GradientTape()
    slot = tape.leaf()
    tape.record_layer_norm(slot, x.mean(1), x.var(1), scale, input_data=x, eps=1e-3)
    buffers = [np.zeros((4, 3)), np.zeros((4, 3))]
    tape.backward(cotangent, buffers)
    t = torch.tensor(x, requires_grad=True)
    out = F.layer_norm(t, (3,), None if scale is None else torch.tensor(scale), eps=1e-3)
    (expected,) = torch.autograd.grad(out, t, torch.tensor(cotangent))
    np.testing.assert_allclose(buffers[slot], expected.numpy(), rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_layer_norm_takes_statistics_with_their_rounding(dtype, offset):
    x = (random(4, 64) + offset).astype(dtype)
    mean = x.mean(1, dtype=np.float64).astype(dtype)
    var = x.astype(np.float64).var(1).astype(dtype)
    tape = pb.GradientTape()
    assert tape.record_layer_norm(tape.leaf(), mean, var, np.ones(64, dtype), input_data=x) == 1


def test_layer_norm_takes_a_variance_that_lost_digits_to_cancellation():
    x = (random(4, 64) + 300).astype(np.float32)
    mean = x.mean(1)
    naive = (x * x).mean(1) - mean * mean  # wrong in the second digit
    assert np.abs(naive - x.var(1)).max() > 1e-3
    tape = pb.GradientTape()
    assert tape.record_layer_norm(tape.leaf(), mean, naive, np.ones(64, np.float32), input_data=x) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layer_norm_refuses_the_unbiased_variance_of_many_elements(dtype):
    x = random(4, 512).astype(dtype)
    tape = pb.GradientTape()
    with pytest.raises(pb.GradientError, match="not by one less"):
        tape.record_layer_norm(tape.leaf(), x.mean(1), x.var(1, ddof=1), np.ones(512, dtype), input_data=x)


@pytest.mark.parametrize(
    ("mean", "var", "complaint"),
    [
        (0.0, 14 / 3, "mean is 0, but that of input_data is 3"),
        (3.0, 1.0, r"var is 1, but that of input_data is 4\.66667"),
        (3.0, 7.0, r"var is 7.*divided by the number of elements, not by one less"),
    ],
)
def test_layer_norm_refuses_statistics_of_other_data(mean, var, complaint):
    tape = pb.GradientTape()
    slot = tape.leaf()
    with pytest.raises(pb.GradientError, match=complaint):
        tape.record_layer_norm(slot, mean, var, np.ones(3), input_data=np.array([1.0, 2.0, 6.0]))
    assert len(tape) == 0
    assert tape.num_tensors == 1


def test_complex_gradients_are_those_of_backward():
    rng = np.random.default_rng(0)
    a, b, g = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(3))
    tape = pb.GradientTape()
    x, y = tape.leaf(), tape.leaf()
    product = tape.record_matmul(x, a, y, b)
    tape.record_exp(product, a @ b)
    buffers = [np.zeros((3, 3), complex) for _ in range(4)]
    tape.backward(g, buffers)
    ta, tb = pb.tensor(a, requires_grad=True), pb.tensor(b, requires_grad=True)
    grads = pb.backward(pb.exp(ta @ tb), g)
    np.testing.assert_allclose(buffers[x], grads[ta].numpy(), rtol=1e-13)
    np.testing.assert_allclose(buffers[y], grads[tb].numpy(), rtol=1e-13)
    with pytest.raises(pb.DtypeError, match="complex128, its buffer float64"):
        tape.backward(g, [np.zeros((3, 3)) for _ in range(4)])
