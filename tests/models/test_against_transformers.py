"""Llama 3, Qwen2 and Qwen3 compute what `transformers` computes: logits, losses and every parameter's gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require
from . import peers

torch = optional("torch")
transformers = optional("transformers")
DEVICES = ["numpy", "torch:cpu", "jax:cpu"]
TOKENS = np.random.default_rng(0).integers(0, 97, (3, 11))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", peers.MODELS)
def test_logits(name: str, device: str, tmp_path: Path) -> None:
    require(device)
    peer = peers.make(name, tmp_path)
    with torch.no_grad():
        expected = peer(torch.tensor(TOKENS)).logits.numpy()
    model = pb.models.load(tmp_path, device)
    assert model.model.norm.weight.device == device
    with pb.no_grad():
        np.testing.assert_allclose(
            model(pb.asarray(TOKENS, device=device)).numpy(), expected, atol=1e-5 * np.abs(expected).max()
        )


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["qwen3", "qwen3 tied", "qwen2", "llama"])
def test_gradients(name: str, device: str, compiled: bool, tmp_path: Path) -> None:
    require(device)
    labels = np.where(np.random.default_rng(1).random(TOKENS.shape) < 0.3, -100, TOKENS)
    peer = peers.make(name, tmp_path)
    expected = peer(torch.tensor(TOKENS), labels=torch.tensor(labels)).loss
    expected.backward()
    model = pb.models.load(tmp_path, device)

    def step(tokens: Any, labels: Any) -> Any:
        loss = model.loss(tokens, labels)
        return loss, pb.backward(loss)

    loss, grads = (pb.compile(step) if compiled else step)(
        pb.asarray(TOKENS, device=device), pb.asarray(labels, device=device)
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    theirs = dict(peer.named_parameters())
    assert {name for name, _ in model.named_parameters()} == set(theirs)
    for key, parameter in model.named_parameters():
        want = theirs[key].grad.numpy()
        np.testing.assert_allclose(grads[parameter].numpy(), want, atol=1e-4 * np.abs(want).max(), err_msg=key)


def test_losses_of_half_precision_are_added_up_in_single(tmp_path: Path) -> None:
    require("torch")
    peers.make("qwen3", tmp_path)
    model = pb.models.load(tmp_path, "torch:cpu", "bfloat16")
    loss = model.loss(pb.asarray(TOKENS, device="torch:cpu"), reduction="sum")
    assert loss.dtype == pb.float32
    assert loss.item() == pytest.approx(model.loss(pb.asarray(TOKENS, device="torch:cpu")).item() * 30, rel=1e-5)
