"""The safetensors format: both ways with the format's own package, every dtype, and files that lie."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.files import atomic, safetensors as format_module
from pullback.files.safetensors import read_arrays, write_arrays

from ..backends.installed import needs_ml_dtypes, optional, require

torch = optional("torch")
ml_dtypes = optional("ml_dtypes")
safetensors = optional("safetensors")
safetensors_numpy = optional("safetensors.numpy")
safetensors_torch = optional("safetensors.torch")

DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64",
]  # fmt: skip
SHAPES = [(), (1,), (3, 5), (0,), (2, 0, 3), (1, 1, 7)]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def array(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=shape) * 50
    if dtype.startswith("uint"):
        values = np.abs(values)
    return np.asarray(values > 0 if dtype == "bool" else values).astype(numpy_dtype(dtype))


def assert_same(found: Any, expected: np.ndarray) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(tmp_path: Path, dtype: str, shape: tuple[int, ...], mmap: bool) -> None:
    path, expected = tmp_path / "a.safetensors", array(dtype, shape)
    write_arrays(path, {"x": expected, "other": array("int8", (3,))}, {"step": "3", "note": "ünïcode"})
    arrays, metadata = read_arrays(path, mmap)
    assert_same(arrays["x"], expected)
    assert metadata == {"step": "3", "note": "ünïcode"} and set(arrays) == {"x", "other"}
    assert arrays["x"].flags.writeable == (not mmap)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_formats_own_package_reads_our_files(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("torch")
    path, expected = tmp_path / "a.safetensors", array(dtype, (3, 5))
    write_arrays(path, {"x": expected, "scalar": array("float32", ()), "b": array("bool", (3,))}, {"k": "v"})
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"k": "v"}
        found = file.get_tensor("x")
        assert file.get_tensor("scalar").shape == ()
    assert (str(found.dtype), tuple(found.shape)) == (f"torch.{dtype}", (3, 5))
    assert found.view(torch.uint8).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_we_read_the_files_of_the_formats_own_package(tmp_path: Path, dtype: str) -> None:
    path, expected = tmp_path / "a.safetensors", array(dtype, (3, 5))
    given = torch.frombuffer(bytearray(expected.tobytes()), dtype=getattr(torch, dtype)).reshape(3, 5)
    tensors = {"x": given, "z.odd": torch.ones(3, dtype=torch.uint8), "a.empty": torch.ones(0, 2)}
    safetensors_torch.save_file(tensors, path, {"format": "pt"})
    arrays, metadata = read_arrays(path)
    assert_same(arrays["x"], expected)
    assert_same(arrays["z.odd"], np.ones(3, np.uint8))
    assert arrays["a.empty"].shape == (0, 2) and metadata == {"format": "pt"}


@pytest.mark.parametrize("count", range(9))
def test_arrays_that_are_not_aligned(tmp_path: Path, count: int) -> None:
    """Others need not write the widest elements first, nor pad their header."""
    path, values = tmp_path / "a.safetensors", np.arange(3.0)
    write_raw(
        path,
        {"a": entry("U8", [count], 0, count), "b": entry("F64", [3], count, count + 24)},
        b"\x01" * count + values.tobytes(),
    )
    arrays, _ = read_arrays(path)
    assert_same(arrays["b"], values)
    assert arrays["b"].flags.aligned
    assert_same(arrays["a"], np.ones(count, np.uint8))


def test_our_files_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, {f"{i}": array(dtype, (3,)) for i, dtype in enumerate(DTYPES)}, {"odd": "x"})
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    for i, dtype in enumerate(DTYPES):
        assert header[f"{i}"]["data_offsets"][0] % numpy_dtype(dtype).itemsize == 0


def test_no_arrays_at_all(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.safetensors", {})
    assert read_arrays(tmp_path / "a.safetensors") == ({}, {})


LAYOUTS = {
    "transposed": lambda x: x.T,
    "negative stride": lambda x: x[::-1],
    "every other": lambda x: x[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[0], (4, 5)),
    "big-endian": lambda x: x.astype(">f8"),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_in_memory(tmp_path: Path, name: str) -> None:
    given = LAYOUTS[name](array("float64", (3, 5)))
    write_arrays(tmp_path / "a.safetensors", {"x": given})
    found = read_arrays(tmp_path / "a.safetensors")[0]["x"]
    np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(safetensors_numpy.load_file(tmp_path / "a.safetensors")["x"], given)


def test_equal_contents_give_equal_files(tmp_path: Path) -> None:
    a, b = array("float32", (3,)), array("int64", (2,))
    write_arrays(tmp_path / "1", {"a": a, "b": b})
    write_arrays(tmp_path / "2", {"b": b, "a": a})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


NAMES = ["", "a b", 'quote"', "back\\slash", "new\nline", "ünïcode", "😀", "__metadata", "x" * 5000]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names(tmp_path: Path, name: str) -> None:
    write_arrays(tmp_path / "a", {name: np.ones(2)})
    assert list(read_arrays(tmp_path / "a")[0]) == [name]
    assert list(safetensors_numpy.load_file(tmp_path / "a")) == [name]


@pytest.mark.parametrize(
    ("arrays", "metadata"),
    [
        ({"__metadata__": np.ones(1)}, None),
        ({"x": np.ones(1, np.complex128)}, None),
        ({3: np.ones(1)}, None),
        ({"\ud800": np.ones(1)}, None),
        ({"x": np.ones(1)}, {"step": 3}),
        ({"x": np.ones(1)}, {"step": "\ud800"}),
    ],
    ids=["reserved name", "complex128", "number as name", "no Unicode", "metadata", "metadata without Unicode"],
)
def test_what_the_format_cannot_hold_is_refused(tmp_path: Path, arrays: Any, metadata: Any) -> None:
    with pytest.raises(pb.FileFormatError):
        write_arrays(tmp_path / "a", arrays, metadata)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, {"x": np.zeros(3)})
    written = 0
    real = os.fdopen

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *exc: object) -> None:
            self.file.close()

        def write(self, data: Any) -> int:
            nonlocal written
            written += len(data)
            if written > 200:
                raise OSError(28, "No space left on device")
            return self.file.write(data)

    monkeypatch.setattr(atomic.os, "fdopen", lambda *args: Full(real(*args)))
    with pytest.raises(OSError, match="No space"):
        write_arrays(path, {"x": np.ones(3), "y": np.ones(100)})
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]
    np.testing.assert_array_equal(read_arrays(path)[0]["x"], np.zeros(3))


# -- files that lie ------------------------------------------------------------------------------


def entry(dtype: Any, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_raw(path: Path, header: Any, body: bytes = b"", length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + body)


HUGE = 2**61
HEADERS: dict[str, tuple[Any, bytes]] = {
    "not JSON": (b"{", b""),
    "not UTF-8": (b'{"\xff": 1}', b""),
    "a list": (b"[]", b""),
    "a number": (b"3", b""),
    "empty": (b"", b""),
    "deep": (b"[" * 100_000, b""),
    "deep inside": (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b""),
    "a number of many digits": (b'{"x": ' + b"9" * 10_000 + b"}", b""),
    "a name twice": (b'{"x": %(x)b, "x": %(x)b}' % {b"x": json.dumps(entry("U8", [1], 0, 1)).encode()}, b"\0"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b""),
    "metadata is no object": ({"__metadata__": None}, b""),
    "metadata in metadata": ({"__metadata__": {"a": {"b": "c"}}}, b""),
    "an entry that is no object": ({"x": 3}, b""),
    "a key too few": ({"x": {"dtype": "U8", "shape": [1]}}, b"\0"),
    "a key too many": ({"x": {**entry("U8", [1], 0, 1), "more": 1}}, b"\0"),
    "unknown dtype": ({"x": entry("F7", [1], 0, 1)}, b"\0"),
    "dtype is no text": ({"x": entry(["U8"], [1], 0, 1)}, b"\0"),
    "shape is no list": ({"x": entry("U8", 1, 0, 1)}, b"\0"),
    "negative size": ({"x": entry("U8", [-1], 0, 1)}, b"\0"),
    "two negative sizes": ({"x": entry("U8", [-1, -1], 0, 1)}, b"\0"),
    "fractional size": ({"x": entry("U8", [1.0], 0, 1)}, b"\0"),
    "truth as size": ({"x": entry("U8", [True], 0, 1)}, b"\0"),
    "infinite size": (b'{"x": {"dtype": "U8", "shape": [1e999], "data_offsets": [0, 1]}}', b"\0"),
    "negative offset": ({"x": entry("U8", [1], -1, 0)}, b"\0"),
    "offsets backwards": ({"x": entry("U8", [0], 1, 0)}, b"\0"),
    "three offsets": ({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 1]}}, b"\0"),
    "beyond the end": ({"x": entry("U8", [2], 0, 2)}, b"\0"),
    "fewer bytes than the shape": ({"x": entry("F32", [2], 0, 4)}, b"\0" * 4),
    "more bytes than the shape": ({"x": entry("F32", [1], 0, 8)}, b"\0" * 8),
    "a hole": ({"x": entry("U8", [1], 0, 1), "y": entry("U8", [1], 2, 3)}, b"\0" * 3),
    "overlapping": ({"x": entry("U8", [2], 0, 2), "y": entry("U8", [2], 1, 3)}, b"\0" * 3),
    "bytes left over": ({"x": entry("U8", [1], 0, 1)}, b"\0" * 2),
    "nothing but bytes": ({}, b"\0"),
    "huge": ({"x": entry("U8", [HUGE], 0, HUGE)}, b"\0"),
    "a product that overflows": ({"x": entry("U8", [2**32, 2**32], 0, 0)}, b""),
    "huge and empty": ({"x": entry("F64", [0, HUGE], 0, 0)}, b""),
    "many axes": ({"x": entry("U8", [1] * 65, 0, 1)}, b"\0"),
    "very many huge axes": ({"x": entry("U8", [HUGE] * 200_000, 0, 1)}, b"\0"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_bad_headers_are_refused(tmp_path: Path, name: str) -> None:
    header, body = HEADERS[name]
    write_raw(tmp_path / "a", header, body)
    with pytest.raises(pb.FileFormatError, match="not a sound safetensors file"):
        read_arrays(tmp_path / "a")


@pytest.mark.parametrize("length", [3, 2**20, 99_999_999, 10**8 + 1, 2**63, 2**64 - 1])
def test_a_header_that_claims_to_be_long_takes_no_memory(tmp_path: Path, length: int) -> None:
    write_raw(tmp_path / "a", {"x": entry("U8", [1], 0, 1)}, b"\0", length)
    tracemalloc.start()
    try:
        with pytest.raises(pb.FileFormatError):
            read_arrays(tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


def small_file(path: Path) -> bytes:
    write_arrays(path, {"w": array("float32", (2, 2)), "b": array("bool", (3,))}, {"k": "v"})
    return path.read_bytes()


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    whole = small_file(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(pb.FileFormatError):
            read_arrays(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(pb.FileFormatError):
        read_arrays(path)


def test_a_file_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    """And what we read of such files, the format's own package reads too."""
    path = tmp_path / "a"
    whole = small_file(path)
    read = 0
    for position in range(len(whole)):
        for value in (34, 45, 57, 255, whole[position] ^ 1):
            changed = whole[:position] + bytes([value]) + whole[position + 1 :]
            path.write_bytes(changed)
            try:
                arrays, _ = read_arrays(path)
            except pb.FileFormatError:
                continue
            read += 1
            assert {name: a.shape for name, a in arrays.items()} == {
                name: tuple(t.shape) for name, t in safetensors_torch.load(changed).items()
            }
    assert read > 50  # changes of the numbers themselves, and of names


def test_every_byte_of_a_truth_value_is_one(tmp_path: Path) -> None:
    write_raw(tmp_path / "a", {"x": entry("BOOL", [3], 0, 3)}, b"\x00\x01\x02")
    found = read_arrays(tmp_path / "a")[0]["x"]
    assert found.view(np.uint8).tolist() == [0, 1, 1]


# -- save and load -------------------------------------------------------------------------------


@needs_ml_dtypes
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_tensors_of_every_device(tmp_path: Path, device: str) -> None:
    require(device)
    path = tmp_path / "a.safetensors"
    given = pb.asarray(array("float32", (3, 5)), device=device).set_requires_grad(True)
    pb.save({"w": given, "h": pb.asarray([1.5], dtype=pb.bfloat16, device=device)}, path, {"step": "1"})
    loaded = pb.load(path, device)
    assert (loaded["w"].device, loaded["h"].dtype, loaded["w"].requires_grad) == (device, pb.bfloat16, False)
    np.testing.assert_array_equal(loaded["w"].to_device("numpy").numpy(), array("float32", (3, 5)))


def test_arrays_of_other_libraries_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pb.save({"n": np.ones(2), "t": torch.ones(3)}, path)
    assert {name: value.shape for name, value in pb.load(path).items()} == {"n": (2,), "t": (3,)}


def test_writing_to_a_loaded_tensor_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pb.save({"w": pb.ones(3)}, path)
    before = path.read_bytes()
    w = pb.load(path)["w"]
    w += 1.0
    w.data_mut()[0] = 7.0
    assert w.tolist() == [7, 2, 2] and path.read_bytes() == before
    w.set_requires_grad(True)
    pb.optim.SGD([w], lr=1.0).step([pb.ones(3)])
    assert pb.load(path)["w"].tolist() == [1, 1, 1]


def test_a_file_can_be_replaced_while_its_tensors_are_in_use(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pb.save({"w": pb.ones(3)}, path)
    loaded = pb.load(path)
    pb.save({"w": loaded["w"] * 2, "more": pb.zeros(1000)}, path)
    assert loaded["w"].tolist() == [1, 1, 1]
    pb.save(loaded, path)
    assert pb.load(path)["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("mmap", "low", "high"), [(True, 0, 2**20), (False, 4_000_000, 4_000_000 + 2**20)])
def test_loading_takes_the_memory_of_the_tensors_once_or_with_a_map_none(
    tmp_path: Path, mmap: bool, low: int, high: int
) -> None:
    path = tmp_path / "a.safetensors"
    pb.save({"w": pb.zeros((1000, 1000))}, path)
    tracemalloc.start()
    try:
        loaded = pb.load(path, mmap=mmap)
        assert low <= tracemalloc.get_traced_memory()[1] < high
    finally:
        tracemalloc.stop()
    assert loaded["w"][0, 0].item() == 0


TENSORS = {"w": pb.arange(5000.0), "half": pb.ones(3, dtype=pb.float16), "flags": pb.tensor([True, False])}


@pytest.mark.parametrize("change", ["cut", "emptied", "edited", "removed", "longer"])
def test_load_survives_a_file_that_is_changed_later(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.safetensors"
    pb.save(TENSORS, path)
    loaded = pb.load(path)
    size = path.stat().st_size
    if change == "removed":
        path.unlink()
    else:
        with open(path, "r+b") as file:
            if change in ("cut", "emptied"):
                file.truncate(size // 2 if change == "cut" else 0)
            else:
                file.seek(0, os.SEEK_SET if change == "edited" else os.SEEK_END)
                file.write(b"\xff" * size)
    for name, tensor in TENSORS.items():
        assert_same(loaded[name].numpy(), tensor.numpy())
    assert loaded["w"].sum().item() == 5000 * 4999 / 2


def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.safetensors"
    pb.save(TENSORS, path)
    check = format_module._checked_header

    def cut(*arguments: Any) -> Any:
        os.truncate(path, path.stat().st_size - 4)
        return check(*arguments)

    monkeypatch.setattr(format_module, "_checked_header", cut)
    with pytest.raises(pb.FileFormatError, match="became shorter while"):
        pb.load(path)


def test_one_loaded_tensor_keeps_no_other_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pb.save({"large": pb.zeros((1000, 1000)), "small": pb.ones(2)}, path)
    tracemalloc.start()
    try:
        small = pb.load(path)["small"]
        assert tracemalloc.get_traced_memory()[0] < 2**20 and small.sum().item() == 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "given", [{"w": [1.0]}, {"w": None}, [1.0], pb.ones(3)], ids=["list", "None", "no dict", "bare"]
)
def test_what_is_no_tensor_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(pb.DtypeError):
        pb.save(given, tmp_path / "a.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(pb.DtypeError, match=r"path comes second"):
        pb.save(tmp_path / "a.safetensors", {"w": pb.ones(2)})  # type: ignore[arg-type]
    with pytest.raises(pb.DtypeError, match=r"model: expected a tensor or an array, got dict. .*write_checkpoint"):
        pb.save({"model": {"w": pb.ones(2)}}, tmp_path / "a.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_files_of_pytorch_and_numpy_are_recognized(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    np.savez(tmp_path / "a.npz", w=np.ones(2))
    np.save(tmp_path / "a.npy", np.ones(2))
    for name, words in (
        ("a.pt", r"`torch.load` or `np.load`"),
        ("a.npz", r"`torch.load` or `np.load`"),
        ("a.npy", "`np.load`"),
    ):
        with pytest.raises(pb.FileFormatError, match=words):
            pb.load(tmp_path / name)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pb.load(tmp_path / "missing.safetensors")
