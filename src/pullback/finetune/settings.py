"""What a fine-tuning run is told: the model, the texts, the adapters, and how to learn."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1}


#: How frozen weights can be kept: as they are, or by a scheme of `pb.quant.quantize`.
QUANT = ("none", "int8", "int4", "nf4", "fp8")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run, with what they are when nobody says otherwise.

    >>> from pullback.finetune.settings import Settings
    >>> Settings(model="qwen3-0.6b", data="chats.jsonl").rank
    16
    """

    model: str
    data: str
    validation: str | None = None
    device: str = "numpy"
    dtype: str | None = None  # of the frozen weights; None: as they are saved
    quant: str = "none"  # how the frozen weights of layers are kept

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ("all-linear",)
    rslora: bool = False
    dora: bool = False

    epochs: int | None = None
    steps: int | None = None
    batch: int = 4
    seq: int = 1024
    accumulate: int = 1
    pack: bool = True
    train_on: str = "answers"
    too_long: str = "error"

    lr: float = 2e-4
    schedule: str = "cosine"
    warmup: int | None = None  # None: a thirtieth of the steps
    weight_decay: float = 0.0
    clip_norm: float = 1.0

    checkpointing: str = "none"
    compile: bool = True
    validate_every: int | None = None
    checkpoint_every: int | None = None
    keep: int = 2
    seed: int = 0
    date: str | None = None  # that chat templates are told, as 2026-01-31; None: today's


def checkpointing_bytes(text: str) -> int | None:
    """The bytes that a text such as "1.5GiB" says; 0 for the names of other ways, None for nothing that is known.

    >>> from pullback.finetune.settings import checkpointing_bytes
    >>> [checkpointing_bytes(text) for text in ("1.5GiB", "layers", "some")]
    [1610612736, 0, None]
    """
    if text in ("none", "balanced", "layers"):
        return 0
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kKMG]i?B|B)", text)
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else None
