"""The training loop: steps, epochs, validation, checkpoints, and going on after an interruption."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, Iterable, Sequence

from .. import random
from ..errors import ConfigurationError, NumericalInstabilityError
from ..files.tensors import save
from ..markup import shown_safely
from ..optim.averaging import ExponentialMovingAverage
from ..optim.scheduler import Scheduler
from ..optim.schedules import Plateau
from ..pytorch_names import KeywordsChecked
from ..targets.thread_count import asked_threads
from . import metrics as metric_functions
from .arguments import check_batches, check_count, check_folder, check_parts, check_watched
from .callbacks import Callback, Record, teller
from .checkpoints import CheckpointFolder
from .destination import destination
from .early_stopping import Best, EarlyStopping
from .endings import Ending, ending_after, ending_by
from .evaluation import evaluated
from .feeding import Feed
from .figures import count, number
from .history import History
from .interruption import interruptible, reason_of, say
from .locating import located
from .observers import Defaults
from .run_folder import BEST, RunFolder
from .run_state import load_callbacks, load_or_go_back, load_parts, saved_callbacks, saved_parts
from .totals import Totals
from .updating import Updater

_SETTLING = 2  # steps at the beginning, in which optimizers make their state and programs are made


class Trainer(KeywordsChecked):
    """Trains a model on batches, and can go on after a crash as if nothing had happened.

    Steps are compiled (see `pb.compile`) where that can be done. `step` counts the updates made, `epoch` the epochs
    gone through; records count the epoch under way from 1.

    With a `folder`, checkpoints are written to it every `checkpoint_every` steps and at the end.

    Parameters
    ----------
    model : Module
        What to train.
    loss : callable
        `loss(output, target)` gives the mean over a batch, or a pair of the sum and its weight.
    optimizer : Optimizer
        One of `pb.optim`, made of the model's parameters.
    schedule : Schedule, optional
        One of `pb.optim.schedules`: the learning rate from step to step.
    metrics : str, metric, or list or dict of these, optional
        What to compute beside the loss: names such as "accuracy", or objects of `pullback.train.metrics`.
    callbacks : sequence of Callback
        What hears of the run, such as `pb.train.JsonLines` and `pb.train.EarlyStopping`.
    clip_norm : float, optional
        The largest joint norm of the gradients of a step.
    accumulate : int
        How many batches one step uses, weighted by their sizes.
    scaler : LossScaler, optional
        For training in float16.
    autocast : dtype, optional
        What to compute in, such as "bfloat16" (see `pb.autocast`).
    average : float or ExponentialMovingAverage, optional
        The decay of an average of the parameters, with which evaluations are then made.
    folder : str or path, optional
        Where the run's checkpoints and files go.
    checkpoint_every : int, optional
        After how many steps to write a checkpoint, by default after every epoch.
    keep : int
        How many of the newest checkpoints stay.
    best : str, optional
        The name of a value of the validations, such as "validation_loss": the weights at its best are kept in
        `best.safetensors` as well.
    goal : str
        Whether that is its "lowest" or its "highest".
    seed : int
        That of the run's own random numbers (dropout); the order of the data is the data's.
    compile : bool, optional
        False never compiles, True raises where that cannot be done.
    progress : bool, optional
        Whether a `Progress` shows how the run is going; by default on a terminal and in a notebook. One among the
        `callbacks` takes its place.
    report : bool
        Whether a `Report` is written to the folder. One among the `callbacks` takes its place.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> model = pb.nn.Linear(1, 1)
    >>> trainer = pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.5))
    >>> data = pb.data.Batches((x, 3 * x + 1), batch_size=16, shuffle=True)
    >>> history = trainer.fit(data, epochs=20)
    >>> trainer.step, round(trainer.evaluate(data)["loss"], 4)
    (80, 0.0)
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Any],
        optimizer: Any,
        *,
        schedule: Any = None,
        metrics: Any = None,
        callbacks: Sequence[Callback] = (),
        clip_norm: float | None = None,
        accumulate: int = 1,
        scaler: Any = None,
        autocast: Any = None,
        average: Any = None,
        folder: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        keep: int = 2,
        best: str | None = None,
        goal: str = "lowest",
        seed: int = 0,
        compile: bool | None = None,
        progress: bool | None = None,
        report: bool = True,
    ) -> None:
        check_parts(model, loss, optimizer, scaler, average, callbacks)
        check_folder(folder, checkpoint_every, best)
        if isinstance(average, float):
            average = ExponentialMovingAverage(model, average)
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.autocast = autocast
        self.scaler = scaler
        self.average = average
        self.callbacks = list(callbacks)
        self._defaults = Defaults(progress, report and folder is not None)
        self.metrics = metric_functions.collect(metrics)
        self._evaluation_metrics = deepcopy(self.metrics)
        self._totals = Totals(self.metrics)
        self.folder = None if folder is None else Path(folder)
        self.checkpoint_every = checkpoint_every
        self.seed = seed
        self.step = 0
        self.epoch = 0
        self.total_steps: int | None = None
        self.total_epochs: int | None = None
        self.steps_per_epoch: int | None = None
        self.history = History()
        self._updater = Updater(model, loss, optimizer, clip_norm, accumulate, scaler, autocast, average, compile)
        self._run_folder = None if folder is None else RunFolder(folder)
        self._checkpoints = None if folder is None else CheckpointFolder(folder, keep)
        self._best = None if best is None else Best(best, goal)
        self._watched = best or "validation_loss"  # by a schedule that depends on how training goes
        self._scheduler = None if schedule is None else Scheduler(optimizer, schedule)
        self._first_schedule: Any = None if self._scheduler is None else self._scheduler.state_dict()
        self._generator = random.Generator(seed)
        self._feed = Feed()
        self._stop_reason: str | None = None
        self.ending: Ending | None = None  # None until the first call of `fit`, and during one
        self._observers: list[Callback] = []  # of the call of `fit` under way, or of the last one
        self.stop_signal: int | None = None  # the one that ended the last call of `fit`
        self._seconds = 0.0  # of earlier stretches of the run
        self._began: float | None = None
        self._last_batch: Any = None
        self._start_again()

    # -- what a user calls -------------------------------------------------------------------------

    def fit(
        self,
        data: Iterable[Any],
        epochs: int | None = None,
        steps: int | None = None,
        validation: Iterable[Any] | None = None,
        *,
        validate_every: int | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> History:
        """Train until there were so many `epochs` or `steps`, counted from the beginning of the run.

        A call starts a new run, at the data's first epoch and with the weights and the optimizer as they are, unless
        `resume` is set. Ctrl-C or SIGTERM ends the run after the step, with a checkpoint.

        Parameters
        ----------
        data : Batches or iterable
            A `pb.data.Batches`, or anything that gives batches each time it is iterated. A batch is a tuple whose
            last part is the target; the others are the model's inputs.
        epochs : int, optional
            How many times to go through the data in all. Give this, `steps` or both.
        steps : int, optional
            How many steps to make in all.
        validation : Batches or iterable, optional
            What to evaluate after every epoch, and at the end.
        validate_every : int, optional
            After how many steps to evaluate, in place of epochs.
        resume : bool
            Whether to go on from the newest checkpoint in the folder, bit for bit as if there had been no
            interruption; if there is none, from where this trainer stands.
        overwrite : bool
            Whether a run in the folder may be replaced. It is set aside until the new one has a checkpoint, and put
            back if it gets none. Files of others are never replaced.

        Returns
        -------
        History
            The records of the run: `steps`, `validations`, `epochs`, and `stop_reason`.

        Raises
        ------
        ConfigurationError
            If the folder holds a run and neither `resume` nor `overwrite` is set.

        Examples
        --------
        >>> import numpy as np, pullback as pb
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        >>> model = pb.nn.Linear(1, 1)
        >>> trainer = pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.5))
        >>> history = trainer.fit(pb.data.Batches((x, 3 * x + 1), batch_size=16), epochs=2)
        >>> [record["step"] for record in history.epochs]
        [4, 8]
        """
        if resume and overwrite:
            raise ConfigurationError("fit: resume goes on with a run, overwrite replaces it: set one of them.")
        if epochs is None and steps is None:
            raise ConfigurationError("fit: say when to stop: pass epochs=... or steps=...")
        for name, limit in (("epochs", epochs), ("steps", steps)):
            if limit is not None:
                check_count("fit", name, limit)
        asked_threads()  # a wrong wish is an error here, not a reason to train without compiling
        check_batches("fit", data)
        check_batches("fit: validation", validation)
        if validate_every is not None:
            check_count("fit", "validate_every", validate_every, 1)
            if validation is None:
                raise ConfigurationError(f"fit: validate_every={validate_every!r} needs validation data.")
        if validation is None:
            check_watched(self._scheduler, self.callbacks, self._best)
        self._validation, self._validate_every = validation, validate_every
        self._feed = Feed(data)
        self._plan(epochs, steps)
        self._observers = self._defaults.added_to(self.callbacks)
        if self._run_folder is None:
            self._run(resume)
        else:
            with self._run_folder.claimed(self._files(), resume=resume, overwrite=overwrite):
                self._run(resume)
        return self.history

    def evaluate(self, data: Iterable[Any]) -> dict[str, float]:
        """The loss and the metrics over `data`, with the model (or its average) in evaluation mode.

        Parameters
        ----------
        data : Batches or iterable
            As for `fit`.

        Returns
        -------
        dict of str to float
            "loss" and the metrics by their names.

        Examples
        --------
        >>> import numpy as np, pullback as pb
        >>> x = np.ones((8, 1), np.float32)
        >>> model = pb.nn.Linear(1, 1)
        >>> trainer = pb.train.Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters()))
        >>> list(trainer.evaluate(pb.data.Batches((x, x), batch_size=4)))
        ['loss']
        """
        check_batches("evaluate", data)
        self._updater.begin()
        place = f"evaluation after step {self.step}"
        return evaluated(self._updater, data, self._evaluation_metrics, self.seed, place)

    def plan(self, batch: Any, device: str | None = None) -> dict[str, int]:
        """The bytes that a compiled step with such a batch needs, as `pb.compile` plans them; nothing is computed.

        With `accumulate`, those of one batch of the step. `device` need not be here; by default it is the model's.
        """
        self._updater.begin()
        self._updater.choose()
        return self._updater.plan(batch, device)

    def request_stop(self, reason: str) -> None:
        """End the run after this step, for this `reason`: `history.stop_reason` will say so."""
        self._stop_reason = reason

    @property
    def is_running(self) -> bool:
        """Whether `fit` is at work."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """How long the run has taken, its stretches before an interruption included."""
        return self._seconds + (0.0 if self._began is None else perf_counter() - self._began)

    @property
    def why_not_compiled(self) -> str | None:
        """Why the steps of this run are not compiled, although nobody said `compile=False`; None if they are."""
        return self._updater.why_not_compiled

    @property
    def learning_rate(self) -> float:
        """That of the next step, of the first group of parameters."""
        return float(self.optimizer.param_groups[0]["lr"])

    def __repr__(self) -> str:
        state = str(self.ending) if self.ending else "running" if self.is_running else "not running"
        return f"<Trainer of {type(self.model).__name__}: step {self.step}, epoch {self.epoch}, {state}>"

    @shown_safely
    def _repr_html_(self) -> str:
        """What a notebook shows: how far the run is, its figures, its loss, its settings and its model."""
        from .notebook import html

        return html(self)

    # -- where a run begins ------------------------------------------------------------------------

    def _plan(self, epochs: int | None, steps: int | None) -> None:
        if self._feed.length == 0:
            raise ConfigurationError("fit: the data has no batches.")
        self._limits = epochs, steps
        self.total_epochs, self.total_steps, self.steps_per_epoch = epochs, steps, None
        if self._feed.length is not None:
            self.steps_per_epoch = -(-self._feed.length // self.accumulate)
            if epochs is not None:
                whole = epochs * self.steps_per_epoch
                self.total_steps = whole if steps is None else min(steps, whole)

    def _files(self) -> list[str]:
        """The names in the folder that this run will write."""
        assert self.folder is not None
        names = [name for callback in self._observers for name in callback.files(self.folder)]
        return names if self._best is None else [BEST, *names]

    def _find_start(self, resume: bool) -> None:
        """Go to the beginning of a new run, or to where the one to go on with was: on the disk, or in memory."""
        state = None
        if self._checkpoints is not None and resume:
            state = self._checkpoints.newest()
        if state is not None:
            load_or_go_back(self._load, state, before=self._state())
            self._unsaved = False
        elif not (resume and self.step):
            self._start_again()
        else:
            self._feed.load_state_dict(self._left_at)

    def _start_again(self) -> None:
        self.step = self.epoch = 0
        self._feed.restart()
        self.history = History()
        self._generator.seed(self.seed)
        self._seconds, self._began = 0.0, None
        self._validated_at = 0
        self._unsaved = True
        if self._best is not None:
            self._best.value = self._best.step = None
        if self._scheduler is not None:
            self._scheduler.load_state_dict(self._first_schedule)
        self._totals = Totals(self.metrics)

    # -- the loop ----------------------------------------------------------------------------------

    def _run(self, resume: bool) -> None:
        self._find_start(resume)
        self._stop_reason = self.history.stop_reason = self.stop_signal = self.ending = None
        self._began = perf_counter()
        self._tell = teller(self._observers, self)
        if not self.model.training:
            self.model.train()
        self._updater.begin()
        self._updater.choose()
        self._totals.reset_step()
        self._tokens = self._feed.tokens_given or 0  # before the step under way
        self._programs, self._settling = 0, _SETTLING
        with interruptible(self._stop_by), random.using(self._generator):
            try:
                self._tell("on_start")
                while not self._is_over():
                    self._train_epoch()
                self._end()
            except BaseException as error:
                self._updater.forget()
                self.ending = ending_by(error)
                self.history.stop_reason = self.ending.reason
                self._tell("on_error", error)
                raise
            finally:
                self._seconds = self.seconds
                self._began = None
                self._left_at = self._feed.state_dict()

    def _stop_by(self, signal: int) -> None:
        self.stop_signal = signal
        self.request_stop(reason_of(signal))

    def _is_over(self) -> bool:
        if self._stop_reason is not None:
            return True
        if self._feed.is_at_end:
            return False  # what belongs to the end of the epoch is still to be done
        epochs, steps = self._limits
        return (steps is not None and self.step >= steps) or (epochs is not None and self.epoch >= epochs)

    def _train_epoch(self) -> None:
        """Go through the rest of the epoch, or up to the end of the run."""
        pending = 0
        mark = perf_counter()
        for batch in self._feed.rest_of_epoch():
            pending += 1
            self._add(batch)
            if pending == self.accumulate or self._feed.is_at_end:
                self._finish_step(perf_counter() - mark)
                pending = 0
                if self._is_over():
                    return
                mark = perf_counter()
        if pending:
            self._finish_step(perf_counter() - mark)
        if self._feed.position == 0:
            raise ConfigurationError(
                f"fit: the data gave no batches in epoch {self.epoch + 1}. A generator is used up after one epoch: "
                "pass something that can be iterated again, such as pb.data.Batches or a list."
            )
        if self._stop_reason is None:
            self._end_epoch()

    def _add(self, batch: Any) -> None:
        prepared = self._updater.prepared(batch)
        try:
            output, total, weight = self._updater.add(prepared)
        except NumericalInstabilityError as error:
            raise self._located(error, prepared) from error
        self._last_batch = prepared
        samples = prepared[0].shape[0] if prepared[0].ndim else 1
        self._totals.add(total, weight, samples, output, prepared[-1])

    def _finish_step(self, seconds: float) -> None:
        rate, tokens = self.learning_rate, self._feed.tokens_given
        counts = {} if tokens is None else {"tokens": tokens - self._tokens}
        self._tokens = tokens or 0
        try:
            norm = self._updater.apply()
        except NumericalInstabilityError as error:
            raise self._located(error, self._last_batch) from error
        if self._scheduler is not None:
            self._scheduler.step()
        self.step += 1
        self._settling -= 1
        programs = self._updater.programs
        is_usual = self._settling < 0 and programs == self._programs
        self._programs = programs
        self._unsaved = True
        record = {
            "step": self.step,
            "epoch": self.epoch + 1,
            "learning_rate": rate,
            **self._totals.finish_step(norm, seconds, is_usual, **counts),
            "seconds": self.seconds,
        }
        self.history.steps.add(record)
        self._tell("on_step", record)
        if self._validate_every is not None and self.step % self._validate_every == 0:
            self._validate()
        if self.checkpoint_every is not None and self.step % self.checkpoint_every == 0:
            self._save()

    def _end_epoch(self) -> None:
        validated = {}
        if self._validation is not None and self._validate_every is None:
            validated = self._validate()
        record = {
            "step": self.step,
            "epoch": self.epoch + 1,
            "learning_rate": self.learning_rate,
            **self._totals.finish_epoch(),
            **{name: value for name, value in validated.items() if name.startswith("validation_")},
            "seconds": self.seconds,
        }
        self._feed.end_epoch()
        self.epoch += 1
        self._unsaved = True
        self.history.epochs.add(record)
        self._tell("on_epoch", record)
        if self._checkpoints is not None and self.checkpoint_every is None:
            self._save()

    def _validate(self) -> Record:
        figures = self.evaluate(self._validation)  # type: ignore[arg-type]
        record: Record = {"step": self.step, "epoch": self.epoch + 1}
        record |= {f"validation_{name}": value for name, value in figures.items()}
        record["seconds"] = self.seconds
        self._validated_at = self.step
        self._unsaved = True
        self.history.validations.add(record)
        if self._best is not None and self._best.improved(record):
            self._save_best()
        if self._scheduler is not None and isinstance(self._scheduler.schedule, Plateau):
            self._scheduler.schedule.observe(record[self._watched])
            self._scheduler.load_state_dict(self._scheduler.state_dict())  # the rate changes now, without a step
        self._tell("on_validation", record)
        return record

    def _end(self) -> None:
        if self._validation is not None and self._stop_reason is None and self._validated_at != self.step:
            self._validate()
        self.history.stop_reason = self._stop_reason
        if self._checkpoints is not None and self._unsaved:
            self._save()
        self.ending = ending_after(self.history)
        self._tell("on_end", self.history)
        if self.stop_signal is not None:
            where = "no folder was given, so there is no checkpoint"
            if self._checkpoints is not None:
                where = f"the checkpoint is {self._checkpoints.path(self.step)}; resume=True goes on from it"
            say(f"Stopped after step {self.step}: {where}.")

    def _located(self, error: NumericalInstabilityError, batch: tuple[Any, ...]) -> NumericalInstabilityError:
        place = f"step {self.step + 1}, epoch {self.epoch + 1}, batch {self._feed.position}"
        found = located(error, place, batch, self._feed.indices(self.epoch))
        return NumericalInstabilityError(f"{found} The parameters are those before this step.")

    # -- the state of a run ------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own, by name."""
        parts = {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self._scheduler,
            "scaler": self.scaler,
            "average": self.average,
            "best": self._best,
            "history": self.history,
            "totals": self._totals,
            "data": self._feed,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return {
            "step": self.step,
            "epoch": self.epoch,
            "seconds": self.seconds,
            "validated_at": self._validated_at,
            "random": self._generator.state,
            "parts": saved_parts(self._parts()),
            "callbacks": saved_callbacks(self._observers),
        }

    def _load(self, state: dict[str, Any]) -> None:
        step, epoch, validated_at = (count(state, name) for name in ("step", "epoch", "validated_at"))
        seconds = number(state, "seconds", finite=True)
        load_parts(self._parts(), state["parts"])
        load_callbacks(self._observers, state["callbacks"])
        for callback in self.callbacks:
            if isinstance(callback, EarlyStopping):
                callback.check_weights(self)
        self._generator.state = state["random"]
        self.step, self.epoch = step, epoch
        self._seconds, self._validated_at = seconds, validated_at

    def _save(self) -> None:
        path = self._checkpoints.write(self.step, self._state())  # type: ignore[union-attr]
        self._run_folder.keep_new()  # type: ignore[union-attr]
        self._unsaved = False
        self._tell("on_checkpoint", path)

    def _save_best(self) -> None:
        best: Any = self._best
        about = {"step": str(best.step), best.name: repr(best.value)}
        with self._updater.averaged():
            save(self.model.state_dict(), destination(self, None, BEST, "best"), about)
