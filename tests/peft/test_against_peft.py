"""Adapted models compute what `peft` computes: logits, losses and the gradients of every adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require
from . import peers

torch = optional("torch")
peft = optional("peft")
DEVICES = ["numpy", "torch:cpu", "jax:cpu"]
TOKENS = np.random.default_rng(0).integers(0, 97, (3, 11))


def loss_and_gradients(model: Any, device: str, compiled: bool = False) -> tuple[float, dict[str, Any]]:
    learned = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}

    def step(tokens: Any) -> Any:
        loss = model.loss(tokens)
        grads = pb.backward(loss)
        return loss, [grads[parameter] for parameter in learned.values()]

    loss, found = (pb.compile(step) if compiled else step)(pb.asarray(TOKENS, device=device))
    return loss.item(), {name: gradient.numpy() for name, gradient in zip(learned, found)}


def assert_close(found: Any, expected: Any, tolerance: float, name: str = "") -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(), err_msg=name)


#: A program of so many layers cannot stay within no bytes at all.
COMPILED = pytest.param(True, marks=pytest.mark.plain_graph, id="compiled")


@pytest.mark.parametrize("compiled", [pytest.param(False, id="eager"), COMPILED])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", peers.KINDS)
def test_logits_and_gradients(kind: str, device: str, compiled: bool, tmp_path: Path) -> None:
    require(device)
    peer = peers.make("qwen2", tmp_path / "base", kind)
    peer.save_pretrained(tmp_path / "adapter")
    expected = peer(torch.tensor(TOKENS), labels=torch.tensor(TOKENS))
    expected.loss.backward()
    model = pb.peft.load_adapter(pb.models.load(tmp_path / "base", device), tmp_path / "adapter")
    with pb.no_grad():
        assert_close(model(pb.asarray(TOKENS, device=device)).numpy(), expected.logits.detach().numpy(), 1e-5)
    loss, gradients = loss_and_gradients(model, device, compiled)
    assert loss == pytest.approx(expected.loss.item(), rel=1e-5)
    theirs = {peers.own_name(name): p.grad.numpy() for name, p in peer.named_parameters() if p.requires_grad}
    assert gradients.keys() == theirs.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], 1e-4, name)


@pytest.mark.parametrize("name", ["qwen3", "qwen3 tied", "llama biased"])
def test_other_models(name: str, tmp_path: Path) -> None:
    peer = peers.make(name, tmp_path / "base", "dora", target_modules="all-linear")
    peer.save_pretrained(tmp_path / "adapter")
    expected = peer(torch.tensor(TOKENS), labels=torch.tensor(TOKENS)).loss
    expected.backward()
    model = pb.peft.load_adapter(pb.models.load(tmp_path / "base"), tmp_path / "adapter")
    loss, gradients = loss_and_gradients(model, "numpy")
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    theirs = {peers.own_name(key): p.grad.numpy() for key, p in peer.named_parameters() if p.requires_grad}
    assert gradients.keys() == theirs.keys()
    for key, gradient in gradients.items():
        assert_close(gradient, theirs[key], 1e-4, key)


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_dropout_has_the_same_meaning(kind: str, tmp_path: Path) -> None:
    """With PEFT's masks in place of ours: each adapter has one, and DoRA's products with the weight see it too."""
    peer = peers.make("qwen2", tmp_path / "base", kind, lora_dropout=0.4, target_modules=["gate_proj", "up_proj"])
    peer.save_pretrained(tmp_path / "adapter")
    model = pb.peft.load_adapter(pb.models.load(tmp_path / "base"), tmp_path / "adapter")
    kept = {}  # by the point of the stream at which a mask of ours begins
    peer.train()
    with pytest.MonkeyPatch.context() as patch:
        from pullback.backends.numpy import normalization

        own = normalization.dropout
        xp = pb.backends.NUMPY.xp

        def noted(x: Any, p: float, key: int, offset: int) -> Any:
            out, mask = own(x, p, key, offset)
            kept[offset] = np.array(mask).reshape(3, 11, -1)
            return out, mask

        patch.setitem(xp.__dict__, "dropout", noted)
        loss, gradients = loss_and_gradients(model, "numpy")
    assert len(kept) == 4
    masks = iter([kept[offset] for offset in sorted(kept)])
    for layer in [part for part in peer.modules() if hasattr(part, "lora_dropout")]:
        mask = torch.tensor(next(masks))
        dropout = layer.lora_dropout["default"]
        assert type(dropout) is torch.nn.Dropout
        dropout.forward = lambda x, mask=mask: x * mask / 0.6
    expected = peer(torch.tensor(TOKENS), labels=torch.tensor(TOKENS)).loss
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    theirs = {peers.own_name(name): p.grad.numpy() for name, p in peer.named_parameters() if p.requires_grad}
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], 1e-4, name)


def test_first_values_are_drawn_as_peft_does() -> None:
    layer = pb.nn.Linear(300, 200, dtype=pb.float32)
    pb.peft.add_lora(layer_in := pb.nn.Sequential(layer), pb.peft.LoraConfig(rank=64, targets="0", dora=True), seed=0)
    peer = peft.get_peft_model(
        torch.nn.Sequential(torch.nn.Linear(300, 200)), peft.LoraConfig(r=64, target_modules=["0"], use_dora=True)
    )
    theirs = {peers.own_name(name): p.detach() for name, p in peer.named_parameters() if p.requires_grad}
    assert theirs.keys() == pb.peft.adapter_state(layer_in).keys()
    ours = layer.lora_A.detach().numpy()
    assert ours.std() == pytest.approx(theirs["0.lora_A"].std().item(), rel=0.02)
    assert np.abs(ours).max() == pytest.approx(theirs["0.lora_A"].abs().max().item(), rel=0.01)
    assert not layer.lora_B.detach().numpy().any() and not theirs["0.lora_B"].any()
    np.testing.assert_allclose(
        layer.lora_magnitude_vector.detach().numpy(), np.linalg.norm(layer.weight.detach().numpy(), axis=1), rtol=1e-6
    )
