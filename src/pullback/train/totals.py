"""What is added up while training: over the batches of a step, and over the steps of an epoch."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from ..errors import ConfigurationError, FileFormatError
from ..tensors.tensor import Tensor
from .callbacks import Record
from .figures import count, number
from .rates import Rates

_SUMS = ("steps", "loss", "weight", "gradient_norm", "norms")
_COUNTS = ("steps", "norms")
_SCRATCH = "_rooms"  # an attribute of metrics: memory to work in


class Totals:
    """Sums and metrics of the epoch under way.

    >>> from pullback.train.totals import Totals
    >>> totals = Totals({})
    >>> totals.add(total=6.0, weight=3.0, samples=3, output=None, target=None)
    >>> totals.add(total=6.0, weight=1.0, samples=1, output=None, target=None)
    >>> totals.finish_step(gradient_norm=0.5, seconds=2.0)
    {'loss': 3.0, 'gradient_norm': 0.5, 'samples_per_second': 2.0, 'steps_per_second': 0.5}
    >>> totals.finish_epoch()["loss"]
    3.0
    """

    def __init__(self, metrics: dict[str, Any]) -> None:
        self.metrics = metrics
        self.rates = Rates()
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

    def finish_step(self, gradient_norm: float, seconds: float, is_usual: bool = True, **counts: float) -> Record:
        """The step's part of a record; see `Rates.step` for the last two, to which it adds the samples."""
        sums = self._sums
        sums["steps"] += 1
        sums["loss"] += self._loss
        sums["weight"] += self._weight
        if math.isfinite(gradient_norm):  # else the scaled loss overflowed, and no step was made
            sums["gradient_norm"] += gradient_norm
            sums["norms"] += 1
        record = {
            "loss": self._loss / self._weight,
            "gradient_norm": gradient_norm,
            **self.rates.step(seconds, is_usual, **counts, samples=self._samples),
        }
        self._loss = self._weight = 0.0
        self._samples = 0
        return record

    def finish_epoch(self) -> Record:
        """The epoch's part of a record: means, the metrics, and the rates at its end."""
        sums = self._sums
        record = {
            "loss": sums["loss"] / sums["weight"],
            **{name: float(metric.compute()) for name, metric in self.metrics.items()},
            "gradient_norm": sums["gradient_norm"] / sums["norms"] if sums["norms"] else math.nan,
            **self.rates.latest(),
        }
        self._reset_epoch()
        return record

    def state_dict(self) -> dict[str, Any]:
        """The sums, and what the metrics have added up: attributes that are numbers, texts, arrays, or made of them."""
        metrics = {
            name: {
                key: copy(value) if isinstance(value, (list, dict)) else value
                for key, value in vars(metric).items()
                if key != _SCRATCH and _is_figure(value)
            }
            for name, metric in self.metrics.items()
        }
        return {"sums": dict(self._sums), "metrics": metrics}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.metrics.keys() != state["metrics"].keys():
            raise ConfigurationError(
                f"resume: the run had the metrics {sorted(state['metrics'])}, this trainer has {sorted(self.metrics)}."
            )
        sums = {name: (count if name in _COUNTS else number)(state["sums"], name) for name in _SUMS}
        self._reset_epoch()
        self._sums = sums
        for name, metric in self.metrics.items():
            for key, value in state["metrics"][name].items():
                if not _may_become(vars(metric).get(key, ...), value):
                    raise FileFormatError(f"resume: {value!r:.40} was saved for {key!r} of the metric {name!r}.")
                setattr(metric, key, value)


def _is_figure(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_figure(part) for part in value)
    if isinstance(value, dict):
        return all(type(key) in (str, int) and _is_figure(part) for key, part in value.items())
    return value is None or isinstance(value, (bool, int, float, str, np.ndarray, np.generic, Tensor))


def _may_become(fresh: Any, saved: Any) -> bool:
    """Whether something that is `fresh` after a reset can have been `saved` in the course of an epoch."""
    if fresh is ...:  # it is made by the first update
        return not callable(saved)
    if fresh is None:
        return not isinstance(saved, (np.ndarray, np.generic)) or np.ndim(saved) > 0
    if isinstance(fresh, (int, float)):
        return isinstance(saved, (int, float))
    return isinstance(saved, type(fresh)) or saved is None
