"""Runs: what is learned does not depend on how it is computed, and nothing else of the model changes."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.files.safetensors import read_arrays
from pullback.finetune.run import Run
from pullback.finetune.settings import Settings
from pullback.finetune.texts import Texts
from pullback.train import read_checkpoint

from ..backends.installed import needs_llvmlite, needs_ml_dtypes, optional, require
from .tiny import Tiny, write_tiny

torch, transformers, peft = optional("torch"), optional("transformers"), optional("peft")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Tiny:
    return write_tiny(tmp_path_factory.mktemp("run"))


def made(settings: Settings, folder: Path | None = None) -> Run:
    """A run that is over."""
    run = Run(settings, Texts(settings), folder)
    run.fit()
    return run


def losses(run: Run) -> list[float]:
    return [record["loss"] for record in run.trainer.history.steps]


def adapters(run: Run) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in pb.peft.adapter_state(run.model).items()}


def assert_same(one: Run, other: Run, rtol: float, atol: float) -> None:
    np.testing.assert_allclose(losses(one), losses(other), rtol=rtol)
    for name, array in adapters(one).items():
        np.testing.assert_allclose(adapters(other)[name], array, rtol=0, atol=atol, err_msg=name)


# -- how it is computed ------------------------------------------------------------------------------


@pytest.mark.parametrize("compile", [pytest.param(True, marks=needs_llvmlite), False], ids=["compiled", "eager"])
def test_checkpointing_changes_nothing_that_is_learned(tiny, compile):
    settings = tiny.settings(compile=compile, dropout=0.1, lr=0.05)
    plain = made(settings)
    assert losses(plain)[-1] < losses(plain)[0]
    for how in ("balanced", "layers", "400KiB"):
        other = made(replace(settings, checkpointing=how))
        assert other.trainer.why_not_compiled is None
        if compile:  # loops are joined in other ways, so sums may be rounded otherwise
            assert_same(plain, other, rtol=1e-6, atol=1e-5)
        else:
            assert losses(other) == losses(plain)
            assert all((adapters(other)[name] == array).all() for name, array in adapters(plain).items())


@pytest.mark.parametrize("compile", [pytest.param(True, marks=needs_llvmlite), False], ids=["compiled", "eager"])
@pytest.mark.parametrize("pack", [False, True])
def test_accumulated_batches_count_by_their_tokens(tiny, compile, pack):
    """Also at the end of an epoch, whose last step has fewer batches and rows without a text."""
    few = Texts(tiny.settings()).samples.samples
    settings = tiny.settings(steps=None, epochs=1, pack=pack, compile=compile)
    whole, parts = replace(settings, batch=8), replace(settings, batch=2, accumulate=4)
    runs = [made(each) for each in (whole, parts)]
    assert len(losses(runs[0])) == -(-len(few) // 8) or pack
    assert_same(*runs, rtol=2e-5, atol=2e-4)


@needs_llvmlite
def test_steps_are_compiled_or_not_with_the_same_losses(tiny):
    settings = tiny.settings(dropout=0.1)
    compiled, eager = made(settings), made(replace(settings, compile=False))
    assert compiled.trainer._updater._compiled is not None and eager.trainer._updater._compiled is None
    np.testing.assert_allclose(losses(compiled), losses(eager), rtol=1e-5)


@pytest.mark.parametrize("device", ["torch:cpu", pytest.param("jax:cpu", marks=pytest.mark.slow)])
def test_devices_give_the_same_losses(tiny, device):
    require(device)
    settings = tiny.settings(rslora=True, steps=5)
    found = made(replace(settings, device=device))
    assert {parameter.device for parameter in found.model.parameters()} == {device}
    np.testing.assert_allclose(losses(found), losses(made(settings)), rtol=1e-4)


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        pytest.param("numpy", "bfloat16", marks=needs_ml_dtypes),
        ("numpy", "float16"),
        ("torch:cpu", "bfloat16"),
    ],
)
def test_weights_of_half_precision_are_learned_beside(tiny, device, dtype):
    require(device, dtype)
    run = made(tiny.settings(dtype=dtype, device=device, steps=20, lr=0.05, compile=device == "numpy"))
    assert np.mean(losses(run)[-5:]) < 0.95 * losses(run)[0]
    kinds = {(p.requires_grad, p.dtype.name) for p in run.model.parameters()}
    assert kinds == {(False, dtype), (True, "float32")}


@pytest.mark.parametrize("compile", [pytest.param(True, marks=needs_llvmlite), False], ids=["compiled", "eager"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_quantized_weights_are_learned_beside(tiny, tmp_path, device, compile):
    """As beside the values that they stand for; and they never change, nor are they in checkpoints."""
    require(device)
    expanded, quantized = pb.models.load(tiny.model), pb.models.load(tiny.model, quantize="int8")
    with pb.no_grad():
        for name, layer in quantized.named_modules():
            if isinstance(layer, pb.quant.QuantizedLinear):
                dict(expanded.named_modules())[name].weight[...] = layer.weight
    pb.models.save(expanded, tmp_path / "expanded", like=tiny.model)
    settings = tiny.settings(device=device, compile=compile, steps=12, checkpoint_every=12)
    run = made(replace(settings, quant="int8"), tmp_path / "run")
    plain = made(replace(settings, model=str(tmp_path / "expanded")))
    np.testing.assert_allclose(losses(run), losses(plain), rtol=1e-3)
    assert losses(run)[-1] < losses(run)[0]
    fresh = pb.models.load(tiny.model, device, quantize="int8")
    buffers = dict(run.model.named_buffers())
    assert len(buffers) == 2 * 14 and all(bool((buffers[n] == t).all()) for n, t in fresh.named_buffers())
    arrays, _ = read_arrays(tmp_path / "run" / "checkpoints" / "step-00000012.safetensors")
    assert not any(name.endswith(("codes", "scales")) for name in arrays)
    state = read_checkpoint(tmp_path / "run" / "checkpoints" / "step-00000012.safetensors")["parts"]["model"]
    assert state.keys() == adapters(run).keys()


def test_dora_learns(tiny):
    found = losses(made(tiny.settings(dora=True, steps=12, lr=0.05)))
    assert found[-1] < found[0]


# -- what stays ---------------------------------------------------------------------------------------


def addresses_of(path: Path) -> list[range]:
    """Where in memory a file is mapped."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(f" {path}"):
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            found.append(range(begin, end))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is mapped")
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "eager"])
def test_frozen_weights_are_the_file_itself_and_never_change(tiny, device, compile):
    require(device)
    path = tiny.model / "model.safetensors"
    before = path.read_bytes()
    run = made(tiny.settings(device=device, compile=compile, clip_norm=1e-3))
    places = addresses_of(path.resolve())
    saved, _ = read_arrays(path)
    frozen = {name: p for name, p in run.model.named_parameters() if not p.requires_grad}
    assert frozen.keys() >= saved.keys()
    for name, parameter in frozen.items():
        raw = parameter._raw
        address = raw.ctypes.data if device == "numpy" else raw.data_ptr()
        assert any(address in place for place in places), f"{name} is a copy"
        np.testing.assert_array_equal(parameter.numpy(), saved[name])
    pb.peft.merge(run.model)  # which writes into them
    assert path.read_bytes() == before


@pytest.mark.parametrize("accumulate", [1, 2])
def test_checkpoints_hold_what_is_learned_and_nothing_else(tiny, tmp_path, accumulate):
    settings = tiny.settings(accumulate=accumulate, checkpoint_every=2)
    run = made(settings, tmp_path / "run")
    learned = sum(array.nbytes for array in adapters(run).values())
    paths = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert [path.name for path in paths] == ["step-00000002.safetensors", "step-00000004.safetensors"]
    for path in paths:
        arrays, _ = read_arrays(path)
        assert not any("embed_tokens" in name or name.endswith("proj.weight") for name in arrays)
        numbers = [array.nbytes for name, array in arrays.items() if "lora" in name or array.ndim == 2]
        assert sum(numbers) == 3 * learned  # with the optimizer's two moments
    state = read_checkpoint(paths[-1])["parts"]["model"]
    assert state.keys() == adapters(run).keys()
    for name, array in adapters(run).items():
        np.testing.assert_array_equal(state[name].numpy(), array)


def test_a_run_without_a_folder_writes_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = made(tiny.settings())
    assert list(tmp_path.iterdir()) == []
    results = run.results()
    assert results["steps"] == 4 and math.isfinite(results["loss"]) and results["peak_memory_bytes"] > 1 << 20


@pytest.mark.parametrize("dora", [False, True])
def test_peft_computes_what_was_learned(tiny, tmp_path, dora):
    run = made(tiny.settings(dora=dora, lr=0.1, steps=6))
    run.save_adapter(tmp_path / "adapter")
    base = transformers.AutoModelForCausalLM.from_pretrained(tiny.model)
    model = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    tokens = np.random.default_rng(0).integers(0, 300, (2, 17))
    run.model.eval()
    with pb.no_grad(), torch.no_grad():
        found, expected = run.model(tokens).numpy(), model(torch.tensor(tokens)).logits.numpy()
        plain = pb.models.load(tiny.model)(tokens).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    assert np.abs(found - plain).max() > 0.1
    entries = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert entries["base_model_name_or_path"] == str(tiny.model) and entries["use_dora"] == dora


# -- the steps of a run --------------------------------------------------------------------------------


def test_epochs_are_steps(tiny):
    settings = tiny.settings(steps=None, epochs=2, batch=8, accumulate=2)
    texts = Texts(settings)
    run = Run(settings, texts, None)
    assert run.steps == 2 * math.ceil(len(texts.batches) / 2)
    run.fit()
    assert run.trainer.step == run.steps and run.trainer.epoch == 2
    assert Run(replace(settings, epochs=None), texts, None).steps == run.steps // 2


@pytest.mark.parametrize("compile", [pytest.param(True, marks=needs_llvmlite), False], ids=["compiled", "eager"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_numbers_that_grow_without_bound_end_a_run_before_the_step(tiny, compile, accumulate):
    settings = tiny.settings(lr=1e30, schedule="constant", compile=compile, accumulate=accumulate)
    run = Run(settings, Texts(settings), None)
    kept = []
    original = run.trainer._finish_step

    def finish_step(seconds):
        original(seconds)
        kept.append(adapters(run))

    run.trainer._finish_step = finish_step
    with pytest.raises(pb.NumericalInstabilityError, match=r"^step 2, epoch 1, batch \d: (.|\n)*before this step\.$"):
        run.fit()
    assert len(kept) == 1
    for name, array in adapters(run).items():
        np.testing.assert_array_equal(array, kept[0][name], err_msg=name)


# -- the texts ------------------------------------------------------------------------------------------


def test_other_weights_of_the_same_sizes_have_another_fingerprint(tiny, tmp_path):
    other = write_tiny(tmp_path)
    assert Texts(other.settings()).fingerprint == Texts(tiny.settings()).fingerprint
    content = bytearray((other.model / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (other.model / "model.safetensors").write_bytes(content)
    assert Texts(other.settings()).fingerprint != Texts(tiny.settings()).fingerprint


def test_a_tokenizer_of_another_model_is_refused(tiny, tmp_path):
    other = write_tiny(tmp_path)
    config = other.model / "config.json"
    config.write_text(re.sub(r'"vocab_size": \d+', '"vocab_size": 200', config.read_text()))
    with pytest.raises(pb.ConfigurationError, match=r"the tokenizer makes the token \d+, and the model has 200"):
        Texts(other.settings())
