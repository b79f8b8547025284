"""The angles of rotary embeddings: frequencies of pairs, also those stretched for longer texts than were trained on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Mapping

import numpy as np

from ..autodiff.creation import asarray
from ..errors import ConfigurationError
from ..functions.manipulation import concat
from ..functions.trigonometry import cos, sin

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from .config import DecoderConfig

Options = Mapping[str, Any]


def frequencies(config: DecoderConfig) -> tuple[Any, float]:
    """The angle per position of each pair (a NumPy array of float64), and a factor of the tables."""
    options = config.rope_parameters
    kind = options["rope_type"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigurationError(f"rope_type {kind!r} is not supported, only {', '.join(_KINDS)} are.")
    width = config.head_dim
    plain = _number(options, "rope_theta") ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    return _KINDS[kind](plain, options, config)


def tables(positions: Tensor, frequencies: tuple[float, ...], factor: float, dtype: Any) -> tuple[Tensor, Tensor]:
    """Cosines and sines (..., length, 1, width) for `positions` (..., length), computed in float32 or wider.

    They broadcast to heads (samples, length, heads, width).
    """
    wide = "float64" if dtype == "float64" else "float32"
    angles = positions.astype(wide)[..., None, None] * asarray(frequencies, dtype=wide, device=positions.device)
    angles = concat([angles, angles], axis=-1)
    cosines, sines = cos(angles), sin(angles)
    if factor != 1.0:
        cosines, sines = cosines * factor, sines * factor
    return cosines.astype(dtype), sines.astype(dtype)


def _default(plain: Any, options: Options, config: DecoderConfig) -> tuple[Any, float]:
    return plain, 1.0


def _linear(plain: Any, options: Options, config: DecoderConfig) -> tuple[Any, float]:
    return plain / _number(options, "factor"), 1.0


def _llama3(plain: Any, options: Options, config: DecoderConfig) -> tuple[Any, float]:
    """Slow pairs are slowed down by `factor`, fast ones are left alone, those between are mixed."""
    low, high = _number(options, "low_freq_factor"), _number(options, "high_freq_factor")
    if low >= high:
        raise ConfigurationError(f"rope_parameters: low_freq_factor {low} must be below high_freq_factor {high}.")
    turns = _number(options, "original_max_position_embeddings") * plain / (2 * np.pi)
    share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return plain * (share + (1 - share) / _number(options, "factor")), 1.0


def _yarn(plain: Any, options: Options, config: DecoderConfig) -> tuple[Any, float]:
    """As "llama3" mixes, by the pair's number; and the scores are scaled, by the tables' factor."""
    factor = _number(options, "factor")
    base, width = _number(options, "rope_theta"), config.head_dim
    length = _number_or(options, "original_max_position_embeddings", config.max_position_embeddings)
    fast, slow = _number_or(options, "beta_fast", 32.0), _number_or(options, "beta_slow", 1.0)
    if base == 1.0:
        raise ConfigurationError("rope_parameters: rope_theta must not be 1 with rope_type 'yarn'.")

    def pair_of(turns: float) -> float:
        return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair_of(fast), pair_of(slow)
    if options.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    slowed = np.clip((np.arange(width // 2) - first) / max(last - first, 0.001), 0.0, 1.0)

    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    both = _number_or(options, "mscale", 0.0), _number_or(options, "mscale_all_dim", 0.0)
    attention = scale(both[0]) / scale(both[1]) if both[0] and both[1] else scale(1.0)
    return plain * (1 - slowed + slowed / factor), _number_or(options, "attention_factor", attention)


_KINDS: dict[str, Callable[[Any, Options, Any], tuple[Any, float]]] = {
    "default": _default,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}


def _number(options: Options, name: str) -> float:
    value = options.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ConfigurationError(f"rope_parameters: {name} must be a positive number, got {value!r}.")
    return float(value)


def _number_or(options: Options, name: str, default: float) -> float:
    """A number that may be left out."""
    return _number(options, name) if options.get(name) else float(default)
