"""A run's folder: nothing that the run did not write is replaced or followed, and no moment to die at loses a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.train import Callback, JsonLines, Report, TensorBoard, Trainer, read_log
from pullback.train.checkpoints import CheckpointFolder
from pullback.train.marker import Marker, read_marker, write_marker
from pullback.train.replacing import ASIDE
from pullback.train.run_folder import RunFolder

X = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
STEPS = ("step-00000004.safetensors", "step-00000005.safetensors")
NAMES = ("run.json", "log.jsonl", "report.html", "loss.svg", "best.safetensors", "tensorboard", "checkpoints")


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def made(folder, *callbacks, **options):
    pb.random.seed(1)
    model = pb.nn.Linear(1, 1)
    return Trainer(
        model,
        pb.mse_loss,
        pb.optim.SGD(model.parameters(), lr=0.1),
        callbacks=[JsonLines(), Report(), TensorBoard(), *callbacks],
        folder=folder,
        best="validation_loss",
        compile=False,
        **options,
    )


def fit(trainer, steps=4, **options):
    data = pb.data.Batches((X, 2 * X), 3)
    return trainer.fit(data, steps=steps, validation=data, **options)


def contents(folder: Path) -> dict[str, object]:
    """Everything under a folder: bytes of files, targets of links, None for folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = kind
    return found


def refused(folder: Path, words: str, root: Path | None = None, **options) -> None:
    before = contents(root or folder)
    with pytest.raises(pb.ConfigurationError, match=words):
        fit(made(folder), **options)
    assert contents(root or folder) == before


class FailAt(Callback):
    """Ends the run after a step."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, record):
        if record["step"] == self.step:
            raise RuntimeError("as asked")


# -- what others wrote -------------------------------------------------------------------------------


HOW = [{}, {"resume": True}, {"overwrite": True}]


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_file_with_the_name_of_a_run_s_is_not_replaced(tmp_path, name, how):
    (tmp_path / name).write_text("precious")
    refused(tmp_path, "not of (this|a) run|no plain file", **how)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_folder_with_the_name_of_a_run_s_is_not_used(tmp_path, name, how):
    (tmp_path / name).mkdir()
    (tmp_path / name / "step-00000001.safetensors").write_text("precious")
    refused(tmp_path, "not of (this|a) run", **how)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("target", ["file", "folder", "nothing"])
@pytest.mark.parametrize("name", NAMES)
def test_a_symbolic_link_in_a_new_folder_is_not_followed(tmp_path, name, target, how):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / target)
    refused(tmp_path / "run", "symbolic link|not of a run", root=tmp_path, **how)


@pytest.mark.parametrize("how", HOW[1:], ids=str)
@pytest.mark.parametrize("name", [*NAMES[1:], *(f"checkpoints/{name}" for name in (".lock", *STEPS))])
def test_a_symbolic_link_in_the_folder_of_a_run_is_not_followed(tmp_path, name, how):
    run, kept = tmp_path / "run", tmp_path / "kept"
    fit(made(run))
    if (run / name).exists():
        (run / name).rename(kept)
    else:
        kept.write_text("precious")
    (run / name).symlink_to(kept)
    refused(run, "symbolic link|no plain file", root=tmp_path, steps=5, **how)


def test_files_of_others_beside_a_run_stay_as_they_are(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "data").symlink_to("/nowhere")
    fit(made(tmp_path))
    for place in ("checkpoints", "tensorboard"):
        (tmp_path / place / "notes.txt").write_text("mine too")
    (tmp_path / "checkpoints" / "step-4.safetensors").write_text("not called as ours are")
    (tmp_path / ".best.safetensors.part").write_text("nor this")
    before = {name: what for name, what in contents(tmp_path).items() if "notes" in name or name == "data"}
    fit(made(tmp_path), steps=2, overwrite=True)
    after = contents(tmp_path)
    assert before.items() <= after.items() and len(before) == 4
    assert "checkpoints/step-4.safetensors" in after and ".best.safetensors.part" in after
    assert CheckpointFolder(tmp_path).steps() == [2] and not (tmp_path / ASIDE).exists()
    assert len(list(tmp_path.glob("tensorboard/events*"))) == 1


def test_overwrite_is_for_runs_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    refused(tmp_path, "files in it that are not of a run", overwrite=True)


def test_what_came_since_the_run_began_is_not_replaced(tmp_path):
    model = pb.nn.Linear(1, 1)
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    Trainer(model, pb.mse_loss, optimizer, folder=tmp_path, report=False).fit([(X, X)], steps=1)
    (tmp_path / "report.html").write_text("precious")
    for how in HOW[1:]:
        refused(tmp_path, r"report\.html is not of this run", **how)


@pytest.mark.parametrize("observer", [JsonLines, Report])
def test_a_foreign_file_that_an_observer_is_pointed_to_is_not_replaced(tmp_path, observer):
    path = tmp_path / "mine.txt"
    path.write_text("precious")
    model = pb.nn.Linear(1, 1)
    trainer = Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=[observer(path)])
    with pytest.raises(pb.ConfigurationError, match=r"mine\.txt was not written by"):
        trainer.fit([(X, X)], steps=1)
    assert path.read_text() == "precious"
    path.unlink()
    for _ in range(2):  # one of its own it may replace
        trainer.fit([(X, X)], steps=1)
    assert path.stat().st_size > 100


def test_a_path_in_the_folder_is_the_run_s(tmp_path):
    model = pb.nn.Linear(1, 1)

    def trainer():
        parts = [JsonLines(tmp_path / "logs" / "a.jsonl")]
        return Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=parts, folder=tmp_path)

    trainer().fit([(X, X)], steps=1)
    trainer().fit([(X, X)], steps=2, resume=True)
    assert "logs/a.jsonl" in read_marker(tmp_path).files
    assert [line["step"] for line in read_log(tmp_path / "logs" / "a.jsonl") if line["kind"] == "step"] == [1, 2]


# -- the marker --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [["../notes.txt"], ["/etc/passwd"], ["a/../../b"], [""], [3], "log.jsonl", None, ["run.json"], ["a\0"]]
)
def test_a_marker_that_names_what_is_outside_is_damaged(tmp_path, names):
    (tmp_path / "run.json").write_text(json.dumps({"format": "pullback.run", "version": 1, "files": names}))
    before = contents(tmp_path)
    for how in HOW:
        with pytest.raises(pb.FileFormatError, match=r"run\.json: damaged"):
            fit(made(tmp_path), **how)
    assert contents(tmp_path) == before


def test_a_run_that_fails_before_it_writes_leaves_nothing(tmp_path):
    class FailAtOnce(Callback):
        def on_start(self, trainer):
            raise RuntimeError("as asked")

    model = pb.nn.Linear(1, 1)
    trainer = Trainer(
        model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), callbacks=[FailAtOnce()], folder=tmp_path / "run"
    )
    with pytest.raises(RuntimeError):
        trainer.fit([(X, X)], steps=1)
    assert contents(tmp_path) == {}


def test_a_folder_that_holds_a_run_is_refused(tmp_path):
    fit(made(tmp_path))
    refused(tmp_path, r"already holds a run, up to step 4\. Pass resume=True to go on with it, overwrite=True")


def test_a_run_without_a_checkpoint_can_be_resumed_or_overwritten_as_the_message_says(tmp_path):
    for how in HOW[1:]:
        with pytest.raises(RuntimeError):
            fit(made(tmp_path / str(how), FailAt(2)))
        refused(tmp_path / str(how), r"a run that wrote no checkpoint\. Pass resume=True to start it again, overwrite")
        fit(made(tmp_path / str(how)), **how)
        assert [line["step"] for line in read_log(tmp_path / str(how) / "log.jsonl") if line["kind"] == "step"] == [
            1,
            2,
            3,
            4,
        ]


def test_leftovers_of_a_killed_process_are_removed_and_other_files_are_not(tmp_path):
    fit(made(tmp_path))
    ours = [".best.safetensors.ab12cd34.part", "checkpoints/.step-00000006.safetensors.ab12cd34.part"]
    others = ["checkpoints/notes.txt", ".other.part", "checkpoints/step-6.safetensors", ".best.safetensors.x.part"]
    for name in ours + others:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / ".report.html.ab12cd34.part").symlink_to(tmp_path / ".other.part")
    with RunFolder(tmp_path).claimed(resume=True):
        pass
    assert [(tmp_path / name).exists() for name in ours + others] == [False, False, True, True, True, True]
    assert (tmp_path / ".report.html.ab12cd34.part").is_symlink()


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    words = r"cannot be written to .*file.*Choose another folder"
    with pytest.raises(pb.ConfigurationError, match=words), RunFolder(tmp_path / "file" / "run").claimed():
        pass


def test_a_folder_is_one_process_s_at_a_time(tmp_path):
    program = f"""
from pullback.train.run_folder import RunFolder
for how in ("resume", "overwrite"):
    try:
        with RunFolder({str(tmp_path)!r}).claimed(**{{how: True}}):
            pass
    except Exception as error:
        print(type(error).__name__, error)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1])}
    with RunFolder(tmp_path).claimed():
        being_written = tmp_path / "checkpoints" / ".step-00000006.safetensors.ab12cd34.part"
        being_written.write_bytes(b"x")
        result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert being_written.exists()
    assert result.stdout.count("ConfigurationError another process is training in") == 2, result


# -- overwriting -------------------------------------------------------------------------------------


def test_an_overwritten_run_is_set_aside_until_the_new_one_has_a_checkpoint(tmp_path):
    fit(made(tmp_path))
    old = contents(tmp_path)
    seen = []

    class Look(Callback):
        def on_step(self, trainer, record):
            seen.append(CheckpointFolder(tmp_path / ASIDE).steps())

    fit(made(tmp_path, Look(), checkpoint_every=2), steps=3, overwrite=True)
    assert seen == [[4], [4], []]
    assert CheckpointFolder(tmp_path).steps() == [2, 3] and not (tmp_path / ASIDE).exists()
    assert contents(tmp_path)["log.jsonl"] != old["log.jsonl"]


@pytest.mark.parametrize("step", [1, 2])
def test_an_overwritten_run_comes_back_if_the_new_one_fails_before_its_checkpoint(tmp_path, capsys, step):
    fit(made(tmp_path))
    old = contents(tmp_path)
    with pytest.raises(RuntimeError, match="as asked"):
        fit(made(tmp_path, FailAt(step)), overwrite=True)
    assert contents(tmp_path) == old
    assert "is there again: the new one wrote no checkpoint" in capsys.readouterr().err


def test_a_folder_called_as_the_place_aside_is_not_used(tmp_path):
    fit(made(tmp_path))
    (tmp_path / ASIDE).mkdir()
    (tmp_path / ASIDE / "log.jsonl").write_text("precious")
    refused(tmp_path, f"{ASIDE} is not of this run", overwrite=True)
    fit(made(tmp_path), steps=5, resume=True)
    assert (tmp_path / ASIDE / "log.jsonl").read_text() == "precious"


@pytest.mark.parametrize("name", [ASIDE, f"{ASIDE}/checkpoints", "tensorboard", "checkpoints", f"{ASIDE}/log.jsonl"])
def test_a_link_put_where_a_run_is_set_aside_is_not_followed(tmp_path, name):
    run, theirs = tmp_path / "run", tmp_path / "theirs"
    fit(made(run))
    (run / ASIDE / "checkpoints").mkdir(parents=True)
    (run / ASIDE / "log.jsonl").write_text("")
    marker = read_marker(run)
    write_marker(run, Marker(("checkpoints", "tensorboard"), replaced=marker.files))
    if (run / name).is_dir():
        shutil.copytree(run / name, theirs)
        shutil.rmtree(run / name)
    else:
        (run / name).rename(theirs)
    (run / name).symlink_to(theirs)
    if (theirs / ".lock").exists():
        (theirs / ".lock").unlink()
    before = contents(theirs) if theirs.is_dir() else theirs.read_bytes()
    for how in HOW:
        with pytest.raises(pb.ConfigurationError, match="symbolic link"):
            fit(made(run), **how)
    assert (contents(theirs) if theirs.is_dir() else theirs.read_bytes()) == before


DYING = """
import os, signal, sys, json, shutil
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_run_folder as tests
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from pullback.train.run_folder import RunFolder

CALLS = ("open", "close", "write", "fsync", "replace", "rename", "unlink", "chmod", "mkdir", "rmdir", "link", "fdopen")
os.fsync = lambda descriptor: None

def die_at(call):
    count = 0
    def wrapped(function):
        def counted(*args, **kwargs):
            nonlocal count
            count += 1
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return counted
    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))

root, overwrite = Path(sys.argv[1]), sys.argv[3] == "overwrite"
if overwrite:
    tests.fit(tests.made(root / "start"))
    (root / "start" / "notes.txt").write_text("mine")
    old = tests.contents(root / "start")
call, seen, stride = 0, [], int(sys.argv[4])
while True:
    call += stride
    folder = root / "run"
    shutil.rmtree(folder, ignore_errors=True)
    if overwrite:
        shutil.copytree(root / "start", folder)
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        die_at(call)
        tests.fit(tests.made(folder), steps=2, overwrite=overwrite)
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    if overwrite:
        RunFolder(folder).settle()
        now = tests.contents(folder)
        parts = [name for name in now if name.endswith(".part")]
        if CheckpointFolder(folder).steps() == [4]:
            for name in ["checkpoints/.lock", "run.json", *parts]:
                now.pop(name, None)
            assert now == {name: old[name] for name in old if name not in ("checkpoints/.lock", "run.json")}, call
            assert set(RunFolder(folder).marker().files) == set(json.loads(old["run.json"])["files"])
            seen.append("old")
        else:
            assert CheckpointFolder(folder).steps() == [2], (call, sorted(now))
            assert "replaced-run" not in now
            seen.append("new")
        assert now["notes.txt"] == b"mine"
    else:
        marker = RunFolder(folder).marker()
        if marker is not None:
            try:
                tests.fit(tests.made(folder), steps=2)
            except tests.pb.ConfigurationError as error:
                assert "already holds a run" in str(error)
            else:
                raise AssertionError("not refused")
        seen.append("nothing" if marker is None else "begun")
    how = {"overwrite": True} if call % 2 else {"resume": True}
    tests.fit(tests.made(folder), steps=5, **how)
    assert CheckpointFolder(folder).steps()[-1] == 5
    assert not list(folder.rglob("*.part")), call
    log = [line["step"] for line in tests.read_log(folder / "log.jsonl") if line["kind"] == "step"]
    assert log == [1, 2, 3, 4, 5], (call, log)
    if not killed:
        break
print(json.dumps(seen))
"""


@pytest.mark.parametrize(("how", "stride"), [("new", 7), ("overwrite", 9)])
def test_a_run_that_died_at_any_point_can_be_resumed_or_overwritten(tmp_path, how, stride):
    """The process dies before each call to the operating system in turn, until it comes through."""
    die_everywhere(tmp_path, how, stride)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["new", "overwrite"])
def test_a_run_that_died_at_every_single_point_can_be_resumed_or_overwritten(tmp_path, how):
    die_everywhere(tmp_path, how, 1)


def die_everywhere(tmp_path, how, stride):
    environment = {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1])}
    arguments = [str(tmp_path), str(Path(__file__).parent), how, str(stride)]
    command = [sys.executable, "-c", DYING, *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr[-3000:]
    seen = json.loads(result.stdout.splitlines()[-1])
    first, last = ("old", "new") if how == "overwrite" else ("nothing", "begun")
    assert seen[0] == first and seen[-1] == last and seen == sorted(seen, key=[first, last].index)
    assert len(seen) * stride > 50


def test_a_marker_comes_before_anything_else(tmp_path):
    order = []
    original = os.link

    def link(source, target, **options):
        order.append(sorted(path.name for path in tmp_path.rglob("*") if not path.name.endswith(".part")))
        return original(source, target, **options)

    os.link = link
    try:
        fit(made(tmp_path))
    finally:
        os.link = original
    assert order == [[]]
    write_marker(tmp_path, Marker(("checkpoints",)))
    assert read_marker(tmp_path) == Marker(("checkpoints",))
