"""The safetensors format: a header in JSON that says where each tensor is, then the tensors' bytes.

Arrays are written without a copy in memory, and read into memory of their own, or as views of one memory map for those
who ask for it. Nothing a file says is believed: the header's length, every offset and every dtype are checked before a
byte is touched.
"""

from __future__ import annotations

import json
import math
import os
from typing import IO, Any, Mapping

import numpy as np

from .. import dtypes
from ..backends import NUMPY
from ..errors import FileFormatError
from .atomic import atomic_write

LARGEST_HEADER = 100_000_000  # as the format's own implementation has it
_ALIGNMENT = 8
_MOST_AXES = 64  # as in NumPy
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16",
    "bfloat16": "BF16", "uint32": "U32", "int32": "I32", "float32": "F32", "complex64": "C64", "uint64": "U64",
    "int64": "I64", "float64": "F64",
}  # fmt: skip
_OTHERS = {  # how files of other formats begin
    b"PK\x03\x04": "it is a zip archive, as PyTorch and NumPy write them; read it with `torch.load` or `np.load`",
    b"\x93NUMPY": "it is an array that NumPy wrote; read it with `np.load`",
}
_DTYPES = {code: name for name, code in _NAMES.items()}


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write NumPy arrays under their names; the file appears whole or not at all."""
    header: dict[str, Any] = {}
    if metadata:
        for key, text in metadata.items():
            if not (isinstance(key, str) and isinstance(text, str)):
                raise FileFormatError(f"metadata must map strings to strings, got {key!r}: {text!r:.60}.")
        header["__metadata__"] = dict(metadata)
    for name in arrays:
        if not isinstance(name, str):
            raise FileFormatError(f"tensors are saved under names, got {name!r:.60} for one.")
    # The widest elements first, so that every array is aligned; then by name, so that equal contents give equal files.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    position = 0
    for name in order:
        array = arrays[name]
        if name == "__metadata__":
            raise FileFormatError("no tensor can be called '__metadata__': the format keeps that name for itself.")
        code = _NAMES.get(NUMPY.dtype_of(array).name)
        if code is None:
            raise FileFormatError(f"{name}: safetensors cannot hold {NUMPY.dtype_of(array).name}.")
        header[name] = {
            "dtype": code,
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    try:
        encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FileFormatError(f"a name or a text of the metadata is no Unicode: {error}.") from error
    encoded += b" " * (-len(encoded) % _ALIGNMENT)
    if len(encoded) > LARGEST_HEADER:
        raise FileFormatError(f"the names of {len(arrays)} tensors take {len(encoded)} bytes, over the format's limit.")
    with atomic_write(path) as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for name in order:
            array = np.ascontiguousarray(arrays[name])
            if array.dtype.byteorder == ">":
                array = array.astype(array.dtype.newbyteorder("<"))
            if array.nbytes:
                file.write(array.reshape(-1).view(np.uint8).data)


def read_arrays(
    path: str | os.PathLike[str], mmap: bool = False, writable: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a file and its metadata; with `mmap`, read-only views of a memory map of the file.

    A map follows the file: bytes that are changed later change in the arrays, and to read one that was cut off ends
    the process. So it is only for those who know that nobody writes the file. With `writable` too, what is written into
    the arrays stays in this process: the file does not change.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        if len(start) < 8:
            raise _broken(path, f"it has {size} bytes, too few for a header")
        length = int.from_bytes(start, "little")
        if length > LARGEST_HEADER or 8 + length > size:
            for beginning, advice in _OTHERS.items():
                if start.startswith(beginning):
                    raise _broken(path, advice)
            raise _broken(path, f"its header claims {length} bytes, the file has {size}. It may be cut off")
        text = file.read(length)
        entries, metadata = _checked_header(path, text, size - 8 - length)
        arrays = _mapped(file, 8 + length, entries, writable) if mmap else _read(path, file, entries)
    return arrays, metadata


def _checked_header(path: Any, text: bytes, body: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The entries and the metadata that a header has, for a file with so many bytes after it."""
    try:
        header = json.loads(text.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"its header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise _broken(path, "its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or any(not isinstance(value, str) for value in metadata.values()):
        raise _broken(path, "its metadata does not map strings to strings")
    entries = {name: _checked_entry(path, name, entry, body) for name, entry in header.items()}
    _check_cover(path, entries, body)
    return entries, metadata


def _read(path: Any, file: IO[bytes], entries: dict[str, Any]) -> dict[str, Any]:
    """The arrays, each in memory of its own: one of them that stays keeps no other one alive."""
    found = {}
    for name, (dtype, shape, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):  # as in the file
        raw_dtype = NUMPY.raw_dtype(dtypes.BY_NAME[dtype])
        array = np.empty(math.prod(shape), raw_dtype)
        content = array.view(np.uint8)
        if end > begin and file.readinto(content.data) < end - begin:  # type: ignore[attr-defined]
            raise _broken(path, f"it became shorter while {name!r} was being read")
        found[name] = (_truth(content) if dtype == "bool" else array).reshape(shape)
    return {name: found[name] for name in entries}


def _mapped(file: IO[bytes], start: int, entries: dict[str, Any], writable: bool) -> dict[str, Any]:
    """The arrays as views of a memory map, but for those that cannot be."""
    body = max((end for *_, end in entries.values()), default=0)
    mode: Any = "c" if writable else "r"  # copies of pages that are written
    bytes_of_file = np.memmap(file, np.uint8, mode, offset=start) if body else np.empty(0, np.uint8)
    arrays = {}
    for name, (dtype, shape, begin, end) in entries.items():
        part = bytes_of_file[begin:end]
        if dtype == "bool":
            part = _truth(part)
        raw_dtype = NUMPY.raw_dtype(dtypes.BY_NAME[dtype])
        if (start + begin) % raw_dtype.itemsize:  # files of others need not align their arrays
            part = part.copy()
        arrays[name] = array = np.asarray(part).view(raw_dtype).reshape(shape)
        array.flags.writeable = writable
    return arrays


def _truth(content: Any) -> Any:
    """Bytes as booleans: one that is neither 0 nor 1 would be a third truth value to NumPy."""
    return content != 0


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


def _checked_entry(path: Any, name: str, entry: Any, body: int) -> tuple[str, tuple[int, ...], int, int]:
    """A tensor's dtype, shape and place, after making sure that they fit together and into the file."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _broken(path, f"the entry of {name!r} should have dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = _DTYPES.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise _broken(path, f"{name!r} has the unknown dtype {code!r:.40}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise _broken(path, f"the shape or the offsets of {name!r} are not lists of counts")
    if len(shape) > _MOST_AXES or math.prod(n for n in shape if n) >= 1 << 60:
        raise _broken(path, f"the shape of {name!r} is larger than any array can be")
    begin, end = offsets
    expected = math.prod(shape) * dtypes.BY_NAME[dtype].itemsize
    if not begin <= end <= body or end - begin != expected:
        raise _broken(path, f"{name!r} should take {expected} bytes; it claims {begin} to {end} of {body}")
    return dtype, tuple(shape), begin, end


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 62 for value in values)


def _check_cover(path: Any, entries: dict[str, Any], body: int) -> None:
    """The format's rule: the tensors fill the file, without holes and without sharing bytes."""
    position = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != position:
            raise _broken(path, f"{name!r} starts at byte {begin} where {position} was expected")
        position = end
    if position != body:
        raise _broken(path, f"its tensors take {position} bytes, the file has {body} for them. It may be cut off")


def _broken(path: Any, reason: str) -> FileFormatError:
    return FileFormatError(f"{os.fspath(path)}: not a sound safetensors file: {reason}.")
