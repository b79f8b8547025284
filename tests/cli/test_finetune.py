"""`pullback finetune`: runs from options and files, going on bit for bit, and errors that change nothing."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.finetune.run import ADAPTER_FILES
from pullback.train import JsonLines, read_checkpoint, read_log
from pullback.train.checkpoints import CheckpointFolder

from ..backends.installed import needs, needs_llvmlite
from ..finetune.tiny import Tiny, write_tiny
from .test_train import contents, interrupt_at, source

needs_torch = needs("torch", "another device")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Tiny:
    return write_tiny(tmp_path_factory.mktemp("finetune"))


@pytest.fixture
def basic(tiny) -> list[object]:
    """The options of a short run."""
    return ["--model", tiny.model, "--data", tiny.data, "--seq", 48, "--batch", 2, "--rank", 2, "--steps", 6]


@pytest.fixture
def finetune(pullback):
    return lambda *arguments: pullback("finetune", *arguments)


def weights(folder: Path) -> bytes:
    return (folder / "adapter_model.safetensors").read_bytes()


def steps_of(folder: Path) -> list[dict[str, Any]]:
    return [record for record in read_log(folder / "log.jsonl") if record["kind"] == "step"]


def losses_of(folder: Path) -> list[tuple[int, float]]:
    return [(record["step"], record["loss"]) for record in steps_of(folder)]


# -- runs --------------------------------------------------------------------------------------------


def test_a_run_writes_its_folder_and_nothing_else(finetune, basic, tiny, tmp_path):
    before = contents(tiny.model)
    result = finetune(*basic, "--validation", tiny.validation, "--out", "run", "--validate-every", 3)
    assert result.code == 0, result
    assert {path.name for path in tmp_path.iterdir()} == {"run"} and contents(tiny.model) == before
    folder = tmp_path / "run"
    assert {path.name for path in folder.iterdir()} == {
        "config.toml", "checkpoints", "log.jsonl", "loss.svg", "report.html", "results.json", "run.json",
        *ADAPTER_FILES,
    }  # fmt: skip
    assert re.search(r"^texts +samples +tokens", result.out) and re.search(r"^data +101 ", result.out, re.MULTILINE)
    for name in ("loss", "validation loss"):
        assert re.search(rf"^{name} [\d.]+ after 6 steps$", result.out, re.MULTILINE)
    assert f"adapter: {folder}\n" in result.out and f"report:  {folder / 'report.html'}\n" in result.out
    # progress on a stream that is no terminal: lines, the last of which is the end
    assert re.search(r"step 6/6 .*loss [\d.]+ .*tokens/s .*GiB", result.err.splitlines()[-1])
    assert "\r" not in result.err and "\x1b" not in result.err


def test_the_files_of_a_run_tell_what_it_took(finetune, basic, tiny, tmp_path):
    assert finetune(*basic, "--validation", tiny.validation, "--out", "run", "--quiet").code == 0
    for record in steps_of(tmp_path / "run"):
        assert record["tokens_per_second"] > 0 and 0 < record["memory_gib"] < 100
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Fine-tuning of tiny" in report and "tokens_per_second" in report and "memory_gib" in report
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results.keys() == {
        "steps", "seconds", "loss", "validation_loss", "validation_perplexity", "peak_memory_bytes",
    }  # fmt: skip
    assert results["steps"] == 6 and results["loss"] == steps_of(tmp_path / "run")[-1]["loss"]
    assert results["validation_perplexity"] == pytest.approx(np.exp(results["validation_loss"]))
    about = json.loads((tmp_path / "run" / "adapter_config.json").read_text())
    assert about["base_model_name_or_path"] == str(tiny.model) and about["r"] == 2


def test_quiet_shows_the_result_alone(finetune, basic):
    result = finetune(*basic, "--out", "run", "--quiet")
    assert result.code == 0 and result.err == ""
    assert [line.split()[0] for line in result.out.splitlines()] == ["loss", "adapter:", "report:", "try"]


def test_overwriting_replaces_the_run_and_leaves_files_of_others(finetune, basic, tmp_path):
    assert finetune(*basic, "--out", "run", "--quiet", "--lr", 0.1).code == 0
    (tmp_path / "run" / "notes.txt").write_text("mine")
    first = weights(tmp_path / "run")
    assert finetune(*basic, "--out", "run", "--quiet", "--overwrite", "--steps", 3).code == 0
    assert weights(tmp_path / "run") != first
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert [step for step, _ in losses_of(tmp_path / "run")] == [1, 2, 3]
    assert max(CheckpointFolder(tmp_path / "run").steps()) == 3


def test_a_run_that_fails_gives_back_the_one_that_it_was_to_replace(finetune, basic, tmp_path, monkeypatch):
    assert finetune(*basic, "--out", "run", "--quiet").code == 0
    before = contents(tmp_path / "run")

    def fail(self, trainer, record):
        raise MemoryError

    monkeypatch.setattr(JsonLines, "on_step", fail)
    result = finetune(*basic, "--out", "run", "--quiet", "--overwrite", "--seed", 3)
    assert result.code == 2 and "is there again" in result.err
    assert contents(tmp_path / "run") == before


# -- what a run is told --------------------------------------------------------------------------------

#: Every option, with a value that is not its default's: on the command line, and in TOML.
EVERY = {
    "device": ("numpy", '"numpy"'), "dtype": ("float16", '"float16"'), "quant": ("int8", '"int8"'),
    "rank": ("3", "3"), "alpha": ("9", "9"),
    "dropout": ("0.2", "0.2"), "targets": (["q_proj", "v_proj"], '["q_proj", "v_proj"]'), "rslora": (True, "true"),
    "dora": (True, "true"), "steps": ("3", "3"), "batch": ("3", "3"), "seq": ("50", "50"), "accumulate": ("2", "2"),
    "pack": (False, "false"), "train_on": ("all", '"all"'), "too_long": ("skip", '"skip"'), "lr": ("1e-3", "1e-3"),
    "schedule": ("linear", '"linear"'), "warmup": ("1", "1"), "weight_decay": ("0.1", "0.1"),
    "clip_norm": ("0.5", "0.5"), "checkpointing": ("layers", '"layers"'), "compile": (False, "false"),
    "validate_every": ("2", "2"), "checkpoint_every": ("2", "2"), "keep": ("1", "1"), "seed": ("5", "5"),
    "date": ("2026-01-31", "2026-01-31"),
}  # fmt: skip


def as_options(values: dict[str, Any]) -> list[object]:
    found: list[object] = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            found += [f"--{flag}", *(value if isinstance(value, list) else [value])]
    return found


def test_a_file_says_what_options_say(finetune, tiny, tmp_path):
    from pullback.cli.finetune_format import OPTIONS

    assert EVERY.keys() == OPTIONS.keys() - {"model", "data", "validation", "epochs"}
    paths = {"model": tiny.model, "data": tiny.data, "validation": tiny.validation}
    relative = {name: os.path.relpath(path, tmp_path / "configs") for name, path in paths.items()}
    (tmp_path / "configs").mkdir()
    text = "".join(f'{name} = "{path}"\n' for name, path in relative.items())
    text += "".join(f"{name} = {written}\n" for name, (_, written) in EVERY.items())
    (tmp_path / "configs" / "run.toml").write_text(text)
    given = as_options({**paths, **{name: value for name, (value, _) in EVERY.items()}})
    by_options = finetune(*given, "--print-config")
    by_file = finetune("configs/run.toml", "--print-config")
    assert by_options.code == by_file.code == 0, by_options
    assert sorted(by_options.out.splitlines()) == sorted(by_file.out.splitlines())
    assert finetune(*given, "--out", "a", "--quiet").code == finetune("configs/run.toml", "--out", "b", "--quiet").code
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert len(losses_of(tmp_path / "a")) == 3


def test_a_printed_configuration_says_the_same(finetune, basic, tmp_path):
    printed = finetune(*basic, "--print-config", "--lr", "0.05").out
    (tmp_path / "run.toml").write_text(printed)
    assert finetune("run.toml", "--print-config").out == printed
    assert not any(path.is_dir() for path in tmp_path.iterdir())
    assert finetune(*basic, "--lr", "0.05", "--out", "a", "--quiet").code == 0
    assert finetune("run.toml", "--out", "b", "--quiet").code == 0
    assert finetune("a/config.toml", "--out", "c", "--quiet").code == 0
    assert weights(tmp_path / "a") == weights(tmp_path / "b") == weights(tmp_path / "c")


def test_options_take_the_place_of_what_a_file_says(finetune, basic, tmp_path):
    (tmp_path / "run.toml").write_text("rank = 7\nepochs = 3\ncompile = false\n")
    printed = finetune("run.toml", *basic, "--compile", "--print-config").out.splitlines()
    assert {"rank = 2", "steps = 6", "compile = true"} <= set(printed)
    assert not any(line.startswith("epochs") for line in printed)


def test_epochs_are_gone_through_whole(finetune, basic, tmp_path):
    result = finetune(*basic[:-2], "--epochs", 2, "--batch", 8, "--out", "run")
    assert result.code == 0, result
    steps = steps_of(tmp_path / "run")
    assert {record["epoch"] for record in steps} == {1, 2} and len(steps) % 2 == 0
    assert f"epoch 2/2  step {len(steps)}/{len(steps)}" in result.err


def test_a_dry_run_writes_nothing(finetune, basic, tmp_path):
    pytest.importorskip("llvmlite")
    result = finetune(*basic, "--dry-run", "--accumulate", 2)
    assert result.code == 0 and list(tmp_path.iterdir()) == []
    for line in ("texts ", "data ", "memory ", "frozen weights", "adapters", "sums of gradients", "together"):
        assert re.search(rf"^{line}", result.out, re.MULTILINE), line


# -- errors: exit code 2, a clear message, no traceback, nothing written or lost -------------------------


@pytest.fixture
def refused(finetune, tmp_path):
    """Run what must be refused; everything in the folder must be as before. What was said about it."""

    def run(*arguments: object) -> str:
        before = contents(tmp_path)
        folders = {path for path in tmp_path.rglob("*") if path.is_dir()}
        result = finetune(*arguments)
        assert result.code == 2, result
        assert "Traceback" not in result.err and "bug in Pullback" not in result.err
        assert contents(tmp_path) == before
        assert {path for path in tmp_path.rglob("*") if path.is_dir()} == folders
        return result.err

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rank", "x"], '--rank: expected a whole number, 1 or more, got "x"'),
        (["--lr", "-1"], "--lr: expected a positive number, got -1"),
        (["--seq", "1"], "--seq: expected a whole number, 2 or more, got 1"),
        (["--dropout", "1"], "--dropout: expected a number from 0 to below 1, got 1"),
        (["--dtype", "int8"], '--dtype: expected one of float32, bfloat16, float16, got "int8"'),
        (["--checkpointing", "2QiB"], '--checkpointing: expected "none", "balanced", "layers", or a size such as'),
        (["--quant", "int3"], '--quant: expected one of none, int8, int4, nf4, fp8, got "int3"'),
        (["--date", "2026-02-30"], '--date: expected a date such as 2026-01-31, got "2026-02-30"'),
        (["--epochs", "2"], "--epochs and --steps both say how long a run is: leave one of them out."),
        (["--validate-every", "2"], "--validate-every: expected `validation` beside it, a file of texts"),
        (["--warmup", "6"], "warmup: expected fewer than the 6 steps of the run, got 6."),
        (["--targets", "nose"], "the target 'nose' stands for no linear layer of LanguageModel. There are 'down_proj'"),
        (["--targets", "model"], "adapters go to pb.nn.Linear, but the target 'model' names 'model', Decoder."),
        (["--device", "abacus"], "unknown device 'abacus'; known here: "),
        pytest.param(["--device", "torch:cuda:99"], "unknown device 'torch:cuda:99'; torch has", marks=needs_torch),
        (["--device", "abacus", "--dry-run"], "unknown device 'abacus'; known here: "),
        (["--sequence", "3"], "unrecognized arguments: --sequence"),
        (["--resume", "--overwrite"], "not allowed with argument"),
        (["missing.toml"], "missing.toml: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_options_that_cannot_be(refused, basic, arguments, message):
    assert message in refused(*basic, "--out", "run", *arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rank = "x"\n', 'run.toml:1: rank: expected a whole number, 1 or more, got "x"'),
        ("\nlearning = 1\n", "run.toml:2: learning: unknown key"),
        ("targets = []\n", "run.toml:1: targets: expected a list of names of layers, got []"),
        ("epochs = 2\nsteps = 2\n", "run.toml:2: steps: expected either epochs or steps, got both"),
        ("rank = \n", "run.toml:1: not valid TOML"),
        ("[lora]\nrank = 2\n", "run.toml:1: lora: unknown section"),
        ('model = "nowhere"\n', "nowhere: no such folder (--model)."),
    ],
)
def test_files_that_cannot_be(refused, tiny, tmp_path, text, message):
    begin = "" if "model =" in text else f'model = "{tiny.model}"\n'
    (tmp_path / "run.toml").write_text(text + begin + f'data = "{tiny.data}"\n')
    assert message in refused("run.toml", "--out", "run")


def test_what_must_be_named(refused, basic, tiny):
    both = "name the model and the texts: --model DIR --data FILE.jsonl, or a CONFIG.toml that says them."
    assert both in refused("--out", "run")
    assert both in refused("--out", "run", "--data", tiny.data)
    assert "name the folder that the run is to be written to: --out DIR." in refused(*basic)
    assert "name the folder to go on with: --out DIR." in refused("--resume")


def changed(text: str, new: str):
    def change(folder: Path) -> None:
        path = folder / "config.json"
        assert re.search(text, path.read_text())
        path.write_text(re.sub(text, new, path.read_text()))

    return change


BROKEN = {
    "no folder": (lambda folder: [p.unlink() for p in folder.iterdir()] and folder.rmdir(),
                  "model: no such folder (--model)."),
    "no config.json": (lambda folder: (folder / "config.json").unlink(), "config.json: No such file or directory"),
    "config.json is no JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json: not JSON"),
    "architecture": (changed('"qwen3"', '"gpt9"'), "config.json: the architecture 'gpt9' (model_type) is not known"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json: no such file"),
    "tokenizer is none": (lambda folder: (folder / "tokenizer.json").write_text("{"),
                          "tokenizer.json: not a tokenizer"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "neither model.safetensors nor"),
    "weights cut off": (lambda folder: os.truncate(folder / "model.safetensors", 5000),
                        "model.safetensors: not a sound safetensors file"),
    "weights of another shape": (changed('"intermediate_size": 24', '"intermediate_size": 32'),
                                 "'model.layers.0.mlp.gate_proj.weight' has shape (24, 16), config.json says (32, 16)"),
    "weights missing": (changed('"num_hidden_layers": 2', '"num_hidden_layers": 3'),
                        "the weights lack 'model.layers.2."),
    "weights left": (changed('"num_hidden_layers": 2', '"num_hidden_layers": 1'),
                     "config.json describes no model that has 'model.layers.1."),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_models_that_cannot_be(refused, basic, tiny, tmp_path, kind):
    change, message = BROKEN[kind]
    folder = tmp_path / "model"
    folder.mkdir()
    for path in tiny.model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    change(folder)
    assert message in refused(*basic, "--out", "run", "--model", folder)


def test_texts_that_cannot_be(refused, basic, tiny, tmp_path):
    def said_of(lines: list[str], *arguments: object) -> str:
        (tmp_path / "texts.jsonl").write_text("\n".join(lines))
        return refused(*basic, "--data", "texts.jsonl", "--out", "run", *arguments)

    chats = tiny.data.read_text().splitlines()[:3]
    assert f"{tmp_path}/texts.jsonl:4: is not JSON" in said_of([*chats, "{nope}"])
    assert f"{tmp_path}/texts.jsonl:2: 'text' is a number, expected a text." in said_of([chats[0], '{"text": 3}'])
    assert "texts.jsonl: the file is empty" in said_of([])
    assert "is a folder" in refused(*basic, "--data", tmp_path, "--out", "run")
    assert "missing.jsonl: no such file (--data)." in refused(*basic, "--data", "missing.jsonl", "--out", "run")
    assert "missing.jsonl: no such file (--validation)." in refused(
        *basic, "--validation", "missing.jsonl", "--out", "run"
    )


def test_texts_longer_than_a_row(finetune, refused, basic, tiny):
    err = refused(*basic, "--out", "run", "--seq", 34)
    found = re.search(rf"{tiny.data}: longer than 34 tokens \((\d+) samples\):", err)
    assert found is not None and re.search(rf"    {tiny.data}:\d+: 3\d tokens", err)
    way = re.search(
        r"Pass --seq (\d+) to have them all, --too-long truncate to leave out their ends, or --too-long skip", err
    )
    assert "make_samples" not in err and "too_long" not in err
    for arguments in (["--seq", way[1]], ["--seq", 34, "--too-long", "truncate"], ["--seq", 34, "--too-long", "skip"]):
        assert finetune(*basic, "--out", "run", *arguments, "--overwrite", "--steps", 1, "--no-compile").code == 0
    err = refused(*basic, "--out", "other", "--seq", 4, "--too-long", "skip")
    assert "no sample is left of 101 records: all are longer than 4 tokens." in err and "Pass a larger --seq." in err


@pytest.fixture
def done(finetune, basic, tmp_path) -> Path:
    """The folder of a finished run."""
    assert finetune(*basic, "--out", "done", "--quiet", "--no-compile").code == 0
    return tmp_path / "done"


def test_folders_that_cannot_be(refused, basic, done, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert "file is a file; a run needs a folder." in refused(*basic, "--out", "file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    for how in ([], ["--overwrite"]):
        err = refused(*basic, "--out", "mine", *how)
        assert "mine already has files in it that are not of a run (notes.txt)." in err
    err = refused(*basic, "--out", "done")
    assert "already holds a run, up to step 6. Pass --resume to go on with it, --overwrite to replace it" in err
    assert "nowhere holds no run of `pullback finetune`" in refused("--resume", "--out", "nowhere")
    assert "cannot be written to /proc/run" in refused(*basic, "--out", "/proc/run")


def test_a_run_is_resumed_as_it_began(finetune, refused, basic, done, tiny, tmp_path):
    resume = ["--resume", "--out", "done"]
    assert "done holds another run: rank was 2 and is 3; lr was 0.0002 and is 1." in refused(
        *resume, "--rank", 3, "--lr", 1
    )
    assert f"data was '{tiny.data}' and is '{tiny.validation}'" in refused(*resume, "--data", tiny.validation)
    (tmp_path / "run.toml").write_text(f'model = "{tiny.model}"\ndata = "{tiny.data}"\nseed = 4\n')
    assert "seed was 0 and is 4" in refused("run.toml", *resume)
    assert "compile was False and is True" in refused("run.toml", *resume, *basic)
    for same in ([], basic, ["done/config.toml"], ["--rank", 2, "--no-compile"]):
        assert finetune(*same, *resume, "--quiet").code == 0


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "chats.jsonl"])
def test_a_run_is_not_resumed_with_another_model_or_other_texts(finetune, refused, basic, tiny, tmp_path, name):
    other = write_tiny(tmp_path)
    options = [*basic, "--model", other.model, "--data", other.data]
    assert finetune(*options, "--out", "run", "--quiet", "--no-compile").code == 0
    path = other.data if name == "chats.jsonl" else other.model / name
    content = path.read_bytes()
    changes = {
        "model.safetensors": content[:-1] + bytes([content[-1] ^ 1]),
        "config.json": content.replace(b"1e-06", b"2e-06"),
        "chats.jsonl": b"".join(content.splitlines(True)[1:]),
    }
    path.write_bytes(changes[name])
    assert path.read_bytes() != content
    assert "the data are not those that this run began with" in refused("--resume", "--out", "run")
    path.write_bytes(content)
    assert finetune("--resume", "--out", "run", "--quiet").code == 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[: len(content) // 2], "It may be cut off"),
        (lambda content: b"", "too few for a header"),
        (lambda content: content[:-20] + bytes([content[-20] ^ 1]) + content[-19:], "the checksum does not fit"),
        (lambda content: (1 << 62).to_bytes(8, "little") + content[8:], "its header claims"),
    ],
)
def test_a_damaged_checkpoint(refused, done, damage, message):
    newest = max((done / "checkpoints").glob("step-*"))
    newest.write_bytes(damage(newest.read_bytes()))
    err = refused("--resume", "--out", done)
    assert message in err and str(newest) in err
    assert "The newest sound checkpoint is step-00000005.safetensors" in err


def test_a_checkpoint_that_is_a_link(refused, done, tmp_path):
    newest = max((done / "checkpoints").glob("step-*"))
    newest.rename(tmp_path / "elsewhere")
    newest.symlink_to(tmp_path / "elsewhere")
    assert "is no plain file, so it is neither replaced nor followed" in refused("--resume", "--out", done)


@pytest.mark.parametrize("compile", ["--compile", "--no-compile"])
def test_numbers_that_grow_without_bound_end_a_run(finetune, basic, tmp_path, compile):
    result = finetune(*basic, "--out", "run", "--lr", "1e30", "--schedule", "constant", compile)
    assert result.code == 2
    message = result.err.splitlines()[-1]
    assert re.match(r"pullback: error: step 2, epoch 1, batch 2: .*\bThe batch's data is finite\.", message)
    assert message.endswith("The parameters are those before this step.")
    assert ".py" not in message and "unknown place" not in message and "Traceback" not in result.err
    assert not (tmp_path / "run" / "adapter_model.safetensors").exists()
    assert CheckpointFolder(tmp_path / "run").steps() == [1]


@pytest.fixture
def largest_file():
    """Set how large a file may become: writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that it is an error, not the end
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_checkpoint_for_which_there_is_no_room(finetune, basic, tmp_path, largest_file, monkeypatch):
    options = [*basic, "--quiet", "--no-compile", "--checkpoint-every", 1, "--keep", 3]
    assert finetune(*options, "--out", "whole").code == 0
    original = JsonLines.on_step

    def on_step(self, trainer, record):
        original(self, trainer, record)
        if record["step"] == 4:
            largest_file(6_000)

    with monkeypatch.context() as patch:
        patch.setattr(JsonLines, "on_step", on_step)
        result = finetune(*options, "--out", "run")
    largest_file(resource.RLIM_INFINITY)
    assert result.code == 2, result
    assert "step-00000004.safetensors: File too large" in result.err
    checkpoints = CheckpointFolder(tmp_path / "run")
    assert checkpoints.steps() == [1, 2, 3]
    assert [read_checkpoint(checkpoints.path(step))["step"] for step in checkpoints.steps()] == [1, 2, 3]
    assert finetune("--resume", "--out", "run", "--quiet").code == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_an_adapter_for_which_there_is_no_room(finetune, basic, tmp_path, largest_file, monkeypatch):
    from pullback.finetune.run import Run

    assert finetune(*basic, "--out", "whole", "--quiet").code == 0
    original = Run.save_adapter

    def save_adapter(self, folder):
        largest_file(2_000)
        original(self, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save_adapter", save_adapter)
        result = finetune(*basic, "--out", "run", "--quiet")
    largest_file(resource.RLIM_INFINITY)
    assert result.code == 2 and "adapter_model.safetensors: File too large" in result.err
    assert not (tmp_path / "run" / "adapter_model.safetensors").exists()
    assert finetune("--resume", "--out", "run", "--quiet").code == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


# -- going on ----------------------------------------------------------------------------------------------

KINDS = {
    "packed": ["--steps", 9],
    "accumulated": ["--accumulate", 2, "--dropout", 0.2, "--no-pack", "--batch", 12, "--steps", 8],
    "eager": ["--no-compile", "--dropout", 0.3, "--dora", "--batch", 24, "--steps", 9],
    "quantized": ["--quant", "int8", "--dropout", 0.1, "--steps", 9],
    "epochs": ["--batch", 16, "--epochs", 3, "--dropout", 0.1, "--checkpointing", "layers"],
}


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_is_resumed_bit_for_bit(finetune, basic, tiny, tmp_path, monkeypatch, kind, step):
    options = KINDS[kind]
    rest = basic[:-2] if "--epochs" in options else basic
    options = [*rest, "--quiet", "--lr", 0.01, "--validation", tiny.validation, "--validate-every", 2, *options]
    assert finetune(*options, "--out", "whole").code == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, step)
        result = finetune(*options, "--out", "cut")
    assert result.code == 130
    assert f"stopped at step {step}; go on with: pullback finetune --resume --out cut" in result.out
    assert not (tmp_path / "cut" / "adapter_model.safetensors").exists()
    assert finetune("--resume", "--out", "cut", "--quiet").code == 0
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert losses_of(tmp_path / "cut") == losses_of(tmp_path / "whole")


def test_a_finished_run_shows_its_results_again(finetune, basic, done):
    first = contents(done)
    again = finetune("--resume", "--out", "done", "--quiet")
    assert again.code == 0 and "after 6 steps" in again.out
    assert contents(done)["adapter_model.safetensors"] == first["adapter_model.safetensors"]


def test_a_run_that_was_cut_off_before_its_configuration(finetune, refused, basic, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"format": "pullback.run", "version": 1, "files": ["checkpoints"]}')
    assert "with --overwrite to replace the run" in refused("--resume", "--out", "run")
    assert finetune(*basic, "--resume", "--out", "run", "--quiet").code == 0
    assert finetune(*basic, "--out", "whole", "--quiet").code == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert (tmp_path / "run" / "config.toml").exists()


def started(folder: Path, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "pullback", "finetune", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=source()
    )


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_a_signal_in_a_process_writes_a_checkpoint(basic, tmp_path, number, code, said):
    process = started(tmp_path, *basic, "--steps", 100000, "--checkpoint-every", 5, "--out", "run", "--no-compile")
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/checkpoints/step-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Traceback" not in err and f"{said}: ending after this step" in err
    step = int(re.search(r"stopped at step (\d+); go on with: pullback finetune --resume --out run", out)[1])
    assert read_checkpoint(tmp_path / "run" / "checkpoints" / f"step-{step:08d}.safetensors")["step"] == step
    assert not (tmp_path / "run" / "adapter_model.safetensors").exists()


def kill_at_a_random_moment(process: subprocess.Popen, folder: Path, moments: random.Random, most_steps: int) -> None:
    """While it starts; or after some steps and a few milliseconds; or then, as soon as it is seen writing a file."""
    kind = moments.random()
    if kind < 0.15:
        time.sleep(moments.uniform(0, 1.5))
    else:
        checkpoints = CheckpointFolder(folder)
        goal = max(checkpoints.steps(), default=0) + 1 + moments.randrange(most_steps)
        while max(checkpoints.steps(), default=0) < goal and process.poll() is None:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        give_up = time.monotonic() + (0.2 if kind > 0.5 else 0.0)
        while time.monotonic() < give_up and not any(folder.rglob(".*.part")):
            pass
    process.kill()
    _, err = process.communicate()
    assert process.returncode == -9, f"the run was over before it could be killed: {err}"


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        pytest.param("accumulated", 2, marks=needs_llvmlite),
        *(pytest.param(kind, 12, marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_a_run_killed_again_and_again_ends_as_an_undisturbed_one(basic, tiny, tmp_path, kind, kills):
    """Over the ends of epochs, with evaluations, and a checkpoint after each step."""
    most_steps = 3
    steps = kills * (15 if kind == "accumulated" else 60)  # so many that no kill comes too late
    options = KINDS[kind][: KINDS[kind].index("--epochs")] if "--epochs" in KINDS[kind] else KINDS[kind]
    options = [*basic, "--lr", 0.01, *options, "--steps", steps, "--validation", tiny.validation, "--quiet"]
    options += ["--validate-every", 4, "--checkpoint-every", 1]
    undisturbed = started(tmp_path, *options, "--out", "whole")
    moments = random.Random(kills)
    killed = CheckpointFolder(tmp_path / "run")
    for _ in range(kills):
        how = ["--resume"] if (tmp_path / "run" / "run.json").exists() else []
        process = started(tmp_path, *options, *how, "--out", "run")
        kill_at_a_random_moment(process, tmp_path / "run", moments, most_steps)
        for step in killed.steps():
            assert read_checkpoint(killed.path(step))["step"] == step
    last = started(tmp_path, *options, "--resume", "--out", "run")
    for process in (undisturbed, last):
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert weights(run) == weights(whole)
    logs = [
        [{key: value for key, value in record.items() if key in ("kind", "step", "epoch", "loss", "validation_loss")}
         for record in read_log(folder / "log.jsonl") if record["kind"] in ("step", "validation")]
        for folder in (whole, run)
    ]  # fmt: skip
    assert logs[0] == logs[1] and len(losses_of(run)) == steps
    assert (run / "report.html").read_text().rstrip().endswith("</html>")
    assert not list(run.rglob(".*.part"))
    adapters = [pb.load(folder / "adapter_model.safetensors") for folder in (whole, run)]
    assert any(np.any(tensor.numpy()) for name, tensor in adapters[0].items() if "lora_B" in name)
