"""`pullback train`: runs, their folders, resuming bit for bit, and errors that change nothing."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.train import JsonLines, read_log

from ..backends.installed import needs, needs_llvmlite

needs_torch = needs("torch", "another device")

SMALL = """\
name = "small"

[data]
kind = "regression"
samples = 150
features = 3

[model]
kind = "mlp"
hidden = [8]
dropout = 0.1

[optimizer]
kind = "adamw"
lr = 0.01

[schedule]
kind = "cosine"
warmup = 5

[train]
epochs = 4
batch_size = 16
"""
STEPS = 4 * 7


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def interrupt_at(monkeypatch, step: int) -> None:
    """Ctrl-C comes after this step."""
    original = JsonLines.on_step

    def on_step(self, trainer, record):
        original(self, trainer, record)
        if record["step"] == step:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(JsonLines, "on_step", on_step)


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_writes_its_folder_and_nothing_else(pullback, config, tmp_path):
    result = pullback("train", config)
    assert result.code == 0, result
    assert re.search(r"^test r2 [\d.-]+$", result.out, re.MULTILINE)
    folder = tmp_path / "runs" / "small-1"
    assert f"report:  {folder / 'report.html'}" in result.out
    assert "<h1>Training of small</h1>" in (folder / "report.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"small.toml", "runs"}
    assert {"config.toml", "log.jsonl", "report.html", "model.safetensors", "results.json", "checkpoints"} <= {
        path.name for path in folder.iterdir()
    }
    assert json.loads((folder / "results.json").read_text())["steps"] == STEPS
    assert sum(record["kind"] == "step" for record in read_log(folder / "log.jsonl")) == STEPS


def test_progress_is_shown_on_the_error_stream_unless_quiet(pullback, config):
    assert "epoch 4/4" in pullback("train", config).err
    assert pullback("train", config, "--quiet").err == ""


def test_every_run_gets_a_folder_of_its_own(pullback, config, tmp_path):
    for _ in range(2):
        assert pullback("train", config, "--quiet", "--set", "train.epochs=1").code == 0
    (tmp_path / "runs" / "small-7").mkdir()
    assert pullback("train", config, "--quiet", "--set", "train.epochs=1").code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["small-1", "small-2", "small-7", "small-8"]


def test_equal_configurations_give_equal_weights(pullback, config, tmp_path):
    for folder in ("a", "b"):
        pullback("train", config, "--quiet", "--folder", folder)
    pullback("train", config, "--quiet", "--folder", "c", "--set", "seed=1")
    first, again, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == again != other


def test_the_configuration_of_a_run_can_be_run(pullback, config, tmp_path):
    pullback("train", config, "--quiet", "--folder", "a", "--set", "optimizer.lr=0.02")
    assert pullback("train", "a/config.toml", "--quiet", "--folder", "b").code == 0
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "settings",
    [
        ["train.steps=9", "train.average=0.9", "train.accumulate=2", "train.clip_norm=0.5"],
        pytest.param(["device=torch:cpu", "train.epochs=1"], marks=needs_torch),
        ["optimizer.kind=sgd", "optimizer.lr=0.01", "optimizer.momentum=0.9", "optimizer.nesterov=true"],
        ["optimizer.kind=rmsprop", "optimizer.lr=0.01", "loss.kind=huber", "loss.delta=0.5"],
        ["optimizer.kind=lion", "optimizer.lr=0.001", "loss.kind=mae"],
        ["optimizer.kind=adagrad", "optimizer.lr=0.01", "schedule.kind=onecycle"],
        ["optimizer.kind=adam", "optimizer.lr=0.01", "schedule.kind=linear", "schedule.end=0.1"],
        ["schedule.kind=step", "schedule.every=5"],
        ["schedule.kind=exponential", "schedule.gamma=0.9", "schedule.warmup=3"],
        ["schedule.kind=plateau", "schedule.patience=1"],
        ["schedule.kind=constant", "train.metrics=[]"],
    ],
)
def test_every_kind_of_part_trains(pullback, config, settings):
    result = pullback("train", config, "--quiet", *(part for s in settings for part in ("--set", s)))
    assert result.code == 0, result
    assert np.isfinite(json.loads(Path("runs/small-1/results.json").read_text())["loss"])


def test_a_classifier_of_a_users_file(pullback, tmp_path):
    generator = np.random.default_rng(0)
    rows = [(x, y, "in" if x * x + y * y < 1 else "out") for x, y in generator.normal(size=(200, 2))]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rings.csv").write_text("x,y,where\n" + "".join(f"{x},{y},{w}\n" for x, y, w in rows))
    text = SMALL.replace('kind = "regression"\nsamples = 150\nfeatures = 3', 'kind = "csv"\npath = "rings.csv"\n'
                         'target = "where"\ntask = "classification"').replace("epochs = 4", "epochs = 20")  # fmt: skip
    (tmp_path / "data" / "run.toml").write_text(text)
    result = pullback("train", "data/run.toml", "--quiet", "--set", "optimizer.lr=0.05")
    assert float(re.search(r"^test accuracy ([\d.]+)%", result.out, re.MULTILINE)[1]) > 85


def test_a_picture_classifier_of_a_users_file(pullback, config, tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2, 4, 4)).astype(np.float32)
    np.savez(tmp_path / "pictures.npz", x=x, y=(x.mean(axis=(1, 2, 3)) > 0).astype(int))
    settings = ["data.kind=npz", "data.path=pictures.npz", "data.task=classification", "model.kind=conv"]
    result = pullback("train", config, "--quiet", *(part for s in settings for part in ("--set", s)))
    assert result.code == 0, result
    assert "test accuracy" in result.out


# -- resuming --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [3, 7, 18])
def test_an_interrupted_run_is_resumed_bit_for_bit(pullback, config, tmp_path, monkeypatch, step):
    assert pullback("train", config, "--quiet", "--folder", "whole").code == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, step)
        result = pullback("train", config, "--quiet", "--folder", "cut")
    assert result.code == 130
    assert f"stopped at step {step}; go on with: pullback train --resume --folder cut" in result.out
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    assert pullback("train", "--resume", "--folder", "cut").code == 0
    whole, cut = contents(tmp_path / "whole"), contents(tmp_path / "cut")
    assert whole["model.safetensors"] == cut["model.safetensors"]
    assert whole["results.json"] == cut["results.json"]
    logs = [read_log(tmp_path / folder / "log.jsonl") for folder in ("whole", "cut")]
    losses = [[(r["step"], r["loss"]) for r in log if r["kind"] == "step"] for log in logs]
    assert losses[0] == losses[1]


def test_resume_finds_the_latest_run_of_the_configuration(pullback, config, tmp_path, monkeypatch):
    pullback("train", config, "--quiet")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        assert pullback("train", config, "--quiet").code == 130
    assert pullback("train", config, "--quiet", "--resume").code == 0
    first, second = ((tmp_path / "runs" / f"small-{n}" / "model.safetensors").read_bytes() for n in (1, 2))
    assert first == second


def test_resume_passes_over_a_folder_that_was_made_and_never_used(pullback, config, tmp_path):
    pullback("train", config, "--quiet")
    (tmp_path / "runs" / "small-2").mkdir()
    assert pullback("train", config, "--quiet", "--resume").code == 0
    assert list((tmp_path / "runs" / "small-2").iterdir()) == []


def test_a_finished_run_shows_its_results_again(pullback, config):
    first = pullback("train", config, "--quiet", "--folder", "a")
    again = pullback("train", "--resume", "--folder", "a", "--quiet")
    assert (again.code, again.out) == (0, first.out)


def test_ctrl_c_in_a_process_writes_a_checkpoint_and_exits_with_130(config, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pullback",
        "train",
        str(config),
        "--folder",
        "run",
        "--set",
        "train.epochs=100000",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=source()
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/checkpoints/step-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    step = int(re.search(r"stopped at step (\d+)", out)[1])
    assert (tmp_path / "run" / "checkpoints" / f"step-{step:08d}.safetensors").exists()


# -- errors: exit code 2, a clear message, no traceback, nothing overwritten --------------------------


@pytest.fixture
def refused(pullback, tmp_path):
    """Run what must be refused; everything in the folder must be as before."""

    def run(*arguments: object) -> str:
        before = contents(tmp_path)
        folders = {path for path in tmp_path.rglob("*") if path.is_dir()}
        result = pullback("train", *arguments)
        assert result.code == 2, result
        assert "Traceback" not in result.err and result.out == ""
        assert contents(tmp_path) == before
        assert {path for path in tmp_path.rglob("*") if path.is_dir()} == folders
        return result.err

    return run


@pytest.fixture
def finished(pullback, config, tmp_path) -> Path:
    """The folder of a finished run."""
    assert pullback("train", config, "--quiet", "--folder", "done").code == 0
    return tmp_path / "done"


@pytest.mark.parametrize("arguments", [[], ["--folder", "done", "--overwrite"], ["--folder", "done", "--resume"]])
def test_wrong_config(refused, finished, config, arguments):
    config.write_text(SMALL.replace("lr = 0.01", 'lr = "fast"').replace("epochs", "epoks"))
    assert refused(config, *arguments).splitlines() == [
        f'{config}:15: optimizer.lr: expected a positive number, got "fast"',
        f'{config}:22: train.epoks: unknown key; did you mean "epochs"?',
    ]


def test_config_that_is_not_toml(refused, config):
    config.write_text(SMALL + "[train")
    assert refused(config).startswith(f"{config}:24: not valid TOML")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[: len(content) // 2], "It may be cut off"),
        (lambda content: content[:5], "too few for a header"),
        (lambda content: b"", "too few for a header"),
        (lambda content: content[:-20] + bytes([content[-20] ^ 1]) + content[-19:], "the checksum does not fit"),
        (lambda content: content[:100] + b"\x00" + content[101:], "not JSON"),
    ],
)
@pytest.mark.parametrize("by_config", [False, True])
def test_truncated_or_corrupted_checkpoint(refused, finished, config, damage, message, by_config):
    newest = max((finished / "checkpoints").iterdir())
    newest.write_bytes(damage(newest.read_bytes()))
    err = refused(*([config] if by_config else []), "--resume", "--folder", finished)
    assert message in err and str(newest) in err
    assert "The newest sound checkpoint is step-00000021.safetensors" in err


@pytest.mark.parametrize("folder", ["file/run", "file", "/proc/run"])
def test_unwritable_folder(refused, config, tmp_path, folder):
    (tmp_path / "file").write_text("not a folder")
    assert re.search(f"cannot be written to {folder}|{folder} is a file", refused(config, "--folder", folder))


def test_folder_of_a_run_that_is_going_on(refused, finished, config):
    with open(finished / "checkpoints" / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for how in ("--overwrite", "--resume"):
            assert "another process is training in" in refused(config, "--folder", finished, how)


@pytest.mark.parametrize("bad", ["nan", "inf", "-Infinity"])
def test_nan_in_the_data(refused, finished, config, tmp_path, bad):
    (tmp_path / "data.csv").write_text(f"a,b,y\n1,2,3\n4,{bad},5\n6,7,8\n")
    text = SMALL.replace('kind = "regression"\nsamples = 150\nfeatures = 3',
                         'kind = "csv"\npath = "data.csv"\ntarget = "y"\ntask = "regression"')  # fmt: skip
    config.write_text(text)
    err = refused(config, "--folder", finished, "--overwrite")
    assert f"{tmp_path / 'data.csv'}:3: column 'b' is {float(bad)}" in err


@pytest.mark.parametrize("change", [lambda text: text.replace("1,2", "1,2.5", 1), lambda text: text + "7,8,9\n"])
def test_data_that_changed_since_the_run_began(pullback, refused, config, tmp_path, change):
    data = tmp_path / "data.csv"
    data.write_text("a,b,y\n" + "".join(f"{i},{i + 1},{i * i}\n" for i in range(60)))
    settings = ["data.kind=csv", "data.path=data.csv", "data.target=y", "data.task=regression"]
    settings = [part for setting in settings for part in ("--set", setting)]
    assert pullback("train", config, "--quiet", "--folder", "run", *settings).code == 0
    data.write_text(change(data.read_text()))
    assert "the data are not those that this run began with" in refused("--resume", "--folder", "run")


def test_folder_that_holds_a_run(refused, finished, config):
    assert "already holds a run, up to step 28. Pass --resume to go on with it, --overwrite" in refused(
        config, "--folder", finished
    )


def test_folder_with_other_files(refused, config, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.toml").write_text("precious")
    assert "already has files in it" in refused(config, "--folder", "mine")
    err = refused(config, "--folder", "mine", "--overwrite")
    assert "already has files in it that are not of a run (config.toml). --overwrite replaces runs alone" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what to train"),
        (["small.toml", "--example", "digits"], "small.toml and --example digits are two things"),
        (["missing.toml"], "missing.toml: No such file or directory"),
        (["."], "Is a directory"),
        (["--example", "digist"], "invalid choice: 'digist'"),
        (["--resume"], "name the run to resume"),
        (["small.toml", "--resume"], "there is no run to resume"),
        (["--resume", "--folder", "nowhere"], "nowhere holds no run"),
        (["--resume", "--folder", "done", "--set", "seed=1"], "--set is for new runs"),
        (["small.toml", "--resume", "--folder", "done", "--set", "seed=1"], "seed was 0 and is 1"),
        (["small.toml", "--resume", "--overwrite"], "not allowed with argument"),
        pytest.param(
            ["small.toml", "--set", "device=torch:cuda:99"], "unknown device 'torch:cuda:99'", marks=needs_torch
        ),
        (["small.toml", "--set", "device=abacus"], "unknown device 'abacus'"),
        (["small.toml", "--set", "schedule.warmup=1000"], "schedule.warmup: expected fewer than the 28 steps"),
        (["small.toml", "--set", "train.batch_size=1000"], "train.batch_size: expected at most 120"),
    ],
)  # fmt: skip
def test_what_cannot_be_run(refused, finished, config, arguments, message):
    assert message in refused(*arguments)


def test_missing_optional_package(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert "pip install scikit-learn" in refused("--example", "digits")


def test_numbers_that_grow_without_bound_end_a_run(pullback, config):
    result = pullback("train", config, "--quiet", "--set", "optimizer.kind=sgd", "--set", "optimizer.lr=1e30")
    assert result.code == 2
    assert re.search(r"step \d+, epoch 1, batch \d+: ", result.err)
    assert "Traceback" not in result.err


def test_overwriting_leaves_files_of_others(pullback, finished, config):
    (finished / "notes.txt").write_text("mine")
    result = pullback("train", config, "--quiet", "--folder", finished, "--overwrite", "--set", "train.epochs=1")
    assert result.code == 0, result
    assert (finished / "notes.txt").read_text() == "mine"
    assert [path.name for path in finished.glob("checkpoints/step-*")] == ["step-00000007.safetensors"]
    assert sum(record["kind"] == "step" for record in read_log(finished / "log.jsonl")) == 7


def test_weights_are_those_of_the_model(pullback, config, tmp_path):
    pullback("train", config, "--quiet", "--folder", "a")
    weights = pb.load(tmp_path / "a" / "model.safetensors")
    assert {name: tensor.shape for name, tensor in weights.items()} == {
        "0.weight": (8, 3), "0.bias": (8,), "3.weight": (1, 8), "3.bias": (1,),
    }  # fmt: skip


# -- compiled steps ----------------------------------------------------------------------------------


@needs_llvmlite
def test_steps_are_compiled_unless_the_configuration_says_otherwise(pullback, config, tmp_path):
    results = []
    for setting in ("true", "false"):
        folder = tmp_path / setting
        result = pullback("train", config, "--folder", folder, "--set", f"train.compile={setting}")
        assert result.code == 0 and "compiled" not in result.err, result
        assert f"compile = {setting}" in (folder / "config.toml").read_text()
        results.append(pb.load(folder / "model.safetensors"))
    assert any((results[0][name] != results[1][name]).any() for name in results[0])  # by rounding
    for name, tensor in results[0].items():
        np.testing.assert_allclose(tensor.numpy(), results[1][name].numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


@needs_llvmlite
def test_why_steps_are_not_compiled_is_told_once(pullback, config):
    with pb.guard("trace"):
        result = pullback("train", config)
        quiet = pullback("train", config, "--overwrite", "--quiet")
    assert result.code == quiet.code == 0, result
    assert result.err.count('steps are not compiled: guard("trace") looks at every operation.') == 1
    assert "compiled" not in quiet.err


@needs_llvmlite
def test_steps_of_several_batches_are_compiled(pullback, config):
    result = pullback("train", config, "--set", "train.accumulate=2")
    assert result.code == 0 and "compiled" not in result.err, result


@needs_llvmlite
def test_a_step_that_fails_to_compile_is_told_and_made(pullback, config, monkeypatch):
    def failing(*arguments, **options):
        raise RuntimeError("no registers left")

    monkeypatch.setattr(import_module("pullback.compiler.calling.compiled"), "specialize", failing)
    result = pullback("train", config)
    assert result.code == 0, result
    assert re.findall(
        r"steps are not compiled: RuntimeError in test_train.py:\d+, failing: no registers left\.", result.err
    )


def test_a_run_is_resumed_as_it_was_compiled(pullback, config, tmp_path, monkeypatch):
    interrupt_at(monkeypatch, 9)
    assert pullback("train", config, "--folder", tmp_path / "run").code == 130
    result = pullback("train", config, "--folder", tmp_path / "run", "--resume", "--set", "train.compile=false")
    assert result.code != 0 and "compile was True and is False" in result.err


# -- folders: nothing that is not the run's is replaced or followed ------------------------------------


@pytest.mark.parametrize("folder", ["/", ".", "..", "~", "mine"])
def test_overwrite_of_a_folder_that_is_no_run_s(refused, config, tmp_path, monkeypatch, folder):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    monkeypatch.chdir(tmp_path / "mine")
    named = Path.home() if folder == "~" else tmp_path / "mine" if folder == "mine" else folder
    assert "already has files in it that are not of a run" in refused(config, "--folder", named, "--overwrite")


@pytest.mark.parametrize("name", ["log.jsonl", "report.html", "loss.svg", "model.safetensors", "results.json"])
@pytest.mark.parametrize("how", ["--resume", "--overwrite"])
def test_a_foreign_file_or_link_in_the_folder_of_a_run(refused, finished, config, tmp_path, name, how):
    (tmp_path / "kept").write_bytes((finished / name).read_bytes())
    (finished / name).unlink()
    (finished / name).symlink_to(tmp_path / "kept")
    assert f"{name} is a symbolic link" in refused(config, "--folder", finished, how)
    (finished / name).unlink()
    marker = json.loads((finished / "run.json").read_text())
    marker["files"].remove(name)  # as if the run had not come so far
    (finished / "run.json").write_text(json.dumps(marker))
    (finished / name).write_text("precious")
    assert f"{name} is not of this run" in refused(config, "--folder", finished, how)


def test_a_run_that_was_cut_off_before_its_configuration(pullback, refused, config, tmp_path):
    for how in ("--resume", "--overwrite"):
        folder = tmp_path / how.strip("-")
        folder.mkdir()
        (folder / "run.json").write_text('{"format": "pullback.run", "version": 1, "files": ["checkpoints"]}')
        assert "Pass --overwrite to replace it" in refused(config, "--folder", folder)
        assert "with --overwrite to replace the run" in refused("--resume", "--folder", folder)
        assert pullback("train", config, "--quiet", "--folder", folder, how).code == 0
        assert (folder / "results.json").exists() and (folder / "config.toml").exists()


def test_a_run_that_was_cut_off_before_its_checkpoint(pullback, refused, config, tmp_path, monkeypatch):
    def fail(self, trainer, record):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(JsonLines, "on_step", fail)
        for how in ("--resume", "--overwrite"):
            assert pullback("train", config, "--quiet", "--folder", how.strip("-")).code == 2
    for how in ("--resume", "--overwrite"):
        assert "a run that wrote no checkpoint. Pass --resume" in refused(config, "--folder", how.strip("-"))
        assert pullback("train", config, "--quiet", "--folder", how.strip("-"), how).code == 0


def test_an_overwritten_run_comes_back_if_the_new_one_fails(pullback, finished, config, monkeypatch):
    before = contents(finished)

    def fail(self, trainer, record):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(JsonLines, "on_step", fail)
        result = pullback("train", config, "--quiet", "--folder", finished, "--overwrite", "--set", "seed=3")
    assert result.code == 2 and "is there again" in result.err
    assert contents(finished) == before
    assert pullback("train", "--resume", "--folder", finished, "--quiet").code == 0


def source() -> dict[str, str]:
    """The environment of a process that is to import this very package."""
    return {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


def test_runs_that_choose_a_folder_at_the_same_time_each_get_one(config, tmp_path):
    program = """
import sys, time
from pathlib import Path
from pullback.cli import folders
while time.time() < float(sys.argv[1]):
    pass
for _ in range(25):
    with folders.next_free("small", Path()) as folder:
        (folder / "mine").write_text("")
        print(folder)
"""
    begin = str(time.time() + 4)
    environment = source()
    command = [sys.executable, "-c", program, begin]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) for _ in range(8)
    ]
    found = [line for process in processes for line in process.communicate(timeout=60)[0].splitlines()]
    assert len(found) == len(set(found)) == 8 * 25
    assert len(list((tmp_path / "runs").iterdir())) == 8 * 25


def test_sigterm_in_a_process_writes_a_checkpoint_and_exits_with_143(pullback, config, tmp_path):
    command = [sys.executable, "-m", "pullback", "train", str(config), "--folder", "run"]
    command += ["--set", "train.epochs=100000"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=source()
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/checkpoints/step-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "Traceback" not in err and "Terminated: ending after this step" in err
    step = int(re.search(r"stopped at step (\d+); go on with: pullback train --resume --folder run", out)[1])
    assert (tmp_path / "run" / "checkpoints" / f"step-{step:08d}.safetensors").exists()


@pytest.mark.parametrize("asked", ["abc", "0", "-1", "1.5", "", "2 ", "\u0662"])
def test_a_wrong_number_of_threads_is_an_error_everywhere(refused, config, monkeypatch, asked):
    monkeypatch.setenv("PULLBACK_NUM_THREADS", asked)
    message = (
        f"PULLBACK_NUM_THREADS is {asked!r}; it must be a number of threads, 1 or more. Write `PULLBACK_NUM_THREADS=2`"
    )
    assert message in refused(config)
    model, x = pb.nn.Linear(1, 1), np.ones((2, 1), np.float32)
    for compile in (None, False, True):
        trainer = pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), compile=compile)
        with pytest.raises(pb.ConfigurationError, match=re.escape(message)):
            trainer.fit([(x, x)], steps=1)
    with pytest.raises(pb.ConfigurationError, match=re.escape(message)):
        pb.compile(lambda x: pb.tanh(x) * 2.0)(pb.tensor(x))
