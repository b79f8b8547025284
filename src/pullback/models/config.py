"""What a decoder is: its sizes and options, from the config.json of a Hugging Face folder, old style or new."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import Any, Mapping

from ..errors import ConfigurationError, FileFormatError
from ..nn.state import nearest

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
FAMILIES = ("llama", "qwen2", "qwen3")  # `model_type` in config.json
_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_LARGEST_FILE = 10_000_000


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes and options of a decoder, under the names that Hugging Face's config.json has.

    `family` is "llama" (3 and like it), "qwen2" or "qwen3". `rope_parameters` are those of new config files, with
    `rope_type` and `rope_theta`. `attention_bias` and `mlp_bias` say whether linear layers have biases, `rms_norm_eps`
    is that of the norms, `initializer_range` the standard deviation of weights drawn at random, and
    `max_position_embeddings` the longest text. `stop_tokens` end a generated text. `others` are entries of the file
    that say nothing about the computation; they are written back when the model is saved.

    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    >>> config.has_query_norm, config.query_bias, config.tie_word_embeddings
    (True, False, False)
    """

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-6
    rope_parameters: Mapping[str, Any] = field(default_factory=lambda: {"rope_type": "default", "rope_theta": 10000.0})
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    max_position_embeddings: int = 32768
    initializer_range: float = 0.02
    stop_tokens: tuple[int, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ConfigurationError(
                f"DecoderConfig: family must be one of {', '.join(FAMILIES)}, got {self.family!r}."
            )
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 0 < value < 1 << 31:
                raise ConfigurationError(f"DecoderConfig: {name} must be a positive integer, got {value!r}.")
        if self.num_hidden_layers > _MOST_LAYERS:
            raise ConfigurationError(
                f"DecoderConfig: num_hidden_layers must be at most {_MOST_LAYERS}, got {self.num_hidden_layers}."
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigurationError(
                f"DecoderConfig: num_attention_heads must be a multiple of num_key_value_heads, got "
                f"{self.num_attention_heads} and {self.num_key_value_heads}."
            )
        if self.head_dim % 2:
            raise ConfigurationError(f"DecoderConfig: head_dim must be even, it counts pairs; got {self.head_dim}.")
        for name in ("rms_norm_eps", "initializer_range"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise ConfigurationError(f"DecoderConfig: {name} must be a number from 0 to 1, got {value!r}.")

    @property
    def has_query_norm(self) -> bool:
        """Whether heads of query and key are normalised."""
        return self.family == "qwen3"

    @property
    def query_bias(self) -> bool:
        """Whether the projections to query, key and value have a bias."""
        return self.family == "qwen2" or self.attention_bias

    @property
    def output_bias(self) -> bool:
        """Whether the projection of attention's result has a bias."""
        return self.family != "qwen2" and self.attention_bias


_COUNTS = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "max_position_embeddings",
)  # fmt: skip
_NAMES = (*_COUNTS, "rms_norm_eps", "tie_word_embeddings", "attention_bias", "mlp_bias", "initializer_range")
_MOST_LAYERS = 10_000  # a hundred times those of the largest model; they are made one by one


QUANTIZATION = "quantization_config"  # the entry, which tells other programs; the files' names say how it is
QUANTIZED = {"quant_method": "pullback"}


def read_config(folder: str | os.PathLike[str]) -> DecoderConfig:
    """The configuration in `folder`/config.json; what ends a text is said by generation_config.json if it is there."""
    path = os.path.join(folder, CONFIG)
    entries = read_json(path)
    try:
        config = from_entries(entries)
        path = os.path.join(folder, GENERATION)
        if os.path.exists(path):
            config = replace(config, stop_tokens=_stop_tokens(read_json(path)) or config.stop_tokens)
        return config
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def from_entries(entries: Mapping[str, Any]) -> DecoderConfig:
    """The configuration that the entries of a config.json say."""
    family = entries.get("model_type")
    if family not in FAMILIES:
        known = ", ".join(repr(name) for name in FAMILIES)
        raise ConfigurationError(
            f"the architecture {family!r} (model_type) is not known; pb.models has {known}. "
            f"{nearest(str(family), FAMILIES)}".rstrip()
        )
    _check_supported(entries)
    found = {name: entries[name] for name in _NAMES if entries.get(name) is not None}
    for name in _COUNTS[:5]:
        if name not in found:
            raise ConfigurationError(f"the entry {name!r} is missing.")
    heads, width = found["num_attention_heads"], found["hidden_size"]
    found.setdefault("num_key_value_heads", heads)
    if "head_dim" not in found:
        if family == "qwen3":
            found["head_dim"] = 128
        elif type(heads) is int and type(width) is int and heads > 0 and width % heads == 0:
            found["head_dim"] = width // heads
        else:
            raise ConfigurationError(f"hidden_size {width!r} is no multiple of num_attention_heads {heads!r}.")
    for name in ("tie_word_embeddings", "attention_bias", "mlp_bias"):
        if not isinstance(found.get(name, False), bool):
            raise ConfigurationError(f"{name} must be true or false, got {found[name]!r}.")
    read = {*_NAMES, QUANTIZATION, "rope_parameters", "rope_theta", "rope_scaling", "torch_dtype", "eos_token_id"}
    others = {name: value for name, value in entries.items() if name not in read}
    rope, stops = _rope_parameters(entries), _stop_tokens(entries)
    return DecoderConfig(family=family, rope_parameters=rope, stop_tokens=stops, others=others, **found)


def to_entries(config: DecoderConfig) -> dict[str, Any]:
    """The entries of a config.json that says `config`, in the new style."""
    entries: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[config.family]],
        "model_type": config.family,
        "hidden_act": "silu",
    }
    entries |= config.others
    entries |= {name: getattr(config, name) for name in _NAMES}
    if config.stop_tokens:
        first, *more = config.stop_tokens
        entries["eos_token_id"] = [first, *more] if more else first
    return entries | {"rope_parameters": dict(config.rope_parameters)}


def read_json(path: str) -> dict[str, Any]:
    """The object in a small JSON file."""
    with open(path, "rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        raise FileFormatError(f"{path}: more than {_LARGEST_FILE} bytes, too many for a configuration.")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON ({error}).") from error
    if not isinstance(entries, dict):
        raise FileFormatError(f"{path}: expected a JSON object, got {type(entries).__name__}.")
    return entries


def _check_supported(entries: Mapping[str, Any]) -> None:
    """Refuse what would be computed wrongly."""
    if entries.get("hidden_act", "silu") != "silu":
        raise ConfigurationError(f"hidden_act {entries['hidden_act']!r} is not supported, only 'silu' is.")
    if _has_windows(entries):
        raise ConfigurationError("layers with a sliding window are not supported; set use_sliding_window to false.")
    if entries.get("is_causal") not in (None, True):
        raise ConfigurationError("is_causal is false: tokens that see those after them are not supported.")
    _check_quantization(entries.get(QUANTIZATION))


def _has_windows(entries: Mapping[str, Any]) -> bool:
    """Whether a layer sees a part of the text alone; those before the layer `max_window_layers` see all of it."""
    kinds = entries.get("layer_types")
    if kinds:
        return not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds)
    first, layers = entries.get("max_window_layers"), entries.get("num_hidden_layers")
    windows = bool(entries.get("use_sliding_window") and entries.get("sliding_window"))
    return windows and not (type(first) is int and type(layers) is int and first >= layers)


def _check_quantization(given: Any) -> None:
    method = given.get("quant_method") if isinstance(given, dict) else None
    if given and method != QUANTIZED["quant_method"]:
        raise ConfigurationError(
            f"the weights are quantized by {method!r} ({QUANTIZATION}), which is not supported. Load the folder of the "
            f"plain weights, and quantize them by pb.models.load(folder, quantize=...)."
        )


def _stop_tokens(entries: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens that end a text: one, several or none."""
    given = entries.get("eos_token_id")
    tokens = given if isinstance(given, list) else [] if given is None else [given]
    if not all(type(token) is int and 0 <= token < 1 << 31 for token in tokens):
        raise ConfigurationError(f"eos_token_id must be a token or a list of tokens, got {given!r:.60}.")
    return tuple(tokens)


def _rope_parameters(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The rotary embedding's options in the new style: one dict, with `rope_type` and `rope_theta`."""
    new, old = (_renamed(name, entries.get(name) or {}) for name in ("rope_parameters", "rope_scaling"))
    if new and any(name not in new or new[name] != value for name, value in old.items()):
        raise ConfigurationError(
            f"rope_parameters and rope_scaling say different things ({new!r:.80} and {old!r:.80}). Write all of it, "
            f"with rope_theta, in rope_parameters, and take rope_scaling out."
        )
    found = new or old
    found.setdefault("rope_type", "default")
    found.setdefault("rope_theta", entries.get("rope_theta") or 10000.0)
    share = found.get("partial_rotary_factor", entries.get("partial_rotary_factor"))
    if share not in (None, 1) and found["rope_type"] != "default":
        raise ConfigurationError(f"partial_rotary_factor is {share!r:.60}: heads that turn in part are not supported.")
    return found


def _renamed(entry: str, options: Any) -> dict[str, Any]:
    """The options of an entry, with `rope_type` under the name that it has now."""
    if not isinstance(options, dict) or any(isinstance(value, dict) for value in options.values()):
        raise ConfigurationError(f"{entry} must be an object, the same one for all layers; got {options!r:.60}.")
    found = dict(options)
    kind = found.pop("type", None)
    return {"rope_type": kind or "default", **found} if found or kind else {}
