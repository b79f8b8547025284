"""Training and evaluating an `Mlp` on a data set in memory. After the first steps nothing is allocated."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from ..errors import ConfigurationError, NumericalInstabilityError, ShapeError
from ..train.history import History
from ..train.metrics import Metric, as_array, collect
from .arrays import real_array
from .layout import positive
from .losses import Loss, check_classes, check_output, loss_named

if TYPE_CHECKING:
    from .compiled import CompiledSteps
    from .network import Mlp

__all__ = ["evaluate", "fit"]

Callback = Callable[[dict[str, Any]], Any]


def fit(
    mlp: Mlp, x: Any, y: Any, epochs: int, batch_size: int, loss: str, optimizer: Any, lr: float | None, schedule: Any,
    clip_norm: float | None, shuffle: bool, seed: int | None, validation: tuple[Any, Any] | None, metrics: Any,
    callback: Callback | None, compile: bool | None,
) -> History:  # fmt: skip
    """See `Mlp.fit`."""
    epochs = positive("fit: epochs", epochs)
    if clip_norm is not None and not clip_norm > 0:
        raise ConfigurationError(f"fit: clip_norm must be positive, got {clip_norm!r}.")
    samples = Samples(mlp, "fit", x, y, loss, batch_size)
    watched = collect(metrics)
    held_out = None
    if validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise ConfigurationError("fit: validation must be a pair of x and y.")
        held_out = Evaluation(mlp, Samples(mlp, "fit: validation", *validation, loss, batch_size), collect(metrics))
    updates = Updates(mlp, samples, optimizer, lr, schedule, clip_norm, epochs, compile)
    order = _Order(samples.count, seed) if shuffle else None
    history = History()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite raises by name
        for epoch in range(1, epochs + 1):
            for metric in watched.values():
                metric.reset()
            total = 0.0
            for inputs, targets in samples.batches(order.next() if order else None):
                total += updates.step(inputs, targets, epoch) * len(inputs)
                for metric in watched.values():
                    metric.update(updates.outputs, targets)
            record = {
                "epoch": epoch,
                "step": updates.count,
                "loss": total / samples.count,
                "learning_rate": updates.learning_rate,
                "gradient_norm": updates.norm,
                **{name: metric.compute() for name, metric in watched.items()},
            }
            if held_out is not None:
                record.update({f"validation_{name}": value for name, value in held_out.run().items()})
            updates.observe(record.get("validation_loss", record["loss"]))
            history.epochs.add(record)
            if callback is not None and callback(dict(record)) is True:
                history.stop_reason = f"the callback asked for it after epoch {epoch}"
                break
    return history


def evaluate(mlp: Mlp, x: Any, y: Any, loss: str, metrics: Any, batch_size: int) -> dict[str, float]:
    """See `Mlp.evaluate`."""
    samples = Samples(mlp, "evaluate", x, y, loss, batch_size)
    with np.errstate(over="ignore", invalid="ignore"):
        return Evaluation(mlp, samples, collect(metrics)).run()


class Samples:
    """Inputs and targets in the form that the network and the loss take, and the buffers for a batch of them."""

    def __init__(self, mlp: Mlp, name: str, x: Any, y: Any, loss: str, batch_size: int) -> None:
        layout = mlp._layout
        self.loss: Loss = loss_named(loss)
        check_output(self.loss, layout.activations[-1].name)
        inputs, outputs = layout.sizes[0], layout.sizes[-1]
        self.x = _numbers(f"{name}: x", x, layout.dtype)
        if self.x.ndim != 2 or self.x.shape[1] != inputs:
            raise ShapeError(f"{name}: x has shape {self.x.shape}, expected (samples, {inputs}).")
        self.count = len(self.x)
        if not self.count:
            raise ShapeError(f"{name}: there are no samples: x has shape {self.x.shape}.")
        given = as_array(f"{name}: y", y)
        if self.loss.takes_classes and given.dtype.kind in "iu" and given.shape == (self.count,):
            check_classes(name, given, outputs)
            self.y = np.ascontiguousarray(given, np.intp)
        else:
            self.y = _numbers(f"{name}: y", given, layout.dtype)
            if outputs == 1 and self.y.shape == (self.count,):
                self.y = self.y.reshape(-1, 1)
            if self.y.shape != (self.count, outputs):
                raise ShapeError(
                    f"{name}: y has shape {given.shape}, expected ({self.count}, {outputs}){self._about_classes(given)}"
                )
        self.batch = min(positive(f"{name}: batch_size", batch_size), self.count)
        self._inputs = np.empty((self.batch, inputs), self.x.dtype)
        self._targets = np.empty((self.batch, *self.y.shape[1:]), self.y.dtype)

    def _about_classes(self, given: Any) -> str:
        """The end of the message on targets of a wrong shape: how class numbers would be given."""
        if self.loss.takes_classes:
            wrong = f", which are integers; it is {given.dtype.name}" if given.shape == (self.count,) else ""
            return f" or class numbers ({self.count},){wrong}."
        if given.shape == (self.count,) and given.dtype.kind in "iu":
            return '. Class numbers are for loss="cross_entropy".'
        return "."

    def batches(self, order: Any = None) -> Iterator[tuple[Any, Any]]:
        """Inputs and targets, batch by batch; the last one may be shorter."""
        for start in range(0, self.count, self.batch):
            end = min(start + self.batch, self.count)
            if order is None:
                yield self.x[start:end], self.y[start:end]
                continue
            rows, chosen = end - start, order[start:end]
            inputs, targets = self._inputs[:rows], self._targets[:rows]
            # mode="raise" would go through a buffer, in case of an error half-way
            np.take(self.x, chosen, 0, inputs, "clip")
            np.take(self.y, chosen, 0, targets, "clip")
            yield inputs, targets


class _Order:
    """The numbers of the samples in an order that is new in every epoch, and depends on the seed alone."""

    def __init__(self, count: int, seed: int | None) -> None:
        from ..random import Generator

        self._order = np.arange(count)
        key, _ = Generator(seed).next_key(0)
        self._shuffle = np.random.Generator(np.random.Philox(key=key)).shuffle

    def next(self) -> Any:
        self._shuffle(self._order)
        return self._order


class Evaluation:
    """The loss and metrics over a data set, as often as wanted with the same buffers."""

    def __init__(self, mlp: Mlp, samples: Samples, metrics: dict[str, Metric]) -> None:
        self._mlp, self._samples, self._metrics = mlp, samples, metrics
        self._scratch = mlp.scratch(samples.batch)
        self._grads = mlp.gradients(samples.batch, input_gradient=False)

    def run(self) -> dict[str, float]:
        for metric in self._metrics.values():
            metric.reset()
        samples, grads, total = self._samples, self._grads, 0.0
        for inputs, targets in samples.batches():
            outputs = self._mlp.forward(inputs, self._scratch)
            total += samples.loss.run(outputs, targets, grads.d_output[: len(inputs)], grads) * len(inputs)
            for metric in self._metrics.values():
                metric.update(outputs, targets)
        figures = {name: metric.compute() for name, metric in self._metrics.items()}
        return {"loss": total / samples.count, **figures}


class Updates:
    """Steps of an optimizer, and what the last one leaves: its outputs, gradient norm and rate, and its number."""

    def __init__(
        self, mlp: Mlp, samples: Samples, optimizer: Any, lr: float | None, schedule: Any, clip_norm: float | None,
        epochs: int = 1, compile: bool | None = False,
    ) -> None:  # fmt: skip
        from ..optim import Scheduler
        from ..optim.schedules import Plateau

        self._mlp, self._samples, self._loss, self._clip_norm = mlp, samples, samples.loss, clip_norm
        self._scratch: Any = None
        self._compiled: CompiledSteps | None = None
        made = _chosen(mlp, samples, optimizer, lr, clip_norm, epochs, compile)
        if made is not None:
            self._compiled, self._optimizer = made
        else:
            self._allocate()
            self._optimizer, self._gradients = _optimizer(mlp, self._grads, optimizer, lr)
        self._scheduler = None if schedule is None else Scheduler(self._optimizer, schedule)
        self._waits = isinstance(schedule, Plateau)  # for what an epoch gives
        self.count = 0
        self.norm = self.learning_rate = 0.0
        self.outputs: Any = None

    def _allocate(self) -> None:
        """The buffers of steps that are not compiled."""
        samples = self._samples
        self._scratch = self._mlp.scratch(samples.batch)
        self._grads = self._mlp.gradients(samples.batch, input_gradient=False)
        for rows in {samples.batch, samples.count % samples.batch or samples.batch}:  # the last batch may be shorter
            self._grads._plan(self._scratch._plan(samples.x[:rows], "fit"), self._scratch, False)

    def step(self, inputs: Any, targets: Any, epoch: int) -> float:
        value = self._compiled_step(inputs, targets)
        if value is None:
            value = self._plain_step(inputs, targets, epoch)
        if self._scheduler is not None and not self._waits:
            self._scheduler.step()
        self.count += 1
        return value

    def _compiled_step(self, inputs: Any, targets: Any) -> float | None:
        """The loss; None if nothing was done, because steps are not compiled or something may not be finite."""
        if self._compiled is None:
            return None
        rate = float(self._optimizer.param_groups[0]["lr"])
        done = self._compiled.run(inputs, targets)
        if not done.is_made:
            return None
        self.learning_rate, self.outputs, self.norm = rate, done.outputs, done.norm
        return done.loss

    def _plain_step(self, inputs: Any, targets: Any, epoch: int) -> float:
        if self._scratch is None:
            self._allocate()
            self._gradients = self._mlp._layout.views(self._grads.parameters)
        mlp, scratch, grads = self._mlp, self._scratch, self._grads
        self.outputs = outputs = mlp.forward(inputs, scratch)
        value = self._loss.run(outputs, targets, grads._d_output[: len(inputs)], grads)
        mlp.backward(inputs, scratch, grads)
        self.norm = norm = grads.global_l2_norm_params()
        if not (isfinite(value) and isfinite(norm)):
            raise NumericalInstabilityError(
                f"fit: in epoch {epoch}, step {self.count + 1}, the loss is {value} and the norm of the gradients "
                f"{norm}. The parameters are as they were before this step. Lower the learning rate, or set clip_norm."
            )
        if self._clip_norm is not None:
            grads._shrink(norm, self._clip_norm)
        self.learning_rate = float(self._optimizer.param_groups[0]["lr"])
        self._optimizer.step(self._gradients)
        if self._compiled is not None:
            self._compiled.settle()
        return value

    def observe(self, value: float) -> None:
        """Tell a schedule that waits for it how an epoch went."""
        if self._scheduler is not None and self._waits:
            self._scheduler.step(value)


def _chosen(
    mlp: Mlp, samples: Samples, wanted: Any, lr: float | None, clip_norm: Any, epochs: int, compile: bool | None
) -> tuple[CompiledSteps, Any] | None:
    """Compiled steps and their optimizer, unless they are not wanted or not possible."""
    if compile is False:
        return None
    from .compiled import compiled_steps

    make = None
    if isinstance(wanted, str):
        kind, options = _named(wanted, lr)
        if "step" not in vars(kind):  # one that steps in a way of its own says itself what it needs
            make = partial(kind, **options)
    return compiled_steps(mlp, samples, make, clip_norm, epochs, compile)


def _named(wanted: str, lr: float | None) -> tuple[Any, dict[str, Any]]:
    """The kind of optimizer that has this name, and its options."""
    from .. import optim

    kinds: dict[str, Any] = {name.lower(): kind for name, kind in vars(optim).items() if _is_optimizer(kind)}
    if wanted.lower() not in kinds:
        raise ConfigurationError(f"fit: there is no optimizer {wanted!r}; there are {', '.join(sorted(kinds))}.")
    return kinds[wanted.lower()], {} if lr is None else {"lr": lr}


def _optimizer(mlp: Mlp, grads: Any, wanted: Any, lr: float | None) -> tuple[Any, list[Any]]:
    """An optimizer of the network's parameters, and the gradients in the order it wants them."""
    from .. import optim

    if isinstance(wanted, str):
        kind, options = _named(wanted, lr)
        if kind.elementwise:  # then all parameters can be updated as one
            return kind([mlp.parameters], **options), [grads.parameters]
        return kind(mlp._layout.views(mlp.parameters), **options), mlp._layout.views(grads.parameters)
    if not callable(wanted):
        raise ConfigurationError(f"fit: optimizer must be a name or a function, got {type(wanted).__name__}.")
    if lr is not None:
        raise ConfigurationError("fit: lr is for optimizers given by name. Set it in the function that makes yours.")
    views = mlp._layout.views(mlp.parameters)
    gradient_of = {id(view): gradient for view, gradient in zip(views, mlp._layout.views(grads.parameters))}
    made = wanted(list(views))
    if not isinstance(made, optim.Optimizer):
        raise ConfigurationError(f"fit: the optimizer's function returned {type(made).__name__}, not an Optimizer.")
    held = [parameter for group in made.param_groups for parameter in group["params"]]
    if any(id(parameter) not in gradient_of for parameter in held):
        raise ConfigurationError("fit: the optimizer holds arrays that are not among those its function was given.")
    return made, [gradient_of[id(parameter)] for parameter in held]


def _is_optimizer(kind: Any) -> bool:
    from ..optim import Optimizer

    return isinstance(kind, type) and issubclass(kind, Optimizer) and kind is not Optimizer


def _numbers(name: str, value: Any, dtype: Any) -> Any:
    """Finite real numbers as a contiguous array of this dtype."""
    array = real_array(name, value, dtype)
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NumericalInstabilityError(f"{name} has {array[place]} at {place}; expected finite numbers.")
    return array
