"""What a `Trainer` is given is what it needs: found out when it is made, not at the first step."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..nn.module import Module
from ..optim.averaging import ExponentialMovingAverage
from ..optim.optimizer import Optimizer
from ..optim.scaling import LossScaler
from ..optim.schedules import Plateau
from .callbacks import Callback
from .early_stopping import EarlyStopping


def check_parts(model: Any, loss: Any, optimizer: Any, scaler: Any, average: Any, callbacks: Any) -> None:
    """Refuse what cannot take the place it was given."""
    if not isinstance(model, Module):
        raise _wrong("the model is a pb.nn.Module", model)
    if isinstance(loss, type) or not callable(loss):
        raise _wrong("the loss is a function of (output, target), such as pb.mse_loss or pb.nn.MSELoss()", loss)
    if not isinstance(optimizer, Optimizer):
        raise _wrong("the optimizer is one of pb.optim, such as pb.optim.Adam(model.parameters())", optimizer)
    _check_parameters(model, optimizer)
    if not (scaler is None or isinstance(scaler, LossScaler)):
        raise _wrong("scaler is a pb.optim.LossScaler()", scaler)
    if not (average is None or isinstance(average, (float, ExponentialMovingAverage))):
        raise _wrong("average is a decay below 1, such as 0.999, or a pb.optim.ExponentialMovingAverage", average)
    if not isinstance(callbacks, (list, tuple)):
        raise _wrong("callbacks is a list", callbacks)
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise ConfigurationError(f"Trainer: {_described(callback)} is not a pb.train.Callback.")


def _check_parameters(model: Module, optimizer: Optimizer) -> None:
    """Refuse an optimizer that does not hold the model's parameters: they would stand still without a word."""
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    learned = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    missing = [name for name, parameter in learned.items() if id(parameter) not in held]
    if not missing:
        return
    kind = type(optimizer).__name__
    names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    if len(missing) == len(learned):
        raise ConfigurationError(
            f"Trainer: the optimizer holds none of the model's parameters ({names}), but those of another model, or of "
            f"a copy. Write `pb.optim.{kind}(model.parameters(), ...)` with the model that is trained."
        )
    raise ConfigurationError(
        f"Trainer: the optimizer holds {len(learned) - len(missing)} of the model's {len(learned)} parameters that "
        f"require a gradient, and not {names}. Write `pb.optim.{kind}(model.parameters(), ...)`, or freeze "
        "those that are not to be trained with `model.freeze(...)`."
    )


def check_folder(folder: Any, checkpoint_every: Any, best: Any) -> None:
    """Refuse to write checkpoints nowhere."""
    if folder is None and (checkpoint_every is not None or best is not None):
        raise ConfigurationError("Trainer: checkpoint_every and best need a folder to write to: pass folder=...")
    if checkpoint_every is not None:
        check_count("Trainer", "checkpoint_every", checkpoint_every, 1)


def check_count(caller: str, name: str, value: Any, least: int = 0) -> None:
    """Refuse what is no number of epochs or steps."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise ConfigurationError(f"{caller}: {name} must be an integer of at least {least}, got {value!r:.60}.")


def check_watched(scheduler: Any, callbacks: list[Callback], best: Any) -> None:
    """Refuse what follows validations where there are none."""
    if scheduler is not None and isinstance(scheduler.schedule, Plateau):
        raise ConfigurationError("fit: a Plateau schedule follows the validations: pass validation=...")
    watching = [callback.best for callback in callbacks if isinstance(callback, EarlyStopping)]
    for watched in watching if best is None else [*watching, best]:
        raise ConfigurationError(f"fit: {watched.name!r} is a value of the validations: pass validation=...")


def check_batches(caller: str, data: Any) -> None:
    """Refuse a dataset: its items are samples, and each of them would be taken for a batch."""
    if hasattr(data, "__getitem__") and not hasattr(data, "__iter__"):
        raise ConfigurationError(
            f"{caller}: the items of {type(data).__name__} are samples, not batches. "
            "Write `pb.data.Batches(dataset, batch_size=32)`."
        )


def _wrong(expected: str, given: Any) -> ConfigurationError:
    return ConfigurationError(f"Trainer: {expected}, got {_described(given)}.")


def _described(given: Any) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"{given!r}" if isinstance(given, (str, bool, int, float)) else f"{type(given).__name__}"
