"""Writing a model's folder, so that at every moment it holds a whole model, the old one or the new one."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..backends.quantization import SCHEMES
from ..errors import ConfigurationError
from ..files.atomic import atomic_write, remove_leftovers, sync_folder
from ..files.safetensors import write_arrays
from ..files.tensors import as_numpy
from ..quant.layer import QuantizedLinear
from .config import (
    CONFIG,
    GENERATION,
    INDEX,
    QUANTIZATION,
    QUANTIZED,
    WEIGHTS,
    to_entries,
)

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from .language_model import LanguageModel

#: What a folder has beside weights and config.json.
_COMPANIONS = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "merges.txt", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "chat_template.json", GENERATION,
)  # fmt: skip
_PART = re.compile(r"model(\.\d+)?-\d{5}-of-\d{5}\.safetensors")


def save(
    model: LanguageModel,
    folder: str | os.PathLike[str],
    largest_file: int = 5_000_000_000,
    like: str | os.PathLike[str] | None = None,
) -> None:
    """Write a model as a Hugging Face folder, which `transformers` reads too.

    A folder that holds a model may be written over, also the one that this very model was loaded from. Whoever reads it
    meanwhile, or after a crash, finds all of the old weights or all of the new ones.

    Parameters
    ----------
    model : LanguageModel
        What to write.
    folder : str or path
        Made if it is not there. Weights that were there are replaced, and other files stay.
    largest_file : int
        Bytes of weights from which on they are written to several files.
    like : str or path, optional
        A folder to copy the files of the tokenizer and of generation from.

    Examples
    --------
    See `load`.
    >>> import tempfile, pullback as pb
    >>> config = pb.models.DecoderConfig("llama", vocab_size=100, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8)
    >>> folder = tempfile.mkdtemp()
    >>> pb.models.save(pb.models.llama3(config), folder)
    >>> pb.models.load(folder).config.family
    'llama'
    """
    folder = os.fspath(folder)
    if like is not None and not os.path.isdir(like):
        raise FileNotFoundError(f"save: {os.fspath(like)} is no folder, and like= names one to copy from.")
    if type(largest_file) is not int or largest_file < 1:
        raise ConfigurationError(f"save: largest_file must be a number of bytes, got {largest_file!r}.")
    is_quantized = any(isinstance(module, QuantizedLinear) for module in model.modules())
    tensors = dict(model.state_dict())
    _check_names(tensors)
    ties = tensors.get("lm_head.weight") is not None and model.config.tie_word_embeddings
    if ties:
        del tensors["lm_head.weight"]
    os.makedirs(folder, exist_ok=True)
    entries = to_entries(model.config)
    entries["dtype"] = model.model.embed_tokens.weight.dtype.name
    entries["tie_word_embeddings"] = ties
    if is_quantized:
        entries[QUANTIZATION] = QUANTIZED
    if like is not None:
        _copy_companions(os.fspath(like), folder)
    parts = _parts(tensors, largest_file)
    if len(parts) == 1:
        _write_weights(folder, WEIGHTS, tensors)  # from here on it is read, and not the index
        _write_json(os.path.join(folder, CONFIG), entries)
        _remove(folder, INDEX)
        _remove_parts(folder, set())
    else:
        names = _new_names(folder, len(parts))
        for name, part in zip(names, parts):
            _write_weights(folder, name, part)
        places = {key: name for name, part in zip(names, parts) for key in part}
        total = sum(tensor.nbytes for tensor in tensors.values())
        _write_json(os.path.join(folder, INDEX), {"metadata": {"total_size": total}, "weight_map": places})
        _write_json(os.path.join(folder, CONFIG), entries)
        _remove(folder, WEIGHTS)  # from here on the index is read
        _remove_parts(folder, set(names))
    sync_folder(folder)


def _check_names(tensors: dict[str, Tensor]) -> None:
    """Refuse what no folder of a model has: who reads it would do without, or not at all."""
    known = {"weight", "bias", *(part for scheme in SCHEMES.values() for part in scheme.part_names)}
    for name in tensors:
        if name.rpartition(".")[2] not in known:
            raise ConfigurationError(
                f"save: {name!r} is no part of a language model's folder. Adapters have one of their own, by "
                f"`pb.peft.save_adapter`, or become part of the weights, by `pb.peft.remove(pb.peft.merge(model))`."
            )


def _parts(tensors: dict[str, Tensor], largest_file: int) -> list[dict[str, Tensor]]:
    """Tensors in groups that are written to one file each."""
    parts: list[dict[str, Tensor]] = [{}]
    room = largest_file
    for name, tensor in tensors.items():
        if tensor.nbytes > room and parts[-1]:
            parts.append({})
            room = largest_file
        parts[-1][name] = tensor
        room -= tensor.nbytes
    return parts


def _new_names(folder: str, count: int) -> list[str]:
    """Names that no file has yet: those of the old index stay as they are until there is a new one."""
    taken = {name.partition("-")[0] for name in os.listdir(folder) if _PART.fullmatch(name)}
    stem, number = "model", 1
    while stem in taken:
        number += 1
        stem = f"model.{number}"
    return [f"{stem}-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]


def _write_weights(folder: str, name: str, tensors: dict[str, Tensor]) -> None:
    path = os.path.join(folder, name)
    remove_leftovers(path)
    write_arrays(path, {key: as_numpy(key, tensor) for key, tensor in tensors.items()}, {"format": "pt"})


def _write_json(path: str, entries: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(entries, indent=2).encode() + b"\n")


def _remove(folder: str, name: str) -> None:
    with suppress(FileNotFoundError):
        os.remove(os.path.join(folder, name))


def _remove_parts(folder: str, but: set[str]) -> None:
    """Remove parts of other models, also those that a crash has left."""
    for name in os.listdir(folder):
        if _PART.fullmatch(name) and name not in but:
            _remove(folder, name)


def _copy_companions(source: str, folder: str) -> None:
    for name in _COMPANIONS:
        path, target = os.path.join(source, name), os.path.join(folder, name)
        if os.path.isfile(path) and not (os.path.exists(target) and os.path.samefile(path, target)):
            with open(path, "rb") as old, atomic_write(target) as new:
                shutil.copyfileobj(old, new)
