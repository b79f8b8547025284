"""A tree of values as JSON text and arrays, and back: what a checkpoint is made of."""

from __future__ import annotations

import json
from typing import Any, Mapping

import numpy as np

from ..autodiff.creation import asarray
from ..errors import ConfigurationError, FileFormatError
from ..files.tensors import as_numpy
from ..tensors.tensor import Tensor

_KIND = "$"  # marks a JSON object that stands for something JSON does not have


def packed(state: Any) -> tuple[str, dict[str, Any]]:
    """JSON text with references to arrays, and the arrays by name; tensors are not copied.

    Dicts with any keys, lists, tuples, numbers, strings, None, NumPy arrays and tensors come back as they were.

    >>> import numpy as np
    >>> from pullback.train.packing import packed, unpacked
    >>> text, arrays = packed({"step": 3, "state": {0: (np.arange(2), 0.5)}})
    >>> arrays
    {'state.0.0': array([0, 1])}
    >>> unpacked(text, arrays)
    {'step': 3, 'state': {0: (array([0, 1]), 0.5)}}
    """
    arrays: dict[str, Any] = {}
    return json.dumps(_packed(state, "", arrays), separators=(",", ":")), arrays


def unpacked(text: str, arrays: Mapping[str, Any]) -> Any:
    """What `packed` was given, with the `arrays` themselves in it."""
    try:
        return _unpacked(json.loads(text), dict(arrays))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(f"the saved state cannot be read: {type(error).__name__}: {error}") from error


def _packed(value: Any, path: str, arrays: dict[str, Any]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        name = path
        while name in arrays:  # {"a.b": x, "a": {"b": y}}
            name += "'"
        arrays[name] = as_numpy(name, value)
        return {_KIND: "tensor" if isinstance(value, Tensor) else "array", "name": name}
    if isinstance(value, Mapping):
        entries = [(key, _packed(part, f"{path}.{key}" if path else str(key), arrays)) for key, part in value.items()]
        if all(type(key) is str and key != _KIND for key, _ in entries):
            return dict(entries)
        if not all(type(key) in (str, int) for key, _ in entries):
            raise ConfigurationError(f"a checkpoint cannot hold the keys of {path or 'the state'}: {list(value)!r:.80}")
        return {_KIND: "dict", "items": entries}
    if isinstance(value, (list, tuple)):
        parts = [_packed(part, f"{path}.{position}", arrays) for position, part in enumerate(value)]
        return {_KIND: "tuple", "items": parts} if isinstance(value, tuple) else parts
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigurationError(
        f"a checkpoint cannot hold {path or 'the state'}: it is a {type(value).__name__} ({value!r:.60}). A "
        "`state_dict` has numbers, strings, None, arrays and tensors, in dicts, lists and tuples."
    )


def _unpacked(value: Any, arrays: dict[str, Any]) -> Any:
    """A value; the arrays that it has are taken out of `arrays`, so that a text cannot ask for one a thousand times."""
    if isinstance(value, list):
        return [_unpacked(part, arrays) for part in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind is None:
        return {key: _unpacked(part, arrays) for key, part in value.items()}
    if kind == "tensor":
        return asarray(arrays.pop(value["name"]))
    if kind == "array":
        return arrays.pop(value["name"])
    items = [_unpacked(part, arrays) for part in value["items"]]
    if kind == "tuple":
        return tuple(items)
    if kind == "dict":
        return dict(items)
    raise ValueError(f"unknown kind {kind!r}")
