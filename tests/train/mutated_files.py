"""Files that are broken in every way: each is refused with an error of ours, or read; nothing else ever happens.

    python tests/train/mutated_files.py 20000 FOLDER

prints what became of that many files. The tests run a small number of them, the slow ones all.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Callable

import numpy as np

import pullback as pb
from pullback.cli import configuration
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from pullback.train.jsonl import read_log
from pullback.train.marker import MARKER, read_marker

SMALL = """\
name = "small"
[data]
kind = "regression"
samples = 60
[model]
kind = "mlp"
hidden = [4]
[optimizer]
kind = "adamw"
lr = 0.01
[train]
steps = 3
batch_size = 16
"""


def read_run_marker(path: Path) -> Any:
    return read_marker(path.parent)


def sound_files(folder: Path) -> dict[Path, Callable[[Path], Any]]:
    """Files of every kind that a run or a user writes, with what reads them."""
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.BatchNorm1d(4))
    trainer = pb.train.Trainer(
        model, pb.mse_loss, pb.optim.Adam(model.parameters()), callbacks=[pb.train.JsonLines()], folder=folder / "run"
    )
    x = np.ones((4, 3), np.float32)
    trainer.fit([(x, x @ np.ones((3, 4), np.float32))], steps=2)
    tensors = {"w": pb.ones((3, 2)), "half": pb.ones(5, dtype=pb.float16), "flags": pb.tensor([True, False])}
    pb.save(tensors, folder / "weights.safetensors", {"note": "sound"})
    pb.save(tensors, folder / "mapped.safetensors")
    pb.Mlp([2, 3, 1]).save(folder / "mlp.safetensors")
    pb.Mlp([2, 3, 1]).save(folder / "mlp.json")
    (folder / "run.toml").write_text(SMALL)
    return {
        folder / "weights.safetensors": pb.load,
        folder / "mapped.safetensors": lambda path: pb.load(path, mmap=True),
        CheckpointFolder(folder / "run").path(2): read_checkpoint,
        folder / "mlp.safetensors": pb.Mlp.load,
        folder / "mlp.json": pb.Mlp.load,
        folder / "run.toml": configuration.FORMAT.read,
        folder / "run" / "log.jsonl": read_log,
        folder / "run" / MARKER: read_run_marker,
    }


def mutated(content: bytes, numbers: random.Random) -> bytes:
    """The content with one to three things wrong."""
    for _ in range(numbers.choice((1, 1, 2, 3))):
        content = numbers.choice(_MUTATIONS)(content, numbers)
    return content


def _flip(content: bytes, numbers: random.Random) -> bytes:
    if not content:
        return content
    place = numbers.randrange(len(content)) if numbers.random() < 0.5 else numbers.randrange(min(len(content), 400))
    return content[:place] + bytes([content[place] ^ 1 << numbers.randrange(8)]) + content[place + 1 :]


def _cut(content: bytes, numbers: random.Random) -> bytes:
    return content[: numbers.randrange(len(content) + 1)]


def _insert(content: bytes, numbers: random.Random) -> bytes:
    place = numbers.randrange(len(content) + 1)
    return content[:place] + numbers.randbytes(numbers.choice((1, 2, 8, 100))) + content[place:]


def _repeat(content: bytes, numbers: random.Random) -> bytes:
    begin = numbers.randrange(len(content) + 1)
    end = min(len(content), begin + numbers.randrange(64))
    return content[:end] + content[begin:end] + content[end:]


def _number(content: bytes, numbers: random.Random) -> bytes:
    """Another number where one is, as text or as the length of a header."""
    if numbers.random() < 0.3:
        return struct.pack("<Q", numbers.choice((0, 1, 7, len(content), 10**8, 2**63, 2**64 - 1))) + content[8:]
    places = [place for place, byte in enumerate(content[:2000]) if 48 <= byte <= 57]
    if not places:
        return content
    place = numbers.choice(places)
    new = numbers.choice(("-1", "1e400", "18446744073709551616", "0.5", "null", "[]", '"x"', "{}", "9" * 30, "NaN"))
    return content[:place] + new.encode() + content[place + 1 :]


def _word(content: bytes, numbers: random.Random) -> bytes:
    old = numbers.choice((b"F32", b"shape", b"data_offsets", b"format", b"kind", b"files", b"step", b"weights", b"="))
    new = numbers.choice(
        (b"F64", b"", b"BOOL", b"__metadata__", b"\xff\xfe", b"\\ud800", b'"', b"../../x", b"[" * 2000)
    )
    return content.replace(old, new, 1)


_MUTATIONS = (_flip, _flip, _cut, _insert, _repeat, _number, _number, _word)


def run(count: int, folder: Path, seed: int = 0) -> Counter[str]:
    """What became of so many files; any error that is not one of ours is raised."""
    numbers = random.Random(seed)
    files = sound_files(folder)
    contents = {path: path.read_bytes() for path in files}
    outcomes: Counter[str] = Counter()
    for number in range(count):
        path = numbers.choice(list(files))
        path.write_bytes(mutated(contents[path], numbers))
        try:
            found = files[path](path)
            for part in found.values() if isinstance(found, dict) else ():
                repr(part)  # so that every value is read
            outcomes["read"] += 1
        except pb.PullbackError as error:
            outcomes[type(error).__name__ if str(error) else "an error without a word"] += 1
        except Exception as error:
            path.with_suffix(".culprit").write_bytes(path.read_bytes())
            raise AssertionError(f"file {number}, {path.name}: {type(error).__name__}: {error}") from error
        path.write_bytes(contents[path])
    return outcomes


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), Path(sys.argv[2]))))
