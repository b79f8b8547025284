"""Following a value to its best, and ending a run that does not improve any more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, FileFormatError
from ..files.tensors import as_numpy
from ..tensors.tensor import Tensor
from .callbacks import Callback, Record
from .figures import count, number

if TYPE_CHECKING:
    from .history import History
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

    With `restore_best`, the model has the weights of the best validation when the run is over, whether it was ended by
    this or by something else; so has the trainer's average, if it keeps one. Checkpoints hold the last weights and the
    best ones: a run that is gone on with goes on from the last.

    Parameters
    ----------
    watch : str
        The name of a value of the validations: "validation_loss", or a metric's with "validation_" in front.
    goal : str
        What is better: "lowest" or "highest".
    patience : int
        How many validations in a row may bring no improvement.
    minimum_change : float
        An improvement is one by more than this.
    restore_best : bool
        Whether the weights of the best validation are kept, and given to the model at the end.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> stopping = pb.train.EarlyStopping("validation_loss", patience=2, restore_best=True)
    >>> model = pb.nn.Linear(1, 1)
    >>> optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, callbacks=[stopping])
    >>> x = np.ones((8, 1), np.float32)
    >>> data, validation = pb.data.Batches((x, x), 8), pb.data.Batches((x, 0 * x), 8)
    >>> history = trainer.fit(data, epochs=50, validation=validation)
    >>> trainer.evaluate(validation)["loss"] == stopping.best.value
    True
    """

    def __init__(
        self,
        watch: str = "validation_loss",
        *,
        goal: str = "lowest",
        patience: int = 3,
        minimum_change: float = 0.0,
        restore_best: bool = False,
    ) -> None:
        if patience < 1:
            raise ConfigurationError(f"EarlyStopping: patience must be at least 1, got {patience!r}.")
        self.best = Best(watch, goal, minimum_change)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0  # validations since the best one
        self._weights: States | None = None  # of the best one
        self._last: States | None = None  # that the model had at the end, before it was given the best ones

    def on_start(self, trainer: Trainer) -> None:
        if trainer.step == 0:  # a new run with the same callback
            self.best.value, self.best.step, self.waited = None, None, 0
            self._weights = None
        elif self._last is not None and _are_equal(_states(trainer), self._weights):
            _restore(trainer, self._last)  # the run goes on from memory
        self._last = None
        self._decide(trainer)

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        if self.best.improved(record):
            self.waited = 0
            if self.restore_best:
                self._weights = _states(trainer)
        else:
            self.waited += 1
        self._decide(trainer)

    def on_end(self, trainer: Trainer, history: History) -> None:
        if self._weights is not None and self.best.step != trainer.step:
            self._last = _states(trainer)
            _restore(trainer, self._weights)

    def check_weights(self, trainer: Trainer) -> None:
        """Refuse weights of a checkpoint that are not those of this trainer's model."""
        if self._weights is None:
            if self.restore_best and self.best.value is not None:
                raise ConfigurationError(
                    "resume: the checkpoint is of a run without restore_best, so the best weights are not known. Leave "
                    "restore_best=True out, or start a new run."
                )
            return
        for name, own in _states(trainer).items():
            saved = self._weights.get(name)
            if not isinstance(saved, dict) or _forms(saved) != _forms(own):
                raise FileFormatError("resume: the best weights in the checkpoint are not those of this model.")

    def _decide(self, trainer: Trainer) -> None:
        if self.waited >= self.patience:
            best = self.best
            what = (
                "was not a number" if best.value is None else f"has not improved on {best.value:.6g} (step {best.step})"
            )
            trainer.request_stop(f"{best.name} {what} in {self.waited} validations")

    def state_dict(self) -> dict[str, Any]:
        kept = {"weights": self._weights} if self.restore_best else {}
        return {"best": self.best.state_dict(), "waited": self.waited, **kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best.load_state_dict(state["best"])
        self.waited = count(state, "waited")
        self._weights = state.get("weights") if self.restore_best else None
        self._last = None


States = dict[str, dict[str, Any]]


def _states(trainer: Trainer) -> States:
    """The weights of a trainer's model, and of its average: they share memory until either is written."""
    average = {} if trainer.average is None else {"average": trainer.average.state_dict()}
    return {"model": trainer.model.state_dict(), **average}


def _restore(trainer: Trainer, states: States) -> None:
    trainer.model.load_state_dict(states["model"])
    if trainer.average is not None:
        trainer.average.load_state_dict(states["average"])


def _forms(state: Any) -> Any:
    """A state with shapes and dtypes in place of arrays."""
    if isinstance(state, dict):
        return {name: _forms(part) for name, part in state.items()}
    return (state.shape, state.dtype) if isinstance(state, Tensor) else type(state)


def _are_equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return all(_are_equal(part, second[name]) for name, part in first.items())
    if isinstance(first, Tensor):
        return as_numpy("", first).tobytes() == as_numpy("", second).tobytes()
    return bool(first == second)
