"""The entries of PEFT's adapter_config.json, from adapters and to adapters."""

from __future__ import annotations

import re
from typing import Any, Mapping

from ..errors import ConfigurationError
from ..nn.linear import Linear
from ..nn.module import Module
from .config import ALL_LINEAR, LoraConfig, names
from .layer import LoraLinear

#: Entries that say nothing about what is computed.
_FREE = frozenset((
    "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version", "task_type",
    "layers_pattern", "megatron_core", "qalora_group_size", "loftq_config", "eva_config", "corda_config",
    "lora_ga_config", "runtime_config", "ensure_weight_tying",
))  # fmt: skip
_READ = frozenset((
    "peft_type", "r", "target_modules", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "rank_pattern",
    "alpha_pattern", "bias", "init_lora_weights",
))  # fmt: skip
#: How first values can be drawn that leave the model's own weights as they are.
_FIRST_VALUES = (True, False, None, "gaussian", "eva", "orthogonal")
_PLAIN = re.compile(r"[\w.-]+")  # a name in which no character stands for another


def entries_of(model: Module, layers: Mapping[str, LoraLinear], base_model: str | None) -> dict[str, Any]:
    """The entries that describe the adapters of a model."""
    config = next(iter(layers.values())).config
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "target_modules": _targets(model, layers, config),
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": config.dropout,
        "use_rslora": config.rslora,
        "use_dora": config.dora,
        "rank_pattern": {_whole(n): layer.rank for n, layer in layers.items() if layer.rank != config.rank},
        "alpha_pattern": {_whole(n): layer.alpha for n, layer in layers.items() if layer.alpha != config.alpha},
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "layers_pattern": None,
        "layers_to_transform": None,
        "modules_to_save": None,
        "auto_mapping": None,
        "revision": None,
    }


def config_of(entries: Mapping[str, Any], in_file: list[str]) -> tuple[LoraConfig, bool]:
    """The configuration that entries say, for a file with adapters of these layers.

    Also whether its targets are whole names: PEFT's may be a regular expression, and one of a stranger is not run.
    """
    if entries.get("peft_type") != "LORA":
        raise ConfigurationError(f"peft_type is {entries.get('peft_type')!r:.40}; only 'LORA' is known.")
    bias, first = entries.get("bias", "none"), entries.get("init_lora_weights", True)
    if bias != "none":
        raise ConfigurationError(f"bias is {bias!r:.40}: biases that are learned are not supported, only 'none' is.")
    if not any(first is known or (isinstance(first, str) and first == known) for known in _FIRST_VALUES):
        raise ConfigurationError(
            f"init_lora_weights is {first!r:.40}, which changes the model's own weights. Convert the adapter to a "
            f"plain one when you save it (PEFT: `path_initial_model_for_weight_conversion`)."
        )
    for name, value in entries.items():
        if name not in _FREE | _READ and value not in (None, False, [], {}, ""):
            raise ConfigurationError(f"{name} is {value!r:.60}, which is not supported: the result would be another.")
    targets, by_files = entries.get("target_modules"), False
    if isinstance(targets, str) and targets != ALL_LINEAR:
        targets, by_files = in_file, True
    elif isinstance(targets, list) and any(not isinstance(t, str) or not _PLAIN.fullmatch(t) for t in targets):
        raise ConfigurationError(f"target_modules must be names of layers, got {targets!r:.80}.")
    elif not isinstance(targets, (str, list)):
        raise ConfigurationError(f"target_modules must be names of layers or {ALL_LINEAR!r}, got {targets!r:.80}.")
    for name in ("r", "lora_alpha", "lora_dropout"):
        if name not in entries:
            raise ConfigurationError(f"the entry {name!r} is missing.")
    config = LoraConfig(
        rank=entries["r"],
        alpha=entries["lora_alpha"],
        dropout=entries["lora_dropout"],
        targets=(targets,) if isinstance(targets, str) else tuple(targets),
        rslora=entries.get("use_rslora", False),
        dora=entries.get("use_dora", False),
        rank_pattern=_pattern("rank_pattern", entries, in_file),
        alpha_pattern=_pattern("alpha_pattern", entries, in_file),
    )
    return config, by_files


def _targets(model: Module, layers: Mapping[str, LoraLinear], config: LoraConfig) -> list[str] | str:
    """Targets in PEFT's terms, where a name in a list stands for all layers that end in it."""
    linear = [name for name, module in model.named_modules() if isinstance(module, Linear)]
    for targets in (list(config.targets), sorted(layers)):
        if [name for name in linear if any(names(name, target) for target in targets)] == list(layers):
            return targets
    return "|".join(re.escape(name) for name in sorted(layers))


def _whole(name: str) -> str:
    """The regular expression for one whole name."""
    return f"^{re.escape(name)}"


def _pattern(label: str, entries: Mapping[str, Any], in_file: list[str]) -> dict[str, Any]:
    """Ranks or alphas by the whole names of layers, from those by regular expressions that are as good as names."""
    given = {} if entries.get(label) is None else entries[label]
    if not isinstance(given, dict):
        raise ConfigurationError(f"{label} must be an object, got {given!r:.60}.")
    found: dict[str, Any] = {}
    for key, value in given.items():
        anchored, name = key.startswith("^"), key.removeprefix("^").removesuffix("$").replace("\\", "")
        if not _PLAIN.fullmatch(name):
            raise ConfigurationError(
                f"{label} has the regular expression {key!r:.80}; only names of layers are supported in it."
            )
        for layer in in_file:
            if layer == name or (not anchored and names(layer, name)):
                found.setdefault(layer, value)
    return found
