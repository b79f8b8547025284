"""What is added up while training: over the batches of a step, and over the steps of an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ConfigurationError
from .callbacks import Record

_SUMS = ("steps", "loss", "weight", "gradient_norm", "samples", "seconds")


class Totals:
    """Sums and metrics of the epoch under way.

    >>> from pullback.train.totals import Totals
    >>> totals = Totals({})
    >>> totals.add(total=6.0, weight=3.0, samples=3, output=None, target=None)
    >>> totals.add(total=6.0, weight=1.0, samples=1, output=None, target=None)
    >>> totals.finish_step(gradient_norm=0.5, seconds=2.0)
    {'loss': 3.0, 'gradient_norm': 0.5, 'samples_per_second': 2.0}
    >>> totals.finish_epoch()["loss"]
    3.0
    """

    def __init__(self, metrics: dict[str, Any]) -> None:
        self.metrics = metrics
        self._reset_epoch()

    def reset_step(self) -> None:
        """Forget the batches of a step that came to nothing."""
        self._loss = self._weight = 0.0
        self._samples = 0

    def _reset_epoch(self) -> None:
        self._sums: dict[str, float] = dict.fromkeys(_SUMS, 0)
        for metric in self.metrics.values():
            metric.reset()
        self.reset_step()

    def add(self, total: float, weight: float, samples: int, output: Any, target: Any) -> None:
        """Take a batch into account: the sum of its losses, their weight, and what metrics need."""
        self._loss += total
        self._weight += weight
        self._samples += samples
        for metric in self.metrics.values():
            metric.update(output, target)

    def finish_step(self, gradient_norm: float, seconds: float) -> Record:
        """The step's part of a record."""
        sums = self._sums
        sums["steps"] += 1
        sums["loss"] += self._loss
        sums["weight"] += self._weight
        sums["gradient_norm"] += gradient_norm
        sums["samples"] += self._samples
        sums["seconds"] += seconds
        record = {
            "loss": self._loss / self._weight,
            "gradient_norm": gradient_norm,
            "samples_per_second": self._samples / seconds if seconds > 0 else 0.0,
        }
        self._loss = self._weight = 0.0
        self._samples = 0
        return record

    def finish_epoch(self) -> Record:
        """The epoch's part of a record: means, and the metrics."""
        sums = self._sums
        record = {
            "loss": sums["loss"] / sums["weight"],
            **{name: float(metric.compute()) for name, metric in self.metrics.items()},
            "gradient_norm": sums["gradient_norm"] / sums["steps"],
            "samples_per_second": sums["samples"] / sums["seconds"] if sums["seconds"] > 0 else 0.0,
        }
        self._reset_epoch()
        return record

    def state_dict(self) -> dict[str, Any]:
        """The sums, and what the metrics have added up: their attributes that are numbers or arrays."""
        metrics = {
            name: {key: value for key, value in vars(metric).items() if _is_figure(value)}
            for name, metric in self.metrics.items()
        }
        return {"sums": dict(self._sums), "metrics": metrics}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.metrics.keys() != state["metrics"].keys():
            raise ConfigurationError(
                f"resume: the run had the metrics {sorted(state['metrics'])}, this trainer has {sorted(self.metrics)}."
            )
        self._reset_epoch()
        self._sums = dict(state["sums"])
        for name, metric in self.metrics.items():
            vars(metric).update(state["metrics"][name])


def _is_figure(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_figure(part) for part in value)
    return value is None or isinstance(value, (bool, int, float, np.ndarray, np.generic))
