"""What adapters there are to be: their ranks, scales and places."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Mapping

from ..errors import ConfigurationError

ALL_LINEAR = "all-linear"
_LARGEST_RANK = 1 << 20
_LARGEST_ALPHA = 1e20


@dataclass(frozen=True)
class LoraConfig:
    """Sizes, options and places of low-rank adapters.

    A layer x W^T + b becomes x (W + s B A)^T + b, where A has `rank` rows, B `rank` columns and s is `alpha` / `rank`.

    Parameters
    ----------
    rank, alpha : int, float
        With `rslora` the scale s is alpha / sqrt(rank) instead, so that it suits large ranks as well as small ones.
    dropout : float
        The chance of each element of an adapter's input to be zero in training; each adapter has a mask of its own.
    targets : str or tuple of str
        Layers by name ("q_proj": every layer whose last names these are), by a pattern of whole names, in which `*`
        stands for any characters ("model.layers.*.self_attn.*_proj"), or "all-linear": all but the head.
    rslora, dora : bool
        `dora` gives the rows of W + s B A lengths that are learned by themselves.
    rank_pattern, alpha_pattern : mapping
        Other ranks and alphas for the layers that a name or a pattern stands for; the first that fits.

    Examples
    --------
    >>> import pullback as pb
    >>> config = pb.peft.LoraConfig(rank=16, alpha=32, targets="all-linear", rank_pattern={"down_proj": 4})
    >>> config.sizes("model.layers.0.mlp.down_proj"), config.scale(4, 32)
    ((4, 32), 8.0)
    """

    rank: int = 8
    alpha: float = 16
    dropout: float = 0.0
    targets: str | tuple[str, ...] = ("q_proj", "v_proj")
    rslora: bool = False
    dora: bool = False
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        targets = (self.targets,) if isinstance(self.targets, str) else self.targets
        if not isinstance(targets, (tuple, list)) or not targets or not all(isinstance(t, str) and t for t in targets):
            raise ConfigurationError(
                f"LoraConfig: targets must be names of layers, patterns, or {ALL_LINEAR!r}, got {self.targets!r:.80}."
            )
        object.__setattr__(self, "targets", tuple(targets))
        for label, rank in {"rank": self.rank, **_entries("rank_pattern", self.rank_pattern)}.items():
            if type(rank) is not int or not 0 < rank <= _LARGEST_RANK:
                raise ConfigurationError(
                    f"LoraConfig: {label} must be a positive integer, at most {_LARGEST_RANK:,}, got {rank!r:.40}."
                )
        for label, alpha in {"alpha": self.alpha, **_entries("alpha_pattern", self.alpha_pattern)}.items():
            if type(alpha) not in (int, float) or not 0 < alpha < _LARGEST_ALPHA:
                raise ConfigurationError(f"LoraConfig: {label} must be a positive number, got {alpha!r:.40}.")
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout <= 1:
            raise ConfigurationError(f"LoraConfig: dropout must be a number from 0 to 1, got {self.dropout!r:.40}.")
        for label in ("rslora", "dora"):
            if not isinstance(getattr(self, label), bool):
                raise ConfigurationError(
                    f"LoraConfig: {label} must be True or False, got {getattr(self, label)!r:.40}."
                )

    def sizes(self, name: str) -> tuple[int, float]:
        """Rank and alpha of the layer with this whole name."""
        return _own(name, self.rank_pattern, self.rank), _own(name, self.alpha_pattern, self.alpha)

    def scale(self, rank: int, alpha: float) -> float:
        """What an adapter's product is multiplied with."""
        return alpha / (math.sqrt(rank) if self.rslora else rank)


def fits(name: str, target: str) -> bool:
    """Whether a target stands for the layer with this whole name."""
    return names(name, target) or fnmatchcase(name, target)


def names(name: str, target: str) -> bool:
    """The same for a target that is no pattern."""
    return name == target or name.endswith(f".{target}")


def _own(name: str, pattern: Mapping[str, Any], general: Any) -> Any:
    if name in pattern:
        return pattern[name]
    return next((value for target, value in pattern.items() if fits(name, target)), general)


def _entries(label: str, pattern: Any) -> dict[str, Any]:
    """What is in a pattern, each under a name for messages."""
    if not isinstance(pattern, Mapping) or not all(isinstance(key, str) for key in pattern):
        raise ConfigurationError(f"LoraConfig: {label} must map names of layers to numbers, got {pattern!r:.60}.")
    return {f"{label}[{key!r:.60}]": value for key, value in pattern.items()}
