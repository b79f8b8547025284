"""`pullback generate`, `pullback merge` and the whole way of `pullback finetune --example`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.files.safetensors import read_arrays, write_arrays
from pullback.finetune import Tokenizer

from ..backends.installed import needs_llvmlite
from ..finetune.tiny import Tiny, write_tiny

QUESTION = "What comes after five?"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Tiny:
    return write_tiny(tmp_path_factory.mktemp("language_models"))


@pytest.fixture(scope="module")
def adapter(tiny, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("adapter")
    model = pb.peft.add_lora(pb.models.load(tiny.model), pb.peft.LoraConfig(rank=2, targets="all-linear"), seed=1)
    with pb.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("lora_B"):
                tensor += 0.3
    pb.peft.save_adapter(model, folder)
    return folder


@pytest.fixture
def generate(pullback, tiny):
    return lambda *arguments: pullback("generate", "--model", tiny.model, "--max-tokens", 12, *arguments)


@pytest.fixture
def refused(pullback):
    def run(*arguments: object) -> str:
        outcome = pullback(*arguments)
        assert outcome.code == 2 and not outcome.out, outcome
        return outcome.err

    return run


def answer(model, tokenizer: Tokenizer, tokens: list[int]) -> str:
    return tokenizer.decode(model.generate(tokens, max_new_tokens=12, stop=tokenizer.stop_ids))


def test_generate_answers_as_the_library_does(generate, tiny, adapter):
    tokenizer = Tokenizer(tiny.model)
    asked = tokenizer.encode_chat([{"role": "user", "content": QUESTION}], add_generation_prompt=True)
    told = tokenizer.encode_chat(
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}], add_generation_prompt=True
    )
    model = pb.models.load(tiny.model)
    greedy = ["--temperature", 0]
    assert generate(QUESTION, *greedy).out == answer(model, tokenizer, asked) + "\n"
    assert generate(QUESTION, *greedy, "--system", "Be kind.").out == answer(model, tokenizer, told) + "\n"
    assert generate(QUESTION, *greedy, "--plain").out == answer(model, tokenizer, tokenizer.encode(QUESTION)) + "\n"
    pb.peft.load_adapter(model, adapter)
    with_adapter = generate(QUESTION, *greedy, "--adapter", adapter).out
    assert with_adapter == answer(model, tokenizer, asked) + "\n" != generate(QUESTION, *greedy).out


def test_generate_draws_by_its_seed(generate):
    drawn = [generate(QUESTION, "--temperature", 2, "--top-k", 50, "--top-p", 0.95, "--seed", n).out for n in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_generate_reads_the_standard_input(generate, monkeypatch):
    expected = generate(QUESTION, "--temperature", 0).out
    monkeypatch.setattr("sys.stdin", io.StringIO(QUESTION))
    assert generate("-", "--temperature", 0).out == expected


def test_a_standard_input_that_is_no_text(refused, tiny, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9"), encoding="utf-8"))
    assert "the standard input is no text" in refused("generate", "--model", tiny.model, "-")


def test_what_cannot_be_generated(refused, tiny, tmp_path):
    given = ["generate", "--model", tiny.model]
    assert "the prompt is empty" in refused(*given, "--plain", "")
    assert "--system is for chats" in refused(*given, "--plain", "--system", "Be kind.", "a")
    assert "temperature" in refused(*given, "--temperature", -1, "a")
    assert "top_p" in refused(*given, "--top-p", 3, "a")
    assert "nowhere" in refused("generate", "--model", tmp_path / "nowhere", "a")
    assert "nothing" in refused(*given, "--adapter", tmp_path / "nothing", "a")
    assert "unknown device 'moon'" in refused(*given, "--device", "moon", "a")


def test_a_tokenizer_of_another_model_is_told(refused, tiny, tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    small = pb.models.qwen3(pb.models.DecoderConfig("qwen3", vocab_size=60, **sizes, **heads))
    pb.models.save(small, tmp_path / "small", like=tiny.model)
    assert "they do not belong together" in refused("generate", "--model", "small", QUESTION)


def test_merge_writes_a_model_that_computes_the_same(pullback, generate, tiny, adapter, tmp_path):
    before = {path.name: path.read_bytes() for path in tiny.model.iterdir()}
    assert pullback("merge", "--model", tiny.model, "--adapter", adapter, "--out", "merged").code == 0
    assert {path.name: path.read_bytes() for path in tiny.model.iterdir()} == before
    tokens = np.arange(10)[None]
    model = pb.peft.load_adapter(pb.models.load(tiny.model), adapter)
    merged = pb.models.load(tmp_path / "merged")
    with pb.no_grad():
        expected = model(tokens).numpy()
        np.testing.assert_allclose(merged(tokens).numpy(), expected, atol=1e-5 * np.abs(expected).max())
    assert pullback("generate", "--model", "merged", "--temperature", 0, "--max-tokens", 12, QUESTION).out == (
        generate(QUESTION, "--temperature", 0, "--adapter", adapter).out
    )


@pytest.mark.parametrize("targets", ["all-linear", "q_proj"])
def test_an_adapter_of_quantized_weights_is_used_and_merged_with_them(pullback, generate, tiny, targets, tmp_path):
    quantized = pb.models.load(tiny.model, quantize="int8")
    model = pb.peft.add_lora(quantized, pb.peft.LoraConfig(rank=2, targets=targets), seed=1)
    with pb.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("lora_B"):
                tensor += 0.3
    pb.peft.save_adapter(model, tmp_path / "adapter")
    tokenizer = Tokenizer(tiny.model)
    asked = tokenizer.encode_chat([{"role": "user", "content": QUESTION}], add_generation_prompt=True)
    given = ["--adapter", "adapter", "--quant", "int8"]
    assert generate(QUESTION, "--temperature", 0, *given).out == answer(model, tokenizer, asked) + "\n"
    assert pullback("merge", "--model", tiny.model, *given, "--out", "merged").code == 0
    tokens = np.arange(10)[None]
    merged, expected = pb.models.load(tmp_path / "merged")(tokens).detach().numpy(), model(tokens).detach().numpy()
    np.testing.assert_allclose(merged, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("scheme", ["int8", "nf4"])
def test_quantize_writes_a_model_that_the_other_commands_take(pullback, generate, tiny, adapter, scheme, tmp_path):
    given = ["quantize", "--model", tiny.model, "--quant", scheme]
    told = pullback(*given, "--out", "small")
    assert told.code == 0 and re.search(r"^model\.layers\.1\.mlp\.down_proj +\d+\.\d\d +\d+\.\d\d% ", told.out, re.M)
    assert re.search(r"^quantized: .*small \(\d\.\d MiB to \d\.\d MiB\)$", told.out, re.M)
    small, rounded = (pb.models.load(folder, quantize=scheme) for folder in (tmp_path / "small", tiny.model))
    tokens = np.arange(10)[None]
    assert (small(tokens).numpy() == rounded(tokens).numpy()).all()
    assert {path.name for path in tiny.model.iterdir()} == {path.name for path in (tmp_path / "small").iterdir()}
    model = pb.peft.load_adapter(rounded, adapter)
    tokenizer = Tokenizer(tiny.model)
    asked = tokenizer.encode_chat([{"role": "user", "content": QUESTION}], add_generation_prompt=True)
    greedy = ["generate", "--model", "small", "--max-tokens", 12, "--temperature", 0, "--adapter", adapter]
    assert pullback(*greedy, QUESTION).out == answer(model, tokenizer, asked) + "\n"
    assert pullback("merge", "--model", "small", "--adapter", adapter, "--out", "merged").code == 0
    expected = model(tokens).detach().numpy()
    merged = pb.models.load(tmp_path / "merged")(tokens).detach().numpy()
    np.testing.assert_allclose(merged, expected, atol=1e-5 * np.abs(expected).max())
    tuned = ["finetune", "--model", "small", "--data", tiny.data, "--rank", 2, "--seq", 48, "--steps", 2, "--quiet"]
    assert pullback(*tuned, "--out", "run").code == 0
    assert pullback(*given, "--quiet", "--out", "again").out.count("\n") == 1


def test_what_cannot_be_quantized(refused, tiny, tmp_path):
    assert "required: --quant" in refused("quantize", "--model", tiny.model, "--out", "small")
    assert "invalid choice: 'none'" in refused("quantize", "--model", tiny.model, "--out", "small", "--quant", "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    given = ["quantize", "--model", tiny.model, "--quant", "int8"]
    assert "not an empty folder" in refused(*given, "--out", "full")
    assert "nowhere" in refused("quantize", "--model", tmp_path / "nowhere", "--quant", "int8", "--out", "small")
    assert not (tmp_path / "small").exists()


def test_what_cannot_be_merged(refused, tiny, adapter, tmp_path):
    given = ["merge", "--model", tiny.model, "--adapter"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    assert "not an empty folder" in refused(*given, adapter, "--out", "mine")
    assert "not an empty folder" in refused(*given, adapter, "--out", "mine/notes.txt")
    arrays, _ = read_arrays(adapter / "adapter_model.safetensors")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "adapter_config.json").write_bytes((adapter / "adapter_config.json").read_bytes())
    narrow = {name: array[..., :1] if name.endswith("lora_A.weight") else array for name, array in arrays.items()}
    write_arrays(broken / "adapter_model.safetensors", narrow)
    assert "broken" in refused(*given, broken, "--out", "new") and not (tmp_path / "new").exists()


@needs_llvmlite
def test_the_example_goes_the_whole_way(pullback, tmp_path):
    outcome = pullback("finetune", "--example", "--out", "try", "--quiet")
    assert outcome.code == 0, outcome.err
    before, after = outcome.out.split("\nasked before:")[1].split("\nasked after:")
    said = after.split("\n")[1].strip()
    # Which number it says may depend on how a processor rounds; that it answers so is what it has learned.
    assert re.fullmatch(r"After \S+ comes \S+\.", said) and not re.search(
        "After .* comes", before.split("fine-tuning")[0]
    )
    results = json.loads((tmp_path / "try" / "run" / "results.json").read_text())
    assert results["steps"] == 120 and results["validation_loss"] < 1.0
    asked = pullback("generate", "--model", "try/merged", "--temperature", 0, "What comes after forty-two?")
    assert asked.out == said + "\n"


def test_the_example_needs_a_folder_of_its_own(refused, tmp_path):
    assert "--out DIR" in refused("finetune", "--example")
    assert "leave CONFIG.toml" in refused("finetune", "--example", "--out", "try", "--model", "mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("precious")
    assert "not an empty folder" in refused("finetune", "--example", "--out", "full")
