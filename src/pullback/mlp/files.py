"""Files of an `Mlp`: JSON to read, safetensors to keep. Both carry a description with a version.

A file is believed only as far as its contents bear it out: nothing is allocated by what a header claims.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileFormatError, PullbackError
from ..files.atomic import atomic_write
from ..files.safetensors import read_arrays, write_arrays
from .layout import Layout

if TYPE_CHECKING:
    from .network import Mlp

__all__ = ["load", "save"]

FORMAT = "pullback.Mlp"
VERSION = 1
_LARGEST_JSON = 1 << 30  # bytes; numbers as text take several times as much memory when read
_MOST_LAYERS = 10_000
_FIELDS = {"format", "version", "dtype", "sizes", "activations"}


def save(mlp: Mlp, path: str | os.PathLike[str]) -> None:
    """See `Mlp.save`."""
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": mlp.dtype.name,
        "sizes": list(mlp.sizes),
        "activations": list(mlp.activations),
    }
    if _suffix(path) == ".safetensors":
        write_arrays(path, dict(mlp._named()), {FORMAT: json.dumps(description)})
        return
    if not np.isfinite(mlp.parameters).all():
        raise FileFormatError(f"{os.fspath(path)}: JSON has no NaN and no infinity. Save as .safetensors.")
    layers = [{"weights": mlp.weights(i).tolist(), "biases": mlp.biases(i).tolist()} for i in range(len(mlp))]
    with atomic_write(path) as file:
        file.write(_readable(description, layers).encode())


def _readable(description: dict[str, Any], layers: list[dict[str, Any]]) -> str:
    """JSON with a line for each row of weights. Python writes a float such that reading it gives the same bits."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in description.items()]
    blocks = []
    for layer in layers:
        rows = ",\n".join(f"        {json.dumps(row)}" for row in layer["weights"])
        biases = json.dumps(layer["biases"])
        blocks.append(f'    {{\n      "weights": [\n{rows}\n      ],\n      "biases": {biases}\n    }}')
    return "\n".join(["{", *lines, '  "layers": [', ",\n".join(blocks), "  ]", "}", ""])


def load(path: str | os.PathLike[str]) -> Mlp:
    """See `Mlp.load`."""
    from .network import _restored

    if _suffix(path) == ".safetensors":
        description, arrays = _from_safetensors(path)
    else:
        description, arrays = _from_json(path)
    layout = _layout(path, description)
    expected = _shapes(layout)
    if set(arrays) != set(expected):
        raise _broken(path, f"it has the arrays {sorted(arrays)!r:.200}, expected {sorted(expected)!r:.200}")
    for name, shape in expected.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != layout.dtype:
            found = f"{array.dtype.name} of shape {array.shape}"
            raise _broken(path, f"{name} is {found}, expected {layout.dtype.name} of shape {shape}")
    parameters = np.concatenate([arrays[name].reshape(-1) for name in expected])
    names = [activation.name for activation in layout.activations]
    return _restored(layout.sizes, names, layout.dtype.name, parameters)


def _from_safetensors(path: Any) -> tuple[Any, dict[str, Any]]:
    arrays, metadata = read_arrays(path)
    if FORMAT not in metadata:
        raise _broken(path, f"its metadata has no {FORMAT!r}. For tensors alone use `pb.load`")
    return _parsed(path, metadata[FORMAT]), arrays


def _from_json(path: Any) -> tuple[Any, dict[str, Any]]:
    size = os.path.getsize(path)
    if size > _LARGEST_JSON:
        raise _broken(path, f"it has {size} bytes, more than the {_LARGEST_JSON} a JSON file may have")
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise _broken(path, f"it is not text ({error.reason})") from error
    description = _parsed(path, text)
    layers = description.pop("layers", None) if isinstance(description, dict) else None
    if not isinstance(layers, list) or len(layers) > _MOST_LAYERS:
        raise _broken(path, "it has no list of layers")
    dtype = np.dtype(np.float64 if description.get("dtype") == "float64" else np.float32)
    arrays = {}
    for number, layer in enumerate(layers):
        if not isinstance(layer, dict) or set(layer) != {"weights", "biases"}:
            raise _broken(path, f"layer {number} should have weights and biases")
        rows = layer["weights"]
        if not isinstance(rows, list) or not rows:
            raise _broken(path, f"the weights of layer {number} are not a list of rows")
        weights = [_vector(path, f"a row of the weights of layer {number}", row, dtype) for row in rows]
        if len({len(row) for row in weights}) != 1:
            raise _broken(path, f"the rows of the weights of layer {number} are not of equal length")
        arrays[f"layers.{number}.weight"] = np.stack(weights)
        arrays[f"layers.{number}.bias"] = _vector(path, f"the biases of layer {number}", layer["biases"], dtype)
    return description, arrays


def _vector(path: Any, what: str, values: Any, dtype: Any) -> Any:
    """A list of finite numbers as an array."""
    if not isinstance(values, list) or any(type(value) not in (float, int) for value in values):
        raise _broken(path, f"{what}: expected a list of numbers")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, np.float64).astype(dtype)
    except OverflowError:
        array = np.array([np.inf])
    if not np.isfinite(array).all():
        raise _broken(path, f"{what}: a number is not finite in {dtype.name}")
    return array


def _parsed(path: Any, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"its description is not JSON ({error})") from error


def _layout(path: Any, description: Any) -> Layout:
    """The layout that a description claims, after checking every field of it."""
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise _broken(path, f"it does not say that its format is {FORMAT!r}")
    version = description.get("version")
    if version != VERSION or type(version) is not int:
        raise _broken(path, f"its version is {version!r:.40}; this Pullback reads version {VERSION}")
    if set(description) != _FIELDS:
        raise _broken(path, f"its description has the fields {sorted(description)!r:.200}, expected {sorted(_FIELDS)}")
    sizes, activations = description["sizes"], description["activations"]
    if not (isinstance(sizes, list) and 2 <= len(sizes) <= _MOST_LAYERS and all(type(size) is int for size in sizes)):
        raise _broken(path, "its sizes are not a list of integers")
    if not (isinstance(activations, list) and all(isinstance(name, str) for name in activations)):
        raise _broken(path, "its activations are not a list of names")
    if description["dtype"] not in ("float32", "float64"):
        raise _broken(path, f"its dtype is {description['dtype']!r:.40}, expected float32 or float64")
    try:
        return Layout(sizes, activations, description["dtype"])
    except PullbackError as error:
        raise _broken(path, str(error).rstrip(".")) from error


def _shapes(layout: Layout) -> dict[str, tuple[int, ...]]:
    """The arrays that a file must have, in the order of the parameters."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(len(layout)):
        inputs, outputs = layout.sizes[layer : layer + 2]
        shapes[f"layers.{layer}.weight"] = (outputs, inputs)
        shapes[f"layers.{layer}.bias"] = (outputs,)
    return shapes


def _suffix(path: Any) -> str:
    suffix = Path(path).suffix
    if suffix not in (".json", ".safetensors"):
        raise FileFormatError(f"{os.fspath(path)}: expected a name that ends in .json or .safetensors.")
    return suffix


def _broken(path: Any, reason: str) -> FileFormatError:
    return FileFormatError(f"{os.fspath(path)}: not a sound Mlp file: {reason}.")
