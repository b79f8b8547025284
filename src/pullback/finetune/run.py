"""A run: a model with adapters, trained on texts in a folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .. import peft, train
from ..train import History
from .loading import loaded
from .measures import Measures, peak_memory
from .settings import Settings
from .step import checkpointed, lora_config, schedule_for, trainer_for
from .texts import Texts

#: What PEFT calls the files of an adapter.
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
_CHECKPOINTS = 10  # in a run, where nobody says otherwise


class Run:
    """The model, its adapters and a `Trainer` for them; `fit` trains. Without a folder nothing is written."""

    def __init__(self, settings: Settings, texts: Texts, folder: Path) -> None:
        self.settings, self.texts = settings, texts
        self._epochs = None if settings.steps else settings.epochs or 1
        self.steps = settings.steps or (self._epochs or 1) * -(-len(texts.batches) // settings.accumulate)
        schedule = schedule_for(settings, self.steps)
        self.model = loaded(settings.model, settings.device, settings.dtype, quant=settings.quant)
        peft.add_lora(self.model, lora_config(settings), settings.seed)
        callbacks: list[train.Callback] = [Measures(settings.device)]
        if folder is not None:
            title = f"Fine-tuning of {Path(settings.model).name}"
            callbacks += [train.JsonLines(), train.Report(title=title)]
        every = settings.checkpoint_every or max(1, self.steps // _CHECKPOINTS)
        self.trainer = trainer_for(
            settings,
            self.model,
            schedule=schedule,
            callbacks=callbacks,
            folder=folder,
            checkpoint_every=None if folder is None else every,
        )

    def fit(self, resume: bool = False, overwrite: bool = False) -> History:
        """Train for as many epochs or steps as the settings say."""
        with checkpointed(self.settings, self.model):
            return self.trainer.fit(
                self.texts.batches,
                epochs=self._epochs,
                steps=self.settings.steps,
                validation=self.texts.validation,
                validate_every=self.settings.validate_every,
                resume=resume,
                overwrite=overwrite,
            )

    def results(self) -> dict[str, Any]:
        """What became of the run, in figures."""
        history = self.trainer.history
        found: dict[str, Any] = {"steps": self.trainer.step, "seconds": self.trainer.seconds}
        if len(history.steps):
            found["loss"] = history.steps[-1]["loss"]
        if len(history.validations):
            found["validation_loss"] = history.validations[-1]["validation_loss"]
            found["validation_perplexity"] = math.exp(min(found["validation_loss"], 700.0))
        peak = peak_memory(self.settings.device)
        return found if peak is None else {**found, "peak_memory_bytes": peak}

    def save_adapter(self, folder: Path) -> None:
        """Write what was learned, in PEFT's format."""
        peft.save_adapter(self.model, folder, base_model=self.settings.model)
