from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.optim import clip_global_norm, clip_value

from ..backends.installed import optional, require

torch = optional("torch")

KINDS = ["parameters", "Gradients", "gradients"]
SHAPES = ((3, 5), (7,), ())


def gradients_in(kind, values):
    """What to give to the function under test, and a function that reads the gradients afterwards."""
    tensors = [pb.tensor(np.ones_like(value), requires_grad=True) for value in values]
    if kind == "gradients":
        given = [pb.tensor(value) for value in values]
        return given, lambda: given
    if kind == "parameters":
        for tensor, value in zip(tensors, values):
            tensor.grad = value
        return iter(tensors), lambda: [tensor.grad for tensor in tensors]
    grads = pb.Gradients()
    for tensor, value in zip(tensors, values):
        grads[tensor] = value
    return grads, lambda: [grads[tensor] for tensor in tensors]


def random_values(scale=1.0, dtype=np.float64):
    rng = np.random.default_rng(0)
    return [np.asarray(scale * rng.standard_normal(shape), dtype) for shape in SHAPES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_norm", [0.5, 1e3])
def test_norm_and_gradients_are_pytorchs(kind, max_norm):
    values = random_values()
    given, read = gradients_in(kind, values)
    reference = [torch.ones(value.shape, dtype=torch.float64, requires_grad=True) for value in values]
    for parameter, value in zip(reference, values):
        parameter.grad = torch.tensor(value)
    norm = clip_global_norm(given, max_norm)
    assert norm.item() == pytest.approx(torch.nn.utils.clip_grad_norm_(reference, max_norm).item(), rel=1e-12)
    for ours, theirs in zip(read(), reference):
        np.testing.assert_allclose(ours.numpy(), theirs.grad.numpy(), rtol=2e-6)  # PyTorch adds 1e-6 to the norm


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_right_for_very_large_and_very_small_values(kind, scale):
    values = random_values(scale, np.float32)
    expected = np.sqrt(sum(np.sum(value.astype(np.float64) ** 2) for value in values))
    given, read = gradients_in(kind, values)
    assert clip_global_norm(given, scale).item() == pytest.approx(expected, rel=1e-5)
    total = np.sqrt(sum(np.sum(g.numpy().astype(np.float64) ** 2) for g in read()))
    assert total == pytest.approx(scale, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_clip_value(kind):
    values = random_values()
    given, read = gradients_in(kind, values)
    assert clip_value(given, 0.5) is None
    for g, value in zip(read(), values):
        np.testing.assert_array_equal(g.numpy(), np.clip(value, -0.5, 0.5))


def test_frozen_parameters_and_those_without_gradient_are_left_alone():
    trained, frozen, fresh = (pb.tensor([30.0, 40.0], requires_grad=True) for _ in range(3))
    for tensor in (trained, frozen):
        tensor.grad = pb.tensor([3.0, 4.0])
    frozen.set_requires_grad(False)
    assert clip_global_norm([trained, frozen, fresh], 1.0).item() == 5.0
    assert frozen.grad.tolist() == [3.0, 4.0] and fresh.grad is None
    assert clip_global_norm([frozen], 1.0).item() == 0.0
    assert all([tensor.tolist() == [30.0, 40.0] for tensor in (trained, frozen, fresh)])


def test_a_parameter_named_twice_is_clipped_once():
    w = pb.tensor([1.0, 1.0], requires_grad=True)
    w.grad = pb.tensor([3.0, 4.0])
    assert clip_global_norm([w, w], 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_on_other_backends(device):
    require(device)
    w = pb.tensor([1.0, 1.0], device=device, requires_grad=True)
    w.grad = pb.tensor([3.0, 4.0], device=device)
    assert clip_global_norm([w], 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.tolist(), [0.6, 0.8], rtol=1e-6)


def test_refuses_what_is_no_gradient():
    with pytest.raises(pb.DtypeError, match="ndarray"):
        clip_global_norm([np.ones(3)], 1.0)
    for function in (clip_global_norm, clip_value):
        with pytest.raises(ValueError, match="positive"):
            function([pb.tensor([1.0])], 0.0)
