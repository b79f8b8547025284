"""Adapters: a few parameters beside frozen weights, learned in their place; in files of PEFT's format."""

from .adapting import adapter_state, add_lora, merge, remove, unmerge
from .config import LoraConfig
from .files import load_adapter, save_adapter
from .layer import LoraLinear

__all__ = [
    "LoraConfig", "LoraLinear", "adapter_state", "add_lora", "load_adapter", "merge", "remove", "save_adapter",
    "unmerge",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
