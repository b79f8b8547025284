"""Adapters beside quantized weights."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.peft.layer import QuantizedLoraLinear

from ..backends.installed import BFLOAT16, needs_llvmlite, require
from .test_adapters import TOKENS, disturbed, gradients, language_model

CONFIGS = {
    "lora": pb.peft.LoraConfig(rank=3, alpha=5, targets="all-linear"),
    "rslora": pb.peft.LoraConfig(rank=3, alpha=5, targets=("q_proj", "down_proj"), rslora=True),
    "dora": pb.peft.LoraConfig(rank=3, alpha=5, targets="all-linear", dora=True, dropout=0.2),
}


def quantized(dtype: Any = None) -> Any:
    return pb.quant.quantize(language_model(dtype=dtype))


def expanded(model: Any) -> Any:
    """A plain model with the values that quantized weights stand for."""
    plain = language_model()
    there = dict(model.named_modules())
    with pb.no_grad():
        for name, layer in plain.named_modules():
            if isinstance(there[name], pb.quant.QuantizedLinear):
                layer.weight[...] = there[name].weight
    return plain


def adapted(model: Any, kind: str) -> Any:
    return disturbed(pb.peft.add_lora(model, CONFIGS[kind], seed=1))


@pytest.mark.parametrize("kind", CONFIGS)
def test_gradients_are_those_beside_the_expanded_weights(kind: str) -> None:
    model = quantized()
    plain = adapted(expanded(model), kind)
    found, expected = gradients(adapted(model, kind)), gradients(plain)
    assert found.keys() == expected.keys() == pb.peft.adapter_state(plain).keys()
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], atol=1e-5 * np.abs(expected[name]).max(), err_msg=name)


@needs_llvmlite
@pytest.mark.parametrize(
    ("device", "kind"),
    [
        *[(device, kind) for device in ("numpy", "torch:cpu") for kind in CONFIGS],
        ("jax:cpu", "rslora"),
        *[pytest.param("jax:cpu", kind, marks=pytest.mark.slow) for kind in ("lora", "dora")],
    ],
)
def test_steps_are_compiled_with_the_same_values(device: str, kind: str) -> None:
    require(device)

    def losses(compiled: bool) -> list[float]:
        model = adapted(quantized(), kind).to_device(device)
        optimizer = pb.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)

        def step(tokens: Any) -> Any:
            optimizer.zero_grad()
            loss = model.loss(tokens)
            loss.backward()
            optimizer.step()
            return loss.detach()

        function = pb.compile(step) if compiled else step
        with pb.random.using(3):
            return [function(pb.asarray(TOKENS, device=device)).item() for _ in range(4)]

    eager = losses(False)
    np.testing.assert_allclose(losses(True), eager, rtol=1e-5)
    assert eager[-1] < eager[0]


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(20_000)])
def test_strategies_give_the_same_bits(strategy: Any) -> None:
    plain = gradients(adapted(quantized(), "dora"))
    with pb.checkpointing(strategy):
        found = gradients(adapted(quantized(), "dora"))
    assert all((found[name] == array).all() for name, array in plain.items())


@pytest.mark.plain_graph  # so that the bits before and after are of one way
@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", CONFIGS)
def test_merging_and_back(kind: str, dtype: Any) -> None:
    """Merged weights are not rounded again; the quantized ones are there all the time."""
    model = adapted(quantized(dtype), kind).eval()
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    wide = lambda: model(TOKENS).detach().astype("float32").numpy()
    before = wide()
    assert pb.peft.merge(pb.peft.merge(model)) is model  # twice is once
    tolerance = 1e-5 if dtype == pb.float32 else 0.05
    np.testing.assert_allclose(wide(), before, atol=tolerance * np.abs(before).max())
    merged = model.state_dict()
    assert all(bool((merged[name] == tensor).all()) for name, tensor in state.items())
    assert {name.rpartition(".")[2] for name in merged if name not in state} == {"merged_weight"}
    with pytest.raises(pb.ConfigurationError, match="merged_weight"):
        model.load_state_dict(state)  # what is computed would not be what was loaded
    pb.peft.unmerge(pb.peft.unmerge(model))
    assert not any(name.endswith("merged_weight") for name, _ in model.named_buffers())
    np.testing.assert_array_equal(wide(), before)


@pytest.mark.parametrize("targets", ["all-linear", ("q_proj", "down_proj")])
def test_taking_out(targets: Any, tmp_path: Any) -> None:
    model = disturbed(pb.peft.add_lora(quantized(), pb.peft.LoraConfig(rank=3, targets=targets), seed=1))
    again = disturbed(pb.peft.add_lora(quantized(), pb.peft.LoraConfig(rank=3, targets=targets), seed=1))
    expected = pb.peft.merge(model)(TOKENS).numpy()
    pb.quant.dequantize(pb.peft.remove(model))
    assert {name: p.dtype for name, p in model.named_parameters()} == {
        name: p.dtype for name, p in language_model().named_parameters()
    }
    assert not list(model.named_buffers()) and not any(p.requires_grad for p in model.parameters())
    np.testing.assert_allclose(model(TOKENS).numpy(), expected, atol=1e-6)
    pb.models.save(model, tmp_path / "merged")
    np.testing.assert_array_equal(pb.models.load(tmp_path / "merged")(TOKENS).detach().numpy(), model(TOKENS).numpy())
    pb.peft.remove(again)  # not merged: what was there before
    assert set(again.state_dict()) == set(quantized().state_dict())
    np.testing.assert_array_equal(again(TOKENS).numpy(), quantized()(TOKENS).numpy())
    pb.peft.add_lora(again, CONFIGS["lora"])
    assert isinstance(again.model.layers[0].mlp.up_proj, QuantizedLoraLinear)


def test_adapters_are_those_of_plain_models(tmp_path: Any) -> None:
    """Written beside quantized weights, read beside plain ones, and the other way round."""
    model = adapted(quantized(), "dora").eval()
    pb.peft.save_adapter(model, tmp_path / "adapter")
    plain = pb.peft.load_adapter(language_model(), tmp_path / "adapter").eval()
    expected = model(TOKENS).detach().numpy()
    np.testing.assert_allclose(plain(TOKENS).detach().numpy(), expected, atol=0.05 * np.abs(expected).max())
    again = pb.peft.load_adapter(quantized(), tmp_path / "adapter").eval()
    np.testing.assert_array_equal(again(TOKENS).detach().numpy(), expected)


def test_adapted_models_are_not_quantized() -> None:
    model = adapted(language_model(), "rslora")
    with pytest.raises(pb.ConfigurationError, match=r"q_proj' is a LoraLinear\. Quantize a model before it gets"):
        pb.quant.quantize(model)
    with pytest.raises(pb.ConfigurationError, match=r"q_proj' is a QuantizedLoraLinear\. Take adapters out first"):
        pb.quant.dequantize(adapted(quantized(), "rslora"))


def test_adapters_of_weights_in_float64_are_so_too() -> None:
    model = pb.peft.add_lora(pb.quant.quantize(language_model(dtype="float64")), CONFIGS["lora"])
    assert model.model.layers[0].mlp.up_proj.lora_A.dtype == pb.float64


@pytest.mark.plain_graph
@pytest.mark.parametrize("learned", [True, False])
def test_expanded_weights_are_not_kept(learned: bool) -> None:
    with pb.random.using(0):
        model = pb.quant.quantize(nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(3)]))
    pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="all-linear"))
    x = pb.ones((2, 512)).set_requires_grad(not learned)
    if not learned:
        model.freeze()
    model(x)  # imports and native code
    tracemalloc.start()
    out = model(x)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < 100_000 and out.requires_grad
