"""Event files, read back by a decoder that shares no code with the writer."""

from __future__ import annotations

import json
import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.train import TensorBoard
from pullback.train.tensorboard import EventFile, crc32c

HISTORY = SimpleNamespace(stop_reason=None)


def checksum(data: bytes) -> int:
    """CRC-32C bit by bit, by its definition, and masked."""
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if (crc ^ byte >> bit) & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) % 2**32


def records(data: bytes):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == checksum(data[:8])
        content, rest = data[12 : 12 + length], data[12 + length :]
        assert struct.unpack("<I", rest[:4])[0] == checksum(content)
        yield content
        data = rest[4:]


def message(data: bytes) -> dict[int, list]:
    """The fields of a protocol buffer by number."""
    fields: dict[int, list] = {}
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind, number = key & 7, key >> 3
        if kind == 0:
            value = varint()
        elif kind == 2:
            length = varint()
            value = data[at : at + length]
            at += length
        else:
            format, size = {1: ("<d", 8), 5: ("<f", 4)}[kind]
            (value,) = struct.unpack(format, data[at : at + size])
            at += size
        fields.setdefault(number, []).append(value)
    return fields


def events(path):
    return [message(content) for content in records(path.read_bytes())]


def scalars(event):
    values = [message(value) for value in message(event[5][0])[1]]
    return {value[1][0].decode(): value[2][0] for value in values}


def files(folder):
    return sorted((folder / "tensorboard").iterdir())


def test_crc32c_of_known_vectors():
    # those of RFC 3720, appendix B.4, and the check value of the CRC catalogue
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


def test_events_have_the_tags_steps_and_values_of_the_records(tmp_path):
    board, trainer = TensorBoard(), SimpleNamespace(folder=tmp_path, step=0)
    board.on_start(trainer)
    board.on_step(trainer, {"step": 1, "epoch": 1, "loss": 0.5, "learning_rate": 0.25, "seconds": 3.0})
    board.on_step(trainer, {"step": 300, "epoch": 1, "loss": math.nan, "learning_rate": 1e39})
    board.on_validation(trainer, {"step": 300, "loss": 9.0, "validation_loss": 2.0, "validation_accuracy": 0.75})
    board.on_epoch(trainer, {"step": 300, "epoch": 1, "loss": 1.5, "validation_loss": 2.0, "accuracy": 0.5})
    board.on_end(trainer, HISTORY)
    (path,) = files(tmp_path)
    version, start, *rest = events(path)
    assert version[3] == [b"brain.Event:2"]
    assert start[2] == [0] and message(start[7][0]) == {1: [1]}
    assert [event[2][0] for event in rest] == [1, 300, 300, 300]
    first, second, validation, epoch = map(scalars, rest)
    assert first == {"train/loss": 0.5, "train/learning_rate": 0.25}
    assert math.isnan(second["train/loss"]) and second["train/learning_rate"] == math.inf
    assert validation == {"validation/loss": 2.0, "validation/accuracy": 0.75}
    assert epoch == {"epoch/loss": 1.5, "epoch/accuracy": 0.5}
    times = [event[1][0] for event in rest]
    assert times == sorted(times) and times[0] > 1.6e9


@pytest.mark.parametrize("step", [0, 1, 127, 128, 16_383, 16_384, 10**12])
@pytest.mark.parametrize("tag", ["a", "größe/<b>", "x" * 300])
def test_any_step_and_any_tag(tmp_path, step, tag):
    with EventFile(tmp_path) as file:
        file.scalars(step, {tag: -1.5, "b": 2.0})
        file.scalars(step, {tag: 2.5})
    (path,) = tmp_path.iterdir()
    *_, first, second = events(path)
    assert first[2] == second[2] == [step]
    assert scalars(first) == {tag: -1.5, "b": 2.0} and scalars(second) == {tag: 2.5}


def shown(folder):
    """What TensorBoard shows: it reads the files in order, and a START forgets its step and those after it."""
    found: list[tuple[int, str, float]] = []
    for path in files(folder):
        for event in events(path):
            step = event[2][0]
            if 7 in event:
                found = [entry for entry in found if entry[0] < step]
            if 5 in event:
                found += [(step, tag, value) for tag, value in scalars(event).items()]
    return found


@pytest.mark.parametrize("end_of_epoch", [6, 8])  # right after the checkpoint, at its step; and later
def test_a_resumed_run_voids_what_came_after_its_checkpoint(tmp_path, end_of_epoch):
    def steps(board, trainer, first, last):
        state = None
        for step in range(first, last + 1):
            board.on_step(trainer, {"step": step, "loss": 1.0 / step})
            if step == 6:
                state = json.loads(json.dumps(board.state_dict(), allow_nan=False))
                board.on_checkpoint(trainer, tmp_path)
            if step == end_of_epoch:
                end(board, trainer, step)
        return state

    def end(board, trainer, step):
        board.on_validation(trainer, {"step": step, "validation_loss": 2.0})
        board.on_epoch(trainer, {"step": step, "loss": math.inf})

    whole = SimpleNamespace(folder=tmp_path / "whole", step=0)
    board = TensorBoard()
    board.on_start(whole)
    steps(board, whole, 1, 10)
    board.on_end(whole, HISTORY)

    trainer = SimpleNamespace(folder=tmp_path / "broken", step=0)
    board = TensorBoard()
    board.on_start(trainer)
    state = steps(board, trainer, 1, 9)
    board.on_error(trainer, KeyboardInterrupt())
    for last in (7, 10):  # the first of these fails too
        board = TensorBoard()
        trainer.step = 6
        board.load_state_dict(state)
        board.on_start(trainer)
        if end_of_epoch == 6:
            end(board, trainer, 6)
        steps(board, trainer, 7, last)
        board.on_end(trainer, HISTORY)
    assert len(files(tmp_path / "broken")) == 3
    assert shown(tmp_path / "broken") == shown(tmp_path / "whole")


def test_a_new_run_voids_all_of_the_old_one_and_one_without_a_state_keeps_it(tmp_path):
    board, trainer = TensorBoard(), SimpleNamespace(folder=tmp_path, step=0)
    for name in ("loss", "other"):
        board.on_start(trainer)
        board.on_step(trainer, {"step": 1, name: 2.0})
        board.on_end(trainer, HISTORY)
    assert shown(tmp_path) == [(1, "train/other", 2.0)]
    assert board.state_dict() == {"step": 1, "values": {"train/other": "2.0"}}
    trainer.step = 1
    board = TensorBoard()
    board.on_start(trainer)
    board.on_step(trainer, {"step": 2, "loss": 3.0})
    board.on_end(trainer, HISTORY)
    assert shown(tmp_path) == [(1, "train/other", 2.0), (2, "train/loss", 3.0)]


def test_a_real_run_writes_its_losses(tmp_path):
    x = np.random.default_rng(0).normal(size=(24, 3))
    data = (x, x.sum(axis=1, keepdims=True))
    model = pb.nn.Linear(3, 1)
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    trainer = pb.train.Trainer(
        model, pb.mse_loss, optimizer, metrics=["mae"], callbacks=[TensorBoard()], folder=tmp_path
    )
    history = trainer.fit(pb.data.Batches(data, 8), epochs=2, validation=pb.data.Batches(data, 24))
    found = [(event[2][0], scalars(event)) for event in events(files(tmp_path)[0]) if 5 in event]
    steps = [(step, values["train/loss"]) for step, values in found if "train/loss" in values]
    expected = list(zip(history.steps.column("step"), history.steps.column("loss")))
    assert [step for step, _ in steps] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(steps, expected, rtol=1e-6)
    validations = [values for _, values in found if "validation/loss" in values]
    assert len(validations) == 2 and all("validation/mae" in values for values in validations)
    assert [step for step, values in found if "epoch/mae" in values] == [3, 6]


def test_events_before_a_checkpoint_are_in_the_file_when_it_is_written(tmp_path):
    board, trainer = TensorBoard(), SimpleNamespace(folder=tmp_path, step=0)
    board.on_start(trainer)
    board.on_step(trainer, {"step": 1, "loss": 1.0})
    board.on_checkpoint(trainer, tmp_path)
    assert len(events(files(tmp_path)[0])) == 3
    board.on_end(trainer, HISTORY)
