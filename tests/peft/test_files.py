"""Adapter folders: PEFT reads ours, we read PEFT's, and what does not fit is refused before anything is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.files.safetensors import read_arrays, write_arrays

from ..backends.installed import needs_ml_dtypes, optional
from ..models import peers as models
from . import peers

torch = optional("torch")
peft = optional("peft")
TOKENS = np.random.default_rng(0).integers(0, 97, (3, 11))


def logits(model: Any) -> Any:
    with pb.no_grad():
        return model(pb.asarray(TOKENS)).numpy()


def with_numbers(model: Any) -> Any:
    """`model` with adapters that change what it computes."""
    generator = pb.random.Generator(3)
    with pb.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("lora_B"):
                pb.nn.init.normal_(parameter, std=0.3, generator=generator)
            elif name.endswith("lora_magnitude_vector"):
                parameter *= 1.0 + 0.2 * generator.normal(parameter.shape, dtype=parameter.dtype)
    return model


CONFIGS = {
    "names": {"targets": ("q_proj", "v_proj")},
    "pattern": {"targets": "model.layers.1.*_proj"},
    "all": {"targets": "all-linear", "dora": True, "rslora": True},
    "ranks": {
        "targets": ("q_proj", "k_proj", "up_proj"),
        "rank_pattern": {"model.layers.0.self_attn.q_proj": 3, "up_proj": 5},
        "alpha_pattern": {"*.1.*": 9.0},
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_peft_reads_ours_and_we_read_it_again(name: str, tmp_path: Path) -> None:
    base = models.make("qwen3 tied", tmp_path / "base")
    model = pb.peft.add_lora(pb.models.load(tmp_path / "base"), pb.peft.LoraConfig(rank=4, alpha=6, **CONFIGS[name]))
    plain = logits(model)
    expected = logits(with_numbers(model))
    assert np.abs(expected - plain).max() > 0.01
    pb.peft.save_adapter(model, tmp_path / "adapter", base_model=str(tmp_path / "base"))
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    with torch.no_grad():
        theirs = adapted(torch.tensor(TOKENS)).logits.numpy()
    np.testing.assert_allclose(theirs, expected, atol=1e-5 * np.abs(expected).max())
    assert adapted.peft_config["default"].base_model_name_or_path == str(tmp_path / "base")
    again = pb.peft.load_adapter(pb.models.load(tmp_path / "base"), tmp_path / "adapter")
    np.testing.assert_array_equal(logits(again), expected)
    adapted.save_pretrained(tmp_path / "theirs")
    back = pb.peft.load_adapter(pb.models.load(tmp_path / "base"), tmp_path / "theirs")
    np.testing.assert_array_equal(logits(back), expected)
    ours, others = (read_arrays(tmp_path / name / "adapter_model.safetensors")[0] for name in ("adapter", "theirs"))
    assert {key: array.shape for key, array in ours.items()} == {key: array.shape for key, array in others.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": r".*\.1\..*(q|up)_proj"},
        {"target_modules": "all-linear", "init_lora_weights": "gaussian"},
        {
            "rank_pattern": {"q_proj": 2, r"^model.layers.0.mlp.up_proj": 3},
            "alpha_pattern": {"layers.1.mlp.up_proj": 2},
        },
        {"target_modules": ["0.self_attn.q_proj"], "lora_dropout": 0.5},
    ],
    ids=["expression", "all", "patterns", "longer names"],
)
def test_we_read_what_peft_writes(options: dict[str, Any], tmp_path: Path) -> None:
    peer = peers.make("qwen2", tmp_path / "base", **options).eval()
    peer.save_pretrained(tmp_path / "adapter")
    with torch.no_grad():
        expected = peer(torch.tensor(TOKENS)).logits.numpy()
    model = pb.peft.load_adapter(pb.models.load(tmp_path / "base"), tmp_path / "adapter").eval()
    np.testing.assert_allclose(logits(model), expected, atol=1e-5 * np.abs(expected).max())
    names = {peers.own_name(name) for name, p in peer.named_parameters() if "lora_" in name}
    assert pb.peft.adapter_state(model).keys() == names


@needs_ml_dtypes
def test_a_model_in_half_precision(tmp_path: Path) -> None:
    """Ours is as near to what float32 gives as PEFT's, whose adapters are in float32 too."""
    peer = peers.make("qwen2", tmp_path / "base")
    peer.save_pretrained(tmp_path / "adapter")
    exact = theirs(peer)
    half = peft.PeftModel.from_pretrained(peer.unload().to(torch.bfloat16), tmp_path / "adapter", is_trainable=True)
    model = pb.peft.load_adapter(pb.models.load(tmp_path / "base", dtype=pb.bfloat16), tmp_path / "adapter")
    assert {tensor.dtype for tensor in pb.peft.adapter_state(model).values()} == {pb.float32}
    assert model.lm_head.weight.dtype == pb.bfloat16
    grads = pb.backward(model.loss(pb.asarray(TOKENS)))
    ours = {name: grads[p].numpy() for name, p in model.named_parameters() if p.requires_grad}
    assert {gradient.dtype for gradient in ours.values()} == {np.dtype(np.float32)}
    errors = [
        np.sqrt(sum(np.sum((found[name] - exact[name]) ** 2) for name in exact)) for found in (ours, theirs(half))
    ]
    assert errors[0] < 1.2 * errors[1]


def theirs(peer: Any) -> dict[str, Any]:
    """The gradients of PEFT's adapters."""
    peer.zero_grad()
    peer(torch.tensor(TOKENS), labels=torch.tensor(TOKENS)).loss.backward()
    return {peers.own_name(name): p.grad.numpy().copy() for name, p in peer.named_parameters() if p.requires_grad}


# -- what does not fit ------------------------------------------------------------------------------


def sequential() -> Any:
    return pb.nn.Sequential(pb.nn.Linear(4, 8), pb.nn.ReLU(), pb.nn.Sequential(pb.nn.Linear(8, 3)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pb.peft.save_adapter(pb.peft.add_lora(sequential(), pb.peft.LoraConfig(rank=2, targets=("0",))), tmp_path)
    return tmp_path


def test_one_whole_name_of_several_that_end_in_it(folder: Path) -> None:
    """In PEFT's list "0" stands for "2.0" too; a pattern of ours can mean one of the two."""
    assert json.loads((folder / "adapter_config.json").read_text())["target_modules"] == ["0"]
    model = pb.peft.add_lora(sequential(), pb.peft.LoraConfig(rank=2, targets="[0]", alpha_pattern={"0": 3.0}))
    assert list(pb.peft.adapter_state(model)) == ["0.lora_A", "0.lora_B"]
    pb.peft.save_adapter(model, folder)
    again = pb.peft.load_adapter(sequential(), folder)
    assert list(pb.peft.adapter_state(again)) == ["0.lora_A", "0.lora_B"] and again[0].alpha == 3.0


def test_all_linear_by_that_name(folder: Path) -> None:
    pb.peft.save_adapter(pb.peft.add_lora(sequential(), pb.peft.LoraConfig(rank=2, targets="all-linear")), folder)
    edited(folder, target_modules="all-linear")
    assert len(pb.peft.adapter_state(pb.peft.load_adapter(sequential(), folder))) == 4


def edited(folder: Path, **entries: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"peft_type": "IA3"}, "only 'LORA' is known"),
        ({"bias": "all"}, "only 'none' is"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out"),
        ({"layers_to_transform": [0]}, "layers_to_transform"),
        ({"exclude_modules": "0"}, "exclude_modules"),
        ({"something_new": 1}, "something_new"),
        ({"lora_bias": True}, "lora_bias"),
        ({"init_lora_weights": "pissa"}, "plain one"),
        ({"init_lora_weights": 1}, "plain one"),
        ({"rank_pattern": {"(a+)+": 2}}, "regular expression"),
        ({"rank_pattern": [1]}, "must be an object"),
        ({"rank_pattern": {"0": "2"}}, "positive integer"),
        ({"r": 0}, "positive integer"),
        ({"r": True}, "positive integer"),
        ({"lora_alpha": "x"}, "positive number"),
        ({"lora_alpha": 10**400}, "positive number"),
        ({"lora_dropout": 2}, "from 0 to 1"),
        ({"use_dora": "yes"}, "True or False"),
        ({"target_modules": None}, "target_modules"),
        ({"target_modules": [1]}, "target_modules"),
        ({"target_modules": ["*"]}, "target_modules"),
        ({"target_modules": ["nothing"]}, "no linear layer"),
        ({"target_modules": ["1"]}, "ReLU"),
        ({"target_modules": ["0", "2.0"], "use_dora": True}, "lora_magnitude_vector.*missing"),
    ],
)
def test_options_that_are_not_known_or_wrong(folder: Path, entries: dict[str, Any], message: str) -> None:
    edited(folder, **entries)
    model = sequential()
    with pytest.raises(pb.ConfigurationError, match=message):
        pb.peft.load_adapter(model, folder)
    assert "LoraLinear" not in repr(model) and all(p.requires_grad for p in model.parameters())


def test_files_that_are_not_there_or_not_sound(folder: Path) -> None:
    model = sequential()
    with pytest.raises(FileNotFoundError, match="no folder"):
        pb.peft.load_adapter(model, folder / "nowhere")
    weights = folder / "adapter_model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-4])
    with pytest.raises(pb.FileFormatError, match="not a sound safetensors file"):
        pb.peft.load_adapter(model, folder)
    weights.unlink()
    (folder / "adapter_model.bin").write_bytes(b"cos\nsystem")
    with pytest.raises(FileNotFoundError, match="pickle"):
        pb.peft.load_adapter(model, folder)
    weights.write_bytes(whole)
    for text in ("{", "[]", '"' * 5, "[" * 100_000):
        (folder / "adapter_config.json").write_text(text)
        with pytest.raises(pb.FileFormatError, match="JSON"):
            pb.peft.load_adapter(model, folder)
    assert "LoraLinear" not in repr(model)


PREFIX = "base_model.model."


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda arrays: arrays.pop(f"{PREFIX}0.lora_B.weight"), pb.ConfigurationError, "0.lora_B' is missing"),
        (
            lambda arrays: arrays.update({f"{PREFIX}0.lora_magnitude_vector": np.ones(8, np.float32)}),
            pb.ConfigurationError,
            "fits nothing",
        ),
        (
            lambda arrays: arrays.update({f"{PREFIX}lm_head.weight": np.ones(8, np.float32)}),
            pb.FileFormatError,
            "no tensor of a LoRA adapter",
        ),
        (
            lambda arrays: arrays.update({f"{PREFIX}0.lora_A.weight": np.ones((3, 4), np.float32)}),
            pb.ShapeError,
            r"shape \(3, 4\)",
        ),
        (
            lambda arrays: arrays.update({f"{PREFIX}0.lora_A.weight": np.ones((2, 4), np.int32)}),
            pb.DtypeError,
            "int32",
        ),
        (lambda arrays: arrays.clear(), pb.ConfigurationError, "missing"),
    ],
)
def test_tensors_that_do_not_fit(folder: Path, change: Any, error: type, message: str) -> None:
    edited(folder, target_modules=["0"])
    path = folder / "adapter_model.safetensors"
    arrays, _ = read_arrays(path)
    arrays = {key: array for key, array in arrays.items() if "2.0" not in key}
    change(arrays)
    write_arrays(path, arrays)
    model = pb.nn.Sequential(pb.nn.Linear(4, 8))
    with pytest.raises(error, match=message):
        pb.peft.load_adapter(model, folder)
    assert "LoraLinear" not in repr(model)


def test_a_save_that_fails_leaves_the_old_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    model = pb.peft.add_lora(sequential(), pb.peft.LoraConfig(rank=3, targets=("0",)))

    def fail(*_: Any) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        pb.peft.save_adapter(model, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
