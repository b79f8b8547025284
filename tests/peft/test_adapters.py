"""Adapters in models of any kind: where they go, what is learned, what stays as it is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import BFLOAT16, require

CONFIG = pb.models.DecoderConfig(
    "qwen3", vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=8,
)  # fmt: skip
TOKENS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def language_model(**options: Any) -> Any:
    with pb.random.using(0):
        return pb.models.qwen3(CONFIG, **options)


def adapted(kind: str = "lora", **options: Any) -> Any:
    config = pb.peft.LoraConfig(rank=3, alpha=5, targets="all-linear", dora=kind == "dora", **options)
    return disturbed(pb.peft.add_lora(language_model(), config, seed=1))


def disturbed(model: Any) -> Any:
    """`model` with other values of its adapters than the first ones, which do nothing."""
    generator = pb.random.Generator(2)
    with pb.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("lora_B"):
                nn.init.normal_(parameter, std=0.2, generator=generator)
    return model


def gradients(model: Any) -> dict[str, Any]:
    with pb.random.using(4):
        loss = model.loss(pb.asarray(TOKENS))
    grads = pb.backward(loss)
    return {name: grads[p].numpy() for name, p in model.named_parameters() if p.requires_grad}


# -- where they go ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "count"),
    [("q_proj", 2), (("q_proj", "v_proj"), 4), ("model.layers.*.self_attn.*_proj", 8), ("all-linear", 14),
     ("model.layers.1.mlp.*", 3), (("lm_head", "o_proj"), 3), ("self_attn.q_proj", 2), ("*", 15)],
)  # fmt: skip
def test_targets(targets: Any, count: int) -> None:
    model = pb.peft.add_lora(language_model(), pb.peft.LoraConfig(rank=2, targets=targets))
    assert sum(isinstance(module, pb.peft.LoraLinear) for module in model.modules()) == count
    learned = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learned == set(pb.peft.adapter_state(model)) and len(learned) == 2 * count


def test_names_of_the_base_stay_and_its_tensors_too() -> None:
    model = language_model()
    before = dict(model.named_parameters())
    compared = model(TOKENS).detach().numpy()
    assert pb.peft.add_lora(model, pb.peft.LoraConfig(targets="all-linear", dora=True)) is model
    after = dict(model.named_parameters())
    assert all(after[name] is parameter and not parameter.requires_grad for name, parameter in before.items())
    np.testing.assert_allclose(model(TOKENS).detach().numpy(), compared, atol=1e-5)


def test_seeds() -> None:
    first, again, other = (
        pb.peft.adapter_state(pb.peft.add_lora(language_model(), pb.peft.LoraConfig(), seed=seed)) for seed in (7, 7, 8)
    )
    assert all(bool((first[name] == again[name]).all()) for name in first)
    assert any(bool((first[name] != other[name]).any()) for name in first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a positive integer"),
        ({"rank": 2.0}, "rank must be a positive integer"),
        ({"alpha": 0}, "alpha must be a positive number"),
        ({"alpha": float("nan")}, "alpha must be a positive number"),
        ({"dropout": -0.1}, "from 0 to 1"),
        ({"dora": 1}, "True or False"),
        ({"targets": ()}, "targets must be names"),
        ({"targets": [3]}, "targets must be names"),
        ({"rank_pattern": {"q_proj": 0}}, r"rank_pattern\['q_proj'\] must be a positive integer"),
        ({"alpha_pattern": [1.0]}, "alpha_pattern must map names"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pb.ConfigurationError, match=message):
        pb.peft.LoraConfig(**options)


class OwnLinear(nn.Linear):
    """A layer that may compute something else than its base class."""


@pytest.mark.parametrize(
    ("make", "targets", "message"),
    [
        (language_model, "q_prj", "Close: 'q_proj'"),
        (language_model, "norm", "RMSNorm"),
        (language_model, ("q_proj", "nothing"), "'nothing' stands for no linear layer"),
        (lambda: nn.Sequential(nn.ReLU()), "all-linear", "none at all"),
        (lambda: nn.Sequential(OwnLinear(2, 2)), "0", "class of its own"),
        (lambda: adapted(), "q_proj", "has adapters already"),
        (lambda: 3, "q_proj", "expected a pb.nn.Module"),
    ],
)
def test_models_that_do_not_fit(make: Any, targets: Any, message: str) -> None:
    model = make()
    before = repr(model)
    with pytest.raises(pb.ConfigurationError, match=message):
        pb.peft.add_lora(model, pb.peft.LoraConfig(targets=targets))
    assert repr(model) == before


@pytest.mark.parametrize("function", [pb.peft.merge, pb.peft.unmerge, pb.peft.remove, pb.peft.adapter_state])
def test_models_without_adapters(function: Any) -> None:
    with pytest.raises(pb.ConfigurationError, match="has no adapters"):
        function(language_model())


# -- learning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16, pb.float16], ids=lambda dtype: dtype.name)
def test_any_model_learns(dtype: Any, compiled: bool) -> None:
    with pb.random.using(0):
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).astype(dtype)
    pb.peft.add_lora(model, pb.peft.LoraConfig(rank=4, targets="all-linear", dora=True, dropout=0.1), seed=0)
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    optimizer = pb.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
    x = pb.asarray(pb.asarray(X), dtype=dtype)
    y = pb.asarray(np.sin(X[:, :1] * 2))

    def step(x: Any, y: Any) -> Any:
        loss = ((model(x).astype(pb.float32) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = pb.compile(step) if compiled else step
    losses = [run(x, y).item() for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    assert {t.dtype for t in pb.peft.adapter_state(model).values()} == {pb.float32}
    assert all(bool((dict(model.named_parameters())[name] == value).all()) for name, value in frozen.items())


@pytest.mark.plain_graph  # a program of so many layers cannot stay within no bytes at all
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_dropout_is_the_same_on_every_device_and_when_compiled(device: str) -> None:
    require(device)
    expected = gradients(adapted(dropout=0.3))
    model = adapted(dropout=0.3).to_device(device)
    learned = [p for p in model.parameters() if p.requires_grad]

    def step(tokens: Any) -> Any:
        grads = pb.backward(model.loss(tokens))
        return [grads[p] for p in learned]

    for function in (step, pb.compile(step)):
        with pb.random.using(4):
            found = function(pb.asarray(TOKENS, device=device))
        for gradient, (name, want) in zip(found, expected.items()):
            np.testing.assert_allclose(gradient.numpy(), want, atol=1e-4 * np.abs(want).max(), err_msg=name)
    pb.random.seed(0)
    first, second = (pb.compile(step)(pb.asarray(TOKENS, device=device))[0].numpy() for _ in range(2))
    assert not np.array_equal(first, second)
    model.eval()
    tokens = pb.asarray(TOKENS, device=device)
    assert bool((model(tokens) == model(tokens)).all())


@pytest.mark.plain_graph
@pytest.mark.parametrize("kind", ["lora", "dora"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(
    "strategy",
    [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(0), pb.BudgetCheckpointing(20_000), "region"],
    ids=str,
)
def test_every_strategy_gives_the_same_bits(strategy: Any, kind: str, dropout: float) -> None:
    model = adapted(kind, dropout=dropout)
    expected = gradients(model)
    if strategy == "region":
        for layer in model.model.layers:
            layer.forward = pb.checkpoint(layer.forward)
        found = gradients(model)
    else:
        with pb.checkpointing(strategy):
            found = gradients(model)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_second_order() -> None:
    """The Hessian of a loss in the adapters' parameters, against differences."""
    with pb.random.using(0):
        model = nn.Sequential(nn.Linear(4, 6, dtype=pb.float64), nn.Tanh(), nn.Linear(6, 2, dtype=pb.float64))
    disturbed(pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="all-linear"), seed=0))
    names = list(pb.peft.adapter_state(model))
    values = [tensor.numpy() for tensor in pb.peft.adapter_state(model).values()]

    def loss(*parameters: Any) -> Any:
        return (nn.functional_call(model, dict(zip(names, parameters)), pb.asarray(X.astype(np.float64))) ** 2).sum()

    pb.gradcheck(loss, values, order=2)


# -- memory -----------------------------------------------------------------------------------------


def test_frozen_weights_are_neither_copied_nor_given_gradients() -> None:
    """One step allocates less than one frozen weight, and the weights stay where they are."""
    width = 1024
    with pb.random.using(0):
        model = nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, width, bias=False))
    arrays = [layer.weight.data for layer in (model[0], model[2])]
    pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="all-linear"), seed=0)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = pb.optim.SGD(learned, lr=0.1)
    x = pb.ones((4, width))

    def step() -> None:
        loss = (model(x) ** 2).mean()
        grads = pb.backward(loss)
        assert len(grads) == len(learned)
        for parameter in learned:
            parameter.accumulate_grad(grads[parameter])
        optimizer.step()
        optimizer.zero_grad()

    step()
    tracemalloc.start()
    step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < arrays[0].nbytes / 8
    for layer, array in zip((model[0], model[2]), arrays):
        assert np.shares_memory(layer.weight.data, array)
        assert layer.weight.data.ctypes.data == array.ctypes.data
        assert layer.weight.grad is None


def test_a_weight_that_is_written_is_seen_at_once() -> None:
    """Nothing that DoRA knows of the weight goes stale, eager or compiled."""
    model = nn.Sequential(nn.Linear(4, 3))
    disturbed(pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="0", dora=True), seed=0))
    compiled = pb.compile(lambda x: model(x))
    compiled(pb.asarray(X)), model(pb.asarray(X))
    with pb.no_grad():
        model[0].weight *= 3.0
    layer = model[0]
    weight = layer.weight.numpy() + layer.scale * (layer.lora_B.detach() @ layer.lora_A.detach()).numpy()
    factor = layer.lora_magnitude_vector.detach().numpy() / np.linalg.norm(weight, axis=1)
    expected = X @ (weight * factor[:, None]).T + layer.bias.numpy()
    for function in (model, compiled):
        np.testing.assert_allclose(function(pb.asarray(X)).detach().numpy(), expected, rtol=1e-5, atol=1e-5)


# -- merging ----------------------------------------------------------------------------------------


@pytest.mark.plain_graph  # likewise
@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_merging_and_back(kind: str, dtype: Any) -> None:
    config = pb.peft.LoraConfig(rank=3, alpha=5, targets="all-linear", dora=kind == "dora", rslora=True)
    model = disturbed(pb.peft.add_lora(language_model().astype(dtype), config, seed=1))
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    wide = lambda: pb.asarray(model(TOKENS).detach(), dtype=pb.float32).numpy()
    before = wide()
    compiled = pb.compile(lambda tokens: model(tokens))
    compiled(pb.asarray(TOKENS))
    assert pb.peft.merge(pb.peft.merge(model)) is model  # twice is once
    tolerance = 1e-5 if dtype == pb.float32 else 0.05
    np.testing.assert_allclose(wide(), before, atol=tolerance * np.abs(before).max())
    merged = pb.asarray(compiled(pb.asarray(TOKENS)).detach(), dtype=pb.float32).numpy()
    np.testing.assert_allclose(merged, wide(), atol=tolerance * np.abs(before).max())
    assert any(bool((p != weights[name]).any()) for name, p in model.named_parameters() if name in weights)
    originals = {f"{name}.original_weight" for name, _ in model.named_modules() if f"{name}.lora_A" in weights}
    assert set(model.state_dict()) == set(weights) | originals
    pb.peft.unmerge(pb.peft.unmerge(model))
    assert all(bool((p == weights[name]).all()) for name, p in model.named_parameters())
    np.testing.assert_array_equal(wide(), before)


def test_the_state_of_a_merged_model_fits_merged_ones_alone() -> None:
    def made() -> Any:
        model = pb.nn.Sequential(pb.nn.Linear(4, 4))
        return pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="0"), seed=0)

    model, x = made(), pb.ones((1, 4))
    with pb.no_grad():
        model[0].lora_B[...] = 1.0
    weight, expected = model[0].weight.clone(), pb.peft.merge(model)(x)
    with pytest.raises(pb.ConfigurationError, match="original_weight"):  # the adapter would count twice
        made().load_state_dict(model.state_dict())
    other = pb.peft.merge(made())
    other.load_state_dict(model.state_dict())
    assert (other(x) == expected).all()
    assert (pb.peft.unmerge(other)[0].weight == weight).all()


def test_taking_out() -> None:
    model = adapted("dora")
    expected = pb.peft.merge(model)(TOKENS).numpy()
    pb.peft.remove(model)
    assert not any(isinstance(module, pb.peft.LoraLinear) for module in model.modules())
    assert set(dict(model.named_parameters())) == set(dict(language_model().named_parameters()))
    assert not list(model.named_buffers())
    np.testing.assert_array_equal(model(TOKENS).numpy(), expected)
    pb.peft.add_lora(model, pb.peft.LoraConfig())


def test_a_weight_that_is_used_elsewhere_is_not_merged() -> None:
    with pb.random.using(0):
        model = pb.models.qwen3(pb.models.DecoderConfig(**{**vars(CONFIG), "tie_word_embeddings": True}))
    pb.peft.add_lora(model, pb.peft.LoraConfig(targets=("q_proj", "lm_head")))
    with pytest.raises(pb.ConfigurationError, match=r"used in several places \(model.embed_tokens.weight, lm_head"):
        pb.peft.merge(model)
    assert not any(module.merged for module in model.modules() if isinstance(module, pb.peft.LoraLinear))


def test_only_what_is_adapted_and_only_together() -> None:
    """Of query, key and value two have adapters; the graph has one operation for them."""
    model = disturbed(pb.peft.add_lora(language_model(), pb.peft.LoraConfig(targets=("q_proj", "v_proj")), seed=0))
    names = []
    loss = model.loss(pb.asarray(TOKENS))
    stack, seen = [loss._node], set()
    while stack:
        node = stack.pop()
        if node not in seen and node.recipe is not None:
            seen.add(node)
            names.append(node.recipe.operation.name)
            stack.extend(node.inputs)
    assert names.count("low_rank_linear") == CONFIG.num_hidden_layers
