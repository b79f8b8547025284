"""Folders of models: read and written as `transformers` does, mapped without a copy, written over safely."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.files.safetensors import read_arrays, write_arrays
from pullback.models import saving

from ..backends.installed import BFLOAT16, needs_llvmlite, needs_ml_dtypes, optional, require
from . import peers

torch = optional("torch")
transformers = optional("transformers")
TOKENS = np.random.default_rng(0).integers(0, 97, (2, 9))
COMPILED = [False, pytest.param(True, marks=needs_llvmlite)]


def tiny(seed: int = 0, dtype: Any = None, **options: Any) -> Any:
    pb.random.seed(seed)
    sizes = {**peers.SIZES, "head_dim": 8, "initializer_range": 0.3, **options}
    return pb.models.qwen3(pb.models.DecoderConfig("qwen3", **sizes), dtype=dtype)


def logits(model: Any) -> Any:
    with pb.no_grad():
        device = model.model.norm.weight.device
        return model(pb.asarray(TOKENS, device=device)).astype("float32").numpy()


def peer_logits(peer: Any) -> Any:
    with torch.no_grad():
        return peer(torch.tensor(TOKENS)).logits.float().numpy()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# -- with transformers -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["10GB", "20KB"], ids=["one file", "shards"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3 tied", "qwen2", "llama"])
def test_folders_of_transformers(name: str, size: str, tmp_path: Path) -> None:
    peer = peers.make(name, tmp_path / "first")
    peer.save_pretrained(tmp_path / "second", max_shard_size=size)
    assert (len(list((tmp_path / "second").glob("*.safetensors"))) > 1) is (size == "20KB")
    expected = peer_logits(peer)
    np.testing.assert_allclose(
        logits(pb.models.load(tmp_path / "second")), expected, atol=1e-5 * np.abs(expected).max()
    )


@pytest.mark.parametrize("largest_file", [10**9, 20_000], ids=["one file", "shards"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3 tied", "qwen2", "llama", "llama biased"])
def test_transformers_reads_what_is_written(name: str, largest_file: int, tmp_path: Path) -> None:
    peers.make(name, tmp_path / "first")
    model = pb.models.load(tmp_path / "first")
    pb.models.save(model, tmp_path / "second", largest_file)
    assert (len(list((tmp_path / "second").glob("*.safetensors"))) > 1) is (largest_file == 20_000)
    peer, told = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "second", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    expected = logits(model)
    np.testing.assert_allclose(peer_logits(peer), expected, atol=1e-5 * np.abs(expected).max())
    assert np.array_equal(logits(pb.models.load(tmp_path / "second")), expected)


@pytest.mark.parametrize("dtype", [BFLOAT16, pb.float16])
def test_half_precision(dtype: Any, tmp_path: Path) -> None:
    peer = peers.make("qwen3", tmp_path / "first")
    peer.to(getattr(torch, dtype.name)).save_pretrained(tmp_path / "second")
    whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "second", dtype=torch.float32)
    expected = peer_logits(whole)
    model = pb.models.load(tmp_path / "second")
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}
    assert np.abs(logits(model) - expected).max() < 0.1 * np.abs(expected).max()
    wide = pb.models.load(tmp_path / "second", dtype="float32")
    np.testing.assert_allclose(logits(wide), expected, atol=1e-5 * np.abs(expected).max())
    pb.models.save(model, tmp_path / "third")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "third", dtype="auto")
    assert again.dtype == getattr(torch, dtype.name)
    for name, parameter in again.named_parameters():
        assert np.array_equal(parameter.detach().float().numpy(), model.state_dict()[name].astype("float32").numpy())


def test_old_entries_beside_weights(tmp_path: Path) -> None:
    peer = peers.make("llama", tmp_path)
    entries = json.loads((tmp_path / "config.json").read_text())
    rope = entries.pop("rope_parameters")
    entries |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope, "torch_dtype": entries.pop("dtype")}
    (tmp_path / "config.json").write_text(json.dumps(entries))
    expected = peer_logits(peer)
    np.testing.assert_allclose(logits(pb.models.load(tmp_path)), expected, atol=1e-5 * np.abs(expected).max())


def test_a_tied_head_may_be_in_the_file(tmp_path: Path) -> None:
    model = tiny(tie_word_embeddings=True)
    pb.models.save(model, tmp_path)
    arrays, _ = read_arrays(tmp_path / "model.safetensors")
    assert "lm_head.weight" not in arrays
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    write_arrays(tmp_path / "model.safetensors", arrays)
    again = pb.models.load(tmp_path)
    assert again.lm_head.weight is again.model.embed_tokens.weight
    assert np.array_equal(logits(again), logits(model))


def test_files_of_tokenizer_and_generation_are_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    pb.models.save(tiny(), source)
    (source / "tokenizer.json").write_text("{}")
    (source / "generation_config.json").write_text('{"eos_token_id": [3, 4]}')
    (source / "notes.txt").write_text("not copied")
    model = pb.models.load(source)
    assert model.config.stop_tokens == (3, 4)
    pb.models.save(model, target, like=source)
    assert names(target) == {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json"}
    pb.models.save(model, source, like=source)
    assert (source / "tokenizer.json").read_text() == "{}"
    pb.models.save(model, tmp_path / "third")  # the stop tokens go with the model
    assert pb.models.load(tmp_path / "third").config.stop_tokens == (3, 4)
    with pytest.raises(FileNotFoundError, match="like="):
        pb.models.save(model, target, like=tmp_path / "nowhere")


# -- memory ----------------------------------------------------------------------------------------


def map_of(tensor: Any) -> Any:
    array = tensor.data
    while not isinstance(array, np.memmap):
        array = array.base
    return array


@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16])
def test_weights_are_views_of_the_files(dtype: Any, tmp_path: Path) -> None:
    pb.models.save(tiny(dtype=dtype), tmp_path, largest_file=20_000)
    model = pb.models.load(tmp_path)
    for parameter in model.parameters():
        assert not map_of(parameter).flags.writeable and np.shares_memory(parameter.data, map_of(parameter))


def anonymous_bytes() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16])
def test_loading_takes_no_memory(dtype: Any, device: str, tmp_path: Path) -> None:
    require(device)
    size = 200_000_000 // dtype.itemsize // 2 // 1024
    sizes = {"vocab_size": size, "hidden_size": 1024, "num_hidden_layers": 1, "tie_word_embeddings": False}
    pb.models.save(tiny(dtype=dtype, **sizes), tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size > 190_000_000
    pb.models.load(tmp_path, device)  # libraries load what they need
    before = anonymous_bytes()
    model = pb.models.load(tmp_path, device)
    taken = anonymous_bytes() - before
    with pb.no_grad():
        hidden = model.model(pb.asarray([[1, 2, 3]], device=device))
        total = sum(parameter.detach()[0].astype("float32").sum().item() for parameter in model.parameters())
    used = anonymous_bytes() - before
    assert np.isfinite(total) and hidden.shape == (1, 3, 1024)
    assert taken < 4_000_000 and used < 40_000_000


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "compiled"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("dtype", [pb.float32, BFLOAT16])
def test_frozen_weights_stay_where_they_are(dtype: Any, device: str, compiled: bool, tmp_path: Path) -> None:
    require(device)
    pb.models.save(tiny(dtype=dtype), tmp_path)
    file = (tmp_path / "model.safetensors").read_bytes()
    model = pb.models.load(tmp_path, device).freeze()
    model.unfreeze("model.norm.weight")
    optimizer = pb.optim.SGD([model.model.norm.weight], lr=0.5)

    def address(tensor: Any) -> int:
        return tensor.data.ctypes.data if device == "numpy" else tensor.data.data_ptr()

    def step(tokens: Any) -> Any:
        loss = model.loss(tokens)
        optimizer.step(pb.backward(loss))
        return loss

    before = {name: address(parameter) for name, parameter in model.named_parameters()}
    run = pb.compile(step) if compiled else step
    losses = [run(pb.asarray(TOKENS, device=device)).item() for _ in range(6)]
    assert losses[-1] < losses[0]
    after = {name: address(parameter) for name, parameter in model.named_parameters()}
    assert {name for name in before if before[name] != after[name]} <= {"model.norm.weight"}
    assert (tmp_path / "model.safetensors").read_bytes() == file


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "compiled"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_trained_weights_leave_the_file_alone(device: str, compiled: bool, tmp_path: Path) -> None:
    require(device)
    pb.models.save(tiny(), tmp_path)
    file = (tmp_path / "model.safetensors").read_bytes()
    model, other = (pb.models.load(tmp_path, device) for _ in range(2))
    untouched = logits(other)
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.01)

    def step(tokens: Any) -> Any:
        loss = model.loss(tokens)
        optimizer.step(pb.backward(loss))
        return loss

    run = pb.compile(step) if compiled else step
    losses = [run(pb.asarray(TOKENS, device=device)).item() for _ in range(5)]
    assert losses[-1] < losses[0]
    assert (tmp_path / "model.safetensors").read_bytes() == file and np.array_equal(logits(other), untouched)


@pytest.mark.parametrize("compiled", COMPILED, ids=["eager", "compiled"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("shift", [1, 2, 4, 7])
def test_weights_need_not_be_aligned(shift: int, device: str, compiled: bool, tmp_path: Path) -> None:
    """Headers of other programs have any length."""
    require(device)
    model = tiny()
    pb.models.save(model, tmp_path)
    path = tmp_path / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip() + b" " * shift
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
    loaded = pb.models.load(tmp_path, device)
    tokens = pb.asarray(TOKENS, device=device)
    loss = (pb.compile(loaded.loss) if compiled else loaded.loss)(tokens)
    assert loss.item() == pytest.approx(model.loss(TOKENS).item(), rel=1e-5)


# -- writing over ----------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [10**9, 20_000], ids=["from one", "from shards"])
@pytest.mark.parametrize("new", [10**9, 20_000, 30_000], ids=["to one", "to shards", "to other shards"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_a_model_is_saved_over_the_folder_that_it_is_mapped_from(
    old: int, new: int, device: str, tmp_path: Path
) -> None:
    require(device)
    pb.models.save(tiny(), tmp_path, old)
    model = pb.models.load(tmp_path, device)
    before = logits(model)
    with pb.no_grad():
        model.model.norm.weight *= 2.0
    pb.models.save(model, tmp_path, new)
    after = logits(model)
    np.testing.assert_allclose(after, 2 * before, rtol=1e-5, atol=1e-6)
    assert np.array_equal(logits(pb.models.load(tmp_path, device)), after)
    weights = [name for name in names(tmp_path) if name.endswith(".safetensors")]
    assert ("model.safetensors" in weights) is (new == 10**9) is (len(weights) == 1)
    assert names(tmp_path) - set(weights) <= {"config.json", "model.safetensors.index.json"}
    assert ("model.safetensors.index.json" in names(tmp_path)) is (new != 10**9)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("old", [10**9, 20_000], ids=["from one", "from shards"])
@pytest.mark.parametrize("new", [10**9, 20_000], ids=["to one", "to shards"])
def test_a_crash_leaves_the_old_model_or_the_new_one(
    old: int, new: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tiny(1), tiny(2)
    pb.models.save(first, tmp_path / "whole", old)
    wanted = [logits(first), logits(second)]
    seen = set()
    for crash in range(1, 60):
        folder = tmp_path / str(crash)
        shutil.copytree(tmp_path / "whole", folder)
        left = crash

        def stepping(function: Any) -> Any:
            def call(*args: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    raise Crash
                return function(*args)

            return call

        with monkeypatch.context() as patch:
            for name in ("_write_weights", "_write_json", "_remove"):
                patch.setattr(saving, name, stepping(getattr(saving, name)))
            try:
                pb.models.save(second, folder, new)
            except Crash:
                pass
            else:
                break
        found = logits(pb.models.load(folder))
        which = [np.array_equal(found, one) for one in wanted]
        assert any(which), f"after {crash - 1} steps"
        seen.add(which.index(True))
        pb.models.save(second, folder, new)  # and again, on what has been left
        assert np.array_equal(logits(pb.models.load(folder)), wanted[1])
        assert len(list(folder.glob("*.safetensors"))) == len(
            [name for name in names(folder) if name.endswith(".safetensors") and name in _named(folder)]
        )
    assert 0 in seen


def _named(folder: Path) -> set[str]:
    """The files that the weights are in."""
    index = folder / "model.safetensors.index.json"
    return set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}


# -- what is wrong ---------------------------------------------------------------------------------


def sharded(folder: Path) -> dict[str, Any]:
    pb.models.save(tiny(), folder, 20_000)
    return json.loads((folder / "model.safetensors.index.json").read_text())


@pytest.mark.parametrize(
    "name",
    ["../model.safetensors", "/etc/passwd", "a/../../x", "..", "", ".", "sub/model.safetensors", "..\\x", 5, None],
)
def test_an_index_stays_in_its_folder(name: Any, tmp_path: Path) -> None:
    index = sharded(tmp_path)
    index["weight_map"]["model.norm.weight"] = name
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(pb.errors.FileFormatError, match=r"index\.json"):
        pb.models.load(tmp_path)


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", '{"weight_map": 5}', '{"weight_map": {"a": ["b"]}}', '{"weight_map": {}}', "{", "[" * 50_000],
)
def test_an_index_that_says_nothing(content: str, tmp_path: Path) -> None:
    sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(pb.errors.FileFormatError, match=r"index\.json"):
        pb.models.load(tmp_path)


def test_a_missing_shard(tmp_path: Path) -> None:
    name = next(iter(sharded(tmp_path)["weight_map"].values()))
    os.remove(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=name):
        pb.models.load(tmp_path)


def test_links_as_the_hub_has_them(tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path / "blobs")
    (tmp_path / "snapshot").mkdir()
    for name in ("config.json", "model.safetensors"):
        os.symlink(f"../blobs/{name}", tmp_path / "snapshot" / name)
    assert np.array_equal(logits(pb.models.load(tmp_path / "snapshot")), logits(tiny()))


def test_no_weights_at_all(tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path)
    os.rename(tmp_path / "model.safetensors", tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"pytorch_model\.bin"):
        pb.models.load(tmp_path)


def change(folder: Path, name: str, array: Any) -> None:
    arrays, _ = read_arrays(folder / "model.safetensors")
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    write_arrays(folder / "model.safetensors", arrays)


@pytest.mark.parametrize(
    ("name", "array", "error", "message"),
    [
        ("model.norm.weight", None, pb.ConfigurationError, r"lack 'model\.norm\.weight'"),
        ("lm_head.weight", None, pb.ConfigurationError, r"lack 'lm_head\.weight'"),
        ("model.norm.weight", np.ones(31, np.float32), pb.ShapeError, r"\(31,\), config\.json says \(32,\)"),
        ("model.norm.weight", np.ones(32, np.int32), pb.ConfigurationError, "int32, expected floating-point"),
        ("model.norm.weight", np.ones(32, bool), pb.ConfigurationError, "bool"),
        ("model.norm.bias", np.ones(32, np.float32), pb.ConfigurationError, r"no model that has 'model\.norm\.bias'"),
        ("model.layers.2.mlp.up_proj.weight", np.ones((48, 32), np.float32), pb.ConfigurationError, r"layers\.2"),
    ],
    ids=["missing", "no head", "shape", "integers", "booleans", "extra", "extra layer"],
)
def test_weights_that_do_not_fit(name: str, array: Any, error: Any, message: str, tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path)
    change(tmp_path, name, array)
    for dtype in (None, "float32"):
        with pytest.raises(error, match=message) as caught:
            pb.models.load(tmp_path, dtype=dtype)
        assert str(tmp_path) in str(caught.value)


def test_more_layers_than_there_are_weights(tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path)
    entries = json.loads((tmp_path / "config.json").read_text())
    for changes in ({"num_hidden_layers": 9_999}, {"vocab_size": 2**31 - 1}, {"head_dim": 2**30}):
        (tmp_path / "config.json").write_text(json.dumps(entries | changes))
        with pytest.raises((pb.ConfigurationError, pb.ShapeError), match=r"lack|config\.json says"):
            pb.models.load(tmp_path)


def test_frequencies_of_old_files_are_passed_over(tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path)
    change(tmp_path, "model.layers.0.self_attn.rotary_emb.inv_freq", np.ones(4, np.float32))
    assert np.array_equal(logits(pb.models.load(tmp_path)), logits(tiny()))


# -- quantized -------------------------------------------------------------------------------------


@needs_ml_dtypes
@pytest.mark.parametrize("dtype", [None, pb.float32], ids=["as saved", "float32"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_loading_quantized_is_loading_and_quantizing(device: str, dtype: Any, tmp_path: Path) -> None:
    require(device)
    pb.models.save(tiny(dtype=pb.bfloat16), tmp_path)
    found = pb.models.load(tmp_path, device, dtype, quantize="int8")
    expected = pb.quant.quantize(pb.models.load(tmp_path, device, dtype))
    assert not any(parameter.requires_grad for parameter in found.parameters())
    assert found.state_dict().keys() == expected.state_dict().keys()
    for name, tensor in expected.state_dict().items():
        assert tensor.dtype == found.state_dict()[name].dtype and bool((tensor == found.state_dict()[name]).all()), name
    layers = {name: type(module).__name__ for name, module in found.named_modules() if name.endswith(("proj", "head"))}
    assert layers.pop("lm_head") == "Linear" and set(layers.values()) == {"QuantizedLinear"}
    assert np.array_equal(logits(found), logits(expected))
    close = logits(pb.models.load(tmp_path, device, dtype))
    np.testing.assert_allclose(logits(found), close, atol=0.1 * np.abs(close).max())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_weights_are_quantized_one_by_one(tmp_path: Path) -> None:
    """Loading takes what is kept, a byte for each weight, and room to quantize one of them."""
    sizes = {"vocab_size": 100, "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 6}
    pb.models.save(tiny(dtype=pb.float32, **sizes), tmp_path)
    saved = (tmp_path / "model.safetensors").stat().st_size
    pb.models.load(tmp_path, quantize="int8")  # native code
    before = anonymous_bytes()
    model = pb.models.load(tmp_path, quantize="int8")
    taken = anonymous_bytes() - before
    kept = sum(tensor.nbytes for tensor in model.buffers())
    assert 0.24 * saved < kept < 0.27 * saved
    assert taken < 0.6 * saved


def test_weights_that_cannot_be_quantized_are_named(tmp_path: Path) -> None:
    pb.models.save(tiny(), tmp_path)
    with pytest.raises(pb.DtypeError, match="unknown scheme 'int3'"):
        pb.models.load(tmp_path, quantize="int3")
    name = "model.layers.1.mlp.up_proj.weight"
    change(tmp_path, name, np.full((48, 32), np.nan, np.float32))
    with pytest.raises(pb.ConfigurationError, match=rf"^{name}: .*NaN or infinity"):
        pb.models.load(tmp_path, quantize="int8")


@needs_ml_dtypes
@pytest.mark.parametrize("largest_file", [10**9, 4_000], ids=["one file", "shards"])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("scheme", ["int8", "int4", "nf4", "fp8"])
def test_quantized_models_are_saved_and_loaded(scheme: str, device: str, largest_file: int, tmp_path: Path) -> None:
    require(device)
    pb.models.save(tiny(dtype=pb.bfloat16), tmp_path / "first")
    model = pb.models.load(tmp_path / "first", device, quantize=scheme)
    pb.models.save(model, tmp_path / "second", largest_file)
    assert pb.models.folder.dtype_in(tmp_path / "second") == "bfloat16"
    for quantize in (None, scheme):
        again = pb.models.load(tmp_path / "second", device, quantize=quantize)
        assert not any(parameter.requires_grad for parameter in again.parameters())
        expected, found = model.state_dict(), again.state_dict()
        assert expected.keys() == found.keys()
        assert all(bool((found[name] == tensor).all()) for name, tensor in expected.items())
        assert np.array_equal(logits(again), logits(model))
        assert again.model.layers[0].mlp.up_proj.weight.dtype == pb.bfloat16
    wide = pb.models.load(tmp_path / "second", device, dtype="float32")
    assert wide.model.layers[0].mlp.up_proj.weight.dtype == wide.model.norm.weight.dtype == pb.float32
    np.testing.assert_allclose(logits(wide), logits(model), atol=0.1 * np.abs(logits(model)).max())
    pb.models.save(pb.quant.dequantize(again), tmp_path / "third")
    assert np.array_equal(logits(pb.models.load(tmp_path / "third", device)), logits(model))


def test_parts_of_quantized_weights_are_views_of_the_files(tmp_path: Path) -> None:
    pb.models.save(pb.quant.quantize(tiny(), "nf4"), tmp_path)
    layer = pb.models.load(tmp_path).model.layers[0].mlp.up_proj
    assert not map_of(layer.nf4_codes).flags.writeable and np.shares_memory(
        layer.nf4_codes.data, map_of(layer.nf4_codes)
    )


@pytest.mark.parametrize("ties", [False, True])
def test_a_head_may_be_quantized_too(ties: bool, tmp_path: Path) -> None:
    """It has weights of its own then."""
    model = pb.quant.quantize(tiny(tie_word_embeddings=ties), "int8", skip=())
    pb.models.save(model, tmp_path)
    again = pb.models.load(tmp_path)
    assert type(again.lm_head) is pb.quant.QuantizedLinear and not again.config.tie_word_embeddings
    assert np.array_equal(logits(again), logits(model))


def test_some_layers_may_be_plain(tmp_path: Path) -> None:
    model = pb.quant.quantize(tiny(), "int4", skip=("*down_proj", "lm_head"))
    pb.models.save(model, tmp_path)
    again = pb.models.load(tmp_path)
    assert type(again.model.layers[1].mlp.down_proj) is pb.nn.Linear
    assert np.array_equal(logits(again), logits(model))


def test_layers_may_be_quantized_in_different_ways(tmp_path: Path) -> None:
    model = pb.quant.quantize(tiny(), "int4", skip=("*down_proj", "lm_head"))
    pb.quant.quantize(model.model.layers[0].mlp, "nf4", skip=("gate_proj", "up_proj"))
    pb.models.save(model, tmp_path)
    again = pb.models.load(tmp_path)
    assert again.model.layers[0].mlp.down_proj.form.scheme == "nf4"
    assert type(again.model.layers[1].mlp.down_proj) is pb.nn.Linear
    assert np.array_equal(logits(again), logits(model))


@pytest.mark.parametrize("dtype", [pb.float16, pb.float64, BFLOAT16])
@pytest.mark.parametrize("scheme", ["int8", "int4", "nf4", "fp8"])
def test_quantized_models_are_converted_and_saved(scheme: str, dtype: Any, tmp_path: Path) -> None:
    """The parts stay as they are: scales of half precision would change the weights."""
    model = pb.quant.quantize(tiny(), scheme)
    exact = model.model.layers[0].mlp.up_proj.weight.numpy()
    model.astype(dtype)
    weight = model.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == dtype == model.lm_head.weight.dtype
    pb.models.save(model, tmp_path)
    again = pb.models.load(tmp_path)
    assert all(bool((again.state_dict()[name] == tensor).all()) for name, tensor in model.state_dict().items())
    model.astype("float32")
    np.testing.assert_array_equal(model.model.layers[0].mlp.up_proj.weight.numpy(), exact)


@pytest.mark.parametrize(("first", "second"), [(None, "nf4"), ("nf4", None), ("int8", "fp8"), ("int4", "nf4")])
@pytest.mark.parametrize("largest_file", [10**9, 4_000], ids=["one file", "shards"])
def test_a_crash_between_weights_and_configuration(
    first: Any, second: Any, largest_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found are the old weights or the new ones, however each are quantized."""
    made = [tiny() if scheme is None else pb.quant.quantize(tiny(), scheme) for scheme in (first, second)]
    pb.models.save(made[0], tmp_path, largest_file)

    def crash(path: str, entries: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(saving, "_write_json", crash)
        pb.models.save(made[1], tmp_path, largest_file)
    found = logits(pb.models.load(tmp_path))
    assert any(np.array_equal(found, logits(model)) for model in made)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"quant_method": "gptq", "bits": 4}, "the weights are quantized by 'gptq'"),
        ("nf4", "the weights are quantized by None"),
        ({"quant_method": ["pullback"]}, "the weights are quantized by"),
    ],
)
def test_weights_that_others_have_quantized(entry: Any, message: str, tmp_path: Path) -> None:
    pb.models.save(pb.quant.quantize(tiny(), "nf4"), tmp_path)
    entries = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(entries | {"quantization_config": entry}))
    with pytest.raises((pb.ConfigurationError, pb.ShapeError), match=message) as caught:
        pb.models.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_parts_in_place_of_weights_that_are_not_of_layers(tmp_path: Path) -> None:
    for name in ("model.norm", "model.embed_tokens"):
        pb.models.save(tiny(), tmp_path)
        change(tmp_path, f"{name}.weight", None)
        change(tmp_path, f"{name}.nf4_codes", np.zeros((1, 1, 32), np.uint8))
        with pytest.raises(pb.ConfigurationError, match=rf"lack '{name}\.weight'"):
            pb.models.load(tmp_path)


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    pb.models.save(pb.quant.quantize(tiny(), "nf4"), tmp_path)
    with pytest.raises(pb.ConfigurationError, match="the weights are quantized as 'nf4', not 'int8'"):
        pb.models.load(tmp_path, quantize="int8")
    stem = "model.layers.1.mlp.up_proj."
    arrays, _ = read_arrays(tmp_path / "model.safetensors")
    for name, array, message in (
        ("nf4_codes", arrays[stem + "nf4_codes"][:-1], "has shape"),
        ("nf4_codes", arrays[stem + "nf4_codes"].astype(np.int8), "is int8, expected uint8"),
        ("nf4_scale_lows", None, "lack 'model.layers.1.mlp.up_proj.nf4_scale_lows'"),
    ):
        pb.models.save(pb.quant.quantize(tiny(), "nf4"), tmp_path)
        change(tmp_path, stem + name, array)
        with pytest.raises((pb.ConfigurationError, pb.ShapeError), match=message):
            pb.models.load(tmp_path)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("merged", [False, True])
def test_adapters_are_not_lost_in_a_folder_of_weights(merged: bool, quantized: bool, tmp_path: Path) -> None:
    model = pb.quant.quantize(tiny()) if quantized else tiny()
    pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="all-linear"))
    if merged:
        pb.peft.merge(model)
    with pytest.raises(pb.ConfigurationError, match=r"is no part of .*pb\.peft\.remove\(pb\.peft\.merge\(model\)\)"):
        pb.models.save(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    pb.models.save(pb.peft.remove(model), tmp_path / "new")
    assert (logits(pb.models.load(tmp_path / "new")) == logits(model)).all()
