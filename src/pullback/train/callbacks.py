"""What can be hooked into a training run: progress, logs, early stopping, and whatever else a user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

if TYPE_CHECKING:
    from pathlib import Path

    from .history import History
    from .trainer import Trainer

Record = dict[str, Any]
"""Plain numbers by name: step, epoch, loss, learning_rate, gradient_norm, samples_per_second, seconds, ..."""


class Callback:
    """Methods that a `Trainer` calls while it trains; a subclass defines those it needs.

    `record` holds plain numbers by name: "step", "epoch", "loss", "learning_rate", "gradient_norm",
    "samples_per_second", "steps_per_second" and "seconds" since the run began; a validation's has "validation_loss" and
    the metrics with "validation_" in front; an epoch's has the mean loss, the metrics over the training data, and the
    values of a validation at its end. `trainer.request_stop(reason)` ends the run after the step.

    >>> import pullback as pb
    >>> class PrintLoss(pb.train.Callback):
    ...     def on_step(self, trainer, record):
    ...         print(record["step"], round(record["loss"], 3))
    """

    def files(self, folder: Path) -> list[str]:
        """The names of what it writes in the trainer's folder: where one is somebody else's, no run begins."""
        return []

    def on_start(self, trainer: Trainer) -> None:
        """Training begins, or goes on after `load_state_dict`."""

    def on_step(self, trainer: Trainer, record: Record) -> None:
        """The parameters were updated."""

    def on_validation(self, trainer: Trainer, record: Record) -> None:
        """The validation data was evaluated."""

    def on_epoch(self, trainer: Trainer, record: Record) -> None:
        """All of the data was gone through once more; a validation at the end of the epoch came before this."""

    def on_checkpoint(self, trainer: Trainer, path: Path) -> None:
        """A checkpoint was written to `path` and is on the disk."""

    def on_end(self, trainer: Trainer, history: History) -> None:
        """Training is over: finished, or stopped on request (`history.stop_reason`)."""

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        """Training was ended by an error, which is raised again after this."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs: numbers, texts, tensors, in dicts and lists; saved in every checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to `state`, where `state_dict` was taken; called before `on_start` of a resumed run."""


_HOOKS = ("on_start", "on_step", "on_validation", "on_epoch", "on_checkpoint", "on_end", "on_error")


def teller(callbacks: Iterable[Callback], trainer: Trainer) -> Callable[..., None]:
    """A function that calls the method of that name of all callbacks that define it."""
    methods = {
        name: [getattr(part, name) for part in callbacks if getattr(type(part), name) is not getattr(Callback, name)]
        for name in _HOOKS
    }

    def tell(hook: str, *arguments: Any) -> None:
        for method in methods[hook]:
            try:
                method(trainer, *arguments)
            except Exception as failure:
                if hook != "on_error":
                    raise
                # The error that ended the run is the one to raise, and the other callbacks are to hear of it too.
                arguments[0].add_note(f"And {method.__qualname__} failed: {type(failure).__name__}: {failure}")

    return tell
