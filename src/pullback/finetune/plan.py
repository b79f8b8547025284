"""The memory that a run will take, planned before a weight is loaded."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from .. import peft
from ..autodiff.gradients import backward
from ..backends import check_library
from ..compiler.calling.compiled import Compiled
from ..errors import ConfigurationError
from ..functions.filled import empty
from ..models import DecoderConfig, LanguageModel
from ..models.folder import dtype_in
from ..targets.llvm.target import TARGET as PROCESSOR
from ..tensors.tensor import Tensor
from .objective import Objective
from .settings import Settings
from .step import checkpointed, lora_config, optimizer_for

_MOMENTS = 2  # that AdamW keeps of every parameter


def memory_plan(settings: Settings, config: DecoderConfig) -> Iterator[tuple[str, int]]:
    """What takes memory, and how many bytes; the last line is all of it.

    The step is traced on a model of the right shapes whose weights have no memory, and its memory is planned as when it
    is compiled.
    """
    check_library(settings.device)
    if (missing := PROCESSOR.missing()) is not None:
        raise ConfigurationError(f"planning the memory of a step needs {missing}.")
    dtype = settings.dtype or dtype_in(settings.model)
    model = LanguageModel(config, lambda name, shape: _shaped(shape, dtype))
    frozen = sum(tensor.nbytes for tensor in model.parameters())
    peft.add_lora(model, lora_config(settings), settings.seed)
    learned = sum(tensor.nbytes for tensor in model.parameters() if tensor.requires_grad)
    is_mapped = settings.device in ("numpy", "torch:cpu") and settings.dtype is None
    step = _step(settings, model)
    rows = [
        ("frozen weights" + (", mapped from their files" if is_mapped else ""), frozen),
        ("adapters", learned),
        ("AdamW", _MOMENTS * learned),
        *([("sums of gradients", learned)] if settings.accumulate > 1 else []),
        ("a step, of which", step["arena"]),
        ("  kept for the backward pass", step["saved"]),
    ]
    yield from rows
    yield "together", sum(count for name, count in rows if not name.startswith(" "))


def _shaped(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A weight in memory that nobody has touched, which the system has not given yet."""
    return empty(shape, dtype=dtype, device="numpy").set_requires_grad(True)


def _step(settings: Settings, model: LanguageModel) -> dict[str, int]:
    """The memory of a step: forward, backward and update."""
    objective, optimizer = Objective(model), optimizer_for(settings, model)

    def step(*batch: Any) -> Any:
        total = objective(*batch)
        gradients = backward(total)
        gradients.clip_global_norm(settings.clip_norm)
        optimizer.step(gradients)
        return total.detach()

    rows = np.zeros((settings.batch, settings.seq), np.int32)
    with checkpointed(settings, model):
        return Compiled(step, name="the step").plan_on(settings.device, rows, rows, rows, rows)
