"""What a step of a run is made of: adapters, the optimizer, the schedule, and what is kept for the backward pass."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..autodiff.checkpointing.budget import BudgetCheckpointing
from ..autodiff.checkpointing.strategies import BalancedCheckpointing, checkpointing
from ..errors import ConfigurationError
from ..models import LanguageModel
from ..optim import AdamW, schedules
from ..peft import LoraConfig
from ..train import Trainer
from .objective import Objective, mean_over_tokens
from .settings import Settings, checkpointing_bytes

_WARMUP_SHARE = 30  # of so many steps one is for the warm-up, where nobody says otherwise


def lora_config(settings: Settings) -> LoraConfig:
    """The adapters that the settings say."""
    return LoraConfig(
        rank=settings.rank,
        alpha=settings.alpha,
        dropout=settings.dropout,
        targets=settings.targets,
        rslora=settings.rslora,
        dora=settings.dora,
    )


def optimizer_for(settings: Settings, model: LanguageModel) -> AdamW:
    """The optimizer of what a model learns."""
    learned = [(name, tensor) for name, tensor in model.named_parameters() if tensor.requires_grad]
    return AdamW(learned, lr=settings.lr, weight_decay=settings.weight_decay)


def schedule_for(settings: Settings, total: int) -> schedules.Schedule:
    """The schedule of the learning rate over so many steps."""
    warmup = total // _WARMUP_SHARE if settings.warmup is None else settings.warmup
    if warmup >= total:
        raise ConfigurationError(f"warmup: expected fewer than the {total} steps of the run, got {warmup}.")
    if settings.schedule == "cosine":
        return schedules.Cosine(total=total, warmup=warmup)
    if settings.schedule == "linear":
        return schedules.Linear(total=total, warmup=warmup)
    return schedules.Constant(warmup=warmup)


def trainer_for(settings: Settings, model: LanguageModel, **options: Any) -> Trainer:
    """What trains the adapters of a model."""
    return Trainer(
        Objective(model),
        mean_over_tokens,
        optimizer_for(settings, model),
        clip_norm=settings.clip_norm,
        accumulate=settings.accumulate,
        keep=settings.keep,
        seed=settings.seed,
        compile=None if settings.compile else False,
        progress=False,  # the command line says who watches
        **options,
    )


def checkpointed(settings: Settings, model: LanguageModel) -> AbstractContextManager[Any]:
    """A block in which steps keep for the backward pass what the settings say."""
    how = settings.checkpointing
    model.model.recomputes_layers = how == "layers"
    if how == "balanced":
        return checkpointing(BalancedCheckpointing())
    size = checkpointing_bytes(how)
    return checkpointing(BudgetCheckpointing(size)) if size else nullcontext()
