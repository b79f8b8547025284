"""Training that knows of quantization: what is rounded, where gradients go, and what is left when it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import BFLOAT16, needs_llvmlite, require

SCHEMES = ["int8", "int4", "nf4", "fp8"]
X = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
Y = np.sin(X[:, :1] * 2) + X[:, 1:2]


def perceptron() -> Any:
    with pb.random.using(0):
        return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("dtype", [pb.float32, pb.float64, BFLOAT16])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_are_rounded_and_gradients_pass(scheme: str, dtype: Any, device: str) -> None:
    require(device, dtype.name)
    x = pb.asarray(X, device=device).astype(dtype).set_requires_grad(True)
    found = pb.quant.fake_quantize(x, scheme)
    assert found.dtype == dtype and found.device == device
    wide = x.detach().astype("float32") if dtype == pb.bfloat16 else x.detach()
    np.testing.assert_array_equal(
        found.detach().astype("float64").numpy(),
        pb.quantize(wide, scheme).dequantize().astype(dtype).astype("float64").numpy(),
    )
    g = pb.asarray(np.arange(240.0).reshape(40, 6), device=device).astype(dtype)
    assert bool((pb.backward(found, g)[x] == g).all())


def test_derivatives_of_any_kind_pass() -> None:
    x, v = pb.asarray(X[0]), pb.asarray(X[1])
    rounded = pb.quantize(x, "int4", axis=None).dequantize()
    loss = lambda t: pb.sum(pb.exp(pb.quant.fake_quantize(t, "int4")))
    _, tangent = pb.jvp(loss, (x,), (v,))
    np.testing.assert_allclose(tangent.item(), (rounded.exp() * v).sum().item(), rtol=1e-6)
    np.testing.assert_allclose(pb.hessian(loss)(x).numpy(), np.diag(np.exp(rounded.numpy())), rtol=1e-6)


@needs_llvmlite
@pytest.mark.parametrize("scheme", SCHEMES)
def test_compiled_it_is_the_same(scheme: str) -> None:
    function = pb.value_and_grad(lambda t: pb.sum(pb.sin(pb.quant.fake_quantize(t, scheme))))
    (value, grad), (again, other) = function(pb.asarray(X)), pb.compile(function)(pb.asarray(X))
    np.testing.assert_allclose(value.item(), again.item(), rtol=1e-5)
    np.testing.assert_allclose(grad.numpy(), other.numpy(), atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_numbers_that_are_not_finite_stay(scheme: str) -> None:
    x = X.copy()
    x[1, 2], x[3, 4] = np.nan, -np.inf
    found = pb.quant.fake_quantize(x, scheme).numpy()
    assert np.isnan(found[1, 2]) and found[3, 4] == -np.inf


@pytest.mark.parametrize("scheme", SCHEMES)
def test_learning_with_it_leaves_less_error_than_rounding_afterwards(scheme: str) -> None:
    """And quantizing what was learned changes nothing of what it computes."""

    def trained(model: Any) -> Any:
        optimizer = pb.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(300):
            optimizer.step(pb.backward(pb.mse_loss(model(X), Y)))
        return model

    error = lambda model: pb.mse_loss(model(X), Y).item()
    aware = trained(pb.quant.prepare(perceptron(), scheme))
    learned = aware(X).detach().numpy()
    error_of_aware = error(pb.quant.quantize(aware, scheme))
    np.testing.assert_allclose(aware(X).numpy(), learned, atol=1e-5)
    assert all(type(layer) is pb.quant.QuantizedLinear for layer in (aware[0], aware[2]))
    afterwards = error(pb.quant.quantize(trained(perceptron()), scheme))
    if scheme == "int4":
        assert error_of_aware < 0.5 * afterwards
    assert error_of_aware < 0.05


def test_what_does_not_fit() -> None:
    with pytest.raises(pb.DtypeError, match="unknown scheme 'int3'; known: 'int8', 'int4', 'nf4', 'fp8'"):
        pb.quant.prepare(perceptron(), "int3")
    with pytest.raises(pb.DtypeError, match="unknown scheme 'int3'"):
        pb.quant.fake_quantize(X, "int3")
    with pytest.raises(pb.DtypeError, match="expected floating-point numbers, got int64"):
        pb.quant.fake_quantize(np.arange(3))
    with pytest.raises(pb.ShapeError, match="axis 2 is out of range"):
        pb.quant.fake_quantize(X, axis=2)
    with pytest.raises(pb.ConfigurationError, match="'0' was prepared for 'int4', not for 'int8'"):
        pb.quant.quantize(pb.quant.prepare(perceptron(), "int4"), "int8")
    with pytest.raises(pb.ConfigurationError, match="'0' is a QuantizedLinear"):
        pb.quant.prepare(pb.quant.quantize(perceptron()))


def test_straight_through_takes_what_fits() -> None:
    with pytest.raises(pb.ShapeError, match=r"x has shape \(2,\) and value \(3,\)"):
        pb.straight_through(pb.zeros(2), pb.zeros(3))
    with pytest.raises(pb.DtypeError, match="x is float32 and value float64"):
        pb.straight_through(pb.zeros(2, dtype="float32"), pb.zeros(2, dtype="float64"))
    assert pb.quant.fake_quantize(np.zeros((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_straight_through_with_a_value_or_an_input_that_all_examples_share(device: str) -> None:
    require(device, "float32")
    many = pb.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)
    one = pb.asarray(np.arange(3, dtype=np.float32), device=device)
    mapped = pb.vmap(pb.straight_through, in_axes=(0, None))(many, one)
    assert mapped.shape == (2, 3) and bool((mapped == one).all())
    gradient = pb.grad(lambda u: (pb.vmap(lambda x: pb.straight_through(x, one) ** 2)(u) * many).sum())(many)
    np.testing.assert_array_equal(gradient.to_device("numpy"), (2 * one * many).to_device("numpy"))
    gradient = pb.grad(lambda u: (pb.vmap(lambda y: pb.straight_through(u, y) ** 2)(many)).sum())(one)
    np.testing.assert_array_equal(gradient.to_device("numpy"), (2 * many).sum(axis=0).to_device("numpy"))


def test_deviations_are_those_of_the_weights() -> None:
    reference = perceptron()
    weight = reference[0].weight.detach().numpy().astype(np.float64)
    for scheme in SCHEMES:
        model = pb.quant.quantize(perceptron(), scheme, skip=["2"])
        found = pb.quant.deviations(model, reference)
        error = model[0].weight.numpy() - weight
        assert list(found) == ["0"]
        np.testing.assert_allclose(found["0"].relative, np.linalg.norm(error) / np.linalg.norm(weight), rtol=1e-6)
        np.testing.assert_allclose(found["0"].largest, np.abs(error).max(), rtol=1e-6)
        assert found["0"].bits == 8 * sum(p.nbytes for p in model[0].stored_weight.parts) / weight.size
    with pytest.raises(pb.ConfigurationError, match="Sequential has no quantized layers"):
        pb.quant.deviations(reference, reference)
    with pytest.raises(pb.ConfigurationError, match="the reference has no linear layer '0'"):
        pb.quant.deviations(model, nn.Sequential(nn.ReLU()))
    with pytest.raises(pb.ShapeError, match=r"'0' has shape \(32, 6\), and \(2, 2\) in the reference"):
        pb.quant.deviations(model, nn.Sequential(nn.Linear(2, 2)))
