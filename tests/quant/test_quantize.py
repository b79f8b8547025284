"""Quantized models: what is kept, what they compute, and that nothing happens where something does not fit."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import BFLOAT16, needs_llvmlite, require

X = np.random.default_rng(0).standard_normal((3, 5, 6)).astype(np.float32)
DEVICES = ["numpy", "torch:cpu", "jax:cpu"]
SCHEMES = ["int8", "int4", "nf4", "fp8"]


def perceptron(dtype: Any = None) -> Any:
    with pb.random.using(0):
        return nn.Sequential(nn.Linear(6, 9, dtype=dtype), nn.Tanh(), nn.Linear(9, 4, bias=False, dtype=dtype))


def expanded(model: Any) -> Any:
    """A plain, frozen model with the values that the quantized weights of another one stand for."""
    plain = perceptron().freeze()
    for name, layer in model.named_children():
        if isinstance(layer, pb.quant.QuantizedLinear):
            with pb.no_grad():
                plain[int(name)].weight[...] = pb.asarray(layer.weight.numpy())
                if layer.bias is not None:
                    plain[int(name)].bias[...] = pb.asarray(layer.bias.detach().numpy())
    return plain


# -- what is kept -----------------------------------------------------------------------------------


def test_weights_are_parts_and_layers_stay_the_same_objects() -> None:
    model = perceptron()
    first, weight = model[0], model[0].weight.detach().numpy()
    assert pb.quant.quantize(model) is model and model[0] is first and isinstance(first, nn.Linear)
    assert {name: (t.shape, t.dtype.name) for name, t in model.named_buffers()} == {
        "0.int8_codes": ((9, 6), "int8"), "0.int8_scales": ((9, 1), "float32"),
        "2.int8_codes": ((4, 9), "int8"), "2.int8_scales": ((4, 1), "float32"),
    }  # fmt: skip
    assert [name for name, _ in model.named_parameters()] == ["0.bias"] and not first.bias.requires_grad
    largest = np.abs(weight).max(axis=1, keepdims=True)
    assert (np.abs(first.weight.numpy() - weight) <= largest / 127 / 2 * 1.0001).all()
    np.testing.assert_array_equal(np.abs(first.int8_codes.numpy()).max(axis=1), 127)


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_weights_of_half_precision_have_scales_of_float32(dtype: Any) -> None:
    model = pb.quant.quantize(perceptron(dtype))
    assert model[0].int8_scales.dtype == pb.float32
    out = model(pb.asarray(X).astype(dtype))
    assert out.dtype == pb.asarray([], dtype=dtype).dtype
    np.testing.assert_allclose(out.astype("float32").numpy(), expanded(model)(X).numpy(), atol=0.02)


def test_rows_of_zeros_and_huge_rows() -> None:
    weight = pb.asarray(np.array([[0.0, 0.0], [3e38, -1e30], [1e-30, 2e-30]], np.float32))
    layer = pb.quant.QuantizedLinear(pb.quant.packed(weight))
    np.testing.assert_allclose(layer.weight.numpy(), weight.numpy(), rtol=0.01, atol=0.0 + 3e38 / 254)
    assert (layer.weight.numpy()[0] == 0).all()


def test_state_is_saved_and_loaded_and_copied() -> None:
    model = pb.quant.quantize(perceptron())
    expected = model(X).numpy()
    other = pb.quant.quantize(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4, bias=False)))
    other.load_state_dict(model.state_dict())
    copy = pickle.loads(pickle.dumps(model))
    assert (other(X).numpy() == expected).all() and (copy(X).numpy() == expected).all()


@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16])
def test_plain_layers_again(dtype: Any) -> None:
    model = pb.quant.quantize(perceptron(dtype), skip=["2"])
    values = model[0].weight
    assert values.dtype == dtype == model[0].bias.dtype
    assert pb.quant.dequantize(pb.quant.dequantize(model)) is model
    assert type(model[0]) is nn.Linear and bool((model[0].weight == values).all())
    assert [(name, p.requires_grad) for name, p in model.named_parameters()] == [
        ("0.bias", False), ("0.weight", False), ("2.weight", False),
    ]  # fmt: skip
    assert not list(model.named_buffers()) and "form" not in vars(model[0])


@pytest.mark.parametrize("device", DEVICES[1:])
def test_models_move(device: str) -> None:
    require(device)
    model = pb.quant.quantize(perceptron())
    expected = model(X).numpy()
    moved = model.to_device(device)
    assert moved[0].int8_codes.device == device
    np.testing.assert_allclose(moved(pb.asarray(X, device=device)).numpy(), expected, atol=1e-6)


def test_skipped_layers_stay_as_they_are() -> None:
    model = perceptron()
    weight = model[2].weight
    pb.quant.quantize(model, skip=["2"])
    assert type(model[2]) is nn.Linear and model[2].weight is weight and not weight.requires_grad


def test_the_head_of_a_language_model_stays() -> None:
    config = pb.models.DecoderConfig(
        "qwen3", vocab_size=20, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=4,
    )  # fmt: skip
    model = pb.quant.quantize(pb.models.qwen3(config))
    kinds = {name: type(module).__name__ for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert kinds.pop("lm_head") == "Linear" and set(kinds.values()) == {"QuantizedLinear"} and len(kinds) == 14


# -- what is computed -------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
@pytest.mark.parametrize("device", DEVICES)
def test_values_and_gradients_are_those_of_the_expanded_weights(device: str, compiled: bool, scheme: str) -> None:
    require(device)
    quantized = pb.quant.quantize(perceptron(), scheme)
    plain = expanded(quantized).to_device(device)
    quantized = quantized.to_device(device)

    def found(model: Any) -> Any:
        def loss(x: Any) -> Any:
            return pb.sum(pb.sin(model(x)))

        function = pb.value_and_grad(loss)
        value, grad = (pb.compile(function) if compiled else function)(pb.asarray(X, device=device))
        return value.numpy(), grad.numpy()

    for one, other in zip(found(quantized), found(plain)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_derivatives_of_second_order_and_forward() -> None:
    model = pb.quant.quantize(perceptron())
    plain = expanded(model)
    x, v = pb.asarray(X[0, 0]), pb.asarray(X[0, 1])
    np.testing.assert_allclose(
        pb.hessian(lambda x: pb.sum(model(x) ** 2))(x).numpy(),
        pb.hessian(lambda x: pb.sum(plain(x) ** 2))(x).numpy(),
        atol=1e-5,
    )
    for one, other in zip(pb.jvp(model, (x,), (v,)), pb.jvp(plain, (x,), (v,))):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=1e-5)


def test_a_bias_may_be_learned() -> None:
    model = pb.quant.quantize(perceptron())
    model[0].bias.set_requires_grad(True)
    found = pb.backward(pb.sum(model(X) ** 2))[model[0].bias].numpy()
    plain = expanded(model)
    plain[0].bias.set_requires_grad(True)
    np.testing.assert_allclose(found, pb.backward(pb.sum(plain(X) ** 2))[plain[0].bias].numpy(), rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_products_in_half_precision(scheme: str, device: str) -> None:
    """Those of the values rounded once; also under autocast, which leaves the scales alone."""
    require(device, "bfloat16")
    with pb.random.using(0):
        model = nn.Sequential(nn.Linear(70, 5, bias=False))
    layer = pb.quant.quantize(model, scheme)[0].to_device(device)
    x = pb.asarray(np.random.default_rng(1).standard_normal((4, 70)).astype(np.float32), device=device)
    half = x.astype("bfloat16")
    found = layer(half)
    assert found.dtype == pb.bfloat16
    expected = half.astype("float32").numpy() @ layer.weight.numpy().T
    np.testing.assert_allclose(found.astype("float32").numpy(), expected, atol=0.02)
    with pb.autocast("bfloat16"):
        assert bool((layer(x) == found).all())


@pytest.mark.plain_graph
@pytest.mark.parametrize("scheme", SCHEMES)
def test_expanded_weights_are_not_kept(scheme: str) -> None:
    with pb.random.using(0):
        model = pb.quant.quantize(nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(3)]), scheme)
    x = pb.ones((2, 512)).set_requires_grad(True)
    model(x)  # imports and native code
    tracemalloc.start()
    out = model(x)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < 100_000 and out.requires_grad


@needs_llvmlite
@pytest.mark.parametrize("scheme", SCHEMES)
def test_expanded_weights_are_not_kept_when_compiled(scheme: str) -> None:
    """At any time there is the memory of one of them at most, though each is read forward and backward."""
    with pb.random.using(0):
        model = pb.quant.quantize(nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)]), scheme)
    step = pb.compile(pb.value_and_grad(lambda x: pb.sum(model(x) ** 2)))
    step(pb.ones((8, 256)))
    one = 256 * 256 * 4
    assert one < step.memory["arena"] < 1.6 * one


def test_parts_are_constants() -> None:
    layer = pb.quant.quantize(perceptron())[0]
    layer.int8_scales.set_requires_grad(True)
    with pytest.raises(pb.GradientError, match="a part of a quantized weight requires a gradient"):
        layer(X)
    pb.peft.add_lora(model := pb.quant.quantize(perceptron()), pb.peft.LoraConfig(targets="0"))
    model[0].int8_scales.set_requires_grad(True)
    with pytest.raises(pb.GradientError, match="a part of a quantized weight requires a gradient"):
        model(X)


def test_another_weight_leaves_nothing_of_the_first() -> None:
    layer = pb.quant.quantize(perceptron(), "int4")[0]
    layer.hold(pb.quant.packed(layer.weight, "nf4"))
    names = [name for name, _ in layer.named_buffers()]
    assert names == ["nf4_codes", "nf4_scale_codes", "nf4_scale_steps", "nf4_scale_lows"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_states_of_other_shapes_and_schemes_are_refused(scheme: str) -> None:
    made = lambda inputs, outputs, how: pb.quant.quantize(nn.Sequential(nn.Linear(inputs, outputs, bias=False)), how)
    model = made(64, 128, scheme)
    before = model[0].weight.numpy()
    with pytest.raises(pb.ShapeError):
        model.load_state_dict(made(128, 64, scheme).state_dict())
    for other in SCHEMES:
        if other != scheme:
            differences = model.load_state_dict(made(64, 128, other).state_dict(), strict=False)
            assert len(differences.missing) == len(list(model.named_buffers())) and differences.unexpected
    np.testing.assert_array_equal(model[0].weight.numpy(), before)


@pytest.mark.parametrize("dtype", [pb.float16, pb.float64, BFLOAT16])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_converting_leaves_the_parts_alone(scheme: str, dtype: Any) -> None:
    model = pb.quant.quantize(perceptron(), scheme)
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            with pb.no_grad():
                parameter *= 1e-6
    exact = model[0].weight.numpy()
    model.astype(dtype)
    assert model[0].weight.dtype == dtype == model[0].bias.dtype
    assert model(pb.asarray(X).astype(dtype)).dtype == dtype
    plain = pb.quant.dequantize(model)
    assert plain[0].weight.dtype == dtype
    np.testing.assert_allclose(plain[0].weight.astype("float64").numpy(), exact, rtol=0.01, atol=1e-12)


def test_what_is_skipped_is_looked_at() -> None:
    model = perceptron()
    pb.quant.quantize(model, skip="2")
    assert type(model[2]) is nn.Linear and type(model[0]) is pb.quant.QuantizedLinear
    for skip in ("3", ["2", "first"]):
        with pytest.raises(pb.ConfigurationError, match=r"no linear layer of Sequential matches .* in skip"):
            pb.quant.quantize(perceptron(), skip=skip)


# -- what does not fit ------------------------------------------------------------------------------


class OwnLinear(nn.Linear):
    """A layer that may compute something else than its base class."""


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: nn.Sequential(nn.ReLU()), {}, "Sequential has no linear layers"),
        (lambda: nn.Sequential(nn.Linear(2, 2), OwnLinear(2, 2)), {}, "'1' is a OwnLinear"),
        (lambda: pb.quant.quantize(perceptron()), {}, "'0' is a QuantizedLinear"),
        (perceptron, {"scheme": "int3"}, "unknown scheme 'int3'; known: 'int8', 'int4', 'nf4', 'fp8'"),
        (perceptron, {"skip": ["*"]}, r"no linear layers beside \*"),
    ],
)
def test_models_that_do_not_fit(model: Any, options: Any, message: str) -> None:
    made = model()
    before = {name: type(module) for name, module in made.named_modules()}
    learned = [p.requires_grad for p in made.parameters()]
    with pytest.raises((pb.ConfigurationError, pb.DtypeError), match=message):
        pb.quant.quantize(made, **options)
    assert {name: type(module) for name, module in made.named_modules()} == before
    assert [p.requires_grad for p in made.parameters()] == learned


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_named_and_nothing_is_changed(bad: float) -> None:
    model = perceptron()
    with pb.no_grad():
        model[2].weight[1, 3] = bad
    with pytest.raises(ValueError, match=r"^2: .*NaN or infinity"):
        pb.quant.quantize(model)
    assert all(type(model[i]) is nn.Linear and model[i].weight.requires_grad for i in (0, 2))


def test_inputs_that_do_not_fit() -> None:
    layer = pb.quant.quantize(perceptron())[0]
    with pytest.raises(pb.ShapeError, match=r"x \(2, 5\), weight \(9, 6\) and bias \(9,\) do not fit"):
        layer(np.zeros((2, 5), np.float32))
    with pytest.raises(pb.DtypeError, match="expected floating-point numbers, got int64"):
        layer(np.zeros((2, 6), np.int64))
    with pytest.raises(TypeError, match="a quantized weight is not drawn"):
        layer.reset_parameters()


@needs_llvmlite
def test_models_are_not_quantized_in_a_trace() -> None:
    model = perceptron()

    @pb.compile
    def step(x: Any) -> Any:
        return pb.quant.quantize(model)(x)

    with pytest.raises(pb.TraceError, match="Do it before the call"):
        step(pb.asarray(X))
