"""Which layers of a model adapters go to."""

from __future__ import annotations

from typing import Iterable

from ..errors import ConfigurationError
from ..nn.linear import Embedding, Linear
from ..nn.module import Module
from ..nn.state import nearest
from ..quant.layer import QuantizedLinear
from .config import ALL_LINEAR, fits, names

_HEAD = "lm_head"


def find_layers(model: Module, targets: Iterable[str]) -> dict[str, Linear]:
    """The linear layers that `targets` stand for, by their whole names, in the model's order."""
    modules = {name: module for name, module in model.named_modules() if name}
    linear = {name: module for name, module in modules.items() if isinstance(module, Linear)}
    chosen: set[str] = set()
    for target in targets:
        if target == ALL_LINEAR:
            found = [name for name in linear if not _is_head(name, modules)]
        else:
            found = [name for name in linear if fits(name, target)]
            others = [name for name in modules if names(name, target) and name not in linear]
            if others:
                raise ConfigurationError(
                    f"adapters go to pb.nn.Linear, but the target {target!r} names {others[0]!r}, "
                    f"{type(modules[others[0]]).__name__}."
                )
        if not found:
            endings = {name.rpartition(".")[2] for name in linear}
            raise ConfigurationError(
                f"the target {target!r} stands for no linear layer of {type(model).__name__}. "
                f"{nearest(target, [*endings, *linear]) or _listed(endings)}"
            )
        chosen.update(found)
    layers = {name: layer for name, layer in linear.items() if name in chosen}
    for name, layer in layers.items():
        if type(layer) not in (Linear, QuantizedLinear):
            raise ConfigurationError(
                f"{name!r} is {type(layer).__name__}, a class of its own: only layers that are pb.nn.Linear itself can "
                f"be adapted. Leave it out of the targets."
            )
    return layers


def _is_head(name: str, modules: dict[str, Module]) -> bool:
    """Whether a linear layer makes a language model's logits."""
    weight = vars(modules[name]).get("weight")  # a quantized layer has its parts
    tables = [vars(module)["weight"] for module in modules.values() if isinstance(module, Embedding)]
    return names(name, _HEAD) or any(table is weight for table in tables)


def _listed(endings: set[str]) -> str:
    return f"There are {', '.join(map(repr, sorted(endings)[:12]))}." if endings else "It has none at all."
