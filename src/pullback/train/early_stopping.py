"""Following a value to its best, and ending a run that does not improve any more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from .callbacks import Callback, Record
from .figures import count, number

if TYPE_CHECKING:
    from .trainer import Trainer

_GOALS = ("lowest", "highest")


class Best:
    """The best value so far of something in the records, and the step it was seen at.

    >>> from pullback.train.early_stopping import Best
    >>> best = Best("validation_accuracy", goal="highest")
    >>> [best.improved({"step": step, "validation_accuracy": value}) for step, value in [(1, 0.7), (2, 0.6), (3, 0.8)]]
    [True, False, True]
    >>> best.value, best.step
    (0.8, 3)
    """

    def __init__(self, name: str, goal: str = "lowest", minimum_change: float = 0.0) -> None:
        if goal not in _GOALS:
            raise ConfigurationError(f'the goal for {name!r} must be "lowest" or "highest", got {goal!r}.')
        if not minimum_change >= 0:
            raise ConfigurationError(f"minimum_change must not be negative, got {minimum_change!r}.")
        self.name = name
        self.goal = goal
        self.minimum_change = minimum_change
        self.value: float | None = None
        self.step: int | None = None

    def improved(self, record: Record) -> bool:
        """Whether the record's value is better than all before by more than `minimum_change`."""
        if self.name not in record:
            raise ConfigurationError(
                f"there is no {self.name!r} in the records of this run, only {', '.join(sorted(record))}."
            )
        value = record[self.name]
        gain = math.inf if self.value is None and not math.isnan(value) else (self.value or 0.0) - value
        if self.goal == "highest" and self.value is not None:
            gain = -gain
        if not gain > self.minimum_change:  # so a NaN is never better
            return False
        self.value, self.step = value, record["step"]
        return True

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value, "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = None if state["value"] is None else number(state, "value")
        self.step = None if state["step"] is None else count(state, "step")


class EarlyStopping(Callback):
    """Ends a run when a value of the validations has not improved for `patience` of them in a row.

    An improvement is one by more than `minimum_change`, towards the `goal`, "lowest" or "highest".

    >>> import pullback as pb
    >>> stopping = pb.train.EarlyStopping("validation_accuracy", goal="highest", patience=5)
    """

    def __init__(
        self,
        watch: str = "validation_loss",
        *,
        goal: str = "lowest",
        patience: int = 3,
        minimum_change: float = 0.0,
    ) -> None:
        if patience < 1:
            raise ConfigurationError(f"EarlyStopping: patience must be at least 1, got {patience!r}.")
        self.best = Best(watch, goal, minimum_change)
        self.patience = patience
        self.waited = 0  # validations since the best one

    def on_start(self, trainer: Trainer) -> None:
        if trainer.step == 0:  # a new run with the same callback
            self.best.value, self.best.step, self.waited = None, None, 0
        self._decide(trainer)

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        self.waited = 0 if self.best.improved(record) else self.waited + 1
        self._decide(trainer)

    def _decide(self, trainer: Trainer) -> None:
        if self.waited >= self.patience:
            best = self.best
            what = (
                "was not a number" if best.value is None else f"has not improved on {best.value:.6g} (step {best.step})"
            )
            trainer.request_stop(f"{best.name} {what} in {self.waited} validations")

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best.state_dict(), "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best.load_state_dict(state["best"])
        self.waited = count(state, "waited")
