"""How fast a run is: one measure, taken in one place, that the records, the bar, the log and the report all show."""

from __future__ import annotations

import math
from typing import Mapping

from .charts import number_text

__all__ = ["Rates", "rate_texts"]

_SECONDS = 2.0  # of training after which a step counts for a third
_ENDING = "_per_second"
_SHOWN = ("tokens", "samples", "steps")  # in this order; samples are left out where there are tokens


class Rates:
    """Samples, steps and tokens a second, over the last few seconds of training.

    It is counts divided by seconds, both with a weight that fades, so that a step counts by how long it took. What is
    between steps (validations, checkpoints) is not training, and steps for which a program was made do not count.

    >>> from pullback.train.rates import Rates
    >>> rates = Rates()
    >>> rates.step(0.5, samples=32)
    {'samples_per_second': 64.0, 'steps_per_second': 2.0}
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._counts: dict[str, float] = {}
        self._is_usual = False  # whether a usual step was among them

    def step(self, seconds: float, is_usual: bool = True, **counts: float) -> dict[str, float]:
        """Take a step into account that took so long; the rates, as a record has them.

        One that is not usual is passed over; its own rates are given as long as there are no others.
        """
        if not is_usual and self._is_usual:
            return self.latest()
        if is_usual and not self._is_usual:
            self._is_usual, self._seconds, self._counts = True, 0.0, {}
        fading = math.exp(-seconds / _SECONDS)
        self._seconds = fading * self._seconds + seconds
        for unit, count in {**counts, "steps": 1}.items():
            self._counts[unit] = fading * self._counts.get(unit, 0.0) + count
        return self.latest()

    def latest(self) -> dict[str, float]:
        """The rates after the last step."""
        seconds = self._seconds
        return {f"{unit}{_ENDING}": count / seconds if seconds > 0 else 0.0 for unit, count in self._counts.items()}


def rate_texts(record: Mapping[str, float]) -> list[tuple[str, str]]:
    """The rates in a record as words, each a unit and a number, the one that matters most first.

    >>> from pullback.train.rates import rate_texts
    >>> rate_texts({"loss": 0.5, "steps_per_second": 0.75, "samples_per_second": 1234.4})
    [('samples/s', '1,234'), ('steps/s', '0.75')]
    """
    units = [unit for unit in _SHOWN if f"{unit}{_ENDING}" in record]
    if "tokens" in units and "samples" in units:
        units.remove("samples")
    values = [(unit, record[f"{unit}{_ENDING}"]) for unit in units]
    return [
        (f"{unit}/s", number_text(round(value) if value >= 100 else float(f"{value:.3g}"))) for unit, value in values
    ]
