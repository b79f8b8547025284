"""Models in Hugging Face's folders: config.json beside safetensors files, one or several with an index."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ..autodiff.creation import asarray
from ..backends import for_device
from ..errors import ConfigurationError, FileFormatError, ShapeError
from ..files.atomic import atomic_write
from ..files.safetensors import read_arrays, write_arrays
from ..files.tensors import as_numpy
from ..nn.state import nearest
from .config import read_config, read_json, to_entries
from .language_model import LanguageModel

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_FOLLOWS = (".rotary_emb.inv_freq",)  # saved by old programs, and no part of what is learned


def load(folder: str | os.PathLike[str], device: str | None = None, dtype: Any = None) -> LanguageModel:
    """The language model of a Hugging Face folder: Llama 3, Qwen2 or Qwen3, as its config.json says.

    Weights are views of the files, on "torch:cpu" too: they are read from the disk when they are first used, and there
    is no second copy of them in memory. So nobody should write to these files while the model lives (replacing them is
    no harm). On other devices than the processor's, and where `dtype` says so, each is copied by itself.

    Parameters
    ----------
    folder : str or path
        With config.json, and model.safetensors or several files with model.safetensors.index.json.
    device : str, optional
        Where the weights go, by default "numpy".
    dtype : dtype, optional
        What they are converted to; by default they stay as they are saved.

    Returns
    -------
    LanguageModel
        In training mode; all of its parameters require a gradient (see `freeze`).

    Examples
    --------
    >>> import pullback as pb, tempfile
    >>> config = pb.models.DecoderConfig("llama", vocab_size=100, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8)
    >>> folder = tempfile.mkdtemp()
    >>> pb.models.save(pb.models.llama3(config), folder)
    >>> pb.models.load(folder).num_parameters()
    2072
    """
    folder = os.fspath(folder)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder}: no such folder. A model is a folder with config.json and {_WEIGHTS}.")
    config = read_config(folder)
    saved = _Saved(folder, device, dtype)
    model = LanguageModel(config, saved.take)
    saved.check_all_taken({"lm_head.weight"} if config.tie_word_embeddings else set())
    return model


def save(model: LanguageModel, folder: str | os.PathLike[str], largest_file: int = 5_000_000_000) -> None:
    """Write a model as a Hugging Face folder, which `transformers` reads too.

    Parameters
    ----------
    model : LanguageModel
    folder : str or path
        Made if it is not there. Files of the same names are replaced, each by a whole new one.
    largest_file : int
        Bytes of weights from which on they are written to several files.

    Examples
    --------
    See `load`.
    """
    folder = os.fspath(folder)
    tensors = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    shards: list[dict[str, Any]] = [{}]
    room = largest_file
    for name, tensor in tensors.items():
        if tensor.nbytes > room and shards[-1]:
            shards.append({})
            room = largest_file
        shards[-1][name] = tensor
        room -= tensor.nbytes
    os.makedirs(folder, exist_ok=True)
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    if len(shards) == 1:
        names = [_WEIGHTS]
    for name, shard in zip(names, shards):
        arrays = {key: as_numpy(key, tensor) for key, tensor in shard.items()}
        write_arrays(os.path.join(folder, name), arrays, {"format": "pt"})
    index = os.path.join(folder, _INDEX)
    if len(shards) > 1:
        places = {key: name for name, shard in zip(names, shards) for key in shard}
        total = sum(tensor.nbytes for tensor in tensors.values())
        _write_json(index, {"metadata": {"total_size": total}, "weight_map": places})
    elif os.path.exists(index):
        os.remove(index)
    entries = to_entries(model.config)
    entries.pop("torch_dtype", None)
    entries["dtype"] = model.model.embed_tokens.weight.dtype.name
    _write_json(os.path.join(folder, "config.json"), entries)


def dtype_in(folder: str | os.PathLike[str]) -> str:
    """The name of the dtype that most of the saved weights have; nothing but the files' headers is read."""
    sizes: dict[str, int] = {}
    for name in _files(os.fspath(folder)):
        arrays, _ = read_arrays(os.path.join(folder, name), mmap=True)
        for array in arrays.values():
            sizes[array.dtype.name] = sizes.get(array.dtype.name, 0) + array.nbytes
    return max(sizes, key=lambda dtype: sizes[dtype], default="float32")


class _Saved:
    """The weights in a folder, mapped; each is taken by its name, and left out names are told."""

    def __init__(self, folder: str, device: str | None, dtype: Any) -> None:
        self._folder, self._dtype = folder, dtype
        self._device = for_device(device or "numpy")[1]
        self._is_torchs = self._device == "torch:cpu"  # which knows no arrays that cannot be written
        self._arrays: dict[str, Any] = {}
        for name in _files(folder):
            arrays, _ = read_arrays(os.path.join(folder, name), mmap=True, writable=self._is_torchs)
            repeated = next((key for key in arrays if key in self._arrays), None)
            if repeated is not None:
                raise FileFormatError(f"{folder}: {repeated!r} is in {name} and in another file of the model.")
            self._arrays.update(arrays)
        self._taken: set[str] = set()

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        array = self._arrays.get(name)
        if array is None:
            raise ConfigurationError(
                f"{self._folder}: the weights lack {name!r} of shape {shape}. {nearest(name, self._arrays)}".rstrip()
            )
        if array.shape != shape:
            raise ShapeError(f"{self._folder}: {name!r} has shape {array.shape}, config.json says {shape}.")
        self._taken.add(name)
        tensor = asarray(self._shared(array), dtype=self._dtype, device=self._device)
        if tensor.dtype.kind != "float":
            raise ConfigurationError(f"{self._folder}: {name!r} is {tensor.dtype.name}, expected floating-point.")
        return tensor.detach().set_requires_grad(True)

    def _shared(self, array: Any) -> Any:
        """An array as one of PyTorch's in the same memory, where that is to have it."""
        if not self._is_torchs:
            return array
        from ..backends.torch_memory import on_host

        return on_host(array)

    def check_all_taken(self, but: set[str]) -> None:
        left = [name for name in self._arrays if name not in self._taken | but and not name.endswith(_FOLLOWS)]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ConfigurationError(
                f"{self._folder}: config.json describes no model that has {', '.join(map(repr, left[:3]))}{more}."
            )


def _files(folder: str) -> list[str]:
    """The names of the files that the weights are in."""
    if os.path.exists(os.path.join(folder, _WEIGHTS)):
        return [_WEIGHTS]
    index = os.path.join(folder, _INDEX)
    if not os.path.exists(index):
        found = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        raise FileNotFoundError(f"{folder}: neither {_WEIGHTS} nor {_INDEX} is in it, but {found}.")
    places = read_json(index).get("weight_map")
    names = list(dict.fromkeys(places.values())) if isinstance(places, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise FileFormatError(f"{index}: 'weight_map' does not map names of weights to names of files.")
    for name in names:
        if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name:
            raise FileFormatError(f"{index}: {name!r} is no name of a file in the same folder.")
        if not os.path.exists(os.path.join(folder, name)):
            raise FileNotFoundError(f"{folder}: {name} is missing, which {_INDEX} names.")
    return names


def _write_json(path: str, entries: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(entries, indent=2).encode() + b"\n")
