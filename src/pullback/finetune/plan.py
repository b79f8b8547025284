"""The memory that a run will take, planned before a weight is loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator

import numpy as np

from .. import peft
from ..backends import check_library
from ..backends.portable.packed import Form, Packed
from ..backends.quantization import SCHEMES
from ..errors import ConfigurationError, TraceError
from ..functions.filled import empty
from ..models import DecoderConfig, LanguageModel
from ..models.folder import dtype_in, is_packed, schemes_in
from ..targets.llvm.target import TARGET as PROCESSOR
from .packing import TokenBatch
from .settings import Settings
from .step import checkpointed, lora_config, trainer_for

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
    saved = schemes_in(settings.model)

    def shaped(name: str, shape: tuple[int, ...]) -> Any:
        quant = settings.quant if is_packed(name, shape) else "none"
        return _shaped(shape, dtype, saved.get(name, quant))

    model = LanguageModel(config, shaped)
    frozen = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    peft.add_lora(model, lora_config(settings), settings.seed)
    learned = sum(tensor.nbytes for tensor in model.parameters() if tensor.requires_grad)
    is_mapped = settings.device in ("numpy", "torch:cpu") and settings.dtype is None
    is_mapped = is_mapped and (settings.quant == "none" or bool(saved))
    step = _step_memory(settings, model)
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


def _shaped(shape: tuple[int, ...], dtype: str, quant: str) -> Any:
    """A weight in memory that nobody has touched, which the system has not given yet."""
    if quant == "none":
        return empty(shape, dtype=dtype, device="numpy").set_requires_grad(True)
    form = Form(quant, -2 if SCHEMES[quant].has_axis else None, shape, dtype)
    layout = SCHEMES[quant].layout(shape, form.axis)
    return Packed(tuple([empty(part, dtype=kind, device="numpy") for part, kind in layout]), form)


def _step_memory(settings: Settings, model: LanguageModel) -> dict[str, int]:
    """The memory of a compiled step, or of each batch of one that has several."""
    trainer = trainer_for(replace(settings, compile=True), model)
    rows = np.zeros((settings.batch, settings.seq), np.int32)
    batch = TokenBatch(rows, rows, rows, rows, np.ones(settings.batch, np.int32))
    try:
        with checkpointed(settings, model):
            return trainer.plan(batch, settings.device)
    except TraceError as error:
        raise ConfigurationError(f"a step cannot be compiled, so its memory is not planned: {error}") from error
