"""Models in Hugging Face's folders: config.json beside safetensors files, one or several with an index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..autodiff.creation import asarray
from ..backends import NUMPY, for_device
from ..backends.portable.packed import Form, Packed
from ..backends.quantization import SCHEMES, Scheme
from ..dtypes import float32, get
from ..errors import ConfigurationError, FileFormatError, ShapeError
from ..files.safetensors import read_arrays
from ..nn.state import nearest
from ..quant.quantizing import packed
from .config import CONFIG, INDEX, QUANTIZATION, WEIGHTS, read_config, read_json
from .decoder import Weights
from .language_model import LanguageModel

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_BORROWS = "torch:cpu"  # beside "numpy": it reads files' memory, but knows none that cannot be written
_TABLE = "model.embed_tokens.weight"  # it is never quantized, and has the dtype of what is
_FOLLOWS = (".rotary_emb.inv_freq",)  # saved by old programs, and no part of what is learned


def load(
    folder: str | os.PathLike[str], device: str | None = None, dtype: Any = None, quantize: str | None = None
) -> LanguageModel:
    """The language model of a Hugging Face folder: Llama 3, Qwen2 or Qwen3, as its config.json says.

    Weights are views of the files: they are read from the disk when they are first used, and there is no second copy of
    them in memory. So nobody should write to these files while the model lives (replacing them is no harm). On other
    devices than the processor's, and where `dtype` says so, each is copied by itself.

    Parameters
    ----------
    folder : str or path
        With config.json, and model.safetensors or several files with model.safetensors.index.json.
    device : str, optional
        Where the weights go, by default "numpy".
    dtype : dtype, optional
        What they are converted to; by default they stay as they are saved.
    quantize : str, optional
        A scheme of `pb.quant.quantize` ("int8", "nf4", ...), in which the weights of the layers are kept. They are
        quantized one by one, the embedding and the head are not, and nothing of the model requires a gradient then.
        The weights of a folder that was saved quantized are so in any case.

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
        raise FileNotFoundError(f"{folder}: no such folder. A model is a folder with config.json and {WEIGHTS}.")
    config = read_config(folder)
    saved = _Saved(folder, device, dtype, quantize)
    model = LanguageModel(config, saved.take if quantize is None else packing(saved.take, quantize))
    if quantize is not None or saved.is_quantized:
        model.freeze()
    saved.check_all_taken({"lm_head.weight"} if config.tie_word_embeddings else set())
    return model


def has_weights(folder: str | os.PathLike[str]) -> bool:
    """Whether any file of weights is in a folder; config.json is enough to say what a model's shapes are."""
    return any(name.endswith(".safetensors") for name in os.listdir(folder))


def dtype_in(folder: str | os.PathLike[str]) -> str:
    """The name of the dtype of the saved weights, or of most; nothing but the files' headers is read.

    In a folder without weights it is what config.json says.
    """
    if not has_weights(folder):
        return _announced_dtype(os.path.join(folder, CONFIG))
    sizes: dict[str, int] = {}
    for name, array in _arrays(os.fspath(folder)).items():
        if name == _TABLE:
            return str(array.dtype.name)
        sizes[array.dtype.name] = sizes.get(array.dtype.name, 0) + array.nbytes
    return max(sizes, key=lambda dtype: sizes[dtype], default="float32")


def schemes_in(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The schemes of the weights that are saved quantized, by the weights' names."""
    if not has_weights(folder):
        path = os.path.join(folder, CONFIG)
        if read_json(path).get(QUANTIZATION):
            raise ConfigurationError(f"{path}: the weights are quantized, and only their files, which lack, say how.")
        return {}
    firsts = {scheme.part_names[0]: scheme.name for scheme in SCHEMES.values()}
    split = [name.rpartition(".") for name in _arrays(os.fspath(folder))]
    return {f"{stem}.weight": firsts[part] for stem, _, part in split if part in firsts}


def _announced_dtype(path: str) -> str:
    entries = read_json(path)
    name = entries.get("dtype") or entries.get("torch_dtype") or "float32"
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise ConfigurationError(f"{path}: the dtype of the weights is {name!r:.60}, which is no floating-point one.")
    return str(name)


def _arrays(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _files(folder):
        found.update(read_arrays(os.path.join(folder, name), mmap=True)[0])
    return found


def is_packed(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a weight is one of a linear layer of the decoder: embeddings and the head are not quantized."""
    return len(shape) == 2 and ".layers." in name


def packing(weights: Weights, scheme: str) -> Weights:
    """The same weights, those of the decoder's linear layers quantized."""

    def given(name: str, shape: tuple[int, ...]) -> Any:
        weight = weights(name, shape)
        if isinstance(weight, Packed) or not is_packed(name, shape):
            return weight
        try:
            return packed(weight, scheme)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None

    return given


class _Saved:
    """The weights in a folder, mapped; each is taken by its name, and left out names are told."""

    def __init__(self, folder: str, device: str | None, dtype: Any, scheme: str | None) -> None:
        self._folder, self._device, self._dtype, self._scheme = folder, device, dtype, scheme
        self.is_quantized = False
        self._arrays: dict[str, Any] = {}
        for name in _files(folder):
            arrays, _ = read_arrays(os.path.join(folder, name), mmap=True, private=device == _BORROWS)
            repeated = next((key for key in arrays if key in self._arrays), None)
            if repeated is not None:
                raise FileFormatError(f"{folder}: {repeated!r} is in {name} and in another file of the model.")
            self._arrays.update(arrays)
        self._taken: set[str] = set()

    def take(self, name: str, shape: tuple[int, ...]) -> Any:
        """A weight, or its parts if they are saved in its place."""
        if name not in self._arrays and len(shape) == 2 and name != _TABLE:
            stem = name.removesuffix("weight")
            for scheme in SCHEMES.values():
                if stem + scheme.part_names[0] in self._arrays:
                    return self._packed(scheme, stem, shape)
        return self._tensor(name, shape).set_requires_grad(True)

    def _packed(self, scheme: Scheme, stem: str, shape: tuple[int, ...]) -> Packed:
        if self._scheme not in (None, scheme.name):
            raise ConfigurationError(
                f"{self._folder}: the weights are quantized as {scheme.name!r}, not {self._scheme!r}."
            )
        self.is_quantized = True
        table = self._arrays.get(_TABLE)
        dtype = get(self._dtype) if self._dtype is not None else float32 if table is None else NUMPY.dtype_of(table)
        form = Form(scheme.name, -2 if scheme.has_axis else None, shape, dtype.name)
        layout = zip(scheme.part_names, scheme.layout(shape, form.axis))
        parts = [self._tensor(stem + part, size, as_saved=kind) for part, (size, kind) in layout]
        return Packed(tuple(parts), form)

    def _tensor(self, name: str, shape: tuple[int, ...], as_saved: str = "") -> Tensor:
        """The tensor of a name and a shape: a weight, or a part of one that must be saved in this dtype."""
        array = self._arrays.get(name)
        if array is None:
            raise ConfigurationError(
                f"{self._folder}: the weights lack {name!r} of shape {shape}. {nearest(name, self._arrays)}".rstrip()
            )
        if array.shape != shape:
            raise ShapeError(f"{self._folder}: {name!r} has shape {array.shape}, config.json says {shape}.")
        self._taken.add(name)
        dtype = NUMPY.dtype_of(array)
        if dtype.name != as_saved if as_saved else dtype.kind != "float":
            raise ConfigurationError(
                f"{self._folder}: {name!r} is {dtype.name}, expected {as_saved or 'floating-point'}."
            )
        if self._device == _BORROWS:
            library, _ = for_device(_BORROWS)
            array = library.on_host(array)
        return asarray(array, dtype=None if as_saved else self._dtype, device=self._device or "numpy").detach()

    def check_all_taken(self, but: set[str]) -> None:
        left = [name for name in self._arrays if name not in self._taken | but and not name.endswith(_FOLLOWS)]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ConfigurationError(
                f"{self._folder}: config.json describes no model that has {', '.join(map(repr, left[:3]))}{more}."
            )


def _files(folder: str) -> list[str]:
    """The names of the files that the weights are in."""
    if os.path.exists(os.path.join(folder, WEIGHTS)):
        return [WEIGHTS]
    index = os.path.join(folder, INDEX)
    if not os.path.exists(index):
        found = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        raise FileNotFoundError(f"{folder}: neither {WEIGHTS} nor {INDEX} is in it, but {found}.")
    places = read_json(index).get("weight_map")
    given = list(places.values()) if isinstance(places, dict) else []
    if not given or not all(isinstance(name, str) for name in given):
        raise FileFormatError(f"{index}: 'weight_map' does not map names of weights to names of files.")
    names = list(dict.fromkeys(given))
    for name in names:
        if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name:
            raise FileFormatError(f"{index}: {name!r} is no name of a file in the same folder.")
        if not os.path.exists(os.path.join(folder, name)):
            raise FileNotFoundError(f"{folder}: {name} is missing, which {INDEX} names.")
    return names
