"""Checkpoint files: whole or not there, damage is noticed, and old ones are kept or removed as asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint, write_checkpoint
from pullback.train.packing import packed, unpacked
from pullback.train.run_folder import RunFolder

from ..backends.installed import optional

ml_dtypes = optional("ml_dtypes")

STATE = {
    "step": 7,
    "model": {"0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "0.bias": np.zeros(0)},
    "optimizer": {"state": {0: {"step": 3, "exp_avg": pb.tensor([1.5, -0.0])}}, "groups": [{"betas": (0.9, 0.999)}]},
    "text": 'quotes " and \\ and é',
    "figures": [None, True, 0.1, float("inf"), 2**70, -1],
}


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (pb.Tensor, np.ndarray)):
        x, y = np.asarray(a), np.asarray(b)
        return type(a) is type(b) and x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    "make",
    [
        lambda: STATE,
        dict,
        lambda: {"$": "not a mark", "a": {"$": 1}},
        lambda: {"a.b": np.ones(1), "a": {"b": np.zeros(2)}},
        lambda: {"half": np.arange(3).astype(ml_dtypes.bfloat16), "scalar": np.float64(0.1), "empty": ((), [], {})},
        lambda: {
            "transposed": np.arange(6.0).reshape(2, 3).T,
            "strided": np.arange(10)[::-3],
            "zero_d": pb.tensor(2.0),
        },
        lambda: {1: {2: "integer keys"}, "1": "a string"},
    ],
    ids=["run", "empty", "marks", "dots", "halves", "layouts", "keys"],
)
def test_a_state_comes_back_as_it_was(tmp_path, make):
    path, state = tmp_path / "step-00000007.safetensors", make()
    write_checkpoint(path, state)
    found = read_checkpoint(path)
    if "scalar" in state:
        state = {**state, "scalar": 0.1}
    assert same(found, state)


def test_what_is_read_does_not_depend_on_the_file_any_more(tmp_path):
    path = tmp_path / "step-00000007.safetensors"
    write_checkpoint(path, STATE)
    found = read_checkpoint(path)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.write(b"\xff" * size)
    assert found["model"]["0.weight"].sum() == 15
    assert found["optimizer"]["state"][0]["exp_avg"].tolist() == [1.5, -0.0]
    found["model"]["0.weight"] += 1  # not a read-only view either


@pytest.mark.parametrize(
    ("value", "words"),
    [({"model": {"w": object()}}, r"model\.w: it is a object"), ({"a": {(1, 2): 3}}, "keys of a"), (print, "state")],
)
def test_what_cannot_be_saved_is_named(value, words):
    with pytest.raises(pb.ConfigurationError, match=words):
        packed(value)


@pytest.mark.parametrize(
    "text", ["{", '{"$":"tensor","name":"w"}', '{"$":"what","items":[]}', '{"$":"dict"}', "[" * 9999]
)
def test_a_text_that_is_no_state_is_a_format_error(text):
    with pytest.raises(pb.FileFormatError, match="cannot be read"):
        unpacked(text, {})


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "step-00000007.safetensors"
    write_checkpoint(path, STATE)
    whole = path.read_bytes()
    bits = np.random.default_rng(0).integers(1, 256, len(whole))
    for place, bit in enumerate(bits):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ int(bit)]) + whole[place + 1 :])
        with pytest.raises(pb.FileFormatError, match=re.escape(str(path))):
            read_checkpoint(path)


@pytest.mark.parametrize("blank", [b"\t", b"\n", b"\r"])
def test_blanks_of_another_kind_are_noticed(tmp_path, blank):
    path = tmp_path / "step-00000001.safetensors"
    for name in ("a", "ab", "abc", "abcd"):  # at least one of them needs padding
        write_checkpoint(path, {name: 1})
        whole = path.read_bytes()
        if whole.endswith(b" "):
            path.write_bytes(whole[:-1] + blank)
            with pytest.raises(pb.FileFormatError, match="header is not as it was written"):
                read_checkpoint(path)
            return
    raise AssertionError("no file had padding")


def test_every_cut_is_noticed(tmp_path):
    path = tmp_path / "step-00000007.safetensors"
    write_checkpoint(path, STATE)
    whole = path.read_bytes()
    for length in [*range(20), *range(20, len(whole), 7), *range(len(whole) - 20, len(whole))]:
        path.write_bytes(whole[:length])
        with pytest.raises(pb.FileFormatError, match=re.escape(str(path))):
            read_checkpoint(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(pb.FileFormatError):
        read_checkpoint(path)


def test_other_files_are_not_taken_for_checkpoints(tmp_path):
    path = tmp_path / "weights.safetensors"
    pb.save({"w": pb.ones(2)}, path)
    with pytest.raises(pb.FileFormatError, match="not a checkpoint of a training run"):
        read_checkpoint(path)
    pb.save({}, path, {"format": "pullback.training", "version": "99", "state": "{}", "checksum": ""})
    with pytest.raises(pb.FileFormatError, match="version '99'"):
        read_checkpoint(path)


# -- the folder --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    folder = CheckpointFolder(tmp_path / "a" / "run", keep=3)
    with RunFolder(tmp_path / "a" / "run").claimed():
        yield folder


def test_the_newest_are_kept(folder):
    for step in (1, 2, 30, 4000, 10**9):
        path = folder.write(step, {"step": step})
        assert folder.newest() == {"step": step} and path.exists()
    assert folder.steps() == [30, 4000, 10**9]
    assert sorted(os.listdir(folder.folder))[1:] == [
        "step-00000030.safetensors", "step-00004000.safetensors", "step-1000000000.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_checkpoint_is_refused_and_an_older_one_named(folder, damage):
    for step in (1, 2, 3):
        folder.write(step, {"step": step, "w": np.ones(5)})
    for step in (2, 3):
        whole = folder.path(step).read_bytes()
        changed = {"cut": whole[:-3], "flip": whole[:-3] + b"?" + whole[-2:], "empty": b""}[damage]
        folder.path(step).write_bytes(changed)
    before = {name: (folder.folder / name).read_bytes() for name in os.listdir(folder.folder)}
    with pytest.raises(pb.FileFormatError, match=r"step-00000003\.safetensors.* step-00000001\.safetensors") as caught:
        folder.newest()
    assert "Nothing was changed" in str(caught.value)
    assert before == {name: (folder.folder / name).read_bytes() for name in os.listdir(folder.folder)}
    folder.path(1).unlink()
    with pytest.raises(pb.FileFormatError, match="no older checkpoint that is sound"):
        folder.newest()


def test_at_least_one_checkpoint_is_kept(tmp_path):
    with pytest.raises(pb.ConfigurationError, match="keep=0"):
        CheckpointFolder(tmp_path, keep=0)


KILLED_AT_EVERY_CALL = """
import os, signal, sys, tempfile
import numpy as np
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from pullback.train.run_folder import RunFolder

CALLS = ("open", "close", "write", "sendfile", "fsync", "replace", "rename", "unlink", "chmod", "fdopen")

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

folder = CheckpointFolder(sys.argv[1], keep=2)
with RunFolder(sys.argv[1]).claimed():
    pass
for step in (1, 2):
    folder.write(step, {"step": step, "w": np.full(1000, step)})
found, call = [], 0
while True:
    call += 1
    child = os.fork()
    if not child:
        die_at(call)
        folder.write(3, {"step": 3, "w": np.full(1000, 3)})
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    newest = folder.newest()
    assert newest["step"] in (2, 3) and (newest["w"] == newest["step"]).all()
    for step in folder.steps():
        read_checkpoint(folder.path(step))
    found.append((newest["step"], any(folder.folder.glob(".*.part"))))
    if not killed:
        break
    with RunFolder(sys.argv[1]).claimed(resume=True):
        assert not any(folder.folder.glob(".*.part"))
    folder.path(3).unlink(missing_ok=True)
    folder.write(1, {"step": 1}), folder.write(2, {"step": 2, "w": np.full(1000, 2)})
print(found)
"""


def test_a_kill_at_any_call_leaves_the_old_or_the_new_checkpoint_whole(tmp_path):
    """The process dies before each call to the operating system in turn, until it comes through."""
    environment = {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED_AT_EVERY_CALL, str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    found = eval(result.stdout)
    assert len(found) > 6  # calls that were died at
    assert {2, 3} == {step for step, _ in found} and {True, False} == {leftover for _, leftover in found}
    assert [step for step, _ in found] == sorted(step for step, _ in found) and found[-1] == (3, False)
