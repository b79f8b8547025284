"""Arrays that are not what native code expects: other orders of bytes, borrowed or read-only memory, subclasses."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

import pullback as pb


def values(x: Any) -> list[float]:
    return np.asarray(x).tolist()


def unaligned() -> Any:
    raw = np.zeros(17, np.uint8)
    array = raw[1:].view(np.float32)
    array[:] = [0, 1, 2, 3]
    return array


def mapped() -> Any:
    memory = mmap.mmap(-1, 16)
    array = np.frombuffer(memory, np.float32)
    array[:] = [0, 1, 2, 3]
    return array


def read_only() -> Any:
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    return array


PLAIN = np.arange(4, dtype=np.float32)
ARRAYS = {
    "other order of bytes": lambda: PLAIN.astype(">f4"),
    "a dtype with a note": lambda: PLAIN.astype(np.dtype("f4", metadata={"unit": "m"})),
    "unaligned": unaligned,
    "read-only": read_only,
    "of bytes": lambda: np.frombuffer(PLAIN.tobytes(), np.float32),
    "of a bytearray": lambda: np.frombuffer(bytearray(PLAIN.tobytes()), np.float32),
    "of mapped memory": mapped,
    "a view": lambda: np.arange(-1, 5, dtype=np.float32)[1:5],
    "backwards": lambda: PLAIN[::-1].copy()[::-1],
    "every other": lambda: np.repeat(PLAIN, 2)[::2],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("as_tensor", [False, True], ids=["array", "tensor"])
def test_as_an_argument(name: str, as_tensor: bool) -> None:
    f = pb.compile(lambda x: x * 2 + 1)
    for before in (None, PLAIN, ARRAYS[name]()):
        for array in (before, ARRAYS[name](), PLAIN.copy(), ARRAYS[name]()):
            if array is not None:
                assert values(f(pb.asarray(array) if as_tensor else array)) == [1, 3, 5, 7]


@pytest.mark.parametrize("name", ARRAYS)
def test_as_a_tensor_from_outside_that_is_read(name: str) -> None:
    w = pb.asarray(ARRAYS[name]())
    f = pb.compile(lambda x: w * x)
    for _ in range(3):
        assert values(f(pb.ones(4))) == [0, 1, 2, 3]
    w._raw = PLAIN + 1
    assert values(f(pb.ones(4))) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ARRAYS)
def test_as_a_parameter_that_is_updated(name: str) -> None:
    given = ARRAYS[name]()
    w = pb.asarray(given)
    w.requires_grad = True
    optimizer = pb.optim.SGD([w], lr=0.5)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):
        step(pb.ones(4))
    assert values(w.detach()) == [-1.5, -0.5, 0.5, 1.5]
    assert given.tolist() == [0, 1, 2, 3]


def test_arrays_without_axes_and_without_elements() -> None:
    f = pb.compile(lambda x: x * 2 + 1)
    for _ in range(3):
        assert values(f(np.array(3.0))) == 7
        assert values(f(np.empty((0, 3)))) == []
        assert values(f(pb.tensor(3.0))) == 7
        assert f(pb.zeros((3, 0))).shape == (3, 0)


def test_a_tensor_of_a_file_in_memory(tmp_path: Any) -> None:
    array = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(4,))
    array[:] = PLAIN
    f = pb.compile(lambda x: x * 2 + 1)
    for _ in range(3):
        assert values(f(pb.asarray(array))) == [1, 3, 5, 7]
    array[0] = 5
    assert values(f(pb.asarray(array))) == [11, 3, 5, 7]
