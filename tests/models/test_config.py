"""What a config.json says, old style and new, and what is refused before anything is made of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import pullback as pb
from pullback.models.config import from_entries, read_config, to_entries

from ..backends.installed import optional
from . import peers

transformers = optional("transformers")
PLAIN = {
    "model_type": "llama",
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def written(folder: Path, entries: dict[str, Any], name: str = "config.json") -> Path:
    (folder / name).write_text(json.dumps(entries))
    return folder


def test_old_entries_mean_what_new_ones_mean(tmp_path: Path) -> None:
    rope = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    old = read_config(
        written(
            tmp_path,
            {**PLAIN, "rope_theta": 500.0, "rope_scaling": {"type": "llama3", **rope}, "torch_dtype": "bfloat16"},
        )
    )
    new = read_config(
        written(
            tmp_path,
            {**PLAIN, "rope_parameters": {"rope_type": "llama3", "rope_theta": 500.0, **rope}, "dtype": "bfloat16"},
        )
    )
    assert dict(old.rope_parameters) == dict(new.rope_parameters)
    assert to_entries(old).items() <= to_entries(new).items()
    assert (old.num_key_value_heads, old.head_dim) == (4, 8)


def test_both_styles_may_say_the_same() -> None:
    both = {"rope_parameters": {**peers.YARN}, "rope_scaling": {"type": "yarn", "factor": 4.0}}
    assert from_entries({**PLAIN, **both}).rope_parameters == peers.YARN
    both = {"rope_parameters": {"rope_theta": 500.0}, "rope_scaling": {"rope_type": "default"}}
    assert from_entries({**PLAIN, **both}).rope_parameters == {"rope_type": "default", "rope_theta": 500.0}


@pytest.mark.parametrize(
    "windows",
    [
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
        {"use_sliding_window": True, "sliding_window": 8, "layer_types": ["full_attention", "full_attention"]},
    ],
    ids=["from a layer on that is not there", "on no layer"],
)
def test_windows_that_no_layer_has_change_nothing(windows: dict[str, Any], tmp_path: Path) -> None:
    model = peers.make("qwen2", tmp_path)
    entries = {**json.loads((tmp_path / "config.json").read_text()), "layer_types": None, **windows}
    written(tmp_path, entries)
    tokens = [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]]
    expected = model(peers.torch.tensor(tokens)).logits.detach().numpy()
    found = pb.models.load(tmp_path)(pb.asarray(tokens)).detach().numpy()
    assert abs(found - expected).max() < 1e-4 * abs(expected).max()


@pytest.mark.parametrize("name", peers.MODELS)
def test_a_written_configuration_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    peers.make(name, tmp_path)
    config = read_config(tmp_path)
    assert from_entries(json.loads(json.dumps(to_entries(config)))) == config
    assert from_entries({**to_entries(config), "unknown": {"a": 1}}).others["unknown"] == {"a": 1}


def test_defaults_are_those_of_transformers(tmp_path: Path) -> None:
    for family, name in (("llama", "Llama"), ("qwen2", "Qwen2"), ("qwen3", "Qwen3")):
        theirs = getattr(transformers, f"{name}Config")(**peers.SIZES)
        ours = from_entries({**peers.SIZES, "model_type": family})
        assert (ours.rms_norm_eps, ours.tie_word_embeddings) == (theirs.rms_norm_eps, theirs.tie_word_embeddings)
        assert ours.head_dim == (getattr(theirs, "head_dim", None) or 8)
        assert ours.rope_parameters["rope_theta"] == theirs.rope_parameters["rope_theta"]


def test_stop_tokens_are_those_of_generation_before_those_of_the_model(tmp_path: Path) -> None:
    written(tmp_path, {**PLAIN, "eos_token_id": 5})
    assert read_config(tmp_path).stop_tokens == (5,)
    written(tmp_path, {"eos_token_id": [7, 8], "temperature": 0.6}, "generation_config.json")
    config = read_config(tmp_path)
    assert config.stop_tokens == (7, 8) and to_entries(config)["eos_token_id"] == [7, 8]
    written(tmp_path, {"temperature": 0.6}, "generation_config.json")
    assert read_config(tmp_path).stop_tokens == (5,)
    written(tmp_path, {"eos_token_id": "</s>"}, "generation_config.json")
    with pytest.raises(pb.ConfigurationError, match=r"generation_config.json.*eos_token_id"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "'gpt2'.*'llama', 'qwen2', 'qwen3'"),
        ({"model_type": "qwen33"}, "qwen3"),
        ({"model_type": None}, "model_type"),
        ({"model_type": ["llama"]}, "not known"),
        ({"vocab_size": None}, "'vocab_size' is missing"),
        ({"vocab_size": "97"}, "vocab_size must be a positive integer"),
        ({"vocab_size": True}, "vocab_size"),
        ({"vocab_size": 97.0}, "vocab_size"),
        ({"hidden_size": -32}, "hidden_size"),
        ({"hidden_size": 33}, "no multiple"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most"),
        ({"num_hidden_layers": 10**100}, "num_hidden_layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_attention_heads": 0}, "num_attention_heads|multiple"),
        ({"num_key_value_heads": 3}, "multiple of num_key_value_heads"),
        ({"head_dim": 7}, "even"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"layer_types": ["sliding_attention"]}, "sliding"),
        ({"layer_types": 5}, "sliding"),
        ({"use_sliding_window": True, "sliding_window": 128}, "sliding"),
        ({"use_sliding_window": True, "sliding_window": 128, "max_window_layers": 1}, "sliding"),
        ({"is_causal": False}, "is_causal"),
        ({"partial_rotary_factor": 0.5, "rope_scaling": {"type": "linear", "factor": 2.0}}, "partial_rotary_factor"),
        ({"rope_parameters": {**peers.LLAMA3, "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "same one for all layers"),
        ({"rope_scaling": "yarn"}, "rope_scaling must be an object"),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_scaling": peers.YARN}, "say different things"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"eos_token_id": {"a": 1}}, "eos_token_id"),
        ({"rope_parameters": [1]}, "rope_parameters must be an object"),
    ],
    ids=str,
)
def test_what_is_not_meant_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    written(tmp_path, {**PLAIN, **changes})
    start = time.perf_counter()
    with pytest.raises(pb.ConfigurationError, match=message) as caught:
        pb.models.load(tmp_path)
    assert str(tmp_path) in str(caught.value) and time.perf_counter() - start < 5


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "longrope"},
        {"rope_type": ["llama3"]},
        {"rope_type": "default", "rope_theta": -1.0},
        {"rope_type": "default", "rope_theta": "10000"},
        {"rope_type": "linear"},
        {"rope_type": "linear", "factor": float("inf")},
        {"rope_type": "llama3", "factor": 8.0},
        {**peers.LLAMA3, "high_freq_factor": 1.0},
        {**peers.YARN, "attention_factor": "large"},
        {**peers.YARN, "beta_fast": [1]},
        {**peers.YARN, "rope_theta": 1.0},
    ],
    ids=str,
)
def test_rotary_options_that_mean_nothing_are_refused(rope: dict[str, Any]) -> None:
    with pytest.raises(pb.ConfigurationError, match="rope"):
        pb.models.llama3(from_entries({**PLAIN, "rope_parameters": rope}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON|model_type"),
        (b"[1]", "JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"vocab_size": ' + b"9" * 100_000 + b"}", "not JSON"),
        (b'{"a": "' + b"x" * 11_000_000 + b'"}', "too many"),
    ],
    ids=["empty", "cut off", "no text", "list", "deep", "long number", "large"],
)
def test_a_file_that_is_no_configuration(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises((pb.errors.FileFormatError, pb.ConfigurationError), match=message) as caught:
        pb.models.load(tmp_path)
    assert "config.json" in str(caught.value)


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        pb.models.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        pb.models.load(tmp_path / "nowhere")
