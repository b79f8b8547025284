"""Models by their names and sizes, with weights drawn at random."""

from __future__ import annotations

import os
from typing import Any

from ..autodiff.creation import default_dtype
from ..errors import ConfigurationError
from ..functions.filled import ones, zeros
from ..random import normal
from ..tensors.tensor import Tensor
from . import folder as folders
from .config import DecoderConfig
from .language_model import LanguageModel

# hidden_size, intermediate_size, layers, heads, key-value heads, tied
_QWEN3 = {
    "0.6B": (1024, 3072, 28, 16, 8, True),
    "1.7B": (2048, 6144, 28, 16, 8, True),
    "4B": (2560, 9728, 36, 32, 8, True),
    "8B": (4096, 12288, 36, 32, 8, False),
    "14B": (5120, 17408, 40, 40, 8, False),
    "32B": (5120, 25600, 64, 64, 8, False),
}
_QWEN2 = {
    "0.5B": (896, 4864, 24, 14, 2, True),
    "1.5B": (1536, 8960, 28, 12, 2, True),
    "7B": (3584, 18944, 28, 28, 4, False),
}
_LLAMA3 = {
    "1B": (2048, 8192, 16, 32, 8, True),
    "3B": (3072, 8192, 28, 24, 8, True),
    "8B": (4096, 14336, 32, 32, 8, False),
}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def qwen3(
    model: str | os.PathLike[str] | DecoderConfig = "0.6B", device: str | None = None, dtype: Any = None
) -> LanguageModel:
    """A Qwen3: of a size, with weights drawn at random; of a configuration, likewise; or the one in a folder.

    Parameters
    ----------
    model : str, path or DecoderConfig
        A size ("0.6B", "1.7B", "4B", "8B", "14B", "32B"), a `pb.models.DecoderConfig`, or a folder as for
        `pb.models.load`.
    device : str, optional
        Where the weights go, by default where tensors go.
    dtype : dtype, optional
        Of the weights; by default float32, or what a folder's files have.

    Returns
    -------
    LanguageModel
        In training mode; all of its parameters require a gradient.

    Examples
    --------
    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    >>> pb.models.qwen3(config).num_parameters()
    86912
    """
    common = {"vocab_size": 151936, "rope": {"rope_type": "default", "rope_theta": 1e6}, "length": 40960}
    return _make("qwen3", model, _QWEN3, {**common, "head_dim": 128, "eps": 1e-6}, device, dtype)


def qwen2(
    model: str | os.PathLike[str] | DecoderConfig = "0.5B", device: str | None = None, dtype: Any = None
) -> LanguageModel:
    """A Qwen2 or Qwen2.5: of a size ("0.5B", "1.5B", "7B"), a configuration or a folder; see `qwen3`.

    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen2", vocab_size=100, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8)
    >>> pb.models.qwen2(config).model.layers[0].self_attn.q_proj
    Linear(in_features=8, out_features=8, bias=True)
    """
    common = {"vocab_size": 151936, "rope": {"rope_type": "default", "rope_theta": 1e6}, "length": 32768}
    return _make("qwen2", model, _QWEN2, {**common, "head_dim": None, "eps": 1e-6}, device, dtype)


def llama3(
    model: str | os.PathLike[str] | DecoderConfig = "1B", device: str | None = None, dtype: Any = None
) -> LanguageModel:
    """A Llama 3 (3.1 and 3.2): of a size ("1B", "3B", "8B"), a configuration or a folder; see `qwen3`.

    `model` is a size, a `DecoderConfig` or a folder.

    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("llama", vocab_size=100, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8)
    >>> pb.models.llama3(config)(pb.asarray([[1, 2]])).shape
    (1, 2, 100)
    """
    common = {"vocab_size": 128256, "rope": _LLAMA3_ROPE, "length": 131072}
    if model == "8B":
        common["rope"] = {**_LLAMA3_ROPE, "factor": 8.0}
    return _make("llama", model, _LLAMA3, {**common, "head_dim": None, "eps": 1e-5}, device, dtype)


def _make(
    family: str, model: Any, sizes: dict[str, Any], common: dict[str, Any], device: str | None, dtype: Any
) -> LanguageModel:
    if isinstance(model, (str, os.PathLike)) and model not in sizes:
        if not os.path.isdir(model):
            raise ConfigurationError(
                f"expected one of the sizes {', '.join(map(repr, sizes))}, a DecoderConfig or a folder that is there; "
                f"got {os.fspath(model)!r}."
            )
        found = folders.load(model, device, dtype)
        _check_family(family, found.config)
        return found
    if isinstance(model, str):
        width, inner, layers, heads, shared, tied = sizes[model]
        model = DecoderConfig(
            family=family,
            vocab_size=common["vocab_size"],
            hidden_size=width,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=shared,
            head_dim=common["head_dim"] or width // heads,
            rms_norm_eps=common["eps"],
            rope_parameters=common["rope"],
            tie_word_embeddings=tied,
            max_position_embeddings=common["length"],
        )
    _check_family(family, model)
    return LanguageModel(model, _drawn(model, device, dtype))


def _check_family(family: str, config: Any) -> None:
    if not isinstance(config, DecoderConfig) or config.family != family:
        given = repr(config.family) if isinstance(config, DecoderConfig) else type(config).__name__
        raise ConfigurationError(
            f"expected a model of the family {family!r}, got {given}. `pb.models.load(folder)` takes each family."
        )


def _drawn(config: DecoderConfig, device: str | None, dtype: Any) -> Any:
    """Weights as they are at the beginning: normally distributed, norms of one, biases of zero."""
    chosen = default_dtype() if dtype is None else dtype

    def weights(name: str, shape: tuple[int, ...]) -> Tensor:
        if len(shape) == 2:
            tensor = normal(shape, dtype=chosen, device=device) * config.initializer_range
        else:
            tensor = (zeros if name.endswith(".bias") else ones)(shape, dtype=chosen, device=device)
        return tensor.detach().set_requires_grad(True)

    return weights
