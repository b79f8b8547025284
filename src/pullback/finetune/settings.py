"""What a fine-tuning run is told: the model, the texts, the adapters, and how to learn."""

from __future__ import annotations

from dataclasses import dataclass


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
