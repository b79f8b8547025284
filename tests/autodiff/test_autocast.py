"""Mixed precision: which operation computes in what, gradients of float32 variables, blocks in blocks."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import modes
from pullback.operations import OPERATIONS
from tests.backends.installed import BFLOAT16, needs_ml_dtypes, require
from tests.operations import harness
from tests.operations.harness_samples import SAMPLES, is_complex
from tests.operations.sample import Sample

halves = pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16], ids=lambda dtype: dtype.name)
REAL = [sample for sample in SAMPLES if not is_complex(sample)]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def variable(*shape: int, seed: int = 0) -> pb.Tensor:
    return pb.tensor(numbers(*shape, seed=seed), requires_grad=True)


# -- the table -----------------------------------------------------------------------------------


ONE_EACH = list({sample.operation: sample for sample in REAL}.values())
CASES = [
    *[pytest.param(sample, pb.float16) for sample in REAL],
    *[pytest.param(sample, pb.bfloat16, marks=needs_ml_dtypes) for sample in ONE_EACH],
]


@pytest.mark.parametrize(("sample", "dtype"), CASES, ids=lambda value: value.name)
def test_every_operation_on_float32(sample: Sample, dtype) -> None:
    """Values and gradients are those of float32, within the rounding of half precision; gradients are float32."""
    arrays = [np.asarray(argument, np.float32) for argument in sample.arguments]
    expected = harness.values(sample.function, arrays)
    tensors = harness.variables(arrays)
    with pb.autocast(dtype):
        outputs = harness.outputs_of(sample.function, tensors)
    unit = 2.0**-8 if dtype == pb.bfloat16 else 2.0**-11
    for out, value in zip(outputs, expected):
        scale = np.abs(value).max(initial=0)
        np.testing.assert_allclose(harness.raw(out).astype(value.dtype), value, rtol=64 * unit, atol=64 * unit * scale)
    cotangents = [np.ones(out.shape, harness.raw(out).dtype) for out in outputs]
    for gradient, tensor in zip(harness.pulled(outputs, cotangents, tensors), tensors):
        assert (gradient.dtype, gradient.shape) == (np.float32, tensor.shape)


REFUSING = {
    "inv", "pinv", "solve", "det", "slogdet", "cofactor", "cholesky", "eigh", "eigvalsh", "eig", "eigvals", "svd",
    "svdvals", "qr", "matrix_rank",
}  # fmt: skip


@needs_ml_dtypes
@pytest.mark.parametrize("sample", [s for s in REAL if s.operation != "setitem"], ids=lambda sample: sample.name)
def test_every_operation_on_a_mixture_of_precisions(sample: Sample) -> None:
    kinds = (pb.float16, pb.float32, pb.bfloat16)
    tensors = [
        pb.asarray(argument, dtype=kinds[i % 3]).set_requires_grad(True) for i, argument in enumerate(sample.arguments)
    ]
    with np.errstate(all="ignore"), pb.guard("off"):
        try:
            with pb.autocast("bfloat16"):
                outputs = harness.outputs_of(sample.function, tensors)
        except pb.DtypeError:
            assert sample.operation in REFUSING
            return
        cotangents = [np.ones(out.shape, harness.raw(out).dtype) for out in outputs]
        for gradient, tensor in zip(harness.pulled(outputs, cotangents, tensors), tensors):
            assert gradient.dtype == harness.raw(tensor).dtype


@pytest.mark.parametrize("sample", REAL, ids=lambda sample: sample.name)
def test_float64_is_left_alone(sample: Sample) -> None:
    expected = harness.values(sample.function, sample.arguments)
    with pb.autocast("float16"):
        found = harness.values(sample.function, sample.arguments)
    for out, value in zip(found, expected):
        assert out.dtype == value.dtype
        np.testing.assert_array_equal(out, value)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda x, w: x @ w,
    "numpy matmul": lambda x, w: np.matmul(x, w),
    "array on the left": lambda x, w: x.detach().numpy() @ w,
    "linear": lambda x, w: pb.linear(x, w),
    "tensordot": lambda x, w: pb.tensordot(x, w, axes=1),
    "einsum": lambda x, w: pb.einsum("ij,jk->ik", x, w),
    "conv1d": lambda x, w: pb.conv1d(x[None], w[:, :, None]),
    "conv_transpose1d": lambda x, w: pb.conv_transpose1d(x[None], w[:, :, None]),
    "attention": lambda x, w: pb.scaled_dot_product_attention(x[None], w[None], w[None]),
}


@halves
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_compute_in_half_precision(name: str, dtype) -> None:
    x, w = variable(3, 3), variable(3, 3, seed=1)
    with pb.autocast(dtype):
        assert PRODUCTS[name](x, w).dtype == dtype


FLOAT32: dict[str, Callable[..., Any]] = {
    "exp": pb.exp,
    "log": lambda x: pb.log(pb.abs(x)),
    "power": lambda x: x**3,
    "softmax": lambda x: pb.softmax(x, axis=-1),
    "sum": pb.sum,
    "mean": pb.mean,
    "layer_norm": lambda x: pb.layer_norm(x, (3,)),
    "cross_entropy": lambda x: pb.cross_entropy(x, [0, 1, 2]),
    "mse_loss": lambda x: pb.mse_loss(x, pb.zeros((3, 3), dtype=x.dtype)),
}


@halves
@pytest.mark.parametrize("name", FLOAT32)
def test_what_loses_digits_computes_in_float32(name: str, dtype) -> None:
    x = pb.asarray(numbers(3, 3), dtype=dtype)
    with pb.autocast(dtype):
        assert FLOAT32[name](x).dtype == pb.float32
    assert FLOAT32[name](x).dtype == dtype


@halves
def test_the_rest_computes_in_the_widest_precision_of_its_inputs(dtype) -> None:
    x, y = pb.asarray(numbers(3), dtype=dtype), pb.asarray(numbers(3))
    with pb.autocast(dtype):
        assert pb.relu(x).dtype == (x + x).dtype == (x * 2.0).dtype == dtype
        assert (x + y).dtype == (y * x).dtype == pb.concat([x, y]).dtype == pb.float32
        assert pb.where(pb.asarray([True, False, True]), x, y).dtype == pb.float32


@needs_ml_dtypes
@halves
def test_two_half_precisions_meet_in_float32(dtype) -> None:
    x = pb.asarray(numbers(3))
    with pb.autocast(dtype):
        assert (x.astype(pb.float16) + x.astype(pb.bfloat16)).dtype == pb.float32


def test_one_operand_in_float64_keeps_the_others_digits() -> None:
    x, w = pb.asarray(numbers(3, 3)), pb.asarray(numbers(3, 3).astype(np.float64))
    expected = x @ w
    with pb.autocast("float16"):
        np.testing.assert_array_equal((x @ w).numpy(), expected.numpy())
        np.testing.assert_array_equal((x @ w.numpy()).numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.bool_])
def test_the_mask_of_attention_keeps_its_dtype(dtype: Any) -> None:
    """Minus a billion, which stands for "do not look", is too much for float16."""
    hidden = np.triu(np.ones((3, 3)), 1)
    mask = pb.asarray((hidden == 0) if dtype is np.bool_ else (-1e9 * hidden).astype(dtype))
    q, k, v = (pb.asarray(numbers(1, 3, 2, seed=seed)) for seed in range(3))
    expected = pb.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with pb.autocast("float16"):
        out = pb.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert out.dtype == pb.float16
    np.testing.assert_allclose(out.astype(pb.float32).numpy(), expected.numpy(), rtol=0.01, atol=0.005)


def test_integers_and_masks_are_left_alone() -> None:
    with pb.autocast("float16"):
        assert (pb.asarray([[1, 2]]) @ pb.asarray([3, 4])).tolist() == [11]
        assert pb.sum(pb.asarray([True, True])).tolist() == 2


# -- values and gradients ------------------------------------------------------------------------


@halves
def test_results_are_those_of_casting_by_hand(dtype) -> None:
    x, w, b = pb.asarray(numbers(5, 3)), variable(2, 3, seed=1), variable(2, seed=2)
    target = pb.asarray(numbers(5, 2, seed=3))
    with pb.autocast(dtype):
        loss = pb.mse_loss(pb.tanh(pb.linear(x, w, b)), target)
    grads = pb.backward(loss)
    hidden = pb.tanh(pb.linear(x.astype(dtype), w.astype(dtype), b.astype(dtype)))
    by_hand = pb.mse_loss(hidden.astype(pb.float32), target)
    expected = pb.backward(by_hand)
    assert loss.item() == by_hand.item()
    for parameter in (w, b):
        assert grads[parameter].dtype == pb.float32
        np.testing.assert_array_equal(grads[parameter].numpy(), expected[parameter].numpy())


@halves
def test_values_agree_with_torch(dtype) -> None:
    torch = pytest.importorskip("torch")
    x, w, v = numbers(7, 5), numbers(4, 5, seed=1), numbers(3, 4, seed=2)
    ours = [pb.tensor(a, requires_grad=True) for a in (w, v)]
    theirs = [torch.tensor(a, requires_grad=True) for a in (w, v)]
    labels = np.array([0, 1, 2, 0, 1, 2, 0])
    with pb.autocast(dtype):
        logits = pb.linear(pb.gelu(pb.linear(pb.asarray(x), ours[0])), ours[1])
        loss = pb.cross_entropy(logits, labels)
    with torch.autocast("cpu", dtype=getattr(torch, dtype.name)):
        hidden = torch.nn.functional.gelu(torch.nn.functional.linear(torch.tensor(x), theirs[0]))
        expected = torch.nn.functional.linear(hidden, theirs[1])
        their_loss = torch.nn.functional.cross_entropy(expected.float(), torch.tensor(labels))
    tolerance = 0.03 if dtype == pb.bfloat16 else 0.004
    assert dtype == expected.dtype
    np.testing.assert_allclose(logits.detach().astype(pb.float32).numpy(), expected.detach().float(), atol=tolerance)
    loss.backward()
    their_loss.backward()
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad, atol=tolerance)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
@halves
def test_other_devices(device: str, dtype) -> None:
    require(device)
    x, w = pb.asarray(numbers(4, 3), device=device), pb.asarray(numbers(2, 3), device=device)
    w.set_requires_grad(True)
    with pb.autocast(dtype):
        out = pb.linear(x, w)
        loss = (out * out).sum()
        again = pb.linear(x, w)
    assert (out.dtype, loss.dtype, again.dtype) == (dtype, pb.float32, dtype)
    grad = pb.backward(loss)[w]
    assert (grad.dtype, grad.device) == (pb.float32, device)
    exact = pb.backward((pb.linear(x, w) ** 2).sum())[w]
    np.testing.assert_allclose(grad.to_device("numpy").numpy(), exact.to_device("numpy").numpy(), rtol=0.05, atol=0.05)


def test_frozen_parameters_get_no_gradient() -> None:
    frozen, trained = pb.asarray(numbers(3, 3)), variable(3, 3, seed=1)
    with pb.autocast("float16"):
        loss = pb.linear(pb.linear(pb.asarray(numbers(2, 3)), frozen), trained).sum()
    grads = pb.backward(loss)
    assert len(grads) == 1 and trained in grads


def two_layers(w: Any, x: Any) -> Any:
    return (pb.tanh(x @ w) @ w).sum()


def test_backward_inside_the_block_is_the_one_outside() -> None:
    x, w = pb.asarray(numbers(4, 3)), variable(3, 3, seed=1)
    with pb.autocast("float16"):
        loss = two_layers(w, x)
        inside = pb.backward(loss, retain_graph=True)[w]
        recorded = pb.backward(loss, create_graph=True)[w]
    outside = pb.backward(loss)[w]
    np.testing.assert_array_equal(inside.numpy(), outside.numpy())
    np.testing.assert_allclose(recorded.detach().numpy(), outside.numpy(), rtol=1e-2, atol=1e-2)


def test_rules_of_float32_operations_are_not_cast_on_the_way_back() -> None:
    """The gradient of `solve` is made of products, which would lose its digits in half precision."""
    a, b = numbers(3, 3) + 3 * np.eye(3, dtype=np.float32), numbers(3, 2)
    exact = pb.grad(lambda a: pb.sum(pb.linalg.solve(a, pb.asarray(b))))(a)
    variable = pb.tensor(a, requires_grad=True)
    with pb.autocast("float16"):
        loss = pb.sum(pb.linalg.solve(variable, pb.asarray(b)))
        grad = pb.backward(loss, create_graph=True)[variable].detach()
        tangent = pb.jvp(lambda a: pb.linalg.solve(a, pb.asarray(b)), (a,), (np.ones_like(a),))[1]
    np.testing.assert_allclose(grad.numpy(), exact, rtol=1e-5, atol=1e-6)
    expected = pb.jvp(lambda a: pb.linalg.solve(a, pb.asarray(b)), (a,), (np.ones_like(a),))[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-5, atol=1e-6)


def test_transforms() -> None:
    x, w, direction = numbers(4, 3), numbers(3, 3, seed=1), numbers(3, 3, seed=2)
    cast = pb.autocast("float16")(two_layers)
    exact = pb.grad(two_layers)(w, x)
    found = pb.grad(cast)(w, x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=0.02, atol=0.02)
    _, along = pb.jvp(lambda w: cast(w, x), (w,), (direction,))
    np.testing.assert_allclose(along, np.sum(exact * direction), rtol=0.02)
    second = pb.hvp(lambda w: cast(w, x), (w,), (direction,))
    np.testing.assert_allclose(second, pb.hvp(lambda w: two_layers(w, x), (w,), (direction,)), rtol=0.1, atol=0.1)
    with pb.autocast("float16"):
        np.testing.assert_array_equal(pb.grad(two_layers)(w, x), found)


def test_writing_in_place_keeps_the_dtype() -> None:
    half, single = pb.asarray(numbers(3, 3), dtype=pb.float16), pb.asarray(numbers(3, 3))
    shared = single.clone(), half.clone()  # these writes copy, those below do not
    with pb.autocast("float16"):
        single @= single
        half **= 2
        half += 1.0
        half[0] = single[0]
        other = pb.asarray(numbers(3, 3))
        other @= other
    assert (single.dtype, half.dtype) == (pb.float32, pb.float16)
    np.testing.assert_array_equal(single.numpy(), other.numpy())
    np.testing.assert_array_equal(shared[0].numpy(), numbers(3, 3))


def test_custom_operations_get_what_they_were_given() -> None:
    seen = []

    @pb.custom_op
    def doubled(x):
        seen.append(x.dtype)
        return 2 * x

    with pb.autocast("float16"):
        doubled(pb.asarray(numbers(2)))
        doubled(pb.asarray(numbers(2), dtype=pb.float16))
    assert seen == [np.float32, np.float16]


def test_rules_of_custom_operations_are_not_cast() -> None:
    seen = []

    def turned(g: pb.Tensor) -> pb.Tensor:
        result = g @ pb.ones((3, 3))
        seen.append(result.dtype)
        return result

    turn = pb.custom_op(lambda x: x @ np.ones((3, 3), np.float32), x=turned, jvp=lambda xs, ts: turned(ts[0]))
    x = variable(3, 3)
    with pb.autocast("float16"):
        pb.backward(turn(x).sum())
        pb.jvp(turn, (numbers(3, 3),), (numbers(3, 3),))
    assert seen == [pb.float32, pb.float32]


def test_products_with_quantized_weights_keep_their_precision() -> None:
    weight = pb.quantize(pb.asarray(numbers(32, 8)), "int8", axis=1)
    x = variable(2, 32)
    expected = x @ weight
    with pb.autocast("float16"):
        out = x @ weight
    np.testing.assert_array_equal(out.detach().numpy(), expected.detach().numpy())
    assert pb.backward(out.sum())[x].dtype == pb.float32


# -- blocks --------------------------------------------------------------------------------------


def product_dtype() -> Any:
    return (pb.ones((2, 2)) @ pb.ones((2, 2))).dtype


@needs_ml_dtypes
def test_blocks_nest() -> None:
    before = modes.current()
    assert product_dtype() == pb.float32
    with pb.autocast("float16"):
        with pb.autocast("bfloat16"):
            assert product_dtype() == pb.bfloat16
            with pb.autocast(enabled=False):
                assert product_dtype() == pb.float32
                with pb.autocast(pb.float16):
                    assert product_dtype() == pb.float16
        with pb.no_grad():
            assert product_dtype() == pb.float16
        assert product_dtype() == pb.float16
    assert modes.current() is before


def test_one_object_can_be_entered_again() -> None:
    block = pb.autocast("float16")
    for _ in range(2):
        with block:
            with block:
                assert product_dtype() == pb.float16
            assert product_dtype() == pb.float16
    assert product_dtype() == pb.float32


def test_an_error_leaves_the_block() -> None:
    with pytest.raises(pb.ShapeError), pb.autocast("float16"):
        pb.ones((2, 2)) @ pb.ones((3, 3))
    assert product_dtype() == pb.float32


@needs_ml_dtypes
def test_as_a_decorator() -> None:
    @pb.autocast("bfloat16")
    def inside():
        """Its docstring."""
        return product_dtype()

    assert inside() == pb.bfloat16 and inside.__doc__ == "Its docstring."
    assert pb.autocast(enabled=False)(product_dtype)() == pb.float32


def test_other_threads_are_not_affected() -> None:
    found = []
    with pb.autocast("float16"):
        thread = threading.Thread(target=lambda: found.append(product_dtype()))
        thread.start()
        thread.join()
    assert found == [pb.float32]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", pb.complex64])
def test_only_half_precisions_can_be_asked_for(dtype) -> None:
    with pytest.raises(pb.DtypeError, match="float16 or bfloat16"):
        pb.autocast(dtype)


# -- a parameter is converted once per block -----------------------------------------------------


def halved(tensor: pb.Tensor) -> Any:
    """The array that a product inside the block computes with."""
    converted = modes.current().autocast.cast(OPERATIONS["matmul"], (tensor, tensor), ())[0]
    assert converted.requires_grad is modes.is_recording()
    return converted._raw


@needs_ml_dtypes
@pytest.mark.plain_graph
def test_a_parameter_is_converted_once() -> None:
    w = variable(3, 3)
    with pb.autocast("float16"):
        first = halved(w)
        with pb.autocast("float16"), pb.no_grad():
            assert halved(w) is first
        with pb.autocast("bfloat16"):
            assert halved(w).dtype == pb.bfloat16
        assert halved(w).dtype == pb.float16
    with pb.autocast("float16"):
        assert halved(w) is not first


WRITES: dict[str, Callable[[pb.Tensor], Any]] = {
    "in place": lambda w: w.__imul__(0.0),
    "by a tensor": lambda w: w.__isub__(w.detach()),
    "an element": lambda w: w.__setitem__(..., 0.0),
    "the raw array": lambda w: w.data_mut().fill(0.0),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("held", [False, True], ids=["alone", "with a clone"])
def test_a_write_inside_the_block_is_seen(name: str, held: bool) -> None:
    x, w = pb.ones((2, 3)), variable(3, 3)
    clone = w.clone() if held else None
    with pb.autocast("float16"):
        before = (x @ w).detach()
        with pb.no_grad():
            WRITES[name](w)
        assert pb.sum(pb.abs(x @ w)).item() == 0
        if clone is not None:
            np.testing.assert_array_equal((x @ clone).detach().numpy(), before.numpy())


def test_a_write_through_an_array_that_was_taken_before_is_seen() -> None:
    x, w = pb.ones((2, 3)), variable(3, 3)
    raw = w.data_mut()
    with pb.autocast("float16"):
        assert pb.sum(pb.abs(x @ w)).item() != 0
        raw[...] = 0
        assert pb.sum(pb.abs(x @ w)).item() == 0


def test_losses_that_share_a_parameter_are_walked_one_by_one() -> None:
    x, w = pb.asarray(numbers(2, 3)), variable(3, 3)
    with pb.autocast("float16"):
        losses = [(x @ w).sum(), (2 * (x @ w)).sum()]
        first, second = (pb.backward(loss)[w] for loss in losses)
    np.testing.assert_array_equal(2 * first.numpy(), second.numpy())


def test_gradients_of_many_uses_are_added_up_in_float32() -> None:
    w = pb.tensor([[1.0]], requires_grad=True)
    with pb.autocast("float16"):
        one = pb.ones((1, 1))
        loss = pb.sum(pb.concat([one @ w for _ in range(3000)]))
    assert pb.backward(loss)[w].item() == 3000  # float16 cannot count beyond 2048


@pytest.mark.plain_graph
def test_nothing_is_kept_alive() -> None:
    w = variable(3, 3)
    with pb.autocast("float16"):
        old = weakref.ref(w._raw)
        pb.ones((2, 3)) @ w
        with pb.no_grad():
            w *= 2.0
        pb.ones((2, 3)) @ w
        gc.collect()
        assert old() is None  # a training loop inside one block does not pile up old weights
        dead = weakref.ref(w._raw)
        del w
        gc.collect()
        assert dead() is None
    w = variable(3, 3)
    with pb.autocast("float16"):
        pb.ones((2, 3)) @ w
    address = w._raw.ctypes.data
    with pb.no_grad():
        w *= 2.0
    assert w._raw.ctypes.data == address  # written in place again after the block
