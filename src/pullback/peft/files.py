"""Adapters in the folders that Hugging Face's PEFT writes and reads: adapter_config.json beside one file of tensors."""

from __future__ import annotations

import json
import os
from typing import Any, TypeVar

from ..errors import ConfigurationError, DtypeError, FileFormatError, ShapeError
from ..files.atomic import atomic_write
from ..files.safetensors import read_arrays, write_arrays
from ..files.tensors import as_numpy
from ..models.config import read_json
from ..nn.linear import Linear
from ..nn.module import Module
from ..nn.state import load as load_state, nearest
from .adapting import adapted_layers, check_new, put_in
from .file_config import config_of, entries_of
from .layer import ADAPTER
from .targets import find_layers

Model = TypeVar("Model", bound=Module)

_CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
_PREFIX = "base_model.model."
_ENDINGS = {"lora_A": ".lora_A.weight", "lora_B": ".lora_B.weight", "lora_magnitude_vector": ".lora_magnitude_vector"}


def save_adapter(model: Module, folder: str | os.PathLike[str], base_model: str | None = None) -> None:
    """Write a model's adapters, and nothing else of it, as a folder that PEFT reads too.

    Parameters
    ----------
    model : Module
        With adapters.
    folder : str or path
        Made if it is not there. Files of the same names are replaced, each by a whole new one.
    base_model : str, optional
        The name or the folder of the model without adapters, for those who read the folder.

    Examples
    --------
    >>> import os, tempfile, pullback as pb
    >>> model = pb.peft.add_lora(pb.nn.Sequential(pb.nn.Linear(4, 8)), pb.peft.LoraConfig(rank=2, targets="0"))
    >>> folder = tempfile.mkdtemp()
    >>> pb.peft.save_adapter(model, folder)
    >>> sorted(os.listdir(folder))
    ['adapter_config.json', 'adapter_model.safetensors']
    """
    folder = os.fspath(folder)
    layers = adapted_layers(model)
    entries = entries_of(model, layers, base_model)
    arrays = {}
    for name, layer in layers.items():
        for part in ADAPTER:
            tensor = getattr(layer, part)
            if tensor is not None:
                key = f"{_PREFIX}{name}{_ENDINGS[part]}"
                arrays[key] = as_numpy(key, tensor.detach())
    os.makedirs(folder, exist_ok=True)
    write_arrays(os.path.join(folder, _WEIGHTS), arrays, {"format": "pt"})
    with atomic_write(os.path.join(folder, _CONFIG)) as file:
        file.write(json.dumps(entries, indent=2, sort_keys=True).encode() + b"\n")


def load_adapter(model: Model, folder: str | os.PathLike[str]) -> Model:
    """Freeze a model and put the adapters of a folder in, which PEFT or `save_adapter` wrote; returns the model.

    Nothing is changed unless everything fits, and options that would change what is computed are refused if they are
    not known. The adapters can be learned on.

    Parameters
    ----------
    model : Module
        Without adapters, its layers named as those of the model that the adapters are for.
    folder : str or path
        With adapter_config.json and adapter_model.safetensors.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb, tempfile
    >>> make = lambda: pb.nn.Sequential(pb.nn.Linear(4, 8), pb.nn.ReLU(), pb.nn.Linear(8, 2))
    >>> folder = tempfile.mkdtemp()
    >>> pb.peft.save_adapter(pb.peft.add_lora(make(), pb.peft.LoraConfig(rank=3, targets="all-linear")), folder)
    >>> pb.peft.load_adapter(make(), folder)[2]
    LoraLinear(in_features=8, out_features=2, bias=True, LoRA of rank 3)
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, _CONFIG)
    for needed in (path, os.path.join(folder, _WEIGHTS)):
        if not os.path.isfile(needed):
            raise FileNotFoundError(f"{needed}: no such file. {_found(folder)}")
    entries = read_json(path)
    arrays, _ = read_arrays(os.path.join(folder, _WEIGHTS))
    state = {_own_name(folder, key): array for key, array in arrays.items()}
    try:
        config, by_files = config_of(entries, sorted({name.rpartition(".")[0] for name in state}))
        check_new(model, config)
        layers = find_layers(model, config.targets)
        if by_files:
            layers = {name: layer for name, layer in layers.items() if name in config.targets}
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    _check_state(folder, config, layers, state)
    put_in(model, config, layers, seed=0)  # whose numbers the file's replace
    load_state(type(model).__name__, {name: _tensor(model, layers, name) for name in state}, state, strict=True)
    return model


def _tensor(model: Module, layers: dict[str, Linear], name: str) -> Any:
    owner, _, part = name.rpartition(".")
    return getattr(layers[owner], part)


def _own_name(folder: str, key: str) -> str:
    """The name in the model of a tensor in the file."""
    for part, ending in _ENDINGS.items():
        if key.startswith(_PREFIX) and key.endswith(ending) and len(key) > len(_PREFIX) + len(ending):
            return f"{key[len(_PREFIX) : -len(ending)]}.{part}"
    raise FileFormatError(
        f"{os.path.join(folder, _WEIGHTS)}: {key!r:.200} is no tensor of a LoRA adapter for linear layers: "
        f"expected {_PREFIX}<layer>{' or '.join(_ENDINGS.values())}."
    )


def _check_state(folder: str, config: Any, layers: dict[str, Linear], state: dict[str, Any]) -> None:
    """Make sure that the file has what the layers need, no more and no less."""
    path = os.path.join(folder, _WEIGHTS)
    expected: dict[str, tuple[int, ...]] = {}
    for name, layer in layers.items():
        rank, _ = config.sizes(name)
        expected[f"{name}.lora_A"] = (rank, layer.in_features)
        expected[f"{name}.lora_B"] = (layer.out_features, rank)
        if config.dora:
            expected[f"{name}.lora_magnitude_vector"] = (layer.out_features,)
    for name in expected:
        if name not in state:
            raise ConfigurationError(f"{path}: {name!r} is missing. {nearest(name, state)}".rstrip())
    for name, array in state.items():
        if name not in expected:
            raise ConfigurationError(
                f"{path}: {name!r} fits nothing that {_CONFIG} describes. {nearest(name, expected)}".rstrip()
            )
        if array.shape != expected[name]:
            raise ShapeError(f"{path}: {name!r} has shape {array.shape}, {_CONFIG} and the model say {expected[name]}.")
        if array.dtype.kind in "biuc":
            raise DtypeError(f"{path}: {name!r} is {array.dtype.name}, expected floating-point numbers.")


def _found(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"{folder} is no folder."
    listed = sorted(os.listdir(folder))
    if "adapter_model.bin" in listed:
        return "adapter_model.bin is a pickle, which can run any program; save the adapter as safetensors."
    return f"There are {', '.join(listed[:8])}." if listed else "The folder is empty."
